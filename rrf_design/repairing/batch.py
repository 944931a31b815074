"""Thousands of small fields in one call: one margin, one table of supports and one set of null spaces per design.

Fields of one design differ in their responses and anchor values only, so everything that depends on B alone is shared
(also between problems whose operators are equal). Each pattern of erased nodes is a design of its own.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rrf_design.bundles import Backend, Given, bundled, refuse_unused
from rrf_design.errors import InputError
from rrf_design.noise import Noise, Radius, radius_of
from rrf_design.repairing.contract import Candidate, DecoderOutcome, Repair, Task
from rrf_design.repairing.decoding import Decoding
from rrf_design.repairing.exact import ZERO_RULE, Exact
from rrf_design.repairing.fields import make_task
from rrf_design.repairing.finishing import finish
from rrf_design.repairing.methods import choose, refuse_calibration_fields
from rrf_design.repairing.responses_file import ResponseField
from rrf_design.repairing.run import MEANS, decode
from rrf_design.repairing.taxonomy import count_failures
from rrf_design.verdict import Verdict, counted, worst

if TYPE_CHECKING:
    from rrf_design.operators import Operator
    from rrf_design.problem import Problem, Selection
    from solvers.decoding import SupportTable
    from solvers.result import Progress

CHUNK = 500
"""Most fields that travel to another process together."""
CHUNKS = 16
"""So many pieces at least, where there are enough fields: large fields are worth sharing out, too."""


@dataclass(frozen=True, slots=True)
class RepairBatch:
    """Repairs in the order of the fields."""

    items: tuple[Repair, ...]
    designs: int
    """How many different pairs of operator and erased nodes there were."""
    seconds: float

    def counts(self) -> dict[str, int]:
        """How many repairs have each verdict."""
        return counted(item.verdict for item in self.items)

    @property
    def verdict(self) -> Verdict | None:
        """That of the worst field."""
        return worst(item.verdict for item in self.items)

    def failures(self) -> dict[str, int]:
        """How often each failure label occurs, where truths were given."""
        return count_failures([item.failures for item in self.items])

    @property
    def guaranteed(self) -> bool:
        return all(item.guaranteed for item in self.items)


@dataclass(frozen=True)
class _Job:
    """One field with everything that is its own."""

    problem: Problem
    responses: Any
    anchors: Mapping[str, Any] | None
    truth: Mapping[str, Any] | None


@bundled(noise=Noise, given=Given, backend=Backend, rest="backend")
def repair_many(
    problem: Problem | Sequence[Problem],
    fields: Sequence[Any],
    *,
    select: Selection = None,
    method: str = "auto",
    k: int | None = None,
    noise: Noise | None = None,
    given: Given | None = None,
    backend: Backend | None = None,
) -> RepairBatch:
    """`repair` for every field. One problem for all, or one for each; `anchors` and `truth` of `given` are one for each field.

    The time limit of `backend` is per field. The result does not depend on `n_jobs`.
    """
    from rrf_design.problem import Problem

    started = time.perf_counter()
    problems = [problem] * len(fields) if isinstance(problem, Problem) else list(problem)
    beside, means = given or Given(), Backend.of(backend, "repair_many", *MEANS)
    refuse_unused(beside, "repair_many", ("anchors", "truth"))
    for name, several in (("problems", problems), ("anchors", beside.anchors), ("truths", beside.truth)):
        if several is not None and len(several) != len(fields):
            raise InputError(f"repair_many: {len(several)} {name} for {len(fields)} fields")
    jobs = [
        _Job(
            p,
            r,
            None if beside.anchors is None else beside.anchors[i],
            None if beside.truth is None else beside.truth[i],
        )
        for i, (p, r) in enumerate(zip(problems, fields, strict=True))
    ]
    settings = {
        "select": None if select is None else select if isinstance(select, str) else tuple(select),
        "method": method,
        "k": k,
        "noise": noise,
        "backend": replace(means, n_jobs=None, progress=None),
    }
    n_jobs = means.n_jobs
    count = _Count(len(jobs), means.progress)
    # The same chunks whatever n_jobs is, so that products are rounded alike; in one process they share their designs.
    length = min(CHUNK, max(4, -(-len(jobs) // CHUNKS)))
    parts = [jobs[a : a + length] for a in range(0, len(jobs), length)]
    if n_jobs in (None, 0, 1) or len(parts) == 1:
        designs: dict[str, Decoding] = {}
        running = (_run(part, settings, designs, count) for part in parts)
    else:
        from joblib import Parallel, delayed

        running = Parallel(n_jobs=n_jobs, return_as="generator")(delayed(_run)(part, settings, {}) for part in parts)
    done = []
    for part in running:
        done.append(part)
        count.finished(part.items)
    items = tuple(item for part in done for item in part.items)
    keys = {key for part in done for key in part.keys}
    return RepairBatch(items, len(keys), time.perf_counter() - started)


class _Count:
    """How many fields are decoded, and what became of those that are finished; told not more often than people read."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self._total, self._progress, self._told = total, progress, time.monotonic()
        self._decoded, self._done = 0, 0
        self._verdicts: Counter[str] = Counter()

    def finished(self, items: Sequence[Repair]) -> None:
        self._verdicts.update(str(item.verdict) for item in items)
        self._done += len(items)
        self._decoded = self._done
        self._tell(now=True)

    def decoded(self) -> None:
        self._decoded += 1
        self._tell(now=time.monotonic() - self._told > 0.1)

    def _tell(self, *, now: bool) -> None:
        if self._progress is None or not now:
            return
        self._told = time.monotonic()
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self._verdicts.items()))
        words = f"{self._done} of {self._total} fields are finished" + (f": {kinds}" if kinds else "")
        self._progress(self._decoded / max(1, self._total), None, words)


@dataclass(frozen=True, slots=True)
class _Known:
    """What is computed once per problem object."""

    operator: Operator
    radius: Radius
    key: str
    digest: str
    selected: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A field that is ready to be decoded: its task, and what its repair says beside the decoder's outcome."""

    task: Task
    field: ResponseField
    key: str
    """Of the operator; see `operator_key`."""
    digest: str
    selected: tuple[str, ...] = ()
    truth: Mapping[str, Any] | None = None

    @property
    def design(self) -> str:
        """Equal for fields that share margin, factorisations and null spaces."""
        return f"{self.key} k={self.task.k} erased={self.task.erased}"


@dataclass(frozen=True, slots=True)
class RepairedRun:
    """Repairs in the order of the tasks, and the designs they had."""

    items: tuple[Repair, ...]
    keys: frozenset[str]


def _run(
    jobs: Sequence[_Job], settings: Mapping[str, Any], designs: dict[str, Decoding], count: _Count | None = None
) -> RepairedRun:
    """Repair a run of fields; `designs` remembers what depends on the operator alone."""
    known: dict[int, _Known] = {}
    prepared = []
    for position, job in enumerate(jobs):
        if id(job.problem) not in known:
            operator = job.problem.operator(settings["select"])
            chosen = job.problem.resolve(settings["select"])
            _ = operator.magnitudes  # known from here on, also where a field has anchor values of its own
            radius = radius_of(job.problem, operator, settings["noise"])
            known[id(job.problem)] = _Known(operator, radius, operator_key(operator), job.problem.digest, chosen)
        here = known[id(job.problem)]
        try:
            task, field = make_task(
                job.problem,
                here.operator,
                job.responses,
                radius=here.radius,
                k=settings["k"],
                noise=settings["noise"],
                given=Given(anchors=job.anchors),
                backend=settings["backend"],
            )
        except InputError as error:
            raise InputError(f"field {position + 1}: {error}") from None
        prepared.append(Prepared(task, field, here.key, here.digest, here.selected, job.truth))
    return repair_prepared(prepared, designs, method=settings["method"], count=count)


def repair_like(problem: Problem, responses: Any, designs: dict[str, Decoding], *, select: Selection = None) -> Repair:
    """`repair` for one field of many that come one by one: what depends on the operator alone is remembered in `designs`."""
    operator = problem.operator(select)
    task, field = make_task(problem, operator, responses)
    one = Prepared(task, field, operator_key(operator), problem.digest, problem.resolve(select))
    return repair_prepared([one], designs).items[0]


def repair_prepared(
    prepared: Sequence[Prepared], designs: dict[str, Decoding], *, method: str = "auto", count: _Count | None = None
) -> RepairedRun:
    """Repair a run of tasks, those of one design together; `designs` remembers what depends on the operator alone."""
    groups: dict[str, list[int]] = {}
    for position, one in enumerate(prepared):
        if one.design not in designs:
            designs[one.design] = Decoding.of(one.task)
        groups.setdefault(one.design, []).append(position)
    items: list[Repair | None] = [None] * len(prepared)
    for whole, positions in groups.items():
        started = time.perf_counter()
        tasks = [prepared[i].task for i in positions]
        if designs[whole].operator.uncertain:  # each field has its own radius
            outcomes = []
            for place, task in enumerate(tasks):
                decoder, why = choose(method, task)
                tasks[place], outcome = decode(task, decoder, designs[whole])
                outcomes.append((_counted(outcome, count), why))
        else:
            outcomes = _decode(tasks, designs[whole], method, count)
        seconds = (time.perf_counter() - started) / len(positions)
        for i, task, (outcome, why) in zip(positions, tasks, outcomes, strict=True):
            items[i] = finish(
                task,
                prepared[i].field,
                outcome,
                designs[whole],
                selected=prepared[i].selected,
                given=Given(truth=prepared[i].truth),
                seconds=seconds,
                notes=(why,) if why else (),
                digest=prepared[i].digest,
            )
    return RepairedRun(tuple(item for item in items if item is not None), frozenset(groups))


def _decode(tasks: list[Task], design: Decoding, method: str, count: _Count | None) -> list[tuple[DecoderOutcome, str]]:
    from solvers.decoding import SupportTable, table_fits

    decoder, why = choose(method, tasks[0])
    if not isinstance(decoder, Exact):
        for task in tasks:
            refuse_calibration_fields(task)
        return [(_counted(choose(method, task)[0].decode(task), count), why) for task in tasks]
    premise = design.operator.premise
    if premise.wrong_checks:
        return [(_counted(decoder.decode(task), count), why) for task in tasks]
    free = len(design.operator.node_ids) - len(design.erased)
    radii = {task.epsilon for task in tasks}
    if len(tasks) < 4 or premise.units or not table_fits(free, design.k) or len(radii) > 1:
        return [(_counted(decoder.with_decoder(task, design.decoder, design.parts), count), why) for task in tasks]
    table = SupportTable(design.operator.matrix, design.operator.groups, k=design.k, known=design.erased)
    return [(outcome, why) for outcome in _from_table(tasks, table, radii.pop())]


def _counted(outcome: DecoderOutcome, count: _Count | None) -> DecoderOutcome:
    if count is not None:
        count.decoded()
    return outcome


def _from_table(tasks: list[Task], table: SupportTable, epsilon: float) -> list[DecoderOutcome]:
    """All tasks of one design by matrix products; the few ambiguous ones get their other explanations."""
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


def operator_key(operator: Operator) -> str:
    """Equal for operators with the same matrix over the same nodes and the same uncertainty, whatever their targets are."""
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
