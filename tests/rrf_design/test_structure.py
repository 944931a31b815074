"""What equal items share, and what tells them apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design.structure import share


def item(**changes: Any) -> rrf.Problem:
    content: dict[str, Any] = {
        "k": 1,
        "nodes": [{"id": "a"}, {"id": "b"}, {"id": "c", "cost": 0.5}],
        "relations": [
            {"id": "ab", "tail": "a", "head": "b"},
            {"id": "bc", "tail": "b", "head": "c"},
            {"id": "ac", "tail": "a", "head": "c", "transport": {"scale": 0.0}, "cost": 1.0},
        ],
        "anchors": [{"id": "x", "node": "a", "value": 1.0, "cost": 2.0}],
    }
    return rrf.Problem(**{**content, **changes})


def test_texts_values_and_offsets_are_an_items_own() -> None:
    other = item(
        name="other",
        nodes=[{"id": "a", "prompt": "?"}, {"id": "b"}, {"id": "c", "cost": 0.5}],
        anchors=[{"id": "x", "node": "a", "value": 7.0, "cost": 2.0, "source": "person"}],
    )
    first, second = share([item(), other])
    assert first is second
    assert first.holding().margin().solved is second.holding().margin().solved


@pytest.mark.parametrize(
    "changes",
    [
        {"k": 2},
        {"target": 0.5},
        {"epsilon": 0.1},
        {"anchors": [{"id": "x", "node": "a", "value": 1.0, "cost": 3.0}]},
        {"anchors": [{"id": "x", "node": "b", "value": 1.0, "cost": 2.0}]},
        {"rules": [{"id": "r", "blocks": ["x"], "at_most": 0}]},
    ],
)
def test_what_changes_rows_prices_rules_or_goals_is_another_structure(changes: dict[str, Any]) -> None:
    assert item().structure.key != item(**changes).structure.key


def test_a_block_touches_every_node_it_names_also_with_coefficient_zero() -> None:
    structure = item().structure
    assert structure.touches.toarray().tolist() == [[1, 1, 0], [0, 1, 1], [1, 0, 1], [1, 0, 0]]


def test_holding_a_block_does_not_ask_its_nodes_and_selecting_it_does() -> None:
    structure = item().structure
    held = structure.holding(["ac"])
    assert held.opened == {"a", "b"}
    assert held.operator.block_ids == ("ab",)
    chosen = structure.selecting(["ac"])
    assert chosen.opened == {"a", "b", "c"}
    assert chosen.operator.block_ids == ("ab", "bc", "ac")
    failed = structure.holding(["c", "x"], ["a"])
    assert (failed.opened, failed.operator.block_ids) == ({"a", "b", "c"}, ("ab", "bc", "x"))
    assert failed.margin().unread == ("a",)
    assert structure.holding(["c", "x"], ["x"]).operator.block_ids == ("ab", "bc")


def test_energies_are_those_of_every_block_and_rounding_is_no_sight() -> None:
    structure = item().structure
    seen = structure.energies({"a": (0.6,), "b": (0.6 + 1e-17,)})
    assert seen["ab"] == 0.0
    assert seen["x"] == pytest.approx(0.36)
    assert seen["bc"] == pytest.approx(0.36)
    assert set(seen) == {"ab", "bc", "ac", "x"}


def test_arrays_can_not_be_changed() -> None:
    structure = item().structure
    for array in (structure.given, structure.owned, structure.operator.target):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    assert isinstance(structure.given, np.ndarray)


def test_shared_items_ask_one_structure_for_their_designs() -> None:
    """Equal to what each would have found by itself."""
    nodes = [{"id": "a"}, {"id": "b"}]
    listed = [
        rrf.Problem(nodes=nodes, relations=[{"id": "r", "tail": "a", "head": "b", "offset": float(i), "cost": 1.0}])
        for i in range(3)
    ]
    alone = [problem.operator("all") for problem in listed]
    one, *others = share(listed)
    assert all(problem.structure is one for problem in listed)
    assert others == [one, one]
    assert listed[0].design("all") is listed[2].design("all")
    assert listed[0].design() is not listed[0].design("all")
    for problem, before in zip(listed, alone, strict=True):
        now = problem.operator("all")
        assert (now.matrix != before.matrix).nnz == 0
        assert now.target.tolist() == before.target.tolist()
