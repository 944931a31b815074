"""Two explanations of one measurement that nobody can tell apart, as far apart as the margin
allows.

Let h attain γ. Split its units (and the wrong blocks of v, where checks are suspect) into halves,
e₁ − e₂ = τh with at most k units each, and let the measurement be the mean of what both predict.
Each misses it by τ‖Bh + v‖/2, which is at most ε for τ = 2ε/γ: both are admissible, and they differ
by τ in what is delivered. No method can promise a smaller error than τ/2 there. At γ = 0 they may
differ by anything; `radius` says how far answers can plausibly be apart.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers._faulty_checks import SuspectMargin, row_blocks
from solvers.result import Margin

ROUNDING = 1e-12  # the distance is shortened by this share, so that rounding keeps both within ε


@dataclass(frozen=True, slots=True)
class RivalPair:
    """Two errors (and disturbances of checks), and one measurement that both explain within
    `residual` ≤ ε.
    """

    first: NDArray[np.float64]  # e₁, (coordinates,)
    second: NDArray[np.float64]  # e₂
    first_disturbance: NDArray[np.float64]  # u₁, (rows,); zero unless checks are suspect
    second_disturbance: NDArray[np.float64]
    measured: NDArray[np.float64]  # (rows,): the syndrome
    distance: float
    """Of the two, in the norm that the margin divides by: over what is delivered."""
    residual: float

    def __post_init__(self) -> None:
        for array in (self.first, self.second, self.first_disturbance, self.second_disturbance, self.measured):
            array.setflags(write=False)


def rival_pair(
    B: Any, found: Margin | SuspectMargin, *, epsilon: float, radius: float, blocks: Any = None
) -> RivalPair:
    """The pair at distance min(radius, 2ε/γ), from a margin of B and its witness.

    `blocks` as they were given to `suspect_margin`. The fields themselves are y − first and y −
    second, whatever the answers y.

    >>> import numpy as np
    >>> from solvers import margin, rival_pair
    >>> B = np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0], [1.0, 0.0, 0.0]])
    >>> pair = rival_pair(B, margin(B, k=1), epsilon=0.1, radius=100.0)
    >>> round(pair.distance, 4)  # 2 · 0.1 / 0.618
    0.3236
    """
    if not 0.0 <= epsilon < math.inf:
        raise ValueError(f"epsilon: must be a finite number of at least 0, not {epsilon!r}")
    if not 0.0 < radius < math.inf:
        raise ValueError(f"radius: must be a finite number above 0, not {radius!r}")
    rows = B.shape[0]
    v = found.disturbance if isinstance(found, SuspectMargin) else np.zeros(rows)
    lost = float(np.linalg.norm(B @ found.direction + v))
    reach = 2.0 * epsilon / lost if lost > 0.0 else math.inf
    if found.zero:
        reach = math.inf  # what is left of Bh is rounding
    distance = min(radius, reach * (1.0 - ROUNDING))
    h, v = distance * found.direction, distance * v
    first, other = np.zeros_like(h), np.zeros(rows)
    for unit in found.support[: (len(found.support) + 1) // 2]:
        first[found.groups[unit]] = h[found.groups[unit]]
    if isinstance(found, SuspectMargin):
        parts = row_blocks(blocks, rows)
        for block in found.wrong[: (len(found.wrong) + 1) // 2]:
            other[parts[block]] = v[parts[block]]
    second, second_disturbance = first - h, other - v
    one, two = B @ first + other, B @ second + second_disturbance
    measured = 0.5 * (one + two)
    residual = max(float(np.linalg.norm(one - measured)), float(np.linalg.norm(two - measured)))
    return RivalPair(first, second, other, second_disturbance, np.asarray(measured), distance, residual)
