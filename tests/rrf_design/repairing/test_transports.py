"""Moves along relations and charts of connected parts."""

from __future__ import annotations

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design.repairing.fields import make_task
from rrf_design.repairing.transports import charts, joint_moves, moves


@pytest.fixture
def task():
    problem = rrf.Problem(
        nodes=[{"id": "a", "dim": 2}, {"id": "b", "dim": 2}, {"id": "c", "dim": 1}, {"id": "d", "dim": 2}],
        relations=[
            {
                "id": "ab",
                "tail": "a",
                "head": "b",
                "transport": {"matrix": [[2.0, 1.0], [0.0, 1.0]]},
                "offset": [1.0, 0.0],
            },
            {"id": "bc", "tail": "b", "head": "c", "transport": {"select": [0]}},
            {"id": "bd", "tail": "d", "head": "b", "transport": {"scale": -1.0}},
        ],
    )
    valid = {"a": (1.0, 2.0), "b": (5.0, 2.0), "c": 5.0, "d": (-5.0, -2.0)}
    return make_task(problem, problem.operator(), valid)[0]


def test_moves_carry_valid_answers_to_valid_answers(task):
    found = moves(task)
    assert len(found) == 5  # a projection has no way back
    for move in found:
        np.testing.assert_allclose(move(np.array(task.values[move.source])), task.values[move.target], atol=1e-12)


def test_charts_go_there_and_back(task):
    parts = charts(task)
    assert [set(part.maps) for part in parts] == [{"a", "b", "d"}, {"c"}]
    for node in ("a", "b", "d"):
        canonical = parts[0].canonical(node, np.array(task.values[node]))
        np.testing.assert_allclose(canonical, task.values["a"], atol=1e-12)
        np.testing.assert_allclose(parts[0].maps[node](canonical), task.values[node], atol=1e-12)


def test_relations_among_several_are_solved_for_each_of_their_nodes():
    problem = rrf.Problem(
        nodes=[{"id": "net"}, {"id": "tax"}, {"id": "total"}, {"id": "parts", "dim": 2}],
        relations=[
            {"id": "sum", "sum": ["net", "tax"], "head": "total", "offset": 1.0},
            {"id": "rate", "rows": {"net": [[0.5]], "tax": [[-2.0]]}, "offset": 3.0},
            {"id": "whole", "sum": ["parts"], "head": "total"},
        ],
    )
    valid = {"net": 14.0, "tax": 2.0, "total": 17.0, "parts": (10.0, 7.0)}
    task = make_task(problem, problem.operator(), valid)[0]
    found = joint_moves(task)
    assert [move.target for move in found] == [
        "net",
        "tax",
        "total",
        "net",
        "tax",
        "total",
    ]  # parts can't be told from their sum
    for move in found:
        said = [np.array(task.values[name]) for name in move.sources]
        np.testing.assert_allclose(move(said), task.values[move.target], atol=1e-12)
    assert moves(task) == ()
