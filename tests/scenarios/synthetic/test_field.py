from __future__ import annotations

import numpy as np
import pytest

from scenarios.synthetic import complete, corrupt, generator, path, random_tree, sample_field
from scenarios.synthetic.field import CONDITION_LIMIT


@pytest.fixture
def field():  # type: ignore[no-untyped-def]
    return sample_field(generator(0, "test", "graph"), [3, 5])


def test_truth_satisfies_every_relation(field) -> None:  # type: ignore[no-untyped-def]
    edges = [*complete(field.members(0)), *complete(field.members(1))]
    D = field.operator(edges)
    assert np.linalg.norm(D @ field.truth.ravel()) < 1e-12
    gauge = np.zeros_like(field.truth)
    gauge[field.members(1)] = field.maps[field.members(1)] @ np.ones(field.dim)
    assert np.linalg.norm(D @ gauge.ravel()) < 1e-12


def test_maps_are_orthogonal_times_log_normal(field) -> None:  # type: ignore[no-untyped-def]
    for M in field.maps:
        gram = M.T @ M
        assert np.abs(gram - np.diag(np.diag(gram))).max() < 1e-12
        assert np.linalg.cond(M) <= CONDITION_LIMIT
    scales = [np.log(np.diag(M.T @ M)) / 2 for i in range(40) for M in sample_field(generator(i, "t", "g"), [6]).maps]
    assert np.std(scales) == pytest.approx(0.12, abs=0.01)


def test_streams_do_not_overlap_and_repeat() -> None:
    a = generator(0, "S1", "graph", 3).normal()
    assert a == generator(0, "S1", "graph", 3).normal()
    others = [(1, "S1", "graph", 3), (0, "S2", "graph", 3), (0, "S1", "noise", 3), (0, "S1", "graph", 4)]
    assert len({a, *(generator(*other).normal() for other in others)}) == 5


def test_corruption_has_k_nodes_and_its_amplitudes(field) -> None:  # type: ignore[no-untyped-def]
    wrong = corrupt(np.random.default_rng(0), field, 2)
    sizes = np.linalg.norm(wrong.error, axis=1)
    assert tuple(np.flatnonzero(sizes)) == wrong.nodes
    assert sizes[list(wrong.nodes)] == pytest.approx(wrong.amplitudes)
    assert all(0.9 <= a <= 2.1 for a in wrong.amplitudes)


def test_graphs() -> None:
    assert path([4, 5, 6]) == [(4, 5), (5, 6)]
    assert len(complete(range(5))) == 10
    tree = random_tree(np.random.default_rng(0), list(range(6)))
    assert len(tree) == 5
    assert all(tail < head for tail, head in tree)
