"""Faults of relations where both truths are known, and relations that always break the same way."""

from __future__ import annotations

from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.promises._measure import measured
from rrf_design.promises._sheets import read_sheet
from rrf_design.promises._truths import GoldRule, read_truth
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
    """The model was asked for cents and always says euros: an answer that is wrong by itself would
    be wrong differently.
    """
    answers = [entry for i in range(4) for entry in said(i, 10.0 + i, 10.0 + i)]
    cents, _ = measure(rows(1000.0, 1100.0, 1200.0, 1300.0), answers)["relations"]
    assert (cents["broken"], cents["faults"]) == (4, 0)
    assert cents["same_way"] == {"how": "times 0.01", "times": 4}
    scattered = [entry for i in range(4) for entry in said(i, 10.0 + i, 7.0 * i * i + 1)]
    assert measure(rows(1000.0, 1100.0, 1200.0, 1300.0), scattered)["relations"][0]["same_way"] is None


@pytest.mark.parametrize(
    ("relation", "check", "known", "faults"),
    [
        ({"transport": {"scale": 3.0}}, {}, 30, 30),
        ({"transport": {"matrix": [[3.0]]}}, {}, 0, None),
        ({}, {"sigma": 5.0}, 0, None),
    ],
    ids=["walked", "not walked", "a noisy check"],
)
def test_what_was_not_looked_at_has_no_bound(relation: Any, check: Any, known: int, faults: int | None) -> None:
    """Every head is a third of what the relation says.

    Where nobody can walk it that was 0 faults of 30, and a check's own noise was the relation's
    fault.
    """
    recipe = {
        "data": {"id": "no", "gold": "truth"},
        "problem": {"k": 1, "delta": 0.5, "deliver": ["a"]},
        "nodes": [{"id": node, "prompt": f"{node} {{{{ no }}}}"} for node in "ab"],
        "relations": [{"id": "r", "tail": "a", "head": "b", **relation}],
        "anchors": [{"id": "other", "node": "b", "value": "{{ other }}", **check}],
    }
    table = [{"no": str(i), "truth": 10.0 + i, "other": 10.0 + i + (5.0 if check else 0.0)} for i in range(30)]
    answers = [{"id": row["no"], "node": node, "value": row["truth"]} for row in table for node in "ab"]
    dataset = rrf.dataset(recipe_from_document(recipe), table)
    with RecordedAnswers(dataset, answers) as recorded:
        sheet = read_sheet(dataset, recorded, ("a", "b"))
    rule = GoldRule.of(dataset.recipe.data, tolerance=0.5)
    truths = [truth for row in sheet.rows if (truth := read_truth(row.item.gold, row.parser, rule)) is not None]
    found = measured(sheet, truths, dataset.recipe, 0.95)
    (entry,) = found["relations"]
    assert (entry["known"], entry["faults"]) == (known, faults)
    assert (entry["bound"] is None) is (faults is None)
    assert not any(words.startswith("check 'other'") for words in found["proposals"]) or not check
