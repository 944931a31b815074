"""Separation: which supports of a design are hard to see, and along which directions.

Small fields keep the column indices of all supports. A threshold is tested on all of them at once,
by one elimination over whole arrays (docs/algorithms.md, fact 3), and eigenvalues are computed only
of those that fail; large fields ask the margin engine. The values steer the planners; a reported
margin is always the engine's.

The robust objective, min over connected supports S of σ_min(B_S) − η_S (docs/algorithms.md, fact
10), is found by the exact engine. η_S is the root of the summed squared radii of the blocks that
touch S. A larger support has a smaller σ and a larger η, so only the largest connected ones matter,
and of these only S with σ_S < v + η_max, where v is the best value known and η_max bounds every
η_S. The engine lists all of them. When there are too many to list, what was not listed still has
σ_S − η_S ≥ t − η_max for the largest t below which the list is complete: then the value is bounded
instead of exact.

Two nodes are connected when a block joins them, also where no row of it has entries at both: the
engine is told so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rrf_design.market import Mask

if TYPE_CHECKING:
    from rrf_design.operators import Operator
    from rrf_design.planning.evaluator import Evaluation, Evaluator
    from solvers import SupportValue

Array = NDArray[np.float64]
RECENT = 32  # supports remembered as the worst of the last design
STRIDE = 97  # without such a memory, every so-manieth support gives a first level


@dataclass(frozen=True, slots=True)
class Witness:
    """A unit vector over the columns of a support, and the objective it attains there in the design
    it was found in.

    Where only some values are delivered, its length is 1 on those. `removed` are suspect blocks
    that count for nothing.
    """

    support: tuple[int, ...]
    vector: Array
    value: float
    removed: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class _Class:
    """Supports whose nodes have the same dimensions in the same order."""

    supports: NDArray[np.int64]  # (count, nodes)
    columns: NDArray[np.int64]  # (count, coordinates)


class AllSupports:
    """All supports of a small field.

    With radii, smaller supports count as well, and only connected ones.
    """

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator
        self.dense = evaluator.operator.matrix.toarray()
        self._classes: dict[int, tuple[_Class, ...]] = {}
        self._recent: dict[tuple[int, int], NDArray[np.int64]] = {}
        touch = np.zeros((len(evaluator.block_nodes), evaluator.n))
        for j, nodes in enumerate(evaluator.block_nodes):
            touch[j, list(nodes)] = 1.0
        self.touch = touch

    def classes(self, size: int) -> tuple[_Class, ...]:
        if size not in self._classes:
            ends = self.evaluator.operator.node_offsets
            widths = np.diff(ends)
            count = math.comb(self.evaluator.n, size)
            listed = np.fromiter(
                chain.from_iterable(combinations(range(self.evaluator.n), size)), np.int64, count * size
            )
            supports = listed.reshape(count, size)
            patterns, which = np.unique(widths[supports], axis=0, return_inverse=True)
            self._classes[size] = tuple(
                _class(supports[which.ravel() == number], ends, pattern) for number, pattern in enumerate(patterns)
            )
        return self._classes[size]

    def evaluate(self, active: Mask, opened: Mask, *, count: int, below: float | None) -> Evaluation:
        from rrf_design.planning.evaluator import NULL, Evaluation

        rows = self.dense[self.evaluator.rows(active)]
        if not self.evaluator.additive:
            shares = self.evaluator.rows(self.evaluator.shares(active[None], opened[None])[0])
            rows = rows * np.sqrt(shares[self.evaluator.rows(active)])[:, None]
        gram = rows.T @ rows
        size = min(self.evaluator.size, int(opened.sum()))
        level = None if below is None else max(below, NULL * self.evaluator.scale)
        value, candidates = np.inf, []
        everything = bool(opened.all())
        sizes = range(1, size + 1) if self.evaluator.robust else (size,)
        for key, part in [((s, number), c) for s in sizes for number, c in enumerate(self.classes(s))]:
            kept = part if everything else _within(part, opened)
            if not len(kept.supports):
                continue
            if self.evaluator.robust:
                values = np.sqrt(np.maximum(least_eigenvalues(_blocks(gram, kept.columns)), 0.0))
                which, values = np.arange(len(values)), values - self._radii(kept, active)
            else:
                recent = self._recent.get(key) if everything else None
                which, values = _lowest_of(kept.columns, gram, level=level, many=count > 1, recent=recent)
                if everything:
                    self._recent[key] = which[np.argsort(values, kind="stable")[:RECENT]]
            value = min(value, float(values.min()))
            order = _lowest(values, count, level)
            candidates += [(float(values[i]), kept, int(which[i])) for i in order]
        candidates.sort(key=lambda item: (item[0], tuple(item[1].supports[item[2]])))
        found = self._directions(candidates[:count], below=below, rows=rows, gram=gram)
        return Evaluation(value if value > NULL * self.evaluator.scale else 0.0, tuple(found))

    def fractional(self, shares: Array, *, below: float, count: int) -> list[Witness]:
        """Worst directions of a design that holds shares x_j of its variable blocks, with
        xᵀ-weighted hᵀGh under `below`.
        """
        gram = self._fractional_gram(shares)
        found = []
        for part in self.classes(min(self.evaluator.size, self.evaluator.n)):
            which, values = _below(part.columns, gram, below)
            for i in _lowest(values, count, below):
                vector = np.linalg.eigh(_blocks(gram, part.columns[which[i]][None])[0])[1][:, 0].copy()
                found.append(Witness(tuple(part.supports[which[i]].tolist()), vector, float(values[i])))
        return found

    def weakest(self, shares: Array, *, below: float, count: int) -> list[tuple[int, ...]]:
        """Supports with λ_min under `below` in such a design, least first: where a cut is likely to
        be found.
        """
        gram = self._fractional_gram(shares)
        found = []
        for part in self.classes(min(self.evaluator.size, self.evaluator.n)):
            which, values = _below(part.columns, gram, below)
            found += [
                (float(values[i]), tuple(part.supports[which[i]].tolist())) for i in _lowest(values, count, below)
            ]
        return [support for _, support in sorted(found)[:count]]

    def _fractional_gram(self, shares: Array) -> Array:
        weights = self.evaluator.permanent.astype(np.float64)
        weights[self.evaluator.variable] = shares
        rows = self.dense * np.sqrt(np.maximum(self.evaluator.rows(weights), 0.0))[:, None]
        return np.asarray(rows.T @ rows)

    def _directions(
        self, found: Sequence[tuple[float, _Class, int]], *, below: float | None, rows: Array, gram: Array
    ) -> list[Witness]:
        """The worst direction of each support, and its others that are as bad (at margin zero: the
        whole null space).
        """
        from rrf_design.planning.evaluator import NULL

        null = NULL * self.evaluator.scale
        result: list[list[Witness]] = [[] for _ in found]
        by_width: dict[int, list[int]] = {}
        for number, (_, part, _) in enumerate(found):
            by_width.setdefault(part.columns.shape[1], []).append(number)
        for width, numbers in by_width.items():
            columns = np.array([found[number][1].columns[found[number][2]] for number in numbers]).reshape(-1, width)
            squares, vectors = np.linalg.eigh(_blocks(gram, columns))
            sigma = np.sqrt(np.maximum(squares, 0.0))
            blind = (
                sigma[:, 0] <= null
            )  # squaring has lost what tells zero from tiny: take these directions from B itself
            if blind.any():
                stack = rows[:, columns[blind]].transpose(1, 0, 2)
                _, strengths, right = np.linalg.svd(stack, full_matrices=len(rows) < width)
                vectors[blind] = right[:, ::-1].transpose(0, 2, 1)
                sigma[blind] = 0.0
                sigma[blind, width - strengths.shape[1] :] = strengths[:, ::-1]
            for at, number in enumerate(numbers):
                value, part, i = found[number]
                support = tuple(part.supports[i].tolist())
                if blind[at]:
                    value += float(sigma[at, 0]) - math.sqrt(max(float(squares[at, 0]), 0.0))
                cut = max(below or 0.0, float(sigma[at, 0]) * (1 + 1e-9), null)
                result[number] = [
                    Witness(support, np.ascontiguousarray(vectors[at, :, c]), value if c == 0 else float(sigma[at, c]))
                    for c in range(width)
                    if c == 0 or sigma[at, c] < cut
                ]
        return [witness for listed in result for witness in listed]

    def _radii(self, part: _Class, active: Mask) -> Array:
        """η_S of every connected support; −∞ for the others, whose parts are supports of their
        own.
        """
        touch = self.touch[active]
        hits = np.zeros((int(active.sum()), len(part.supports)), dtype=bool)
        for column in range(part.supports.shape[1]):
            hits |= touch[:, part.supports[:, column]] > 0
        eta = np.sqrt(np.square(self.evaluator.radii[active]) @ hits)
        joined = (touch.T @ touch) > 0
        np.fill_diagonal(joined, True)
        reach = joined[part.supports[:, :, None], part.supports[:, None, :]].astype(np.float64)
        for _ in range(max(part.supports.shape[1] - 2, 0)):
            reach = np.minimum(reach @ reach, 1.0)
        result: Array = np.where(reach.all(axis=(1, 2)), eta, -np.inf)
        return result


def _class(supports: NDArray[np.int64], ends: NDArray[np.int64], widths: NDArray[np.int64]) -> _Class:
    """Supports whose nodes have these widths, in this order."""
    parts = [ends[supports[:, place], None] + np.arange(width) for place, width in enumerate(widths)]
    return _Class(supports, np.concatenate(parts, axis=1))


def _within(part: _Class, opened: Mask) -> _Class:
    keep = opened[part.supports].all(axis=1)
    return _Class(part.supports[keep], part.columns[keep])


def _lowest_of(
    columns: NDArray[np.int64], gram: Array, *, level: float | None, many: bool, recent: NDArray[np.int64] | None
) -> tuple[NDArray[np.int64], Array]:
    """Supports with σ_min below the level, the least one at any rate; without a level the least, or
    all when `many`.
    """
    if level is not None:
        which, squares = _below(columns, gram, level * level)
    elif many:
        which, squares = np.arange(len(columns)), least_eigenvalues(_blocks(gram, columns))
    if (level is None and not many) or not len(which):
        # What was worst lately nearly is so now: few supports lie below it.
        some = np.arange(0, len(columns), STRIDE) if recent is None else recent
        least = float(least_eigenvalues(_blocks(gram, columns[some])).min())
        which, squares = _below(columns, gram, least * (1 + 1e-9) if least > 0 else 0.0)
        if not len(which):
            which, squares = some, least_eigenvalues(_blocks(gram, columns[some]))
    return which, np.sqrt(np.maximum(squares, 0.0))


def _below(columns: NDArray[np.int64], gram: Array, level: float) -> tuple[NDArray[np.int64], Array]:
    """Supports that fail the threshold test at `level`, and their λ_min."""
    entries = [[gram[columns[:, i], columns[:, j]] for j in range(i + 1)] for i in range(columns.shape[1])]
    which = np.flatnonzero(~definite(entries, level))
    return which, least_eigenvalues(_blocks(gram, columns[which]))


def _blocks(gram: Array, columns: NDArray[np.int64]) -> Array:
    """(supports, width, width) from (supports, width) columns."""
    return gram[columns[:, :, None], columns[:, None, :]]


def definite(entries: list[list[Array]], shift: float | Array) -> Mask:
    """Which of many symmetric matrices A have A − shift·I positive definite, by one elimination
    over whole arrays.

    `entries[i][j]`, j ≤ i, holds one entry of every matrix; the lists are not changed. In floating
    point: a matrix within a few ulps of its trace may be judged either way.
    """
    width = len(entries)
    work = [list(row) for row in entries]
    for i in range(width):
        work[i][i] = work[i][i] - shift
    good = np.ones(work[0][0].shape, dtype=bool)
    for k in range(width):
        good &= work[k][k] > 0.0
        pivot = np.where(good, work[k][k], 1.0)
        for i in range(k + 1, width):
            factor = work[i][k] / pivot
            for j in range(k + 1, i + 1):
                work[i][j] = work[i][j] - factor * work[j][k]
    return good


def _lowest(values: Array, count: int, below: float | None) -> NDArray[np.int64]:
    if below is not None:
        chosen = np.flatnonzero(values < below)
        return chosen[np.argsort(values[chosen], kind="stable")[:count]]
    if len(values) > 4 * count:
        near = np.sort(np.argpartition(values, count)[: 2 * count])
        return near[np.argsort(values[near], kind="stable")[:count]]
    return np.argsort(values, kind="stable")[:count]


def least_eigenvalues(blocks: Array) -> Array:
    """λ_min of a stack of symmetric matrices; in closed form up to 2×2, where most supports of
    small k live.
    """
    if blocks.shape[-1] == 1:
        return blocks[:, 0, 0]
    if blocks.shape[-1] == 2:
        a, b, c = blocks[:, 0, 0], blocks[:, 0, 1], blocks[:, 1, 1]
        top = (a + c) / 2 + np.hypot((a - c) / 2, b)
        # det / λ_max keeps the relative accuracy that the difference of the two would lose
        result: Array = np.where(top > 0, (a * c - b * b) / np.where(top > 0, top, 1.0), 0.0)
        return result
    return np.asarray(np.linalg.eigvalsh(blocks)[:, 0], dtype=np.float64)


def by_engine(evaluator: Evaluator, mask: Mask, *, count: int, below: float | None) -> Evaluation:
    """The same from the margin engine, for fields with too many supports for a table."""
    from rrf_design.planning.evaluator import NULL, Evaluation
    from solvers import margin, supports_below

    if evaluator.robust:
        least = robust_value(evaluator, mask, count=count)
        kept = [w for w in least.witnesses if below is None or w.value < below] or list(least.witnesses[:1])
        value = least.value if least.exact else least.lower
        return Evaluation(value if value > NULL * evaluator.scale else 0.0, tuple(kept))
    opened = np.flatnonzero(evaluator.opened(mask))
    rows = evaluator.held_rows(evaluator.active(mask), evaluator.opened(mask))
    if len(opened) < evaluator.n:
        rows = rows[:, np.concatenate([evaluator.columns[i] for i in opened])]
    sizes = [len(evaluator.columns[i]) for i in opened]
    worst = margin(rows, sizes, k=evaluator.k)
    if count == 1:
        return Evaluation(worst.value, (_local(opened, worst.groups, worst.support, worst.direction, worst.value),))
    threshold = below if below is not None else max(worst.value * 1.05, NULL * evaluator.scale)
    found = supports_below(rows, sizes, size=evaluator.size, threshold=threshold, limit=4 * count)
    listed = [_local(opened, worst.groups, s.support, s.direction, s.value) for s in found.supports[:count]]
    return Evaluation(
        worst.value, tuple(listed or [_local(opened, worst.groups, worst.support, worst.direction, worst.value)])
    )


def _local(
    opened: NDArray[np.int64],
    groups: Sequence[NDArray[np.int64]],
    support: tuple[int, ...],
    direction: Array,
    value: float,
) -> Witness:
    vector = np.concatenate([direction[groups[i]] for i in support])
    return Witness(tuple(int(opened[i]) for i in support), vector, value)


LISTED = 20_000  # supports near the minimum that are looked at one by one
TRIES = 6  # smaller thresholds tried when there are more
ROUNDING = 1e-13  # of the largest column norm: covers the error of a singular value and of η


@dataclass(frozen=True, slots=True)
class _RobustValue:
    """lower ≤ the robust objective ≤ value, which the first witness attains; equal but for rounding
    when `exact`.
    """

    value: float
    lower: float
    exact: bool
    witnesses: tuple[Witness, ...]


def robust_value(evaluator: Evaluator, mask: Mask, *, count: int = 1, n_jobs: int | None = None) -> _RobustValue:
    """The robust objective of a design and its worst supports, by the engine; supports count all
    nodes of the problem.
    """
    opened = np.flatnonzero(evaluator.opened(mask))
    active = np.flatnonzero(evaluator.active(mask))
    found = _robust(
        _rows(evaluator, active, opened),
        [len(evaluator.columns[i]) for i in opened],
        _touching(evaluator, active, opened),
        np.square(evaluator.radii[active]),
        evaluator.k,
        n_jobs=n_jobs,
    )
    renamed = [replace(w, support=tuple(int(opened[i]) for i in w.support)) for w in found.witnesses[:count]]
    return replace(found, witnesses=tuple(renamed))


def robust_floor(operator: Operator, *, k: int, lower: float, unread: bool = False) -> float:
    """A proven lower bound on the robust objective of a design with proven margin `lower`: at least
    lower − √Σ η_j².

    With units or suspect checks it is that bound itself. Where only some values are delivered, E
    acts on the rest of an error as well, so it is taken off the margin of the whole field, which is
    never larger. Where answers could not be read, supports with them are not listed one by one: the
    bound itself, and nothing where a premise is declared besides.
    """
    names = list(operator.uncertain)
    if not names or lower <= 0.0:
        return lower
    if unread and (operator.premise.deliver is not None or operator.premise.wrong_checks):
        return 0.0
    if unread:
        return max(0.0, lower - float(np.linalg.norm(operator.radii)) * (1 + 1e-12))
    if not operator.premise.plain:
        from rrf_design.premise import protected

        whole = operator.premise.whole
        floor = lower if whole is operator.premise else protected(operator, k, premise=whole).solved.lower
        return max(0.0, floor - float(np.linalg.norm(operator.radii)) * (1 + 1e-12))
    radii = np.array([operator.radii[operator.block_index[name]] for name in names])
    loss = float(np.sqrt(np.square(radii).sum())) * (1 + 1e-12)
    touch = np.zeros((len(names), len(operator.node_ids)), dtype=bool)
    for number, name in enumerate(names):
        touch[number, [operator.node_index[node] for node in operator.uncertain[name]]] = True
    sizes = np.diff(operator.node_offsets).tolist()
    found = _robust(operator.matrix, sizes, touch, np.square(radii), k)
    return max(0.0, lower - loss, min(found.lower, lower))


def _robust(
    rows: Any, sizes: list[int], touch: NDArray[np.bool_], squares: Array, k: int, *, n_jobs: int | None = None
) -> _RobustValue:
    """min over supports of σ_min − η_S, where η_S² adds up `squares` of the blocks that `touch`
    (blocks, nodes) S.
    """
    from solvers import margin

    size = min(2 * k, len(sizes))
    widest = float(np.sqrt(np.sort(squares @ touch)[::-1][:size].sum())) * (1 + 1e-12)
    offsets = np.cumsum([0, *sizes])
    scale = float(np.sqrt(rows.power(2).sum(axis=0).max(initial=0.0))) or 1.0
    first = margin(rows, sizes, k=k, n_jobs=n_jobs)

    joins = _joins(rows, sizes, touch)

    def judged(support: tuple[int, ...], sigma: float, direction: Array) -> Witness:
        shares = [float(np.square(direction[offsets[i] : offsets[i + 1]]).sum()) for i in support]
        support = _joined_part(joins, support, shares)
        columns = np.concatenate([np.arange(offsets[i], offsets[i + 1]) for i in support])
        eta = float(np.sqrt(squares @ touch[:, list(support)].any(axis=1)))
        return Witness(support, direction[columns], sigma - eta)

    found = [judged(first.support, first.value, first.direction)]
    joined = sorted({tuple(np.flatnonzero(nodes).tolist()) for nodes in touch})
    options = {"size": size, "joined": joined, "n_jobs": n_jobs}
    listed, below = _list(rows, sizes, low=first.value, high=found[0].value + widest, options=options)
    found += [judged(s.support, s.value, s.direction) for s in listed if s.support != first.support]
    found.sort(key=lambda witness: (witness.value, witness.support))
    value = found[0].value
    complete = below >= value + widest
    lower = value if complete else min(value, below - widest)
    return _RobustValue(value, lower - ROUNDING * scale, complete, tuple(found))


def _joined_part(
    joins: Callable[[int], frozenset[int]], support: tuple[int, ...], shares: Sequence[float]
) -> tuple[int, ...]:
    """Of a support, what is joined to where its direction lies: σ is that of this part, and no
    radii elsewhere act on it.
    """
    start = support[max(range(len(support)), key=lambda at: shares[at])]
    part, held = {start}, set(joins(start))
    left = [i for i in support if i != start]
    while more := [i for i in left if not held.isdisjoint(joins(i))]:
        part.update(more)
        held.update(*map(joins, more))
        left = [i for i in left if i not in part]
    return tuple(i for i in support if i in part)


def _joins(rows: Any, sizes: list[int], touch: NDArray[np.bool_]) -> Callable[[int], frozenset[int]]:
    """Of a node, the rows with an entry at it and the blocks that touch it: two nodes with one in
    common are joined.
    """
    columns = rows.tocsc()
    offsets = np.cumsum([0, *sizes])

    @cache
    def of(node: int) -> frozenset[int]:
        first, last = columns.indptr[offsets[node]], columns.indptr[offsets[node + 1]]
        blocks = np.flatnonzero(touch[:, node]) + rows.shape[0]
        return frozenset(columns.indices[first:last].tolist()).union(blocks.tolist())

    return of


def _list(
    rows: Any, sizes: list[int], *, low: float, high: float, options: dict[str, Any]
) -> tuple[tuple[SupportValue, ...], float]:
    """All supports below a threshold of at most `high`, and that threshold: the largest tried whose
    list is complete.
    """
    from solvers import supports_below

    seen: tuple[SupportValue, ...] = ()
    threshold = high
    for _ in range(TRIES):
        found = supports_below(rows, sizes, threshold=max(threshold, 0.0), limit=LISTED, **options)
        if found.complete:
            return found.supports if len(found.supports) >= len(seen) else seen, threshold
        seen = found.supports if len(found.supports) > len(seen) else seen
        threshold = (threshold + low) / 2
    return seen, low


def _touching(evaluator: Evaluator, active: NDArray[np.int64], opened: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(active blocks, open nodes)."""
    place = {int(node): at for at, node in enumerate(opened)}
    result = np.zeros((len(active), len(opened)), dtype=bool)
    for number, block in enumerate(active):
        result[number, [place[i] for i in evaluator.block_nodes[block]]] = True
    return result


def _rows(evaluator: Evaluator, active: NDArray[np.int64], opened: NDArray[np.int64]) -> Any:
    chosen, asked = np.zeros(len(evaluator.block_nodes), dtype=bool), np.zeros(evaluator.n, dtype=bool)
    chosen[active], asked[opened] = True, True
    rows = evaluator.held_rows(chosen, asked)
    return rows if len(opened) == evaluator.n else rows[:, np.concatenate([evaluator.columns[i] for i in opened])]
