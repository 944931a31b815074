"""Splitting the operator's graph: what is dense, what is walked, and what neither may lose."""

from __future__ import annotations

import numpy as np
import pytest

from rrf_design.checker._gram import field_of
from rrf_design.checker.exact import ProofOutcome
from rrf_design.checker.proofs import prove_floor
from rrf_design.errors import Refused

from ..conftest import brute_margin, make_record


def test_a_dense_field_is_one_matrix_with_a_lowered_diagonal() -> None:
    matrix = np.random.default_rng(0).standard_normal((12, 9))
    field = field_of(make_record(matrix, [2, 1, 3, 1, 2]), 3, np.zeros(0))
    assert field.gram is None
    part = field.dense[0]
    exact = matrix.T @ matrix
    assert np.array_equal(part.matrix, part.matrix.T)
    assert np.allclose(part.matrix, exact, rtol=1e-12)
    assert (np.diag(part.matrix) < np.diag(exact)).all()
    assert part.cuts.tolist() == [0, 2, 3, 6, 7, 9]


@pytest.mark.parametrize("sizes", [[1] * 9, [2] * 9, [1, 2, 3] * 3])
def test_a_field_with_a_dense_and_a_sparse_part(sizes: list[int]) -> None:
    """Six nodes that all touch, and a chain of three: both parts are searched, and the weaker one
    decides.
    """
    rng = np.random.default_rng(sum(sizes))
    width, split = sum(sizes), sum(sizes[:6])
    for weak in (0.3, 3.0):
        upper = np.hstack([rng.standard_normal((2 * split, split)), np.zeros((2 * split, width - split))])
        chain = np.zeros((3 * (width - split), width))
        chain[:, split:] = weak * np.vstack([np.eye(width - split), np.tri(width - split), np.eye(width - split)])
        matrix = np.vstack([upper, chain])
        record = make_record(matrix, sizes)
        field = field_of(record, 3, np.zeros(0))
        assert [part.names.tolist() for part in field.dense] == [list(range(6))]
        assert field.gram is not None
        assert field.gram.roots.tolist() == [6, 7, 8]
        value = brute_margin(matrix, sizes, 3)
        assert prove_floor(record, 3, floor=value * (1 - 1e-10)).outcome is ProofOutcome.PROVED
        assert prove_floor(record, 3, floor=value * (1 + 1e-10)).outcome is ProofOutcome.REFUTED


def test_blocks_of_one_size_and_of_mixed_sizes_are_the_gram_matrix() -> None:
    rng = np.random.default_rng(4)
    for sizes in ([1] * 6, [2] * 6, [1, 2, 1, 3, 1, 2]):
        starts = np.concatenate([[0], np.cumsum(sizes)])
        matrix = np.zeros((24, starts[-1]))
        for row in range(24):
            for i in rng.choice(5, 2, replace=False):  # the last node is touched by nothing
                matrix[row, starts[i] : starts[i + 1]] = rng.standard_normal(sizes[i])
        gram = field_of(make_record(matrix, sizes), 2, np.zeros(0), plain=True).gram
        assert gram is not None
        exact = matrix.T @ matrix
        for i, size in enumerate(sizes):
            own = gram.blocks[gram.self_blocks[i] :][: size * size].reshape(size, size)
            assert np.allclose(own, exact[starts[i] : starts[i + 1], starts[i] : starts[i + 1]])
            for e in range(gram.neighbour_starts[i], gram.neighbour_starts[i + 1]):
                j = int(gram.neighbours[e])
                block = gram.blocks[gram.edge_blocks[e] :][: size * sizes[j]].reshape(size, sizes[j])
                assert np.allclose(block, exact[starts[i] : starts[i + 1], starts[j] : starts[j + 1]])


def test_nodes_that_share_a_block_are_adjacent_where_radii_count() -> None:
    record = make_record(np.eye(4), blocks=[2, 2], radii=[0.1, 0.1])
    without = field_of(record, 2, np.zeros(0), plain=True).gram
    with_radii = field_of(record, 2, np.square(record.radii), plain=True).gram
    assert without is not None
    assert with_radii is not None
    assert len(without.neighbours) == 0
    assert with_radii.neighbours.tolist() == [1, 0, 3, 2]
    assert (with_radii.edge_blocks == -1).all()


def test_numbers_beyond_the_range_of_doubles_are_left_to_exact_arithmetic() -> None:
    matrix = np.random.default_rng(1).standard_normal((6, 4)) * 1e200
    record = make_record(matrix)
    with np.errstate(over="ignore", invalid="ignore"):
        assert prove_floor(record, 2, floor=1e190).outcome is ProofOutcome.PROVED
        assert prove_floor(record, 2, floor=1e202).outcome is ProofOutcome.REFUTED


def test_an_operator_whose_rows_touch_everything_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rrf_design.checker._gram.PAIR_LIMIT", 10)
    monkeypatch.setattr("rrf_design.checker._gram.DENSE_COORDINATES", 3)
    with pytest.raises(Refused, match="too dense"):
        prove_floor(make_record(np.ones((1, 5))), 2, floor=0.1)


def test_a_chain_never_becomes_a_plain_matrix() -> None:
    matrix = np.eye(400) - np.eye(400, k=1)
    field = field_of(make_record(matrix), 2, np.zeros(0))
    assert field.dense == ()
