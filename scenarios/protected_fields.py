"""Margins of delivered values, with and without suspect checks, on hostile fields: both bounds in exact rationals, and the checker's word.

The judge takes every support and every choice of checks to set aside, projects the columns that are not delivered out by Gram and
Schmidt in rationals, and eliminates what is left. The checker must prove the lower bound, and must not prove a millionth more than the upper one.
"""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import Any

MANY_ROWS = 7  # of fields where no check is suspect: every pair of rows would be set aside with every support


def protected_case(matrix: Any, sizes: list[int], k: int, seed: int) -> dict[str, bool]:
    """Which of the four statements hold; a field that the solver refuses claims nothing."""
    import numpy as np
    from scipy import sparse

    from rrf_design.certificates.checker.protection import ProtectionClaim, prove_protection
    from solvers import delivered_margin, suspect_margin

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
            made = delivered_margin(matrix, sizes, deliver, k=k)
    except ValueError as refusal:
        words = "rescale the field" in str(refusal)
        return dict.fromkeys(("lower_ok", "upper_ok", "proved_ok", "refused_ok"), words)
    starts = np.cumsum([0, *sizes])
    groups = [np.arange(a, b) for a, b in pairwise(starts)]
    low, high = True, False
    for support in combinations(range(len(sizes)), min(2 * k, len(sizes))):
        index = np.concatenate([groups[i] for i in support])
        wanted = np.isin(index, deliver)
        if not wanted.any():
            continue
        for aside in combinations(suspects, min(2 * wrong, len(suspects))):
            gram = complement(np.delete(matrix, aside, axis=0)[:, index], wanted)
            low = low and semidefinite(gram, made.lower)
            high = high or not semidefinite(gram, made.upper, strictly=True)

    def proved(floor: float) -> bool:
        owner = np.array([row if row in suspects else -1 for row in range(rows)])
        claim = ProtectionClaim(sparse.csr_array(matrix), tuple(groups), deliver, 2 * k, floor, owner, 2 * wrong)
        return str(prove_protection(claim).verdict) == "proved"

    more = made.upper * (1 + 1e-6) if made.upper > 1e-300 else made.upper + 5e-324
    return {
        "lower_ok": low,
        "upper_ok": high,
        "proved_ok": made.lower == 0.0 or proved(made.lower),
        "refused_ok": not np.isfinite(more) or not proved(more),
    }


def complement(block: Any, wanted: Any) -> list[list[Any]]:
    """The Gram matrix of the wanted columns with the others projected out, exactly."""
    from flint import fmpq, fmpq_mat

    def dot(a: Any, b: Any) -> Any:
        return (a.transpose() * b)[0, 0]

    height = max(len(block), 1)
    given = [[float(x).as_integer_ratio() for x in column] or [(0, 1)] for column in block.T]
    columns = [fmpq_mat(height, 1, [fmpq(*pair) for pair in column]) for column in given]
    basis: list[Any] = []
    for index, own in sorted(enumerate(wanted), key=lambda item: bool(item[1])):
        for b in basis:
            columns[index] -= b * (dot(b, columns[index]) / dot(b, b))
        if not own and dot(columns[index], columns[index]) != 0:
            basis.append(columns[index])
    kept = [column for column, own in zip(columns, wanted, strict=True) if own]
    return [[dot(a, b) for b in kept] for a in kept]


def semidefinite(gram: list[list[Any]], level: float, *, strictly: bool = False) -> bool:
    """Is the matrix minus level²·I positive semidefinite (definite with `strictly`)?"""
    from flint import fmpq

    square = fmpq(*float(level).as_integer_ratio()) ** 2
    order = len(gram)
    work = [[gram[i][j] - (square if i == j else 0) for j in range(order)] for i in range(order)]
    for p in range(order):
        pivot = work[p][p]
        if pivot < 0 or (pivot == 0 and (strictly or any(work[i][p] != 0 for i in range(p + 1, order)))):
            return False
        for i in range(p + 1, order) if pivot != 0 else ():
            ratio = work[i][p] / pivot
            for j in range(p + 1, order):
                work[i][j] -= ratio * work[p][j]
    return True
