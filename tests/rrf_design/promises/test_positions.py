"""Position bias from the recipe's own words: counted by hand, found where it was put in, and not
found where there is none.
"""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.promises._measure import measured
from rrf_design.promises._sheets import read_sheet
from rrf_design.promises._truths import GoldRule, read_truth
from rrf_design.questions.answers import RecordedAnswers
from rrf_design.questions.recipe import recipe_from_document

CHOICES = {
    "data": {"id": "no", "gold": "truth"},
    "models": {"mini": {"use": "scripted:a"}, "other": {"use": "scripted:b"}},
    "answer": {"of": "which", "choices": ["A", "B", "C"]},
    "ask": [
        {"id": "which", "prompt": "A {{ a }} B {{ b }} C {{ c }}", "model": ["mini", "other"]},
        {
            "id": "turned",
            "prompt": "A {{ c }} B {{ b }} C {{ a }}",
            "like": "which",
            "change": {"permute": [2, 1, 0]},
            "model": ["mini", "other"],
        },
        {"id": "again", "prompt": "Which? A {{ a }} B {{ b }} C {{ c }}", "like": "which"},
    ],
}
SCORES = {
    "data": {"id": "no", "gold": "truth"},
    "answer": {"of": "score", "tolerance": 0.1},
    "ask": [
        {"id": "score", "prompt": "How much better is {{ a }} than {{ b }}?"},
        {"id": "other", "like": "score", "reword": {"swap": ["a", "b"]}, "change": {"scale": -1}},
        {"id": "sum", "prompt": "{{ a }} and {{ b }}?", "like": "score"},
    ],
}


def orders(recipe: dict[str, Any], said: list[dict[str, Any]], truth: Any) -> Any:
    table = [{"no": str(i), "truth": truth, "a": "x", "b": "y", "c": "z"} for i in range(len(said))]
    dataset = rrf.dataset(recipe_from_document(recipe), table)
    answers = [
        {"id": str(i), "node": node, "text": str(text)} for i, row in enumerate(said) for node, text in row.items()
    ]
    nodes = tuple(dict.fromkeys(dataset.recipe.nodes.values()))
    with RecordedAnswers(dataset, answers) as recorded:
        sheet = read_sheet(dataset, recorded, nodes)
    rule = GoldRule.of(dataset.recipe.data, tolerance=sheet.rows[0].template.problem.delta)
    truths = [read_truth(row.item.gold, row.parser, rule) for row in sheet.rows]
    found = measured(sheet, [truth for truth in truths if truth is not None], dataset.recipe, 0.95)
    json.dumps(found)
    return found


def test_permuted_options_are_counted_model_by_model() -> None:
    steady = {"which@other": "A", "turned@other": "C"}
    said = [{"which": "A", "turned": "A", **steady} for _ in range(8)]  # always what stands first
    said += [{"which": "A", "turned": "C", **steady}, {"which": "A"}]
    found = orders(CHOICES, said, "A")
    mini, other = found["orders"]
    assert (mini["nodes"], mini["both_read"], mini["changed"], mini["ways"]) == (
        ["which", "turned"],
        9,
        8,
        {"earlier": 8},
    )
    assert mini["p"] == pytest.approx(2 / 2**8)
    assert mini["biased"]
    assert [(place["place"], place["judged"], place["right"]) for place in mini["places"]] == [(0, 9, 9), (2, 9, 1)]
    assert (other["nodes"], other["changed"], other["biased"]) == (["which@other", "turned@other"], 0, False)
    (words,) = [one for one in found["proposals"] if "changed with the order" in one]
    assert "in 8 of 9 items, 8 times to what stood earlier" in words


def test_an_option_that_stays_in_its_place_is_counted_once_an_item() -> None:
    said = [{"which": "B", "turned": "B"} for _ in range(6)] + [{"which": "A", "turned": "B"}]
    mini = orders(CHOICES, said, "B")["orders"][0]
    assert [(place["place"], place["judged"], place["right"]) for place in mini["places"]] == [(1, 7, 6)]


def test_swapped_columns_of_a_score() -> None:
    said = [{"score": 3, "other": 1, "sum": 3} for _ in range(7)] + [{"score": 2, "other": -2}]
    (entry,) = orders(SCORES, said, 1.0)["orders"]
    assert (entry["nodes"], entry["both_read"], entry["changed"]) == (["score", "other"], 8, 7)
    assert (entry["ways"], entry["places"]) == ({"higher": 7}, [])
    assert entry["biased"]


def test_noise_without_a_favourite_place_is_rarely_called_one() -> None:
    """Answers that ignore the places: the sign test is exact, so no more than one in twenty is
    called biased.
    """
    rng = random.Random(5)
    biased = 0
    for _ in range(60):
        said = []
        for _ in range(30):
            first, second = rng.choices("xyz", weights=(6, 3, 1), k=2)  # options, whatever their place
            said.append({"which": "ABC"["xyz".index(first)], "turned": "ABC"["zyx".index(second)]})
        biased += orders(CHOICES, said, "A")["orders"][0]["biased"]
    assert biased <= 6


def test_what_declares_no_other_order_is_not_measured() -> None:
    plain = {**SCORES, "ask": [SCORES["ask"][0], {"id": "sum", "prompt": "{{ a }} {{ b }}?", "like": "score"}]}  # type: ignore[index]
    found = orders(plain, [{"score": 1, "sum": 2}], 1.0)
    assert found["orders"] == []
