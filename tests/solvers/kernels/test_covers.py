"""Rows of hulls against linear programs over every design, and whole weights."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from certain_kinds import ALL, enough, random_kinds, sure
from scipy.optimize import linprog
from uncertain_kinds import Uncertain

from solvers.kernels.covers import separate, whole


@pytest.mark.parametrize("seed", range(40))
def test_a_share_is_cut_off_exactly_when_it_lies_outside_the_hull(seed):
    base, parts, sizes, shift = random_kinds(seed)
    rng = np.random.default_rng(seed)
    shares = np.round(rng.random(int(sizes.sum())), 1) * rng.choice([0.5, 1.0])
    spread = sure(len(sizes), len(base))
    status, bound, weights = separate(ALL, spread, base, parts, sizes, shares, shift, 1.0, 1.0 - 1e-9, False)
    kind = np.repeat(np.arange(len(sizes)), sizes)
    designs = np.array(list(product([0, 1], repeat=len(kind))))
    good = np.array([enough(base, parts, [d[kind == k].sum() for k in range(len(sizes))], shift) for d in designs])
    if not good.any():
        assert status == -1
        return
    # the share lies in the hull of an up-set when a mixture of good designs is nowhere above it
    mixture = linprog(
        np.zeros(good.sum()),
        A_ub=designs[good].T,
        b_ub=shares + 1e-9,
        A_eq=np.ones((1, good.sum())),
        b_eq=[1.0],
        method="highs",
    )
    assert (status == 1) == (mixture.status == 2)
    if status == 1:
        assert (designs[good] @ weights >= bound).all()
        assert weights @ shares < bound


def test_weights_become_whole_numbers():
    assert whole(np.array([1 / 3, 2 / 3, 0.0])).tolist() == [1, 2, 0]
    assert whole(np.zeros(2)).tolist() == [0, 0]
    assert whole(np.array([np.sqrt(2), 1.0])).max() > 1000


def separated(field: Uncertain, *, both: bool):
    return separate(
        ALL,
        field.spread,
        field.owned,
        field.parts,
        field.sizes,
        field.shares,
        field.root**2,
        field.root,
        1.0 - 1e-9,
        both,
    )


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("seed", range(80))
def test_rows_with_radii_hold_for_all_that_reach(seed, both):
    field = Uncertain(seed)
    status, bound, weights = separated(field, both=both)
    if status == -1:
        assert not len(field.good)
    if status == 1:
        assert (field.good @ weights >= bound).all()
        assert both or (weights >= 0).all()


@pytest.mark.parametrize("seed", range(80))
def test_with_leaving_out_a_share_is_cut_off_exactly_when_it_lies_outside_the_hull(seed):
    field = Uncertain(seed)
    status, bound, weights = separated(field, both=True)
    if not len(field.good):
        assert status in (-1, 1)  # one row may be enough to say so, or only all of them together
        return
    harmless = np.array([r == 0.0 and m & (m - 1) == 0 for r, m in zip(field.radii, field.masks, strict=True)])[
        field.kind
    ]
    mixture = linprog(  # of good designs: equal to the share, but for members that never do harm
        np.zeros(len(field.good)),
        A_ub=np.vstack([field.good.T, -field.good.T[~harmless]]),
        b_ub=np.concatenate([field.shares, -field.shares[~harmless]]) + 1e-9,
        A_eq=np.ones((1, len(field.good))),
        b_eq=[1.0],
        method="highs",
    )
    assert (status == 1) == (mixture.status == 2)
    if status == 1:
        assert weights @ field.shares < bound


@pytest.mark.parametrize("seed", range(40))
def test_on_sets_of_coordinates_each_of_them_must_be_enough(seed):
    base, parts, sizes, shift = random_kinds(seed)
    rng = np.random.default_rng(seed)
    width = len(base)
    sets = np.array([[0, -1], [0, 1], [1, 2], [2, -1]])
    sets = sets[sets.max(axis=1) < width]
    shares = np.round(rng.random(int(sizes.sum())), 1)
    spread = sure(len(sizes), len(base))
    status, bound, weights = separate(sets, spread, base, parts, sizes, shares, shift, 1.0, 1.0 - 1e-9, False)
    kind = np.repeat(np.arange(len(sizes)), sizes)
    least = None
    for design in product([0, 1], repeat=len(kind)):
        counts = [int(np.array(design)[kind == k].sum()) for k in range(len(sizes))]
        places = [row[row >= 0] for row in sets]
        if all(enough(base[np.ix_(p, p)], parts[:, p[:, None], p], counts, shift) for p in places):
            left = int(weights @ np.array(design))
            least = left if least is None else min(least, left)
    if least is None:
        assert status == -1
    else:
        assert bound == (least if status > 0 else 0)
        assert status == 0 or weights @ shares < bound
