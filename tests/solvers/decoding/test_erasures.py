"""The erasure margin against its definition, by enumeration and by projection.

The margin of delivered values with unread answers and suspect blocks, against plain enumeration
in rationals.
"""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
from flint import fmpq, fmpq_mat
from scipy import sparse

from solvers.decoding import WrongChecks, erasure_margin, unread_margin
from solvers.decoding import _erasures as erasures
from solvers.decoding._erasures import MOST


def by_definition(B, known, k):
    rest = [i for i in range(B.shape[1]) if i not in known]
    sets = combinations(rest, min(2 * k, len(rest)))
    return min(np.linalg.svd(B[:, [*known, *part]], compute_uv=False)[-1] for part in sets)


TALL = 300_000  # rows: a full U of so many would take 670 GiB


def test_a_tall_operator_with_margin_zero_takes_no_more_room_than_itself():
    B = np.zeros((TALL, 3))
    B[:, 0] = 1.0
    B[::2, 1:] = 1.0
    found = erasure_margin(B, known=(0,), k=1)
    assert (found.value, found.lower, found.status) == (0.0, 0.0, "exact")
    assert np.allclose(B @ found.direction, 0.0, atol=1e-9)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("known", [(2,), (0, 5)])
def test_enumeration_and_projection(seed, known, monkeypatch):
    B = np.random.default_rng(seed).normal(size=(12, 8))
    truth = by_definition(B, known, 1)
    exact = erasure_margin(B, known=known, k=1)
    assert exact.value == pytest.approx(truth, rel=1e-9)
    assert exact.lower <= truth <= exact.upper * (1 + 1e-12)
    assert np.linalg.norm(B @ exact.direction) == pytest.approx(truth, rel=1e-6)
    monkeypatch.setattr(erasures, "ENUMERATE", 0)
    bounded = erasure_margin(B, known=known, k=1)
    assert bounded.status == "bounded"
    assert 0 < bounded.lower <= truth <= bounded.upper * (1 + 1e-12)
    assert bounded.others >= truth - 1e-12  # leaving out the erased coordinates can only help the others


def test_erasing_costs_less_than_corrupting():
    """One erased and one corrupted node are on three nodes at most; two corrupted ones are on
    four.
    """
    B = np.random.default_rng(9).normal(size=(7, 7))
    two = min(np.linalg.svd(B[:, part], compute_uv=False)[-1] for part in combinations(range(7), 4))
    for i in range(7):
        assert erasure_margin(B, known=[i], k=1).value >= two


def test_an_erased_node_that_nothing_sees():
    found = erasure_margin(np.array([[1.0, -1.0, 0.0], [1.0, 1.0, 0.0]]), known=[2], k=1)
    assert found.value == found.lower == 0.0
    assert found.support[-1] == 2
    assert found.others > 0  # the other two are still told apart


def exactly(value: float) -> fmpq:
    return fmpq(*float(value).as_integer_ratio())


def dot(a: Any, b: Any) -> fmpq:
    return (a.transpose() * b)[0, 0]


def complement(block: np.ndarray, wanted: np.ndarray) -> list[list[fmpq]]:
    """The Gram matrix of the wanted columns after the others are projected out, by Gram and
    Schmidt.
    """
    columns = [fmpq_mat(len(block), 1, [exactly(x) for x in column]) for column in block.T]
    basis: list[Any] = []
    for index in (*np.flatnonzero(~wanted), *np.flatnonzero(wanted)):
        for b in basis:
            columns[index] -= b * (dot(b, columns[index]) / dot(b, b))
        if not wanted[index] and dot(columns[index], columns[index]) != 0:
            basis.append(columns[index])
    own = [columns[i] for i in np.flatnonzero(wanted)]
    return [[dot(a, b) for b in own] for a in own]


def above(gram: list[list[fmpq]], level: fmpq) -> bool:
    """Is the matrix minus level·I positive semidefinite?"""
    order = len(gram)
    work = [[gram[i][j] - (level if i == j else 0) for j in range(order)] for i in range(order)]
    for p in range(order):
        if work[p][p] < 0 or (work[p][p] == 0 and any(work[i][p] != 0 for i in range(p, order))):
            return False
        for i in range(p + 1, order) if work[p][p] != 0 else ():
            ratio = work[i][p] / work[p][p]
            for j in range(p + 1, order):
                work[i][j] -= ratio * work[p][j]
    return True


@pytest.mark.parametrize("seed", range(80))
def test_no_set_is_below_it_and_one_attains_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 3, int(rng.integers(3, 6))).tolist()
    ends = np.cumsum([0, *sizes])
    groups = [list(range(a, b)) for a, b in pairwise(ends)]
    blocks = rng.integers(1, 3, int(rng.integers(3, 6))).tolist()
    matrix = rng.integers(-2, 3, (sum(blocks), ends[-1])) * (rng.random((sum(blocks), ends[-1])) < 0.6).astype(float)
    known = rng.choice(len(sizes), int(rng.integers(1, len(sizes))), replace=False).tolist()
    deliver = rng.choice(ends[-1], int(rng.integers(1, 4)), replace=False)
    suspects = rng.choice(len(blocks), 2, replace=False).tolist()
    size, wrong = 2, int(rng.integers(0, 3))
    found = unread_margin(matrix, groups, deliver, known=known, size=size, checks=WrongChecks(blocks, suspects, wrong))
    assert found is not None
    owner = np.repeat(np.arange(len(blocks)), blocks)
    rest = [i for i in range(len(sizes)) if i not in known]
    attained = False
    for count in range(min(size, len(rest)) + 1):
        for others in combinations(rest, count):
            index = np.concatenate([groups[i] for i in (*known, *others)])
            wanted = np.isin(index, deliver)
            if not wanted.any():
                continue
            for removed in range(wrong + 1):
                for aside in combinations(suspects, removed):
                    gram = complement(matrix[~np.isin(owner, aside)][:, index], wanted)
                    assert above(gram, exactly(found.lower) ** 2)
                    attained |= not above(gram, exactly(found.upper * (1 + 1e-12) + 1e-300) ** 2)
    assert attained
    assert found.status == "exact"
    assert found.value == 0.0 or found.lower >= found.upper * (1 - 1e-9)
    assert np.linalg.norm(found.direction[np.unique(deliver)]) == pytest.approx(1.0)


def test_a_field_is_looked_at_around_what_is_delivered_only() -> None:
    """A path of thousands of nodes: only those within 2k steps of the first matter, and an unread
    node is passed for nothing.
    """
    nodes = 3_000
    rows = np.arange(nodes - 1)
    matrix = sparse.csr_array(
        (np.tile([-1.0, 1.0], nodes - 1), (np.repeat(rows, 2), np.column_stack([rows, rows + 1]).ravel())),
        shape=(nodes - 1, nodes),
    )
    found = unread_margin(matrix, None, [0], known=[1], size=2)
    assert found is not None
    assert found.value == 0.0 or found.lower > 0.0
    assert set(found.support) <= {0, 1, 2, 3}


def test_what_is_too_much_or_too_large_is_left_open() -> None:
    dense = np.ones((2, MOST + 2))
    assert unread_margin(dense, None, [0], known=[1], size=2) is None
    assert unread_margin(np.eye(3) * 1e150, None, [0], known=[1], size=2) is None


def test_what_was_read_is_told_apart_from_what_was_not() -> None:
    """Nothing ties the unread node to the others: its value is open, the other delivered one is
    not.
    """
    matrix = np.array([[1.0, 0.0, 0.0], [1.0, -1.0, 0.0], [0.0, 1.0, 0.0]])
    found = unread_margin(matrix, None, [0, 2], known=[2], size=2)
    assert found is not None
    assert (found.value, found.lower) == (0.0, 0.0)
    assert found.others > 0.5
