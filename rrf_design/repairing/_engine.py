"""The engine of all repairs: what fields of one design share, and batches of them decoded together.

Fields of one design differ in their responses and right-hand sides only, so everything that depends
on B alone (margin, table of supports, null spaces) is shared, also between problems whose operators
are equal. Each pattern of erased nodes is a design of its own. `repair`, `repair_many`, tables,
live runs and policies repair through here; what a batch gives depends on the batch alone.

The decoder is chosen by name, or for "auto" by what the field allows; what a method has no use for
is refused.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from rrf_design.blocks import Anchor
from rrf_design.errors import InputError
from rrf_design.noise import Noise, Radius, radius_of
from rrf_design.repairing._decoding import Decoding, widened
from rrf_design.repairing._exact import ZERO_RULE, Exact
from rrf_design.repairing._fields import make_task
from rrf_design.repairing._judgement import finish
from rrf_design.repairing.contract import Array, Candidate, Decoder, DecoderOutcome, Prepared, Repair, Task
from rrf_design.rows import alone

if TYPE_CHECKING:
    from rrf_design.design import Design
    from rrf_design.operators import Operator
    from rrf_design.problem import Problem, Selection
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

    What a batch gives depends on the batch alone, not on those before it.
    """

    def __init__(self, *, method: str = "auto") -> None:
        self._method = method
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

    def repair(self, prepared: Sequence[Prepared]) -> tuple[Repair, ...]:
        """Repairs in the order of the fields; those of one design are decoded together."""
        groups: dict[str, list[int]] = {}
        for position, one in enumerate(prepared):
            if one.design not in self._decodings:
                self._decodings[one.design] = Decoding.of(one.task)
            groups.setdefault(one.design, []).append(position)
        items: dict[int, Repair] = {}
        for whole, positions in groups.items():
            started, design = time.perf_counter(), self._decodings[whole]
            outcomes = _decode_alike([prepared[i].task for i in positions], design, self._method)
            seconds = (time.perf_counter() - started) / len(positions)
            for i, (task, outcome, why) in zip(positions, outcomes, strict=True):
                items[i] = finish(prepared[i], task, outcome, design, seconds=seconds, why=why)
        return tuple(items[i] for i in range(len(prepared)))

    @staticmethod
    def prepared(problem: Problem, responses: Any, *, select: Selection = None) -> Prepared:
        """A field with a problem of its own, ready to be repaired."""
        return SharedDesign(problem, problem.design(select)).prepared(responses, digest=problem.digest)


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


def _decode_alike(tasks: list[Task], design: Decoding, method: str) -> list[tuple[Task, DecoderOutcome, str]]:
    """Task, outcome and the reason for the method, of fields that share a design."""
    from solvers.decoding import SupportTable, table_fits

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
        if len(tasks) < 4 or premise.units or not table_fits(free, design.k) or len(radii) > 1:
            outcomes = [first[0].with_decoder(task, design.decoder, design.parts) for task in tasks]
        else:
            table = SupportTable(design.operator.matrix, design.operator.groups, k=design.k, known=design.erased)
            outcomes = _from_table(tasks, table, radii.pop())
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
