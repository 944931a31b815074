"""Local repair with nonlinear residuals: sparse Gauss–Newton with line search (paper, "Local theory
for nonlinear transports").

The objective is ½‖M(z)‖² + λ Σ ωᵢ‖zᵢ − yᵢ‖. Each step linearises M at z and solves the group lasso
for e = y − z with syndrome M(z) + J(y − z); a line search enforces decrease of the true objective.
Then plain Gauss–Newton on at most k nodes (those edited most, and those that the exact decoder
proposes) removes the shrinkage, and the best fit wins. Everything is local: sin z has tangent
margin one at 0, and π fits as well, so a global claim is refused whatever the margin is. A
discontinuous residual (running a program) has no place here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rrf_design.autodiff import value_and_jacobian
from rrf_design.errors import InputError, Refused
from rrf_design.repairing.contract import Values

Array = NDArray[np.float64]
Residual = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class LocalRepair:
    """A stationary point near the responses, and what is known in its neighbourhood."""

    repaired: Mapping[str, Values]
    support: tuple[str, ...]
    residual: float
    gamma: float
    """γ_k of the Jacobian at the repaired field: the tangent margin."""
    error_bound: float | None
    """2ε / (γ − δ_J − Lr/2), within radius r of the truth; None without curvature bounds, or when
    they eat the margin.
    """
    radius: float | None
    method: str
    error: Mapping[str, Values]
    converged: bool
    iterations: int
    objective: float
    gradient_map: float
    """Norm of the last step: how stationary the point is."""
    seconds: float
    reason: str
    scope: str = "local"


def repair_nonlinear(
    residual: Residual,
    responses: Mapping[str, Any],
    *,
    k: int,
    epsilon: float = 0.0,
    jacobian: Callable[[Array], Any] | None = None,
    radius: float | None = None,
    curvature: float | None = None,
    jacobian_error: float | None = None,
    penalty: float | None = None,
    weights: Sequence[float] | None = None,
    max_iterations: int = 100,
    claim: str = "local",
) -> LocalRepair:
    """Repair a field whose relations and anchors are `residual(z) = 0`.

    Parameters
    ----------
    residual
        Of all coordinates z, in the order of `responses`.
    responses
        The answers by node.
    k
        How many of them may be wrong.
    epsilon
        Noise radius of the residual.
    jacobian
        Of the residual at z; by default by forward-mode differentiation.
    radius, curvature, jacobian_error
        What analysis or held-out tests say of the neighbourhood of the answer: its radius, how fast
        the Jacobian changes there (L), and how far the Jacobian in use is from the true one (δ_J).
        All three are needed for the local certificate.
    penalty, weights, max_iterations
        Of the descent: λ of the penalised form, weights of the nodes, and steps at most.
    claim
        Only "local"; "global" is refused.

    Returns
    -------
    A `LocalRepair`: a stationary point near the responses, and what is known around it: with r =
    `radius`, the error is at most 2ε / (γ − δ_J − L r / 2) within r.

    >>> from rrf_design.repairing import repair_nonlinear
    >>> def residual(z):  # b = a², c = a², a = 3
    ...     return [z[1] - z[0] * z[0], z[2] - z[0] * z[0], z[0] - 3]
    >>> fixed = repair_nonlinear(residual, {"a": 3.0, "b": 9.0, "c": 20.0}, k=1)
    >>> fixed.support, round(fixed.repaired["c"][0], 6)
    (('c',), 9.0)
    """
    if claim != "local":
        raise Refused(
            "a tangent margin rules out nothing outside its neighbourhood (sin z: 0 and π fit equally well);"
            " for a global answer give finite candidates, or coordinates in which the relations are linear"
        )
    started = time.perf_counter()
    names, groups, y = _stack(responses)
    model = _Model(residual, jacobian, y)
    lam = _default_penalty(model, groups, y) if penalty is None else float(penalty)
    if not lam > 0.0:
        raise InputError(f"penalty must be positive, not {penalty!r}")
    z, steps, step_norm, objective = _sparse_gauss_newton(model, groups, y, lam, weights, max_iterations)
    z, more, polish = min(
        (_polish(model, groups, y, z, nodes, max_iterations) for nodes in _proposals(model, groups, y, z, k)),
        key=lambda point: model.size(point[0]),
    )
    rows, tangent = model(z)
    size = float(np.linalg.norm(rows))
    gamma, lower = _tangent_margin(tangent, groups, k)
    edited = tuple(i for i, part in enumerate(groups) if np.any(z[part] != y[part]))
    bound, reason = _certificate(
        lower,
        size,
        len(edited),
        k=k,
        epsilon=epsilon,
        curvature=curvature,
        radius=radius,
        jacobian_error=jacobian_error,
    )
    return LocalRepair(
        repaired={name: tuple(map(float, z[part])) for name, part in zip(names, groups, strict=True)},
        support=tuple(names[i] for i in edited),
        residual=size,
        gamma=gamma,
        error_bound=bound,
        radius=radius,
        method="gauss-newton" if jacobian is None else "gauss-newton, given jacobian",
        error={names[i]: tuple(map(float, y[groups[i]] - z[groups[i]])) for i in edited},
        converged=min(step_norm, polish) <= 1e-8 * max(1.0, float(np.linalg.norm(z))),
        iterations=steps + more,
        objective=objective,
        gradient_map=min(step_norm, polish),
        seconds=time.perf_counter() - started,
        reason=reason,
    )


def finite_alternatives(
    residual: Residual, candidates: Mapping[str, Sequence[Any]], *, epsilon: float = 1e-9, limit: int = 64
) -> tuple[Mapping[str, Values], ...]:
    """Every field z over finite candidates with ‖M(z)‖ ≤ ε: the global answer where domains are
    finite (Boolean clauses).

    Parameters
    ----------
    residual : M, of all coordinates in the order of `candidates`.
    candidates : the values that each node may have, by node id.
    epsilon : noise radius.
    limit : fields to list at most.

    Returns
    -------
    tuple of mappings from node id to its numbers

    >>> from rrf_design.repairing import finite_alternatives
    >>> bits = {"x": [0, 1], "y": [0, 1]}
    >>> len(finite_alternatives(lambda z: (1 - z[0]) * (1 - z[1]), bits))  # x or y
    3
    """
    names = tuple(candidates)
    choices = [[tuple(map(float, np.atleast_1d(value))) for value in candidates[name]] for name in names]
    if prod(len(part) for part in choices) > 1_000_000:
        raise InputError("finite_alternatives: more than a million candidate fields; use discrete repair")
    found: list[Mapping[str, Values]] = []
    for field in product(*choices):
        rows = np.atleast_1d(np.asarray(residual(np.concatenate(field)), dtype=np.float64))
        if float(np.linalg.norm(rows)) <= epsilon:
            found.append(dict(zip(names, field, strict=True)))
            if len(found) == limit:
                break
    return tuple(found)


def log_coordinates(responses: Mapping[str, Any]) -> dict[str, Values]:
    """log z of positive responses: a relation z_j = z_i^c is linear there (transport scale c), and
    the theory is global.

    Parameters
    ----------
    responses : a number or several by node id, all positive.

    Returns
    -------
    dict
        The logarithms by node id.

    >>> from rrf_design.repairing import log_coordinates
    >>> log_coordinates({"a": 1.0})
    {'a': (0.0,)}
    """
    result = {}
    for name, value in responses.items():
        numbers = np.atleast_1d(np.asarray(value, dtype=np.float64))
        if not (numbers > 0.0).all():
            raise InputError(
                f"response of node {name!r} is not positive; logarithmic coordinates need positive answers"
            )
        result[name] = tuple(float(x) for x in np.log(numbers))
    return result


@dataclass(frozen=True)
class _Model:
    """Residual with Jacobian at a point."""

    residual: Residual
    jacobian: Callable[[Array], Any] | None
    start: Array

    def __call__(self, z: Array) -> tuple[Array, Array]:
        try:
            if self.jacobian is None:
                rows, tangent = value_and_jacobian(self.residual, z)
            else:
                rows = np.atleast_1d(np.asarray(self.residual(z), dtype=np.float64))
                tangent = np.atleast_2d(np.asarray(self.jacobian(z), dtype=np.float64))
        except Exception as fault:  # whatever the user's function raises
            what = "be differentiated automatically" if self.jacobian is None else "be evaluated"
            hint = "; give a jacobian" if self.jacobian is None else ""
            raise InputError(f"the residual can't {what} ({fault}){hint}") from fault
        if tangent.shape != (len(rows), len(z)):
            raise InputError(f"the jacobian has shape {tangent.shape}, but must be {(len(rows), len(z))}")
        if not (np.isfinite(rows).all() and np.isfinite(tangent).all()):
            raise InputError("the residual or its jacobian is not finite at the responses or near them")
        return rows, tangent

    def size(self, z: Array) -> float:
        """½‖M(z)‖², infinite where it is not defined."""
        try:
            with np.errstate(all="ignore"):
                rows = np.atleast_1d(np.asarray(self.residual(z), dtype=np.float64))
        except (ValueError, ZeroDivisionError, OverflowError):
            return np.inf
        value = 0.5 * float(rows @ rows)
        return value if np.isfinite(value) else np.inf


def _stack(responses: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[NDArray[np.int64], ...], Array]:
    if not responses:
        raise InputError("responses: the field is empty")
    parts = [np.atleast_1d(np.asarray(value, dtype=np.float64)) for value in responses.values()]
    for name, part in zip(responses, parts, strict=True):
        if part.ndim != 1 or not np.isfinite(part).all():
            raise InputError(f"response of node {name!r} must be finite numbers")
    cuts = np.cumsum([0, *(len(part) for part in parts)])
    return (
        tuple(responses),
        tuple(np.arange(a, b) for a, b in pairwise(cuts.tolist())),
        np.concatenate(parts),
    )


def _default_penalty(model: _Model, groups: Sequence[NDArray[np.int64]], y: Array) -> float:
    """A hundredth of the λ above which nothing is edited; the polish removes what shrinkage is
    left.
    """
    rows, tangent = model(y)
    pull = tangent.T @ rows
    return 0.01 * max(float(np.linalg.norm(pull[part])) for part in groups) or 1.0


def _sparse_gauss_newton(
    model: _Model, groups: Sequence[NDArray[np.int64]], y: Array, lam: float, weights: Any, limit: int
) -> tuple[Array, int, float, float]:
    from solvers.decoding import GroupProblem, group_lasso

    sizes = [len(part) for part in groups]

    def objective(z: Array, problem: GroupProblem) -> float:
        return model.size(z) + lam * problem.penalty(y - z)

    z, norm, iteration, value = y.copy(), np.inf, 0, np.inf
    while iteration < limit:
        iteration += 1
        rows, tangent = model(z)
        problem = GroupProblem(tangent, sizes, weights=weights)
        target = rows + tangent @ (y - z)
        inner = group_lasso(problem, syndrome=target, penalty=lam, start=y - z, tolerance=1e-10)
        step = y - inner.error - z
        norm, value = float(np.linalg.norm(step)), objective(z, problem)
        if norm <= 1e-10 * max(1.0, float(np.linalg.norm(z))):
            break
        predicted = 0.5 * float(rows @ rows) + lam * problem.penalty(y - z) - inner.objective
        for length in _halvings():
            trial = z + length * step
            if objective(trial, problem) <= value - 1e-4 * length * max(predicted, 0.0):
                z = trial
                break
        else:
            break
    return z, iteration, norm, value


def _proposals(model: _Model, groups: Sequence[NDArray[np.int64]], y: Array, z: Array, k: int) -> list[tuple[int, ...]]:
    """Sets of at most k nodes worth fitting: the most edited ones, and the exact decoder's at both
    linearisations.

    The second kind is there because the relaxation may spread one error over several nodes, here as
    in linear fields.
    """
    from solvers.decoding import decode_support

    moved = [(float(np.linalg.norm(z[part] - y[part])), i) for i, part in enumerate(groups)]
    proposals = [tuple(sorted(i for size, i in sorted(moved, reverse=True)[:k] if size > 1e-6 * max(moved)[0]))]
    for point in (y, z):
        rows, tangent = model(point)
        found = decode_support(tangent, [len(part) for part in groups], syndrome=rows + tangent @ (y - point), k=k)
        proposals.append(found.support)
    return list(dict.fromkeys(proposals))


def _polish(
    model: _Model, groups: Sequence[NDArray[np.int64]], y: Array, z: Array, chosen: tuple[int, ...], limit: int
) -> tuple[Array, int, float]:
    """Gauss–Newton on these nodes alone; other edits are withdrawn."""
    result = y.copy()
    if not chosen:
        return result, 0, 0.0
    columns = np.concatenate([groups[i] for i in chosen])
    result[columns] = z[columns]
    norm, iteration = np.inf, 0
    while iteration < limit:
        iteration += 1
        rows, tangent = model(result)
        step = np.linalg.lstsq(tangent[:, columns], -rows, rcond=1e-12)[0]
        norm, value = float(np.linalg.norm(step)), 0.5 * float(rows @ rows)
        if norm <= 1e-12 * max(1.0, float(np.linalg.norm(result))):
            break
        for length in _halvings():
            trial = result.copy()
            trial[columns] += length * step
            if model.size(trial) <= value * (1.0 - 1e-4 * length):
                result = trial
                break
        else:
            break
    return result, iteration, norm


def _halvings() -> Iterator[float]:
    return iter([0.5**i for i in range(30)])


def _tangent_margin(tangent: Array, groups: Sequence[NDArray[np.int64]], k: int) -> tuple[float, float]:
    from solvers import margin

    found = margin(tangent, [len(part) for part in groups], k=k)
    return found.value, found.lower


def _certificate(
    gamma: float,
    size: float,
    edited: int,
    *,
    k: int,
    epsilon: float,
    curvature: float | None,
    radius: float | None,
    jacobian_error: float | None,
) -> tuple[float | None, str]:
    """The candidate-centred local certificate, or why there is none."""
    if size > epsilon + 1e-9 or edited > k:
        return None, f"no field with at most {k} edits near the responses fits: residual {size:.4g}, {edited} edits."
    if curvature is None or radius is None or jacobian_error is None:
        return (
            None,
            (
                "local fit only: without bounds on curvature (L), radius (r) and the Jacobian's error (δ_J) nothing is"
                " certified, and other fields may fit further away."
            ),
        )
    from rrf_design.certificates.local import certificate_of

    made = certificate_of(gamma, radius=radius, curvature=curvature, jacobian_error=jacobian_error, epsilon=epsilon)
    if made.error_bound is None:
        eaten = f"δ_J + Lr/2 = {jacobian_error + 0.5 * curvature * radius:.4g}"
        return None, f"the tangent margin {gamma:.4g} is eaten by {eaten}."
    return (
        made.error_bound,
        (
            f"if the truth is within {radius:g} of it and at most {k} answers are wrong, the error is at most"
            f" {made.error_bound:.4g}; further away nothing is claimed."
        ),
    )
