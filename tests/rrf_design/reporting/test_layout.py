from __future__ import annotations

import math

import numpy as np
import pytest

from rrf_design.reporting.layout import APART, free_angles, positions


@pytest.mark.parametrize("nodes", [1, 2, 3, 30, 100])
def test_nodes_stand_apart_and_inside(nodes: int) -> None:
    rng = np.random.default_rng(nodes)
    edges = [(i, int(rng.integers(0, i))) for i in range(1, nodes) if i % 7]
    placed, (width, height) = positions(range(nodes), edges)
    xy = np.array([placed[i] for i in range(nodes)])
    assert (xy >= 0).all()
    assert (xy <= [width, height]).all()
    if nodes > 1:
        distances = np.linalg.norm(xy[:, None] - xy[None], axis=2) + 1e9 * np.eye(nodes)
        assert distances.min() > 0.5 * APART


def test_the_same_field_always_looks_the_same() -> None:
    edges = [(i, (i * 3 + 1) % 20) for i in range(20)]
    assert positions(range(20), edges) == positions(range(20), edges)


def test_anchors_avoid_relations_and_the_name() -> None:
    placed = {0: (0.0, 0.0), 1: (100.0, 0.0)}
    angles = free_angles(0, placed, [1], 3)
    assert len({round(a, 3) for a in angles}) == 3
    for angle in angles:
        assert abs(math.remainder(angle, 2 * math.pi)) > 0.3
        assert abs(math.remainder(angle - math.pi / 2, 2 * math.pi)) > 0.3
