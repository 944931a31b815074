"""γ: validate, search, prove, translate.

The search starts from an incumbent λ (a good support found locally) and asks which supports can't be proven to lie
above θ = λ(1 − 2·10⁻¹⁰). None: then γ² is proven to lie in [θ, λ]. Some: they are evaluated, the best becomes the
incumbent, and what floating point could not decide is decided in ball arithmetic.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.exact import norm_ratio_above, proves_at_least, sqrt_below
from solvers.gram import Field, make_field
from solvers.groups import NodeColumns
from solvers.oracle import enumerate_supports, smallest_singular_pair
from solvers.parts import Support
from solvers.result import Margin, Status, SupportValue
from solvers.search import LIMIT, ULP_ROOM, Search, gershgorin

METHODS = ("auto", "search", "enumerate")
ZERO = 1e-10  # the paper's rule: absolute and relative; the witness's residual is below 1e-9 then
EXACT_GAP = 1e-9  # bounds closer than this (relatively) are called exact
LADDER = (0.0625, 0.25, 0.5625, 0.81)  # thresholds proven first under a time limit, as fractions of the incumbent λ

Progress = Callable[[float, float, float], None]
"""Called with the fraction of the search that is done, the lower and the upper bound so far."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a search; `margin` holds the bounds proven so far."""

    def __init__(self, margin: Margin) -> None:
        super().__init__("interrupted")
        self.margin = margin


def margin(
    B: Any,
    groups: Any = None,
    *,
    k: int,
    n_jobs: int | None = None,
    time_limit: float | None = None,
    method: str = "auto",
    progress: Progress | None = None,
    warm: Iterable[Support] = (),
) -> Margin:
    """γ_k(B) = min over |S| ≤ 2k of σ_min(B_S), exactly, with the witness.

    B is an (rows, coordinates) array or scipy.sparse matrix; groups the columns of every node (lists of indices, or
    sizes of consecutive runs; default one column each). `time_limit` seconds after which the bounds proven so far are
    returned with status "bounded". `n_jobs` processes through joblib; every number gives the same answer. `warm` are
    supports worth looking at first. method="enumerate" is the paper's loop over all supports.
    """
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise ValueError(f"k: must be a whole number of at least 1, not {k!r}")
    return support_margin(
        B, groups, size=2 * int(k), n_jobs=n_jobs, time_limit=time_limit, method=method, progress=progress, warm=warm
    )


def support_margin(
    B: Any,
    groups: Any = None,
    *,
    size: int,
    n_jobs: int | None = None,
    time_limit: float | None = None,
    method: str = "auto",
    progress: Progress | None = None,
    warm: Iterable[Support] = (),
) -> Margin:
    """The same over supports of at most `size` nodes, odd sizes included."""
    _check_call(size, n_jobs)
    if method not in METHODS:
        raise ValueError(f"method: {method!r} is not one of {', '.join(METHODS)}")
    if time_limit is not None and not time_limit >= 0:
        raise ValueError(f"time_limit: must be a number of seconds, not {time_limit!r}")
    field = make_field(B, groups)
    if method == "enumerate":
        return _enumerated(field, int(size))
    return Minimiser(field, int(size), n_jobs=n_jobs, time_limit=time_limit, progress=progress).solve(warm)


def margins(B: Any, groups: Any = None, *, k: int, **options: Any) -> tuple[Margin, ...]:
    """γ_1, …, γ_k in one call, each started from the witness of the one before."""
    results: list[Margin] = []
    for budget in range(1, k + 1):
        if results and results[-1].zero:  # γ never rises with k
            results.append(replace(results[-1], support_size=2 * budget))
            continue
        warm = [results[-1].support] if results else ()
        results.append(margin(B, groups, k=budget, warm=warm, **options))
    return tuple(results)


def worst_supports(
    B: Any, groups: Any = None, *, size: int, count: int = 32, n_jobs: int | None = None
) -> tuple[SupportValue, ...]:
    """The `count` supports of `size` nodes (connected ones, and whole smaller components) with the least σ_min, worst first."""
    _check_call(size, n_jobs)
    field = make_field(B, groups)
    search = Search(field, size)
    solver = Minimiser(field, size, n_jobs=n_jobs)
    best = solver.solve(())
    low = math.ldexp(best.upper, -field.exponent) ** 2
    theta = max(low * 1.1, float(np.max(field.diagonal, initial=0.0)) * 1e-6)
    top = float(np.max(field.diagonal, initial=0.0)) * 1.01
    values: list[SupportValue] = []
    for _ in range(40):
        found = search.below(theta, limit=64 * count, n_jobs=n_jobs)
        values = sorted((evaluate(field, s) for s in found.supports), key=lambda v: (v.value, v.support))
        if len(values) >= count or theta >= top:
            break
        theta = min(theta * 1.5, top)
    if best.support and all(v.value > best.value * (1 + 1e-12) for v in values[:1]):
        values.insert(0, SupportValue(support=best.support, value=best.value, direction=best.direction.copy()))
    return tuple(values[:count])


def supports_below(
    B: Any, groups: Any = None, *, size: int, threshold: float, limit: int = LIMIT, n_jobs: int | None = None
) -> SupportsBelow:
    """Every support of `size` nodes (connected, or a whole smaller component) whose σ_min is below `threshold`."""
    _check_call(size, n_jobs)
    if not 0 <= threshold < math.inf:
        raise ValueError(f"threshold: must be a finite number of at least 0, not {threshold!r}")
    field = make_field(B, groups)
    scaled = math.ldexp(threshold, -field.exponent)
    found = Search(field, size).below(scaled * scaled, limit=limit, n_jobs=n_jobs)
    values = [value for value in (evaluate(field, s) for s in found.supports) if value.value < threshold]
    values.sort(key=lambda v: (v.value, v.support))
    return SupportsBelow(supports=tuple(values[:limit]), complete=found.complete and len(values) <= limit)


def _check_call(size: Any, n_jobs: Any) -> None:
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
        raise ValueError(f"size: must be a whole number of at least 1, not {size!r}")
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, int | np.integer) or n_jobs == 0):
        raise ValueError(f"n_jobs: must be a number of processes, or -1 for all cores, not {n_jobs!r}")


@dataclass(frozen=True, slots=True)
class SupportsBelow:
    """Supports below a threshold, worst first. Incomplete: there are more than the limit, and these are some of them."""

    supports: tuple[SupportValue, ...]
    complete: bool


def evaluate(field: Field, support: Support) -> SupportValue:
    """σ_min(B_S) from B itself, in the caller's units."""
    sigma, vector = smallest_singular_pair(field.restrict(support))
    return SupportValue(
        support=support, value=math.ldexp(sigma, field.exponent), direction=field.embed(support, vector)
    )


@dataclass(frozen=True)
class _Incumbent:
    support: Support
    sigma: float  # in the field's scaled units
    vector: NDArray[np.float64]  # on the support's columns


class Minimiser:
    """One margin computation: holds the search arrays, the incumbent and the best proven bound while it runs."""

    def __init__(
        self,
        field: Field,
        size: int,
        *,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.field = field
        self.size = size
        self.n_jobs = n_jobs
        self.deadline = None if time_limit is None else time.time() + time_limit
        self.progress = progress
        self.search = Search(field, size)
        self.proven = 0.0  # θ proven so far
        self.tested = 0
        self.incumbent = _Incumbent((), math.inf, np.zeros(0))
        self._offer((0,))  # so that there is a witness whenever one is asked for

    def solve(self, warm: Iterable[Support]) -> Margin:
        try:
            for support in (*self._local_supports(), *(tuple(sorted(s)) for s in warm)):
                self._offer(support)
            if self._is_zero():
                return self._result(complete=True)
            if self.deadline is not None:
                self._climb()
            return self._result(complete=self._finish())
        except (KeyboardInterrupt, SystemError) as fault:
            if not _is_interrupt(fault):
                raise
            raise Interrupted(self._result(complete=False)) from None

    def _finish(self) -> bool:
        """Prove the incumbent, or find better ones until there is none; False when time or precision ran out."""
        for slack in (ULP_ROOM, 1e-6, 1e-3, 0.5):
            start = self.incumbent.sigma**2 * (1.0 - slack)
            found = self._below(start, adapt=True)
            for support in self.search.lowest(found.supports):
                self._offer(support)
            if self._is_zero():
                return True
            theta = min(start, found.theta, self.incumbent.sigma**2 * (1.0 - ULP_ROOM))
            if found.complete and self._proves_all(found.supports, theta):
                self.proven = max(self.proven, theta)
                return True
            if self._late():
                break
        return False

    def _climb(self) -> None:
        """Under a time limit: prove easy thresholds first, so that there is always a bound to return."""
        for fraction in LADDER:
            if self._late():
                return
            theta = fraction * self.incumbent.sigma**2
            found = self._below(theta, adapt=False)
            for support in self.search.lowest(found.supports):
                self._offer(support)
            if self._is_zero():
                return
            theta = min(theta, self.incumbent.sigma**2 * (1.0 - ULP_ROOM))
            if found.complete and self._proves_all(found.supports, theta):
                self.proven = max(self.proven, theta)

    def _below(self, theta: float, *, adapt: bool) -> Any:
        upper = self.incumbent.sigma
        report = None
        if self.progress is not None:
            callback, scale = self.progress, math.ldexp(1.0, self.field.exponent)

            def report(fraction: float) -> None:
                callback(fraction, math.sqrt(self.proven) * scale, upper * scale)

        found = self.search.below(theta, adapt=adapt, n_jobs=self.n_jobs, deadline=self.deadline, progress=report)
        self.tested += found.tested
        return found

    def _local_supports(self) -> list[Support]:
        from solvers.kernels.local import local_search, star_scores

        field = self.field
        edges = (field.couplings.indptr, field.couplings.indices, field.couplings.data)
        owner = np.repeat(np.arange(field.n), field.dims)
        scores = star_scores(*edges, owner, field.dims, field.diagonal, self.search.size - 1)
        few = (16 if field.scalar else 6) * 4 ** max(self.search.size - 4, 0)  # a scan grows faster than that
        count = min(max(few, field.n // 50), 1000)
        starts = np.argpartition(scores, count - 1)[:count] if count < field.n else np.arange(field.n)
        _, found = local_search(*edges, field.offsets, owner, field.diagonal, starts, self.search.size, 8)
        weakest = int(np.argmin(field.diagonal))
        return [tuple(sorted(int(i) for i in found if i >= 0)), (int(owner[weakest]),)]

    def _offer(self, support: Support) -> None:
        sigma, vector = smallest_singular_pair(self.field.restrict(support))
        if sigma < self.incumbent.sigma or (sigma == self.incumbent.sigma and support < self.incumbent.support):
            self.incumbent = _Incumbent(support, sigma, vector)

    def _proves_all(self, supports: Sequence[Support], theta: float) -> bool:
        """λ_min(G_SS) ≥ θ for each: by the shifted Cholesky of the kernels, else in ball arithmetic."""
        return all(proves_at_least(self.field.restrict(s), theta) for s in self.search.unproven(supports, theta))

    def _is_zero(self) -> bool:
        scale = float(np.max(self.field.column_norms, initial=0.0))
        sigma = self.incumbent.sigma
        return sigma <= ZERO * scale and math.ldexp(sigma, self.field.exponent) <= ZERO

    def _late(self) -> bool:
        return self.deadline is not None and time.time() >= self.deadline

    def _result(self, *, complete: bool) -> Margin:
        field, best = self.field, self.incumbent
        zero = self._is_zero()
        upper = norm_ratio_above(field.restrict(best.support), best.vector)
        if zero:
            lower = 0.0
        else:
            if not complete and self.proven == 0.0 and not self._late_by(1.0):
                self.proven = gershgorin(self.search)
            lower = min(sqrt_below(self.proven), upper)
        closed = zero or upper - lower <= EXACT_GAP * upper
        value = 0.0 if zero else min(max(best.sigma, lower), upper)
        scale = field.exponent
        return Margin(
            value=math.ldexp(value, scale),
            lower=math.ldexp(lower, scale),
            upper=math.ldexp(upper, scale),
            support=best.support,
            direction=field.embed(best.support, best.vector),
            status=Status.EXACT if closed else Status.BOUNDED,
            method="search",
            support_size=self.size,
            groups=field.groups,
            tested=self.tested,
        )

    def _late_by(self, seconds: float) -> bool:
        return self.deadline is not None and time.time() >= self.deadline + seconds


def _is_interrupt(fault: BaseException | None) -> bool:
    """Ctrl-C inside a compiled kernel comes out as a SystemError (or a chain of them) with the interrupt as its cause."""
    while isinstance(fault, SystemError):
        fault = fault.__cause__
    return isinstance(fault, KeyboardInterrupt)


def _enumerated(field: Field, size: int) -> Margin:
    """The oracle, with bounds that hold: σ_min of a dense SVD is accurate to a few ulps of ‖B‖."""
    found = enumerate_supports(field.matrix.toarray(), NodeColumns.of_sizes(field.dims), size)
    vector = found.direction[field.columns_of(found.support)]
    upper = norm_ratio_above(field.restrict(found.support), vector)
    error = 100.0 * max(field.matrix.shape) * 2.0**-53 * float(np.linalg.norm(field.column_norms))
    zero = found.value <= ZERO and math.ldexp(found.value, field.exponent) <= ZERO
    lower = 0.0 if zero else max(0.0, found.value - error)
    value = 0.0 if zero else min(max(found.value, lower), upper)
    return Margin(
        value=math.ldexp(value, field.exponent),
        lower=math.ldexp(lower, field.exponent),
        upper=math.ldexp(upper, field.exponent),
        support=found.support,
        direction=field.embed(found.support, vector),
        status=Status.EXACT,
        method="enumerate",
        support_size=size,
        groups=field.groups,
    )
