"""The engine of all repairs: what fields of one design share, and batches of them decoded together.

Fields of one design differ in their responses and right-hand sides only, so everything that depends
on B alone (margin, table of supports, null spaces) is shared, also between problems whose operators
are equal. Each pattern of erased nodes is a design of its own. `repair`, `repair_many`, tables,
live runs and policies repair through here; what a batch gives depends on the batch alone.

`AgreementPatterns` says of many fields at once what a repair would say of each. Fields of one
design whose answers agree and differ in the same way have one verdict, one reason and one bound,
and differ in their values only: the first of each pattern is repaired, the others are computed in
the very same arithmetic. Whatever could make a field differ from the first of its pattern (a
residual above ε, a bound within rounding, several explanations) sends it the slow way, so that it
has the same bits either way; `tests/rrf_design/tables/test_patterns.py` holds that.

The decoder is chosen by name, or for "auto" by what the field allows; what a method has no use for
is refused.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rrf_design.blocks import Anchor
from rrf_design.errors import InputError
from rrf_design.noise import Noise, Radius, radius_of, recovery_bound
from rrf_design.repairing._decoding import Decoding, widened
from rrf_design.repairing._exact import ZERO_RULE, Exact
from rrf_design.repairing._fields import make_task, relative_rounding
from rrf_design.repairing._judgement import finish
from rrf_design.repairing.contract import (
    Array,
    Candidate,
    Certainty,
    Decoder,
    DecoderOutcome,
    Prepared,
    Repair,
    Task,
    Values,
)
from rrf_design.rows import LARGEST_ENTRY, alone

if TYPE_CHECKING:
    from rrf_design.design import Design
    from rrf_design.operators import Operator
    from rrf_design.problem import Problem, Selection
    from rrf_design.verdict import Verdict
    from solvers.decoding import SupportTable

DENSE_SUPPORTS = 20_000
"""Prefixes that an exact search may walk through on a dense field before `auto` prefers the convex
decoder.
"""


_DECODERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "exact": ("_exact:Exact", ()),
    "convex": ("_convex:Convex", ()),
    "discrete": ("_discrete:Discrete", ()),
    "min-sum": ("_discrete:Discrete", ("min-sum",)),
}
"""Module and class of each decoder, and what it is made with; imported when it is used."""
METHODS = ("auto", *_DECODERS)


def choose(method: str, task: Task) -> tuple[Decoder, str]:
    """The decoder, and for "auto" the reason (paper's Algorithm 1: exact where feasible, candidates
    where given, else convex).
    """
    from rrf_design.files import suggestion

    if method not in METHODS:
        hint = suggestion(method, METHODS) or f"; known: {', '.join(METHODS)}"
        raise InputError(f"unknown method {method!r}{hint}")
    name, why = _automatic(task) if method == "auto" else (method, "")
    decoder = _decoder(name)
    _refuse_units(decoder, task)
    for option in task.work.options:
        if option not in decoder.options:
            others = [other for other in _DECODERS if option in _decoder(other).options]
            hint = f"; it belongs to {' and '.join(others)}" if others else suggestion(option, decoder.options)
            raise InputError(f"method {name} has no option {option!r}{hint}")
    return decoder, why


def _decoder(name: str) -> Decoder:
    home, made_with = _DECODERS[name]
    module, _, kind = home.partition(":")
    decoder: Decoder = getattr(import_module(f"rrf_design.repairing.{module}"), kind)(*made_with)
    return decoder


def _refuse_units(decoder: Decoder, task: Task) -> None:
    """Better no answer than one that counts something else."""
    premise = task.operator.premise
    if decoder.counts_units or not (premise.units or premise.wrong_checks):
        return
    what = "units of several nodes" if premise.units else "checks that may be wrong"
    raise InputError(f"method {decoder.name}: it knows nothing of {what}; use method exact")


def _automatic(task: Task) -> tuple[str, str]:
    premise = task.operator.premise
    if premise.units or premise.wrong_checks:
        also = "; candidates are not used" if task.candidates else ""
        return "exact", f"exact, the only method that knows units and checks that may be wrong{also}"
    if task.candidates:
        return "discrete", "discrete, because candidates were given"
    nodes = len(task.operator.node_ids) - len(task.erased)
    prefixes = np.prod([float(nodes - i) for i in range(max(0, min(task.k, nodes) - 2))])
    rows, columns = task.operator.shape
    filled = task.operator.matrix.nnz / max(1, rows * columns)
    if task.k <= 2 or filled <= 0.2 or prefixes <= DENSE_SUPPORTS:
        return "exact", "exact, because the support search is feasible"
    why = f"convex, because an exact search at k = {task.k} on a dense field of {nodes} nodes is not feasible"
    return "convex", why


Numbers = float | tuple[float, ...]


class SharedDesign:
    """One design of one problem: what the repairs of all fields share that hold the same.

    Fields differ in responses and right-hand sides (docs/algorithms.md, fact 21): no problem is
    built for them.
    """

    def __init__(self, problem: Problem, design: Design, *, noise: Noise | None = None) -> None:
        self.problem, self.selected, self._noise = problem, design.selected, noise
        self.operator: Operator = design.slice(problem)
        _ = (
            self.operator.groups,
            self.operator.node_index,
            self.operator.block_index,
            self.operator.of_anchors,
            self.operator.anchor_ids,
            self.operator.longest_row,
            self.operator.longest_units,
            self.operator.magnitudes,
        )  # known from here on, and not worked out again for every field

    @cached_property
    def key(self) -> str:
        return _operator_key(self.operator)

    @cached_property
    def radius(self) -> Radius:
        return radius_of(self.problem, self.operator, self._noise)

    def prepared(
        self,
        responses: Any,
        *,
        values: Mapping[str, Numbers] | None = None,
        digest: str = "",
        truth: Mapping[str, Any] | None = None,
        hidden: Mapping[str, bool] | None = None,
        **task: Any,
    ) -> Prepared:
        """A field of this design, ready to be decoded; `task` is more of what `make_task` is told.

        `values` are its own offsets and values instead of the problem's.
        """
        own = values is None
        operator = self.operator if values is None else self.aimed(values)
        made, answered = make_task(self.problem, operator, responses, radius=self.radius, computed=own, **task)
        return Prepared(made, answered, self.key, digest, self.selected, truth, hidden)

    @cached_property
    def _sides(self) -> _Sides:
        return _Sides(self.problem, self.operator)

    def aimed(self, values: Mapping[str, Numbers]) -> Operator:
        """The operator with a field's own offsets and values, by block; relations that are not
        named have none.
        """
        return self.operator.aiming(self._sides.target(values))


class _Sides:
    """Right-hand sides of one design, weighted and whitened as its rows are."""

    def __init__(self, problem: Problem, operator: Operator) -> None:
        self._blocks = [problem.block_by_id[name] for name in operator.block_ids]
        heights = np.diff(operator.block_offsets).tolist()
        self._rows = [
            slice(int(top), int(top) + height) for top, height in zip(operator.block_offsets, heights, strict=False)
        ]
        factors, self._dense = [], {}
        for place, (block, height) in enumerate(zip(self._blocks, heights, strict=True)):
            factor = alone(problem, block, height)
            if not isinstance(factor, float):
                self._dense[place], factor = factor, 1.0
            factors.append(factor * operator.held.factor(block.id))
        self._factors = np.repeat(factors, heights) if heights else np.zeros(0)

    def target(self, values: Mapping[str, Numbers]) -> Array:
        """Of a field's own offsets and values, by block; relations that are not named have none."""
        bare = np.zeros(len(self._factors))
        for block, rows in zip(self._blocks, self._rows, strict=True):
            value = values.get(block.id)
            if value is None:
                if isinstance(block, Anchor):
                    raise InputError(f"check {block.id!r}: no value is known")
                continue
            height = rows.stop - rows.start
            if (isinstance(value, tuple) and len(value) != height) or (
                isinstance(block, Anchor) and not isinstance(value, tuple) and height != 1
            ):
                raise InputError(f"{block.title}: {value!r} is not a value for {height} rows")
            bare[rows] = value
        target: Array = bare * self._factors
        for place, white in self._dense.items():
            target[self._rows[place]] = white @ target[self._rows[place]]
        return target


KEPT = 4096
"""Most designs that an engine keeps: answers may be missing in very many patterns."""


class RepairEngine:
    """Repairs batches of fields; what their designs share is worked out once and kept for the
    batches that follow. Not thread-safe.

    What a batch gives depends on the batch alone, not on those before it; of a `table`, what a
    field gives depends on the field alone, to the last bit.
    """

    def __init__(self, *, method: str = "auto", table: bool = False) -> None:
        self._method, self._table = method, table
        self._shared: dict[Hashable, SharedDesign] = {}
        self._decodings: dict[str, Decoding] = {}

    def shared(self, key: Hashable, make: Callable[[], SharedDesign]) -> SharedDesign:
        """The design of this key, made when it is first asked for."""
        if key not in self._shared:
            if len(self._shared) >= KEPT:
                self._shared.clear()
                self._decodings.clear()
            self._shared[key] = make()
        return self._shared[key]

    def decoding(self, one: Prepared) -> Decoding:
        """What fields of this one's design share, made when it is first asked for."""
        if one.design not in self._decodings:
            self._decodings[one.design] = Decoding.of(one.task)
        return self._decodings[one.design]

    def repair(self, prepared: Sequence[Prepared]) -> tuple[Repair, ...]:
        """Repairs in the order of the fields; those of one design are decoded together."""
        groups: dict[tuple[str, float], list[int]] = {}
        for position, one in enumerate(prepared):
            self.decoding(one)
            groups.setdefault((one.design, one.task.epsilon if self._table else 0.0), []).append(position)
        items: dict[int, Repair] = {}
        for (whole, _), positions in groups.items():
            started, design = time.perf_counter(), self._decodings[whole]
            few = 0 if self._table else FEW
            outcomes = _decode_alike([prepared[i].task for i in positions], design, self._method, few)
            seconds = (time.perf_counter() - started) / len(positions)
            for i, (task, outcome, why) in zip(positions, outcomes, strict=True):
                items[i] = finish(prepared[i], task, outcome, design, seconds=seconds, why=why)
        return tuple(items[i] for i in range(len(prepared)))

    @staticmethod
    def prepared(problem: Problem, responses: Any, *, select: Selection = None) -> Prepared:
        """A field with a problem of its own, ready to be repaired."""
        return SharedDesign(problem, problem.design(select)).prepared(responses, digest=problem.digest)


class Field(NamedTuple):
    """One item's field: its own right-hand sides by block, and its answers by node."""

    values: Mapping[str, Numbers]
    answers: Mapping[str, Values]


@dataclass(frozen=True, slots=True)
class Agreed:
    """What a repair says of an item, as far as a delivered row needs it."""

    verdict: Verdict
    assumes: str
    repaired: Mapping[str, Values | None]
    bounds: Mapping[str, float | None]
    support: tuple[str, ...]
    erased: Mapping[str, str]
    reason: str
    gamma: float
    residual: float


@dataclass(frozen=True, slots=True)
class _Pattern:
    """What the first item of a pattern came to."""

    found: Repair
    bound: float
    exact: bool
    """Its bound is within the rounding of its numbers."""


@dataclass(frozen=True, slots=True)
class _Batch:
    """Fields of one design, in its arithmetic; row i of each array belongs to field i."""

    response: Array
    syndrome: Array
    tolerance: Array
    rounding: Array
    usable: NDArray[np.bool_]
    """The others hold numbers that nothing is computed with."""


@dataclass(frozen=True, slots=True)
class Sorted:
    """Fields of one design by pattern."""

    keys: tuple[tuple[Any, ...] | None, ...]
    """Equal for fields of one pattern; None for one that has to go the slow way."""
    batch: _Batch
    error: Array
    residual: Array
    edited: NDArray[np.bool_]


class AgreementPatterns:
    """The patterns of one design with one set of unread answers: what the first item of each came
    to is kept, never what an item's own numbers were.
    """

    def __init__(self, design: SharedDesign, first: Prepared, decoding: Decoding, *, node: str, method: str) -> None:
        self._design, self._decoding, self._node, self._epsilon = design, decoding, node, first.task.epsilon
        self._blank = {name: (0.0,) * first.task.problem.node_by_id[name].dim for name in first.field.invalid}
        self._known: dict[tuple[Any, ...], _Pattern | None] = {}
        self.fits = _fits(first, decoding, method)
        """Whether items of this design can be sorted at all."""

    def knows(self, key: tuple[Any, ...]) -> bool:
        return key in self._known

    def learn(self, key: tuple[Any, ...], one: Prepared, found: Repair) -> None:
        """What the first item of a pattern came to, repaired the slow way."""
        self._known[key] = _pattern(one, found, self._decoding)

    def sort(self, fields: Sequence[Field]) -> Sorted:
        """Which pattern each field has, all at once."""
        from solvers.decoding import table_fits

        operator, decoding, epsilon = self._design.operator, self._decoding, self._epsilon
        batch = self._arithmetic(fields)
        count, width = batch.response.shape
        error, whole = np.zeros((count, width)), len(operator.node_ids)
        chosen: list[int | None] = [None] * count
        silent = ~batch.syndrome.any(axis=1)
        for i in np.flatnonzero(silent & batch.usable).tolist():
            chosen[i] = -1  # nothing disagrees: no error explains it, whatever the design is
        rest = np.flatnonzero(~silent & batch.usable)
        if len(rest) and not operator.premise.units and table_fits(whole - len(decoding.erased), decoding.k):
            found = decoding.table.decode(batch.syndrome[rest], epsilon=epsilon, tolerance=batch.tolerance[rest])
            edge = np.abs(found.residual - epsilon) <= batch.tolerance[rest]
            clear = found.explained & (found.minimal.sum(axis=1) == 1) & ~(edge & (batch.tolerance[rest] < epsilon))
            for place, i in enumerate(rest.tolist()):
                if clear[place] and not found.undecided[place] and not found.zero_rule:
                    chosen[i] = int(found.chosen[place])
            error[rest] = found.error
        misfit = np.ascontiguousarray((operator.matrix @ error.T).T - batch.syndrome)
        residual = np.array([math.sqrt(row.dot(row)) for row in misfit])
        edited = np.maximum.reduceat(np.abs(error), operator.node_offsets[:-1], axis=1) > 0.0
        edited[:, list(decoding.erased)] = False
        fine = residual <= (epsilon + batch.tolerance) * (1.0 + 1e-9)
        keys = tuple(None if one is None or not fine[i] else (one, edited[i].tobytes()) for i, one in enumerate(chosen))
        return Sorted(keys, batch, error, residual, edited)

    def said(self, found: Sorted, i: int, answers: Mapping[str, Values]) -> Agreed | None:
        """What a repair of field i would say; None where only the slow way can tell."""
        key = found.keys[i]
        pattern = None if key is None else self._known.get(key)
        if pattern is None:
            return None
        rounding, allowed = float(found.batch.rounding[i]), float(found.batch.tolerance[i])
        spread = recovery_bound(allowed, self._decoding.facts.lower)
        if spread > max(1e-3 * pattern.bound, rounding) or (pattern.bound <= rounding) is not pattern.exact:
            return None
        first = pattern.found
        value: Values | None = None
        if first.repaired[self._node] is not None:
            value = answers.get(self._node)
            place = self._decoding.operator.node_index[self._node]
            if value is None or found.edited[i, place]:
                moved = found.batch.response[i] - found.error[i]
                value = self._decoding.operator.unstack(moved, only=(place,))[self._node]
        return Agreed(
            first.verdict,
            first.assumes,
            {self._node: value},
            first.bounds,
            first.support,
            first.erased,
            first.reason,
            first.gamma,
            float(found.residual[i]),
        )

    def _arithmetic(self, fields: Sequence[Field]) -> _Batch:
        """`make_task` for many fields."""
        operator, blank = self._design.operator, self._blank
        rows, targets, same = [], [], dict[tuple[Any, ...], Array | None]()
        for one in fields:
            rows.append(
                [x for name in operator.node_ids for x in (blank[name] if name in blank else one.answers[name])]
            )
            stated = tuple(one.values.items())
            if stated not in same:
                same[stated] = self._target(one.values)
            targets.append(same[stated])
        height = operator.shape[0]
        response = np.array(rows, dtype=np.float64)
        usable = np.array([target is not None for target in targets])
        target = np.array([np.zeros(height) if one is None else one for one in targets]).reshape(len(fields), height)
        usable &= np.isfinite(target).all(axis=1)
        for part in (response, target):
            usable &= np.abs(part).max(axis=1, initial=0.0) <= LARGEST_ENTRY
        response[~usable], target[~usable] = 0.0, 0.0
        syndrome = (operator.matrix @ response.T).T - target
        sizes = (operator.magnitudes @ np.abs(response).T).T + np.abs(target)
        allowed = relative_rounding(operator)
        tolerance = np.array([allowed * math.sqrt(row.dot(row)) for row in np.ascontiguousarray(sizes)])
        rounding = 1e-9 * np.maximum(1.0, np.abs(response).max(axis=1, initial=0.0))
        return _Batch(response, np.ascontiguousarray(syndrome), tolerance, rounding, usable)

    def _target(self, values: Mapping[str, Numbers]) -> Array | None:
        try:
            return self._design.aimed(values).target
        except InputError:
            return None


def _fits(first: Prepared, decoding: Decoding, method: str) -> bool:
    operator, task = decoding.operator, first.task
    if operator.uncertain or operator.fiber_factors or operator.premise.wrong_checks or task.candidates:
        return False
    if task.work.options or task.work.time_limit is not None or task.radius is None or task.radius.field is not None:
        return False
    return choose(method, task)[0].name == "exact" and not decoding.grounds(task).fixing


def _pattern(one: Prepared, found: Repair, decoding: Decoding) -> _Pattern | None:
    """What others of the pattern share; None where it depends on more than the pattern."""
    if found.certainty not in (Certainty.UNIQUE, Certainty.BOUNDED) or found.decided_by is not None:
        return None
    if found.error_bound is None or found.alternatives or found.wrong_checks:
        return None
    task, lower = one.task, decoding.facts.lower
    if not lower > 0.0 or recovery_bound(task.tolerance, lower) > max(5e-4 * found.error_bound, task.rounding):
        return None  # rounding alone may have widened the bound
    return _Pattern(found, found.error_bound, found.error_bound <= task.rounding)


def decode(task: Task, decoder: Decoder, design: Decoding) -> tuple[Task, DecoderOutcome]:
    """The decoder's outcome at the radius that the truth keeps to, and the task with that
    radius.
    """
    wider = widened(task, decoder, design)
    if wider is not None:
        return wider, decoder.decode(wider)
    note = (
        "relations are uncertain by more than the margin allows, and nothing bounds the true answers; give their nodes"
        " a range, or the problem an amplitude"
    )
    found = decoder.decode(task)
    return task, replace(found, boundless=True, notes=(*found.notes, note))


FEW = 4
"""Fields of a design for which a table of its supports is not worth making."""


def _decode_alike(tasks: list[Task], design: Decoding, method: str, few: int) -> list[tuple[Task, DecoderOutcome, str]]:
    """Task, outcome and the reason for the method, of fields that share a design."""
    from solvers.decoding import table_fits

    first = choose(method, tasks[0])
    alike = isinstance(first[0], Exact) and not any(task.candidates for task in tasks)
    chosen = [first] * len(tasks) if alike else [choose(method, task) for task in tasks]
    premise = design.operator.premise
    if design.operator.uncertain:  # each field has its own radius
        return [(*decode(task, decoder, design), why) for task, (decoder, why) in zip(tasks, chosen, strict=True)]
    if not isinstance(first[0], Exact) or not alike or premise.wrong_checks:
        outcomes = [decoder.decode(task) for task, (decoder, _) in zip(tasks, chosen, strict=True)]
    else:
        free = len(design.operator.node_ids) - len(design.erased)
        radii = {task.epsilon for task in tasks}
        if len(tasks) < few or premise.units or not table_fits(free, design.k) or len(radii) > 1:
            outcomes = [first[0].with_decoder(task, design.decoder, design.parts) for task in tasks]
        else:
            outcomes = _from_table(tasks, design.table, radii.pop())
    return [(task, outcome, why) for task, outcome, (_, why) in zip(tasks, outcomes, chosen, strict=True)]


def _from_table(tasks: list[Task], table: SupportTable, epsilon: float) -> list[DecoderOutcome]:
    """All tasks of one design by matrix products; the few ambiguous ones get their other
    explanations.
    """
    batch = table.decode(
        np.array([task.syndrome for task in tasks]), epsilon=epsilon, tolerance=np.array([t.tolerance for t in tasks])
    )
    others: dict[int, list[int]] = {}
    for i, j in zip(*(side.tolist() for side in np.nonzero(batch.minimal)), strict=True):
        others.setdefault(i, []).append(j)
    outcomes = []
    for i, task in enumerate(tasks):
        residual, slack = float(batch.residual[i]), task.tolerance
        chosen = int(batch.chosen[i])
        edge = abs(residual - epsilon) <= slack < epsilon
        found = [Candidate(batch.supports[chosen], residual, batch.error[i], edge)] if batch.explained[i] else []
        for j in others.get(i, ()):
            if j != chosen:
                other, error = table.solve(j, task.syndrome)
                found.append(Candidate(batch.supports[j], other, error, abs(other - epsilon) <= slack < epsilon))
        outcomes.append(
            DecoderOutcome(
                error=batch.error[i],
                method="exact",
                explanations=tuple(found),
                proved=True,
                edge=bool(found) and edge,
                undecided=batch.undecided[i],
                zero_rule=batch.zero_rule,
                gap=0.0,
                objective=float(len(batch.supports[chosen])) if found else residual,
                best_smaller=float(batch.best_smaller[i]),
                notes=(ZERO_RULE,) if batch.zero_rule else (),
                details={"verified": not batch.zero_rule and not batch.undecided[i]},
            )
        )
    return outcomes


def _operator_key(operator: Operator) -> str:
    """Equal for operators with the same matrix over the same nodes and the same uncertainty,
    whatever their targets are.
    """
    import hashlib

    matrix = operator.matrix.tocsr()
    seen = hashlib.sha256()
    metrics = operator.fiber_factors
    numbers = (operator.radii, *(metrics[name] for name in sorted(metrics)))
    for part in (matrix.data, matrix.indices, matrix.indptr, operator.node_offsets, operator.block_offsets, *numbers):
        seen.update(np.ascontiguousarray(part).tobytes())
    seen.update(repr((sorted(metrics), sorted((name, tuple(on)) for name, on in operator.uncertain.items()))).encode())
    seen.update("\0".join((*operator.node_ids, *operator.block_ids, *operator.block_kinds)).encode())
    premise = operator.premise
    asked = (list(premise.partition(operator.node_ids).values()), premise.wanted(operator.node_ids))
    seen.update(repr((*asked, premise.wrong_checks, sorted(premise.suspects), premise.called)).encode())
    return seen.hexdigest()
