"""The verifier's own proof for large supports of dense fields: whoever can be a centre is searched
and taken away, until nobody can.

N is the Gram matrix minus the shift on the nodes that are left once the chosen ones are eliminated,
c_ij = |N_ij|/√(N_ii·N_jj). Let N not be positive definite on a set S of q + 1 of them. Scale its
diagonal to one; some eigenvalue is at most 0, and its vector v, with max |v| = 1, has |v_i| ≤
Σ_{j∈S∖i} c_ij|v_j| in every row. Let w_i be an upper bound on the q heaviest c_ij·u_j of row i
added up, with u_j = min(1, w_j) from earlier bounds (1 at first): then |v_i| ≤ u_i, and S has a
node with w_i ≥ 1, a centre. So when no w reaches 1, nothing is left to show. Else the node with the
largest is chosen: every set with it is searched (one node less to come, its row eliminated), and
then it is left out for good. Bounds only fall when nodes go, so old ones stay true, and only the
largest is ever formed anew.

With four nodes to come, one of them chosen, every other three are settled: were N not positive
definite on them, two would have c ≥ ½, and for these the elimination is carried to the end with
every third.

Remainders are kept unscaled and symmetric to the bit; what elimination rounds is paid for by the
lowered diagonal (`gram`), what sums and scalings round by `LIMIT`. Where floating point can't prove
a set, it is handed back.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rrf_design.checker._centres import Dense
from rrf_design.checker._completion import SMALLEST, Grown, flag_at
from rrf_design.checker._couplings import LIMIT
from rrf_design.checker._enumeration import UNIT
from rrf_design.checker.kernel import kernel

CUT = 0.85  # the first bound on a row's q heaviest is CUT + what single ones have above CUT/q
NOBODY = -1


class Levels(NamedTuple):
    """What is left after 0, 1, 2 … chosen nodes; of every array the first `counts` places are in
    use, the node just taken away behind them.
    """

    counts: NDArray[np.int64]  # (levels,)
    gone: NDArray[np.int64]  # (levels,): how many were taken away
    names: NDArray[np.int64]  # (levels, n)
    rest: NDArray[np.float64]  # (levels, n, n): the remainder, with zeros on its diagonal
    own: NDArray[np.float64]  # (levels, n): its diagonal
    scale: NDArray[np.float64]  # (levels, n): 1/√ of it
    heavy: NDArray[np.float64]  # (levels, n): w
    pull: NDArray[np.float64]  # (levels, n): scale · min(1, w)
    formed: NDArray[np.int64]  # (levels, n): how many were gone when w was formed, plus one; 0: it is the first bound


def suits(part: Dense, size: int) -> bool:
    """Scalar nodes, large supports, no radii (whose shift depends on the support)."""
    return len(part.matrix) == len(part.names) and len(part.radii2) == 0 and SMALLEST <= size < len(part.names)


def prove_by_centre_elimination(
    part: Dense,
    size: int,
    shift: float,
    *,
    wanted: NDArray[np.bool_] | None = None,
    deadline: float | None,
    progress: Callable[[float], None] | None = None,
) -> Grown:
    """G_SS ⪰ shift·I for every S of `size` nodes of the part, or a set (of the field's nodes) where
    floats can't prove it.

    `wanted` (one per node of the part): only sets with one of these are of interest. Where they are
    fewer than the centres, they are searched and taken away instead.
    """
    diagonal = np.diag(part.matrix)
    own = (diagonal - shift) - 4.0 * UNIT * (np.abs(diagonal) + shift)
    if not (own > 0.0).all():
        return Grown(False, (int(part.names[int(np.argmin(own))]),), 0)
    levels = _levels(part, size, own)
    at_first = max(1, int(np.count_nonzero(levels.heavy[0] > LIMIT)))
    chosen = None if wanted is None or np.count_nonzero(wanted) >= at_first else wanted
    visited = 0
    with flag_at(deadline) as stop:
        while (root := heaviest(levels, 0, size - 1)) != NOBODY and levels.counts[0] >= size:
            if chosen is not None:
                places = np.flatnonzero(chosen[levels.names[0, : levels.counts[0]]])
                if not len(places):
                    break
                root = int(places[np.argmax(levels.heavy[0, places])])
            take_away(levels, 0, root)
            found, seen = search(levels, size, stop)
            visited += int(seen)
            if stop[0] or len(found):
                return Grown(False, tuple(sorted(int(part.names[i]) for i in found)), visited)
            if progress is not None:
                progress(min(1.0, int(levels.gone[0]) / at_first))
    return Grown(True, (), visited)


def _levels(part: Dense, size: int, own: NDArray[np.float64]) -> Levels:
    n, depth = len(part.names), size - 3
    levels = Levels(
        counts=np.zeros(depth, np.int64),
        gone=np.zeros(depth, np.int64),
        names=np.zeros((depth, n), np.int64),
        rest=np.zeros((depth, n, n)),
        own=np.zeros((depth, n)),
        scale=np.zeros((depth, n)),
        heavy=np.zeros((depth, n)),
        pull=np.zeros((depth, n)),
        formed=np.zeros((depth, n), np.int64),
    )
    levels.counts[0], levels.names[0] = n, np.arange(n)
    levels.rest[0] = part.matrix
    levels.rest[0][np.diag_indices(n)] = 0.0
    levels.own[0], levels.scale[0] = own, 1.0 / np.sqrt(own)
    first_bounds(levels, 0, size - 1)
    return levels


@kernel
def search(levels: Levels, size: int, stop: Any) -> tuple[Any, int]:
    """(a set that can't be proved, or nothing; tree nodes) among the sets with the node just taken
    away at level 0.
    """
    chosen = np.empty(size, np.int64)
    best, y = np.empty(size), np.empty(len(levels.names[0]))
    chosen[0] = levels.names[0, levels.counts[0]]
    bad = eliminate(levels, 0, size - 2, y)
    if bad != NOBODY:
        chosen[1] = levels.names[0, bad]
        return chosen[:2].copy(), 1
    level, visited = 1, 1
    while level > 0:
        if stop[0]:
            break
        arms = size - level - 1
        centre = NOBODY
        if levels.counts[level] > arms:
            centre = _heaviest(levels, level, arms, best)
        if centre == NOBODY:
            level -= 1
            continue
        visited += 1
        take_away(levels, level, centre)
        chosen[level] = levels.names[level, levels.counts[level]]
        if arms == 3:
            a, b, c = last_three(levels, level, y)
            if a != NOBODY:
                end = level + 1
                for place in (a, b, c):
                    if place != NOBODY:
                        chosen[end] = levels.names[level, place]
                        end += 1
                return chosen[:end].copy(), visited
        else:
            bad = eliminate(levels, level, arms - 1, y)
            if bad != NOBODY:
                chosen[level + 1] = levels.names[level, bad]
                return chosen[: level + 2].copy(), visited
            level += 1
    return chosen[:0].copy(), visited


@kernel
def eliminate(levels: Levels, level: int, arms: int, y: Any) -> int:
    """Open the next level: what is left when the node just taken away is eliminated.

    A node that is not sound with it, or nobody.
    """
    m = levels.counts[level]
    inverse = 1.0 / np.sqrt(levels.own[level, m])
    old, new = levels.rest[level], levels.rest[level + 1]
    for j in range(m):
        y[j] = old[m, j] * inverse
        left = levels.own[level, j] - y[j] * y[j]
        if not left > 0.0:
            return j
        levels.own[level + 1, j] = left
        levels.scale[level + 1, j] = 1.0 / np.sqrt(left)
    for i in range(m):
        _subtract(old[i, :m], y[:m], y[i], new[i, :m])
        new[i, i] = 0.0
    levels.names[level + 1, :m] = levels.names[level, :m]
    levels.counts[level + 1], levels.gone[level + 1] = m, 0
    first_bounds(levels, level + 1, arms)
    return NOBODY


@kernel
def _subtract(row: Any, y: Any, mine: float, target: Any) -> None:
    for j in range(len(row)):
        target[j] = row[j] - mine * y[j]


@kernel
def first_bounds(levels: Levels, level: int, arms: int) -> None:
    """w of every row from above, in one pass: the q heaviest are at most q·τ plus all that single
    ones have above τ.
    """
    m = levels.counts[level]
    scale = levels.scale[level, :m]
    for i in range(m):
        above = _above(levels.rest[level, i, :m], scale, CUT / (arms * scale[i]))
        levels.heavy[level, i] = CUT + scale[i] * above
        levels.pull[level, i] = scale[i] * min(1.0, levels.heavy[level, i])
        levels.formed[level, i] = 0


@partial(kernel, fastmath={"reassoc"})
def _above(row: Any, scale: Any, cut: float) -> float:
    """Σ max(|row|·scale − cut, 0): nothing negative is added, so in any order it is good to a few
    ulps.
    """
    total = 0.0
    for j in range(len(row)):
        total += max(abs(row[j]) * scale[j] - cut, 0.0)
    return total


@kernel
def heaviest(levels: Levels, level: int, arms: int) -> int:
    """The node with the largest w, formed from what is left now; nobody: no w reaches 1."""
    return int(_heaviest(levels, level, arms, np.empty(arms)))


@kernel
def _heaviest(levels: Levels, level: int, arms: int, best: Any) -> int:
    m, now = levels.counts[level], levels.gone[level] + 1
    heavy, pull, scale, formed = levels.heavy[level], levels.pull[level], levels.scale[level], levels.formed[level]
    while True:
        at, most = NOBODY, LIMIT
        for i in range(m):
            if heavy[i] > most:
                at, most = i, heavy[i]
        if at == NOBODY or formed[at] == now:
            return int(at)
        row = levels.rest[level, at]
        for t in range(arms):
            best[t] = 0.0
        least = 0.0
        for j in range(m):
            value = abs(row[j]) * pull[j]
            if value > least:
                t = arms - 1
                while t > 0 and best[t - 1] < value:
                    best[t] = best[t - 1]
                    t -= 1
                best[t] = value
                least = best[arms - 1]
        total = 0.0
        for t in range(arms):
            total += best[t]
        heavy[at] = min(heavy[at], total * scale[at])
        pull[at] = scale[at] * min(1.0, heavy[at])
        formed[at] = now


@kernel
def take_away(levels: Levels, level: int, at: int) -> None:
    """Exchange a node with the last one, and leave it out."""
    last = levels.counts[level] - 1
    levels.counts[level] = last
    levels.gone[level] += 1
    if at == last:
        return
    for array in (levels.own[level], levels.scale[level], levels.heavy[level], levels.pull[level]):
        array[at], array[last] = array[last], array[at]
    names, formed, rest = levels.names[level], levels.formed[level], levels.rest[level]
    names[at], names[last] = names[last], names[at]
    formed[at], formed[last] = formed[last], formed[at]
    for j in range(last + 1):
        rest[at, j], rest[last, j] = rest[last, j], rest[at, j]
    for i in range(last + 1):
        rest[i, at], rest[i, last] = rest[i, last], rest[i, at]


@kernel
def last_three(levels: Levels, level: int, y: Any) -> tuple[int, int, int]:
    """Places of at most three nodes that can't be proved beside the one just taken away, filled up
    with nobody.
    """
    m, rest = levels.counts[level], levels.rest[level]
    inverse = 1.0 / np.sqrt(levels.own[level, m])
    left = np.empty(m)
    for j in range(m):
        y[j] = rest[m, j] * inverse
        left[j] = levels.own[level, j] - y[j] * y[j]
        if not left[j] > 0.0:
            return j, NOBODY, NOBODY
    for a in range(m - 1):
        quarter = 0.25 * LIMIT * left[a]
        if not _strong(rest[a, a + 1 : m], y[a + 1 : m], left[a + 1 : m], y[a], quarter):
            continue
        for b in range(a + 1, m):
            tie = rest[a, b] - y[a] * y[b]
            if not tie * tie < quarter * left[b]:
                share = tie / left[a]
                pivot = left[b] - tie * share
                if not pivot > 0.0:
                    return a, b, NOBODY
                c = _third(rest[a, :m], rest[b, :m], y[:m], left, a, b, share, pivot)
                if c != NOBODY:
                    return a, b, c
    return NOBODY, NOBODY, NOBODY


@kernel
def _strong(row: Any, y: Any, left: Any, mine: float, quarter: float) -> int:
    """How many are coupled by a half or more; a loop without branches, which the compiler can
    widen.
    """
    count = 0
    for j in range(len(row)):
        tie = row[j] - mine * y[j]
        count += not tie * tie < quarter * left[j]
    return count


@kernel
def _third(first: Any, second: Any, y: Any, left: Any, a: int, b: int, share: float, pivot: float) -> int:
    """The first node that has no positive pivot after a and b; nobody: all have."""
    for c in range(len(y)):
        if c in (a, b):
            continue
        tie = first[c] - y[a] * y[c]
        other = (second[c] - y[b] * y[c]) - share * tie
        if not left[c] - tie * (tie / left[a]) - other * (other / pivot) > 0.0:
            return c
    return NOBODY
