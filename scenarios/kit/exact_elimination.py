"""Semidefinite or not, in exact arithmetic: the judge of the rigour scenario, who shares nothing
with solver or verifier.

Entries of B are doubles, so B = A/2ᵉ with whole numbers A, and a level is a quotient p/q: BᵀB −
(p/q)²·P ⪰ 0 exactly when q²AᵀA − p²4ᵉ·P ⪰ 0, a matrix of whole numbers. It is eliminated in
rationals; P keeps the delivered columns, which come last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class ExactGram:
    """BᵀB of a small dense matrix in whole numbers, computed once for all supports."""

    def __init__(self, matrix: Any) -> None:
        from flint import fmpz_mat

        pairs = [float(x).as_integer_ratio() for x in matrix.ravel()]
        self.exponent = max((denominator.bit_length() - 1 for _, denominator in pairs), default=0)
        whole = [top << (self.exponent - (bottom.bit_length() - 1)) for top, bottom in pairs]
        rows = fmpz_mat(*matrix.shape, whole)
        self.gram = rows.transpose() * rows

    def above(self, columns: Sequence[int], level: float, *, wanted: Any = None, strictly: bool = False) -> bool:
        """Is ‖Bh‖ ≥ level·‖h_D‖ for every h on these columns (with `strictly`: more, where h_D ≠
        0)? Without `wanted` D is everything.
        """
        from flint import fmpq

        top, bottom = float(level).as_integer_ratio()
        shift, scale = top * top << (2 * self.exponent), bottom * bottom
        inside = [True] * len(columns) if wanted is None else [bool(one) for one in wanted]
        order = sorted(range(len(columns)), key=lambda place: inside[place])
        work = [[fmpq(scale * self.gram[columns[i], columns[j]]) for j in order] for i in order]
        first = inside.count(False)
        for p in range(first, len(order)):
            work[p][p] -= shift
        return semidefinite(work, first if strictly else None)


def semidefinite(work: list[list[Any]], definite_from: int | None = None) -> bool:
    """Is a symmetric matrix of exact numbers positive semidefinite? It is eliminated in place.

    Pivots from `definite_from` on must be positive.
    """
    size = len(work)
    for p in range(size):
        pivot = work[p][p]
        if pivot < 0 or (definite_from is not None and p >= definite_from and pivot == 0):
            return False
        if pivot == 0:
            if any(work[i][p] != 0 for i in range(p + 1, size)):
                return False
            continue
        for i in range(p + 1, size):
            if work[i][p] != 0:
                ratio = work[i][p] / pivot
                row, own = work[i], work[p]
                for j in range(i, size):
                    row[j] -= ratio * own[j]
                    work[j][i] = row[j]
    return True
