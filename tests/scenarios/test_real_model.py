from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from scenarios.kit.designs import DESIGNS, prepared, problem, recovered_placements
from scenarios.real_model import _answer, _empty, _weights
from scenarios.real_model.inference import margins, question, strata
from scenarios.real_model.natural import variants


def _document(task: str, *right: bool) -> dict[str, object]:
    return {"task": task, "marks": [{"correct": each} for each in right]}


def test_an_empty_stratum_says_why() -> None:
    documents = [_document("mathematics", False, False), _document("code", True, True)]
    found = _empty(documents, [])
    assert found["mathematics"] == "0 of 1 mathematics items have a right answer"
    assert found["code"].startswith("1 of 1 code items have a right answer, and none of these a wrong one")
    assert _empty(documents, [{"task": "code"}]).keys() == {"mathematics"}


def test_the_answer_begins_with_yes_only_where_every_positive_margin_repairs() -> None:
    def rows(positive: bool, zero: bool) -> list[dict[str, object]]:
        return [
            {"task": "ours", "gamma_1": 1.0, "exact": positive},
            {"task": "ours", "gamma_1": 1.0, "exact": True},
            {"task": "ours", "gamma_1": 0.0, "exact": zero},
            {"task": "ours", "gamma_1": 0.0, "exact": False},
        ]

    told = {(p, z): _answer([], rows(p, z), "m").split(":")[0] for p in (True, False) for z in (True, False)}
    assert told == {(True, True): "Yes", (True, False): "Yes", (False, True): "No", (False, False): "Mostly"}
    assert _answer([], [], "m").startswith("Nothing can be said")


def test_a_page_names_what_ran_the_weights() -> None:
    assert _weights({}) == ""
    assert _weights({"sha256": "ab", "runtime": "r 1"}) == " (SHA-256 ab, r 1)"
    assert _weights({"weights": "sha256 cd", "runtime": "t 2", "dtype": "float32"}) == " (sha256 cd, t 2, float32)"


def document(*right: bool) -> dict[str, Any]:
    candidates = [
        {"role": "node", "number": n, "text": "", "status": "parsed", "strict": True, "value": [1.0] if n else None}
        for n in range(4)
    ]
    return {"task": "ours", "candidates": candidates, "marks": [{"correct": ok} for ok in right]}


def test_variants_by_hand() -> None:
    table = variants([document(False, True, True, True), document(False, False, False, True)])
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    assert [row["right"] for row in rows] == [0.0, 50.0, 50.0, 100.0]
    assert [row["readable"] for row in rows] == [0.0, 100.0, 100.0, 100.0]
    assert [row["only_wrong_here"] for row in rows] == [1, 0, 0, 0]
    assert [row["only_right_here"] for row in rows] == [0, 0, 0, 1]


def test_margins_that_differ_by_rounding_are_tied() -> None:
    rows = [{"gamma_1": value} for value in (1.414213562373095, 1.4142135623730951, 0.0, 1.4142)]
    found = margins(rows)
    assert found[0] == found[1]
    assert len(set(found)) == 3


def test_items_of_one_function_are_one_question() -> None:
    rows = [
        {"stratum": "code, a", "task": "code", "family": "digit_sum", "item": "code-3"},
        {"stratum": "code, a", "task": "code", "family": "digit_sum", "item": "code-19"},
        {"stratum": "code, b", "task": "code", "family": "digit_sum", "item": "code-3"},
        {"stratum": "mathematics, a", "task": "mathematics", "family": "squares", "item": "math-1"},
        {"stratum": "mathematics, a", "task": "mathematics", "family": "squares", "item": "math-9"},
    ]
    assert len({question(row) for row in rows}) == 4


def test_intervals_do_not_shrink_when_a_question_is_asked_again() -> None:
    """Copies of a question's rows add rows and items, and leave the interval as it is."""
    rows = [
        {
            "stratum": "code, a",
            "task": "code",
            "family": f"{family}",
            "item": f"{family}",
            "gamma_1": float(place),
            "error": float((place * (family + 1)) % 4),
        }
        for family in range(6)
        for place in range(4)
    ]
    again = [{**row, "item": f"{row['item']} again"} for row in rows]
    once, twice = (strata(own, draws=50, seed=0).rows[0] for own in (rows, rows + again))
    columns = strata(rows, draws=2, seed=0).columns
    low, high, items, questions = (columns.index(name) for name in ("low", "high", "items", "questions"))
    assert (once[low], once[high], once[questions]) == (twice[low], twice[high], twice[questions])
    assert (once[items], twice[items]) == (6, 12)


# Closed forms: principal 2x2 blocks of the anchored Laplacians.
EXACT = {
    "spanning_tree": math.sqrt(2 - math.sqrt(2)),
    "typed_complete": math.sqrt(2),
    "tree_plus_anchor": math.sqrt((5 - math.sqrt(13)) / 2),
    "triangle_anchor_isolate": 1.0,
    "complete_plus_anchor": math.sqrt(2),
}


@pytest.mark.parametrize("dim", [1, 8])
@pytest.mark.parametrize("design", DESIGNS, ids=lambda d: d.name)
def test_margins_are_the_published_and_the_closed_ones(design, dim: int) -> None:  # type: ignore[no-untyped-def]
    gamma = prepared(design.name, dim).gamma
    assert gamma == pytest.approx(EXACT.get(design.name, 0.0), abs=1e-9)
    assert round(gamma, 3) == design.published


@pytest.mark.parametrize(
    ("name", "missed"),
    [
        ("one_relation", {1, 2, 3}),
        ("paired_relations", {1, 3}),
        ("three_node_chain", {3}),
        ("triangle_plus_isolate", {3}),
        ("triangle_anchor_component", {3}),
        ("spanning_tree", set()),
        ("typed_complete", set()),
        ("tree_plus_anchor", set()),
        ("triangle_anchor_isolate", set()),
        ("complete_plus_anchor", set()),
    ],
)
def test_which_placements_a_design_recovers(name: str, missed: set[int]) -> None:
    for dim in (1, 8):
        errors = recovered_placements(name, dim)
        assert {node for node, error in enumerate(errors) if error > 1e-9} == missed


def test_weights_and_anchor_values_reach_the_problem() -> None:
    design = DESIGNS[6]
    built = problem(design, dim=2, weights=[4.0, 4.0, 4.0], value=[3.0, 5.0])
    operator = built.operator()
    assert np.abs(operator.matrix.toarray()).max() == 2.0
    assert operator.target[-2:] == pytest.approx([3.0, 5.0])
    assert prepared("typed_complete", 1, 2).gamma == 0.0
