"""From B to the Gram matrix: who is adjacent, what is in range, and what is refused."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from solvers import Status, margin, supports_below, worst_supports
from solvers._gram import make_field
from solvers._tracker import MarginTracker

LARGE = [1e7, 3e7, 1e8, 3e8, 1e16]


def cancelling(size: float) -> np.ndarray:
    """Four columns of rank three, so γ_2 = 0; the computed products of the first two with the last
    two all cancel to zero.
    """
    return np.array([[size] * 4, [0.0, 1.0, 0.0, 1.0], [size, size, -size, -size]])


def forms(matrix: np.ndarray) -> list:
    """The same matrix as people hand it over: also with explicit zeros, duplicates and indices out
    of order.
    """
    coo = sparse.coo_array(matrix)
    half = np.concatenate([coo.data / 2, coo.data / 2, [0.0]])
    places = (np.append(np.tile(coo.row, 2), 0), np.append(np.tile(coo.col, 2), matrix.shape[1] - 1))
    backwards = sparse.csr_array(matrix)
    for row in range(matrix.shape[0]):
        span = slice(backwards.indptr[row], backwards.indptr[row + 1])
        backwards.indices[span], backwards.data[span] = backwards.indices[span][::-1], backwards.data[span][::-1]
    backwards.has_sorted_indices = False
    frozen = matrix.copy()
    frozen.setflags(write=False)
    shuffled = sparse.coo_array((half, places), shape=matrix.shape)
    return [
        frozen,
        sparse.csr_array(matrix),
        sparse.csc_array(matrix),
        coo,
        shuffled,
        backwards,
        np.asfortranarray(matrix),
    ]


@pytest.mark.parametrize("size", LARGE)
@pytest.mark.parametrize("width", [1, 2])
def test_adjacency_is_a_question_about_b(size: float, width: int) -> None:
    """In every form, alone and beside another component, with scalar nodes and with blocks."""
    matrix = np.kron(cancelling(size), np.eye(width))
    beside = np.zeros((matrix.shape[0] + 40, matrix.shape[1] + 40))
    beside[: matrix.shape[0], : matrix.shape[1]], beside[matrix.shape[0] :, matrix.shape[1] :] = matrix, np.eye(40)
    for B, groups in ((matrix, [width] * 4), (beside, [width] * 4 + [1] * 40)):
        for form in forms(B):
            field = make_field(form, groups)
            assert field.graph[:4][:, :4].nnz == 12
            found = margin(form, groups, k=2)
            assert (found.lower, found.upper, found.status) == (0.0, 0.0, Status.EXACT)


@pytest.mark.parametrize("size", LARGE)
def test_everybody_who_lists_supports_sees_them(size: float) -> None:
    matrix = cancelling(size)
    assert (0, 1, 2, 3) in {s.support for s in supports_below(matrix, size=4, threshold=0.1).supports}
    assert worst_supports(matrix, size=4, count=1)[0].support == (0, 1, 2, 3)
    tracker = MarginTracker(matrix[:2], size=4)
    tracker.add_rows(matrix[2:])
    assert tracker.margin().lower == 0.0
    assert tracker.margin().upper < 1e-7 * size


def test_long_rows_keep_what_cancelled() -> None:
    """A field whose rows are too long for the compiled product and too sparse for the dense one."""
    rng = np.random.default_rng(0)
    matrix = sparse.random_array((60, 400), density=0.1, rng=rng, format="csr")
    matrix.data[:] = rng.choice([1.0, -1.0], len(matrix.data))
    field = make_field(matrix, None)
    assert field.dense is None
    shared = abs(matrix)
    pattern = (shared.T @ shared).toarray() > 0
    np.fill_diagonal(pattern, False)
    held = sparse.csr_array(
        (np.ones(field.couplings.nnz), field.couplings.indices, field.couplings.indptr), shape=pattern.shape
    )
    assert np.array_equal(held.toarray() > 0, pattern)
    assert (field.couplings.data == 0.0).any()


def test_explicit_zeros_are_no_entries_and_tiny_numbers_are() -> None:
    zeros = sparse.csr_array((np.array([1.0, 0.0, 1.0]), np.array([0, 1, 1]), np.array([0, 2, 3])), shape=(2, 2))
    assert make_field(zeros, None).graph.nnz == 0
    tiny = np.array([[1.0, 1e-149], [0.0, 1.0]])
    assert make_field(tiny, None).graph.nnz == 2


@pytest.mark.parametrize("spread", [1e40, 1e90, 1e140])
def test_columns_of_very_different_size(spread: float) -> None:
    """No float is trusted there: bounds hold exactly, whatever the squares would have done."""
    from random_fields import lower_bound_holds, upper_bound_holds

    for seed in range(4):
        rng = np.random.default_rng(seed)
        matrix = rng.standard_normal((6, 5)) * spread ** np.array([0, 1, 1, 0, 1])
        assert make_field(matrix, None).extreme
        found = margin(matrix, k=1)
        assert found.lower > 0.0
        assert found.status is Status.EXACT
        assert lower_bound_holds(matrix, [1] * 5, 2, found.lower)
        assert upper_bound_holds(matrix, found.direction, found.upper)


@pytest.mark.parametrize("unit", [5e-324, 1e-310, 1e-300, 1e-160, 1e160, 1e299])
def test_bounds_hold_at_the_ends_of_the_range(unit: float) -> None:
    matrix = np.array([[3.0, 1.0], [1.0, 7.0], [2.0, 2.0]]) * unit
    found = margin(matrix, k=1)
    trace, minor = Fraction(0), Fraction(0)
    columns = [[Fraction(float(x)) for x in matrix[:, j]] for j in range(2)]
    a, b = (sum((x * x for x in column), Fraction(0)) for column in columns)
    c = sum((x * y for x, y in zip(*columns, strict=True)), Fraction(0))
    trace, minor = a + b, a * b - c * c
    for bound, sign in ((found.lower, 1), (found.upper, -1)):  # the characteristic polynomial changes its sign at λ_min
        square = Fraction(bound) ** 2
        assert sign * (square * square - trace * square + minor) >= 0


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.array([[1e301]]), "beyond 1e"),
        (np.array([[1e-160, 1.0]]), "150 orders of magnitude"),
        (np.array([[2**63 + 1]], dtype=np.uint64), "beyond 2"),
        (np.array([[1 + np.longdouble(2) ** -60]], dtype=np.longdouble), "can't represent"),
        (np.array([[1, "x"]], dtype=object), "must hold numbers"),
    ],
)
def test_what_can_not_be_taken_exactly_is_refused(matrix: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=r"^[^\n]*$") as caught:
        margin(matrix, k=1)
    assert message in str(caught.value)


@pytest.mark.parametrize("kind", [np.int8, np.uint64, np.float32, np.float16, bool])
def test_other_types_are_the_same_numbers(kind: type) -> None:
    matrix = np.array([[1, 0, 1], [1, 1, 0], [0, 1, 1], [1, 1, 1]])
    assert margin(matrix.astype(kind), k=1).lower == margin(matrix.astype(float), k=1).lower > 0.0
    if kind is not np.float16:
        assert margin(sparse.csr_array(matrix.astype(kind)), k=1).lower > 0.0


def test_nodes_can_be_joined_without_a_common_row() -> None:
    matrix = np.diag([1.0, 2.0, 3.0, 4.0])
    alone = supports_below(matrix, size=2, threshold=1.5)
    assert [s.support for s in alone.supports] == [(0,)]
    together = supports_below(matrix, size=2, threshold=1.5, joined=[(0, 2)])
    assert [s.support for s in together.supports] == [(0, 2)]
    assert together.complete
