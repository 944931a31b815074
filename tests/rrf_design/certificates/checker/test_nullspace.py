"""The robust null-space property: certified, refuted with a witness, or left open."""

from __future__ import annotations

import numpy as np
import pytest

from rrf_design.certificates.checker.nullspace import NullSpace, check_nullspace
from rrf_design.certificates.convex import nullspace_section
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
    assert "certified" in check_nullspace(section, record, 1)
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
    assert check_nullspace(section, record, 1).startswith("certified")
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
    assert check_nullspace(section, record, 1).startswith("certified")
    monkeypatch.setattr("rrf_design.certificates.convex.DUAL_COORDINATES", 9)
    monkeypatch.setattr("rrf_design.certificates.checker.duality.DUAL_COORDINATES", 9)
    left = nullspace_section(record, 1)
    assert left["status"] == NullSpace.NOT_CERTIFIED
    assert check_nullspace(left, record, 1) == "not certified"
    with pytest.raises(Refused, match="kernel"):
        check_nullspace(section, record, 1)


def test_large_operators_are_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rrf_design.certificates.convex.SMALL", 2)
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
