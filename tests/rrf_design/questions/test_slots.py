from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rrf_design.errors import InputError
from rrf_design.questions.recipe import load_recipe, recipe_from_document
from rrf_design.questions.slots import SlotKind, find_slots, read_exactly


def test_kinds_follow_from_places(invoices: Path) -> None:
    slots = find_slots(load_recipe(invoices / "rrf.toml"))
    kinds = {(slot.where.split(",")[0], slot.kind, slot.own) for slot in slots}
    assert ("ask 'total' prompt", SlotKind.TEXT, True) in kinds
    assert ("ask 'cents' change", SlotKind.NUMBER, True) in kinds  # an offset: the same structure
    assert ("check 'clerk' cost", SlotKind.NUMBER, False) in kinds
    assert ("check 'clerk' by", SlotKind.TEXT, True) in kinds
    assert ("check 'ledger' by", SlotKind.VALUE, True) in kinds
    assert ("check 'ledger' when", SlotKind.WHEN, False) in kinds
    assert ("check 'sum' by", SlotKind.EXPRESSION, True) in kinds


@pytest.mark.parametrize("key", ["family", "requires", "node", "id"])
def test_names_are_the_same_for_every_row(key: str) -> None:
    anchor: dict[str, Any] = {"id": "c", "node": "n", "cost": 1.0, key: "{{ x }}"}
    with pytest.raises(InputError, match=f"{key} is the same for every row"):
        recipe_from_document({"data": {}, "nodes": [{"id": "n"}], "anchors": [anchor]})


def test_a_scale_decides_the_structure_and_a_shift_does_not() -> None:
    asks = [
        {"id": "a", "prompt": "?"},
        {"id": "b", "prompt": "?", "like": "a", "change": {"scale": "{{ s }}", "shift": "{{ t }}"}},
    ]
    slots = find_slots(recipe_from_document({"answer": {"of": "a"}, "ask": asks}))
    assert {(slot.template.column, slot.own) for slot in slots} == {("s", False), ("t", True)}


def test_whole_numbers_of_an_expression_stay_exact() -> None:
    assert read_exactly("n", "123456789012345678901234567890") == 123456789012345678901234567890
    assert read_exactly("n", "1.5") == 1.5
    with pytest.raises(InputError, match="column 'n' is 'x', not a number"):
        read_exactly("n", "x")
