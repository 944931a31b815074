"""One case of a worked example, and the operators and margins that examples are made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers import margin

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Case:
    """`expected` is a number to meet, or None where `holds` is a statement that has to be true."""

    what: str
    computed: float
    expected: float | None = None
    holds: bool | None = None

    @property
    def agrees(self) -> bool:
        if self.holds is not None:
            return self.holds
        return self.expected is not None and abs(self.computed - self.expected) <= 1e-9 * max(1.0, abs(self.expected))


def gamma(B: Any, k: int = 1, groups: Any = None) -> float:
    value = float(margin(np.asarray(B, dtype=np.float64), groups, k=k).value)
    return 0.0 if value < 1e-10 else value


def incidence(n: int, edges: Sequence[tuple[int, int]], anchors: Sequence[int] = ()) -> Array:
    rows = np.zeros((len(edges) + len(anchors), n))
    for row, (tail, head) in enumerate(edges):
        rows[row, tail], rows[row, head] = -1.0, 1.0
    for row, node in enumerate(anchors, start=len(edges)):
        rows[row, node] = 1.0
    return rows
