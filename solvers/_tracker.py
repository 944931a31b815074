"""The margin of a field that grows by row blocks: after a purchase only what it touches is looked
at again.

New rows change only supports that meet them, and only upward. So the tracker keeps a pool: every
connected support whose λ lay below a level θ when the field was last searched. What is not in the
pool stays at or above θ, with one exception: rows that join nodes which were not adjacent make
supports connected that were none before; those are searched for in the neighbourhood of the new
rows. The margin is the least pool value until that passes θ; only then the whole field is searched
again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from solvers._exact import (
    UNIT,
    proves_at_least,
    smallest_singular_pair,
    sqrt_below,
    witness_of,
)
from solvers._gram import SMALLEST, Field, NodeColumns, make_field
from solvers._minimiser import Minimiser
from solvers._search import Search, Support
from solvers.kernels.gather import proven
from solvers.result import ULP_ROOM, ZERO, Bounds, Margin

LARGEST = 8_000  # supports in the pool; a level that holds more is lowered
RANGE = 1e150  # of entries in the field's own scale: their squares are finite
CALM = 2.0**50  # rows within this factor of the field's own size are added to the pool
ENOUGH = 256  # a level that holds fewer is raised, so that a refresh lasts


class MarginTracker:
    """γ over supports of at most `size` nodes, under added rows.

    The tracker owns its state: `add_rows` takes effect at once, `margin` returns a frozen result
    and may be asked as often as one likes. `refreshes` counts the searches of the whole field that
    were needed.
    """

    def __init__(self, B: Any, groups: Any = None, *, size: int, n_jobs: int | None = None) -> None:
        self.size = size
        self.n_jobs = n_jobs
        self.refreshes = 0
        self._field = make_field(B, groups)
        self._added: list[tuple[sparse.csr_array, NDArray[np.int64], NDArray[np.float64]]] = []
        """Rows added since the last refresh: in the field's scale and order, and as (columns, dense
        part).
        """
        self._added_at: dict[int, list[int]] = {}
        self._pool = _Pool(self._field, self.size)
        held = np.abs(self._field.matrix.data)
        self._range = (held.min(initial=np.inf), held.max(initial=0.0))  # of entries that are not zero
        self._refresh()

    def add_rows(self, rows: Any) -> None:
        """Append rows (an array or sparse matrix over the same coordinates as B)."""
        block = sparse.csr_array(rows if sparse.issparse(rows) else np.atleast_2d(rows), dtype=np.float64, copy=True)
        if block.shape[1] != self._field.matrix.shape[1]:
            raise ValueError(f"rows: {block.shape[1]} columns given, but the field has {self._field.matrix.shape[1]}")
        if not np.isfinite(block.data).all():
            raise ValueError("rows: hold a NaN or an infinity")
        block.sum_duplicates()
        block.eliminate_zeros()
        order = self._field.groups.order
        scaled = block if np.array_equal(order, np.arange(len(order))) else sparse.csr_array(block[:, order])
        scaled.data = np.ldexp(scaled.data, -self._field.exponent)
        self._check_range(np.abs(scaled.data))
        columns, place = np.unique(scaled.indices, return_inverse=True)
        if not len(columns):
            return
        dense = np.zeros((scaled.shape[0], len(columns)))
        dense[np.repeat(np.arange(scaled.shape[0]), np.diff(scaled.indptr)), place] = scaled.data
        touched = np.unique(np.searchsorted(self._field.offsets, columns, side="right") - 1)
        for node in touched:
            self._added_at.setdefault(int(node), []).append(len(self._added))
        self._added.append((scaled, columns, dense))
        if not self._complete:  # searched afresh anyway, or beyond what the pool's floats can hold
            return
        self._pool.add(dense, columns, touched)
        if self._join(touched):
            self._search_near(touched)

    def _check_range(self, sizes: NDArray[np.float64]) -> None:
        """Rows far from the field's own size are left to the next search of the whole field;
        ValueError beyond all bounds.
        """
        if not len(sizes):
            return
        smallest, largest = min(sizes.min(), self._range[0]), max(sizes.max(), self._range[1])
        if largest > RANGE or smallest < largest * SMALLEST:
            raise ValueError("rows: their entries and the field's differ by more than 150 orders of magnitude")
        self._range = (smallest, largest)
        if sizes.max() > CALM or sizes.min() < 1.0 / CALM:
            self._complete = False

    def margin(self) -> Margin:
        """The margin of all rows so far."""
        if not self._complete or self._pool.least >= self._level:
            self._refresh()
        if not self._complete:  # too many supports near the minimum to keep: solved afresh each time
            return self._solved
        best = self._pool.best
        block = self._restrict(best)
        sigma, vector = smallest_singular_pair(block)
        zero = self._zero(sigma)
        vector, upper = witness_of(block, vector, zero=zero)
        theta = min(sigma * sigma * (1.0 - ULP_ROOM), self._level)
        sure = not zero and all(proves_at_least(self._restrict(s), theta) for s in self._pool.doubtful(theta))
        told = Bounds.settled(
            sigma,
            sqrt_below(theta) if sure else 0.0,
            upper,
            zero=zero,
            scale=self._field.longest,
            exponent=self._field.exponent,
        )
        return Margin(
            **asdict(told),
            support=best,
            direction=self._field.embed(best, vector),
            method="tracker",
            support_size=self.size,
            groups=self._field.groups,
        )

    def supports_at(self, sigma: float, *, limit: int) -> tuple[Support, ...]:
        """Supports with σ_min of at most `sigma` (and a rounding error), worst first: up to `limit`
        of those that are known.

        Known are all below the level that the tracker keeps; when too many lie there to keep, only
        the witness's support.
        """
        if not self._complete:
            return (self._solved.support,)
        scaled = math.ldexp(sigma, -self._field.exponent)
        return self._pool.at_most(scaled * scaled, limit)

    def _refresh(self) -> None:
        """Search the whole field and fill the pool up to a level that holds a few hundred
        supports.
        """
        self.refreshes += 1
        warm = [self._pool.best] if len(self._pool) else []
        if self._added:
            matrix = sparse.csc_array(sparse.vstack([self._field.matrix, *(rows for rows, _, _ in self._added)]))
            self._field = Field(matrix=matrix, exponent=self._field.exponent, groups=self._field.groups)
            self._added, self._added_at = [], {}
        self._joined: dict[int, set[int]] = {}  # adjacency that came with rows added since
        solver = Minimiser(self._field, self.size, n_jobs=self.n_jobs)
        self._solved = solver.solve(warm)
        if self._field.extreme:  # no float can be trusted with a pool
            self._level, self._complete, self._pool = 0.0, False, _Pool(self._field, self.size)
            return
        low = math.ldexp(self._solved.upper, -self._field.exponent) ** 2
        typical = float(np.median(self._field.diagonal))
        level = low * 1.5 if low > 1e-6 * typical else 1e-3 * typical
        self._fill(solver.search, level, floor=low * (1.0 + 1e-6))

    def _fill(self, search: Search, level: float, *, floor: float) -> None:
        best: tuple[float, tuple[Support, ...]] = (0.0, ())
        for _ in range(8):
            found = search.below(level, limit=LARGEST, n_jobs=self.n_jobs)
            if found.complete and len(found.supports) <= LARGEST:
                best = (level, found.supports)
                if len(found.supports) >= ENOUGH:
                    break
                level *= 1.5
            elif best[1] or level <= floor:
                break
            else:
                level = max(math.sqrt(level * max(floor, level * 1e-4)), floor)
        self._level = best[0]
        self._complete = len(best[1]) > 0
        self._pool = _Pool(self._field, self.size)
        for part, members in search.split(best[1]):
            self._pool.take(members, part.blocks(members))

    def _join(self, touched: NDArray[np.int64]) -> bool:
        """Record that the touched nodes are adjacent now; whether any two of them were not
        before.
        """
        graph = self._field.graph
        fresh = False
        for i in touched:
            known = set(graph.indices[graph.indptr[i] : graph.indptr[i + 1]].tolist()) if len(touched) > 1 else set()
            extra = self._joined.setdefault(int(i), set())
            new = {int(j) for j in touched if j != i} - known - extra
            fresh = fresh or bool(new)
            extra |= new
        return fresh

    def _search_near(self, touched: NDArray[np.int64]) -> None:
        """Supports around the touched nodes that lie below the level and are not in the pool
        yet.
        """
        graph = self._field.graph
        ball = {int(i) for i in touched}
        edge = set(ball)
        for _ in range(max(self.size - 2, 0)):
            step: set[int] = set()
            for i in edge:
                step.update(graph.indices[graph.indptr[i] : graph.indptr[i + 1]].tolist())
                step |= self._joined.get(i, set())
            edge = step - ball
            ball |= edge
        nodes = sorted(ball)
        matrix = sparse.csc_array(self._restrict(tuple(nodes)))
        local = Field(matrix=matrix, exponent=0, groups=NodeColumns.of_sizes(self._field.dims[nodes]))
        if local.extreme:
            self._complete = False
            return
        search = Search(local, self.size)
        found = search.below(self._level, limit=LARGEST)
        named = [(s, tuple(nodes[i] for i in s)) for s in found.supports]
        fresh = [(s, name) for s, name in named if name not in self._pool]
        if not found.complete or len(self._pool) + len(fresh) > 2 * LARGEST:
            self._complete = False
            return
        names = dict(fresh)
        for part, members in search.split([s for s, _ in fresh]):
            self._pool.take([names[s] for s in members], part.blocks(members))

    def _restrict(self, support: Support) -> NDArray[np.float64]:
        """B_S over all rows so far."""
        columns = self._field.columns_of(support)
        parts = [self._field.restrict(support)]
        for number in sorted({m for node in support for m in self._added_at.get(int(node), ())}):
            _, own, dense = self._added[number]
            common, here, there = np.intersect1d(columns, own, assume_unique=True, return_indices=True)
            block = np.zeros((len(dense), len(columns)))
            block[:, here] = dense[:, there] if len(common) else 0.0
            parts.append(block)
        return np.concatenate(parts)

    def _zero(self, sigma: float) -> bool:
        return sigma <= ZERO * self._field.longest and math.ldexp(sigma, self._field.exponent) <= ZERO


class _Pool:
    """Supports with their Gram blocks, their λ, and the λ that is proven of each (proofs survive
    added rows).
    """

    def __init__(self, field: Field, size: int) -> None:
        self._field = field
        self._width = min(size * int(field.dims.max()), int(field.offsets[-1]))
        self._supports: list[Support] = []
        self._known: set[Support] = set()
        self._meets: dict[int, list[int]] = {}
        self._blocks = np.zeros((0, self._width, self._width))
        self._values = np.zeros(0)
        self._sure = np.zeros(0)
        self._rows = 0  # added since the blocks were gathered

    def __len__(self) -> int:
        return len(self._supports)

    def __contains__(self, support: Support) -> bool:
        return support in self._known

    @property
    def least(self) -> float:
        return float(self._values.min(initial=np.inf))

    @property
    def best(self) -> Support:
        return self._supports[int(np.argmin(self._values))]

    def at_most(self, level: float, limit: int) -> tuple[Support, ...]:
        """Supports with λ at or below a level, least first; equal ones by their nodes, so that the
        order is always the same.
        """
        room = 4 * self._width * UNIT * np.abs(self._blocks).max(axis=(1, 2), initial=0.0, where=self._blocks < 1e300)
        low = np.flatnonzero(self._values <= level + room)
        rounded = [(float(np.round(self._values[m], 14)), self._supports[m]) for m in low]
        return tuple(support for _, support in sorted(rounded)[:limit])

    def take(self, supports: Sequence[Support], blocks: NDArray[np.float64]) -> None:
        """Add supports with their (shrunk) Gram blocks."""
        first = len(self._supports)
        padded = np.zeros((len(supports), self._width, self._width))
        q = min(blocks.shape[1], self._width)
        padded[:, :q, :q] = blocks[:, :q, :q]
        corner = np.arange(q, self._width)
        padded[:, corner, corner] = 1e300
        for m, support in enumerate(supports, start=first):
            for node in support:
                self._meets.setdefault(node, []).append(m)
        self._supports += supports
        self._known.update(supports)
        self._blocks = np.concatenate([self._blocks, padded])
        self._values = np.concatenate([self._values, np.zeros(len(supports))])
        self._sure = np.concatenate([self._sure, np.zeros(len(supports))])
        self._evaluate(np.arange(first, len(self._supports)))

    def add(self, rows: NDArray[np.float64], columns: NDArray[np.int64], touched: NDArray[np.int64]) -> None:
        """Account for new rows, given on the columns that they touch, on the supports that they
        meet.
        """
        self._rows += len(rows)
        met = np.array(sorted({m for node in touched for m in self._meets.get(int(node), ())}), dtype=np.int64)
        if not len(met):
            return
        gram = rows.T @ rows
        place = {int(c): at for at, c in enumerate(columns)}
        for m in met:
            here = self._field.columns_of(self._supports[m])
            inside = [i for i, c in enumerate(here) if int(c) in place]
            at = [place[int(here[i])] for i in inside]
            self._blocks[m][np.ix_(inside, inside)] += gram[np.ix_(at, at)]
        self._evaluate(met)

    def doubtful(self, theta: float) -> list[Support]:
        """Supports not yet proven to lie at or above θ."""
        return [self._supports[m] for m in np.flatnonzero(self._sure < theta)]

    def _evaluate(self, which: NDArray[np.int64]) -> None:
        if not len(which):
            return
        blocks = self._blocks[which]
        values = np.linalg.eigvalsh(blocks)[:, 0]
        self._values[which] = values
        # Blocks were shrunk when gathered; what the added rows round is covered by a little more of
        # the same.
        corner = np.arange(self._width)
        blocks[:, corner, corner] *= 1.0 - 2 * (64 + self._rows) * self._width * UNIT
        claims = np.maximum(
            values * (1.0 - 0.5 * ULP_ROOM) - 1e-12 * np.abs(blocks[:, corner, corner].min(axis=1)), 0.0
        )
        self._sure[which] = np.maximum(self._sure[which], np.where(proven(blocks, claims), claims, 0.0))
