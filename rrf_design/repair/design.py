"""One design with one pattern of erasures: its margin, its factorisations and its null spaces, computed once.

A batch of ten thousand fields asks the same few questions of the same matrix; they are answered here and remembered.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rrf_design.operator import Operator
from rrf_design.repair.contract import Array, Candidate, Task
from solvers.decoding import SupportDecoder

MOVES = 1e-9
"""A coordinate of a unit null vector below this does not move."""


@dataclass(frozen=True, slots=True)
class DesignFacts:
    """γ_k, or γ(k | R) when nodes R are erased, with the witness."""

    gamma: float
    lower: float
    support: tuple[int, ...]
    direction: Array
    method: str
    others: float
    """The margin of the answered nodes alone; equal to `lower` when nothing is erased."""


class Design:
    """Shared by all fields with this operator, k and erased nodes; not thread-safe while it fills its caches."""

    def __init__(
        self,
        operator: Operator,
        *,
        k: int,
        erased: tuple[int, ...] = (),
        n_jobs: int | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.operator, self.k, self.erased = operator, k, erased
        self._options: dict[str, Any] = {"n_jobs": n_jobs, "time_limit": time_limit}
        self._told: Callable[[float, float, float], None] | None = None
        self._null: dict[tuple[int, ...], Array] = {}
        self._unseen: dict[tuple[int, ...], tuple[Candidate, ...]] = {}

    @classmethod
    def of(cls, task: Task) -> Design:
        return cls(task.operator, k=task.k, erased=task.erased, n_jobs=task.n_jobs, time_limit=task.time_limit)

    def watch(self, told: Callable[[float, float, float], None]) -> None:
        """Have the share that is done and both bounds told while the margin is computed."""
        self._told = told

    @cached_property
    def facts(self) -> DesignFacts:
        from solvers import margin
        from solvers.decoding import erasure_margin

        matrix, groups = self.operator.matrix, self.operator.groups
        if self.erased:
            found = erasure_margin(matrix, groups, known=self.erased, k=self.k, **self._options)
            label = f"erasures, {found.method}"
            return DesignFacts(found.value, found.lower, found.support, found.direction, label, found.others)
        solved = margin(matrix, groups, k=self.k, progress=self._told, **self._options)
        return DesignFacts(
            solved.value, solved.lower, solved.support, np.array(solved.direction), solved.method, solved.lower
        )

    @cached_property
    def decoder(self) -> SupportDecoder:
        return SupportDecoder(self.operator.matrix, self.operator.groups, known=self.erased)

    @cached_property
    def unseen_nodes(self) -> tuple[int, ...]:
        """At zero margin, the nodes that the witness moves: errors there can't be told apart."""
        return self._moved(self.facts.direction) if self.facts.gamma == 0.0 else ()

    def undetermined(self, nodes: tuple[int, ...]) -> frozenset[int]:
        """Which of these nodes could change together without anything that is measured changing."""
        null = self._null_space(nodes)
        return frozenset(i for column in null.T for i in self._moved(column))

    def unseen(self, support: tuple[int, ...]) -> tuple[Candidate, ...]:
        """Errors that change nothing measured, on the answer's nodes and as many more as the budget still allows."""
        if support not in self._unseen:
            self._unseen[support] = self._find_unseen(support)
        return self._unseen[support]

    def _find_unseen(self, support: tuple[int, ...]) -> tuple[Candidate, ...]:
        from solvers.decoding import erasure_margin

        fixed = tuple(sorted((*self.erased, *support)))
        free = self._null_space(fixed)
        if free.shape[1]:
            return tuple(Candidate(self._moved(column), 0.0, column.copy()) for column in free.T)
        left = self.k - len(support)
        if left < 1 or len(fixed) == len(self.operator.node_ids):
            return ()
        found = erasure_margin(self.operator.matrix, self.operator.groups, known=fixed, size=left)
        return (Candidate(self._moved(found.direction), 0.0, found.direction),) if found.value == 0.0 else ()

    def _null_space(self, nodes: tuple[int, ...]) -> Array:
        key = tuple(sorted(nodes))
        if key not in self._null:
            self._null[key] = self.decoder.null_space(key)
        return self._null[key]

    def _moved(self, direction: Array) -> tuple[int, ...]:
        groups = self.operator.groups
        return tuple(i for i, part in enumerate(groups) if float(np.abs(direction[part]).max(initial=0.0)) > MOVES)
