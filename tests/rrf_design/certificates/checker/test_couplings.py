"""Couplings bound what they claim to bound, and leave no centre of a harmful support out."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest

from rrf_design.checker._couplings import (
    HOPELESS,
    couple_blocks,
    couple_scalars,
    edge_pulls,
    norm_above,
    roots_of,
)
from rrf_design.checker._gram import field_of

from ..conftest import make_record, random_field


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (4, 4), (3, 5), (7, 2)])
def test_norms_are_bounded_from_above_and_closely(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(shape)
    for scale in (1e-30, 1.0, 1e30):
        block = rng.standard_normal(shape) * scale
        bound = norm_above(block, *shape, np.zeros((shape[1], shape[1])))
        exact = np.linalg.norm(block, 2)
        assert exact * (1 - 1e-10) <= bound <= exact * shape[1] ** 0.125 * (1 + 1e-10)


def whitened(matrix: np.ndarray, cuts: np.ndarray) -> np.ndarray:
    """Norms of the scaled blocks, by plain linear algebra."""
    count = len(cuts) - 1
    roots = [np.linalg.inv(np.linalg.cholesky(matrix[a:b, a:b])) for a, b in pairwise(cuts)]
    result = np.zeros((count, count))
    for i in range(count):
        for j in range(count):
            if i != j:
                block = matrix[cuts[i] : cuts[i + 1], cuts[j] : cuts[j + 1]]
                result[i, j] = np.linalg.norm(roots[i] @ block @ roots[j].T, 2)
    return result


@pytest.mark.parametrize("sizes", [[1] * 6, [2] * 5, [1, 3, 2, 4]])
def test_dense_couplings(sizes: list[int]) -> None:
    rng = np.random.default_rng(len(sizes))
    cuts = np.concatenate([[0], np.cumsum(sizes)])
    factor = rng.standard_normal((3 * cuts[-1], cuts[-1]))
    matrix = factor.T @ factor
    links, sound = np.zeros((len(sizes), len(sizes))), np.zeros(len(sizes), dtype=np.bool_)
    if max(sizes) == 1:
        couple_scalars(matrix, links, sound, len(sizes))
    else:
        scale = np.sqrt(np.add.reduceat(np.diag(matrix), cuts[:-1]))
        couple_blocks(matrix, cuts, links, sound, len(sizes), scale)
    exact = whitened(matrix, cuts)
    assert sound.all()
    assert np.allclose(links, links.T, rtol=1e-14)
    assert (links >= exact * (1 - 1e-10)).all()
    assert (links <= exact * 1.2 + 1e-9).all()


def test_a_node_that_is_harmful_in_itself_makes_every_sum_hopeless() -> None:
    matrix = np.diag([1.0, -1.0, 1.0])
    links, sound = np.zeros((3, 3)), np.zeros(3, dtype=np.bool_)
    couple_scalars(matrix, links, sound, 3)
    assert sound.tolist() == [True, False, True]
    assert links[1, 0] == links[0, 1] == HOPELESS
    assert links[0, 2] == 0.0
    couple_blocks(np.diag([1.0, 1.0, 1.0, -1.0]), np.array([0, 2, 4]), links, sound, 2, np.full(2, 1.5))
    assert sound.tolist()[:2] == [True, False]
    assert links[0, 1] == HOPELESS


@pytest.mark.parametrize("seed", range(40))
def test_every_harmful_support_holds_a_root(seed: int) -> None:
    matrix, sizes, _, _ = random_field(seed)
    size = 2 + seed % 3
    gram = field_of(make_record(matrix, sizes), size, np.zeros(0), plain=True).gram
    assert gram is not None
    starts = np.concatenate([[0], np.cumsum(sizes)])
    exact = matrix.T @ matrix
    for shift in (0.01, 0.3, 1.0):
        roots = set(roots_of(gram, shift, np.ones(len(sizes), dtype=np.bool_)).tolist())
        for support in combinations(range(len(sizes)), min(size, len(sizes))):
            columns = np.concatenate([np.arange(starts[i], starts[i + 1]) for i in support])
            if np.linalg.eigvalsh(exact[np.ix_(columns, columns)])[0] < shift * (1 - 1e-9):
                assert roots & set(support)


def test_edges_without_a_block_pull_at_nothing() -> None:
    record = make_record(np.eye(4), blocks=[2, 2], radii=[0.1, 0.1])
    gram = field_of(record, 2, np.square(record.radii), plain=True).gram
    pulls, sound = edge_pulls(gram, 0.25)
    assert sound.all()
    assert (pulls < 1e-12).all()
