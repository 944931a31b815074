from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rrf_design.errors import InputError
from rrf_design.questions.recipe import Recipe, load_recipe, recipe_from_document


def entry(recipe: Recipe, section: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in recipe.long[section] if one["id"] == name)
    return found


def short(answer: dict[str, Any], *asks: dict[str, Any], check: list[dict[str, Any]] | None = None) -> Recipe:
    listed = [{"prompt": "?", **ask} for ask in asks]
    return recipe_from_document({"answer": answer, "ask": listed, "check": check or []})


def test_one_node_per_model_and_repeat(invoices: Path) -> None:
    recipe = load_recipe(invoices / "rrf.toml")
    names = [node["id"] for node in recipe.long["nodes"]]
    assert names == ["total", "reworded", "reworded#2", "reworded@other", "reworded@other#2", "cents", "parts"]
    assert recipe.nodes["reworded", "other", 2] == "reworded@other#2"
    assert recipe.nodes["reworded", None, 2] == "reworded#2"
    assert recipe.nodes["total", None, 1] == "total"
    assert entry(recipe, "nodes", "reworded@other")["model"] == "other"


def test_relations_anchors_and_prices(invoices: Path) -> None:
    recipe = load_recipe(invoices / "rrf.toml")
    assert recipe.long["problem"] == {"k": 1, "deliver": ["total"], "delta": 0.005, "wrong_checks": 1}
    assert entry(recipe, "relations", "reworded like total") == {
        "id": "reworded like total",
        "tail": "total",
        "head": "reworded",
    }
    assert entry(recipe, "relations", "reworded@other#2 like reworded")["tail"] == "reworded"
    cents = entry(recipe, "relations", "cents like total")
    assert (cents["transport"], cents["offset"]) == ({"scale": 100}, "{{ fee }}")
    assert entry(recipe, "nodes", "cents")["cost"] == 0.01
    parts = entry(recipe, "relations", "parts sums to total")
    assert (parts["sum"], parts["head"]) == (["parts"], "total")
    assert entry(recipe, "anchors", "ledger")["trusted"] is False
    assert entry(recipe, "anchors", "clerk")["source"] == {"person": "Gross total of invoice {{ no }}"}


def test_every_node_and_block_has_its_way_back(invoices: Path) -> None:
    recipe = load_recipe(invoices / "rrf.toml")
    lines = (invoices / "rrf.toml").read_text().splitlines()
    for section in ("nodes", "relations", "anchors"):
        for one in recipe.long[section]:
            origin = recipe.origins[one["id"]]
            line = recipe.lines[origin.section, origin.place, "id"]
            assert lines[line - 1] == f'id = "{origin.id}"'
    assert (
        recipe.where("clerk", "by") == f"check 'clerk' by, line {lines.index(chr(91) * 2 + 'check]]') + 4} of rrf.toml"
    )


@pytest.mark.parametrize(
    ("together", "units"),
    [
        ("ask", [None, None, None, None]),
        ("wording", ["a", "b", "b", "c"]),
        ("model", ["m", "m", "m", "n"]),
    ],
)
def test_what_fails_together(together: str, units: list[str | None]) -> None:
    document = {
        "models": {"m": "embedded", "n": "embedded"},
        "answer": {"of": "a", "fails_together": together},
        "ask": [
            {"id": "a", "prompt": "?"},
            {"id": "b", "prompt": "?", "like": "a", "model": "m", "repeat": 2},
            {"id": "c", "prompt": "?", "model": "n"},
        ],
    }
    assert [node.get("unit") for node in recipe_from_document(document).long["nodes"]] == units


def test_choices_are_read_by_every_ask_and_need_no_tolerance() -> None:
    recipe = short(
        {"of": "a", "choices": ["A", "B"]},
        {"id": "a"},
        {"id": "b", "like": "a", "parse": {"name": "choice", "options": ["B", "A"]}},
    )
    assert recipe.long["problem"]["delta"] == 0.5
    assert entry(recipe, "nodes", "a")["parser"] == {"name": "choice", "options": ["A", "B"]}
    assert entry(recipe, "nodes", "a")["dim"] == 2
    assert entry(recipe, "nodes", "b")["parser"]["options"] == ["B", "A"]


def test_what_is_always_bought_has_a_price_and_nothing_to_plan() -> None:
    recipe = short({"of": "a"}, {"id": "a", "cost": 0.2}, {"id": "b", "like": "a", "cost": 0.3, "buy": "if needed"})
    assert entry(recipe, "nodes", "a")["price"] == 0.2
    assert "cost" not in entry(recipe, "nodes", "a")
    assert entry(recipe, "nodes", "b")["cost"] == 0.3


def test_an_ask_without_a_parser_reads_decimals() -> None:
    assert entry(short({"of": "a"}, {"id": "a"}), "nodes", "a")["parser"] == "decimal"


def test_parts_whose_number_a_row_decides_can_not_be_summed() -> None:
    with pytest.raises(InputError, match="the same for every row"):
        short({"of": "a"}, {"id": "a"}, {"id": "p", "sums_to": "a", "parse": {"name": "code", "tests": "{{ t }}"}})


@pytest.mark.parametrize(
    "by",
    [
        {"person": "?"},
        {"expression": "a + b"},
        {"tests": [[1]], "expected": [2]},
        {"verifier": "scripted:x", "prompt": "{{ answer }}?"},
        {"command": ["true"]},
    ],
)
def test_every_kind_of_check_is_a_source(by: dict[str, Any]) -> None:
    recipe = short({"of": "a"}, {"id": "a"}, check=[{"id": "c", "of": "a", "by": by, "cost": 1.0, "sigma": 2.0}])
    assert entry(recipe, "anchors", "c") == {"id": "c", "node": "a", "source": by, "cost": 1.0, "sigma": 2.0}


def test_a_judge_that_is_wrong_at_a_rate_says_so() -> None:
    check = {"id": "c", "of": "a", "by": {"value": 7.0}, "rate": 0.1}
    recipe = short({"of": "a", "tolerance": 0.1}, {"id": "a"}, check=[check])
    assert entry(recipe, "anchors", "c") == {"id": "c", "node": "a", "value": 7.0, "rate": 0.1}
    with pytest.raises(InputError, match="rate"):
        short({"of": "a"}, {"id": "a"}, check=[check | {"rate": 1.0}])
