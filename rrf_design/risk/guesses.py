"""Answers as somebody guesses them who has none yet: every node right with a given probability, and errors that come together.

Items differ: that of an item is drawn from a beta distribution with the guessed mean, so that two nodes are wrong together more often than independent ones would be (recorded
answers: 1.5 to 10 times as often), and two wrong answers are the same one now and then. It is a guess, for forecasts only.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rrf_design.risk.arguments import share, whole

Codes = NDArray[np.int64]
TOGETHER = 0.5
"""The correlation of two nodes' errors."""
COINCIDE = 0.5
"""How often a wrong answer is the common wrong one of its item."""


def guessed_answers(accuracy: float, nodes: int, *, items: int = 1000, seed: int = 0) -> tuple[Codes, Codes]:
    """Codes (items, nodes) and the truth (items,), in one coding."""
    right, count = float(share(accuracy, "accuracy")), whole(nodes, "nodes", least=1)
    rng = np.random.default_rng(seed)
    scale = (1.0 - TOGETHER) / TOGETHER
    easy = rng.beta(right * scale, (1.0 - right) * scale, size=(items, 1))
    true = rng.random((items, count)) < easy
    common = rng.random((items, count)) < COINCIDE
    own = np.arange(2, count + 2)
    return np.where(true, 0, np.where(common, 1, own)), np.zeros(items, dtype=np.int64)
