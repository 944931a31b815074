"""Nodes: plain checked data that never changes, and tables that both file formats can hold."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from pydantic import ValidationError

from rrf_design import InputError, Node, Problem
from rrf_design.field import DEEPEST, MOST_COORDINATES


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


def test_defaults() -> None:
    node = Node(id="a")
    assert (node.dim, node.cost, node.metric, node.prompt) == (1, None, None, None)


def test_a_node_never_changes() -> None:
    with pytest.raises(ValidationError):
        Node(id="a").dim = 2  # type: ignore[misc]


def test_whole_numbers_stand_for_floats() -> None:
    node = Node(id="a", cost=1, metric=2)
    assert (node.cost, node.metric) == (1.0, 2.0)
    assert isinstance(node.cost, float)
    assert isinstance(node.metric, float)


@pytest.mark.parametrize("table", [{}, {"type": "number", "of": [1, 2.5, True, "é\n", {"x": []}]}, deep(DEEPEST)])
def test_tables_of_plain_data(table: dict[str, Any]) -> None:
    assert Node(id="a", parser=table, variables=table).parser == table


def test_tuples_in_tables_become_lists_as_a_file_would_give_them() -> None:
    assert Node(id="a", variables={"x": (1, (2,))}).variables == {"x": [1, [2]]}


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"variables": {"x": None}}, "leave the key out"),
        ({"variables": {"x": float("nan")}}, "not nan"),
        ({"variables": {"x": float("inf")}}, "not inf"),
        ({"variables": {"x": 2**63}}, "only text, finite numbers"),
        ({"variables": {"x": datetime.date(2020, 1, 1)}}, "only text"),
        ({"variables": {"x": "\ud800"}}, "valid Unicode"),
        ({"variables": {"\udfff": 1}}, "valid Unicode"),
        ({"variables": {"x": {3: 1}}}, "keys must be text, not 3"),
        ({"variables": deep(DEEPEST + 2)}, f"nested more than {DEEPEST} deep"),
        ({"parser": {"x": float("nan")}}, "parser: only text"),
        ({"parser": 3}, "parser must be text"),
        ({"variables": "x"}, "variables must be a table"),
        ({"dim": 0}, "dim must be greater than or equal to 1, not 0"),
        ({"dim": MOST_COORDINATES + 1}, f"dim must be less than or equal to {MOST_COORDINATES}"),
        ({"dim": True}, "dim must be a whole number, not True"),
        ({"dim": 1.0}, "dim must be a whole number, not 1.0"),
        ({"dim": "1"}, "dim must be a whole number"),
        ({"cost": -0.5}, "cost must be greater than or equal to 0, not -0.5"),
        ({"cost": True}, "cost must be a number, not True"),
        ({"cost": float("nan")}, "cost must be a finite number, not nan"),
        ({"cost": 10**400}, "cost must be a number"),
        ({"metric": 0.0}, "metric must be greater than 0"),
        ({"metric": [[1.0, 0.0]]}, "metric must be 1×1"),
        ({"metric": [[-1.0]]}, "metric is not positive definite"),
        ({"dim": 2, "metric": [[1.0, 0.5], [0.4, 1.0]]}, "metric is not symmetric"),
        ({"dim": 2, "metric": [[1.0, 2.0], [2.0, 1.0]]}, "metric is not positive definite"),
        ({"dim": 2, "metric": [[1.0, float("nan")], [2.0, 1.0]]}, r"metric[0][1] must be a finite number"),
        ({"prompt": ""}, "prompt must be non-empty text"),
        ({"max_tokens": 0}, "max_tokens must be greater"),
        ({"dims": 2}, "unknown key 'dims'; did you mean 'dim'?"),
    ],
)
def test_what_a_node_refuses(bad: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        Problem(nodes=[{"id": "ok"}, {"id": "wrong", **bad}])
    assert str(caught.value).startswith("node 'wrong': ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
