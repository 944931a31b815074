"""Checks that may be wrong, and small fields gone through at once."""

from __future__ import annotations

import numpy as np
import pytest
from delivered_oracle import columns_of, holds, plain_value, questions
from random_fields import KINDS, lower_bound_holds, random_field, upper_bound_holds
from scipy import sparse

from solvers import Status, delivered_margin, support_margin, suspect_margin, wrong_check_margin
from solvers._all_supports import small_margin
from solvers._delivered import WHOLE, _superfluous, neighbourhood_of
from solvers._gram import make_field

PAIR = np.array([[-1.0, 1.0], [1.0, 0.0]])


@pytest.mark.parametrize(
    ("blocks", "options", "message"),
    [
        (None, {"suspects": -1}, "suspects: must be a whole number of at least 0, not -1"),
        (None, {"suspects": True}, "suspects: must be a whole number"),
        (None, {"suspects": 1, "k": 0}, "k: must be a whole number of at least 1, not 0"),
        (None, {"suspects": 1, "trusted": [2]}, "trusted: there is no block 2; there are 2"),
        (None, {"suspects": 1, "time_limit": -1}, "time_limit: must be a number of seconds"),
        ([1], {"suspects": 1}, "blocks: the sizes add up to 1, but the matrix has 2 rows"),
        ([[0], [0]], {"suspects": 1}, "blocks: the lists must name each of the 2 rows exactly once"),
        ([], {"suspects": 1}, "blocks: the list is empty"),
    ],
)
@pytest.mark.parametrize("solve", [suspect_margin, wrong_check_margin])
def test_wrong_calls_get_one_precise_line(solve, blocks, options, message):
    with pytest.raises(ValueError, match=r"^[^\n]*$") as caught:
        solve(PAIR, None, blocks, **({"k": 1} | options))
    assert message in str(caught.value)


def test_an_empty_delivery_and_no_suspect_are_refused():
    with pytest.raises(ValueError, match="deliver: names no column"):
        suspect_margin(PAIR, k=1, suspects=1, deliver=[])
    with pytest.raises(ValueError, match="suspects: no block may be wrong"):
        wrong_check_margin(PAIR, k=1, suspects=0)
    with pytest.raises(ValueError, match="suspects: no block may be wrong"):
        wrong_check_margin(PAIR, k=1, suspects=1, trusted=[0, 1])


def case(kind, seed):
    """A small field with blocks of rows, some of them trusted, and something to deliver."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    B, sizes = random_field(kind, seed, n=int(rng.integers(2, 5)), dims="1" if seed % 2 else "mixed")
    B = np.asarray(B, dtype=float)[:8]
    if rng.random() < 0.5:
        B = np.vstack([B, np.eye(B.shape[1]) * rng.choice([1.0, 0.5, 2.0])])
    ends = np.cumsum(sizes)
    groups = [list(range(end - size, end)) for size, end in zip(sizes, ends, strict=True)]
    blocks, row = [], 0
    while row < len(B):
        height = min(len(B) - row, int(rng.integers(1, 4)))
        blocks.append(list(range(row, row + height)))
        row += height
    trusted = {b for b in range(len(blocks)) if rng.random() < 0.3}
    count = B.shape[1] if seed % 3 == 0 else int(rng.integers(1, B.shape[1] + 1))
    deliver = {int(c) for c in rng.choice(B.shape[1], size=count, replace=False)}
    return B, groups, blocks, trusted, deliver


def _check(B, groups, blocks, trusted, found, *, a, deliver, checks, loose):
    asked = list(questions(B, groups, blocks, size=2, removed=2 * a, trusted=trusted, deliver=deliver, checks=checks))
    assert found.status is Status.EXACT
    assert all(holds(block, wanted, found.lower) for block, wanted in asked)
    if not loose:
        truth = min(plain_value(block, wanted) for block, wanted in asked)
        assert found.value == pytest.approx(truth, rel=1e-8, abs=1e-9 * max(1.0, np.linalg.norm(B, 2)))
    h, v = found.direction, found.disturbance
    counted = np.concatenate([h[sorted(deliver)], v if checks else []])
    assert np.linalg.norm(counted) == pytest.approx(1.0)
    assert set(np.flatnonzero(v)) <= set(columns_of(blocks, found.wrong))
    assert set(np.flatnonzero(h)) <= set(columns_of(groups, found.support))
    assert len(found.support) <= 2
    assert len(found.wrong) <= 2 * a
    assert not set(found.wrong) & trusted
    rounding = 1e-12 * np.linalg.norm(B) * np.linalg.norm(h)
    assert np.linalg.norm(B @ h + v) <= found.upper * (1 + 1e-9) + rounding


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_agrees_with_enumeration_and_holds_in_exact_arithmetic(kind, seed):
    B, groups, blocks, trusted, deliver = case(kind, seed)
    loose = kind == "ill-scaled"
    options = {"k": 1, "trusted": sorted(trusted)}
    for a in (0, 1):
        values = suspect_margin(B, groups, blocks, suspects=a, deliver=sorted(deliver), **options)
        _check(B, groups, blocks, trusted, values, a=a, deliver=deliver, checks=False, loose=loose)
    if len(trusted) == len(blocks):
        return
    named = wrong_check_margin(B, groups, blocks, suspects=1, **options)
    _check(B, groups, blocks, trusted, named, a=1, deliver=set(), checks=True, loose=loose)
    both = wrong_check_margin(B, groups, blocks, suspects=1, with_values=True, **options)
    everything = set(range(B.shape[1]))
    _check(B, groups, blocks, trusted, both, a=1, deliver=everything, checks=True, loose=loose)
    everywhere = suspect_margin(B, groups, blocks, suspects=1, **options)
    assert both.lower <= min(named.upper, everywhere.upper)
    if not loose:
        assert both.zero == everywhere.zero


def test_orthogonal_columns_are_no_strangers():
    """G_ij = 0 by cancellation: without one of the two rows the columns are no longer
    orthogonal.
    """
    B = np.array([[1.0, 1.0], [1.0, -1.0], [0.5, 0.0], [0.0, 0.5]])
    groups, blocks = [[0], [1]], [[0], [1], [2], [3]]
    values = suspect_margin(B, k=1, suspects=1, trusted=[0, 2])
    _check(B, groups, blocks, {0, 2}, values, a=1, deliver={0, 1}, checks=False, loose=False)
    named = wrong_check_margin(B, k=1, suspects=1, trusted=[0, 2])
    _check(B, groups, blocks, {0, 2}, named, a=1, deliver=set(), checks=True, loose=False)
    assert len(values.support) == len(named.support) == 2


@pytest.mark.parametrize("seed", range(30))
def test_small_whole_numbers(seed):
    rng = np.random.default_rng(seed)
    B = (rng.integers(-2, 3, size=(8, 4)) * (rng.random((8, 4)) < 0.7)).astype(float)
    groups, blocks = [[i] for i in range(4)], [[i] for i in range(8)]
    named = wrong_check_margin(B, k=1, suspects=1)
    _check(B, groups, blocks, set(), named, a=1, deliver=set(), checks=True, loose=False)
    values = suspect_margin(B, k=1, suspects=1, deliver=[0, 3])
    _check(B, groups, blocks, set(), values, a=1, deliver={0, 3}, checks=False, loose=False)


def test_values_are_right_although_the_wrong_check_has_no_name():
    """Two nodes, each with three labels and a tie: a wrong label is outvoted.

    A node of one check alone has no protection.
    """
    eye = np.eye(2)
    B = np.vstack([eye, eye, eye, eye[0] - eye[1]])
    assert suspect_margin(B, k=1, suspects=1).value > 0.9
    assert wrong_check_margin(B, k=1, suspects=1).value > 0.3
    lonely = np.vstack([np.kron(np.ones((5, 1)), np.eye(3)[:2]), np.eye(3)[2:]])
    assert suspect_margin(lonely, k=1, suspects=1).value == 0.0
    assert suspect_margin(lonely, k=1, suspects=1, deliver=[0, 1]).value == pytest.approx(np.sqrt(3.0))
    assert suspect_margin(lonely, k=1, suspects=1, trusted=[10]).value == pytest.approx(1.0)
    assert wrong_check_margin(lonely, k=1, suspects=1).value == 0.0


def test_naming_needs_more_than_values_of_something_else():
    """D is certain whatever the last two checks say; which of them is wrong is anyone's guess."""
    B = np.array([[1.0, 0.0]] * 5 + [[0.0, 1.0]])
    assert suspect_margin(B, k=1, suspects=1, deliver=[0]).value == pytest.approx(np.sqrt(3.0))
    assert wrong_check_margin(B, k=1, suspects=1).value == 0.0


def test_a_disturbance_that_touches_nothing_is_seen_as_it_is():
    B = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    found = wrong_check_margin(B, k=1, suspects=1, trusted=[0, 1])
    assert (found.value, found.support, found.wrong) == (1.0, (), (2,))
    assert found.disturbance.tolist() == [0.0, 0.0, 1.0]


def test_no_suspect_is_the_delivered_margin():
    rng = np.random.default_rng(0)
    B = rng.standard_normal((9, 7))
    plain = delivered_margin(B, None, [1, 4], k=2)
    assert suspect_margin(B, k=2, suspects=0, deliver=[1, 4]).value == pytest.approx(plain.value)


def test_rows_of_a_neighbourhood_keep_their_blocks():
    n = 3000
    ring = sparse.eye_array(n) - sparse.eye_array(n, k=1) - sparse.eye_array(n, k=1 - n)
    B = sparse.csr_array(sparse.vstack([ring, *[0.5 * sparse.eye_array(n)] * 3]))
    near = suspect_margin(B, k=1, suspects=1, deliver=[1500])
    assert near.status is Status.EXACT
    rest = np.delete(np.arange(B.shape[0]), list(near.wrong))
    assert np.linalg.norm(B[rest] @ near.direction) == pytest.approx(near.value)
    assert np.linalg.norm(B @ near.direction + near.disturbance) == pytest.approx(near.value)


def test_a_time_limit_gives_bounds_and_never_a_guess():
    B = np.random.default_rng(1).standard_normal((60, 30))
    found = suspect_margin(B, k=3, suspects=2, time_limit=0.0)
    assert found.status is Status.BOUNDED
    assert found.lower <= found.value <= found.upper


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dims", ["1", "2", "mixed"])
@pytest.mark.parametrize("seed", range(4))
def test_both_paths_agree_and_both_bounds_hold(kind, dims, seed):
    B, sizes = random_field(kind, seed, dims=dims)
    B = np.asarray(B, dtype=float)
    for size in (1, 2, 4):
        plain, slow = small_margin(B, sizes, size), support_margin(B, sizes, size=size, method="search")
        if plain is None:
            assert kind == "ill-scaled" or len(sizes) > 6
            continue
        assert plain.value == pytest.approx(slow.value, rel=1e-9, abs=1e-12)
        assert (plain.status, plain.zero, plain.support_size) == (slow.status, slow.zero, slow.support_size)
        assert plain.lower >= slow.lower * (1.0 - 1e-9)
        assert lower_bound_holds(B, sizes, size, plain.lower)
        assert upper_bound_holds(B, plain.direction, plain.upper)
        assert np.linalg.norm(plain.direction) == pytest.approx(1.0, abs=1e-12)
        assert len(plain.support) <= size
        outside = np.delete(np.arange(B.shape[1]), np.concatenate([plain.groups[i] for i in plain.support]))
        assert not plain.direction[outside].any()


@pytest.mark.parametrize("seed", range(6))
def test_units_are_groups_of_columns_in_any_order(seed):
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((9, 8)) * (rng.random((9, 8)) < 0.6)
    units = np.array_split(rng.permutation(8), 4)
    plain, slow = small_margin(B, units, 2), support_margin(B, units, size=2, method="search")
    assert plain is not None
    assert plain.value == pytest.approx(slow.value, rel=1e-9, abs=1e-12)
    assert plain.support == slow.support
    assert np.linalg.norm(B @ plain.direction) == pytest.approx(plain.upper, rel=1e-9, abs=1e-12)
    same = small_margin(sparse.csr_array(B), units, 2)
    assert same is not None
    assert (same.value, same.lower) == pytest.approx((plain.value, plain.lower), rel=1e-12)
    assert same.support == plain.support


@pytest.mark.parametrize("gap", [0.0, 1e-15, 1e-12, 1e-9, 1e-6, 1e-3])
@pytest.mark.parametrize("size", [2, 3])
def test_columns_that_are_nearly_dependent_are_told_from_dependent_ones(gap, size):
    rng = np.random.default_rng(7)
    B = rng.standard_normal((7, 5))
    B[:, 3] = 2.0 * B[:, 1]
    B[0, 3] += gap
    plain = support_margin(B, size=size)
    assert plain.zero == (gap < 1e-11)
    assert plain.status is support_margin(B, size=size, method="search").status
    assert set(plain.support) >= {1, 3}
    assert lower_bound_holds(B, [1] * 5, size, plain.lower)
    assert upper_bound_holds(B, plain.direction, plain.upper)


def test_a_support_is_no_larger_than_its_witness():
    isolated = np.array([[1.0, -1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.1]])
    found = small_margin(isolated, None, 2)
    assert found is not None
    assert (found.support, found.value) == ((2,), 0.1)
    unanchored = np.array([[1.0, -1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    found = small_margin(unanchored, None, 2)
    assert found is not None
    assert found.zero
    assert found.support in {(3,), (0, 1)}


@pytest.mark.parametrize(
    "B",
    [
        np.full((2, 2), np.nan),
        np.array([[np.inf, 1.0]]),
        np.array([[1e-200, 1.0]]),
        np.array([[1e200, 1.0]]),
        np.zeros((2, 2)),
        np.zeros((0, 2)),
        np.array([[1, 2], [3, 4]]),
        np.zeros(3),
        [[1.0, 2.0]],
        sparse.coo_array(np.eye(3)),
        np.ones((1000, 900)),
    ],
)
def test_what_is_not_plain_or_not_small_is_left_to_the_search(B):
    assert small_margin(B, None, 2) is None


def test_larger_supports_of_many_nodes_are_left_to_the_search():
    assert small_margin(np.eye(40), None, 4) is None
    assert small_margin(np.eye(12), [4, 4, 4], 2) is not None


def path(n):
    return sparse.csr_array(sparse.eye_array(n - 1, n, k=1) - sparse.eye_array(n - 1, n))


def test_small_fields_and_much_of_a_field_are_taken_whole() -> None:
    near = neighbourhood_of(path(10), None, [4], radius=1)
    assert (near.field.n, near.units.tolist()) == (10, [4])
    n = WHOLE + 100
    near = neighbourhood_of(path(n), None, range(0, n, 2), radius=3)
    assert near.field.n == n


def test_reach_rows_and_the_way_back():
    n = WHOLE + 100
    for matrix in (path(n), path(n).tocsc()):
        near = neighbourhood_of(matrix, None, [50], radius=3)
        assert near.members.tolist() == list(range(47, 54))
        assert near.rows.tolist() == list(range(46, 54))
        dense = matrix.toarray()[np.ix_(near.rows, near.members)]
        assert np.array_equal(near.field.matrix.toarray() * 2.0**near.field.exponent, dense)
        assert near.names((0, 3)) == (47, 50)
        assert np.flatnonzero(near.embed((0, 3), np.array([1.0, 2.0]))).tolist() == [47, 50]


def test_units_are_stepped_over_whole():
    n = WHOLE + 100
    groups = [[0, n - 1], *([i] for i in range(1, n - 1))]
    near = neighbourhood_of(path(n), groups, [3], radius=4)
    assert near.members.tolist() == [*range(8), n - 2]
    assert near.field.dims.tolist() == [2, *([1] * 8)]
    assert near.units.tolist() == [3]


def test_twins_agree_column_by_column_to_the_last_bit() -> None:
    B = np.array([[1.0, 1.0, -1.0, 1.0, 2.0], [0.0, 0.0, 0.0, 1.0, 0.0]])
    field = make_field(B, None)
    assert _superfluous(field, np.zeros(5, bool)).tolist() == [1, 2]
    assert _superfluous(field, np.array([False, True, False, False, False])).tolist() == [2]
    assert _superfluous(make_field(np.zeros((1, 2)), None), np.zeros(2, bool)).tolist() == []
    a, b = np.array([1.0, 2.0]), np.array([0.0, 1.0])
    field = make_field(np.column_stack([a, b, a, -b, b, a]), [2, 2, 2])
    assert _superfluous(field, np.zeros(6, bool)).tolist() == [1]
    B = np.array([[1.0, np.nextafter(1.0, 2.0)], [1.0, 1.0]])
    assert _superfluous(make_field(B, None), np.zeros(2, bool)).tolist() == []
