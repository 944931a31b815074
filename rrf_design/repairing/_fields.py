"""From a problem and its responses to a task: operator, syndrome, erased nodes, ε and what rounding
may hide.

Responses are JSON, JSON lines or CSV keyed by node id. A response is a number, a list of numbers, a
text for the node's parser, or a status that says why there is none. A response without a value is
never a zero vector: its node is erased, and the status says why.
"""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rrf_design import documents
from rrf_design._margin import check_k
from rrf_design.blocks import Anchor
from rrf_design.checks import known_value
from rrf_design.errors import InputError
from rrf_design.noise import Noise, Radius, radius_of
from rrf_design.repairing.contract import Array, Task, Values, WorkSettings
from rrf_design.responses.parsed import RECORDED, Parsed, recorded_response, unread_status
from rrf_design.rows import LARGEST_ENTRY
from rrf_design.transforms import VETOED, rules_of, stated, vetoed

if TYPE_CHECKING:
    from rrf_design.operators import Operator
    from rrf_design.problem import Problem

ROUNDING = 1e-12
"""Of the sizes that are added up in B y − c: the rounding of sums of thousands of terms, less than
any deliberate ε.
"""


def make_task(
    problem: Problem,
    operator: Operator,
    responses: Any,
    *,
    k: int | None = None,
    noise: Noise | None = None,
    radius: Radius | None = None,
    candidates: Mapping[str, Any] | None = None,
    anchors: Mapping[str, Any] | None = None,
    computed: bool = True,
    work: WorkSettings = WorkSettings(),
) -> tuple[Task, ResponseField]:
    """The task, and the responses it was made from; values of `anchors` replace the problem's for
    this field.

    `radius` is that of problem, operator and noise, for callers that make many tasks of them.
    `computed`: expressions are evaluated over the problem's own variables; not where the problem is
    an example of many, and the operator aims at this field's values.
    """
    field = collect(problem, responses, nodes=operator.node_ids)
    values = {**(_computed_values(problem, operator) if computed else {}), **(anchors or {})}
    if values:
        operator = _with_anchor_values(problem, operator, values)
    if not field.values:
        why = ", ".join(f"{name}: {reason}" for name, reason in list(field.invalid.items())[:6])
        raise InputError(f"no node has a valid response ({why}); there is nothing to repair")
    filled = {
        name: field.values.get(name, (0.0,) * problem.node_by_id[name].dim)  # placeholders: their columns drop out
        for name in operator.node_ids
    }
    response = operator.stack(filled)
    if np.isnan(operator.target).any():
        operator.syndrome(filled)  # names the anchor whose value is missing
    if max(float(np.abs(part).max(initial=0.0)) for part in (response, operator.target)) > LARGEST_ENTRY:
        raise InputError(
            f"responses or anchor values are beyond {LARGEST_ENTRY:g}, where squares overflow; use other units"
        )
    syndrome: Array = operator.matrix @ response - operator.target
    named = _candidates(problem, operator, candidates or {})
    sizes = operator.magnitudes @ np.abs(response) + np.abs(operator.target)
    radius = radius_of(problem, operator, noise) if radius is None else radius
    task = Task(
        problem=problem,
        operator=operator,
        response=response,
        syndrome=syndrome,
        erased=tuple(operator.node_index[name] for name in operator.node_ids if name in field.invalid),
        k=check_k(k, problem.k),
        epsilon=radius.epsilon,
        radius=radius,
        tolerance=relative_rounding(operator) * float(np.linalg.norm(sizes)),
        values=field.values,
        candidates={**field.samples, **named},
        named=named,
        work=work,
    )
    return task, field


def relative_rounding(operator: Operator) -> float:
    """A bound on the relative rounding of the sums in B y − c, so that no true explanation is lost
    to it.
    """
    return max(ROUNDING, (operator.longest_row + 2) * 2.0**-52)


def _computed_values(problem: Problem, operator: Operator) -> dict[str, tuple[float, ...]]:
    """Values of the design's anchors that nobody has to be asked for: what an expression gives,
    exactly, goes before all.
    """
    result = {}
    for name in operator.anchor_ids:
        block = problem.block_by_id[name]
        if isinstance(block, Anchor) and block.source is not None:
            found = known_value(problem, block)
            if found is not None:
                result[name] = tuple(float(number) for number in found)
    return result


def _with_anchor_values(problem: Problem, operator: Operator, anchors: Mapping[str, Any]) -> Operator:
    """The operator with other values for some anchors: the same B, so that factorisations stay
    valid.
    """
    target: Array = operator.target.copy()
    for name, value in anchors.items():
        j = operator.block_index.get(name)
        if j is None or operator.block_kinds[j] != "anchor":
            raise InputError(f"anchors: {name!r} is not an anchor of this design")
        rows = slice(int(operator.block_offsets[j]), int(operator.block_offsets[j + 1]))
        target[rows] = _scaled_value(problem, operator, name, value)
    return operator.aiming(target)


def _scaled_value(problem: Problem, operator: Operator, name: str, value: Any) -> Array:
    """An anchor's value weighted and whitened as its rows are."""
    from rrf_design.rows import block_rows, block_target

    numbers = np.atleast_1d(np.asarray(value, dtype=np.float64))
    if not np.isfinite(numbers).all():
        raise InputError(f"anchors: the value of {name!r} is not finite")
    given = tuple(float(x) for x in numbers)
    block = problem.block_by_id[name].model_copy(update={"value": given[0] if len(given) == 1 else given})
    height = next(iter(block_rows(problem, block).values())).shape[0]
    try:
        bare = block_target(block, height)
    except ValueError as error:
        raise InputError(f"anchors: {name!r}: {error}") from None
    return operator.side(problem, block, bare)


def _candidates(problem: Problem, operator: Operator, candidates: Mapping[str, Any]) -> dict[str, tuple[Values, ...]]:
    for name in candidates:
        if name not in operator.node_index:
            raise InputError(f"candidates: no node {name!r} in this design")
    return {name: _parse_samples(problem, name, list(entries)) for name, entries in candidates.items()}


_KEYS = ("node", "value", "text", "status", "samples")
_json = partial(documents.value_in, instead="; give a status instead")


@dataclass(frozen=True, slots=True)
class ResponseField:
    """The responses of one field: values where there are some, statuses where there are none,
    samples beside them.
    """

    values: Mapping[str, Values]
    invalid: Mapping[str, str]
    samples: Mapping[str, tuple[Values, ...]] = field(default_factory=dict)
    name: str = ""


def collect(problem: Problem, responses: Any, *, nodes: Sequence[str], name: str = "") -> ResponseField:
    """Responses by node id (or a path) for these nodes; InputError for an unknown node or a value
    that doesn't fit.
    """
    if isinstance(responses, ResponseField):
        return responses
    if isinstance(responses, str | os.PathLike):
        fields = read_responses(problem, responses, nodes=nodes)
        if len(fields) != 1:
            raise InputError(f"{responses}: holds {len(fields)} fields; repair them with repair_many")
        return fields[0]
    if not isinstance(responses, Mapping):
        raise InputError(f"responses must map node ids to values, not {type(responses).__name__}")
    wanted = set(nodes)
    values: dict[str, Values] = {}
    invalid: dict[str, str] = {}
    samples: dict[str, tuple[Values, ...]] = {}
    for key, entry in responses.items():
        if key not in wanted:
            from rrf_design.files import suggestion

            known = problem.node_by_id
            hint = "; it is not in this design: select it to ask it" if key in known else suggestion(str(key), wanted)
            raise InputError(f"responses: no node {key!r} to give a response to{hint}")
        if isinstance(entry, Mapping):
            entry = dict(entry)
            samples[key] = _parse_samples(problem, key, entry.pop("samples", ()))
            entry.pop("node", None)
            entry = _entry(key, entry)
        value = _value(problem, key, entry)
        if isinstance(value, str):
            invalid[key] = value
        else:
            values[key] = value
    for key in nodes:
        if key not in responses:
            invalid[key] = "missing"
    rules = rules_of(problem)
    said = {key: _as_read(problem, key, responses[key], values[key]) for key in values} if rules else {}
    for key in vetoed(rules, {key: one for key, one in said.items() if one is not None}):
        invalid[key] = VETOED
        del values[key]
    return ResponseField(values, invalid, {key: part for key, part in samples.items() if part}, name)


def read_responses(
    problem: Problem, path: str | os.PathLike[str], *, nodes: Sequence[str] | None = None
) -> tuple[ResponseField, ...]:
    """The fields in a .json, .jsonl or .csv file; one, unless its entries name a `field`.

    Parameters
    ----------
    problem : the problem whose nodes were asked; its parsers read raw text.
    path : the file; one response is a number, a list of numbers, a text, or a status that says why
        there is none.
    nodes : the nodes that should have answered, all by default; those without a response are
        "missing".

    Returns
    -------
    tuple of ResponseField
        `repair` and `repair_many` take each where they take responses.

    >>> import pathlib, tempfile
    >>> import rrf_design as rrf
    >>> from rrf_design.repairing import read_responses
    >>> problem = rrf.Problem(nodes=[{"id": "a"}, {"id": "b"}])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "answers.json")
    ...     _ = path.write_text('{"a": 1, "b": {"status": "timeout"}}')
    ...     (field,) = read_responses(problem, path)
    >>> field.values, field.invalid
    ({'a': (1.0,)}, {'b': 'timeout'})
    """
    from rrf_design.files import read_source

    path = Path(path)
    names = tuple(node.id for node in problem.nodes) if nodes is None else tuple(nodes)
    text = read_source(path)
    try:
        fields = _fields(text, path.suffix.lower())
        return tuple(collect(problem, content, nodes=names, name=name) for name, content in fields.items())
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _fields(text: str, suffix: str) -> dict[str, dict[str, Any]]:
    if suffix == ".csv":
        return _group(_csv_entries(text))
    if suffix == ".jsonl":
        return _group([_json(line, f"line {number}") for number, line in documents.text_lines(text)])
    if suffix != ".json":
        raise InputError(f"responses end in .json, .jsonl or .csv, not {suffix or 'nothing'!r}")
    if not text.strip():
        raise InputError("holds no responses")
    document = _json(text)
    if isinstance(document, list):
        return _group(document)
    if not isinstance(document, dict):
        raise InputError("the top level must be a table of responses by node id, or a list of entries")
    if not document:
        raise InputError("holds no responses")
    return _group([document]) if isinstance(document.get("responses"), dict) else {"": document}


def _group(entries: Sequence[Any]) -> dict[str, dict[str, Any]]:
    """Entries {node, value|text|status} of one or more fields, or tables by node id, one per field.

    Tables that name no `field` and no node twice are one field in several pieces.
    """
    for number, entry in enumerate(entries, start=1):
        if not isinstance(entry, dict):
            raise InputError(f"entry {number}: must be a table")
    entries = [one for entry in entries if (one := _recorded(entry)) is not None]
    tables = [_table(entry) for entry in entries]
    named = [node for table in tables for node in table]
    whole = len(set(named)) == len(named)
    fields: dict[str, dict[str, Any]] = {}
    for number, (entry, table) in enumerate(zip(entries, tables, strict=True), start=1):
        name = str(entry.get("field", "" if whole or "node" in entry else number))
        content = fields.setdefault(name, {})
        for node, response in table.items():
            if node in content:
                raise InputError(
                    f"entry {number}: a second response for node {node!r}; put more samples into `samples`"
                )
            content[node] = response
    if not fields:
        raise InputError("holds no responses")
    return fields


def _recorded(entry: dict[str, Any]) -> dict[str, Any] | None:
    """An answer as a run keeps it becomes a response; None for what a check was told."""
    if entry.get("format") != RECORDED:
        return entry
    said = recorded_response(entry)
    return None if said is None else {"field": entry.get("item", ""), "node": entry["node"], **said}


def _table(entry: dict[str, Any]) -> dict[str, Any]:
    """Responses by node id in one entry."""
    if isinstance(entry.get("responses"), dict):
        return dict(entry["responses"])
    rest = {key: value for key, value in entry.items() if key != "field"}
    return {str(rest["node"]): rest} if "node" in rest else rest


def _csv_entries(text: str) -> list[dict[str, Any]]:
    """Long: columns node and value (or value_0, value_1, …, or text), perhaps status.

    Wide: one column per node.

    Either may have a column `field`; a wide row is one field.
    """
    header, rows = documents.csv_rows(text)
    if "node" not in header:
        return [_wide(row, number) for number, (_, row) in enumerate(rows, start=1)]
    parts = [name for name in header if name.startswith("value_")]
    unknown = [name for name in header if name not in (*_KEYS, "field", *parts)]
    if unknown:
        from rrf_design.files import suggestion

        raise InputError(f"unknown column {unknown[0]!r}{suggestion(str(unknown[0]), [*_KEYS, 'field'])}")
    entries = []
    for line, row in rows:
        entry: dict[str, Any] = {key: row[key] for key in ("node", "field", "text", "status") if row.get(key)}
        cells = [row[name] for name in parts if row.get(name)] if parts else [row["value"]] if row.get("value") else []
        if cells:
            where = f"line {line}: node {row['node']!r}"
            found = [_number(cell, where) for cell in cells]
            entry["value"] = found if len(found) > 1 else found[0]
        entries.append(entry)
    return entries


def _wide(row: dict[str, Any], number: int) -> dict[str, Any]:
    responses: dict[str, Any] = {}
    for node, cell in row.items():
        if node == "field":
            continue
        try:
            responses[node] = float(cell) if cell else None
        except (TypeError, ValueError):
            responses[node] = cell  # raw text, for the node's parser
    return {"field": row.get("field") or str(number), "responses": responses}


def _number(cell: str, where: str) -> float:
    try:
        return float(cell)
    except ValueError:
        raise InputError(f"{where}: {cell!r:.60} is not a number; put raw answers into a column called text") from None


def _entry(node: str, entry: dict[str, Any]) -> Any:
    """The one response inside {value|text|status}."""
    from rrf_design.files import suggestion

    for key in entry:
        if key not in _KEYS:
            raise InputError(f"response of node {node!r}: unknown key {key!r}{suggestion(key, _KEYS)}")
    try:
        status = unread_status(entry.get("status"))
    except InputError as error:
        raise InputError(f"response of node {node!r}: {error}") from None
    if status is not None:
        return _Status(status)
    given = [key for key in ("value", "text") if entry.get(key) is not None]
    if len(given) == 2:
        given = ["value"]  # a record that keeps the raw answer beside the parsed one
    return entry[given[0]] if given else _Status("missing")


class _Status(str):
    """A status, so that it is not taken for raw text."""


def _value(problem: Problem, node: str, entry: Any) -> Values | str:
    """The vector of a response, or the reason why there is none."""
    if isinstance(entry, _Status):
        return str(entry)
    if entry is None:
        return "missing"
    if not _is_number(entry) and hasattr(entry, "status") and hasattr(entry, "value"):  # a Parsed
        return tuple(entry.value) if entry.value is not None else str(getattr(entry.status, "value", entry.status))
    if isinstance(entry, str):
        spec = problem.node_by_id[node].parser
        if spec is None:
            raise InputError(
                f"response of node {node!r} is text, but the node names no parser; give numbers or a parser"
            )
        from rrf_design.models import opens_as_refusal
        from rrf_design.responses import parsers

        value = _value(problem, node, parsers.get(spec).parse(entry))
        return "refusal" if isinstance(value, str) and opens_as_refusal(entry) else value
    dim = problem.node_by_id[node].dim
    items = [entry] if _is_number(entry) else list(entry) if hasattr(entry, "__iter__") else None
    if items is None or not all(_is_number(item) for item in items):
        raise InputError(f"response of node {node!r} must be a number or a list of numbers, not {entry!r}")
    if len(items) != dim:
        raise InputError(f"response of node {node!r} has {len(items)} numbers, but the node has dimension {dim}")
    values = tuple(float(item) for item in items)
    if not all(math.isfinite(value) for value in values):
        raise InputError(f"response of node {node!r} is not finite; where there is no answer, give a status instead")
    return values


def _as_read(problem: Problem, node: str, entry: Any, value: Values) -> Parsed | None:
    """A response as its parser gives it; None for a vector that stands for a class."""
    from rrf_design.responses import parsers

    text = entry.get("text") if isinstance(entry, Mapping) else entry
    spec = problem.node_by_id[node].parser
    if isinstance(entry, Parsed):
        return entry
    if isinstance(text, str) and spec is not None:
        read = parsers.get(spec).parse(text)
        return read if read.value == value else stated(value)
    classes = len(value) > 1 or (spec is not None and parsers.get(spec).dim == 0)
    return None if classes else stated(value)


def _parse_samples(problem: Problem, node: str, entries: Any) -> tuple[Values, ...]:
    if not isinstance(entries, list | tuple):
        raise InputError(f"samples of node {node!r} must be a list")
    found = [_value(problem, node, entry) for entry in entries]
    return tuple(value for value in found if not isinstance(value, str))


def _is_number(entry: Any) -> bool:
    return type(entry) in (int, float) or (isinstance(entry, numbers.Real) and not isinstance(entry, bool))
