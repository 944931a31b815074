"""What may be wrong together, what must be right, and which checks may be wrong: the question that a margin answers.

Three things are declared (docs/algorithms.md, facts 19, 29 and 30). Nodes of one *unit* fail together, and k counts units.
Only *delivered* values must be right: γ_{k,D} = min ‖Bh‖ over h on at most 2k units with ‖h_D‖ = 1. And up to a *suspect* blocks
may be wrong altogether: the margin is then the least one with any 2a of them taken away. `protected` is the one place that
chooses the computation; whoever has an operator has its premise, and so the right margin.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rrf_design.certificates.checker.exact import float_down
from rrf_design.certificates.checker.rates import at_most, tolerated
from rrf_design.errors import InputError

if TYPE_CHECKING:
    from rrf_design.operators import Operator
    from rrf_design.problem import Problem
    from solvers import Margin, NodeColumns, SuspectMargin


@dataclass(frozen=True, slots=True)
class Premise:
    """By names, so that it holds for every part of a field. The default is: each answer on its own, everything delivered."""

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

    @classmethod
    def of(cls, problem: Problem) -> Premise:
        units = {node.id: node.unit for node in problem.nodes if node.unit is not None}
        deliver = None if problem.deliver is None else frozenset(problem.deliver)
        if deliver is not None and len(deliver) == len(problem.nodes):
            deliver = None
        suspects = suspects_of(problem)
        rates = tuple(block.rate for block in problem.blocks if block.rate is not None)
        rated = tolerated(rates, problem.confidence)
        wrong = problem.wrong_checks + rated
        shared = len(set(units.values())) < len(units)
        return cls(
            units=units if shared else {},
            deliver=deliver,
            wrong_checks=wrong if suspects else 0,
            suspects=suspects if wrong else frozenset(),
            rates=rates,
            rated=rated,
            called=_called(problem, units) if shared else "answers",
        )

    @property
    def plain(self) -> bool:
        """Each answer on its own, everything delivered, every check right."""
        return not self.units and self.deliver is None and not self.wrong_checks and not self.rates

    @property
    def sure(self) -> float | None:
        """The probability that no more checks with a rate are wrong than the premise allows, rounded down; None without any."""
        return float_down(at_most(self.rates, self.rated)) if self.rates else None

    @property
    def whole(self) -> Premise:
        """The same when everything is delivered."""
        return self if self.deliver is None else replace(self, deliver=None)

    def unit(self, node: str) -> str:
        """The unit of a node; its own name, marked, where it has none (a unit may be called like a node)."""
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


def suspects_of(problem: Problem) -> frozenset[str]:
    """Blocks that may be wrong: those with `trusted = false` or a rate; where there are none, all that don't say `trusted = true`."""
    entries = (*problem.blocks, *problem.nonlinear)
    rated = {block.id for block in problem.blocks if block.rate is not None}
    marked = frozenset(entry.id for entry in entries if entry.trusted is False or entry.id in rated)
    return marked or frozenset(entry.id for entry in entries if entry.trusted is not True)


def _called(problem: Problem, units: Mapping[str, str]) -> str:
    """Models, where units and models are the same partition, and every node names its model; units otherwise."""
    pairs = {(units.get(node.id, f"\0{node.id}"), node.model) for node in problem.nodes}
    same = len(pairs) == len({unit for unit, _ in pairs}) == len({model for _, model in pairs})
    return "models" if same and all(model is not None for _, model in pairs) else "units"


@dataclass(frozen=True, slots=True)
class Protected:
    """A margin under a premise: the solver's result over coordinates, with its support in nodes and blocks."""

    solved: Margin
    nodes: tuple[int, ...]
    """Nodes of the units that the witness lies on."""
    units: tuple[str, ...]
    wrong: tuple[str, ...] = ()
    """Suspect blocks that hide the witness: it changes what they measure, and they may be wrong."""
    suspected: SuspectMargin | None = None
    """The solver's own result where checks are suspect: what they would have to be wrong by is in it."""
    others: float | None = None
    """Where answers were not read (`rrf_design.unread`): the proven margin of those that were; None where all were."""
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


def trusted_blocks(operator: Operator, premise: Premise | None = None) -> tuple[int, ...]:
    """Indices of the blocks that are never wrong."""
    premise = operator.premise if premise is None else premise
    return tuple(j for j, name in enumerate(operator.block_ids) if name not in premise.suspects)


def protected(operator: Operator, k: int, *, premise: Premise | None = None, **options: Any) -> Protected:
    """The margin of an operator under its own premise, or another one. All delivered nodes must be among its nodes."""
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
        trusted=trusted_blocks(operator, premise),
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
