"""Problems with known best plans, shared by the tests of this folder."""

from __future__ import annotations

import pytest

import rrf_design as rrf


@pytest.fixture
def clique_and_pair():
    """The paper's counterexample to degree-based anchoring: a clique of ten, a pair, one anchor on
    sale at every node.
    """
    names = [f"c{i}" for i in range(10)] + ["p0", "p1"]
    edges = [(f"c{i}", f"c{j}") for i in range(10) for j in range(i + 1, 10)] + [("p0", "p1")]
    return rrf.Problem(
        name="clique and pair",
        nodes=[{"id": name} for name in names],
        relations=[{"id": f"{a}-{b}", "tail": a, "head": b} for a, b in edges],
        anchors=[{"id": f"a-{name}", "node": name, "cost": 1.0} for name in names],
    )


@pytest.fixture
def complementary():
    """The paper's complementary anchors: one two-dimensional node, two anchors that see one
    coordinate each.
    """
    return rrf.Problem(
        name="complementary",
        nodes=[{"id": "u", "dim": 2}, {"id": "v", "dim": 2}],
        anchors=[
            {"id": "first", "node": "u", "rows": [[1.0, 0.0]], "cost": 1.0},
            {"id": "second", "node": "u", "rows": [[0.0, 1.0]], "cost": 1.0},
            {"id": "whole", "node": "v"},
        ],
    )


@pytest.fixture
def pairs():
    """Six unanchored pairs: for k = 1 one anchor per pair is necessary, and the sixth changes the
    margin from zero.
    """
    return rrf.Problem(
        name="pairs",
        nodes=[{"id": f"n{i}"} for i in range(12)],
        relations=[{"id": f"r{i}", "tail": f"n{2 * i}", "head": f"n{2 * i + 1}"} for i in range(6)],
        anchors=[{"id": f"a{i}", "node": f"n{i}", "cost": 1.0} for i in range(12)],
    )
