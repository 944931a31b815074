"""Margins of delivered values, with and without suspect checks, on hostile fields: both bounds in
exact rationals, and the checker's word.

The judge takes every support and every choice of checks to set aside. The checker must prove the
lower bound, and must not prove a millionth more than the upper one.
"""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import Any

import numpy as np
from scipy import sparse

from rrf_design.checker import ProtectionClaim, prove_protection
from scenarios.kit.exact_elimination import ExactGram
from solvers import delivered_margin, suspect_margin

MANY_ROWS = 7  # of fields where no check is suspect: every pair of rows would be set aside with every support


def protected_case(matrix: Any, sizes: list[int], k: int, seed: int, *, method: str = "auto") -> dict[str, bool]:
    """Which of the four statements hold; a field that the solver refuses claims nothing.

    `method` is that of `delivered_margin`.
    """
    rng = np.random.default_rng([3, seed])
    rows, columns = matrix.shape
    deliver = np.flatnonzero(rng.random(columns) < 0.5)
    deliver = deliver if len(deliver) else np.array([0])
    wrong = int(rng.integers(0, 2)) if rows < MANY_ROWS else 0
    trusted = np.flatnonzero(rng.random(rows) < 0.3).tolist()
    suspects = [row for row in range(rows) if row not in trusted] if wrong else []
    try:
        if wrong:
            made: Any = suspect_margin(matrix, sizes, [1] * rows, k=k, suspects=wrong, trusted=trusted, deliver=deliver)
        else:
            made = delivered_margin(matrix, sizes, deliver, k=k, method=method)
    except ValueError as refusal:
        words = "rescale the field" in str(refusal)
        return dict.fromkeys(("lower_ok", "upper_ok", "proved_ok", "refused_ok"), words)
    starts = np.cumsum([0, *sizes])
    groups = [np.arange(a, b) for a, b in pairwise(starts)]
    low, high = True, False
    grams = {
        aside: ExactGram(np.delete(matrix, aside, axis=0))
        for aside in combinations(suspects, min(2 * wrong, len(suspects)))
    }
    for support in combinations(range(len(sizes)), min(2 * k, len(sizes))):
        index = np.concatenate([groups[i] for i in support])
        wanted = np.isin(index, deliver)
        if not wanted.any():
            continue
        for gram in grams.values():
            low = low and gram.above(index.tolist(), made.lower, wanted=wanted)
            high = high or not gram.above(index.tolist(), made.upper, wanted=wanted, strictly=True)

    def proved(floor: float) -> bool:
        owner = np.array([row if row in suspects else -1 for row in range(rows)])
        claim = ProtectionClaim(sparse.csr_array(matrix), tuple(groups), deliver, 2 * k, floor, owner, 2 * wrong)
        return str(prove_protection(claim).outcome) == "proved"

    more = made.upper * (1 + 1e-6) if made.upper > 1e-300 else made.upper + 5e-324
    return {
        "lower_ok": low,
        "upper_ok": high,
        "proved_ok": made.lower == 0.0 or proved(made.lower),
        "refused_ok": not np.isfinite(more) or not proved(more),
    }
