"""Several fields of one document: what [[answer]], [[ask]] and [[equation]] compile to."""

from __future__ import annotations

from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.derive import field_problems
from rrf_design.errors import InputError
from rrf_design.questions import dumps_recipe
from rrf_design.questions.recipe import Recipe, recipe_from_document

TOTAL = {"of": "a.total", "tolerance": 0.005}
NET, TAX = {"of": "a.net", "tolerance": 0.005}, {"of": "a.tax", "tolerance": 0.005}
DATE, VENDOR = {"of": "a.date", "parse": "date"}, {"of": "a.vendor"}
ASKS = [
    {"id": "a", "prompt": "{{ text }} as JSON", "cost": 2.0},
    {"id": "b", "like": "a", "prompt": "JSON of {{ text }}"},
    {"id": "c", "like": "a", "prompt": "Fields of {{ text }}", "cost": 1.0, "buy": "if needed"},
]


def recipe(*answers: dict[str, Any], asks: Any = ASKS, **more: Any) -> Recipe:
    return recipe_from_document({"answer": list(answers), "ask": asks, **more})


def entry(made: Recipe, section: str, name: str) -> dict[str, Any]:
    return next(dict(one) for one in made.long[section] if one["id"] == name)


def test_the_fields_of_one_answer_are_read_from_it_and_fail_together() -> None:
    made = recipe(TOTAL, DATE, VENDOR)
    assert [node["id"] for node in made.long["nodes"][:3]] == ["a.total", "a.date", "a.vendor"]
    assert {node["unit"] for node in made.long["nodes"][:3]} == {"a"}
    first, second = made.long["nodes"][:2]
    assert (first["price"], first["prompt"]) == (2.0, "{{ text }} as JSON")
    assert second["read_from"] == "a.total"
    assert not {"prompt", "price"} & second.keys()
    assert entry(made, "nodes", "c.total")["cost"] == 1.0
    assert second["parser"] == {"name": "json", "field": "date", "of": "date"}
    assert entry(made, "nodes", "a.vendor")["parser"]["of"] == "label"


def test_each_field_is_counted_in_its_own_tolerance() -> None:
    made = recipe(TOTAL, {"of": "a.weight", "tolerance": 0.5}, VENDOR)
    assert entry(made, "nodes", "b.total")["metric"] == 40_000.0
    assert entry(made, "relations", "b.weight like a.weight")["weight"] == 4.0
    whole = rrf.dataset(made, [{"text": "x"}])["1"]
    assert whole.delta == 1.0
    total, weight, vendor = field_problems(whole)
    assert (total.delta, weight.delta, vendor.delta) == (0.005, 0.5, None)
    assert {node.metric for node in (*total.nodes, *weight.nodes)} == {None}
    assert {block.weight for block in (*total.blocks, *weight.blocks)} == {1.0}
    assert whole.margin().value == pytest.approx(min(one.margin().value for one in (total, weight, vendor)))


def test_models_and_repeats_have_their_fields_too() -> None:
    asks = [{"id": "a", "prompt": "{{ text }}", "model": ["m", "n"], "repeat": 2}]
    models = {"m": {"use": "embedded"}, "n": {"use": "embedded"}}
    made = recipe(TOTAL, DATE, asks=asks, models=models)
    assert made.calls["a", "n", 2] == ("a@n#2.total", "a@n#2.date")
    assert made.nodes["a.date", "n", 2] == "a@n#2.date"
    assert {node["unit"] for node in made.long["nodes"]} == {"a", "a#2", "a@n", "a@n#2"}


def test_an_equation_between_answers_is_a_row_and_within_one_answer_a_veto() -> None:
    between = {"sum": ["b.net", "b.tax"], "equals": "a.total"}
    within = {"sum": ["a.net", "a.tax"], "equals": "a.total", "coefficients": [1.0, 1.0]}
    made = recipe(TOTAL, NET, TAX, equation=[between, within])
    row = entry(made, "relations", "b.net + b.tax = a.total")
    assert row["rows"] == {"b.net": [[1.0]], "b.tax": [[1.0]], "a.total": [[-1.0]]}
    assert [one["id"] for one in made.long["relations"] if "rows" in one] == [row["id"]]
    veto = entry(made, "nodes", "b.tax")["veto"]
    assert veto == [{"sum": ["b.net", "b.tax"], "equals": "b.total", "within": 0.015, "coefficients": [1.0, 1.0]}]
    assert len(entry(made, "nodes", "a.total")["veto"]) == 1


def test_a_number_that_is_only_part_of_an_equation_need_not_be_delivered() -> None:
    asks = [{"id": "a", "prompt": "?", "parse": {"json": ["total", "net", "tax"]}}, *ASKS[1:]]
    made = recipe(TOTAL, VENDOR | {"of": "a.net", "tolerance": 0.1}, asks=asks, equation=[
        {"sum": ["b.net", "b.tax"], "equals": "a.total"}
    ])  # fmt: skip
    assert made.long["problem"]["deliver"] == ["a.total", "a.net"]
    assert entry(made, "nodes", "a.tax")["tolerance"] == 0.005


def test_a_field_may_have_a_smaller_k_and_a_check_of_its_own() -> None:
    clerk = {"id": "clerk", "of": "a.date", "by": {"person": "Date?"}, "cost": 3.0}
    made = recipe(TOTAL | {"k": 2}, DATE, check=[clerk], asks=[{**ASKS[0], "repeat": 5}])
    assert made.long["problem"]["k"] == 2
    total, date = field_problems(rrf.dataset(made, [{"text": "x"}])["1"])
    assert (total.k, date.k) == (2, 1)
    assert [anchor.id for anchor in (*date.anchors, *total.anchors)] == ["clerk"]


def test_an_ask_of_one_value_is_like_one_field() -> None:
    asks = [*ASKS[:1], {"id": "cents", "like": "a.total", "change": {"scale": 100}, "prompt": "Cents? {{ text }}"}]
    made = recipe(TOTAL, DATE, asks=asks)
    assert entry(made, "relations", "cents like a.total")["transport"] == {"scale": 100}
    assert entry(made, "nodes", "cents")["tolerance"] == 0.005


def test_what_compile_prints_is_read_as_the_same_recipe() -> None:
    import tomllib

    made = recipe(TOTAL | {"gold": "truth"}, DATE, data={"id": "no"}, equation=[])
    again = recipe_from_document(tomllib.loads(dumps_recipe(made)))
    assert (again.digest, again.data.gold_columns) == (made.digest, ("truth",))


def test_no_question_may_see_the_truth_of_a_field() -> None:
    made = recipe(TOTAL | {"gold": "text"}, DATE)
    with pytest.raises(InputError, match="'text' is the gold column"):
        rrf.dataset(made, [{"text": "x"}])


def test_one_entry_means_what_one_answer_means() -> None:
    asks = [{"id": "total", "prompt": "{{ text }}?"}, {"id": "other", "like": "total", "prompt": "{{ text }}!"}]
    one = {"of": "total", "tolerance": 0.005}
    assert recipe(one, asks=asks).digest == recipe_from_document({"answer": one, "ask": asks}).digest


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answer": [TOTAL, {"of": "a.sum", "tolerance": 1.0}], "ask": [{**ASKS[0], "parse": {"json": ["total"]}}]}, "does not give 'sum'"),
        ({"answer": [TOTAL, {"of": "z.net"}]}, "of = 'z.net' is no ask"),
        ({"answer": [TOTAL, TOTAL]}, "a field stands there twice"),
        ({"answer": [TOTAL, DATE | {"tolerance": 1.0}]}, "read as a class, which has no tolerance"),
        ({"answer": [TOTAL, DATE | {"epsilon": 1.0}]}, "epsilon goes with one field"),
        ({"ask": [ASKS[0], {"id": "b", "like": "a", "prompt": "?", "parse": "decimal"}]}, 'like = "a.total"'),
        ({"ask": [ASKS[0], {"id": "b", "like": "a", "prompt": "?", "change": {"scale": 2}}]}, "change speaks of one value"),
        ({"ask": [ASKS[0], {"id": "b.x", "prompt": "?"}]}, "no dot can be in an id"),
        ({"check": [{"id": "p", "of": "a", "by": {"person": "?"}}]}, "gives several fields; say which: a.total, a.date"),
        ({"equation": [{"sum": ["a.date"], "equals": "b.total"}]}, "'a.date' is not one number"),
        ({"equation": [{"sum": ["b.nett"], "equals": "a.total"}]}, "is no ask and no field"),
        ({"equation": [{"sum": ["a.total"], "equals": "a.total"}]}, "names a field twice"),
        ({"equation": [{"sum": ["b.total"], "equals": "a.total", "coefficients": [1.0, 2.0]}]}, "2 coefficients"),
    ],
)  # fmt: skip
def test_a_fault_is_one_line_with_the_entry_and_the_remedy(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        recipe_from_document({"answer": [TOTAL, DATE], "ask": ASKS[:2], **change})
    assert "\n" not in str(caught.value)


def test_the_acceptable_error_of_a_whole_problem_is_that_of_each_of_its_fields() -> None:
    nodes = [{"id": name, "prompt": "{{ t }}", "parser": "decimal"} for name in "abc"]
    same = [{"id": f"{x}{y}", "tail": x, "head": y} for x, y in ("ab", "ac", "bc")]
    problem: dict[str, Any] = {"k": 1, "epsilon": 0.1, "deliver": ["a", "b"]}
    table, said = [{"no": "1", "t": "x"}], [{"id": "1", "node": name, "value": 7.0} for name in "abc"]
    for delta, verdict in ((0.02, "incomplete"), (1.0, "consistent")):
        recipe = {"data": {"id": "no"}, "problem": {**problem, "delta": delta}, "nodes": nodes, "relations": same}
        made = rrf.dataset(recipe, table)
        assert [one.delta for one in field_problems(made["1"])] == [delta, delta]
        (row,) = rrf.repair(made, said).rows()
        assert [value.verdict for value in row.values] == [verdict, verdict]
