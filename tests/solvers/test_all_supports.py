"""Small fields without a compiler: the same margin as the compiled search and the oracle, bounds
that hold in exact arithmetic, and what is left to the search.
"""

from __future__ import annotations

import numpy as np
import pytest
from random_fields import KINDS, lower_bound_holds, random_field, upper_bound_holds
from scipy import sparse

from solvers import support_margin
from solvers._all_supports import small_margin


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
