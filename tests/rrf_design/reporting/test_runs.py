from __future__ import annotations

from typing import Any

from rrf_design import Problem
from rrf_design.reporting.documents import read, render


def test_a_run_shows_money_margin_answers_and_purchases(problem: Problem, live: dict[str, Any]) -> None:
    made = render(read(live, problem={"": problem}))
    for text in (
        "Run: small field",
        "Money over time: spent (unit of costs), purchase by purchase",
        "time since the beginning (seconds)",
        "settled (UTC)",
        "before each purchase and at the end",
        "Every purchase",
        "budget 5",
    ):
        assert text in made
    assert "parse failure" in made
    assert live["run"] in made
    assert "data-nodes=" in made


def test_hours_are_hours_and_a_document_without_times_has_its_order(live: dict[str, Any]) -> None:
    began = 1_700_000_000.0
    purchases = [{**p, "at": began + 3600.0 * i} for i, p in enumerate(live["purchases"])]
    header = {**live["header"], "created": "2023-11-14T22:13:20+00:00"}
    made = render(read({**live, "purchases": purchases, "header": header}))
    assert "time since the beginning (hours)" in made
    assert "2023-11-14 23:13:20" in made
    old = [{name: value for name, value in p.items() if name != "at"} for p in live["purchases"]]
    made = render(read({**live, "purchases": old}))
    assert "purchases, in order" in made
    assert "settled (UTC)" not in made


def test_real_money_has_its_own_curve(live: dict[str, Any]) -> None:
    purchases = [{**p, "money": 0.25} for p in live["purchases"]]
    made = render(read({**live, "purchases": purchases, "money": 0.25 * len(purchases)}))
    assert "paid to the model's provider" in made.replace("&#x27;", "'")


def test_many_fields_are_summed_up(live: dict[str, Any]) -> None:
    items = [{**live["items"][0], "item": f"item {i}"} for i in range(80)]
    made = render(read({**live, "items": items}))
    assert "fields with their goal certified" in made
    assert "Wrong answers, and what they became" in made
    assert made.count("<h2>") == 5


def test_some_fields_are_shown_one_by_one_folded(problem: Problem, live: dict[str, Any]) -> None:
    items = [{**live["items"][0], "item": f"item {i}"} for i in range(3)]
    made = render(read({**live, "items": items}, problem={"item 1": problem}))
    assert "Field by field" in made
    for i in range(3):
        assert f"<summary>item {i}: certified γ₁" in made
    assert made.count('class="field"') == 1


def test_an_unfinished_run_has_no_repair(live: dict[str, Any]) -> None:
    item = {**live["items"][0], "repair": None, "gamma_lower": 0.0}
    made = render(read({**live, "items": [item], "open_reviews": 2, "lost": 1.0}))
    assert "No repair: the run has not come to its end" in made
    assert "2 reviews by people are still open" in made
    assert "lost to a crash" in made
