"""The local certificate for nonlinear relations and parsers: a margin of the tangent problem minus
what curvature costs.

With the Jacobian J at a candidate field, ‖J − J(z*)‖ ≤ δ_J and second-order remainder at most
(L/2)‖h‖² for 2k-sparse h of norm at most r: if γ_k(J) > δ_J + Lr/2, the measurements tell z* from
every z* + h in that ball, and two fields that fit within ε are at most 2ε/(γ_k(J) − δ_J − Lr/2)
apart. It says nothing about fields outside the ball: local, not global.

Where only D is delivered, let Q be the coordinates along which rows bend: remainder and δ_J see h_Q
alone. With γ' the margin of D ∪ Q, ‖h_{D∪Q}‖ ≤ ρ = min(r, 2ε/(γ' − δ_J − Lr/2)), and ‖h_D‖ ≤ min(ρ,
(2ε + δ_J ρ + Lρ²/2)/γ_{k,D}). Units and checks that may be wrong are in both margins: k counts
units, and any 2a suspect blocks are taken away.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from flint import arb

from rrf_design.checker.exact import float_down, float_up, sqrt_up
from rrf_design.errors import InputError


@dataclass(frozen=True, slots=True)
class LocalCertificate:
    """γ_k(J) > δ_J + Lr/2, or not (γ_k of D ∪ Q, where only D is delivered).

    `effective` is the difference, proven; it holds inside the radius and only there.
    """

    gamma_lower: float
    jacobian_error: float
    curvature: float
    radius: float
    effective: float
    """γ − δ_J − Lr/2 rounded down; 0 when it is not positive."""
    largest_radius: float
    """The radius at which the certificate vanishes, 2(γ − δ_J)/L; infinite without curvature."""
    error_bound: float | None
    scope: str = "local"

    @property
    def holds(self) -> bool:
        return self.effective > 0.0


def local_certificate(
    jacobian: Any,
    groups: Any = None,
    *,
    k: int,
    radius: float,
    curvature: float,
    jacobian_error: float,
    epsilon: float | None = None,
    time_limit: float | None = None,
) -> LocalCertificate:
    """The local certificate at a candidate: γ_k of the tangent problem minus what curvature takes
    of it.

    Parameters
    ----------
    jacobian
        (rows, coordinates): of the rows at the candidate.
    groups
        Coordinates of each node, as `solvers.margin` takes them.
    k
        How many answers may be wrong.
    radius
        r: the promise speaks of fields within this distance of the candidate.
    curvature, jacobian_error
        L and δ_J must be bounds: analytic ones, or from `curvature_bound`; they have no default,
        because zero would be a claim.
    epsilon
        The noise radius of the rows; without one no error is bounded.
    time_limit
        Seconds for the tangent margin.

    Returns
    -------
    A `LocalCertificate`, which `holds` where γ_k(J) > δ_J + Lr/2.

    >>> from rrf_design.certificates import local_certificate
    >>> exactly = {"curvature": 1.0, "jacobian_error": 0.0, "epsilon": 0.05}
    >>> made = local_certificate([[1.0, 0.0], [0.0, 1.0]], k=1, radius=0.1, **exactly)
    >>> made.holds, round(made.effective, 6), round(made.error_bound, 4)
    (True, 0.95, 0.1053)
    """
    from solvers import margin

    for name, value in (("radius", radius), ("curvature", curvature), ("jacobian_error", jacobian_error)):
        if not 0.0 <= value < float("inf"):
            raise InputError(f"local certificate: {name} must be a number of at least 0, not {value!r}")
    gamma = float(margin(jacobian, groups, k=k, time_limit=time_limit).lower)
    return certificate_of(gamma, radius=radius, curvature=curvature, jacobian_error=jacobian_error, epsilon=epsilon)


def certificate_of(
    gamma: float,
    *,
    delivered: float | None = None,
    radius: float,
    curvature: float,
    jacobian_error: float,
    epsilon: float | None = None,
) -> LocalCertificate:
    """The certificate from proven tangent margins: `gamma` of all that is delivered and all that
    bends, `delivered` of D alone, where that is less than everything.
    """
    spare = Fraction(gamma) - Fraction(jacobian_error)
    effective = spare - Fraction(curvature) * Fraction(radius) / 2
    reach = float("inf") if curvature == 0.0 else max(0.0, float_down(2 * spare / Fraction(curvature)))
    bound = None
    if epsilon is not None and effective > 0:
        bound = 2 * Fraction(epsilon) / effective
    if epsilon is not None and delivered is not None and delivered > 0.0:
        near = Fraction(radius) if bound is None else min(Fraction(radius), bound)
        rest = Fraction(jacobian_error) * near + Fraction(curvature) * near * near / 2
        own = (2 * Fraction(epsilon) + rest) / Fraction(delivered)
        bound = min(near, own)
    return LocalCertificate(
        gamma_lower=gamma if delivered is None else delivered,
        jacobian_error=jacobian_error,
        curvature=curvature,
        radius=radius,
        effective=max(0.0, float_down(effective)),
        largest_radius=reach if spare > 0 else 0.0,
        error_bound=None if bound is None else float_up(bound),
    )


def curvature_bound(
    hessians: Callable[[Sequence[arb]], Sequence[Sequence[Sequence[Any]]]], center: Sequence[float], *, radius: float
) -> float:
    """L for all fields within `radius` of `center`, by interval evaluation: ‖D²M(z)[h, h]‖ ≤ L‖h‖².

    With ‖z̃ − z*‖ ≤ ρ inside that ball, δ_J ≤ Lρ.

    Parameters
    ----------
    hessians
        Gets one ball per coordinate and returns the Hessian matrix of every row of the measurement
        map, in ball arithmetic (flint's arb; plain numbers are fine where a second derivative is
        constant).
    center, radius
        The ball of fields that the bound speaks of.

    Returns
    -------
    The root of the sum of squared Frobenius norms, rounded up.

    >>> from rrf_design.certificates import curvature_bound
    >>> round(curvature_bound(lambda z: [[[-z[0].sin()]]], [0.0], radius=0.5), 4)
    0.4794
    """
    if not 0.0 <= radius < float("inf"):
        raise InputError(f"curvature bound: radius must be a number of at least 0, not {radius!r}")
    balls = [arb(float(x), float(radius)) for x in center]
    total = Fraction(0)
    for matrix in hessians(balls):
        for row in matrix:
            for entry in row:
                ball = entry if isinstance(entry, arb) else arb(entry)
                if not ball.is_finite():
                    raise InputError("curvature bound: the Hessian is not bounded on this ball; take a smaller radius")
                top = float(np.nextafter(float(ball.abs_upper()), np.inf))
                total += Fraction(top) ** 2
    return sqrt_up(total)


def held_out_curvature(
    residual: Callable[[Any], Any], center: Any, *, radius: float, samples: int = 64, seed: int = 0
) -> tuple[float, float]:
    """L and δ_J as held-out perturbations show them: the largest ‖J(x) − J(y)‖/‖x − y‖ and ‖J(x) −
    J(z̃)‖ among random fields within the radius. Estimates, never bounds: what was not drawn may be
    worse. (0, 0) where no drawn field could be differentiated.
    """
    from rrf_design.autodiff import value_and_jacobian

    rng = np.random.default_rng(seed)
    middle = np.asarray(center, dtype=np.float64)
    found: list[tuple[Any, Any]] = []
    for point in [middle, *(middle + step for step in _steps(rng, len(middle), radius, samples))]:
        try:
            with np.errstate(all="ignore"):
                tangent = value_and_jacobian(residual, point)[1]
        except (ValueError, ZeroDivisionError, OverflowError, TypeError):
            continue  # not defined there
        if np.isfinite(tangent).all():
            found.append((point, tangent))
    if not found:
        return 0.0, 0.0
    origin = found[0][1]
    drift = max(float(np.linalg.norm(tangent - origin, 2)) for _, tangent in found)
    slopes = [
        float(np.linalg.norm(a - b, 2)) / float(np.linalg.norm(x - y))
        for (x, a), (y, b) in pairwise(found)
        if float(np.linalg.norm(x - y)) > 0.0
    ]
    return max(slopes, default=0.0), drift


def _steps(rng: np.random.Generator, size: int, radius: float, samples: int) -> list[Any]:
    drawn = rng.standard_normal((samples, size))
    lengths = radius * rng.random((samples, 1)) ** (1.0 / size)
    return list(drawn / np.linalg.norm(drawn, axis=1, keepdims=True) * lengths)
