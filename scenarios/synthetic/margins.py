"""γ_k of a synthetic operator with the paper's zero rule and the direct check of its witness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from solvers import margin

ZERO = 1e-10
ZERO_RESIDUAL = 1e-9


@dataclass(frozen=True, slots=True)
class Measured:
    """`gamma` is zero exactly when the value is below 1e-10 and its witness leaves a residual below 1e-9."""

    gamma: float
    value: float
    support: tuple[int, ...]
    residual: float
    """‖Bh‖ of the stored unit witness, computed afresh: it must equal the value."""
    witness_ok: bool

    @property
    def zero(self) -> bool:
        return self.gamma == 0.0


def measure(B: NDArray[np.float64], groups: Sequence[int], k: int, *, zero: float = ZERO) -> Measured:
    """The exact margin, and whether its witness passes: unit length, at most 2k nodes, the claimed residual."""
    found = margin(B, list(groups), k=k)
    h = np.asarray(found.direction, dtype=np.float64)
    residual = float(np.linalg.norm(B @ h))
    owner = np.repeat(np.arange(len(groups)), groups)
    carried = {int(i) for i in owner[np.abs(h) > 0]}
    scale = max(1.0, float(np.linalg.norm(B, 2)) if B.size else 1.0)
    ok = (
        abs(float(np.linalg.norm(h)) - 1.0) <= 1e-9
        and len(carried) <= 2 * k
        and carried <= set(found.support)
        and abs(residual - found.value) <= 1e-8 * scale
    )
    gamma = 0.0 if found.value < zero and residual < ZERO_RESIDUAL else float(found.value)
    return Measured(gamma, float(found.value), tuple(int(i) for i in found.support), residual, ok)
