"""A problem is checked as a whole, and every fault is one line that names the entry."""

from __future__ import annotations

from typing import Any

import pytest

from rrf_design import InputError, Node, Problem, Relation

BASE: dict[str, Any] = {
    "nodes": [{"id": "a"}, {"id": "b"}, {"id": "later", "cost": 0.5}],
    "relations": [{"id": "ab", "tail": "a", "head": "b"}, {"id": "al", "tail": "a", "head": "later", "cost": 1.0}],
    "anchors": [{"id": "x", "node": "a"}, {"id": "y", "node": "b", "cost": 2.0}],
}


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"k": 0}, "[problem]: k must be greater than or equal to 1, not 0"),
        ({"k": -3}, "[problem]: k must be greater than or equal to 1, not -3"),
        ({"k": True}, "[problem]: k must be a whole number, not True"),
        ({"k": 1.0}, "[problem]: k must be a whole number, not 1.0"),
        ({"k": "1"}, "[problem]: k must be a whole number, not '1'"),
        ({"name": ""}, "[problem]: name must be non-empty text, not ''"),
        ({"budget": -1}, "[problem]: budget must be greater than or equal to 0, not -1"),
        ({"budget": float("nan")}, "[problem]: budget must be a finite number, not nan"),
        ({"target": float("inf")}, "[problem]: target must be a finite number, not inf"),
        ({"target": True}, "[problem]: target must be a number, not True"),
        ({"epsilon": -1e-300}, "[problem]: epsilon must be greater than or equal to 0, not -1e-300"),
        ({"sigma": 0}, "[problem]: sigma must be greater than 0, not 0"),
        ({"epsilon": 0.1, "sigma": 0.1}, "[problem]: give epsilon or sigma, not both"),
        ({"confidence": 1}, "[problem]: confidence must be less than 1, not 1"),
        ({"delta": 0.0}, "[problem]: delta must be greater than 0, not 0.0"),
        ({"amplitude": "big"}, "[problem]: amplitude must be a number, not 'big'"),
        ({"shrinkage": 1.1}, "[problem]: shrinkage must be less than or equal to 1, not 1.1"),
        ({"variance_floor": -1.0}, "[problem]: variance_floor must be greater than or equal to 0, not -1.0"),
        ({"budgett": 3}, "[problem]: unknown key 'budgett'; did you mean 'budget'?"),
        ({"nodes": []}, "nodes: the field is empty; declare at least one node"),
        ({"nodes": 3}, "nodes: must be a list, not 3"),
        ({"nodes": [3]}, "node number 1: must be a table, not 3"),
        ({"nodes": [{"dim": 2}]}, "node number 1: id is missing"),
        ({"nodes": [{"id": ""}]}, "node number 1: id must be non-empty text, not ''"),
        ({"nodes": ({"id": 3} for _ in "x")}, "node number 1: id must be text, not 3"),
        ({"nodes": [{"id": "a"}, {"id": "a"}]}, "node 'a': this id stands twice, first as node; ids must be unique"),
        ({"anchors": [{"id": "ab", "node": "a"}]}, "anchor 'ab': this id stands twice, first as relation"),
        ({"relations": [{"id": "b", "tail": "a", "head": "a"}]}, "relation 'b': this id stands twice, first as node"),
        ({"relations": [{"id": "r", "tail": "a"}]}, "relation 'r': head is missing"),
        ({"rules": [{"id": "q", "blocks": ["x"]}]}, "rule 'q': 'x' is not a block on sale"),
        ({"rules": [{"id": "q", "blocks": ["yy"]}]}, "rule 'q': 'yy' is not a block on sale; did you mean 'y'?"),
        ({"rules": [{"id": "q", "blocks": ["y"], "at_most": -1}]}, "rule 'q': at_most must be greater than or equal to 0"),
        ({"rules": [{"id": "x", "blocks": ["y"]}]}, "rule 'x': this id stands twice, first as anchor"),
        ({"tiers": [{"id": "t", "blocks": ["y"], "prices": []}]}, "tier 't': prices must be a non-empty list, not []"),
        ({"tiers": [{"id": "t", "blocks": ["y"], "prices": [-1]}]}, "tier 't': prices[0] must be greater than or equal"),
    ],
)  # fmt: skip
def test_every_fault_is_one_line_that_names_the_entry(bad: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        Problem(**{**BASE, **bad})
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_long_values_are_cut_in_messages() -> None:
    with pytest.raises(InputError) as caught:
        Problem(nodes=[{"id": "a", "dim": "9" * 10_000}])
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("select", "expected"),
    [
        (None, ()),
        ([], ()),
        ("y", ("y",)),
        (["y", "al", "later", "y"], ("later", "al", "y")),
        ({"y", "x", "a", "ab"}, ("y",)),
        ((name for name in ["al"]), ("al",)),
        ("all", ("later", "al", "y")),
    ],
)
def test_selections_come_in_file_order_without_what_is_owned(select: Any, expected: tuple[str, ...]) -> None:
    assert Problem(**BASE).resolve(select) == expected


@pytest.mark.parametrize(
    ("select", "message"),
    [
        ("z", "select: nothing here is called 'z'"),
        (["latter"], "select: nothing here is called 'latter'; did you mean 'later'?"),
        ([3], "select: give ids, not [3]"),
        ([None, "y"], "select: give ids"),
        (3, "select: give ids, not 3"),
    ],
)
def test_unknown_selections(select: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        Problem(**BASE).resolve(select)
    assert str(caught.value).startswith(message)


def test_the_shop_window() -> None:
    problem = Problem(**BASE)
    assert problem.on_sale == ("al", "y")
    assert [block.id for block in problem.blocks] == ["ab", "al", "x", "y"]
    assert problem.block_by_id["y"].cost == 2.0
    assert problem.node_by_id["later"].cost == 0.5


def test_entries_may_be_objects() -> None:
    made = Problem(nodes=[Node(id="a"), Node(id="b")], relations=[Relation(id="ab", tail="a", head="b")], k=2)
    assert made == Problem(nodes=BASE["nodes"][:2], relations=BASE["relations"][:1], k=2)


def test_a_problem_never_changes() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Problem(**BASE).k = 2  # type: ignore[misc]


def test_validating_by_pydantic_checks_as_much() -> None:
    with pytest.raises(ValueError, match="stands twice"):
        Problem.model_validate({"nodes": [{"id": "a"}, {"id": "a"}]})
