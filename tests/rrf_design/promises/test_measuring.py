"""What labels say: marks, scatter and repeats by item, checks with their bounds."""

from __future__ import annotations

import json
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.promises._measure import measured
from rrf_design.promises._sheets import read_sheet
from rrf_design.promises._truths import GoldRule, read_truth
from rrf_design.questions.answers import RecordedAnswers
from rrf_design.questions.recipe import recipe_from_document
from rrf_design.risk import best_risk, rate_bound

REPEATED = {
    "data": {"id": "no", "gold": "truth"},
    "answer": {"of": "total", "tolerance": 0.5},
    "ask": [{"id": "total", "prompt": "How many? {{ no }}", "repeat": 4}],
}


def test_answers_to_one_item_count_once_for_what_is_promised_of_others() -> None:
    """Four copies of one answer are no four pieces of evidence: bounds count the twenty items, and
    not their 80 answers and 120 pairs.
    """
    dataset = rrf.dataset(recipe_from_document(REPEATED), [{"no": str(i), "truth": 10.0} for i in range(20)])
    nodes = tuple(dict.fromkeys(dataset.recipe.nodes.values()))
    assert len(nodes) == 4
    answers = [
        {"id": str(i), "node": node, "value": 10.0 + 0.01 * i + (0.3 if i == 3 and node == nodes[0] else 0.0)}
        for i in range(20)
        for node in nodes
    ]
    with RecordedAnswers(dataset, answers) as recorded:
        sheet = read_sheet(dataset, recorded, nodes)
    rule = GoldRule.of(dataset.recipe.data, tolerance=0.5)
    truths = [truth for row in sheet.rows if (truth := read_truth(row.item.gold, row.parser, rule)) is not None]
    found = measured(sheet, truths, dataset.recipe, 0.95)
    scatter, repeats = found["scatter"], found["repeats"]
    assert (scatter["answers"], scatter["items"], scatter["share_beyond"]) == (80, 20, best_risk(20, 0.95))
    assert scatter["largest"] == pytest.approx(0.33)
    assert (repeats["pairs"], repeats["differ"], repeats["items"], repeats["differing_items"]) == (120, 3, 20, 1)
    assert repeats["bound"] == rate_bound(20, 1, 0.95)


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
    assert document["measured"]["basis"].startswith(f"from the first {size} of the 90 items, because when")
    prove_policy(document)


def test_bounds_of_a_draw_inside_strata_name_the_mix_that_they_speak_of(make_world: Any) -> None:
    """A hundred strata of one item each are not drawn from before half of a large one is: what they
    hide no count of the drawn items bounds.
    """
    from rrf_design.promises import PilotSettings
    from rrf_design.risk import stratified_order

    drawn = stratified_order(["large"] * 100 + [str(at) for at in range(100)], 0, digest="d")[:50]
    assert max(drawn) < 100
    assert rate_bound(50, 0, 0.95) < 0.06 < 0.5  # all of the second half may be wrong
    world = make_world(items=100, wrong=0.05)
    assert world.document(PilotSettings(60, 0.3))["measured"]["basis"] == ""
    path = world.folder / "table.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps({**row, "kind": str(at % 3)}) + "\n" for at, row in enumerate(rows)))
    document = world.document(PilotSettings(60, 0.3, stratify="kind"))
    assert "mixed over the strata of 'kind' as the drawn ones are" in document["measured"]["basis"]


def test_a_truth_that_agreement_meets_within_its_tolerance_is_not_disputed() -> None:
    """Of five answers one is 100 and four are 100.3: all are right within 0.5, whoever of them came
    first.
    """
    from rrf_design.promises._measure import disputed_gold

    recipe: Any = {**REPEATED, "ask": [{**REPEATED["ask"][0], "repeat": 5}]}  # type: ignore[index]
    table = [{"no": str(i), "truth": 100.0 + i + (7.0 if i == 4 else 0.0)} for i in range(20)]
    dataset = rrf.dataset(recipe_from_document(recipe), table)
    nodes = tuple(dict.fromkeys(dataset.recipe.nodes.values()))
    answers = [
        {"id": str(i), "node": node, "value": 100.0 + i + (0.3 if at else 0.0)}
        for i in range(20)
        for at, node in enumerate(nodes)
    ]
    with RecordedAnswers(dataset, answers) as recorded:
        sheet = read_sheet(dataset, recorded, nodes)
    rule = GoldRule.of(dataset.recipe.data, tolerance=0.5)
    truths = [truth for row in sheet.rows if (truth := read_truth(row.item.gold, row.parser, rule)) is not None]
    assert disputed_gold(sheet, truths, sheet) == ["4"]


def test_checks_are_proposed_with_their_bound() -> None:
    from rrf_design.promises._measure import check_proposals

    clean, wrong = check_proposals(
        [
            {"check": "ledger", "asked": 60, "wrong": 0, "bound": 0.046875},
            {"check": "tests", "asked": 60, "wrong": 3, "bound": 0.125},
        ]
    )
    assert clean == "check 'ledger': wrong in 0 of 60 items, at most 4.69 % of all"
    assert wrong == "check 'tests': wrong in 3 of 60 items, at most 12.50 % of all; may_be_wrong = true"
