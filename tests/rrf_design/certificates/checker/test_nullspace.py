"""The robust null-space property: certified, refuted with a witness, or left open.

Kernels of several dimensions: certified by a dual matrix that holds for every direction, or
refuted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rrf_design.certificates._sections import nullspace_section
from rrf_design.checker.nullspace import NullSpace, check_nullspace
from rrf_design.errors import Refused

from ..conftest import make_record


def example() -> np.ndarray:
    """The paper's 2×3 matrix: kernel (1, 0.4, 0.4), every two columns independent."""
    return np.array([[0.4, -1.0, 0.0], [0.0, 1.0, -1.0]])


def test_an_injective_operator_is_certified() -> None:
    record = make_record(np.vstack([np.eye(3), np.ones((1, 3))]))
    section = nullspace_section(record, 1)
    assert section["status"] == NullSpace.CERTIFIED
    assert section["tau"] == pytest.approx(1.0, rel=1e-5)
    assert "consistent" in check_nullspace(section, record, 1)
    rng = np.random.default_rng(0)
    for h in rng.standard_normal((200, 3)):
        inside = np.sort(np.abs(h))[-1]
        assert inside <= section["tau"] * np.linalg.norm(record.matrix @ h) + section["rho"] * np.abs(h).sum()


def test_a_positive_margin_does_not_certify_the_convex_decoder() -> None:
    record = make_record(example())
    section = nullspace_section(record, 1)
    assert section["status"] == NullSpace.REFUTED
    assert section["witness"]["set"] == ["n0"]
    assert "refuted" in check_nullspace(section, record, 1)


def test_a_gauge_that_is_spread_out_is_certified() -> None:
    """A triangle and an anchored pair: the kernel is one constant over three nodes, ρ₀ = 1/2."""
    matrix = np.zeros((5, 5))
    for row, (a, b) in enumerate([(0, 1), (1, 2), (2, 0), (3, 4)]):
        matrix[row, a], matrix[row, b] = -1.0, 1.0
    matrix[4, 3] = 1.0
    record = make_record(matrix)
    section = nullspace_section(record, 1)
    assert section["status"] == NullSpace.CERTIFIED
    assert section["rho"] == pytest.approx(0.5, rel=1e-6)
    assert check_nullspace(section, record, 1).startswith("consistent")
    rng = np.random.default_rng(0)
    gauge = np.array([1.0, 1.0, 1.0, 0.0, 0.0])
    for noise in (0.0, 1e-3, 1.0):
        for h in gauge + noise * rng.standard_normal((100, 5)):
            size = np.sort(np.abs(h))
            allowed = section["rho"] * size[:-1].sum() + section["tau"] * np.linalg.norm(matrix @ h)
            assert size[-1] <= allowed * (1 + 1e-9)
    for change in ({"rho": 0.4}, {"tau": section["tau"] / 2}, {"kernel": {**section["kernel"], "floor": 5.0}}):
        with pytest.raises(Refused, match="nullspace"):
            check_nullspace({**section, **change}, record, 1)
    doubled = {**section["kernel"], "directions": section["kernel"]["directions"] * 2}
    with pytest.raises(Refused, match="kernel"):
        check_nullspace({**section, "kernel": doubled}, record, 1)


def test_two_gauges_in_one_component_are_certified_on_small_fields_and_left_open_on_larger_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A chain of five answers in the plane: both coordinates are free, ρ = 1/4."""
    wide = np.kron(
        np.array([[-1.0, 1.0, 0, 0, 0], [0, -1.0, 1.0, 0, 0], [0, 0, -1.0, 1.0, 0], [0, 0, 0, -1, 1]]), np.eye(2)
    )
    record = make_record(wide, [2] * 5)
    section = nullspace_section(record, 1)
    assert section["status"] == NullSpace.CERTIFIED
    assert section["rho"] == pytest.approx(0.25, rel=5e-3)
    assert check_nullspace(section, record, 1).startswith("consistent")
    monkeypatch.setattr("rrf_design.certificates._sections.DUAL_COORDINATES", 9)
    monkeypatch.setattr("rrf_design.checker.nullspace.DUAL_COORDINATES", 9)
    left = nullspace_section(record, 1)
    assert left["status"] == NullSpace.NOT_CERTIFIED
    assert check_nullspace(left, record, 1) == "not certified"
    with pytest.raises(Refused, match="kernel"):
        check_nullspace(section, record, 1)


def test_large_operators_are_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rrf_design.certificates._sections.SMALL", 2)
    assert nullspace_section(make_record(np.eye(3)), 1)["status"] == NullSpace.NOT_CERTIFIED


def test_false_sections_are_refused() -> None:
    record = make_record(np.eye(3))
    section = nullspace_section(record, 1)
    for change in ({"tau": 0.5}, {"c2": 0.1}, {"rho": 1.0}, {"status": "refuted"}, {"status": "perhaps"}):
        with pytest.raises(Refused, match="nullspace"):
            check_nullspace({**section, **change}, record, 1)
    bad = nullspace_section(make_record(example()), 1)
    with pytest.raises(Refused, match="does not refute"):
        check_nullspace({**bad, "witness": {**bad["witness"], "set": ["n1"]}}, make_record(example()), 1)
    with pytest.raises(Refused, match="must name"):
        check_nullspace({**bad, "witness": {**bad["witness"], "set": ["n0", "n1"]}}, make_record(example()), 1)


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
