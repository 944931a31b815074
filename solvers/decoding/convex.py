"""Group-ℓ₁ decoders: the penalised form, its path, and basis pursuit denoising to its ε (paper,
"Convex sparse decoders").

    penalised     min ½‖Be − s‖² + λ Σ ωᵢ‖eᵢ‖                    FISTA with function restart
    constrained   min Σ ωᵢ‖eᵢ‖  subject to ‖Be − s‖ ≤ ε            the λ whose residual is ε;
    multipliers when ε = 0

Each iteration costs one product with B and one with Bᵀ, so it is linear in the nonzeros. The step
comes from a power iteration with a safety factor, and every answer carries a duality gap: the
scaled residual is a dual point, so objective − gap is a lower bound on the optimum whatever the
iteration did.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from solvers._gram import column_groups

Array = NDArray[np.float64]

SAFETY = 1.05
"""On the squared norm of B: a power iteration approaches it from below."""
CHECK_EVERY = 10


@dataclass(frozen=True, slots=True)
class ConvexSolution:
    """A point of a group-ℓ₁ problem with its duality gap: objective − gap is a lower bound on the
    optimum.
    """

    error: Array
    objective: float
    gap: float
    residual: float
    penalty: float
    """λ of the penalised form this is (for the constrained form: the one found for its ε)."""
    iterations: int
    converged: bool

    def __post_init__(self) -> None:
        self.error.setflags(write=False)


class GroupProblem:
    """B, groups and weights prepared once; columns are put in node order so that group norms are
    one pass.
    """

    def __init__(self, B: Any, groups: Any = None, *, weights: Any = None) -> None:
        matrix: Any = sparse.csr_array(B, dtype=np.float64) if sparse.issparse(B) else np.array(B, dtype=np.float64)
        if matrix.ndim != 2:
            raise ValueError(f"B must be a matrix, not an array of {matrix.ndim} dimensions")
        if not np.isfinite(matrix.data if sparse.issparse(matrix) else matrix).all():
            raise ValueError("B holds a NaN or an infinity")
        columns = column_groups(groups, matrix.shape[1])
        self.order = columns.order
        self.sizes = columns.sizes
        self.starts = columns.offsets[:-1]
        self.matrix: Any = matrix[:, self.order]
        self.transposed = self.matrix.T.tocsr() if sparse.issparse(matrix) else self.matrix.T
        self.weights = _weights(weights, self.sizes)
        self.lipschitz = SAFETY * self._squared_norm()

    def norms(self, e: Array) -> Array:
        return np.asarray(np.sqrt(np.add.reduceat(np.square(e), self.starts)))

    def shrink(self, e: Array, amount: float) -> Array:
        """Group soft thresholding by amount · ωᵢ."""
        norms = self.norms(e)
        factor = np.maximum(0.0, 1.0 - amount * self.weights / np.maximum(norms, 1e-300))
        return np.asarray(e * np.repeat(factor, self.sizes))

    def penalty(self, e: Array) -> float:
        return float(self.weights @ self.norms(e))

    def dual_norm(self, correlation: Array) -> float:
        """max ‖B_iᵀr‖ / ωᵢ; λ above this value makes e = 0 optimal."""
        return float(np.max(self.norms(correlation) / self.weights))

    def restore(self, e: Array) -> Array:
        result = np.empty_like(e)
        result[self.order] = e
        return result

    def _squared_norm(self) -> float:
        """‖B‖² by power iteration from a fixed start; Frobenius bounds it when the iteration has
        not settled.
        """
        bound = float(np.square(self.matrix.data if sparse.issparse(self.matrix) else self.matrix).sum())
        vector = np.random.default_rng(0).normal(size=self.matrix.shape[1])
        value = 0.0
        for _ in range(100):
            norm = float(np.linalg.norm(vector))
            if norm == 0.0:
                break
            vector = self.transposed @ (self.matrix @ (vector / norm))
            fresh = float(np.linalg.norm(vector))
            if abs(fresh - value) <= 1e-4 * fresh:
                return min(fresh, bound) or 1.0
            value = fresh
        return bound or 1.0


class _Effort(NamedTuple):
    """What may still be spent: iterations, and time on the clock."""

    iterations: int
    deadline: float

    @classmethod
    def of(cls, iterations: int, seconds: float | None) -> _Effort:
        return cls(iterations, math.inf if seconds is None else time.monotonic() + seconds)

    def after(self, used: int) -> _Effort:
        return _Effort(self.iterations - used, self.deadline)

    @property
    def over(self) -> bool:
        return self.iterations <= 0 or time.monotonic() >= self.deadline


def group_lasso(
    B: Any,
    groups: Any = None,
    *,
    syndrome: Any,
    penalty: float,
    start: Any = None,
    tolerance: float = 1e-9,
    max_iterations: int = 50_000,
    time_limit: float | None = None,
) -> ConvexSolution:
    """min ½‖Be − s‖² + λ Σ ωᵢ‖eᵢ‖, until the duality gap is below tolerance · ½‖s‖².

    Weights are 1, or sqrt(dim) where the dimensions differ; for others give a `GroupProblem` as B.
    After `max_iterations` or `time_limit` seconds the answer so far is returned with its gap, and
    is not `converged`.

    Parameters
    ----------
    B, groups
        The matrix and the columns of its nodes, or a `GroupProblem` as B.
    syndrome, penalty
        s and λ.
    start
        An error to begin with.
    tolerance, max_iterations, time_limit
        When to stop.

    Returns
    -------
    A `ConvexSolution`: the error with its objective and duality gap.

    >>> from solvers.decoding import group_lasso
    >>> B = [[1.0, -1.0, 0.0], [0.0, 1.0, -1.0], [1.0, 0.0, 0.0]]
    >>> found = group_lasso(B, syndrome=[-2.0, 2.0, 0.0], penalty=0.1)  # the middle one is off by 2
    >>> found.converged, int(abs(found.error).argmax()), round(float(found.error[1]), 2)
    (True, 1, 1.95)
    """
    problem = B if isinstance(B, GroupProblem) else GroupProblem(B, groups)
    s = _vector(syndrome, problem)
    if not penalty > 0.0:
        raise ValueError(f"the penalty must be positive, got {penalty!r}")
    e = np.zeros(problem.matrix.shape[1]) if start is None else np.asarray(start, dtype=np.float64)[problem.order]
    return _fista(problem, s, penalty, e, tolerance * 0.5 * float(s @ s), _Effort.of(max_iterations, time_limit))


def lasso_path(
    B: Any,
    groups: Any = None,
    *,
    syndrome: Any,
    penalties: Sequence[float] | None = None,
    count: int = 30,
    **options: Any,
) -> tuple[ConvexSolution, ...]:
    """The penalised form along falling λ, each started from the one before.

    Parameters
    ----------
    B, groups
        The matrix and the columns of its nodes, or a `GroupProblem` as B.
    syndrome
        s.
    penalties
        Values of λ; default a logarithmic grid of `count` from λ_max to 1e-4 λ_max.
    count
        Points of the default grid.
    options
        More of what `group_lasso` takes.

    Returns
    -------
    A `ConvexSolution` for each λ, the largest first.

    >>> from solvers.decoding import lasso_path
    >>> B = [[1.0, -1.0, 0.0], [0.0, 1.0, -1.0], [1.0, 0.0, 0.0]]
    >>> path = lasso_path(B, syndrome=[-2.0, 2.0, 0.0], penalties=[0.1, 4.0])
    >>> [round(float(point.error[1]), 2) for point in path]
    [0.0, 1.95]
    """
    problem = B if isinstance(B, GroupProblem) else GroupProblem(B, groups)
    s = _vector(syndrome, problem)
    if penalties is None:
        top = problem.dual_norm(problem.transposed @ s) or 1.0
        penalties = np.geomspace(top, 1e-4 * top, count).tolist()
    result: list[ConvexSolution] = []
    for value in sorted(penalties, reverse=True):
        start = result[-1].error if result else None
        result.append(group_lasso(problem, syndrome=s, penalty=value, start=start, **options))
    return tuple(result)


def group_bpdn(
    B: Any,
    groups: Any = None,
    *,
    syndrome: Any,
    epsilon: float,
    weights: Any = None,
    tolerance: float = 1e-7,
    max_iterations: int = 200_000,
    time_limit: float | None = None,
) -> ConvexSolution:
    """min Σ ωᵢ‖eᵢ‖ subject to ‖Be − s‖ ≤ ε.

    `residual` of the answer is within tolerance · ‖s‖ of feasible, and the gap is that of the
    constrained problem, relative to its dual max sᵀν − ε‖ν‖ subject to ‖B_iᵀν‖ ≤ ωᵢ.

    Parameters
    ----------
    B, groups
        The matrix and the columns of its nodes, or a `GroupProblem` as B.
    syndrome, epsilon
        s and ε; an ε below the least residual of all is an error.
    weights
        ω; default 1, or sqrt(dim) where the dimensions differ.
    tolerance, max_iterations, time_limit
        When to stop.

    Returns
    -------
    A `ConvexSolution`; its `penalty` is the λ whose penalised form it solves.

    >>> from solvers.decoding import group_bpdn
    >>> B = [[1.0, -1.0, 0.0], [0.0, 1.0, -1.0], [1.0, 0.0, 0.0]]
    >>> found = group_bpdn(B, syndrome=[-2.0, 2.0, 0.0], epsilon=0.0)
    >>> found.converged, round(float(found.error[1]), 4)
    (True, 2.0)
    """
    problem = B if isinstance(B, GroupProblem) else GroupProblem(B, groups, weights=weights)
    s = _vector(syndrome, problem)
    if not epsilon >= 0.0:
        raise ValueError(f"epsilon must be a number of at least 0, got {epsilon!r}")
    size = float(np.linalg.norm(s))
    if size <= epsilon or size == 0.0:
        return ConvexSolution(np.zeros(problem.matrix.shape[1]), 0.0, 0.0, size, np.inf, 0, True)
    floor = _least_residual(problem, s)
    if floor > epsilon + tolerance * size:
        raise ValueError(
            f"no error at all reaches residual {epsilon:g}: the least possible one is {floor:g}; raise epsilon"
        )
    effort = _Effort.of(max_iterations, time_limit)
    if epsilon <= floor + tolerance * size:
        return _multipliers(problem, s, epsilon, tolerance, effort)
    return _root(problem, s, epsilon, tolerance, effort)


def _root(problem: GroupProblem, s: Array, epsilon: float, tolerance: float, effort: _Effort) -> ConvexSolution:
    """The residual grows with λ: bracket from above, then regula falsi on log λ (Illinois),
    warm-started.
    """
    size = float(np.linalg.norm(s))
    top = problem.dual_norm(problem.transposed @ s)
    e = np.zeros(problem.matrix.shape[1])
    low, high = 0.0, top
    f_low, f_high = -epsilon, size - epsilon
    penalty, used = top * epsilon / size * 0.5, 0
    best: ConvexSolution | None = None
    for _ in range(80):
        inner = _fista(problem, s, penalty, e, 1e-3 * tolerance * 0.5 * epsilon**2, effort.after(used))
        used += inner.iterations
        e = inner.error[problem.order]
        best = _constrained(problem, s, epsilon, inner, used, tolerance)
        if best.converged or effort.after(used).over:
            break
        value = inner.residual - epsilon
        if value > 0:
            high, f_high, f_low = penalty, value, f_low / 2
        else:
            low, f_low, f_high = penalty, value, f_high / 2
        guess = high - f_high * (high - low) / (f_high - f_low)
        penalty = min(max(guess, low + 0.01 * (high - low)), high - 0.01 * (high - low))
    assert best is not None
    return best


def _multipliers(problem: GroupProblem, s: Array, epsilon: float, tolerance: float, effort: _Effort) -> ConvexSolution:
    """Basis pursuit by the method of multipliers: the penalised form again and again, the misfit
    added back to s.
    """
    size = float(np.linalg.norm(s))
    penalty = 0.05 * problem.dual_norm(problem.transposed @ s)
    e = np.zeros(problem.matrix.shape[1])
    shifted, used = s.copy(), 0
    best: ConvexSolution | None = None
    accuracy = 1e-4
    while True:
        inner = _fista(problem, shifted, penalty, e, accuracy * tolerance * 0.5 * size**2, effort.after(used))
        used += inner.iterations
        e = inner.error[problem.order]
        misfit = s - problem.matrix @ e
        dual = (shifted - problem.matrix @ e) / penalty
        dual /= max(1.0, problem.dual_norm(problem.transposed @ dual))
        value = problem.penalty(e)
        residual = float(np.linalg.norm(misfit))
        gap = abs(value - float(s @ dual - epsilon * np.linalg.norm(dual)))
        done = residual <= epsilon + tolerance * size and gap <= 10 * tolerance * max(value, 1e-300)
        best = ConvexSolution(inner.error, value, gap, residual, penalty, used, done)
        if done or effort.after(used).over:
            return best
        shifted = shifted + misfit
        accuracy = max(accuracy * 0.5, 1e-8)


def _constrained(
    problem: GroupProblem, s: Array, epsilon: float, inner: ConvexSolution, used: int, tolerance: float
) -> ConvexSolution:
    """A penalised solution read as one of the constrained form, with that form's gap."""
    e = inner.error[problem.order]
    misfit = s - problem.matrix @ e
    dual = misfit / max(problem.dual_norm(problem.transposed @ misfit), 1e-300)
    value = problem.penalty(e)
    gap = abs(value - float(s @ dual - epsilon * np.linalg.norm(dual)))
    feasible = inner.residual <= epsilon * (1 + tolerance)
    done = feasible and gap <= 10 * tolerance * max(value, 1e-300)
    return ConvexSolution(inner.error, value, gap, inner.residual, inner.penalty, used, done)


def _fista(problem: GroupProblem, s: Array, penalty: float, e: Array, target: float, effort: _Effort) -> ConvexSolution:
    """Accelerated proximal gradient, restarted whenever momentum points uphill; the least gap seen
    is returned.
    """
    step = 1.0 / problem.lipschitz
    ahead, momentum = e.copy(), 1.0
    image = problem.matrix @ e
    image_ahead = image.copy()
    done, iteration, gap, objective = False, 0, np.inf, np.inf
    while True:
        if iteration % CHECK_EVERY == 0 or iteration >= effort.iterations:
            misfit = s - image
            objective = 0.5 * float(misfit @ misfit) + penalty * problem.penalty(e)
            dual = misfit * min(1.0, penalty / max(problem.dual_norm(problem.transposed @ misfit), 1e-300))
            gap = max(0.0, objective - float(s @ dual) + 0.5 * float(dual @ dual))
            # Rounding keeps the gap from falling below this, however long one iterates.
            done = gap <= max(target, 1e-14 * max(objective, 0.5 * float(s @ s)))
            if done or effort.after(iteration).over:
                break
        fresh = problem.shrink(ahead - step * (problem.transposed @ (image_ahead - s)), step * penalty)
        moved = fresh - e
        if float((ahead - fresh) @ moved) > 0.0:
            momentum = 1.0
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        push = (momentum - 1.0) / following
        fresh_image = problem.matrix @ fresh
        ahead = fresh + push * moved
        image_ahead = fresh_image + push * (fresh_image - image)
        e, image, momentum = fresh, fresh_image, following
        iteration += 1
    residual = float(np.linalg.norm(s - problem.matrix @ e))
    return ConvexSolution(problem.restore(e), objective, gap, residual, penalty, iteration, done)


def _least_residual(problem: GroupProblem, s: Array) -> float:
    """min ‖Be − s‖ over all e: no constrained problem with a smaller ε has a solution."""
    rows, columns = problem.matrix.shape
    if not sparse.issparse(problem.matrix) or rows * columns <= 250_000:
        dense = problem.matrix.toarray() if sparse.issparse(problem.matrix) else problem.matrix
        return float(np.linalg.norm(s - dense @ np.linalg.lstsq(dense, s, rcond=1e-12)[0]))
    from scipy.sparse.linalg import lsmr

    return float(np.linalg.norm(s - problem.matrix @ lsmr(problem.matrix, s, atol=1e-13, btol=1e-13)[0]))


def _weights(weights: Any, sizes: NDArray[np.int64]) -> Array:
    if weights is None:
        return np.ones(len(sizes)) if len(set(sizes.tolist())) == 1 else np.sqrt(sizes.astype(np.float64))
    result = np.asarray(weights, dtype=np.float64)
    if result.shape != (len(sizes),) or not (np.isfinite(result) & (result > 0)).all():
        raise ValueError(f"weights must be {len(sizes)} positive numbers, one per node")
    return result


def _vector(syndrome: Any, problem: GroupProblem) -> Array:
    s = np.asarray(syndrome, dtype=np.float64)
    if s.shape != (problem.matrix.shape[0],) or not np.isfinite(s).all():
        raise ValueError(f"the syndrome must be {problem.matrix.shape[0]} finite numbers, one per row")
    return s
