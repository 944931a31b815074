"""Fields with known answers, shared by the tests of this folder."""

from __future__ import annotations

import pytest

import rrf_design as rrf

SHAPES = {
    "star": [(0, 1), (0, 2), (0, 3)],
    "pairs": [(0, 1), (2, 3)],
    "triangle": [(0, 1), (0, 2), (1, 2)],
    "complete": [(a, b) for a in range(4) for b in range(a + 1, 4)],
    "ring": [(i, (i + 1) % 8) for i in range(8)] + [(i, (i + 3) % 8) for i in range(8)],
}


@pytest.fixture
def equality():
    """Problem of nodes n0, n1, … with identity relations in a named shape, and anchors by node
    number.
    """

    def build(shape, *, anchors=None, dim=1, **settings):
        edges = SHAPES[shape]
        nodes = 8 if shape == "ring" else 4
        return rrf.Problem(
            nodes=[{"id": f"n{i}", "dim": dim} for i in range(nodes)],
            relations=[{"id": f"r{a}{b}", "tail": f"n{a}", "head": f"n{b}"} for a, b in edges],
            anchors=[{"id": f"a{i}", "node": f"n{i}", "value": value} for i, value in (anchors or {}).items()],
            **settings,
        )

    return build


@pytest.fixture
def answers():
    """Responses by node id from values in order."""

    def build(*values):
        return {f"n{i}": value for i, value in enumerate(values)}

    return build
