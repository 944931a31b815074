"""One design with one pattern of erasures: its margin, its factorisations, its null spaces and what
is assumed of it, computed once.

A batch of ten thousand fields asks the same few questions of the same matrix; they are answered
here and remembered. `_Grounds` are of the problem, its design and its radius, not of the answers.

Where relations are uncertain, the radius that the truth is sure to keep to follows once answers are
there. The true error e* has ‖B e* − s‖ ≤ ε + ‖E z*‖, and z* is not known. Any estimate ê with at
most k wrong nodes bounds it (docs/algorithms.md, fact 18): with r̂ = ‖B ê − s‖,
N = √Σ η_b² ‖ẑ_{T_b}‖² and γ − η > 0, ρ = ‖ẑ − z*‖ ≤ (r̂ + ε + N)/(γ − η), so ‖E z*‖ ≤ N + η ρ.
Where the field was bounded beforehand (ranges, an amplitude), the smaller radius counts. Without
either, no radius is certain, and nothing may be excluded.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np

from rrf_design.blocks import Anchor
from rrf_design.checker.noise import joint_confidence
from rrf_design.checks import decides, sole_delivered
from rrf_design.goal import Goal
from rrf_design.noise import ROUND_UP, recovery_bound, spread_at
from rrf_design.operators import Operator
from rrf_design.premise import Parts, Protected, protected, protected_unread
from rrf_design.repairing.contract import Array, Candidate, Task
from rrf_design.verdict import assumed
from solvers.decoding import SupportDecoder, SupportTable

if TYPE_CHECKING:
    from rrf_design.noise import Radius
    from rrf_design.problem import Problem
    from rrf_design.repairing.contract import Decoder, DecoderOutcome, Task
    from solvers.result import Progress

LISTED = 2_000
"""Sets of further wrong units that are looked at one by one."""
LOOKED_AT = 64
"""Nodes whose own margin is computed where the margin of everything says nothing about them."""
MOVES = 1e-9
"""A coordinate of a unit null vector below this does not move."""


@dataclass(frozen=True, slots=True)
class _DesignFacts:
    """γ_k, or γ(k | R) when nodes R are erased, with the witness."""

    gamma: float
    lower: float
    support: tuple[int, ...]
    direction: Array
    method: str
    others: float
    """The margin of the answered nodes alone; equal to `lower` when nothing is erased."""
    bound: bool = False
    """Only a lower bound is known: 0 then says nothing."""


def _facts(found: Protected) -> _DesignFacts:
    margin = found.solved
    return _DesignFacts(
        margin.value,
        margin.lower,
        () if found.bound else found.nodes,
        np.array(margin.direction) * (not found.bound),  # of a bound, nothing is a witness
        margin.method,
        margin.lower if found.others is None else found.others,
        found.bound,
    )


class Decoding:
    """Shared by all fields with this operator, k and erased nodes; not thread-safe while it fills
    its caches.
    """

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
        self._told: Progress | None = None
        self._grounds: _Grounds | None = None
        self._null: dict[tuple[int, ...], Array] = {}
        self._unseen: dict[tuple[int, ...], tuple[Candidate, ...]] = {}
        self._moving: dict[tuple[int, ...], frozenset[int]] = {}

    @classmethod
    def of(cls, task: Task) -> Decoding:
        return cls(
            task.operator, k=task.k, erased=task.erased, n_jobs=task.work.n_jobs, time_limit=task.work.time_limit
        )

    def watch(self, told: Progress) -> None:
        """Have the share that is done and both bounds told while the margin is computed."""
        self._told = told

    @cached_property
    def parts(self) -> Parts:
        return Parts.of(self.operator, self.erased)

    @cached_property
    def facts(self) -> _DesignFacts:
        if self.erased:
            return _facts(protected_unread(self.operator, self.k, unread=self.erased, **self._options))
        return _facts(protected(self.operator, self.k, progress=self._told, **self._options))

    @cached_property
    def witness(self) -> dict[str, tuple[float, ...]]:
        """The margin's witness in the user's names and units."""
        return self.operator.unstack(self.facts.direction, only=self.facts.support)

    def grounds(self, task: Task) -> _Grounds:
        """On what grounds a repair of this field speaks: made once for the fields of one problem
        and radius.
        """
        if self._grounds is None or not self._grounds.hold_for(task):
            self._grounds = _Grounds.of(task)
        return self._grounds

    @cached_property
    def open_nodes(self) -> frozenset[int]:
        """Where only some values are delivered, or checks may be wrong: nodes whose value nothing
        protects.

        A node is sure if its own margin is positive, as if it alone were delivered: then all
        explanations agree on it.
        """
        premise, names = self.operator.premise, self.operator.node_ids
        if premise.deliver is None and not premise.wrong_checks:
            return frozenset()
        wanted = {self.operator.node_index[name] for name in premise.wanted(names)}
        sure = set(wanted) if self.facts.lower > 0.0 else set()
        rest = [i for i in range(len(names)) if i not in sure]
        for i in rest if len(rest) <= LOOKED_AT else ():
            if self._alone(i) > 0.0:
                sure.add(i)
        return frozenset(range(len(names))) - sure

    @cached_property
    def robust_lower(self) -> float:
        """What the uncertainty of relations leaves of the proven margin; see
        `rrf_design.design.Design.robust_lower`.
        """
        from rrf_design.planning.supports import robust_floor

        return robust_floor(self.operator, k=self.k, lower=self.facts.lower, unread=bool(self.erased))

    @property
    def looseness(self) -> float:
        """η ≥ ‖E‖: the root of the summed squared radii."""
        return float(np.linalg.norm(self.operator.radii)) * (1 + 1e-12)

    @cached_property
    def decoder(self) -> SupportDecoder:
        return SupportDecoder(self.operator.matrix, self.parts.groups, known=self.parts.known)

    @cached_property
    def table(self) -> SupportTable:
        """All supports at once: of small designs only (`solvers.decoding.table_fits`)."""
        return SupportTable(self.operator.matrix, self.operator.groups, k=self.k, known=self.erased)

    @cached_property
    def unseen_nodes(self) -> tuple[int, ...]:
        """At zero margin, the nodes that the witness moves: errors there can't be told apart."""
        return self._moved(self.facts.direction) if self.facts.gamma == 0.0 else ()

    def undetermined(self, nodes: tuple[int, ...]) -> frozenset[int]:
        """Which of these nodes could change together without anything that is measured changing."""
        null = self._null_space(nodes)
        return frozenset(i for column in null.T for i in self._moved(column))

    def moving(self, support: tuple[int, ...]) -> frozenset[int]:
        """Nodes that some further error within the budget changes without a trace, beside the
        errors on the support.
        """
        if support not in self._moving:
            fixed = self.parts.covering((*self.erased, *support))
            rest = [part for part in range(len(self.parts.members)) if part not in fixed]
            left = min(self.k - len(self.parts.covering(support)), len(rest))
            found: set[int] = set()
            if (
                comb(len(rest), max(left, 0)) > LISTED
            ):  # too many to list: whatever a node's own margin does not protect
                found |= self.unprotected
            else:
                for further in combinations(rest, max(left, 0)):
                    null = self.decoder.null_space(tuple(sorted((*fixed, *further))))
                    found.update(i for column in null.T for i in self._moved(column))
            self._moving[support] = frozenset(found)
        return self._moving[support]

    @cached_property
    def unprotected(self) -> frozenset[int]:
        """Nodes that their own margin does not protect, as if each alone were delivered; all of a
        field too large to look at them.
        """
        names = range(len(self.operator.node_ids))
        return frozenset(i for i in names if len(names) > LOOKED_AT or self._alone(i) == 0.0)

    def _alone(self, node: int) -> float:
        """The margin of one node as if it alone were delivered; a lower bound where answers are
        missing.
        """
        premise = replace(self.operator.premise, deliver=frozenset({self.operator.node_ids[node]}))
        if self.erased:
            options = {"unread": self.erased, "premise": premise, **self._options}
            return protected_unread(self.operator, self.k, **options).solved.lower
        return protected(self.operator, self.k, premise=premise, **self._options).solved.lower

    def unseen(self, support: tuple[int, ...]) -> tuple[Candidate, ...]:
        """Errors that change nothing measured, on the answer's nodes and as many more as the budget
        still allows.
        """
        if support not in self._unseen:
            self._unseen[support] = self._find_unseen(support)
        return self._unseen[support]

    def _find_unseen(self, support: tuple[int, ...]) -> tuple[Candidate, ...]:
        from solvers.decoding import erasure_margin

        free = self._null_space((*self.erased, *support))
        if free.shape[1]:
            return tuple(Candidate(self._moved(column), 0.0, column.copy()) for column in free.T)
        fixed = self.parts.covering((*self.erased, *support))
        left = self.k - len(self.parts.covering(support))
        if left < 1 or len(fixed) == len(self.parts.members):
            return ()
        found = erasure_margin(self.operator.matrix, self.parts.groups, known=fixed, size=left)
        return (Candidate(self._moved(found.direction), 0.0, found.direction),) if found.value == 0.0 else ()

    def _null_space(self, nodes: tuple[int, ...]) -> Array:
        key = self.parts.covering(nodes)
        if key not in self._null:
            self._null[key] = self.decoder.null_space(key)
        return self._null[key]

    def _moved(self, direction: Array) -> tuple[int, ...]:
        groups = self.operator.groups
        return tuple(i for i, part in enumerate(groups) if float(np.abs(direction[part]).max(initial=0.0)) > MOVES)


@dataclass(frozen=True, slots=True)
class _Grounds:
    """Of one problem with one radius; the design, with its k and what is erased, is known to
    whoever keeps them.
    """

    problem: Problem
    radius: Radius | None
    goal: Goal
    wanted: float | None
    """The margin that the goal asks for; None where it asks for none, or where none would do."""
    assumes: str
    """The premise of a verdict, in words."""
    sure: float | None
    """The probability that radius and rates hold; None where they are declared."""
    delivered: tuple[str, ...]
    """The nodes whose values are wanted."""
    deciding: tuple[Anchor, ...]
    """Held checks that state the only delivered value."""
    fixing: tuple[Anchor, ...]
    """Held checks that state the value of one node and may not be wrong."""

    @classmethod
    def of(cls, task: Task) -> _Grounds:
        operator, radius = task.operator, task.radius
        goal = Goal.of(task.problem)
        wish = None if radius is None else goal.wanted(radius)
        others = bool(operator.premise.suspects.intersection(operator.block_ids))
        noise = "" if radius is None else radius.words(others=others)
        return cls(
            problem=task.problem,
            radius=radius,
            goal=goal,
            wanted=None if wish == float("inf") else wish,
            assumes=assumed(operator, task.k, noise, unread={operator.node_ids[i] for i in task.erased}),
            sure=joint_confidence(None if radius is None else radius.confidence, operator.premise.sure),
            delivered=operator.premise.wanted(operator.node_ids),
            deciding=_deciding(task),
            fixing=tuple(anchor for anchor in _held_checks(task) if anchor.trusted and len(anchor.nodes) == 1),
        )

    def hold_for(self, task: Task) -> bool:
        """Whether another field of the same design has the very same problem and radius."""
        return task.problem is self.problem and task.radius is self.radius


def _held_checks(task: Task) -> list[Anchor]:
    """Held checks that state values of nodes as they are."""
    found = (task.problem.block_by_id[name] for name in task.operator.anchor_ids)
    return [one for one in found if isinstance(one, Anchor) and one.rows is None and one.metric is None]


def _deciding(task: Task) -> tuple[Anchor, ...]:
    node, held = sole_delivered(task.problem, task.operator.node_ids), task.operator.block_ids
    if node is None:
        return ()
    return tuple(one for one in _held_checks(task) if decides(task.problem, one, node, held=held))


def widened(task: Task, decoder: Decoder, design: Decoding) -> Task | None:
    """The task with a radius that the truth keeps to; itself where nothing is uncertain, None where
    no radius is certain.
    """
    if not task.operator.uncertain or task.radius is None:
        return task
    known = task.radius.total
    radii = [] if known is None else [known]
    if design.robust_lower > 0.0 and not task.operator.premise.wrong_checks:  # a check set aside bounds nothing
        given = task.operator.unstack(task.response)
        first = decoder.decode(replace(task, epsilon=task.epsilon + spread_at(task.operator, given)))
        if _supported(task, first):
            distance, spread = _distance(task, first, design)
            radii.append((task.epsilon + spread + design.looseness * (distance + _tail(task))) * ROUND_UP)
    return replace(task, epsilon=min(radii)) if radii else None


def _supported(task: Task, outcome: DecoderOutcome) -> bool:
    """Whether the estimate has at most k wrong nodes, so that the bounds speak of it."""
    gone = set(task.erased)
    edited = [i for i, part in enumerate(task.operator.groups) if i not in gone and outcome.error[part].any()]
    return task.count(tuple(edited)) <= task.k


def error_bound(task: Task, outcome: DecoderOutcome, design: Decoding, lower: float) -> float:
    """Bound on the error of an explanation: 2ε'/γ, or with uncertain relations the smaller of that
    and fact 18.
    """
    tail = _tail(task)
    plain = recovery_bound(task.epsilon, lower) + tail
    if not task.operator.uncertain or task.radius is None or design.robust_lower <= 0.0:
        return plain
    if task.operator.premise.wrong_checks:
        return plain
    base = replace(task, epsilon=task.radius.epsilon)
    return min(plain, _distance(base, outcome, design)[0] + tail)


def _tail(task: Task) -> float:
    """How far answers that count as right may be off, all together."""
    return 0.0 if task.radius is None else task.radius.tail


def _distance(task: Task, outcome: DecoderOutcome, design: Decoding) -> tuple[float, float]:
    """ρ and N for an estimate; `task.epsilon` is the radius of the rows alone."""
    estimate = task.operator.unstack(task.response - outcome.error)
    spread = spread_at(task.operator, estimate)
    residual = float(np.linalg.norm(task.operator.matrix @ outcome.error - task.syndrome)) + task.tolerance
    loose = design.looseness * _tail(task)  # E acts on what the small errors leave of the field, too
    return (residual + task.epsilon + spread + loose) / design.robust_lower * ROUND_UP, spread
