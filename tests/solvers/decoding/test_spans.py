"""Projections with a measured error; traversals and erasures that rest on them."""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
from exact_matrices import floats, projector, rationals
from flint import fmpq, fmpq_mat
from scipy import sparse

from solvers._gram import column_groups
from solvers.decoding import SupportDecoder, WrongChecks, erasure_margin, unread_margin
from solvers.decoding import _erasures as erasures
from solvers.decoding import _traversal as traversal
from solvers.decoding._search import _Task
from solvers.decoding._traversal import LOUD, Basis, PrefixLevel, Scan, Traversal
from solvers.decoding.spans import as_operator, build_spans, column_squares, local_part, project_out, span_of, tamed


def dense_columns(spans, node, height):
    rows, columns = spans.columns((node,))
    result = np.zeros((height, spans.width))
    result[rows] = columns.T
    return result


@pytest.mark.parametrize("storage", [np.array, sparse.csc_array])
def test_bases_are_orthonormal_and_span_the_node(storage):
    rng = np.random.default_rng(0)
    B = rng.normal(size=(30, 11)) * (rng.random((30, 11)) < 0.4)
    B[:, 3] = 2 * B[:, 2]  # a node of rank one
    B[:, 6] = 0  # a node that says nothing
    B[:, 8] = B[:, 7] + 1e-6 * rng.normal(size=30)  # a node that a Gram matrix would blur
    groups = column_groups([[0, 1], [2, 3], [4, 10, 9], [6], [7, 8], [5]], 11)
    spans = build_spans(storage(B), groups)
    for j, columns in enumerate(groups):
        basis = dense_columns(spans, j, 30)
        used = basis[:, np.linalg.norm(basis, axis=0) > 0.5]
        assert used.shape[1] == np.linalg.matrix_rank(B[:, columns], tol=1e-9)
        np.testing.assert_allclose(used.T @ used, np.eye(used.shape[1]), atol=1e-9)
        np.testing.assert_allclose(used @ (used.T @ B[:, columns]), B[:, columns], atol=1e-9)


@pytest.mark.parametrize("dims", [[1] * 6, [2, 2, 2], [1, 3, 2]])
def test_overlap_is_the_same_dense_and_sparse(dims):
    rng = np.random.default_rng(1)
    B = rng.normal(size=(8, 6))
    groups = column_groups(dims, 6)
    n = len(dims)
    dense, thin = build_spans(B, groups), build_spans(sparse.csc_array(B), groups)
    for spans in (dense, thin):
        pointers, neighbours, blocks = spans.overlap
        for i in range(n):
            for place in range(pointers[i], pointers[i + 1]):
                j = int(neighbours[place])
                if j > i:
                    expected = dense_columns(spans, i, 8).T @ dense_columns(spans, j, 8)
                    np.testing.assert_allclose(blocks[place], expected, atol=1e-12)


def test_storage_is_chosen_and_the_argument_is_left_alone():
    assert isinstance(as_operator(sparse.csr_array(np.eye(10))), np.ndarray)
    large = sparse.eye_array(500, format="csr")
    assert sparse.issparse(as_operator(large))
    assert sparse.issparse(as_operator(np.eye(500)))
    dense = np.ones((3, 3))
    as_operator(dense)[0, 0] = 7
    assert dense[0, 0] == 1
    with pytest.raises(ValueError, match="must be a matrix"):
        as_operator(np.zeros(3))


def test_projection_leaves_nothing_behind():
    rng = np.random.default_rng(2)
    B = rng.normal(size=(9, 5))
    basis = span_of(B[:, :2])
    for storage in (np.array, sparse.csc_array):
        rest = project_out(storage(B), basis)
        rest = rest if isinstance(rest, np.ndarray) else rest.toarray()
        np.testing.assert_allclose(basis.T @ rest, 0, atol=1e-14)
        np.testing.assert_allclose(rest[:, :2], 0, atol=1e-13)


def test_local_part():
    matrix = sparse.csc_array(np.array([[0.0, 1, 0], [2, 0, 0], [0, 0, 0], [3, 4, 0]]))
    rows, local = local_part(matrix, np.array([0, 1]))
    np.testing.assert_array_equal(rows, [0, 1, 3])
    np.testing.assert_array_equal(local, [[0, 1], [2, 0], [3, 4]])
    assert local_part(matrix, np.array([2]))[1].shape == (0, 1)


@pytest.mark.parametrize("storage", [np.array, sparse.csc_array])
def test_the_error_of_a_basis_is_bounded(storage):
    """For some W, B_jW is within the bound of Q_j: checked with the best W there is, in
    rationals.
    """
    rng = np.random.default_rng(4)
    B = rng.normal(size=(9, 6))
    B[:, 3] = B[:, 2] + 1e-7 * rng.normal(size=9)
    groups = column_groups([2, 2, 2], 6)
    spans = build_spans(storage(B), groups)
    assert spans.error[0] < 1e-13 < spans.error[1] < 1e-6
    for j, columns in enumerate(groups):
        Q = rationals(dense_columns(spans, j, 9))
        gap = floats(Q - projector(B[:, columns]) * Q)
        assert np.linalg.norm(gap) <= spans.error[j]


def test_exact_zeros_are_no_matter_of_the_zero_rule():
    B = np.array([[1.0, 0.0, 1.0, 3.0], [0.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 1e-13]])
    spans = build_spans(B, column_groups([2, 2], 4))
    assert spans.dropped.tolist() == [False, True]
    assert build_spans(B, column_groups(None, 4)).dropped.tolist() == [False] * 4


@pytest.mark.parametrize("storage", [np.array, sparse.csc_array])
def test_taming_changes_no_span(storage):
    B = np.array([[3e-200, 1.0, 0.0], [4e-200, 0.0, 0.0]])
    groups = column_groups(None, 3)
    with np.errstate(under="ignore"):
        squares = column_squares(storage(B))
    spans = build_spans(tamed(storage(B), groups, squares), groups)
    np.testing.assert_allclose(dense_columns(spans, 0, 2)[:, 0], [0.6, 0.8])
    untouched = storage(B[:, 1:])
    assert tamed(untouched, column_groups(None, 2), column_squares(untouched)) is untouched


def task(B, s, radius=0.0):
    return _Task.of(SupportDecoder(B), np.asarray(s, dtype=float), radius, None, None)


def path(nodes):
    return np.eye(nodes - 1, nodes, 1) - np.eye(nodes - 1, nodes)


@pytest.mark.parametrize("storage", [np.array, sparse.csc_array])
def test_only_nodes_of_the_loudest_rows_must_be_met(storage, monkeypatch):
    monkeypatch.setattr("solvers.decoding._search.as_operator", storage)
    s = np.zeros(7)
    s[[2, 5]] = [3.0, 1.0]
    decoder = SupportDecoder(path(8))
    for radius, nodes in ((0.5, [2, 3]), (3.05, [2, 3, 5, 6])):
        search = Traversal(radius, True, lambda _: None, decoder._touching, lambda _: 0)
        assert search._must_meet(Scan.of(decoder._level, s, 0.0)).tolist() == nodes
    # rows that a projected node touches are seen by all its neighbours; the others are left as they
    # are
    below = decoder._level.without((3,), traversal.Basis.of(decoder.spans, (3,)))
    search = Traversal(0.5, True, lambda _: None, decoder._touching, lambda _: 0)
    assert search._must_meet(Scan.of(below, s, 0.0)).tolist() == [5, 6]
    assert search._must_meet(Scan.of(below, s * np.eye(7)[2], 0.0)).tolist() == [2, 3, 4]


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_minimiser_reaches_the_best_support(size):
    from itertools import combinations

    rng = np.random.default_rng(size)
    B = rng.normal(size=(12, 8)) * (rng.random((12, 8)) < 0.4)
    s = rng.normal(size=12)
    here = task(B, s)
    search = here.search(size, listing=False)
    best = min(here.decoder.residual(s, part) for part in combinations(range(8), size))
    assert search.residual / here.unit == pytest.approx(best, abs=1e-12)
    assert search.complete
    assert len(set(search.support)) == len(search.support) <= size


def test_unusable_nodes_are_left_out():
    s = path(6) @ np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    here = task(path(6), s, 1e-9)
    here.decoder._usable[2] = False
    assert here.search(2, listing=True).found == []


def test_loud_rows_and_all_rows_list_the_same(monkeypatch):
    rng = np.random.default_rng(0)
    B = rng.normal(size=(4 * LOUD, 4 * LOUD))
    s = B[:, [5, 30]] @ np.array([1.0, 2.0]) + 0.01 * rng.normal(size=4 * LOUD)
    for radius in (0.1, 0.9 * np.linalg.norm(s)):  # the second leaves so many pairs that the Gram matrix is formed
        first = task(B, s, radius).search(2, listing=True)
        with monkeypatch.context() as patch:
            patch.setattr("solvers.decoding._traversal.LOUD", 10**6)
            second = task(B, s, radius).search(2, listing=True)
        assert sorted(first.found) == sorted(second.found)


def test_progress_is_told_with_the_best_so_far(monkeypatch):
    monkeypatch.setattr("solvers.decoding._traversal.TELLING", 0.0)
    rng = np.random.default_rng(1)
    B, told = rng.normal(size=(20, 12)), []
    s = B[:, [1, 4, 7]] @ np.ones(3)
    SupportDecoder(B).decode(s, k=4, epsilon=0.1, progress=lambda *seen: told.append(seen))
    shares = [share for share, *_ in told]
    assert shares[0] == 0.0 < shares[-1] < 1.0
    assert any(support == (1, 4, 7) and explained for _, support, _, explained in told)


@pytest.mark.parametrize("storage", [np.array, sparse.csc_array])
def test_noise_bounds_the_error_of_the_projected_columns(storage):
    rng = np.random.default_rng(0)
    B = rng.normal(size=(10, 6))
    B[:, 1] = B[:, 0] + 1e-6 * rng.normal(size=10)
    groups = column_groups(None, 6)
    level = PrefixLevel.root(storage(B), groups)
    for node in (0, 1):
        level = level.without((node,), Basis.of(level.spans, (node,)))
    computed = level.operator if isinstance(level.operator, np.ndarray) else level.operator.toarray()
    exact = rationals(B) - projector(B[:, :2]) * rationals(B)
    lengths = np.linalg.norm(floats(exact - rationals(computed)), axis=0)[2:]
    assert all(gap <= bound for gap, bound in zip(lengths, level.noise[2:], strict=True))
    assert level.noise[2:].max() < 1e-7  # the second node was nearly in the span of the first
    assert level.prefix == (0, 1)
    assert level.rank == 2
    assert level.covered.all()


def test_an_empty_basis_leaves_everything():
    level = PrefixLevel.root(np.eye(3), column_groups(None, 3))
    basis = Basis.of(level.spans, ())
    np.testing.assert_array_equal(basis.leave(np.arange(3.0)), np.arange(3.0))
    assert basis.wide(3).shape == (3, 0)


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


def test_what_is_too_much_or_too_large_is_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("solvers.decoding._erasures.MOST", 60)
    dense = np.ones((2, 62))
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
