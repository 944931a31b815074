"""Radii are those of the rows of B: the largest gap between right answers, and never one that a
wrong answer made.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design.promises._measure_relations import measured_radii, radius_proposals
from rrf_design.promises._sheets import read_sheet
from rrf_design.promises._truths import GoldRule, read_truth
from rrf_design.questions.answers import RecordedAnswers
from rrf_design.questions.recipe import recipe_from_document

RECIPE = {
    "data": {"id": "no", "gold": "truth"},
    "answer": {"of": "euros", "tolerance": 0.5},
    "ask": [
        {"id": "euros", "prompt": "How many? {{ no }}"},
        {"id": "cents", "prompt": "Cents? {{ no }}", "like": "euros", "change": {"scale": 100}, "sigma": 50.0},
        {"id": "again", "prompt": "Again? {{ no }}", "like": "euros", "weight": 4.0},
    ],
}


SHARED = {
    "data": {"id": "no", "gold": "truth"},
    "problem": {"k": 1, "delta": 0.5, "deliver": ["euros"]},
    "nodes": [{"id": node, "prompt": f"{node}? {{{{ no }}}}"} for node in ("euros", "cents", "again", "twice")],
    "relations": [
        {
            "id": "cents like euros",
            "tail": "euros",
            "head": "cents",
            "transport": {"scale": 100.0},
            "covariance": [[2500.0]],
        },
        *(
            {"id": f"{node} like euros", "tail": "euros", "head": node, "family": "f", "weight": 4.0}
            for node in ("again", "twice")
        ),
    ],
}


def world(wrong: int = 3, *, noise: float = 0.2, recipe: Any = RECIPE) -> tuple[Any, Any, list[Any]]:
    rng = np.random.default_rng(2)
    nodes = tuple(entry["id"] for entry in recipe.get("ask") or recipe["nodes"])
    table, answers = [], []
    for number in range(30):
        truth = 10.0 + number
        table.append({"no": str(number), "truth": truth})
        for node in nodes:
            scale = 100.0 if node == "cents" else 1.0
            off = 9.0 if number < wrong and node == "again" else float(rng.uniform(-noise, noise))
            answers.append({"id": str(number), "node": node, "value": (truth + off) * scale})
    dataset = rrf.dataset(recipe_from_document(recipe), table)
    with RecordedAnswers(dataset, answers) as recorded:
        sheet = read_sheet(dataset, recorded, nodes)
    rule = GoldRule.of(dataset.recipe.data, tolerance=0.5)
    return dataset, sheet, [read_truth(row.item.gold, row.parser, rule) for row in sheet.rows]


@pytest.mark.parametrize("recipe", [RECIPE, SHARED], ids=["own weights", "a family and a covariance"])
def test_epsilon_is_the_largest_norm_of_the_rows_of_right_answers(recipe: Any) -> None:
    dataset, sheet, truths = world(recipe=recipe)
    norms = []
    for row, truth in zip(sheet.rows, truths, strict=True):
        if all(truth.right(value) for value in row.implied.values()):
            operator = dataset.item(row.id).problem.operator()
            norms.append(float(np.linalg.norm(operator.syndrome(row.said))))
    found = measured_radii(sheet, truths, 0.95)
    assert found is not None
    assert found["epsilon"]["items"] == len(norms) == 27
    assert found["epsilon"]["largest"] == pytest.approx(max(norms))
    assert (1 - found["epsilon"]["share_beyond"]) ** 27 == pytest.approx(0.05)


def test_a_relation_is_as_uncertain_as_its_right_answers_are_off() -> None:
    _, sheet, truths = world()
    found = measured_radii(sheet, truths, 0.95)
    assert found is not None
    by = {entry["relation"]: entry for entry in found["relations"]}
    assert [by[name]["pairs"] for name in by] == [30, 27]
    for name, head, scale in (("cents like euros", "cents", 100.0), ("again like euros", "again", 1.0)):
        gaps = [
            abs(row.said[head][0] - scale * row.said["euros"][0]) / row.said["euros"][0]
            for row, truth in zip(sheet.rows, truths, strict=True)
            if truth.right(row.implied[head]) and truth.right(row.implied["euros"])
        ]
        assert by[name]["uncertainty"] == pytest.approx(max(gaps))
    words = radius_proposals(found)
    assert words[0].startswith("[answer] epsilon = ")
    assert any("relation 'cents like euros': uncertainty = " in line for line in words)


def test_exact_answers_propose_nothing_and_few_neither() -> None:
    _, sheet, truths = world(noise=0.0)
    found = measured_radii(sheet, truths, 0.95)
    assert found is not None
    assert found["epsilon"]["largest"] == 0.0
    assert radius_proposals(found) == []
    _, sheet, truths = world()
    assert radius_proposals(measured_radii(sheet.only(range(8)), truths[:8], 0.95)) == []
    assert radius_proposals(None) == []


def _two(check: bool, *, truths: list[float], off: tuple[float, float]) -> tuple[Any, Any, list[Any]]:
    recipe: Any = {
        "data": {"id": "no", "gold": "truth"},
        "answer": {"of": "a", "tolerance": 0.5},
        "ask": [{"id": "a", "prompt": "a? {{ no }}"}, {"id": "b", "prompt": "b? {{ no }}", "like": "a"}],
    }
    if check:
        recipe["check"] = [{"id": "ledger", "of": "a", "by": {"value": "{{ ledger }}"}}]
    table: list[dict[str, Any]] = [
        {"no": str(i), "truth": truth, "ledger": truth if i else truth + 9.0} for i, truth in enumerate(truths)
    ]
    answers = [
        {"id": row["no"], "node": node, "value": row["truth"] + own}
        for row in table
        for node, own in zip("ab", off, strict=True)
    ]
    dataset = rrf.dataset(recipe_from_document(recipe), table)
    with RecordedAnswers(dataset, answers) as recorded:
        sheet = read_sheet(dataset, recorded, ("a", "b"))
    rule = GoldRule.of(dataset.recipe.data, tolerance=0.5)
    return dataset, sheet, [read_truth(row.item.gold, row.parser, rule) for row in sheet.rows]


def test_epsilon_covers_the_rows_of_checks_that_an_item_holds() -> None:
    """Both answers are 0.4 off and agree: relations alone would say 0.01.

    The item whose ledger is wrong is no item whose rows are noise.
    """
    dataset, sheet, truths = _two(True, truths=[10.0 + i for i in range(30)], off=(0.4, 0.39))
    found = measured_radii(sheet, truths, 0.95)
    assert found is not None
    slow = np.linalg.norm(dataset.item("1").problem.operator().syndrome(sheet.rows[1].said))
    assert found["epsilon"]["items"] == 29
    assert found["epsilon"]["largest"] == pytest.approx(slow)
    assert slow > 0.4


def test_no_factor_of_a_tail_that_is_zero_covers_a_gap() -> None:
    """25 of 30 pairs are off where the tail is 0; that of the others, 0.4 of 100, covers none of
    them.
    """
    _, sheet, truths = _two(False, truths=[0.0] * 25 + [100.0] * 5, off=(0.0, 0.4))
    found = measured_radii(sheet, truths, 0.95)
    assert found is not None
    (entry,) = found["relations"]
    assert (entry["pairs"], entry["uncertainty"]) == (30, None)
    assert "no uncertainty covers the 30 pairs" in radius_proposals(found)[-1]
    _, sheet, truths = _two(False, truths=[0.0] * 25 + [100.0] * 5, off=(0.0, 0.0))
    exact = measured_radii(sheet, truths, 0.95)
    assert exact is not None
    assert exact["relations"][0]["uncertainty"] == 0.0
