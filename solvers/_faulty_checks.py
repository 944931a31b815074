"""γ_{k,a}: what can be promised when up to a checks are wrong altogether, beside k units
(docs/algorithms.md, fact 19).

The measurements are Be + u + ν with e on at most k units, u on the rows of at most a suspect
blocks, ‖ν‖ ≤ ε. Two explanations differ by (h, v), h on 2k units, v on the rows of 2a blocks R, and
‖Bh + v‖ ≤ 2ε. So there are two questions, with different answers:

- *Are the values right nonetheless?* ‖h_D‖ ≤ 2ε/γ with γ = min ‖Bh + v‖/‖h_D‖ (`suspect_margin`). v
  is free, so it cancels
  Bh on R: γ is the least γ_{k,D} of what is left when any 2a suspect blocks are taken away. This
  one bounds delivered values, and nothing else is needed to certify them.
- *Is the wrong check named?* ‖v̂ − v‖ ≤ 2ε/γ with γ = min ‖Bh + v‖/‖v‖ over v ≠ 0
  (`wrong_check_margin`): a block whose
  reconstructed disturbance is larger than that is certainly wrong. It is 0 only where some wrong
  units look like wrong checks (Bh ≠ 0 on the rows of 2a blocks alone), and at most 1: a disturbance
  that nothing explains is seen as it is.

With `with_values` the second is the margin of the whole vector over [B | I], min ‖Bh + v‖/‖(h, v)‖;
that is 0 exactly where the first one with D = everything is, and the smallest of the three.

Fewer rows, more units, more blocks: each only lowers the minimum, so the largest choices suffice.
As in `solvers._delivered` a vector falls apart where its support does, and v outside the rows that
touch h only adds to both sides: connected supports and blocks that touch them suffice. Given S and
R, eliminating v turns the threshold question into G_SS − (1 + ρ)Σ_{b∈R} B_bSᵀB_bS − θP_D ⪰ 0 with ρ
= 0 for values and ρ = θ/(1 − θ) where v counts.

From either margin follow two explanations of one measurement that nobody can tell apart
(`rival_pair`), as far apart as it allows. Let h attain γ. Split its units (and the wrong blocks of
v) into halves, e₁ − e₂ = τh with at most k units each, and let the measurement be the mean of what
both predict. Each misses it by τ‖Bh + v‖/2, which is at most ε for τ = 2ε/γ: both are admissible,
and they differ by τ in what is delivered. No method can promise a smaller error than τ/2 there. At
γ = 0 they may differ by anything; `radius` says how far answers can plausibly be apart.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from solvers._delivered import LocalField, neighbourhood_of
from solvers._exact import sqrt_below
from solvers._gamma import check_call, doubled
from solvers._gram import Field, NodeColumns, column_groups
from solvers._schur import Hidden, hidden, proves_hidden_at_least
from solvers._search import Support
from solvers.result import ULP_ROOM, ZERO, Bounds, Margin, Status
from solvers.tasks import stopping_at

ROOM = 32  # pairs found before the search stops to lower its threshold
MOST = 1 << 15  # pairs that floating point can't decide, before the search gives up
LADDER = (0.0625, 0.25, 0.5625)  # thresholds proven first under a time limit, as fractions of the incumbent λ

Pair = tuple[Support, tuple[int, ...]]
"""Units, and suspect blocks."""


@dataclass(frozen=True, slots=True)
class SuspectMargin:
    """A margin under suspect checks: bounds that hold in exact arithmetic, and the pair (h, v) that
    attains the upper one.
    """

    value: float
    lower: float
    upper: float
    support: tuple[int, ...]  # units of h
    direction: NDArray[np.float64]  # h, (coordinates,)
    wrong: tuple[int, ...]  # blocks of v
    disturbance: NDArray[np.float64]  # v, (rows,)
    status: Status
    support_size: int
    suspects: int
    groups: NodeColumns = field(repr=False)
    method: str = "suspects"
    tested: int = 0

    def __post_init__(self) -> None:
        self.direction.setflags(write=False)
        self.disturbance.setflags(write=False)
        if not 0.0 <= self.lower <= self.upper:
            raise AssertionError(f"bounds out of order: {self.lower} > {self.upper}")

    @property
    def k(self) -> int:
        return self.support_size // 2

    @property
    def zero(self) -> bool:
        return self.value == 0.0


def suspect_margin(
    B: Any,
    groups: Any = None,
    blocks: Any = None,
    *,
    k: int,
    suspects: int,
    trusted: Iterable[int] = (),
    deliver: Iterable[int] | None = None,
    time_limit: float | None = None,
) -> SuspectMargin:
    """γ_{k,a,D}: how well the delivered values are protected when `suspects` blocks may be wrong
    beside k units.

    B and groups as for `margin`; `blocks` the rows of every block (lists of row numbers, or sizes
    of consecutive runs; default one row each); `trusted` are blocks that are never wrong; `deliver`
    the columns D (default all). The direction has ‖h_D‖ = 1; Bh + v vanishes on the rows of the
    blocks in `wrong`.

    >>> import numpy as np
    >>> from solvers import suspect_margin
    >>> rows = [[1, -1, 0], [0, 1, -1], [1, 0, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0]]
    >>> B = np.array(rows, dtype=float)
    >>> [round(suspect_margin(B, k=1, suspects=count).value, 4) for count in (0, 1)]
    [1.1756, 0.0]
    """
    B = B if sparse.issparse(B) else np.asarray(B)
    given = _checked(B, blocks, k, suspects, trusted, time_limit)
    inside = np.arange(B.shape[1]) if deliver is None else deliver
    near = neighbourhood_of(B, groups, inside, radius=2 * k - 1)
    return SuspectMinimiser(near, given, 2 * int(k), values=True, checks=False, time_limit=time_limit).solve()


def wrong_check_margin(
    B: Any,
    groups: Any = None,
    blocks: Any = None,
    *,
    k: int,
    suspects: int,
    trusted: Iterable[int] = (),
    with_values: bool = False,
    time_limit: float | None = None,
) -> SuspectMargin:
    """min ‖Bh + v‖/‖v‖ (with values: /‖(h, v)‖): how surely wrong checks are told from wrong units,
    and from each other.

    The pair is scaled to ‖v‖ = 1 (‖(h, v)‖ = 1). Rows are taken in the units they are given in:
    whiten them first. Parameters as for `suspect_margin`.

    >>> import numpy as np
    >>> from solvers import wrong_check_margin
    >>> rows = [[1, -1, 0], [0, 1, -1], [1, 0, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0]]
    >>> B = np.array(rows, dtype=float)
    >>> wrong_check_margin(B, k=1, suspects=1).value  # a wrong check may look like a wrong answer
    0.0
    """
    B = B if sparse.issparse(B) else np.asarray(B)
    given = _checked(B, blocks, k, suspects, trusted, time_limit)
    if given.most == 0:
        raise ValueError("suspects: no block may be wrong, so there is no wrong check to name")
    near = neighbourhood_of(B, groups, np.arange(B.shape[1]), radius=2 * k - 1)
    scaled = near.field  # v has the caller's units: undo the scaling, which is exact
    matrix = scaled.matrix * math.ldexp(1.0, scaled.exponent)
    near = replace(near, field=Field(matrix=matrix, exponent=0, groups=scaled.groups))
    return SuspectMinimiser(near, given, 2 * int(k), values=with_values, checks=True, time_limit=time_limit).solve()


@dataclass(frozen=True, slots=True)
class _Suspects:
    """Which rows belong to which suspect block."""

    of_row: NDArray[np.int64]  # (rows,) block, −1 where it is trusted
    count: int  # a
    most: int  # 2a, or fewer where there are fewer


def _checked(B: Any, blocks: Any, k: Any, suspects: Any, trusted: Iterable[int], time_limit: float | None) -> _Suspects:
    check_call(doubled(k), time_limit=time_limit)
    if isinstance(suspects, bool) or not isinstance(suspects, int | np.integer) or suspects < 0:
        raise ValueError(f"suspects: must be a whole number of at least 0, not {suspects!r}")
    if B.ndim != 2:
        raise ValueError(f"B: must be a matrix, not an array of {B.ndim} dimensions")
    rows = row_blocks(blocks, B.shape[0])
    of_row = np.empty(B.shape[0], np.int64)
    of_row[rows.order] = np.repeat(np.arange(len(rows)), rows.sizes)
    exempt = list(trusted)
    for block in exempt:
        if isinstance(block, bool) or not isinstance(block, int | np.integer) or not 0 <= block < len(rows):
            raise ValueError(f"trusted: there is no block {block!r}; there are {len(rows)}")
    of_row[np.isin(of_row, exempt)] = -1
    return _Suspects(of_row, int(suspects), min(2 * int(suspects), len(rows) - len(set(exempt))))


def row_blocks(blocks: Any, rows: int) -> NodeColumns:
    """The rows of every block, in the same ways as the columns of every unit."""
    try:
        return column_groups(blocks, rows)
    except ValueError as fault:
        text = str(fault).removeprefix("groups: ").replace("column", "row").replace("node", "block")
        raise ValueError(f"blocks: {text.replace('field is empty', 'list is empty')}") from None


class SuspectMinimiser:
    """One computation over pairs (S, R): the arrays of the search, the incumbent, the best proven
    bound while it runs.
    """

    def __init__(
        self,
        near: LocalField,
        given: _Suspects,
        size: int,
        *,
        values: bool,
        checks: bool,
        time_limit: float | None = None,
    ) -> None:
        self.near, self.field, self.size = near, near.field, size
        self.values, self.checks = values, checks
        self.block_of = given.of_row[near.rows]
        self.rows = len(given.of_row)
        self.most, self.count = given.most, given.count
        self.deadline = None if time_limit is None else time.time() + time_limit
        self.proven, self.tested = 0.0, 0
        self._arrays = self._prepare()
        self._seen: dict[Pair, Hidden] = {}
        # Where v counts there is always a v alone, which is seen as it is.
        suspect = self.block_of[self.block_of >= 0]
        self.pair: Pair = ((), tuple(suspect[:1].tolist()))
        self.best = Hidden(1.0, np.zeros(0), 1.0) if checks else Hidden(math.inf, np.zeros(0), math.inf)

    def solve(self) -> SuspectMargin:
        for pair in self._first_pairs():
            self._offer(pair)
        shares = (*(() if self.deadline is None else LADDER), 1.0 - ULP_ROOM, 1.0 - 1e-6, 1.0 - 1e-3, 0.5)
        for share in shares:
            if self._is_zero() or self._late():
                break
            theta = self._search(self.best.sigma**2 * share, adapt=share > 0.6)
            self.proven = max(self.proven, theta)
            if theta > 0.0 and share > 0.6:
                break
        return self._result()

    def _prepare(self) -> tuple[Any, ...]:
        """What the kernel reads, and the units that supports are grown from, in order."""
        field, matrix = self.field, self.field.matrix
        if self.values and not self.checks:
            first = self.near.units
        elif self.values:
            first = np.arange(field.n)
        else:
            owner = np.repeat(np.arange(field.n), field.dims)
            column = np.repeat(np.arange(matrix.shape[1]), np.diff(matrix.indptr))
            first = np.unique(owner[column[self.block_of[matrix.indices] >= 0]])
        others = np.setdiff1d(np.arange(field.n), first)
        rank = np.empty(field.n, np.int64)
        rank[np.concatenate([first, others])] = np.arange(field.n)
        goal = np.empty(field.n, np.int64)
        for nodes in field.components:
            goal[nodes] = min(self.size, len(nodes))
        # Units that share a row: columns may be orthogonal, and cease to be when a block is taken
        # away.
        graph = tuple(a.astype(np.int64) for a in (field.graph.indptr, field.graph.indices))
        columns = (matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data)
        wanted = (self.near.wanted & self.values).astype(np.float64)
        return graph, columns, field.offsets, self.block_of, wanted, rank, goal, first

    def _first_pairs(self) -> list[Pair]:
        """Single units, each without its heaviest checks."""
        first = self._arrays[-1]
        weakness = np.minimum.reduceat(self.field.diagonal, self.field.offsets[:-1])[first]
        pairs: list[Pair] = []
        for unit in first[np.argsort(weakness, kind="stable")[:8]]:
            rows, part = self._part((int(unit),))
            names = self.block_of[rows]
            energy = np.bincount(names[names >= 0], weights=np.square(part).sum(axis=1)[names >= 0])
            heavy = np.argsort(-energy, kind="stable")[: self.most]
            pairs.append(((int(unit),), tuple(sorted(int(b) for b in heavy if energy[b] > 0.0))))
        return pairs

    def _part(self, support: Support) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """(rows that touch the support, B on them)."""
        part = self.field.matrix[:, self.field.columns_of(support)].tocsr()
        rows = np.flatnonzero(np.diff(part.indptr))
        return rows, part[rows].toarray()

    def _question(self, pair: Pair) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.int64]]:
        """The block whose `hidden` minimum the pair has, its wanted columns, and the rows of v in
        it.
        """
        support, removed = pair
        rows, part = self._part(support)
        gone = np.isin(self.block_of[rows], removed) & (self.block_of[rows] >= 0)
        wanted = self.near.wanted_in(support) & self.values
        if not self.checks:
            return part[~gone], wanted, np.zeros(0, np.int64)
        free = np.eye(len(rows))[:, gone]
        return np.hstack([part, free]), np.concatenate([wanted, np.ones(free.shape[1], np.bool_)]), rows[gone]

    def _evaluate(self, pair: Pair) -> Hidden:
        if pair not in self._seen:
            block, wanted, _ = self._question(pair)
            self._seen[pair] = (
                hidden(block, wanted) if wanted.any() else Hidden(math.inf, np.zeros(len(wanted)), math.inf)
            )
        return self._seen[pair]

    def _offer(self, pair: Pair) -> None:
        found = self._evaluate(pair)
        if found.sigma < self.best.sigma or (found.sigma == self.best.sigma and pair < self.pair):
            self.pair, self.best = pair, found

    def _search(self, theta: float, *, adapt: bool) -> float:
        """The θ up to which every pair is proven (lowered along the way with `adapt`); 0 when time
        or room ran out.
        """
        roots = self._arrays[-1]
        undecided: set[Pair] = set()
        room = ROOM if adapt else MOST
        while len(roots):
            done, full, found = self._scan(theta, roots, room)
            self.tested += done + len(found)
            undecided |= found
            if done == len(roots):
                break
            if self._late() or not full:
                return 0.0
            roots = roots[done:]
            before = self.best.sigma
            for pair in found:
                self._offer(pair)
            if self._is_zero():
                return 0.0
            if adapt and self.best.sigma < before:
                theta = min(theta, self.best.sigma**2 * (1.0 - ULP_ROOM))
            elif room < MOST:
                room = min(8 * room, MOST)
            else:
                return 0.0
        for pair in undecided:
            if self._late():
                return 0.0
            self._offer(pair)
        theta = min(theta, self.best.sigma**2 * (1.0 - ULP_ROOM))
        if self._is_zero():
            return 0.0
        for pair in undecided:
            block, wanted, _ = self._question(pair)
            if wanted.any() and (self._late() or not proves_hidden_at_least(block, wanted, theta)):
                return 0.0
        return theta

    def _scan(self, theta: float, roots: NDArray[np.int64], room: int) -> tuple[int, bool, set[Pair]]:
        """(roots finished, whether the room was used up, pairs not proven at θ)."""
        from solvers.kernels.suspects import scan_suspects

        *arrays, _ = self._arrays
        depth = min(self.size, self.field.n)
        out = np.empty((room, depth + self.most), np.int64)
        ratio = theta / (1.0 - theta) * (1.0 + 1e-14) if self.checks else 0.0
        share = 1.0 if self.field.extreme else 4.0 * (1.0 - self.field.shrink(self.size))  # 1: floats prove nothing
        with stopping_at(self.deadline) as stop:
            count, done = scan_suspects(
                *arrays, roots, theta, ratio, self.most, self.values and not self.checks, share, stop, out
            )
        found = set()
        for row in out[: min(count, room)]:
            units, removed = row[:depth], row[depth:]
            found.add((tuple(sorted(units[units >= 0].tolist())), tuple(sorted(removed[removed >= 0].tolist()))))
        return int(done), bool(count > room), found

    @property
    def _scale(self) -> float:
        return max(self.field.longest, float(self.checks))

    def _is_zero(self) -> bool:
        return self.best.sigma <= ZERO * self._scale and math.ldexp(self.best.sigma, self.field.exponent) <= ZERO

    def _late(self) -> bool:
        return self.deadline is not None and time.time() >= self.deadline

    def _result(self) -> SuspectMargin:
        told = Bounds.settled(
            self.best.sigma,
            sqrt_below(self.proven),
            self.best.upper,
            zero=self._is_zero(),
            scale=self._scale,
            exponent=self.field.exponent,
        )
        direction, disturbance = self._witness()
        return SuspectMargin(
            **asdict(told),
            support=self.near.names(self.pair[0]),
            direction=direction,
            wrong=self.pair[1],
            disturbance=disturbance,
            support_size=self.size,
            suspects=self.count,
            groups=self.near.groups,
            tested=self.tested,
        )

    def _witness(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(h, v) over the caller's coordinates and rows."""
        support, removed = self.pair
        width = len(self.field.columns_of(support))
        own = self.best.vector[:width]
        disturbance = np.zeros(self.rows)
        if not support:
            disturbance[self.near.rows[np.flatnonzero(self.block_of >= 0)[:1]]] = 1.0
        elif self.checks:
            _, _, rows = self._question(self.pair)
            disturbance[self.near.rows[rows]] = self.best.vector[width:]
        else:
            rows, part = self._part(support)
            gone = np.isin(self.block_of[rows], removed) & (self.block_of[rows] >= 0)
            disturbance[self.near.rows[rows[gone]]] = -math.ldexp(1.0, self.field.exponent) * (part[gone] @ own)
        return self.near.embed(support, own), disturbance


ROUNDING = 1e-12  # the distance is shortened by this share, so that rounding keeps both within ε


@dataclass(frozen=True, slots=True)
class RivalPair:
    """Two errors (and disturbances of checks), and one measurement that both explain within
    `residual` ≤ ε.
    """

    first: NDArray[np.float64]  # e₁, (coordinates,)
    second: NDArray[np.float64]  # e₂
    first_disturbance: NDArray[np.float64]  # u₁, (rows,); zero unless checks are suspect
    second_disturbance: NDArray[np.float64]
    measured: NDArray[np.float64]  # (rows,): the syndrome
    distance: float
    """Of the two, in the norm that the margin divides by: over what is delivered."""
    residual: float

    def __post_init__(self) -> None:
        for array in (self.first, self.second, self.first_disturbance, self.second_disturbance, self.measured):
            array.setflags(write=False)


def rival_pair(
    B: Any, found: Margin | SuspectMargin, *, epsilon: float, radius: float, blocks: Any = None
) -> RivalPair:
    """The pair at distance min(radius, 2ε/γ), from a margin of B and its witness.

    `blocks` as they were given to `suspect_margin`. The fields themselves are y − first and y −
    second, whatever the answers y.

    >>> import numpy as np
    >>> from solvers import margin, rival_pair
    >>> B = np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0], [1.0, 0.0, 0.0]])
    >>> pair = rival_pair(B, margin(B, k=1), epsilon=0.1, radius=100.0)
    >>> round(pair.distance, 4)  # 2 · 0.1 / 0.618
    0.3236
    """
    if not 0.0 <= epsilon < math.inf:
        raise ValueError(f"epsilon: must be a finite number of at least 0, not {epsilon!r}")
    if not 0.0 < radius < math.inf:
        raise ValueError(f"radius: must be a finite number above 0, not {radius!r}")
    rows = B.shape[0]
    v = found.disturbance if isinstance(found, SuspectMargin) else np.zeros(rows)
    lost = float(np.linalg.norm(B @ found.direction + v))
    reach = 2.0 * epsilon / lost if lost > 0.0 else math.inf
    if found.zero:
        reach = math.inf  # what is left of Bh is rounding
    distance = min(radius, reach * (1.0 - ROUNDING))
    h, v = distance * found.direction, distance * v
    first, other = np.zeros_like(h), np.zeros(rows)
    for unit in found.support[: (len(found.support) + 1) // 2]:
        first[found.groups[unit]] = h[found.groups[unit]]
    if isinstance(found, SuspectMargin):
        parts = row_blocks(blocks, rows)
        for block in found.wrong[: (len(found.wrong) + 1) // 2]:
            other[parts[block]] = v[parts[block]]
    second, second_disturbance = first - h, other - v
    one, two = B @ first + other, B @ second + second_disturbance
    measured = 0.5 * (one + two)
    residual = max(float(np.linalg.norm(one - measured)), float(np.linalg.norm(two - measured)))
    return RivalPair(first, second, other, second_disturbance, np.asarray(measured), distance, residual)
