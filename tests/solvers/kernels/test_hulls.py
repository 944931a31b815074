"""How many of each kind are enough: rows of hulls and least weights, against all counts."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog

from solvers.kernels.counts import least_weight, light_counts
from solvers.kernels.covering_minimum import _raised, definite, suffices, unsure
from solvers.kernels.covering_minimum import enough as covering_minimum_enough
from solvers.kernels.covers import _whole, separate

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


class Uncertain:
    """Kinds of uncertain matrices on a few nodes, one coordinate each; some are owned.

    Every choice is judged by definition.
    """

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.nodes, kinds = int(rng.integers(2, 4)), int(rng.integers(2, 5))
        self.sizes = rng.integers(1, 3, size=kinds)
        vectors = [self._vector(rng) for _ in range(kinds + 1)]
        masks = [sum(1 << int(i) for i in np.flatnonzero(v)) for v in vectors]
        self.parts = np.array([np.outer(v, v) for v in vectors[:kinds]])
        self.owned = np.outer(vectors[-1], vectors[-1])
        self.masks, self.radii = np.array(masks[:kinds]), rng.choice([0.0, 0.01, 0.04, 0.2], size=kinds)
        self.held, self.squares = np.array(masks[-1:]), rng.choice([0.0, 0.02], size=1)
        self.root = float(rng.choice([0.2, 0.4, 0.7]))
        self.shares = np.round(rng.random(int(self.sizes.sum())) * rng.choice([0.6, 1.0]), int(rng.integers(0, 2)))
        self.spread = (
            self.masks,
            self.radii,
            self.held,
            self.squares,
            np.array([(1 << self.nodes) - 1]),
            np.arange(self.nodes),
        )
        self.kind = np.repeat(np.arange(kinds), self.sizes)
        designs = np.array(list(product([0, 1], repeat=len(self.kind))))
        self.good = designs[[self.reaches([d[self.kind == k].sum() for k in range(kinds)]) for d in designs]]

    def _vector(self, rng: np.random.Generator) -> np.ndarray:
        vector = np.zeros(self.nodes)
        chosen = rng.choice(self.nodes, size=int(rng.integers(1, 3)), replace=False)
        vector[chosen] = rng.choice([1.0, -1.0, 2.0], size=len(chosen))
        return vector

    def reaches(self, counts) -> bool:
        counts = np.array(counts)
        there = [*((int(m), s) for m, s in zip(self.held, self.squares, strict=True))]
        there += [(int(m), c * r) for m, c, r in zip(self.masks, counts, self.radii, strict=True) if c]
        gram = self.owned + np.tensordot(counts.astype(float), self.parts, 1)
        parts = {i: 1 << i for i in range(self.nodes)}
        for _ in range(self.nodes):
            for mask, _ in there:
                joined = 0
                for part in parts.values():
                    joined |= part if part & mask else 0
                parts = {i: joined if part & mask else part for i, part in parts.items()}
        for part in set(parts.values()):
            columns = [i for i in range(self.nodes) if part >> i & 1]
            eta = np.sqrt(sum(square for mask, square in there if mask & part))
            level = np.linalg.eigvalsh(gram[np.ix_(columns, columns)])[0]
            if level < (self.root + eta) ** 2 + 1e-12:
                return False
        return True


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


def test_single_sums_are_definite_or_raised_by_their_radius() -> None:
    one, other, work = np.eye(2), np.ones((2, 2)), np.zeros((2, 2))
    assert definite(one, other, 1.0, 0.99, work)
    assert not definite(one, other, 1.0, 1.01, work)
    assert not definite(one, other, -1.0, 0.0, work)
    matrix, work = np.array([[1.0, 0.9], [0.9, 1.0]]), np.zeros((2, 2))
    assert covering_minimum_enough(np.array([[0, -1], [1, -1]]), matrix, matrix, 0.0, 0.5, work)
    assert not covering_minimum_enough(np.array([[0, -1], [0, 1]]), matrix, matrix, 0.0, 0.5, work)
    assert not covering_minimum_enough(ALL, matrix, matrix, 0.0, 0.5, work)
    assert _raised(0.25, 0.5, 0.0) == 0.25
    assert _raised(0.25, 0.5, 0.04) == pytest.approx(0.49)
    assert _raised(0.25, 0.5, 0.04) <= 0.49
    spread = (np.array([1, 3, 2]), np.array([0.0, 0.0, 0.1]))
    assert [unsure(spread, k) for k in range(3)] == [False, True, True]


@pytest.mark.parametrize("seed", range(60))
def test_counts_suffice_when_every_part_they_join_reaches(seed):
    field = Uncertain(seed)
    work = np.zeros_like(field.owned)
    for counts in product(*(range(size + 1) for size in field.sizes)):
        total = field.owned + np.tensordot(np.array(counts, float), field.parts, 1)
        given = np.array(counts, dtype=np.int64)
        found = suffices(ALL, field.spread, given, len(given), total, total, 0.0, field.root**2, field.root, work)
        assert found == field.reaches(counts)
        for known in range(len(counts)):  # what comes later is lent: never a no where the whole says yes
            lent = suffices(ALL, field.spread, given, known, total, total, 0.0, field.root**2, field.root, work)
            assert lent or not found


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
    assert _whole(np.array([1 / 3, 2 / 3, 0.0])).tolist() == [1, 2, 0]
    assert _whole(np.zeros(2)).tolist() == [0, 0]
    assert _whole(np.array([np.sqrt(2), 1.0])).max() > 1000


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
