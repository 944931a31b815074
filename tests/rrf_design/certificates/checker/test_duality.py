"""Kernels of several dimensions: certified by a dual matrix that holds for every direction, or refuted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rrf_design.certificates.checker.nullspace import NullSpace, check_nullspace
from rrf_design.certificates.convex import nullspace_section
from rrf_design.errors import Refused

from ..conftest import make_record


def several_gauges(seed: int, *, nodes: int = 10, rows: int = 7, dim: int = 1) -> np.ndarray:
    """Generic rows over all nodes: one component whose kernel has more than one dimension."""
    return np.random.default_rng(seed).standard_normal((rows, nodes * dim))


def holds(section: dict[str, Any], matrix: np.ndarray, sizes: list[int], k: int, h: np.ndarray) -> bool:
    ends = np.cumsum(sizes)
    norms = np.sort([np.linalg.norm(part) for part in np.split(h, ends[:-1])])
    allowed = section["rho"] / np.sqrt(k) * norms[:-k].sum() + section["tau"] * np.linalg.norm(matrix @ h)
    return bool(np.linalg.norm(norms[-k:]) <= allowed * (1 + 1e-9))


@pytest.mark.parametrize(("dim", "k", "nodes", "rows"), [(1, 1, 14, 11), (2, 1, 12, 20), (1, 2, 16, 14)])
def test_a_component_with_several_gauges_is_certified_by_duality(dim: int, k: int, nodes: int, rows: int) -> None:
    decided = dict.fromkeys(NullSpace, 0)
    for seed in range(3):
        matrix = several_gauges(seed, nodes=nodes, rows=rows, dim=dim)
        record = make_record(matrix, [dim] * nodes)
        section = nullspace_section(record, k)
        decided[NullSpace(section["status"])] += 1
        check_nullspace(section, record, k)
        if section["status"] != NullSpace.CERTIFIED:
            continue
        assert set(section["kernel"]) == {"dual"}
        rng = np.random.default_rng(seed)
        kernel = np.linalg.svd(matrix)[2][rows:]
        for noise in (0.0, 1e-6, 0.1):
            for weights in rng.standard_normal((50, len(kernel))):
                h = weights @ kernel + noise * rng.standard_normal(nodes * dim)
                assert holds(section, matrix, [dim] * nodes, k, h)
        for change in ({"rho": section["rho"] * 0.999}, {"tau": section["tau"] * 0.99}, {"kernel": {"dual": [[0.0]]}}):
            with pytest.raises(Refused, match="nullspace"):
                check_nullspace({**section, **change}, record, k)
    assert decided[NullSpace.CERTIFIED] > 0


def test_every_small_scalar_field_with_several_gauges_is_decided_at_k_one() -> None:
    """Duality is exact there, so that only fields within a hair of ρ = 1 stay open."""
    for seed in range(12):
        record = make_record(several_gauges(seed, nodes=9, rows=4 + seed % 4))
        assert nullspace_section(record, 1)["status"] != NullSpace.NOT_CERTIFIED, seed


def test_a_gauge_on_one_node_beside_others_is_refuted() -> None:
    matrix = np.zeros((3, 5))
    matrix[:, :3] = np.random.default_rng(2).standard_normal((3, 3))
    matrix[2, 3] = 1.0  # node 4 is touched by nothing, nodes 0 to 3 share a gauge
    section = nullspace_section(make_record(matrix), 1)
    assert section["status"] == NullSpace.REFUTED
