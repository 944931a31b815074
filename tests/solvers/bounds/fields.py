"""Small fields and their exact margins."""

from __future__ import annotations

from itertools import combinations

import numpy as np


def exact(matrix: np.ndarray, sizes: list[int], size: int) -> float:
    starts = np.concatenate([[0], np.cumsum(sizes)])
    best = np.inf
    for support in combinations(range(len(sizes)), min(size, len(sizes))):
        columns = np.concatenate([np.arange(starts[i], starts[i + 1]) for i in support])
        part = matrix[:, columns]
        best = min(best, np.linalg.svd(part, compute_uv=False)[-1] if len(part) >= part.shape[1] else 0.0)
    return float(best)


def dense(seed: int, sizes: list[int]) -> np.ndarray:
    rng = np.random.default_rng(seed)
    width = sum(sizes)
    return np.vstack([rng.standard_normal((2 * width, width)) / np.sqrt(2 * width), 0.5 * np.eye(width)])


def ring(nodes: int) -> np.ndarray:
    rows = np.zeros((nodes + 1, nodes))
    for i in range(nodes):
        rows[i, i], rows[i, (i + 1) % nodes] = -1.0, 1.0
    rows[nodes, 0] = 1.0
    return rows
