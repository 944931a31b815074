"""What labels say: faults of relations where both truths are known, relations that always break the same way."""

from __future__ import annotations

from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.promises.measuring import measured
from rrf_design.promises.sheets import read_sheet
from rrf_design.promises.truths import GoldRule, read_truth
from rrf_design.questions.answers import RecordedAnswers
from rrf_design.questions.recipe import recipe_from_document

RECIPE = {
    "data": {"id": "no", "gold": "truth"},
    "answer": {"of": "euros", "tolerance": 0.001},
    "ask": [
        {"id": "euros", "prompt": "How many? {{ no }}"},
        {"id": "cents", "prompt": "How many cents? {{ no }}", "like": "euros", "change": {"scale": 100}},
        {"id": "again", "prompt": "How many, again? {{ no }}", "like": "euros"},
    ],
    "check": [{"id": "register", "of": "cents", "by": {"value": "{{ cents }}"}}],
}


def measure(rows: list[dict[str, Any]], answers: list[dict[str, Any]]) -> dict[str, Any]:
    dataset = rrf.dataset(recipe_from_document(RECIPE), rows)
    with RecordedAnswers(dataset, answers) as recorded:
        sheet = read_sheet(dataset, recorded, ("euros", "cents", "again"))
    rule = GoldRule.of(dataset.recipe.data, tolerance=0.001)
    truths = [read_truth(row.item.gold, row.parser, rule) for row in sheet.rows]
    return measured(sheet, [truth for truth in truths if truth is not None], dataset.recipe, 0.95)


def rows(*cents: float) -> list[dict[str, Any]]:
    return [{"no": str(i), "truth": 10.0 + i, "cents": value} for i, value in enumerate(cents)]


def said(item: int, euros: float, cents: float, again: float | None = None) -> list[dict[str, Any]]:
    values = {"euros": euros, "cents": cents, "again": again}
    return [{"id": str(item), "node": n, "value": v} for n, v in values.items() if v is not None]


def test_a_relation_is_at_fault_only_where_it_denies_the_truth() -> None:
    found = measure(rows(1000.0, 1100.0, 1250.0), [*said(0, 10, 1000, 10), *said(1, 11, 900, 11), *said(2, 12, 1200)])
    cents, again = found["relations"]
    assert (cents["relation"], cents["both_read"], cents["broken"], cents["one_right"]) == ("cents like euros", 3, 1, 1)
    assert (cents["known"], cents["faults"]) == (3, 1)  # 12 euros, and the register says 1250 cents
    assert cents["bound"] == pytest.approx(0.865, abs=0.001)
    assert (again["both_read"], again["broken"], again["faults"], again["bound"]) == (2, 0, None, None)
    assert any("denies the truth in 1 of 3" in words for words in found["proposals"])


def test_a_relation_that_always_breaks_the_same_way_is_under_suspicion() -> None:
    """The model was asked for cents and always says euros: an answer that is wrong by itself would be wrong differently."""
    answers = [entry for i in range(4) for entry in said(i, 10.0 + i, 10.0 + i)]
    cents, _ = measure(rows(1000.0, 1100.0, 1200.0, 1300.0), answers)["relations"]
    assert (cents["broken"], cents["faults"]) == (4, 0)
    assert cents["same_way"] == {"how": "times 0.01", "times": 4}
    scattered = [entry for i in range(4) for entry in said(i, 10.0 + i, 7.0 * i * i + 1)]
    assert measure(rows(1000.0, 1100.0, 1200.0, 1300.0), scattered)["relations"][0]["same_way"] is None


def test_every_answer_is_marked_in_the_order_of_the_draw(make_world: Any) -> None:
    from rrf_design.promises import PilotSettings

    document = make_world(items=100, wrong=0.1, unread=0.05).document(PilotSettings(60, 0.3))
    marks = document["wrong_answers"]["by_node"]
    counts = [sum(text[at] == "1" for text in marks.values()) for at in range(60)]
    for entry in document["wrong_answers"]["more_than"]:
        assert entry["items"] == sum(count > entry["k"] for count in counts)


def test_a_pilot_that_grew_is_measured_at_its_first_look(make_world: Any) -> None:
    """When it stopped depends on what it showed; a bound for a fixed size would not hold there."""
    from rrf_design.promises import PilotSettings, prove_policy
    from rrf_design.risk import first_look

    document = make_world(items=200, wrong=0.05).document(PilotSettings(90, 0.1, sequential=True))
    size = first_look(0.1, 0.95)
    assert size < 90
    assert document["wrong_answers"]["items"] == size
    prove_policy(document)


def test_checks_are_proposed_with_their_bound() -> None:
    from rrf_design.promises.measuring import check_proposals

    clean, wrong = check_proposals(
        [
            {"check": "ledger", "asked": 60, "wrong": 0, "bound": 0.046875},
            {"check": "tests", "asked": 60, "wrong": 3, "bound": 0.125},
        ]
    )
    assert clean == "check 'ledger': wrong in 0 of 60 items, at most 4.69 % of all"
    assert wrong == "check 'tests': wrong in 3 of 60 items, at most 12.50 % of all; may_be_wrong = true"
