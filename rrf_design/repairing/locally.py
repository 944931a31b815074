"""Repair with the nonlinear relations of a problem file: local, and labelled so.

Rows of B and nonlinear rows together are M(z) = 0. `nonlinear.repair_nonlinear` finds a field near the answers with at most k edits. With
J its Jacobian there, and L bounding second derivatives within r (`local_radius`) by interval arithmetic: if γ_k(J) > Lr/2, every
field within r that differs in at most 2k answers and fits within ε is at most 2ε/(γ_k(J) − Lr/2) away. Further away nothing is
claimed, whatever the numbers are. L estimated from held-out perturbations is told beside it, and certifies nothing.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rrf_design.certificates.checker.wording import assumption
from rrf_design.errors import InputError
from rrf_design.goal import Goal
from rrf_design.margins import check_k
from rrf_design.repairing.autodiff import value_and_jacobian
from rrf_design.repairing.contract import Array, Certainty, Diagnostics, Repair, Values
from rrf_design.verdict import Evidence, Explained, decide

if TYPE_CHECKING:
    from rrf_design.certificates.local import LocalCertificate
    from rrf_design.noise import Noise
    from rrf_design.problem import Problem

FITS = 1e-9
"""A residual within this of ε fits: what Gauss–Newton leaves."""
ROUNDING = 1e-12
"""Of a Jacobian made from products of a few numbers, relative to its size."""


def repair_locally(
    problem: Problem, responses: Any, *, k: int | None, noise: Noise | None, seed: int, other: Mapping[str, Any]
) -> Repair:
    """The repaired field, with the local certificate where `local_radius` and intervals give one.

    `other` is what a caller said that a local repair has no use for: refused where it is anything.
    """
    from rrf_design.files import digest
    from rrf_design.repairing.nonlinear import repair_nonlinear
    from rrf_design.repairing.responses_file import collect

    given = [name for name, value in other.items() if value]
    if noise is not None and (noise.sigma is not None or noise.amplitude is not None):
        given.append("sigma" if noise.sigma is not None else "amplitude")
    if given:
        raise InputError(f"{given[0]}: does not apply to the local repair of nonlinear relations; leave it out")
    began = time.perf_counter()
    field = collect(problem, responses, nodes=problem.whole.node_ids)
    if field.invalid:
        name, why = next(iter(field.invalid.items()))
        raise InputError(f"node {name!r}: {why}; a local repair needs an answer at every node")
    budget, radius = check_k(k, problem.k), problem.local_radius
    reach = (problem.epsilon or 0.0) if noise is None or noise.epsilon is None else noise.epsilon
    model = _Model.of(problem)
    said = {name: field.values[name] for name in model.place}
    found = repair_nonlinear(model, said, k=budget, epsilon=reach)
    fits = found.residual <= reach + FITS and len(found.support) <= budget
    size = max(1.0, max(abs(x) for part in said.values() for x in part))
    left = max(reach, found.residual + ROUNDING * size)
    certificate, details = _certificate(model, found.repaired, budget, radius, left, seed)
    bound = certificate.error_bound if certificate is not None and fits else None
    lower = certificate.effective if certificate is not None and fits else 0.0
    verdict = decide(
        Evidence(
            explained=Explained.OTHERWISE if fits else Explained.OPEN,
            goal=Goal.of(problem),
            lower=lower,
            robust_lower=lower,
            bound=bound,
            exact=bound is not None and bound <= 1e-9 * size,
        )
    )
    premise = assumption(budget, len(said), f"all rows together are off by at most {reach:g}")
    near = "" if radius is None else f", and the truth lies within {radius:g} of these values (a local promise)"
    return Repair(
        repaired=dict(found.repaired) if fits else dict.fromkeys(said),
        support=found.support if fits else (),
        residual=found.residual,
        gamma=found.gamma,
        error_bound=bound,
        method=f"{found.method}, local",
        certainty=Certainty.BOUNDED if bound is not None else Certainty.HEURISTIC,
        verdict=verdict,
        assumes=premise + near,
        reason=_reason(fits, found.residual, budget, certificate, details),
        error=dict(found.error) if fits else {},
        alternatives=(),
        indistinguishable=(),
        erased={},
        k=budget,
        epsilon=reach,
        tolerance=FITS,
        gamma_lower=0.0 if certificate is None else certificate.gamma_lower,
        witness={},
        diagnostics=Diagnostics(
            objective=found.objective,
            relation_residual=found.residual,
            anchor_residual=0.0,
            active_groups=len(found.support),
            gap=None,
            best_smaller=None,
            posterior_bound=bound,
            complete=found.converged,
            iterations=found.iterations,
            seconds=time.perf_counter() - began,
            seed=seed,
            details={"scope": "local", **details, **({} if fits else {"nearest": dict(found.repaired)})},
        ),
        problem_digest=digest(problem),
        bounds={} if bound is None else dict.fromkeys(said, bound),
        robust_lower=lower,
    )


@dataclass(frozen=True)
class _Model:
    """M(z): rows of B, then nonlinear rows; z in the order of `place`."""

    problem: Problem
    matrix: Array
    target: Array
    place: Mapping[str, int]

    @classmethod
    def of(cls, problem: Problem) -> _Model:
        whole = problem.whole
        if np.isnan(whole.target).any():
            whole.syndrome(dict.fromkeys(whole.node_ids, (0.0,)))  # names the anchor whose value is missing
        return cls(problem, whole.matrix.toarray(), whole.target, whole.node_index)

    def __call__(self, z: Any) -> Any:
        values = {name: z[i] for name, i in self.place.items()}
        linear = list(self.matrix @ z - self.target) if len(self.target) else []
        return np.array([*linear, *(row for entry in self.problem.nonlinear for row in entry.rows(values))])

    def hessians(self, balls: Any) -> list[Any]:
        ball = {name: balls[i] for name, i in self.place.items()}
        return [matrix for entry in self.problem.nonlinear for matrix in entry.hessians(ball, self.place)]


def _certificate(
    model: _Model, repaired: Mapping[str, Values], k: int, radius: float | None, epsilon: float, seed: int
) -> tuple[LocalCertificate | None, dict[str, Any]]:
    from rrf_design.certificates.local import curvature_bound, held_out_curvature, local_certificate

    if radius is None:
        return None, {"radius": None}
    center = np.array([repaired[name][0] for name in model.place])
    _, jacobian = value_and_jacobian(model, center)
    estimated, drift = held_out_curvature(model, center, radius=radius, seed=seed)
    details = {"radius": radius, "estimated_curvature": estimated, "estimated_jacobian_error": drift}
    try:
        curvature = curvature_bound(model.hessians, [float(x) for x in center], radius=radius)
    except InputError:
        return None, {**details, "curvature": None}
    loose = ROUNDING * max(1.0, float(np.linalg.norm(jacobian)))
    made = local_certificate(
        jacobian, None, k=k, radius=radius, curvature=curvature, jacobian_error=loose, epsilon=epsilon
    )
    return made, {**details, "curvature": curvature, "tangent_margin": made.gamma_lower}


def _reason(
    fits: bool, residual: float, k: int, certificate: LocalCertificate | None, details: Mapping[str, Any]
) -> str:
    if not fits:
        return f"no field near the answers with at most {k} edits was found that fits (the nearest leaves {residual:.4g}); that is no proof that there is none."
    if details["radius"] is None:
        return "a local fit: other fields may fit further away, and without local_radius nothing is promised nearby either."
    if certificate is None:
        return "a local fit: second derivatives are not bounded within local_radius, so nothing is promised; take a smaller one."
    if not certificate.holds:
        return (
            f"a local fit: curvature takes the tangent margin {certificate.gamma_lower:.4g} away within {certificate.radius:g};"
            f" below {certificate.largest_radius:.4g} something could be promised."
        )
    return (
        f"local: within {certificate.radius:g} of these values no other field with at most {k} wrong answers fits and is more than"
        f" {certificate.error_bound:.4g} away (tangent margin {certificate.gamma_lower:.4g}, curvature {certificate.curvature:.4g}, by intervals);"
        " nothing is claimed further away."
    )
