from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import scenarios
from scenarios import paper_audit, registry
from scenarios.kit.association import spearman
from scenarios.kit.designs import DESIGNS, prepared, recovered_placements
from scenarios.paper_audit import coverage, figures, operators, printed_items, replays, statements
from scenarios.published_replay import PUBLISHED, implied_rows, placements
from scenarios.worked_examples import EXAMPLES

REPORTS = Path(__file__).parents[3] / "reports"


def problem_of(place: str) -> str | None:
    """What is wrong with a place that an item names, if anything."""
    page, kind, name = place.split(" ", 2)
    if page not in scenarios.names():
        return f"{place}: no such scenario"
    if kind == "condition":
        known = {expectation.key for expectation in registry.get(page).expected}
    elif kind == "example":
        known = set(EXAMPLES)
    else:
        document = json.loads((REPORTS / page / "result.json").read_text(encoding="utf-8"))
        known = {table["name"] for table in document["tables"]}
    return None if name in known else f"{place}: not there; there are {sorted(known)}"


def test_every_place_exists() -> None:
    found = [problem_of(place) for item in coverage.ITEMS for place in item.where]
    assert [problem for problem in found if problem] == []


def test_a_wrong_place_would_be_noticed() -> None:
    wrong = ("no-such-page table x", "paper-audit condition x", "worked-examples example x", "real-model table x")
    assert all(problem_of(place) for place in wrong)


def test_items_stand_once_and_have_a_place() -> None:
    assert all(item.where for item in coverage.ITEMS)
    named = [(item.section, item.item) for item in coverage.ITEMS]
    assert len(set(named)) == len(named)


def test_every_example_and_every_finding_belongs_to_something_in_the_paper() -> None:
    places = {place for item in coverage.ITEMS for place in item.where}
    assert {f"worked-examples example {name}" for name in EXAMPLES} <= places
    findings = {f"paper-audit condition {e.key}" for e in registry.get("paper-audit").expected}
    assert findings - places == {"paper-audit condition small-example"}


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
    """Slow and obvious, for two items: nodes that are wrong, and whom the designs with pairs
    blame.
    """
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


def test_the_field_decides_what_an_operator_error_adds() -> None:
    small, large = (operators.operator_error(size, 1, master=0) for size in (1.0, 1000.0))
    assert not small["paper_broken"]
    assert large["paper_broken"]
    assert not small["our_broken"]
    assert not large["our_broken"]
    assert small["paper_bound"] == large["paper_bound"]
    assert large["residual_of_truth"] > large["paper_radius"]


def test_small_example_covers_the_truth_only_with_the_uncertainty_declared() -> None:
    paper, ours = operators.small_example()
    assert paper["distance_to_truth"] is None
    assert ours["distance_to_truth"] <= ours["bound"]


def test_the_printed_pair_is_compared_column_by_column() -> None:
    found = operators.worst_pair()
    assert found["columns"] == [[], [2]]
    assert found["support"] == found["least_pair"]


def test_blind_sets_are_minimal_and_all_there() -> None:
    pairs = np.array([[-1.0, 1, 0, 0, 0], [0, 0, -1, 1, 0]])
    found = operators.witnesses(pairs)
    assert found["blind_sets"] == 3
    assert found["anchors_that_help"] == 5
    assert found["anchors_that_raise_the_margin"] == 0
    last = operators.witnesses(np.vstack([pairs, [0, 0, 0, 0, 1], [1, 0, 0, 0, 0]]))
    assert (last["blind_sets"], last["anchors_that_raise_the_margin"]) == (1, 2)


def test_the_printed_items_are_computed_again() -> None:
    rows = printed_items.printed_expressions()
    assert len(rows) == len({row["index"] for row in rows}) == printed_items.ITEMS["mathematics"][0]
    assert printed_items._judge(rows)[0]
    assert not printed_items._judge([{**rows[0], "printed": 1680}, *rows[1:]])[0]
    assert not printed_items._judge([{**rows[0], "most_digits": 5}, *rows[1:]])[0]


def test_a_random_placement_has_the_correlation_of_its_rows() -> None:
    """Slow and obvious: fields with an error at a drawn node, repaired by the designs one by
    one.
    """
    at = np.random.default_rng(3).integers(4, size=9)
    errors = {design.name: recovered_placements(design.name) for design in DESIGNS}
    rows = [(prepared(d.name, 1).gamma, -round(errors[d.name][node], 9)) for node in at for d in DESIGNS]
    slow = spearman(*(np.round(side, 9) for side in zip(*rows, strict=True)))
    counts = np.bincount(at, minlength=4)
    unseen, swapped = 4 * counts[3] + counts[2], 2 * counts[1] + counts[3]
    assert float(figures.count_correlation(9, unseen, swapped, figures.margins(apart=False))) == pytest.approx(slow)


def test_without_a_model_the_printed_placements_are_possible_draws() -> None:
    rows = {row["stratum"]: row for row in replays.without_a_model()}
    assert set(rows) == {*PUBLISHED, "all four"}
    assert rows["all four"]["inside"]
    assert all(row["low"] < row["without_a_model"] < row["high"] for row in rows.values())
    assert sum(sum(placements(stratum)) for stratum in PUBLISHED) == rows["all four"]["errors"]


def test_fields_are_compared_with_items() -> None:
    rows = {row["stratum"]: row for row in replays.fields_and_items()}
    assert rows["code, Qwen-0.5B"]["more_fields_than_items"]
    assert not rows["code, Phi-3-mini"]["more_fields_than_items_with_a_right_answer"]
    assert replays._judge_items([rows["code, Phi-3-mini"]])[0] is False


def test_counts_that_are_no_multiples_of_four_are_noticed() -> None:
    rows = replays.questions_behind_items()
    assert {row["model"]: row["multiples_of_four"] for row in rows} == {
        "Phi-3-mini": 4,
        "Qwen2.5-0.5B": 4,
        "Qwen2.5-7B": 2,
        "Qwen2.5-14B": 2,
    }
    assert replays._judge_questions(rows)[0]
    assert not replays._judge_questions([{**row, "all_or_none": row["all_or_none"] - 1} for row in rows])[0]


def test_a_regression_is_known_by_its_figures() -> None:
    with_counts = dict.fromkeys(("auc_without_least", "auc_without_largest"), 0.86) | dict.fromkeys(
        ("auc_with_least", "auc_with_largest"), 0.893
    )
    row = {**with_counts, "coefficient_least": 3.1, "coefficient_largest": 3.11}
    assert replays._has_auc(row)
    assert not replays._has_coefficient(row)
    assert replays._has_coefficient({**row, "coefficient_largest": 3.66})


def test_every_statement_is_decided_by_its_rows() -> None:
    for slip in statements.SLIPS:
        rows = slip.compute()
        met, seen = slip.judge(rows)
        assert met, seen
        assert slip.note(rows)
        assert slip.key in {condition.key for condition in paper_audit.SCENARIO.expected}


def test_a_statement_that_held_would_be_said_to_hold() -> None:
    anchors = statements.anchored_designs()
    raised = [{**row, "with_anchor": row["without"] + 1.0} for row in anchors]
    assert not statements._judge_anchors(raised)[0]
    ordered = [{**row, "larger_margin_has_larger_error": 0} for row in statements.order_of_errors()]
    assert not statements._judge_order(ordered)[0]
    between = [{**row, "margin": row["independent"]} for row in statements.correlated_copies()]
    assert not statements._judge_copies(between)[0]
    units = statements.change_of_units()
    assert not statements._judge_units([{**row, "gamma_1": units[0]["gamma_1"]} for row in units])[0]
