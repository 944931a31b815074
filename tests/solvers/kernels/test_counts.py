"""Least weights and light counts, each against all counts."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from certain_kinds import ALL, enough, random_kinds, sure
from uncertain_kinds import Uncertain

from solvers.kernels.counts import least_weight, light_counts


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
