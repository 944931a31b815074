"""γ_{k,D}: how well what is delivered is protected, whatever happens to the rest
(docs/algorithms.md, fact 30).

γ_{k,D}(B) = min { ‖Bh‖ : h on at most 2k units, ‖h_D‖ = 1 }, with D some columns of B. Two
explanations of the same measurements within ε differ by at most 2ε/γ_{k,D} on D. Three facts make
it cheap:

- More units never raise it (an h on S is one on every larger S'), so only the largest supports
  matter.
- Let h fall into parts h_c on non-adjacent unit sets. Then ‖Bh‖² = Σ‖Bh_c‖² and ‖h_D‖² =
  Σ‖(h_c)_D‖², so a part with
  (h_c)_D ≠ 0 has no larger ratio than h: only connected supports matter, and only those that meet
  D. They all lie within 2k − 1 steps of D, and nothing else of the field is looked at.
- "‖Bh‖² ≥ θ‖h_D‖² on S" is G_SS − θP_D ⪰ 0: the threshold question of `solvers._search`, with θ on
  D only.

G_SS may be singular outside D; such supports are decided in rationals (`solvers._schur`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from solvers._components import Support
from solvers._gamma import SupportsBelow, check_call, support_margin
from solvers._minimiser import ALWAYS, ExactSearch
from solvers._neighbourhood import LocalField, delivered_columns, neighbourhood_of
from solvers._root_batches import FRACTIONS, SMALL, Front, large_fronts
from solvers._schur import Hidden, hidden, near_vector, proves_hidden_at_least
from solvers._search import Search
from solvers.result import ULP_ROOM, Margin, Progress, Status, SupportValue

MOST = 1 << 18  # supports that floating point can't decide, before the search gives up
STARTS = 8  # delivered units that the local search starts from; one in fifty where there are many
AWAY = 64.0  # what columns that are not delivered are scaled by for it: a guess, so a few digits are enough
TRUE = 0.9  # a share of σ² that it must have seen: less, and it followed directions that are blind outside D
GROWN = 2  # then: of the weakest units, how many are grown along the witness of what is delivered

Content = tuple[tuple[int, ...], bytes, bytes]
"""A block and its wanted columns, to be compared by content."""


def delivered_margin(
    B: Any,
    groups: Any = None,
    deliver: Iterable[int] = (),
    *,
    k: int,
    n_jobs: int | None = None,
    time_limit: float | None = None,
    method: str = "auto",
    progress: Progress | None = None,
) -> Margin:
    """γ_{k,D}(B) = min ‖Bh‖/‖h_D‖ over h on at most 2k units with h_D ≠ 0, exactly, with the
    witness.

    B and groups as for `margin` (groups are the units); `deliver` are the columns D of B, at least
    one. A unit may hold delivered columns and others. The result's direction has ‖h_D‖ = 1, so its
    own norm may be larger; `value` is 0.0 exactly where some h on 2k units is invisible (Bh = 0, or
    numerically so) and h_D ≠ 0. It is never below γ_k. method="search" goes through supports one by
    one whatever their size, "completion" bounds all completions at once wherever it can (auto: as
    for `margin`).

    >>> import numpy as np
    >>> from solvers import delivered_margin
    >>> B = np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0], [1.0, 0.0, 0.0]])
    >>> round(delivered_margin(B, None, [0], k=1).value, 4)  # the margin of everything is 0.618
    1.2247
    """
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise ValueError(f"k: must be a whole number of at least 1, not {k!r}")
    check_call(2 * int(k), n_jobs)
    if time_limit is not None and not time_limit >= 0:
        raise ValueError(f"time_limit: must be a number of seconds, not {time_limit!r}")
    if method not in ("auto", "search", "completion"):
        raise ValueError(f"method: {method!r} is not one of auto, search, completion")
    columns = np.shape(B)[1] if np.ndim(B) == 2 else 0
    inside = delivered_columns(deliver, columns) if columns else np.zeros(0, np.int64)
    if columns and len(inside) == columns:  # everything is delivered: the plain margin is the same minimum
        plain = support_margin(
            B,
            groups,
            size=2 * int(k),
            n_jobs=n_jobs,
            time_limit=time_limit,
            method=method,
            progress=progress,
        )
        if plain.status is Status.EXACT or time_limit is not None:
            return plain
        # Nearly singular: what floats leave open is decided below, in rationals.
    near = neighbourhood_of(B, groups, deliver, radius=2 * int(k) - 1)
    solver = DeliveredMinimiser(near, 2 * int(k), n_jobs=n_jobs, time_limit=time_limit, progress=progress)
    return solver.solve(method=method)


def delivered_supports_below(
    B: Any,
    groups: Any = None,
    deliver: Iterable[int] = (),
    *,
    size: int,
    threshold: float,
    limit: int = 4096,
    n_jobs: int | None = None,
) -> SupportsBelow:
    """Every connected support of `size` units (or whole smaller component) that meets D with a
    minimum below `threshold`.

    Each with the vector that attains it, ‖h_D‖ = 1: a planner's cut is ‖B(x)h‖² ≥ t for it as it
    stands.

    >>> import numpy as np
    >>> from solvers import delivered_supports_below
    >>> B = np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0], [1.0, 0.0, 0.0]])
    >>> below = delivered_supports_below(B, None, [2], size=2, threshold=0.9)
    >>> [found.support for found in below.supports]
    [(1, 2)]
    """
    check_call(size, n_jobs)
    if not 0 <= threshold < math.inf:
        raise ValueError(f"threshold: must be a finite number of at least 0, not {threshold!r}")
    near = neighbourhood_of(B, groups, deliver, radius=size - 1, thin=False)
    search = Search(near.field, size, wanted=near.wanted.astype(np.float64))
    scaled = math.ldexp(threshold, -near.field.exponent)
    found = search.below(scaled * scaled, limit=max(limit, MOST >> 4), n_jobs=n_jobs)
    values = [v for v in (_evaluate_delivered(near, s) for s in found.supports) if v.value < threshold]
    values.sort(key=lambda v: (v.value, v.support))
    return SupportsBelow(supports=tuple(values[:limit]), complete=found.complete and len(values) <= limit)


def delivered_worst_supports(
    B: Any, groups: Any = None, deliver: Iterable[int] = (), *, size: int, count: int = 32, n_jobs: int | None = None
) -> tuple[SupportValue, ...]:
    """The `count` connected supports of `size` units that meet D with the least minimum, worst
    first; ‖h_D‖ = 1 in each.

    >>> import numpy as np
    >>> from solvers import delivered_worst_supports
    >>> B = np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0], [1.0, 0.0, 0.0]])
    >>> delivered_worst_supports(B, None, [2], size=2, count=1)[0].support
    (1, 2)
    """
    check_call(size, n_jobs)
    near = neighbourhood_of(B, groups, deliver, radius=size - 1, thin=False)
    solver = DeliveredMinimiser(near, size, n_jobs=n_jobs)
    best = solver.solve()
    top = float(np.max(near.field.diagonal[near.wanted], initial=0.0)) * 1.01
    theta = max(math.ldexp(best.upper, -near.field.exponent) ** 2 * 1.1, top * 1e-6)
    values: list[SupportValue] = []
    for _ in range(40):
        found = solver.search.below(theta, limit=max(64 * count, MOST >> 8), n_jobs=n_jobs)
        values = sorted((_evaluate_delivered(near, s) for s in found.supports), key=lambda v: (v.value, v.support))
        if len(values) >= count or theta >= top:
            break
        theta = min(theta * 1.5, top)
    if all(v.value > best.value * (1 + 1e-12) for v in values[:1]):
        values.insert(0, SupportValue(support=best.support, value=best.value, direction=best.direction.copy()))
    return tuple(values[:count])


def _evaluate_delivered(near: LocalField, support: Support) -> SupportValue:
    """The minimum on one support of the neighbourhood, from B itself, in the caller's units and
    names.
    """
    found = hidden(near.field.restrict(support), near.wanted_in(support))
    return SupportValue(
        support=near.names(support),
        value=math.ldexp(found.sigma, near.field.exponent),
        direction=near.embed(support, found.vector),
    )


class DeliveredMinimiser(ExactSearch):
    """One computation of γ over supports of `size` units for what is delivered."""

    def __init__(self, near: LocalField, size: int, **options: Any) -> None:
        super().__init__(near.field, size, wanted=near.wanted.astype(np.float64), **options)
        self.near = near
        self._known: dict[Content, Hidden] = {}  # by content of the block: copies of one small field are evaluated once
        first = (int(near.units[0]),)
        self.support: Support = first
        self.best: Hidden = self._evaluate(first)

    @property
    def sigma(self) -> float:
        return self.best.sigma

    @property
    def top(self) -> float:
        return self.best.upper

    def solve(self, *, method: str = "auto") -> Margin:
        return self._guarded(lambda: self._solved(method))

    def _solved(self, method: str) -> bool:
        """Whether the search is complete."""
        for support in self._first_supports():
            self._offer(support)
        return self._is_zero() or (not self._late() and self._finish(method))

    def _finish(self, method: str) -> bool:
        """Prove the incumbent, or find better ones until there is none; False when time or
        precision ran out.
        """
        if method != "search" and self.search.size > SMALL and not self.field.extreme:
            fronts = large_fronts(self.search.parts, self.n_jobs, always=method == "completion")
            proved = None if fronts is None else self._finish_large(fronts)
            if proved is not None:
                return proved
        fits = self.deadline is None or self._fits(self.best.sigma**2 * (1.0 - ULP_ROOM))
        below = () if fits or not self.search.thin else FRACTIONS
        for share in (*below, 1.0 - ULP_ROOM, 1.0 - 1e-6, 1.0 - 1e-3, 0.5):
            last = share not in below
            if not last and (self.proven > 0.0 or not self._fits(self.best.sigma**2 * share)):
                continue
            start = self.best.sigma**2 * share
            found = self._below(start, adapt=last, limit=MOST)
            for support in self.search.lowest(found.supports):
                self._offer(support)
            if self._is_zero():
                return True
            theta = min(start, found.theta, self.best.sigma**2 * (1.0 - ULP_ROOM))
            doubtful = self.search.unproven(list(found.supports), theta) if found.complete else []
            for support in doubtful:  # a guess in floating point may have overlooked what these hide
                if self._late():
                    return False
                self._offer(support)
            if self._is_zero():
                return True
            theta = min(theta, self.best.sigma**2 * (1.0 - ULP_ROOM))
            if found.complete and self._proves_all(doubtful, theta):
                self.proven = max(self.proven, theta)
                if last:
                    return True
            if self._late():
                break
        return False

    def _finish_large(self, fronts: Sequence[Front]) -> bool | None:
        """The same root by root; None where floating point can't tell and rationals must."""
        while not self._is_zero():
            best = self.best.sigma
            theta, found = self._by_roots(fronts)
            if not found:
                return self.proven >= theta
            for support in found:
                self._offer(support)
                if self.near.wanted_in(support).any():
                    self._offer(self._grown(support))
            if self.best.sigma >= best * (1.0 - 1e-12):
                return None  # met, but not below θ, or without anything delivered
        return True

    def _first_supports(self) -> list[Support]:
        """A local search for what is delivered from the weakest delivered units, and supports grown
        from the very weakest of them.

        Columns that are not delivered, times `AWAY`, weigh next to nothing in ‖h‖: what is left of
        it is ‖h_D‖, and the plain local search finds supports that are low for what is delivered.
        """
        from solvers.kernels.local import delivered_scores, local_search

        field = self.field
        pointer, index, value = field.couplings.indptr, field.couplings.indices, field.couplings.data
        owner = np.repeat(np.arange(field.n), field.dims)
        scores = delivered_scores(pointer, index, value, owner, self.near.wanted, field.diagonal, self.search.size - 1)[
            self.near.units
        ]
        count = min(max(STARTS, len(scores) // 50), 1000)
        starts = self.near.units[np.argsort(scores, kind="stable")[:count]]
        away = np.where(self.near.wanted, 1.0, AWAY)
        pulled = value * np.repeat(away, np.diff(pointer)) * away[index]
        edges = (pointer, index, pulled, field.offsets, owner, field.diagonal * away * away)
        low, found = local_search(*edges, starts, self.search.size, 8)
        first = tuple(sorted(int(i) for i in found if i >= 0))
        if self.near.wanted_in(first).any() and low >= TRUE * self._evaluate(first).sigma ** 2:
            return [first]
        return [first, *(self._grown((int(start),)) for start in starts[:GROWN])]

    def _grown(self, start: Support) -> Support:
        """From one unit or a few, each time by the neighbour that takes most off ‖Bh‖ when h stays
        as it is elsewhere.
        """
        field = self.field
        owner = np.repeat(np.arange(field.n), field.dims)
        couplings, support = field.couplings, list(start)
        while len(support) < self.search.size:
            columns = field.columns_of(support)
            vector = near_vector(field.restrict(support), self.near.wanted_in(support))
            spans = [slice(couplings.indptr[c], couplings.indptr[c + 1]) for c in columns]
            touched = np.concatenate([couplings.indices[span] for span in spans])
            pulls = np.concatenate([couplings.data[span] * x for span, x in zip(spans, vector, strict=True)])
            places, at = np.unique(touched, return_inverse=True)
            gains = np.bincount(at, weights=pulls) ** 2 / np.maximum(field.diagonal[places], 1e-300)
            gains[np.isin(owner[places], support)] = -1.0
            if not len(places) or gains.max() < 0.0:
                break
            support.append(int(owner[places[int(np.argmax(gains))]]))
        return tuple(sorted(support))

    def _evaluate(self, support: Support) -> Hidden:
        block, wanted = self.field.restrict(support), self.near.wanted_in(support)
        key = (block.shape, block.tobytes(), wanted.tobytes())
        if key not in self._known:
            self._known[key] = hidden(block, wanted)
        return self._known[key]

    def _offer(self, support: Support) -> None:
        if not self.near.wanted_in(support).any():
            return
        found = self._evaluate(support)
        if found.sigma < self.best.sigma or (found.sigma == self.best.sigma and support < self.support):
            self.support, self.best = support, found

    def _proves_all(self, supports: Iterable[Support], theta: float) -> bool:
        """Each of them at θ, in exact arithmetic; equal blocks are settled once."""
        settled: set[Content] = set()
        for support in supports:
            block, wanted = self.field.restrict(support), self.near.wanted_in(support)
            key = (block.shape, block.tobytes(), wanted.tobytes())
            if key not in settled and (self._late() or not proves_hidden_at_least(block, wanted, theta)):
                return False
            settled.add(key)
        return True

    def _result(self, *, complete: bool) -> Margin:
        return self._bounded(
            self.best.upper,
            zero=self._is_zero(),
            static=not complete and self.field.n <= ALWAYS,
            sure=complete,
            groups=self.near.groups,
            support=self.near.names(self.support),
            direction=self.near.embed(self.support, self.best.vector),
            method="delivered",
        )
