"""Operator uncertainty: where the radii η_j of the row blocks come from.

Declared in the problem; or estimated from repeated queries, by a bootstrap or by matrix Bernstein
concentration; or from a parser's error rate. `robust_floor` then finds the largest t with
σ_min(B_S) ≥ t + η_S for every support.

Calibration data is a file of repeated estimates of blocks, or of how often their parser was wrong.
It (JSON, JSON lines or CSV) holds, by block id, `samples` of what the block's matrix was estimated
to be (the transport of a relation, the rows of an anchor), with a `deviation` that no single one
exceeds or without; or `errors` in `trials` of the parser behind the block, and the `effect` of one
misreading. All in the units of the problem file; weights, whitening and metrics are applied here. A
radius is the distance from the declared matrix to the mean of the samples, plus the statistical
radius around that mean. Each block gets its share of the failure probability, so that all radii
hold together.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rrf_design import documents
from rrf_design.checker.exact import ProofOutcome
from rrf_design.checker.proofs import prove_floor, support_radii
from rrf_design.checker.record import OperatorRecord
from rrf_design.errors import InputError, Refused

if TYPE_CHECKING:
    from rrf_design.blocks import Anchor, Relation
    from rrf_design.problem import Problem


@dataclass(frozen=True, slots=True)
class Uncertainty:
    """Radii by block id in the norm of the assembled operator, with where they come from.

    `confidence` is None for radii that hold for certain, otherwise the probability that all of them
    hold together.
    """

    radii: Mapping[str, float] = field(default_factory=dict)
    source: str = "declared in the problem"
    confidence: float | None = None

    def __post_init__(self) -> None:
        for name, value in self.radii.items():
            if not 0.0 <= value < float("inf"):
                raise InputError(f"uncertainty: the radius of {name!r} must be a number of at least 0, not {value!r}")
        if self.confidence is not None and not 0.0 < self.confidence < 1.0:
            raise InputError(f"uncertainty: confidence must lie between 0 and 1, not {self.confidence!r}")


def bootstrap_radius(samples: Any, *, confidence: float = 0.95, draws: int = 2000, seed: int = 0) -> float:
    """Radius around the mean of repeated estimates of one block, by the bootstrap: the quantile of
    how far the mean of the resampled repeats is from the mean of all, in the operator norm. It
    holds for many repeats (asymptotically).

    Parameters
    ----------
    samples
        (repeats, rows, columns), at least five repeats.
    confidence
        The probability that the truth is within the radius.
    draws
        How often the repeats are resampled.
    seed
        Of the resampling.

    Returns
    -------
    The radius.

    >>> from rrf_design.certificates import bootstrap_radius
    >>> bootstrap_radius([[[1.0]], [[1.1]], [[0.9]], [[1.0]], [[1.0]]]) < 0.1
    True
    """
    stack = _repeats(samples, least=5)
    generator = np.random.default_rng(seed)
    mean = stack.mean(axis=0)
    picks = generator.integers(0, len(stack), size=(draws, len(stack)))
    flat = stack.reshape(len(stack), -1)
    means = np.array([flat[pick].mean(axis=0) for pick in picks]).reshape(draws, *mean.shape)
    gaps = np.linalg.norm(means - mean, 2, axis=(1, 2))
    return float(np.quantile(gaps, confidence, method="higher"))


def concentration_radius(samples: Any, *, deviation: float, confidence: float = 0.95) -> float:
    """Radius around the mean of repeated estimates of one block, by matrix Bernstein, which holds
    for every number of repeats.

    Parameters
    ----------
    samples
        (repeats, rows, columns).
    deviation
        No repeat is further from its mean than this, in the operator norm.
    confidence
        The probability that the truth is within the radius.

    Returns
    -------
    The radius, rounded up.

    >>> from rrf_design.certificates import concentration_radius
    >>> few, many = [[[1.0]]] * 10, [[[1.0]]] * 1000
    >>> concentration_radius(many, deviation=0.1) < concentration_radius(few, deviation=0.1)
    True
    """
    stack = _repeats(samples, least=1)
    if not 0.0 <= deviation < float("inf"):
        raise InputError(f"uncertainty: deviation must be a number of at least 0, not {deviation!r}")
    count, rows, columns = stack.shape
    t = float(np.log((rows + columns) / (1.0 - confidence)))
    first = deviation * t / 3.0
    return float((first + np.sqrt(first * first + 2.0 * count * deviation**2 * t)) / count * (1 + 1e-12))


def parser_radius(errors: int, trials: int, *, effect: float, confidence: float = 0.95) -> float:
    """Radius from a parser's error rate: misreading happens with a probability of at most p
    (Clopper and Pearson, one-sided), and then moves the block by at most `effect`.

    Parameters
    ----------
    errors, trials
        How many of how many answers were misread.
    effect
        What a misread answer changes at most, in the operator norm.
    confidence
        The probability that the error rate is no larger.

    Returns
    -------
    The radius p·effect, rounded up.

    >>> from rrf_design.certificates import parser_radius
    >>> round(parser_radius(1, 100, effect=0.5), 4)
    0.0233
    """
    if not (isinstance(errors, int) and isinstance(trials, int) and 0 <= errors <= trials and trials > 0):
        raise InputError(f"uncertainty: {errors!r} errors in {trials!r} trials is no error rate")
    from scipy.stats import beta

    p = 1.0 if errors == trials else float(beta.ppf(confidence, errors + 1, trials - errors))
    return p * effect * (1 + 1e-12)


def robust_floor(
    record: OperatorRecord,
    size: int,
    *,
    start: float,
    time_limit: float | None = None,
    progress: Callable[[float], None] | None = None,
) -> float | None:
    """The largest provable t with σ_min(B_S) ≥ t + η_S for all supports; None when it can't be
    settled in time.

    Thresholds only: a refuted t names a support, whose own value is the next t. `start` is any
    upper bound.
    """
    value = start
    for _ in range(64):
        if value <= 0.0:
            return 0.0
        try:
            proof = prove_floor(record, size, floor=value, with_radii=True, time_limit=time_limit, progress=progress)
        except Refused:  # too dense to enumerate
            return None
        if proof.outcome is ProofOutcome.PROVED:
            return value
        if not proof.support:
            return None
        radii = np.sqrt(sum(r * r for r in support_radii(record, proof.support)))
        part = record.dense_part(proof.support)
        sigma = float(np.linalg.svd(part, compute_uv=False)[-1]) if part.shape[0] >= part.shape[1] else 0.0
        value = min(value * (1 - 1e-9), (sigma - float(radii)) * (1 - 1e-10) - 1e-15)
    return None


def _repeats(samples: Any, *, least: int) -> NDArray[np.float64]:
    stack = np.asarray(samples, dtype=np.float64)
    if stack.ndim != 3 or len(stack) < least or not np.isfinite(stack).all():
        raise InputError(
            f"uncertainty: expected at least {least} repeats as (repeats, rows, columns), got {stack.shape}"
        )
    return stack


KEYS = ("block", "sample", "samples", "deviation", "errors", "trials", "effect")


def read_calibration(
    problem: Problem, path: str | os.PathLike[str], *, confidence: float = 0.95, seed: int = 0
) -> Uncertainty:
    """The radii a calibration file gives; InputError names the file, and what is wrong where.

    Parameters
    ----------
    problem
        Whose blocks the file speaks of.
    path
        A .json, .jsonl or .csv file of what `calibrate` takes.
    confidence
        The probability that all radii hold together.
    seed
        Of the bootstrap.

    Returns
    -------
    The `Uncertainty` for `certify`.

    >>> import rrf_design as rrf
    >>> from rrf_design.certificates import read_calibration
    >>> problem = rrf.Problem(nodes=[{"id": "a"}], anchors=[{"id": "x", "node": "a"}])
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "calibration.json")
    >>> _ = path.write_text('{"x": {"errors": 0, "trials": 100, "effect": 0.5}}')
    >>> round(read_calibration(problem, path).radii["x"], 4)
    0.0148
    """
    from rrf_design.files import read_source

    path = Path(path)
    text = read_source(path)
    try:
        return calibrate(problem, _by_block(_entries(text, path.suffix.lower())), confidence=confidence, seed=seed)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def calibrate(
    problem: Problem, data: Mapping[str, Mapping[str, Any]], *, confidence: float = 0.95, seed: int = 0
) -> Uncertainty:
    """Radii of row blocks from repeated queries and parser error rates, in the norm of the
    assembled operator.

    Parameters
    ----------
    problem
        Whose blocks are calibrated.
    data
        Block id to `samples` (repeats of what is calibrated: a transport, or rows) with an optional
        `deviation`, and to `errors`, `trials` and `effect` of its parser.
    confidence
        The probability that all radii hold together.
    seed
        Of the bootstrap.

    Returns
    -------
    The `Uncertainty` for `certify`: radii, and where they come from.

    >>> import rrf_design as rrf
    >>> from rrf_design.certificates import calibrate
    >>> problem = rrf.Problem(nodes=[{"id": "a"}], anchors=[{"id": "x", "node": "a"}])
    >>> calibrate(problem, {"x": {"errors": 1, "trials": 100, "effect": 0.5}}).confidence
    0.95
    """
    if not 0.0 < confidence < 1.0:
        raise InputError(f"confidence must lie between 0 and 1, not {confidence!r}")
    if not data:
        raise InputError("holds no calibration data")
    from rrf_design.files import suggestion

    for name, entry in data.items():
        if name not in problem.block_by_id:
            raise InputError(f"there is no block {name!r}{suggestion(name, problem.block_by_id)}")
        for key in entry:
            if key not in KEYS[2:]:
                raise InputError(f"block {name!r}: unknown key {key!r}{suggestion(key, KEYS)}")
        if "samples" not in entry and "errors" not in entry:
            raise InputError(f"block {name!r}: give samples, or errors, trials and effect")
    claims = sum(("samples" in entry) + ("errors" in entry) for entry in data.values())
    share = 1.0 - (1.0 - confidence) / claims
    radii: dict[str, float] = {}
    sources: set[str] = set()
    for name, entry in data.items():
        radii[name] = 0.0
        try:
            if "samples" in entry:
                radii[name] += _from_samples(problem, name, entry, share, seed, sources)
            elif "deviation" in entry:
                raise InputError("deviation belongs to samples; there are none")
            if "errors" in entry:
                radii[name] += _from_errors(problem, name, entry, share, sources)
            elif "trials" in entry or "effect" in entry:
                raise InputError("trials and effect belong to errors; there are none")
        except InputError as error:
            raise InputError(f"block {name!r}: {error}") from None
    words = ", ".join(sorted(sources))
    if any(block.uncertainty > 0 and block.id not in radii for block in problem.blocks):
        words += "; the others as declared in the problem"
    return Uncertainty(radii, f"calibration of {len(radii)} blocks: {words}", confidence)


def _from_samples(
    problem: Problem, name: str, entry: Mapping[str, Any], confidence: float, seed: int, sources: set[str]
) -> float:
    block = problem.block_by_id[name]
    declared, left, right = _declared(problem, block)
    stack = left @ _stack(entry["samples"], declared.shape) @ right
    bias = float(np.linalg.norm(stack.mean(axis=0) - left @ declared @ right, 2))
    if "deviation" in entry:
        sources.add("repeated queries, matrix Bernstein")
        deviation = _number(entry["deviation"], "deviation") * _norm(left) * _norm(right)
        return bias + concentration_radius(stack, deviation=deviation, confidence=confidence)
    sources.add("repeated queries, bootstrap (asymptotic)")
    return bias + bootstrap_radius(stack, confidence=confidence, seed=seed)


def _from_errors(problem: Problem, name: str, entry: Mapping[str, Any], confidence: float, sources: set[str]) -> float:
    for key in ("trials", "effect"):
        if key not in entry:
            raise InputError(f"errors need {key}")
    counts = [_number(entry[key], key) for key in ("errors", "trials")]
    if any(value != int(value) for value in counts):
        raise InputError("errors and trials must be whole numbers")
    _, left, right = _declared(problem, problem.block_by_id[name])
    effect = _number(entry["effect"], "effect") * _norm(left) * _norm(right)
    sources.add("parser error rates, Clopper and Pearson")
    return parser_radius(int(counts[0]), int(counts[1]), effect=effect, confidence=confidence)


def _declared(
    problem: Problem, block: Relation | Anchor
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """What is calibrated (the transport of a relation of two nodes, else the rows), and what stands
    left and right of it in B.
    """
    from rrf_design.blocks import Relation
    from rrf_design.rows import alone, applied, block_rows

    parts = block_rows(problem, block)
    pair = block.pair if isinstance(block, Relation) else None
    nodes = block.nodes if pair is None else pair[:1]
    declared = np.hstack([parts[name] for name in nodes])
    if pair is not None:
        declared = -declared  # the rows say z_head − T z_tail
    left = applied(alone(problem, block, len(declared)), np.eye(len(declared)))
    right = np.eye(declared.shape[1])
    place = 0
    for name in nodes:
        dim, factor = problem.node_by_id[name].dim, problem.whole.fiber_factors.get(name)
        if factor is not None:
            right[place : place + dim, place : place + dim] = np.linalg.inv(factor).T
        place += dim
    return declared, left, right


def _stack(samples: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Samples as (repeats, rows, columns); one sample is a matrix, a list of its entries row by
    row, or a number.
    """
    if not isinstance(samples, list):
        raise InputError("samples must be a list")
    result = []
    for number, sample in enumerate(samples, start=1):
        try:
            entries = np.asarray(sample, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(f"sample {number}: must be a matrix of numbers") from None
        flat = entries.ndim <= 1 and entries.size == math.prod(shape)
        if (entries.shape != shape and not flat) or not np.isfinite(entries).all():
            raise InputError(
                f"sample {number}: expected {shape[0]}×{shape[1]} finite numbers, got shape {entries.shape}"
            )
        result.append(entries.reshape(shape))
    return np.array(result).reshape(-1, *shape)


def _norm(matrix: NDArray[np.float64]) -> float:
    return float(np.linalg.norm(matrix, 2)) * (1 + 1e-12)


def _number(value: Any, key: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise InputError(f"{key} must be a number of at least 0, not {value!r}")
    return float(value)


def _by_block(entries: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Entries of one block together: its samples are collected, anything else may stand once."""
    found: dict[str, dict[str, Any]] = {}
    for number, entry in enumerate(entries, start=1):
        name = entry.get("block")
        if not isinstance(name, str):
            raise InputError(f"entry {number}: names no block")
        mine = found.setdefault(name, {})
        for key, value in entry.items():
            if key == "sample":
                mine.setdefault("samples", []).append(value)
            elif key == "samples" and isinstance(value, list):
                mine.setdefault("samples", []).extend(value)
            elif key != "block" and mine.setdefault(key, value) != value:
                raise InputError(f"block {name!r}: two values of {key}: {mine[key]!r} and {value!r}")
    return found


def _entries(text: str, suffix: str) -> list[dict[str, Any]]:
    if suffix == ".csv":
        return _csv_entries(text)
    if suffix == ".jsonl":
        found = [documents.value_in(line, f"line {number}") for number, line in documents.text_lines(text)]
    elif suffix == ".json":
        document = documents.value_in(text)
        if isinstance(document, dict):
            wrong = [name for name, entry in document.items() if not isinstance(entry, dict)]
            if wrong:
                raise InputError(f"block {wrong[0]!r}: must be a table")
            return [{**entry, "block": name} for name, entry in document.items()]
        found = document if isinstance(document, list) else [document]
    else:
        raise InputError(f"calibration data end in .json, .jsonl or .csv, not {suffix or 'nothing'!r}")
    for number, entry in enumerate(found, start=1):
        if not isinstance(entry, dict):
            raise InputError(f"entry {number}: must be a table")
    return list(found)


def _csv_entries(text: str) -> list[dict[str, Any]]:
    """One row per repeat (block, sample: entries row by row, apart by spaces) or per parser (block,
    errors, trials, effect).
    """
    from rrf_design.files import suggestion

    header, rows = documents.csv_rows(text)
    for name in header:
        if name not in KEYS or name == "samples":
            raise InputError(f"unknown column {name!r}{suggestion(str(name), KEYS)}")
    entries = []
    for line, row in rows:
        entry: dict[str, Any] = {}
        for key, cell in row.items():
            if not cell:
                continue
            if key not in KEYS:
                raise InputError(f"line {line}: too many cells")
            try:
                numbers = [] if key == "block" else [float(part) for part in cell.split()]
            except ValueError:
                raise InputError(f"line {line}: {key} {cell!r} is not a number") from None
            entry[key] = (
                cell if key == "block" else numbers if key == "sample" else numbers[0] if len(numbers) == 1 else cell
            )
        entries.append(entry)
    return entries
