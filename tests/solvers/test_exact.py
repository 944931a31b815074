"""Exact arithmetic where floats can't decide, and the plain enumeration."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from delivered_oracle import holds, plain_value
from random_fields import definite_above, dependent, upper_bound_holds
from scipy import sparse

from solvers import Status, margin, supports_below, worst_supports
from solvers import _exact as exact
from solvers._exact import WIDEST, norm_ratio_above, null_vector, proves_at_least, smallest_singular_pair, sqrt_below
from solvers._gram import NodeColumns, column_groups, make_field
from solvers._schur import _ratio_above, all_least_delivered, hidden, near_vector, proves_hidden_at_least
from solvers._tracker import MarginTracker


def test_proofs_are_never_wrong_near_singularity():
    rng = np.random.default_rng(0)
    proved = 0
    for _ in range(60):
        block = rng.integers(-2, 3, size=(4, 3)).astype(float)
        block[:, 2] = block[:, 0] + block[:, 1] + rng.choice([0.0, 1e-9, 2.0**-52], size=4)
        theta = float(rng.choice([1e-30, 1e-20, 1e-10]))
        verdict = proves_at_least(block, theta)
        truth = definite_above(block, Fraction(theta))
        assert not (verdict and not truth)
        proved += verdict
    assert proved > 5


def test_upper_bounds_hold_and_are_tight():
    rng = np.random.default_rng(1)
    for _ in range(20):
        block, vector = rng.standard_normal((5, 3)), rng.standard_normal(3)
        upper = norm_ratio_above(block, vector)
        assert upper_bound_holds(block, vector, upper)
        assert not upper_bound_holds(block, vector, upper * (1 - 1e-12))
    assert norm_ratio_above(np.zeros((2, 2)), np.array([1.0, 0.0])) == 0.0


@pytest.mark.parametrize("value", [0.0, 2.0, 0.1, 1e-300, 1e300])
def test_square_roots_from_below(value):
    assert Fraction(sqrt_below(value)) ** 2 <= Fraction(value)
    assert sqrt_below(value) >= math.sqrt(value) * (1 - 1e-15)


def test_dependent_columns_are_found_exactly():
    rng = np.random.default_rng(2)
    seen = set()
    for _ in range(80):
        block = rng.integers(-2, 3, size=(int(rng.integers(1, 6)), 3)) * float(rng.choice([1.0, 0.1, 1e-120, 2e90]))
        block[:, 2] = rng.choice([block[:, 2], block[:, 0] * 2, block[:, 0] + 2.0**-40 * block[:, 1]][0:3])
        vector = null_vector(block)
        seen.add(vector is None)
        assert (vector is not None) == dependent(block)
        if vector is not None:
            assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-15)
            size = np.abs(block).max(initial=0.0)
            assert np.abs(block @ vector).max(initial=0.0) <= 1e-15 * size
    assert seen == {True, False}
    assert null_vector(np.zeros((3, WIDEST + 1))) is None


def test_ties_and_hairs_are_decided_to_the_last_bit() -> None:
    # Columns that differ in the last bit, where every singular value rounds to zero.
    assert null_vector(np.array([[1.0, 1.0], [1.0, 1.0 + 2.0**-52]])) is None
    assert null_vector(np.array([[1e100, 1e100], [1e-30, 1e-30]])).tolist() == [0.7071067811865475, -0.7071067811865475]
    columns = np.array([[1.0], [0.0]])
    s = np.array([7.0, 0.1])
    assert exact.span_within(columns, s, 0.1) is True
    assert exact.span_within(columns, s, np.nextafter(0.1, 0)) is False


def test_upper_bounds_survive_numbers_whose_squares_underflow():
    block = np.array([[1.0, 1.0], [3e-162, 7e-162]])
    vector = np.array([0.5, -0.5])
    assert upper_bound_holds(block, vector, norm_ratio_above(block, vector))


@pytest.mark.parametrize("scale", [2.0**-900, 1.0, 2.0**900])
def test_no_scale_is_too_small_or_too_large(scale):
    columns = scale * np.array([[3.0, 0.0], [4.0, 0.0], [0.0, 2.0**-60]])
    assert exact.span_within(columns, np.array([6.0, 8.0, 5.0]), 0.0) is True
    assert exact.span_within(columns[:, :1], np.array([6.0, 8.0, 5.0]), 5.0) is True
    assert exact.span_within(columns[:, :1], np.array([6.0, 8.0, 5.0]), 4.999) is False
    assert exact.exact_rank(columns) == 2


def test_dependence_is_exact_and_large_matrices_are_left_open() -> None:
    third = 1.0 / 3.0
    assert exact.exact_rank(np.array([[third, 2 * third], [third, 2 * third]])) == 1
    assert exact.exact_rank(np.array([[third, 1.0], [third * 3, 3.0000000000000004]])) == 2
    assert exact.exact_rank(np.zeros((3, 2))) == 0
    assert exact.span_within(np.zeros((2, 1)), np.array([3.0, 4.0]), 5.0) is True
    wide = np.ones((2, exact.RATIONAL_COLUMNS + 1))
    assert exact.span_within(wide, np.ones(2), 0.0) is None
    assert exact.exact_rank(wide) is None


@pytest.mark.parametrize("spread", [0, 4, 8])
@pytest.mark.parametrize("seed", range(8))
def test_sigma_is_right_to_nine_digits_however_columns_are_scaled(seed: int, spread: int) -> None:
    rng = np.random.default_rng([seed, spread])
    block = rng.standard_normal((9, 4)) * 10.0 ** rng.integers(-spread, spread + 1, 4)
    sigma, vector = smallest_singular_pair(block)
    assert definite_above(block, (Fraction(sigma) * Fraction(1 - 1e-9)) ** 2)
    assert not definite_above(block, (Fraction(sigma) * Fraction(1 + 1e-9)) ** 2)
    assert np.linalg.norm(vector) == pytest.approx(1.0)
    exact = [
        sum((Fraction(float(b)) * Fraction(float(v)) for b, v in zip(row, vector, strict=True)), Fraction())
        for row in block
    ]
    assert float(sum(x * x for x in exact)) ** 0.5 == pytest.approx(sigma, rel=1e-9)


def test_wide_matrices_and_zero_columns_have_null_vectors() -> None:
    block = np.array([[1.0, 1e9, 0.0]])
    sigma, vector = smallest_singular_pair(block)
    assert sigma == 0.0
    assert np.abs(block @ vector).max() < 1e-6
    block = np.diag([1e8, 0.0, 1.0])
    sigma, vector = smallest_singular_pair(block)
    assert sigma == 0.0
    assert np.abs(vector).tolist() == [0.0, 1.0, 0.0]


def blocks(count, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        block = rng.integers(-2, 3, size=(int(rng.integers(2, 7)), int(rng.integers(2, 6)))).astype(float)
        block[:, -1] = block[:, 0] + block[:, 1] + rng.choice([0.0, 0.0, 1e-9, 2.0**-50], size=len(block))
        wanted = rng.random(block.shape[1]) < 0.4
        wanted[int(rng.integers(len(wanted)))] = True
        yield block, wanted


def test_minima_bracket_the_truth_however_singular_the_rest():
    for block, wanted in blocks(150):
        found = hidden(block, wanted)
        assert not holds(block, wanted, np.nextafter(found.upper, np.inf), strictly=True)
        assert holds(block, wanted, found.sigma * (1 - 1e-9))
        assert np.linalg.norm(found.vector[wanted]) == pytest.approx(1.0)


def test_proofs_are_never_wrong_and_often_found():
    rng = np.random.default_rng(5)
    proved = 0
    for block, wanted in blocks(150, seed=1):
        level = hidden(block, wanted).sigma * float(rng.choice([0.5, 0.999, 1.001]))
        verdict = proves_hidden_at_least(block, wanted, level * level)
        if verdict:
            assert holds(block, wanted, level * (1 - 1e-15))
        proved += verdict
    assert proved > 30


def test_the_last_bit_decides_whether_a_direction_is_blind():
    """Equal columns hide nothing; columns that differ in the last bit span one direction more."""
    column = np.array([1.0, 1.0, 0.0])
    block = np.column_stack([np.array([0.0, 1.0, 1.0]), column, column])
    wanted = np.array([True, False, False])
    assert hidden(block, wanted).sigma == pytest.approx(np.sqrt(1.5))
    block[1, 2] = np.nextafter(1.0, 2.0)
    found = hidden(block, wanted)
    assert found.sigma == pytest.approx(1.0)
    assert holds(block, wanted, found.sigma * (1 - 1e-9))


def test_upper_bounds_of_a_vector():
    rng = np.random.default_rng(2)
    for _ in range(20):
        block, vector = rng.standard_normal((5, 3)), rng.standard_normal(3)
        wanted = np.array([True, False, True])
        ratio = np.linalg.norm(block @ vector) / np.linalg.norm(vector[wanted])
        assert ratio <= _ratio_above(block, vector, wanted) <= ratio * (1 + 1e-12)
    assert _ratio_above(np.zeros((2, 2)), np.array([1.0, 0.0]), np.array([True, True])) == 0.0


def least_delivered(gram, wanted):
    """λ_min of the Schur complement on the wanted coordinates of one Gram block, as defined."""
    inside = np.flatnonzero(wanted > 0.0)
    if not len(inside):
        return float("inf")
    outside = np.flatnonzero((wanted <= 0.0) & (gram.diagonal() < 1e300))
    complement = gram[np.ix_(inside, inside)]
    if len(outside):
        cross = gram[np.ix_(outside, inside)]
        inverse = np.linalg.pinv(gram[np.ix_(outside, outside)], rcond=1e-11, hermitian=True)
        complement = complement - cross.T @ inverse @ cross
    return float(np.linalg.eigvalsh(complement)[0])


def test_guesses_are_close_on_plain_blocks():
    rng = np.random.default_rng(3)
    for _ in range(10):
        block = rng.standard_normal((6, 4))
        wanted = np.array([True, False, True, False])
        value = plain_value(block, wanted)
        guess = all_least_delivered((block.T @ block)[None], wanted.astype(float)[None])
        assert guess == pytest.approx([value**2])
        vector = near_vector(block, wanted)
        assert np.linalg.norm(block @ vector) / np.linalg.norm(vector[wanted]) == pytest.approx(value, rel=1e-6)
    assert all_least_delivered(np.eye(2)[None], np.zeros((1, 2))).tolist() == [np.inf]


@pytest.mark.parametrize("seed", range(12))
def test_many_guesses_at_once_are_the_single_ones(seed):
    rng = np.random.default_rng(seed)
    order, count = int(rng.integers(2, 9)), int(rng.integers(1, 20))
    blocks = rng.normal(size=(count, int(rng.integers(1, order + 3)), order))  # singular ones among them
    grams = np.swapaxes(blocks, 1, 2) @ blocks
    wanted = (rng.random((count, order)) < 0.4).astype(float)
    if seed % 3 == 0:  # the last place is empty
        grams[:, -1, :] = grams[:, :, -1] = 0.0
        grams[:, -1, -1], wanted[:, -1] = 1e305, 0.0
    singly = [least_delivered(gram, mask) for gram, mask in zip(grams, wanted, strict=True)]
    assert all_least_delivered(grams, wanted) == pytest.approx(singly, rel=1e-8, abs=1e-8)


def test_guesses_without_anything_to_see():
    assert np.linalg.norm(near_vector(np.zeros((2, 2)), np.array([True, False]))) == pytest.approx(1.0)


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


def test_sizes_and_lists_name_columns_in_any_order() -> None:
    sized, listed = column_groups([2, 1], 3), column_groups([[0, 1], [2]], 3)
    assert sized == listed
    assert [part.tolist() for part in sized] == [[0, 1], [2]]
    assert column_groups(None, 2) == NodeColumns.of_sizes([1, 1])
    assert column_groups(sized, 3) is sized
    groups = column_groups([[0, 2], [3, 1]], 4)
    assert groups[-1].tolist() == [3, 1]
    assert [part.tolist() for part in groups[0:2]] == [[0, 2], [3, 1]]
    assert groups.sizes.tolist() == [2, 2]
    with pytest.raises(IndexError):
        groups[2]
    with pytest.raises(ValueError, match="the field is empty"):
        column_groups(None, 0)
    assert NodeColumns.of_sizes(np.ones(3)) != [0, 1, 2]


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([], "the field is empty"),
        ([2, 0], "node 1 has size 0"),
        ([2, 2], "add up to 4, but the matrix has 3"),
        ([[0], []], "entry 1 must be a non-empty list"),
        ([[0], [0.5]], "entry 1 must be a non-empty list"),
        ([[0, 1], [1]], "each of the 3 columns exactly once"),
    ],
)
def test_messages(groups: list[object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        column_groups(groups, 3)
