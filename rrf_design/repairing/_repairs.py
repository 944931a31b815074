"""Repair of one field and of thousands: validate, decode at the radius that the truth keeps to,
and say what the outcome is worth. The work is `rrf_design.repairing._engine`'s.

Of programs the field of execution signatures is repaired, and then a whole generated program is
chosen (paper, "Code repair"). Coordinates of a signature have very different sizes, so they are
divided by a robust scale of what was observed. The exact decoder repairs the scaled field; because
a repaired signature is no source code, the answer is the generated program whose own signature is
nearest to the coordinatewise median of the repaired field. Nothing is edited.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

import numpy as np

from rrf_design.arguments import is_dataset, noise_of, seconds_of
from rrf_design.errors import InputError
from rrf_design.noise import Noise
from rrf_design.repairing._decoding import Decoding
from rrf_design.repairing._engine import RepairEngine, SharedDesign, choose, decode
from rrf_design.repairing._failures import count_failures
from rrf_design.repairing._fields import collect
from rrf_design.repairing._judgement import finish
from rrf_design.repairing.contract import Array, DecoderOutcome, Repair, Task, Values, WorkSettings
from rrf_design.verdict import Verdict, counted, worst
from rrf_design.workers import in_chunks

if TYPE_CHECKING:
    import os

    from rrf_design.checker.noise import NoiseKind
    from rrf_design.problem import Problem, Selection
    from rrf_design.questions import Dataset
    from rrf_design.tables import Delivery
    from solvers.result import Progress


class _Settings(TypedDict, total=False):
    """The keywords of `repair`, for the type checker: what comes back depends on what is asked."""

    select: Selection
    method: str
    k: int | None
    noise: Noise | None
    epsilon: float | None
    sigma: float | None
    confidence: float | None
    kind: NoiseKind | str | None
    amplitude: float | None
    options: Mapping[str, Any] | None
    penalty: Any
    weights: Mapping[str, float] | None
    max_iterations: int | None
    solver: str | None
    beta: float | None
    mu: float | None
    deviation: str | None
    n_jobs: int | None
    time_limit: float | None
    seed: int
    progress: Progress | None


class _OfOne(_Settings, total=False):
    """Of one problem alone."""

    candidates: Mapping[str, Any] | None
    anchors: Mapping[str, Any] | None
    truth: Mapping[str, Any] | None
    hidden: Mapping[str, bool] | None


class _OfMany(_Settings, total=False):
    """Of a data set alone."""

    reviews: Any
    resume: str | os.PathLike[str] | None


@overload
def repair(problem: Problem, responses: Any, **settings: Unpack[_OfOne]) -> Repair: ...


@overload
def repair(problem: Dataset, responses: Any, **settings: Unpack[_OfMany]) -> Delivery: ...


def repair(
    problem: Problem | Dataset,
    responses: Any,
    *,
    select: Selection = None,
    method: str = "auto",
    k: int | None = None,
    noise: Noise | None = None,
    epsilon: float | None = None,
    sigma: float | None = None,
    confidence: float | None = None,
    kind: NoiseKind | str | None = None,
    amplitude: float | None = None,
    candidates: Mapping[str, Any] | None = None,
    anchors: Mapping[str, Any] | None = None,
    truth: Mapping[str, Any] | None = None,
    hidden: Mapping[str, bool] | None = None,
    reviews: Any = None,
    resume: str | os.PathLike[str] | None = None,
    options: Mapping[str, Any] | None = None,
    penalty: Any = None,
    weights: Mapping[str, float] | None = None,
    max_iterations: int | None = None,
    solver: str | None = None,
    beta: float | None = None,
    mu: float | None = None,
    deviation: str | None = None,
    n_jobs: int | None = None,
    time_limit: float | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Repair | Delivery:
    """Which responses were wrong, and what they should have been; of a data set, in every item.

    Responses are y = z + e, and ‖B e − s‖ ≤ ε for the syndrome s = B y − c: the error with the
    fewest wrong nodes is sought. If at most k nodes are wrong, the repaired field ẑ = y − ê is
    within ‖ẑ − z‖ ≤ 2ε/γ_k of the true one (`error_bound`).

    Parameters
    ----------
    problem : the field, or a data set (`rrf_design.dataset`) of such fields.
    responses : numbers, lists, raw text (for nodes with a parser) or None by node id, or a path; of
        a data set rows `id node [repeat model] value|text|status [cost]`, or their path.
    select : ids of what is bought and may be used, or "all"; None: what is owned already.
    method : "auto", "exact", "convex", "discrete" or "min-sum".
    k : how many answers (units) may be wrong; None: as the problem says.
    noise : what is known of the noise beyond the problem file. ε is that of `noise`, else the
        problem's epsilon, else the radius of its sigma and confidence, else 0 with the stated
        rounding tolerance.
    epsilon, sigma, confidence, kind, amplitude : short for the fields of `noise`.
    candidates : values that a node may have, by node id, for the discrete methods.
    anchors : values of anchors, by id, instead of the problem's.
    truth : true values by node id; used for nothing but the labels in `failures`.
    hidden : by node id, whether what the answer stands for passes hidden tests; for the labels too.
    reviews : of a data set: a filled-in review list.
    resume : of a data set: a file that keeps rows as they come, so that a second call goes on where
        the first stopped.
    options : of the chosen method alone; exact: limit; convex: penalty, weights, max_iterations;
        discrete: solver, beta, mu, deviation, depth, most_candidates.
    penalty, weights, max_iterations : short for these options of the convex method: λ of the
        penalised form (or a `PenaltyCalibration`), the weight of each node, a limit.
    solver, beta, mu, deviation : short for these options of the discrete method.
    n_jobs : processes, as joblib counts them; the result does not depend on it.
    time_limit : seconds for the search; None or infinite: no limit.
    seed : of methods that draw at random.
    progress : called now and then with the share that is done, the bounds so far, and words.

    Returns
    -------
    Repair (of a data set: Delivery)
        `repaired` values (None where nothing vouches for one), the wrong nodes (`support`),
        `verdict` with what it `assumes`, `error_bound`, and other explanations (`alternatives`); a
        `Delivery` has a row for every item.

    >>> import rrf_design as rrf
    >>> problem = rrf.Problem(
    ...     k=1,
    ...     epsilon=0.1,
    ...     nodes=[{"id": "plain"}, {"id": "reworded"}, {"id": "capital"}],
    ...     relations=[{"id": "same", "tail": "plain", "head": "reworded"}],
    ...     anchors=[
    ...         {"id": "calculator", "node": "plain", "value": 42.0, "cost": 1.0},
    ...         {"id": "atlas", "node": "capital", "value": 1.0, "cost": 2.0},
    ...     ],
    ... )
    >>> answers = {"plain": 42, "reworded": 17, "capital": 1}
    >>> fixed = rrf.repair(problem, answers, select=["calculator", "atlas"])
    >>> fixed.verdict.value, fixed.support, fixed.repaired["reworded"]
    ('consistent', ('reworded',), (42.0,))
    """
    noise = noise_of(noise, epsilon=epsilon, sigma=sigma, confidence=confidence, kind=kind, amplitude=amplitude)
    short = {"penalty": penalty, "weights": weights, "max_iterations": max_iterations, "solver": solver}
    short |= {"beta": beta, "mu": mu, "deviation": deviation}
    options = {**(options or {}), **{name: value for name, value in short.items() if value is not None}}
    if is_dataset(problem):
        from rrf_design.tables import repair_dataset

        _refuse("repair of a data set", candidates=candidates, anchors=anchors, truth=truth, hidden=hidden)
        return repair_dataset(
            problem, responses, select=select, method=method, k=k, noise=noise, reviews=reviews, resume=resume,
            options=options, n_jobs=n_jobs, time_limit=time_limit, seed=seed, progress=progress,
        )  # fmt: skip
    _refuse("repair of one problem", reviews=reviews, resume=resume)
    work = WorkSettings(n_jobs, seconds_of(time_limit), seed, progress, options)
    if problem.nonlinear:
        from rrf_design.repairing._local import repair_locally

        other = {"select": select, "method": None if method == "auto" else method, "candidates": candidates}
        other |= {"truth": truth, "anchors": anchors, **options}
        return repair_locally(problem, responses, k=k, noise=noise, seed=seed, other=other)
    one = SharedDesign(problem, problem.design(select), noise=noise).prepared(
        responses, digest=problem.digest, truth=truth, hidden=hidden, k=k, candidates=candidates, anchors=anchors,
        work=work,
    )  # fmt: skip
    decoder, why = choose(method, one.task)
    started = time.perf_counter()
    design = Decoding.of(one.task)
    task, outcome = decode(one.task, decoder, design)
    if progress is not None:
        design.watch(_so_far(task, outcome))
    return finish(one, task, outcome, design, seconds=time.perf_counter() - started, why=why)


def _refuse(verb: str, **unused: Any) -> None:
    for name, value in unused.items():
        if value is not None:
            raise InputError(f"{verb}: it has no use for {name}; leave it out")


def _so_far(task: Task, outcome: DecoderOutcome) -> Progress:
    """Progress of the margin, which comes last: the answer is there, what it is worth is not."""
    edited = [name for name, i in task.operator.node_index.items() if outcome.error[task.operator.groups[i]].any()]
    found = ", ".join(name for name in edited if task.operator.node_index[name] not in task.erased) or "no answer"

    def told(share: float | None, bounds: tuple[float, float] | None, _: str) -> None:
        assert task.work.progress is not None
        lower, upper = bounds or (0.0, float("inf"))
        words = f"found wrong: {found}; without its margin yet, γ is between {lower:.4g} and {upper:.4g}"
        task.work.progress(share, bounds, words)

    return told


CHUNK = 500
"""Most fields that travel to another process together."""
CHUNKS = 16
"""So many pieces at least, where there are enough fields: large fields are worth sharing out,
too.
"""


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


def repair_many(
    problem: Problem | Sequence[Problem],
    fields: Sequence[Any],
    *,
    select: Selection = None,
    method: str = "auto",
    k: int | None = None,
    noise: Noise | None = None,
    anchors: Sequence[Mapping[str, Any]] | None = None,
    truth: Sequence[Mapping[str, Any]] | None = None,
    options: Mapping[str, Any] | None = None,
    n_jobs: int | None = None,
    time_limit: float | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> RepairBatch:
    """`repair` for every field; the result does not depend on `n_jobs`.

    Parameters
    ----------
    problem : one problem for all fields, or one for each.
    fields : the responses of each field, as `repair` takes them.
    anchors, truth : one mapping for each field.
    time_limit : seconds for each field.
    select, method, k, noise, options, n_jobs, seed, progress : as in `repair`.

    Returns
    -------
    RepairBatch
        A repair for each field, in their order.

    >>> import rrf_design as rrf
    >>> from rrf_design.repairing import repair_many
    >>> problem = rrf.Problem(
    ...     k=1,
    ...     nodes=[{"id": "a"}, {"id": "b"}, {"id": "c"}],
    ...     relations=[{"id": x + y, "tail": x, "head": y} for x, y in ("ab", "bc", "ca")],
    ...     anchors=[{"id": "known", "node": "a", "value": 1.0}],
    ... )
    >>> batch = repair_many(problem, [{"a": 1, "b": 1, "c": 7}, {"a": 1, "b": 1, "c": 1}])
    >>> [item.support for item in batch.items]
    [('c',), ()]
    """
    from rrf_design.problem import Problem

    started = time.perf_counter()
    problems = [problem] * len(fields) if isinstance(problem, Problem) else list(problem)
    for name, several in (("problems", problems), ("anchors", anchors), ("truths", truth)):
        if several is not None and len(several) != len(fields):
            raise InputError(f"repair_many: {len(several)} {name} for {len(fields)} fields")
    none = [None] * len(fields)
    jobs = list(zip(range(1, len(fields) + 1), problems, fields, anchors or none, truth or none, strict=True))
    chosen = None if select is None else select if isinstance(select, str) else tuple(select)
    settings = (chosen, method, k, noise, WorkSettings(None, seconds_of(time_limit), seed, None, options or {}))
    # The same chunks whatever n_jobs is, so that products are rounded alike.
    length = min(CHUNK, max(4, -(-len(jobs) // CHUNKS)))
    parts = [jobs[a : a + length] for a in range(0, len(jobs), length)]
    running = in_chunks(_Fields, settings, parts, n_jobs=1 if len(parts) == 1 else n_jobs or None)
    items: list[Repair] = []
    keys: set[str] = set()
    verdicts: Counter[str] = Counter()
    for repairs, of_these in running:
        items += repairs
        keys |= of_these
        verdicts.update(str(item.verdict) for item in repairs)
        if progress is not None:
            kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(verdicts.items()))
            progress(len(items) / len(jobs), None, f"{len(items)} of {len(jobs)} fields are finished: {kinds}")
    return RepairBatch(tuple(items), len(keys), time.perf_counter() - started)


class _Fields:
    """Repairs batches of fields, each with its problem; designs are remembered from batch to
    batch.
    """

    def __init__(self, select: Selection, method: str, k: int | None, noise: Noise | None, work: WorkSettings) -> None:
        self._select, self._noise = select, noise
        self._task: dict[str, Any] = {"k": k, "work": work}
        self._engine = RepairEngine(method=method)

    def __call__(
        self, jobs: Sequence[tuple[int, Problem, Any, Mapping[str, Any] | None, Mapping[str, Any] | None]]
    ) -> tuple[tuple[Repair, ...], set[str]]:
        """Repairs of some fields, and the keys of the designs they had."""
        shared: dict[int, SharedDesign] = {}  # of each problem object
        prepared = []
        for number, problem, responses, anchors, truth in jobs:
            if id(problem) not in shared:
                shared[id(problem)] = SharedDesign(problem, problem.design(self._select), noise=self._noise)
            told = {"anchors": anchors, "truth": truth, "digest": problem.digest, **self._task}
            try:
                prepared.append(shared[id(problem)].prepared(responses, **told))
            except InputError as error:
                raise InputError(f"field {number}: {error}") from None
        return self._engine.repair(prepared), {one.design for one in prepared}


@dataclass(frozen=True, slots=True)
class ProgramChoice:
    """The chosen program by the node that wrote it."""

    node: str
    equivalent: tuple[str, ...]
    """Nodes whose programs have the same public signature: indistinguishable here, whatever their
    source is.
    """
    distance: float
    """From its scaled signature to the target, 0 when a program behaves exactly as the repaired
    field says.
    """
    target: Values
    """Median of the repaired signatures, in the original units."""
    scale: Values
    repair: Repair
    modified_tokens: int | None = None
    """Of the first program's source, so many differ in the chosen one's; None without sources. It
    is measured afterwards and chooses nothing.
    """


def select_program(
    problem: Problem,
    signatures: Mapping[str, Any],
    *,
    select: Selection = None,
    k: int | None = None,
    sources: Mapping[str, str] | None = None,
    **options: Any,
) -> ProgramChoice:
    """Choose among programs by public signatures: the program nearest to the median of the repaired
    signatures, each coordinate divided by its median magnitude.

    Parameters
    ----------
    problem : a node for each program, relations between their signatures.
    signatures : the outputs of each program on public tests, by node id; None or a status where a
        program is invalid, never zeros.
    select, k, options : as in `repair`, which is called with the method "exact".
    sources : the programs' texts by node id; then it is told how many tokens of the first one
        changed.

    Returns
    -------
    ProgramChoice
        The chosen node, those that behave alike, and the repair.

    >>> import rrf_design as rrf
    >>> from rrf_design.repairing import select_program
    >>> problem = rrf.Problem(
    ...     nodes=[{"id": name, "dim": 2} for name in "abc"],
    ...     relations=[{"id": x + y, "tail": x, "head": y} for x, y in ("ab", "bc", "ca")],
    ... )
    >>> choice = select_program(problem, {"a": [1, 2], "b": [1, 2], "c": [9, 2]})
    >>> choice.node, choice.equivalent
    ('a', ('b',))
    """
    operator = problem.operator(select)
    field = collect(problem, signatures, nodes=operator.node_ids)
    dims = {problem.node_by_id[name].dim for name in operator.node_ids}
    if len(dims) != 1:
        raise InputError("signatures must have one length, but the nodes of this design differ in dimension")
    if not field.values:
        raise InputError("no program ran; there is nothing to choose from")
    scale = robust_scale(np.array(list(field.values.values())))
    scaled = _scale_problem(problem, scale)
    values: dict[str, Any] = {name: tuple(np.array(value) / scale) for name, value in field.values.items()}
    values.update({name: {"status": status} for name, status in field.invalid.items()})
    fixed = repair(scaled, values, select=select, k=k, method="exact", **options)
    known = np.array([value for value in fixed.nearest.values() if value is not None])
    target = np.median(known, axis=0)
    distances = {name: float(np.linalg.norm(np.array(values[name]) - target)) for name in field.values}
    node = min(distances, key=lambda name: (distances[name], operator.node_index[name]))
    same = tuple(name for name in field.values if name != node and field.values[name] == field.values[node])
    first = operator.node_ids[0]
    changed = None if sources is None else _modified_tokens(sources[first], sources[node])
    return ProgramChoice(node, same, distances[node], _tuple(target * scale), _tuple(scale), fixed, changed)


def _modified_tokens(before: str, after: str) -> int:
    """How many tokens of a program another replaces, leaves out or adds, comments and layout aside.

    >>> from rrf_design.repairing._repairs import modified_tokens
    >>> modified_tokens("def f(x): return x + 1", "def f(x): return x - 1  # less")
    1
    """
    from difflib import SequenceMatcher

    changes = SequenceMatcher(None, _tokens(before), _tokens(after), autojunk=False).get_opcodes()
    return sum(max(i2 - i1, j2 - j1) for what, i1, i2, j1, j2 in changes if what != "equal")


def _tokens(source: str) -> list[str]:
    """Of Python where it is, else words and signs."""
    import io
    import re
    import tokenize

    empty = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER}
    try:
        found = list(tokenize.generate_tokens(io.StringIO(source).readline))
    except (tokenize.TokenError, SyntaxError):
        return re.findall(r"\w+|[^\w\s]", source)
    layout = {tokenize.INDENT, tokenize.DEDENT}
    return [tokenize.tok_name[t.type] if t.type in layout else t.string for t in found if t.type not in empty]


def robust_scale(signatures: Array) -> Array:
    """Median magnitude of each coordinate; 1 where that is 0.

    Signatures are (programs, coordinates).
    """
    size = np.median(np.abs(signatures), axis=0)
    return np.where(size > 0.0, size, 1.0)


def _scale_problem(problem: Problem, scale: Array) -> Problem:
    """The same problem for z/scale: transports S⁻¹TS, offsets S⁻¹o, anchor rows A S (identity
    anchors keep unit rows).
    """
    relations = []
    for relation in problem.relations:
        entry = relation.model_dump(by_alias=True, exclude_defaults=True)
        if relation.pair is None:  # sums and differences of z/scale with offsets S⁻¹o; declared rows C S
            if relation.rows is not None:
                entry["rows"] = {name: (np.array(part) * scale).tolist() for name, part in relation.rows.items()}
            else:
                entry["offset"] = (np.broadcast_to(np.asarray(relation.offset), scale.shape) / scale).tolist()
            relations.append(entry)
            continue
        tail, head = (problem.node_by_id[name] for name in relation.pair)
        matrix = relation.transport.as_matrix(tail_dim=tail.dim, head_dim=head.dim)
        moved = matrix * scale / scale[:, None]
        offset = np.broadcast_to(np.asarray(relation.offset, dtype=np.float64), (head.dim,)) / scale
        entry.update(transport={"matrix": moved.tolist()}, offset=offset.tolist())
        relations.append(entry)
    anchors = []
    for anchor in problem.anchors:
        entry = anchor.model_dump(by_alias=True, exclude_defaults=True)
        repeated = np.tile(scale, len(anchor.nodes))
        if anchor.rows is None:
            if anchor.value is not None:
                entry["value"] = (np.atleast_1d(np.asarray(anchor.value, dtype=np.float64)) / repeated).tolist()
        else:
            entry["rows"] = (np.array(anchor.rows) * repeated).tolist()
        anchors.append(entry)
    document = problem.model_dump(by_alias=True, exclude_defaults=True)
    document.update(relations=relations, anchors=anchors)
    from rrf_design.problem import Problem as Build

    return Build(**document)


def _tuple(vector: Array) -> Values:
    return tuple(float(x) for x in vector)
