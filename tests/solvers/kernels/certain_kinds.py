"""Kinds of matrices of which nothing is uncertain, and whether so many of each are enough: the
obvious way.
"""

from __future__ import annotations

import numpy as np

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
