from __future__ import annotations

from itertools import product

import pytest

from scenarios.audit import figures
from scenarios.published_replay import PUBLISHED, implied_rows
from scenarios.statistics import spearman


def test_a_correlation_from_two_counts_is_that_of_the_rows() -> None:
    rows = implied_rows()
    for row in figures.told_apart():
        own = [i for i, stratum in enumerate(rows["stratum"]) if stratum == row["stratum"]]
        slow = spearman([rows["gamma"][i] for i in own], [-rows["error"][i] for i in own])
        assert row["tied"] == pytest.approx(slow)
        assert row["tied"] == pytest.approx(row["printed"], abs=0.00051)
    assert {row["stratum"] for row in figures.told_apart()} == set(PUBLISHED)


def test_counts_and_rows_agree_with_margins_told_apart() -> None:
    gammas = figures.margins(apart=True)
    errors = [1.0] * 4 + [2**0.5] * 3 + [0.0] * 43
    slow = spearman(sorted(list(gammas) * 5), [-error for error in errors])
    assert float(figures.count_correlation(5, 4, 3, gammas)) == pytest.approx(slow)


def test_every_placement_and_every_choice_between_equals_is_listed() -> None:
    """Slow and obvious, for two items: nodes that are wrong, and whom the designs with pairs blame."""
    found = set()
    for nodes in product(range(4), repeat=2):
        choices = [(node in (0, 1), True) for node in nodes]
        free = sum(first + second for first, second in choices)
        for blames in product((0, 1), repeat=free):
            unseen = sum(3 * (node == 3) + (node in (2, 3)) for node in nodes)
            found.add((unseen, sum(blames)))
    assert set(figures.possible_counts(2)) == found


def test_what_a_count_can_give_is_reported_as_reachable() -> None:
    value = float(figures.count_correlation(5, 4, 3, figures.margins(apart=False)))
    assert figures.reachable(5, value, apart=False)["agree"] >= 1
    assert figures.reachable(5, 0.95, apart=False)["agree"] == 0


def test_the_likelihood_rises_and_the_penalty_decides_the_coefficient() -> None:
    rising = [row["log_likelihood"] for row in figures.likelihood((0.0, 1.0, 5.0, 10.0))]
    assert rising == sorted(rising)
    assert figures.separated()[1] == 0
    strong, weak = (figures.coefficient((0, 1), C, draws=1, seed=0)["least"] for C in (1.0, 100.0))
    assert weak > strong + 1


def test_family_sums_would_notice_a_changed_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(row["agrees"] for row in figures.family_sums())
    size, families, printed = figures.FAMILIES["code, Phi-3-mini"]
    changed = ((25.0, *families[0][1:]), *families[1:])
    monkeypatch.setitem(figures.FAMILIES, "code, Phi-3-mini", (size, changed, printed))
    assert [row["method"] for row in figures.family_sums() if not row["agrees"]] == ["raw"]
