"""The local nonlinear certificate."""

from __future__ import annotations

import numpy as np
import pytest

from rrf_design.certificates.local import curvature_bound, local_certificate
from rrf_design.errors import InputError


def test_sine_is_certified_near_zero_and_nowhere_else() -> None:
    """M(z) = sin z at 0: tangent margin one, curvature at most one, and M(0) = M(π)."""
    near = local_certificate([[1.0]], k=1, radius=0.5, curvature=1.0, jacobian_error=0.0, epsilon=0.01)
    assert near.holds
    assert near.scope == "local"
    assert near.effective == pytest.approx(0.75, rel=1e-8)
    assert near.error_bound == pytest.approx(0.02 / 0.75, rel=1e-8)
    assert near.largest_radius == pytest.approx(2.0, rel=1e-8)
    assert not local_certificate([[1.0]], k=1, radius=np.pi, curvature=1.0, jacobian_error=0.0).holds


def test_the_jacobian_error_counts() -> None:
    found = local_certificate(np.eye(2), k=1, radius=0.1, curvature=0.0, jacobian_error=1.5)
    assert not found.holds
    assert found.largest_radius == float("inf") or found.largest_radius == 0.0
    assert found.error_bound is None


def test_curvature_by_interval_evaluation() -> None:
    """r(z) = z0·z1 − z2 has a constant Hessian; z² + exp(z) has one that grows."""
    product = curvature_bound(lambda z: [[[0, 1, 0], [1, 0, 0], [0, 0, 0]]], [1.0, 1.0, 1.0], radius=5.0)
    assert product == pytest.approx(np.sqrt(2), rel=1e-12)
    grown = curvature_bound(lambda z: [[[2 + z[0].exp()]]], [0.0], radius=1.0)
    assert 2 + np.e <= grown <= (2 + np.e) * 1.001


def test_remainder_stays_below_the_bound() -> None:
    level = curvature_bound(lambda z: [[[-z[0].sin()]]], [0.3], radius=0.2)
    for h in np.linspace(-0.2, 0.2, 41):
        assert abs(np.sin(0.3 + h) - np.sin(0.3) - np.cos(0.3) * h) <= level / 2 * h * h + 1e-15


def test_input_errors() -> None:
    with pytest.raises(InputError, match="curvature must be"):
        local_certificate(np.eye(1), k=1, radius=1.0, curvature=-1.0, jacobian_error=0.0)
    with pytest.raises(InputError, match="not bounded"):
        curvature_bound(lambda z: [[[1 / z[0]]]], [0.0], radius=1.0)
    with pytest.raises(InputError, match="radius"):
        curvature_bound(lambda z: [], [0.0], radius=-1.0)
