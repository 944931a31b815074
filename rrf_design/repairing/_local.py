"""Repair with the nonlinear relations of a problem file: local, and labelled so.

Rows of B and nonlinear rows together are M(z) = 0. Coordinates come unit by unit, so that a unit is
one group of them and k counts units. `nonlinear.repair_nonlinear` finds a field near the answers
with at most k edited units; where checks may be wrong, every choice of them is set aside in turn.

The tangent at a field is an operator like any other: what fails together, what is delivered and
which checks may be wrong is decided by `premise.protected`, as everywhere. With J the Jacobian
there, and L bounding second derivatives within r (`local_radius`) by interval arithmetic,
`certificates.local` says how far any other field within r that fits can be on what is delivered.
Further away nothing is claimed, whatever the numbers are. L estimated from held-out perturbations
is shown beside it, and certifies nothing.

Where every node is a truth value, because clauses name them all, no derivative is needed: all
fields of zeros and ones near the answers are looked at, and what they say holds everywhere.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rrf_design._margin import check_k
from rrf_design.autodiff import value_and_jacobian
from rrf_design.errors import InputError
from rrf_design.goal import Goal
from rrf_design.operators import Operator
from rrf_design.premise import Premise, protected
from rrf_design.repairing._exact import check_sets, surely_wrong
from rrf_design.repairing.contract import Alternative, Array, Certainty, Diagnostics, Repair, Values
from rrf_design.verdict import Evidence, Explained, assumed, decide

if TYPE_CHECKING:
    from rrf_design.certificates.local import LocalCertificate
    from rrf_design.noise import Noise
    from rrf_design.problem import Problem
    from rrf_design.repairing._nonlinear import LocalRepair

FITS = 1e-9
"""A residual within this of ε fits: what Gauss–Newton leaves."""
SAME = 1e-9
"""An answer of a wrong unit that moved by less was not wrong."""
MOST_FIELDS = 100_000
"""Of zeros and ones that are looked at one by one."""
MOST_SHOWN = 64
"""Explanations that are named; all count."""
ROUNDING = 1e-12
"""Of a Jacobian made from products of a few numbers, relative to its size."""


def repair_locally(
    problem: Problem, responses: Any, *, k: int | None, noise: Noise | None, seed: int, other: Mapping[str, Any]
) -> Repair:
    """The repaired field, with the local certificate where `local_radius` and intervals give one.

    `other` is what a caller said that a local repair has no use for: refused where it is anything.
    """
    from rrf_design.repairing._fields import collect

    given = [name for name, value in other.items() if value]
    if noise is not None and (noise.sigma is not None or noise.amplitude is not None):
        given.append("sigma" if noise.sigma is not None else "amplitude")
    if given:
        raise InputError(f"{given[0]}: does not apply to the local repair of nonlinear relations; leave it out")
    began = time.perf_counter()
    answers = collect(problem, responses, nodes=problem.whole.node_ids)
    if answers.invalid:
        name, why = next(iter(answers.invalid.items()))
        raise InputError(f"node {name!r}: {why}; a local repair needs an answer at every node")
    reach = (problem.epsilon or 0.0) if noise is None or noise.epsilon is None else noise.epsilon
    field = _BentField.of(problem)
    said = {name: answers.values[name] for name in problem.whole.node_ids}
    fields = _truth_fields(field, said, check_k(k, problem.k))
    if fields is not None:
        return _among(fields, field, said, check_k(k, problem.k), reach, seed=seed, began=began)
    fits = _explanations(field, said, check_k(k, problem.k), reach)
    return _as_repair(field, said, fits, reach, seed=seed, began=began)


def _truth_fields(field: _BentField, said: Mapping[str, Values], k: int) -> list[dict[str, Values]] | None:
    """Every field of zeros and ones with at most k units of the answers changed; None where some
    node is no truth value (none of the clauses names it), or there are too many fields.
    """
    entries, names = field.problem.nonlinear, set(field.place)
    if any(entry.clause is None for entry in entries) or names != {name for entry in entries for name in entry.nodes}:
        return None
    units = list(field.units.values())
    many = [1] + [0] * k  # by how many units are changed
    for nodes in units:
        for changes in range(k, 0, -1):
            many[changes] += many[changes - 1] * 2 ** len(nodes)
    if sum(many) > MOST_FIELDS:
        return None
    own = [tuple(said[name][0] for name in nodes) for nodes in units]
    others = [
        [v for v in product((0.0, 1.0), repeat=len(nodes)) if v != x] for nodes, x in zip(units, own, strict=True)
    ]
    odd = {at for at, values in enumerate(own) if not set(values) <= {0.0, 1.0}}
    found: list[dict[str, Values]] = []
    for size in range(min(k, len(units)) + 1):
        for changed in combinations(range(len(units)), size):
            if odd <= set(changed):
                for values in product(*(others[at] for at in changed)):
                    given = {**dict(enumerate(own)), **dict(zip(changed, values, strict=True))}
                    found.append(
                        {name: (x,) for at, nodes in enumerate(units) for name, x in zip(nodes, given[at], strict=True)}
                    )
    return found


def _among(
    fields: Sequence[Mapping[str, Values]],
    field: _BentField,
    said: Mapping[str, Values],
    k: int,
    reach: float,
    *,
    seed: int,
    began: float,
) -> Repair:
    """Which of all admissible fields fit: a global answer, since nothing was left out."""
    from rrf_design.files import digest

    operator = field.tangent(value_and_jacobian(field, np.array([said[name][0] for name in field.place]))[1])
    asides = list(check_sets(operator))
    masks = [field.without(aside).kept if aside else slice(None) for aside in asides]
    explanations: list[Alternative] = []
    nearest, least = dict(said), inf
    for values in fields:
        rows = field(np.array([values[name][0] for name in field.place], dtype=np.float64))
        sizes = [float(np.linalg.norm(rows[mask])) for mask in masks]
        fitting = next((at for at, size in enumerate(sizes) if size <= reach + FITS), None)
        if min(sizes) < least:
            nearest, least = dict(values), min(sizes)
        if fitting is not None:
            changed = tuple(name for name in said if values[name] != said[name])
            checks = tuple(operator.block_ids[j] for j in asides[fitting])
            explanations.append(Alternative(changed, dict(values), sizes[fitting], checks=checks))
    chosen = explanations[0] if explanations else None
    wanted = operator.premise.wanted(said)
    moved = {} if chosen is None else {name: chosen.repaired[name] or (0.0,) for name in chosen.support}
    shared: dict[str, Values | None] = {
        name: chosen.repaired[name]
        if chosen is not None and all(other.repaired[name] == chosen.repaired[name] for other in explanations)
        else None
        for name in said
    }
    blank = tuple(name for name in wanted if shared[name] is None)
    bound = 0.0 if chosen is not None and not blank else None
    alone = len(explanations) == 1
    said_k = assumed(operator, k, f"all rows together are off by at most {reach:g}")
    told = f"of {len(fields):,} fields of zeros and ones with at most {k} wrong {operator.premise.called}"
    fit = "none fits" if chosen is None else "one fits" if alone else f"{len(explanations):,} fit"
    reason = f"{told}, {fit}{f' (the nearest leaves {least:.4g})' if chosen is None else ''}; no other was left out."
    return Repair(
        repaired=shared,
        support=() if chosen is None else chosen.support,
        residual=least if chosen is None else chosen.residual,
        gamma=0.0,
        error_bound=bound,
        method="finite search",
        certainty=Certainty.UNEXPLAINED if chosen is None else Certainty.UNIQUE_HERE if alone else Certainty.AMBIGUOUS,
        verdict=decide(
            Evidence(
                explained=Explained.NOT if chosen is None else Explained.UNIQUELY if alone else Explained.OTHERWISE,
                goal=Goal.of(field.problem),
                lower=0.0,
                robust_lower=0.0,
                bound=bound,
                exact=bound is not None,
                blank=blank,
            )
        ),
        assumes=f"{said_k}, and every value is 0 or 1",
        reason=reason,
        error={name: (said[name][0] - value[0],) for name, value in moved.items()},
        alternatives=tuple(explanations[1:MOST_SHOWN]),
        indistinguishable=(),
        erased={},
        k=k,
        epsilon=reach,
        tolerance=FITS,
        gamma_lower=0.0,
        witness={},
        diagnostics=Diagnostics(
            objective=least if chosen is None else chosen.residual,
            relation_residual=least if chosen is None else chosen.residual,
            anchor_residual=0.0,
            active_groups=0 if chosen is None else len(chosen.support),
            gap=None,
            best_smaller=None,
            posterior_bound=bound,
            complete=True,
            iterations=len(fields),
            seconds=time.perf_counter() - began,
            seed=seed,
            details={"scope": "global", **({} if chosen is not None else {"nearest": nearest})},
        ),
        problem_digest=digest(field.problem),
        bounds={} if bound is None else dict.fromkeys(wanted, bound),
        robust_lower=0.0,
    )


@dataclass(frozen=True)
class _Fit:
    """One local explanation: a field near the answers, and the checks that were set aside for
    it.
    """

    repaired: Mapping[str, Values]
    support: tuple[str, ...]
    checks: tuple[int, ...]
    residual: float
    found: LocalRepair


@dataclass(frozen=True)
class _Fits:
    """What was found near the answers: minimal explanations, the one with fewest wrong units and
    checks first; else the nearest.
    """

    k: int
    explanations: tuple[_Fit, ...]
    nearest: _Fit

    @property
    def chosen(self) -> _Fit:
        return self.explanations[0] if self.explanations else self.nearest


def _explanations(field: _BentField, said: Mapping[str, Values], k: int, epsilon: float) -> _Fits:
    from rrf_design.repairing._nonlinear import repair_nonlinear

    start = np.array([said[name][0] for name in field.place])
    _, jacobian = value_and_jacobian(field, start)
    premise, answers = field.problem.whole.premise, field.by_unit(said)
    fitting: list[_Fit] = []
    nearest: _Fit | None = None
    for aside in check_sets(field.tangent(jacobian)):
        if any(not item.support and set(item.checks) <= set(aside) for item in fitting):
            continue  # these checks alone explain everything
        left = field.without(aside) if aside else field
        found = repair_nonlinear(left, answers, k=k, epsilon=epsilon)
        repaired = _kept(left, said, field.by_node(found.repaired), epsilon)
        support = tuple(name for name in said if repaired[name] != said[name])
        residual = left.residual(repaired)
        fit = _Fit({name: repaired[name] for name in said}, support, aside, residual, found)
        if residual <= epsilon + FITS and premise.count(support) <= k:
            if not any(set(it.support) <= set(support) and set(it.checks) <= set(aside) for it in fitting):
                fitting.append(fit)
        elif nearest is None:
            nearest = fit
    fitting.sort(key=lambda it: (premise.count(it.support) + len(it.checks), len(it.checks), it.residual))
    return _Fits(k, tuple(fitting), nearest or fitting[0])


def _kept(
    field: _BentField, said: Mapping[str, Values], repaired: Mapping[str, Values], epsilon: float
) -> Mapping[str, Values]:
    """The answers of a wrong unit that only rounding moved, as they were given."""
    near = {
        name: said[name] if np.allclose(value, said[name], rtol=SAME, atol=SAME) else value
        for name, value in repaired.items()
    }
    return near if field.residual(near) <= max(epsilon, field.residual(repaired)) + FITS else repaired


def _as_repair(
    field: _BentField, said: Mapping[str, Values], fits: _Fits, reach: float, *, seed: int, began: float
) -> Repair:
    from rrf_design.files import digest

    problem, fit, found, budget = field.problem, fits.chosen, fits.chosen.found, fits.k
    explained, radius = bool(fits.explanations), problem.local_radius
    size = max(1.0, max(abs(x) for part in said.values() for x in part))
    center = np.array([fit.repaired[name][0] for name in field.place])
    _, jacobian = value_and_jacobian(field, center)
    operator = field.tangent(jacobian)
    margins = _TangentMargins.of(operator, budget, field.bent)
    left = max(reach, fit.residual + ROUNDING * size)
    certificate, details = _certificate(field, center, jacobian, margins, epsilon=left, seed=seed)
    bound = certificate.error_bound if certificate is not None and explained else None
    lower = certificate.effective if certificate is not None and explained else 0.0
    verdict = decide(
        Evidence(
            explained=Explained.OTHERWISE if explained else Explained.OPEN,
            goal=Goal.of(problem),
            lower=margins.delivered if bound is not None else 0.0,
            robust_lower=lower,
            bound=bound,
            exact=bound is not None and bound <= 1e-9 * size,
        )
    )
    wanted = operator.premise.wanted(said)
    values = _agreed(fits, sure=wanted if bound is not None else ())
    withheld = {} if values == fit.repaired else {"nearest": dict(fit.repaired)}
    return Repair(
        repaired=values,
        support=fit.support if explained else (),
        residual=fit.residual,
        gamma=margins.value,
        error_bound=bound,
        method=f"{found.method}, local",
        certainty=Certainty.BOUNDED if bound is not None else Certainty.HEURISTIC,
        verdict=verdict,
        assumes=_assumes(operator, budget, reach, radius),
        reason=_reason(operator, fits, certificate, details),
        error={name: (said[name][0] - fit.repaired[name][0],) for name in fit.support} if explained else {},
        alternatives=tuple(
            Alternative(
                item.support,
                {name: item.repaired[name] for name in item.support},
                item.residual,
                checks=tuple(operator.block_ids[j] for j in item.checks),
            )
            for item in fits.explanations[1:]
        ),
        indistinguishable=(),
        erased={},
        k=budget,
        epsilon=reach,
        tolerance=FITS,
        gamma_lower=0.0 if certificate is None else certificate.gamma_lower,
        witness={},
        diagnostics=Diagnostics(
            objective=found.objective,
            relation_residual=fit.residual,
            anchor_residual=0.0,
            active_groups=len(fit.support),
            gap=None,
            best_smaller=None,
            posterior_bound=bound,
            complete=found.converged,
            iterations=found.iterations,
            seconds=time.perf_counter() - began,
            seed=seed,
            details={"scope": "local", **details, **withheld},
        ),
        problem_digest=digest(problem),
        bounds={} if bound is None else dict.fromkeys(wanted, bound),
        robust_lower=lower,
        wrong_checks=tuple(operator.block_ids[j] for j in surely_wrong(item.checks for item in fits.explanations)),
    )


def _agreed(fits: _Fits, *, sure: tuple[str, ...]) -> dict[str, Values | None]:
    """Values of the chosen explanation where the others found agree with it, or a bound vouches for
    them; none where nothing fits.
    """
    chosen = fits.chosen.repaired
    if not fits.explanations:
        return dict.fromkeys(chosen)
    others = [item.repaired for item in fits.explanations[1:]]
    return {
        name: (
            value
            if name in sure or all(np.allclose(other[name], value, rtol=1e-9, atol=1e-9) for other in others)
            else None
        )
        for name, value in chosen.items()
    }


def _certificate(
    field: _BentField, center: Array, jacobian: Array, margins: _TangentMargins, *, epsilon: float, seed: int
) -> tuple[LocalCertificate | None, dict[str, Any]]:
    from rrf_design.certificates.local import certificate_of, curvature_bound, held_out_curvature

    radius = field.problem.local_radius
    if radius is None:
        return None, {"radius": None}
    estimated, drift = held_out_curvature(field, center, radius=radius, seed=seed)
    details = {"radius": radius, "estimated_curvature": estimated, "estimated_jacobian_error": drift}
    try:
        curvature = curvature_bound(field.hessians, [float(x) for x in center], radius=radius)
    except InputError:
        return None, {**details, "curvature": None}
    loose = ROUNDING * max(1.0, float(np.linalg.norm(jacobian)))
    made = certificate_of(
        margins.near,
        delivered=margins.delivered if field.problem.whole.premise.deliver is not None else None,
        radius=radius,
        curvature=curvature,
        jacobian_error=loose,
        epsilon=epsilon,
    )
    return made, {**details, "curvature": curvature, "tangent_margin": made.gamma_lower}


def _assumes(operator: Operator, k: int, reach: float, radius: float | None) -> str:
    others = "other " if operator.premise.wrong_checks else ""
    premise = assumed(operator, k, f"all {others}rows together are off by at most {reach:g}")
    return premise + (
        "" if radius is None else f", and the truth lies within {radius:g} of these values (a local promise)"
    )


def _reason(operator: Operator, fits: _Fits, certificate: LocalCertificate | None, details: Mapping[str, Any]) -> str:
    premise, k = operator.premise, fits.k
    checks = premise.wrong_checks
    aside = f" and {checks} wrong check{'' if checks == 1 else 's'}" if checks else ""
    if not fits.explanations:
        residual = fits.chosen.residual
        units = "edits" if premise.called == "answers" else f"wrong {premise.called}"
        units = units.removesuffix("s") if k == 1 else units
        return (
            f"no field near the answers with at most {k} {units}{aside} was found that fits (the nearest leaves"
            f" {residual:.4g}); that is no proof that there is none."
        )
    if details["radius"] is None:
        return (
            "a local fit: other fields may fit further away, and without local_radius nothing is promised nearby"
            " either."
        )
    if certificate is None:
        return (
            "a local fit: second derivatives are not bounded within local_radius, so nothing is promised; take a"
            " smaller one."
        )
    if certificate.error_bound is None:
        return (
            f"a local fit: curvature takes the tangent margin {certificate.gamma_lower:.4g} away within"
            f" {certificate.radius:g}; below {certificate.largest_radius:.4g} something could be promised."
        )
    wrong = premise.called.removesuffix("s") if k == 1 else premise.called
    where = "" if premise.deliver is None else " in what is delivered"
    return (
        f"local: within {certificate.radius:g} of these values no other field with at most {k} wrong {wrong}{aside}"
        f" fits and is more than {certificate.error_bound:.4g} away{where} (tangent margin"
        f" {certificate.gamma_lower:.4g}, curvature {certificate.curvature:.4g}, by intervals); nothing is claimed"
        " further away."
    )


@dataclass(frozen=True)
class _BentField:
    """M(z): rows of B, then nonlinear rows, block by block; z in the order of `place`."""

    problem: Problem
    matrix: Array
    target: Array
    place: Mapping[str, int]
    units: Mapping[str, tuple[str, ...]]
    """Unit to its nodes, in the order of their coordinates."""
    kept: NDArray[np.int64] | None = None
    """Rows that are left when checks are set aside; None for all."""

    @classmethod
    def of(cls, problem: Problem) -> _BentField:
        whole = problem.whole.holding(*(np.ones(len(some), dtype=bool) for some in (problem.blocks, problem.nodes)))
        if np.isnan(whole.target).any():
            whole.syndrome(dict.fromkeys(whole.node_ids, (0.0,)))  # names the anchor whose value is missing
        units = {unit: tuple(nodes) for unit, nodes in whole.premise.partition(whole.node_ids).items()}
        names = [name for nodes in units.values() for name in nodes]
        order = [whole.node_index[name] for name in names]
        place = {name: at for at, name in enumerate(names)}
        return cls(problem, whole.matrix.toarray()[:, order], whole.target, place, units)

    def __call__(self, z: Any) -> Any:
        values = {name: z[i] for name, i in self.place.items()}
        linear = list(self.matrix @ z - self.target) if len(self.target) else []
        rows = np.array([*linear, *(row for entry in self.problem.nonlinear for row in entry.rows(values))])
        return rows if self.kept is None else rows[self.kept]

    def residual(self, repaired: Mapping[str, Values]) -> float:
        """‖M(z)‖ of a field by node, over the rows that are left."""
        return float(np.linalg.norm(self(np.array([repaired[name][0] for name in self.place]))))

    def hessians(self, balls: Any) -> list[Any]:
        ball = {name: balls[i] for name, i in self.place.items()}
        return [matrix for entry in self.problem.nonlinear for matrix in entry.hessians(ball, self.place)]

    @property
    def bent(self) -> frozenset[str]:
        """Nodes along which some row is not linear: second derivatives see only these."""
        return frozenset(name for entry in self.problem.nonlinear for name in entry.bent)

    def by_unit(self, said: Mapping[str, Values]) -> dict[str, Values]:
        """Answers as `repair_nonlinear` takes them: a unit is one node of several numbers."""
        return {unit: tuple(said[name][0] for name in nodes) for unit, nodes in self.units.items()}

    def by_node(self, repaired: Mapping[str, Values]) -> dict[str, Values]:
        """The way back."""
        return {
            name: (value,)
            for unit, nodes in self.units.items()
            for name, value in zip(nodes, repaired[unit], strict=True)
        }

    def without(self, blocks: Sequence[int]) -> _BentField:
        """The same with the rows of some blocks set aside."""
        heights = self._heights
        aside = np.zeros(len(heights), dtype=np.bool_)
        aside[list(blocks)] = True
        return replace(self, kept=np.flatnonzero(~np.repeat(aside, heights)).astype(np.int64))

    @property
    def _heights(self) -> Any:
        return np.array([*self.problem.whole.heights, *(entry.height for entry in self.problem.nonlinear)], np.int64)

    def tangent(self, jacobian: Array) -> Operator:
        """The rows of all blocks at some field, linearised, under the problem's premise."""
        whole = self.problem.whole
        offsets = np.concatenate([[0], np.cumsum(self._heights)])
        bent = [entry.id for entry in self.problem.nonlinear]
        return Operator(
            matrix=sparse.csr_array(jacobian),
            target=np.zeros(len(jacobian)),
            node_ids=tuple(self.place),
            node_offsets=np.arange(len(self.place) + 1),
            block_ids=(*whole.block_ids, *bent),
            block_offsets=offsets,
            block_kinds=(*whole.block_kinds, *(["relation"] * len(bent))),
            radii=np.zeros(len(offsets) - 1),
            fiber_factors={},
            uncertain={},
            premise=whole.premise,
        )


@dataclass(frozen=True, slots=True)
class _TangentMargins:
    """γ of the tangent: of what is delivered, and of that together with every node along which rows
    bend.
    """

    value: float
    delivered: float
    """Proven, as the next."""
    near: float

    @classmethod
    def of(cls, operator: Operator, k: int, bent: frozenset[str]) -> _TangentMargins:
        own = protected(operator, k).solved
        premise = operator.premise
        if premise.deliver is None or bent <= premise.deliver:
            return cls(own.value, own.lower, own.lower)
        wider: Premise = replace(premise, deliver=premise.deliver | bent)
        return cls(own.value, own.lower, protected(operator, k, premise=wider).solved.lower)
