"""What a relaxation returns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Relaxation:
    """A lower bound on γ as floating point sees it: an estimate until it is proven from its data."""

    estimate: float
    method: str
    data: NDArray[np.float64] | None
    """What a proof needs: weights of the dominance, the lower triangle of the dual matrix; None: prove it otherwise."""
    finished: bool
    """False: stopped by the time limit; the estimate is valid, but a longer run may give a better one."""

    def __post_init__(self) -> None:
        if self.data is not None:
            self.data.setflags(write=False)
