"""Small operators and problems whose margins are known by brute force."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from rrf_design.checker.record import OperatorRecord
from rrf_design.problem import Problem


def make_record(matrix: Any, sizes: Any = None, *, radii: Any = None, blocks: Any = None) -> OperatorRecord:
    """A record of a plain matrix: one block per row unless `blocks` gives their heights."""
    csr = sparse.csr_array(matrix if sparse.issparse(matrix) else np.asarray(matrix, dtype=np.float64))
    heights = np.ones(csr.shape[0], dtype=np.int64) if blocks is None else np.asarray(blocks, dtype=np.int64)
    widths = np.ones(csr.shape[1], dtype=np.int64) if sizes is None else np.asarray(sizes, dtype=np.int64)
    return OperatorRecord(
        node_ids=tuple(f"n{i}" for i in range(len(widths))),
        node_sizes=widths,
        block_ids=tuple(f"b{j}" for j in range(len(heights))),
        block_kinds=("relation",) * len(heights),
        block_sizes=heights,
        radii=np.zeros(len(heights)) if radii is None else np.asarray(radii, dtype=np.float64),
        touch_starts=np.zeros(len(heights) + 1, dtype=np.int64),
        touch_nodes=np.zeros(0, dtype=np.int64),
        indptr=csr.indptr.astype(np.int64),
        indices=csr.indices.astype(np.int64),
        data=csr.data.astype(np.float64),
    )


def brute_margin(matrix: NDArray[np.float64], sizes: Any, size: int) -> float:
    starts = np.concatenate([[0], np.cumsum(sizes)])
    best = np.inf
    for count in range(1, min(size, len(sizes)) + 1):
        for support in combinations(range(len(sizes)), count):
            columns = np.concatenate([np.arange(starts[i], starts[i + 1]) for i in support])
            part = matrix[:, columns]
            value = np.linalg.svd(part, compute_uv=False)[-1] if part.shape[0] >= part.shape[1] else 0.0
            best = min(best, float(value))
    return best


def random_field(seed: int) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Matrix, node sizes, block heights and radii of a small random field, often not connected."""
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(2, 8))
    sizes = rng.integers(1, 4, nodes)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    parts, heights = [], []
    for _ in range(int(rng.integers(nodes, 3 * nodes))):
        height = int(rng.integers(1, 4))
        part = np.zeros((height, starts[-1]))
        for i in rng.choice(nodes, size=int(rng.integers(1, 3)), replace=False):
            part[:, starts[i] : starts[i + 1]] = rng.standard_normal((height, sizes[i]))
        parts.append(part)
        heights.append(height)
    return np.vstack(parts), sizes, np.array(heights), rng.random(len(heights)) * 0.05


def triangle(**settings: Any) -> Problem:
    """Three equal answers and an isolated one; anchored, γ_1 is 1."""
    return Problem(
        name="triangle and isolate",
        nodes=[{"id": name, "range": [-0.5, 0.5]} for name in ("a", "b", "c", "isolate")],
        relations=[
            {"id": "ab", "tail": "a", "head": "b", "uncertainty": 0.01},
            {"id": "bc", "tail": "b", "head": "c"},
            {"id": "ca", "tail": "c", "head": "a"},
        ],
        anchors=[{"id": "fix", "node": "isolate", "cost": 2.0}],
        **{"epsilon": 0.02, "delta": 0.1, **settings},
    )


@pytest.fixture
def problem() -> Problem:
    return triangle()
