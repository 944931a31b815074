"""One margin computation: an incumbent, a threshold just below it, and a proof that nothing lies
under the threshold.

The search starts from an incumbent λ (a good support found locally) and asks which supports can't
be proven to lie above θ = λ(1 − 2·10⁻¹⁰). None: then γ² is proven to lie in [θ, λ]. Some: they are
evaluated, the best becomes the incumbent, and what floating point could not decide is decided in
ball arithmetic.

Supports of more than six nodes are proved root by root (`solvers._root_batches`), smaller ones by
the kernels of `solvers._search`. Either way there is one pass at the incumbent's threshold; under a
time limit a sample of it tells whether it fits.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers._exact import (
    null_vector,
    proves_at_least,
    smallest_singular_pair,
    sqrt_below,
    witness_of,
)
from solvers._gram import Field, NodeColumns
from solvers._root_batches import FRACTIONS, SMALL, Front, large_fronts
from solvers._search import Found, Search, Support, without_search
from solvers.result import DOUBTFUL, ULP_ROOM, ZERO, Bounds, LowerFrom, Margin, Progress
from solvers.tasks import stopping_at

RESTARTS, KICKS = 8, 24  # of the iterated local search for large supports: some tenths of a second
START_SHARE = 0.05  # of a time limit that it may take
AROUND = 4_000_000  # entries of G that a look from many starts may touch for each of its steps
ALWAYS = 20_000  # nodes up to which the bounds that need no search are given however late it is: hundredths of a second


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a search; `margin` holds the bounds proven so far."""

    def __init__(self, margin: Margin) -> None:
        super().__init__("interrupted")
        self.margin = margin


@dataclass(frozen=True)
class _Incumbent:
    support: Support
    sigma: float  # in the field's scaled units
    vector: NDArray[np.float64]  # on the support's columns


class ExactSearch:
    """What a computation of a margin holds while it runs: the search, the clock, and the best bound
    proven so far.

    Subclasses keep the incumbent, whose σ is `sigma`, and say how a support is offered to it and
    how the result is written.
    """

    def __init__(
        self,
        field: Field,
        size: int,
        *,
        wanted: NDArray[np.float64] | None = None,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.field = field
        self.size = size
        self.n_jobs = n_jobs
        self.deadline = None if time_limit is None else time.time() + time_limit
        self.progress = progress
        self.search = Search(field, size) if wanted is None else Search(field, size, wanted=wanted)
        self.proven = 0.0  # θ proven so far
        self.tested = 0

    @property
    def sigma(self) -> float:
        """Of the incumbent, in the field's scaled units."""
        raise NotImplementedError

    def _offer(self, support: Support) -> None:
        raise NotImplementedError

    def _result(self, *, complete: bool) -> Margin:
        raise NotImplementedError

    @property
    def top(self) -> float:
        """What progress calls the upper bound."""
        return self.sigma

    def _guarded(self, solve: Callable[[], bool]) -> Margin:
        """The result of a search that says whether it is complete; after Ctrl-C the bounds so
        far.
        """
        try:
            return self._result(complete=solve())
        except (KeyboardInterrupt, SystemError) as fault:
            if not is_interrupt(fault):
                raise
            raise Interrupted(self._result(complete=False)) from None

    def _by_roots(self, fronts: Sequence[Front]) -> tuple[float, list[Support]]:
        """One pass of all fronts at the incumbent's threshold: θ, and supports not proven at it."""
        theta = self.sigma**2 * (1.0 - ULP_ROOM)
        found: list[Support] = []
        for front in fronts:
            found += front.run(theta, deadline=self.deadline, progress=self._report())
        self.tested = sum(front.total_visited for front in fronts)
        self.proven = max(self.proven, min(theta, *(front.floor for front in fronts)))
        return theta, found

    def _fits(self, theta: float) -> bool:
        """Whether, by a sample of the roots, the pass at θ will end in time."""
        assert self.deadline is not None
        found, fits = self.search.foretell(theta, deadline=self.deadline, n_jobs=self.n_jobs)
        for support in self.search.lowest(found.supports):
            self._offer(support)
        return fits

    def _below(self, theta: float, *, adapt: bool, **options: Any) -> Found:
        found = self.search.below(
            theta, adapt=adapt, n_jobs=self.n_jobs, deadline=self.deadline, progress=self._report(), **options
        )
        self.tested += found.tested
        return found

    def _report(self) -> Callable[[float], None] | None:
        if self.progress is None:
            return None
        callback, scale, upper = self.progress, math.ldexp(1.0, self.field.exponent), self.top
        return lambda fraction: callback(fraction, (math.sqrt(self.proven) * scale, upper * scale), "")

    def _is_zero(self) -> bool:
        """By the paper's rule."""
        return self.sigma <= ZERO * self.field.longest and math.ldexp(self.sigma, self.field.exponent) <= ZERO

    def _late(self, by: float = 0.0) -> bool:
        return self.deadline is not None and time.time() >= self.deadline + by

    def _bounded(
        self, upper: float, *, zero: bool, static: bool, sure: bool, groups: NodeColumns, **named: Any
    ) -> Margin:
        """The margin between what is proven (`static`: also without any search) and its upper
        bound.
        """
        source = LowerFrom.SEARCH if zero or self.proven > 0.0 else LowerFrom.NOTHING
        if static and not zero:
            unsearched, which = without_search(self.search)
            if unsearched > self.proven:
                self.proven, source = unsearched, which
        told = Bounds.settled(
            self.sigma,
            sqrt_below(self.proven),
            upper,
            zero=zero,
            scale=self.field.longest,
            exponent=self.field.exponent,
            sure=sure,
        )
        return Margin(
            **asdict(told),
            support_size=self.size,
            groups=groups,
            tested=self.tested,
            lower_from=source,
            **named,
        )


class Minimiser(ExactSearch):
    """One computation of γ: the incumbent is the support of least σ found so far."""

    def __init__(self, field: Field, size: int, **options: Any) -> None:
        super().__init__(field, size, **options)
        self.method = "search"
        self.incumbent = _Incumbent((), math.inf, np.zeros(0))
        self.independent: set[Support] = set()  # supports whose columns are known to be independent
        self._offer((0,))  # so that there is a witness whenever one is asked for

    @property
    def sigma(self) -> float:
        return self.incumbent.sigma

    def solve(self, warm: Iterable[Support], *, method: str = "auto") -> Margin:
        return self._guarded(lambda: self._solved(warm, method))

    def _solved(self, warm: Iterable[Support], method: str) -> bool:
        """Whether the search is complete."""
        for support in (*self._local_supports(), *(tuple(sorted(s)) for s in warm)):
            self._offer(support)
        if self._is_zero() or self._late():
            return self._is_zero()
        if method != "search" and self.search.size > SMALL and not self.field.extreme:  # no float is trusted there
            fronts = large_fronts(self.search.parts, self.n_jobs, always=method == "completion")
            proved = None if fronts is None else self._finish_large(fronts)
            if proved is not None:
                return proved
        return self._finish()

    def _finish_large(self, fronts: Sequence[Front]) -> bool | None:
        """As `_finish`, root by root; None where floating point can't tell and ball arithmetic
        must.
        """
        few = math.comb(
            self.field.n, self.search.size
        )  # where there is little to search, a long look beforehand costs more than it saves
        restarts, kicks = min(RESTARTS, few // 64), min(KICKS, 1 + few // 16)
        self._iterate([self.incumbent.support], restarts=restarts, kicks=kicks)
        self.method = " and ".join(sorted({front.name for front in fronts}))
        while not self._is_zero():
            best = self.incumbent.sigma
            theta, found = self._by_roots(fronts)
            for support in found:
                self._offer(support)
            if not found:
                return self.proven >= theta
            self._iterate(found[:RESTARTS], restarts=0, kicks=0)
            if self.incumbent.sigma >= best * (1.0 - 1e-12):
                self.method = "search"
                return None  # met, but not below θ: floating point can't prove it, ball arithmetic will
        return True

    def _finish(self) -> bool:
        """Prove the incumbent, or find better ones until there is none; False when time or
        precision ran out.
        """
        fits = self.deadline is None or self._fits(self.incumbent.sigma**2 * (1.0 - ULP_ROOM))
        if not fits and self.search.thin:
            for fraction in FRACTIONS:
                if self._fits(fraction * self.incumbent.sigma**2) and self._prove(fraction * self.incumbent.sigma**2):
                    break
        for slack in (ULP_ROOM, 1e-6, 1e-3, 0.5):
            start = self.incumbent.sigma**2 * (1.0 - slack)
            found = self._below(start, adapt=True)
            for support in found.supports if self.field.extreme else self.search.lowest(found.supports):
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

    def _prove(self, theta: float) -> bool:
        """One pass at a lower threshold."""
        found = self._below(theta, adapt=False)
        for support in self.search.lowest(found.supports):
            self._offer(support)
        theta = min(theta, self.incumbent.sigma**2 * (1.0 - ULP_ROOM))
        proved: bool = found.complete and self._proves_all(found.supports, theta)
        if proved:
            self.proven = max(self.proven, theta)
        return proved

    def _iterate(self, supports: Sequence[Support], *, restarts: int, kicks: int) -> None:
        """Better supports of full size by swaps and kicks from these and from random places
        (seeded, so repeatable).
        """
        from solvers.kernels.local import fill_up, iterated_search, local_search

        field, size = self.field, self.search.size
        edges = (field.couplings.indptr, field.couplings.indices, field.couplings.data)
        owner = np.repeat(np.arange(field.n), field.dims)
        where = (field.offsets, owner, field.diagonal)
        rng = np.random.default_rng(0)
        starts = np.full((len(supports) + restarts, size), -1, np.int64)
        for row in range(len(starts)):
            if row < len(supports):
                starts[row, : len(supports[row])] = supports[row]
                fill_up(*edges, *where, starts[row])
            else:
                nodes = rng.choice(field.n, min(4, field.n), replace=False)
                _, starts[row] = local_search(*edges, *where, nodes, size, 8)
        chances = rng.random((len(starts), kicks, 6))
        deadline = None if self.deadline is None else time.time() + START_SHARE * (self.deadline - time.time())
        with stopping_at(deadline) as flag:
            _, found = iterated_search(*edges, *where, starts, chances, flag)
        self._offer(tuple(sorted(int(i) for i in found if i >= 0)))

    def _local_supports(self) -> list[Support]:
        from solvers.kernels.local import local_search, star_scores

        field = self.field
        edges = (field.couplings.indptr, field.couplings.indices, field.couplings.data)
        owner = np.repeat(np.arange(field.n), field.dims)
        scores = star_scores(*edges, owner, field.dims, field.diagonal, self.search.size - 1)
        few = (16 if field.scalar else 6) * 4 ** max(self.search.size - 4, 0)  # a scan grows faster than that
        around = int(np.diff(field.graph.indptr).max(initial=0)) * self.search.size  # entries that a hub has looked at
        count = min(max(few, field.n // 50), 1000, max(AROUND // max(around, 1), 8))
        starts = np.argpartition(scores, count - 1)[:count] if count < field.n else np.arange(field.n)
        _, found = local_search(*edges, field.offsets, owner, field.diagonal, starts, self.search.size, 8)
        weakest = int(np.argmin(field.diagonal))
        return [tuple(sorted(int(i) for i in found if i >= 0)), (int(owner[weakest]),)]

    def _offer(self, support: Support) -> None:
        sigma, vector = smallest_singular_pair(self.field.restrict(support))
        if sigma < self.incumbent.sigma or (sigma == self.incumbent.sigma and support < self.incumbent.support):
            self.incumbent = _Incumbent(support, sigma, vector)

    def _proves_all(self, supports: Sequence[Support], theta: float) -> bool:
        """λ_min(G_SS) ≥ θ for each: by the shifted Cholesky of the kernels, else in ball
        arithmetic.
        """
        for support in self.search.unproven(supports, theta):
            if self._late() or not proves_at_least(self.field.restrict(support), theta):
                return False
        return True

    def _is_zero(self) -> bool:
        """By the paper's rule; or exactly, where the incumbent's columns are dependent in exact
        arithmetic.
        """
        best = self.incumbent
        if super()._is_zero():
            return True
        if best.sigma > DOUBTFUL * self.field.longest or best.support in self.independent:
            return False
        exact = null_vector(self.field.restrict(best.support))
        if exact is None:
            self.independent.add(best.support)
            return False
        self.incumbent = _Incumbent(best.support, 0.0, exact)
        return True

    def _result(self, *, complete: bool) -> Margin:
        field, best = self.field, self.incumbent
        zero, block = self._is_zero(), field.restrict(best.support)
        vector, upper = witness_of(block, best.vector, zero=zero)
        return self._bounded(
            upper,
            zero=zero,
            static=not complete and (field.n <= ALWAYS or not self._late(by=1.0)),
            sure=True,
            groups=field.groups,
            support=best.support,
            direction=field.embed(best.support, vector),
            method=self.method,
        )


def is_interrupt(fault: BaseException | None) -> bool:
    """Ctrl-C inside a compiled kernel comes out as a SystemError (or a chain of them) with the
    interrupt as its cause.
    """
    while isinstance(fault, SystemError):
        fault = fault.__cause__
    return isinstance(fault, KeyboardInterrupt)
