"""The traversal of the support search: branch on nodes that must be met, then scan the last two levels at once.

Three facts replace the loop over supports. (1) With orthonormal bases the last two levels are one pass over pairs
(`solvers.kernels.support_pairs`), shared by all syndromes of a design. (2) Rows that no node of S touches keep their
residual, so S must meet the nodes of any set of rows whose energy exceeds ε²: on sparse fields that is a handful of
nodes, and branching on them (each branch without its predecessors) lists every support once. (3) Every survivor is
judged again by an orthonormal basis of its own span, so the float slack of the scan can only add work, never lose
a support. With an incumbent in the place of ε the same branching minimises the residual.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.decoding.spans import Spans, build_spans, project_out, span_of
from solvers.groups import NodeColumns

Array = NDArray[np.float64]

DELICATE = 1e-4
"""Pairs of spans with a pivot of I − CᵀC below this are judged one by one."""
BUFFER = 256
"""Pairs that a scan returns at first; when there are more, it is repeated with room for all."""


@dataclass
class Search:
    """One traversal. Listing keeps `radius` and collects; minimising lowers it to the best residual found."""

    radius: float
    limit: int
    deadline: float | None
    listing: bool
    found: list[tuple[tuple[int, ...], float]] = field(default_factory=list)
    support: tuple[int, ...] = ()
    residual: float = np.inf
    complete: bool = True
    tested: int = 0

    def run(
        self,
        operator: Any,
        groups: NodeColumns,
        spans: Spans,
        s: Array,
        size: int,
        usable: NDArray[np.bool_],
        parts: Array,
    ) -> None:
        """Search all supports of at most `size` usable nodes; `parts` are the projections Q_jᵀs."""
        self._root, self._s = spans, s
        self._consider(())
        if size > 2 and not self.listing:
            self._greedy(operator, groups, spans, s, size, usable, parts)
        self._descend(operator, groups, spans, s, size, usable.copy(), (), parts)

    def _greedy(
        self,
        operator: Any,
        groups: NodeColumns,
        spans: Spans,
        s: Array,
        size: int,
        usable: NDArray[np.bool_],
        parts: Array,
    ) -> None:
        """A good incumbent first: the best pair, then one best node at a time. The lower it is, the fewer branches."""
        self._descend(operator, groups, spans, s, 2, usable.copy(), (), parts)
        while 0 < len(self.support) < size and not self._stopped():
            basis = span_of(spans.columns(self.support))
            smaller = project_out(operator, basis)
            rest = s - basis @ (basis.T @ s)
            gains = np.square(build_spans(smaller, groups, scale=spans.scale).project(rest)).sum(axis=1)
            gains[~usable] = 0.0
            gains[list(self.support)] = 0.0
            if not gains.any() or not self._consider((*self.support, int(np.argmax(gains)))):
                return

    def _consider(self, support: tuple[int, ...]) -> bool:
        """Judge one support directly; True when it explains the syndrome (or improves on the incumbent)."""
        self.tested += 1
        support = tuple(sorted(support))
        value = self._root.residual(support, self._s)
        better = value < self.residual
        if better:
            self.residual, self.support = value, support
        if not self.listing:
            self.radius = min(self.radius, self.residual)
            return better
        if value <= self.radius:
            self.found.append((support, value))
            return True
        return False

    def _stopped(self) -> bool:
        late = self.deadline is not None and time.monotonic() > self.deadline
        if late or (self.listing and self.limit and len(self.found) >= self.limit):
            self.complete = False
        return not self.complete

    def _descend(
        self,
        operator: Any,
        groups: NodeColumns,
        spans: Spans,
        s: Array,
        left: int,
        usable: NDArray[np.bool_],
        prefix: tuple[int, ...],
        parts: Array | None = None,
    ) -> None:
        energy = float(s @ s)
        if left == 0 or not usable.any() or np.sqrt(energy) <= self.radius * (self.listing or 1.0 - 1e-12):
            return
        if self._stopped():
            return
        # Projected bases have lost digits, and the scan must never lose a support: more slack below the root.
        slack = (1e-9 if not prefix else 1e-5) * float(self._s @ self._s)
        parts = spans.project(s) if parts is None else parts
        gains = np.einsum("ij,ij->i", parts, parts)
        usable = self._singles(gains, energy, slack, usable, prefix)
        if left == 1:
            return
        if left == 2:
            self._pairs(spans, parts, gains, energy - self.radius**2 - slack, usable, prefix)
            return
        branch = self._must_meet(spans, s)
        branch = branch[usable[branch]]
        for i in branch[np.argsort(-gains[branch], kind="stable")]:
            if self._stopped():
                return
            usable[i] = False  # later branches do without it, so that each support is listed once
            basis = span_of(spans.columns((int(i),)))
            smaller = project_out(operator, basis)
            self._descend(
                smaller,
                groups,
                build_spans(smaller, groups, scale=spans.scale),
                s - basis @ (basis.T @ s),
                left - 1,
                usable.copy(),
                (*prefix, int(i)),
            )

    def _singles(
        self, gains: Array, energy: float, slack: float, usable: NDArray[np.bool_], prefix: tuple[int, ...]
    ) -> NDArray[np.bool_]:
        """Judge the last-node candidates; nodes that finish an explanation are not needed in larger ones."""
        usable = usable.copy()
        masked = np.where(usable, gains, -1.0)
        if not self.listing:
            near = np.flatnonzero(masked >= max(masked.max() - slack, energy - self.radius**2 - slack))
            for j in near[np.argsort(-masked[near], kind="stable")]:
                self._consider((*prefix, int(j)))
            return usable
        for j in np.flatnonzero(masked >= energy - self.radius**2 - slack):
            if self._stopped():
                break
            if self._consider((*prefix, int(j))):
                usable[j] = False
        return usable

    def _pairs(
        self,
        spans: Spans,
        parts: Array,
        gains: Array,
        threshold: float,
        usable: NDArray[np.bool_],
        prefix: tuple[int, ...],
    ) -> None:
        from solvers.kernels.support_pairs import scan_pairs

        pointers, neighbours, blocks = spans.overlap
        usable = usable & (spans.scale > 0)
        order = np.argsort(-gains, kind="stable")
        full = len(neighbours) == spans.nodes**2
        if not self.listing:  # first the best pair, then every pair within the slack of it
            slack = (1e-9 if not prefix else 1e-5) * float(self._s @ self._s)
            empty = np.zeros((0, 2), dtype=np.int64)
            best = scan_pairs(
                pointers, neighbours, blocks, parts, gains, order, usable, np.inf, full, DELICATE, empty, empty
            )[0]
            threshold = max(threshold, best - 2 * slack)
        size = BUFFER
        while True:
            found, doubtful = np.zeros((size, 2), dtype=np.int64), np.zeros((size, 2), dtype=np.int64)
            *_, count, doubts = scan_pairs(
                pointers, neighbours, blocks, parts, gains, order, usable, threshold, full, DELICATE, found, doubtful
            )
            if max(count, doubts) <= size or (self.listing and self.limit and size >= 64 * self.limit + 4096):
                break
            size = max(count, doubts)
        for i, j in (*found[:count].tolist(), *doubtful[:doubts].tolist()):
            if self._stopped():
                return
            self._consider((*prefix, i, j))
        self.complete = self.complete and max(count, doubts) <= size

    def _must_meet(self, spans: Spans, s: Array) -> NDArray[np.int64]:
        """Nodes that every support with residual ≤ radius must meet: those of the fewest rows with energy > radius²."""
        order = np.argsort(-np.abs(s), kind="stable")
        running = np.cumsum(np.square(s[order]))
        needed = int(np.searchsorted(running, (self.radius * (1 + 1e-9)) ** 2, side="right")) + 1
        return spans.touching(np.sort(order[:needed]))
