"""What may be wrong together, what must be right, and which checks may be wrong: the question that
a margin answers.

Three things are declared (docs/algorithms.md, facts 19, 29 and 30). Nodes of one *unit* fail
together, and k counts units. Only *delivered* values must be right: γ_{k,D} = min ‖Bh‖ over h on at
most 2k units with ‖h_D‖ = 1. And up to a *suspect* blocks may be wrong altogether: the margin is
then the least one with any 2a of them taken away. `protected` is the one place that chooses the
computation; whoever has an operator has its premise, and so the right margin. Only what is held
counts: a mark on a check that nobody bought, or a unit shared with a question that nobody asked,
changes nothing (`Premise.among`).

`protected_unread` gives the margin of a design some of whose answers were asked but could not be
read. Nothing is known of an unread answer y_R. Two explanations of the same measurements may fill R
as they like and differ on at most 2k other units, so

    γ(k | R) = min ‖B h‖ over unit h on R and at most 2k units beside it

takes the place of γ_k in every promise (`solvers.decoding._erasures`). The rows that touch R
stay: a check of what could not be read, or two relations through it, still say something about the
others.
R itself has to be determined, unless it is not delivered. Repair and the live loop both ask this
function, so a run ends where a repair succeeds. `Parts` are what a decoder chooses from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rrf_design.checker import at_most, tolerated
from rrf_design.checker.exact import float_down
from rrf_design.errors import InputError

if TYPE_CHECKING:
    from rrf_design.operators import Operator
    from rrf_design.problem import Problem
    from solvers import Margin, NodeColumns, SuspectMargin
    from solvers.decoding import ErasureMargin


@dataclass(frozen=True, slots=True)
class Premise:
    """By names, so that it holds for every part of a field.

    The default is: each answer on its own, everything delivered.
    """

    units: Mapping[str, str] = field(default_factory=dict)
    """Node id to unit, for nodes that name one."""
    deliver: frozenset[str] | None = None
    """Node ids; None for all."""
    wrong_checks: int = 0
    suspects: frozenset[str] = frozenset()
    """Block ids."""
    rates: tuple[float, ...] = ()
    """Of all checks that are declared with one."""
    rated: int = 0
    """How many of `wrong_checks` are for those: no more are wrong, with probability `sure`."""
    called: str = "answers"
    """What k counts: answers, models or units."""
    declared: _Declared | None = None
    """What the file says of every entry, where it says anything: what a design takes its own
    from.
    """

    @classmethod
    def of(cls, problem: Problem) -> Premise:
        """As if everything were held."""
        declared = _Declared.of(problem)
        if declared is None:
            return PLAIN
        everything = cls(declared=declared).among(
            [block.id for block in problem.blocks], [node.id for node in problem.nodes]
        )
        if problem.deliver is None or all(node.cost is None for node in problem.nodes):
            return everything
        return replace(everything, deliver=frozenset(problem.deliver))  # what is not asked may be missing

    def among(self, blocks: Iterable[str], nodes: Iterable[str]) -> Premise:
        """The premise of a design that holds these blocks over these nodes: nothing else counts."""
        declared = self.declared
        if declared is None:
            return self
        blocks, nodes = tuple(blocks), tuple(nodes)
        units = {name: declared.units[name] for name in nodes if name in declared.units}
        shared = len(set(units.values())) < len(units)
        deliver = declared.deliver
        suspects = declared.suspects(blocks)
        rates = tuple(declared.rates[name] for name in blocks if name in declared.rates)
        rated = tolerated(rates, declared.confidence)
        wrong = declared.wrong_checks + rated
        return Premise(
            units=units if shared else {},
            deliver=None if deliver is None or deliver == frozenset(nodes) else deliver,
            wrong_checks=wrong if suspects else 0,
            suspects=suspects if wrong else frozenset(),
            rates=rates,
            rated=rated,
            called=declared.called(nodes) if shared else "answers",
            declared=declared,
        )

    @property
    def plain(self) -> bool:
        """Each answer on its own, everything delivered, every check right."""
        return not self.units and self.deliver is None and not self.wrong_checks and not self.rates

    @property
    def sure(self) -> float | None:
        """The probability that no more checks with a rate are wrong than the premise allows,
        rounded down; None without any.
        """
        return float_down(at_most(self.rates, self.rated)) if self.rates else None

    @property
    def whole(self) -> Premise:
        """The same when everything is delivered."""
        return self if self.deliver is None else replace(self, deliver=None)

    def unit(self, node: str) -> str:
        """The unit of a node; its own name, marked, where it has none (a unit may be called like a
        node).
        """
        return self.units.get(node, f"\0{node}")

    def count(self, nodes: Iterable[str]) -> int:
        """How many units these nodes belong to."""
        return len({self.unit(node) for node in nodes} if self.units else set(nodes))

    def partition(self, nodes: Iterable[str]) -> dict[str, list[str]]:
        """Unit to its nodes, in order."""
        result: dict[str, list[str]] = {}
        for node in nodes:
            result.setdefault(self.unit(node), []).append(node)
        return result

    def wanted(self, nodes: Iterable[str]) -> tuple[str, ...]:
        """Which of these nodes are delivered."""
        return tuple(node for node in nodes if self.deliver is None or node in self.deliver)

    def missing(self, nodes: Iterable[str]) -> frozenset[str]:
        """Delivered nodes that are not among these."""
        return frozenset() if self.deliver is None else self.deliver.difference(nodes)


PLAIN = Premise()


@dataclass(frozen=True, slots=True)
class _Declared:
    """What the file says of what fails together, what is delivered, which checks may be wrong."""

    units: Mapping[str, str]
    models: Mapping[str, str | None]
    deliver: frozenset[str] | None
    wrong_checks: int
    confidence: float
    marked: frozenset[str]
    """Blocks with `trusted = false` or a rate."""
    trusted: frozenset[str]
    """And those with `trusted = true`."""
    rates: Mapping[str, float]
    nonlinear: frozenset[str]
    """Nonlinear relations: held in any case."""

    @classmethod
    def of(cls, problem: Problem) -> _Declared | None:
        """None where every answer is on its own, everything is delivered and every check right."""
        units = {node.id: node.unit for node in problem.nodes if node.unit is not None}
        rates = {block.id: block.rate for block in problem.blocks if block.rate is not None}
        if not (units or rates or problem.wrong_checks or problem.deliver is not None):
            return None
        entries = (*problem.blocks, *problem.nonlinear)
        return cls(
            units=units,
            models={node.id: node.model for node in problem.nodes},
            deliver=None if problem.deliver is None else frozenset(problem.deliver),
            wrong_checks=problem.wrong_checks,
            confidence=problem.confidence,
            marked=frozenset(entry.id for entry in entries if entry.trusted is False or entry.id in rates),
            trusted=frozenset(entry.id for entry in entries if entry.trusted is True),
            rates=rates,
            nonlinear=frozenset(entry.id for entry in problem.nonlinear),
        )

    def suspects(self, blocks: Iterable[str]) -> frozenset[str]:
        """Of the blocks that are held, those that may be wrong: the marked ones; where there are
        none, all that don't say `trusted = true`.
        """
        held = self.nonlinear.union(blocks)
        return held & self.marked or held - self.trusted

    def of_checks(self, blocks: Sequence[str]) -> tuple[Any, ...]:
        """What is said of these blocks, without their names."""
        marks = [(name in self.marked, name in self.trusted, self.rates.get(name)) for name in blocks]
        return self.wrong_checks, self.confidence, marks

    def called(self, nodes: Sequence[str]) -> str:
        """Models, where units and models are the same partition, and every node names its model;
        units otherwise.
        """
        pairs = {(self.units.get(name, f"\0{name}"), self.models[name]) for name in nodes}
        same = len(pairs) == len({unit for unit, _ in pairs}) == len({model for _, model in pairs})
        return "models" if same and all(model is not None for _, model in pairs) else "units"


@dataclass(frozen=True, slots=True)
class Protected:
    """A margin under a premise: the solver's result over coordinates, with its support in nodes and
    blocks.
    """

    solved: Margin
    nodes: tuple[int, ...]
    """Nodes of the units that the witness lies on."""
    units: tuple[str, ...]
    wrong: tuple[str, ...] = ()
    """Suspect blocks that hide the witness: it changes what they measure, and they may be wrong."""
    suspected: SuspectMargin | None = None
    """The solver's own result where checks are suspect: what they would have to be wrong by is in
    it.
    """
    others: float | None = None
    """Where answers were not read (`protected_unread`): the proven margin of those that were; None
    where all were.
    """
    bound: bool = False
    """Only a lower bound is known: 0 then says nothing."""


def unit_groups(operator: Operator, premise: Premise | None = None) -> tuple[tuple[str, ...], NodeColumns]:
    """Units in the order of their first node, and the columns of each."""
    from solvers import column_groups

    premise = operator.premise if premise is None else premise
    if not premise.units:
        return operator.node_ids, operator.groups
    parts = premise.partition(operator.node_ids)
    columns = [np.concatenate([operator.groups[operator.node_index[n]] for n in nodes]) for nodes in parts.values()]
    return tuple(name.removeprefix("\0") for name in parts), column_groups(columns, operator.shape[1])


def delivered_columns(operator: Operator, premise: Premise | None = None) -> NDArray[np.int64]:
    premise = operator.premise if premise is None else premise
    wanted = premise.wanted(operator.node_ids)
    parts = [operator.groups[operator.node_index[name]] for name in wanted]
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def _trusted_blocks(operator: Operator, premise: Premise | None = None) -> tuple[int, ...]:
    """Indices of the blocks that are never wrong."""
    premise = operator.premise if premise is None else premise
    return tuple(j for j, name in enumerate(operator.block_ids) if name not in premise.suspects)


def protected(operator: Operator, k: int, *, premise: Premise | None = None, **options: Any) -> Protected:
    """The margin of an operator under its own premise, or another one.

    All delivered nodes must be among its nodes.
    """
    premise = operator.premise if premise is None else premise
    names, groups = unit_groups(operator, premise)
    wrong: tuple[str, ...] = ()
    suspected: SuspectMargin | None = None
    try:
        if premise.wrong_checks and operator.block_ids:
            solved, wrong, suspected = _with_suspects(operator, groups, premise, k, options)
        elif premise.deliver is not None or premise.wrong_checks:
            from solvers import delivered_margin

            known = _known(options, ("n_jobs", "time_limit", "progress"), "delivered values")
            solved = delivered_margin(operator.matrix, groups, delivered_columns(operator, premise), k=k, **known)
        else:
            from solvers import margin

            solved = margin(operator.matrix, groups, k=k, **options)
    except ValueError as error:  # a solver option that can't be
        raise InputError(str(error)) from None
    if not premise.units:
        return Protected(solved, solved.support, tuple(names[i] for i in solved.support), wrong, suspected)
    chosen = set(solved.support)
    place = {unit: at for at, unit in enumerate(premise.partition(operator.node_ids))}
    nodes = tuple(i for i, name in enumerate(operator.node_ids) if place[premise.unit(name)] in chosen)
    return Protected(solved, nodes, tuple(names[i] for i in solved.support), wrong, suspected)


def _with_suspects(
    operator: Operator, groups: NodeColumns, premise: Premise, k: int, options: Mapping[str, Any]
) -> tuple[Margin, tuple[str, ...], SuspectMargin]:
    from solvers import Margin, suspect_margin

    known = _known(options, ("n_jobs", "time_limit", "progress"), "checks that may be wrong")
    found = suspect_margin(
        operator.matrix,
        groups,
        np.diff(operator.block_offsets).tolist(),
        k=k,
        suspects=premise.wrong_checks,
        trusted=_trusted_blocks(operator, premise),
        deliver=delivered_columns(operator, premise),
        time_limit=known.get("time_limit"),
    )
    solved = Margin(
        value=found.value,
        lower=found.lower,
        upper=found.upper,
        support=found.support,
        direction=np.array(found.direction),
        status=found.status,
        method=found.method,
        support_size=found.support_size,
        groups=found.groups,
        tested=found.tested,
    )
    return solved, tuple(operator.block_ids[j] for j in found.wrong), found


def _known(options: Mapping[str, Any], names: tuple[str, ...], what: str) -> dict[str, Any]:
    for name, value in options.items():
        if name not in names and value is not None:
            raise InputError(f"{name}: does not apply to the margin of {what}; leave it out")
    return {name: value for name, value in options.items() if name in names}


def protected_unread(
    operator: Operator,
    k: int,
    *,
    unread: Sequence[int],
    premise: Premise | None = None,
    n_jobs: int | None = None,
    time_limit: float | None = None,
) -> Protected:
    """γ(k | R) of an operator whose nodes R, by index, were asked and not read, under its own
    premise or another one.

    Where it can't be computed, `bound` is set: `lower` is proven, `upper` infinite, and the witness
    only the worst direction known.
    """
    from solvers.decoding import erasure_margin

    told = operator.premise if premise is None else premise
    gone = tuple(sorted(unread))
    parts = Parts.of(operator, gone)
    options: dict[str, Any] = {"n_jobs": n_jobs, "time_limit": time_limit}
    if told.deliver is not None or told.wrong_checks:
        return _around(operator, k, told, parts, gone, options)
    found = erasure_margin(operator.matrix, parts.groups, known=parts.known, k=k, **options)
    return _named(operator, k, parts, told, found)


def _around(
    operator: Operator, k: int, premise: Premise, parts: Parts, gone: tuple[int, ...], options: dict[str, Any]
) -> Protected:
    """Where only some values are delivered, or checks may be wrong: exactly where that can be
    looked at, else a lower bound.
    """
    from solvers.decoding import WrongChecks, unread_margin

    exact = unread_margin(
        operator.matrix,
        parts.groups,
        delivered_columns(operator, premise),
        known=parts.known,
        size=2 * k,
        checks=WrongChecks(
            blocks=np.diff(operator.block_offsets).tolist(),
            suspects=[j for j, name in enumerate(operator.block_ids) if name in premise.suspects],
            most=2 * premise.wrong_checks,
        ),
        time_limit=options["time_limit"],
    )
    if exact is not None and (exact.lower > 0.0 or exact.value == 0.0):
        return _named(operator, k, parts, premise, exact)
    return _bounded(operator, k, premise, parts, gone, options)


def _bounded(
    operator: Operator, k: int, premise: Premise, parts: Parts, gone: tuple[int, ...], options: dict[str, Any]
) -> Protected:
    """A lower bound, with the worst direction that was met on the way to it.

    What the blocks measure that name no unread node is a part of what is measured: the margin of
    that part holds for delivered nodes that were answered. Without suspect checks, so does the
    margin of the whole field given the unread ones.
    """
    from solvers.decoding import erasure_margin

    lower, direction = 0.0, np.zeros(operator.shape[1])
    missing = {operator.node_ids[i] for i in gone}.intersection(premise.wanted(operator.node_ids))
    if missing:
        direction[operator.groups[operator.node_index[min(missing)]][0]] = 1.0
    else:
        answered = np.ones(len(operator.node_ids), dtype=np.bool_)
        answered[list(gone)] = False
        found = protected(operator.restrict(_untouched(operator, gone), answered), k, premise=premise, **options)
        lower = found.solved.lower
        direction[np.concatenate([operator.groups[i] for i in np.flatnonzero(answered)])] = found.solved.direction
    if not premise.wrong_checks:
        whole = erasure_margin(operator.matrix, parts.groups, known=parts.known, k=k, **options)
        if whole.lower > lower or missing:
            lower, direction = max(lower, whole.lower), whole.direction.copy()
    nodes = tuple(i for i, own in enumerate(operator.groups) if direction[own].any())
    solved = _margin(k, parts, (lower, lower, inf), parts.covering(nodes), direction, "erasures, lower bound")
    return Protected(solved, nodes, _units(operator, parts, premise, solved.support), others=lower, bound=True)


def _untouched(operator: Operator, gone: tuple[int, ...]) -> NDArray[np.bool_]:
    """(blocks,): those without an entry at an unread node."""
    silent = np.zeros(operator.shape[1])
    for i in gone:
        silent[operator.groups[i]] = 1.0
    touched = abs(operator.matrix) @ silent > 0
    owner = np.repeat(np.arange(len(operator.block_ids)), np.diff(operator.block_offsets))
    hits = np.bincount(owner, weights=touched, minlength=len(operator.block_ids))
    return np.asarray(hits == 0)


def _named(operator: Operator, k: int, parts: Parts, premise: Premise, found: ErasureMargin) -> Protected:
    bounds = (found.value, found.lower, max(found.upper, found.lower))
    solved = _margin(k, parts, bounds, found.support, found.direction.copy(), f"erasures, {found.method}")
    nodes = tuple(sorted(i for part in found.support for i in parts.members[part]))
    solved = replace(solved, status=found.status)
    return Protected(solved, nodes, _units(operator, parts, premise, found.support), others=found.others)


def _units(operator: Operator, parts: Parts, premise: Premise, support: tuple[int, ...]) -> tuple[str, ...]:
    names = (operator.node_ids[parts.members[part][0]] for part in support)
    return tuple(dict.fromkeys(premise.unit(name).removeprefix("\0") for name in names))


def _margin(
    k: int,
    parts: Parts,
    bounds: tuple[float, float, float],
    support: tuple[int, ...],
    direction: NDArray[np.float64],
    method: str,
) -> Margin:
    from solvers import Margin, Status

    value, lower, upper = bounds
    return Margin(
        value=value,
        lower=lower,
        upper=upper,
        support=support,
        direction=direction,
        status=Status.BOUNDED,
        method=method,
        support_size=2 * k,
        groups=parts.groups,
    )


@dataclass(frozen=True, slots=True)
class Parts:
    """What a decoder chooses from: the answered nodes of each unit together, and every erased node
    by itself.

    A wrong unit may be wrong in all its answers and costs one of k. An erased node's error is known
    to be there and costs nothing, whatever its unit: so it is a part of its own, and its unit is
    what was answered of it. Each part has its columns and its nodes.
    """

    groups: NodeColumns
    members: tuple[tuple[int, ...], ...]
    part_of: tuple[int, ...]
    """(nodes,)"""
    known: tuple[int, ...]

    @classmethod
    def of(cls, operator: Operator, erased: tuple[int, ...] = ()) -> Parts:
        from solvers import column_groups

        names, premise = operator.node_ids, operator.premise
        if not premise.units:
            every = tuple(range(len(names)))
            return cls(operator.groups, tuple((i,) for i in every), every, erased)
        gone = set(erased)
        found = premise.partition(name for i, name in enumerate(names) if i not in gone)
        members = [tuple(operator.node_index[name] for name in nodes) for nodes in found.values()]
        members += [(i,) for i in erased]
        part_of = {i: part for part, nodes in enumerate(members) for i in nodes}
        columns = [np.concatenate([operator.groups[i] for i in nodes]) for nodes in members]
        return cls(
            groups=column_groups(columns, operator.shape[1]),
            members=tuple(members),
            part_of=tuple(part_of[i] for i in range(len(names))),
            known=tuple(range(len(found), len(members))),
        )

    @property
    def single(self) -> bool:
        """Every part is one node."""
        return len(self.members) == len(self.part_of)

    def covering(self, nodes: tuple[int, ...]) -> tuple[int, ...]:
        """The parts that hold these nodes."""
        return tuple(sorted({self.part_of[i] for i in nodes}))

    def moved(
        self, support: tuple[int, ...], error: NDArray[np.float64], operator: Operator, slack: float
    ) -> tuple[int, ...]:
        """The nodes of some parts that an error changes by more than rounding; all of a part of one
        node.
        """
        if self.single:
            return support
        nodes = sorted(i for part in support for i in self.members[part])
        return tuple(i for i in nodes if float(np.abs(error[operator.groups[i]]).max()) > slack)
