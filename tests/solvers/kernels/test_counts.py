"""Least counts, their hulls and the covering program, each against the obvious way."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog
from uncertain_kinds import Uncertain

from solvers.kernels.counts import least_weight, light_counts, separate, whole

ALL = np.zeros((0, 0), dtype=np.int64)  # no sets of coordinates: all of them at once
NONE = np.zeros(0, dtype=np.int64)


def sure(kinds: int, width: int):
    """Nothing is uncertain."""
    return np.zeros(kinds, dtype=np.int64), np.zeros(kinds), NONE, np.zeros(0), NONE, np.arange(width)


def random_kinds(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """What is owned, one matrix per kind, how many there are of each, and a threshold."""
    rng = np.random.default_rng(seed)
    width, kinds = int(rng.integers(1, 4)), int(rng.integers(1, 5))
    vectors = rng.integers(-1, 2, size=(kinds, width)).astype(float)
    parts = np.einsum("ki,kj->kij", vectors, vectors)
    return 0.3 * np.eye(width) * rng.integers(0, 2), parts, rng.integers(1, 4, size=kinds), 0.1 + 0.5 * rng.random()


def enough(base: np.ndarray, parts: np.ndarray, counts, shift: float) -> bool:
    return bool(np.linalg.eigvalsh(base + np.tensordot(np.array(counts, float), parts, 1))[0] > shift + 1e-12)


def all_least(base, parts, sizes, shift) -> set[tuple[int, ...]]:
    good = {c for c in product(*(range(s + 1) for s in sizes)) if enough(base, parts, c, shift)}
    return {c for c in good if not any(o != c and all(a <= b for a, b in zip(o, c, strict=True)) for o in good)}


@pytest.mark.parametrize("seed", range(40))
def test_least_weights_are_those_of_all_counts(seed):
    base, parts, sizes, shift = random_kinds(seed)
    expected = all_least(base, parts, sizes, shift)
    rng = np.random.default_rng(seed)
    weights = [np.sort(rng.integers(1, 6, size=s)) for s in sizes]
    prefix = np.concatenate([np.append(0, np.cumsum(w)) for w in weights])
    starts = np.cumsum([0, *(s + 1 for s in sizes[:-1])])
    best = min((sum(int(w[:c].sum()) for w, c in zip(weights, m, strict=True)) for m in expected), default=-1)
    spread = sure(len(sizes), len(base))
    status, least = least_weight(ALL, spread, base, parts, sizes, prefix, starts, shift, 1.0)
    assert (status, least) == ((1, best) if best >= 0 else (-1, least))
    table = np.zeros((len(sizes), sizes.max() + 1))
    for k, w in enumerate(weights):
        table[k, 1 : len(w) + 1] = np.cumsum(w)
    out = np.zeros(len(sizes), dtype=np.int64)
    found = light_counts(ALL, spread, base, parts, sizes, table, float(best), shift, 1.0, False, out)
    assert found == (1 if best == 0 else 0)  # nothing is lighter than the lightest, but nothing at all weighs nothing
    found = light_counts(ALL, spread, base, parts, sizes, table, best + 0.5, shift, 1.0, False, out)
    assert found == (best >= 0)
    if found:
        assert tuple(out) in expected
        assert sum(table[k, c] for k, c in enumerate(out)) == best


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
def test_least_weights_with_radii_are_those_of_all_counts_whatever_their_sign(seed):
    field = Uncertain(seed)
    weights = np.random.default_rng(seed).integers(-3, 4, size=len(field.kind))
    rising = [np.sort(weights[field.kind == k]) for k in range(len(field.sizes))]
    prefix = np.concatenate([np.append(0, np.cumsum(w)) for w in rising])
    starts = np.cumsum([0, *(s + 1 for s in field.sizes[:-1])])
    status, least = least_weight(
        ALL, field.spread, field.owned, field.parts, field.sizes, prefix, starts, field.root**2, field.root
    )
    assert status == (1 if len(field.good) else -1)
    if len(field.good):
        assert least == (field.good @ weights).min()


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
