"""Noise that nobody declares: estimated from a log of repeats, with how far so few repeats may have missed it.

`estimated_from` names a log instead of a number: rows `id node repeat value`, where `node` is a node whose answers the block compares, or
the block itself. What the block's rows say in one repeat is one draw of their noise and of a truth that stays the same for one id. So the
covariance is that of the draws around the mean of their id, Σ̂ = Σ (v − v̄)(v − v̄)ᵀ/ν with ν draws more than ids, and counts as estimated
from ν + 1 repeats: `rrf_design.rows` raises it accordingly. Of a node, the draws are its own answers, and σ² the largest variance of any
direction of them. The file's own digest, plans and certificates hold the numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rrf_design.errors import InputError

if TYPE_CHECKING:
    from rrf_design.blocks import Anchor, Relation
    from rrf_design.field import Node
    from rrf_design.problem import Problem

Array = NDArray[np.float64]
Draws = Mapping[tuple[str, int], Mapping[str, tuple[float, ...]]]
"""By id and repeat: what each name said."""
SECTIONS = ("nodes", "relations", "anchors", "noise")


def names_a_log(document: Any) -> bool:
    """Whether some block or noise of a problem file's content is to be estimated from a log."""
    return isinstance(document, dict) and any(True for _ in _entries(document))


def _entries(document: dict[str, Any]) -> list[dict[str, Any]]:
    listed = [document.get(section) for section in SECTIONS]
    entries = [entry for section in listed if isinstance(section, list) for entry in section]
    return [e for e in entries if isinstance(e, dict) and isinstance(e.get("estimated_from"), str)]


def with_estimates(document: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The content of a problem file with covariances and numbers of repeats where it names logs, which lie beside it."""
    from rrf_design.files import from_document

    bare = {**document}
    for section in SECTIONS:
        if isinstance(document.get(section), list):
            strip = _without_scatter if section == "nodes" else _without_log
            bare[section] = [strip(entry) for entry in document[section]]
    bare.pop("noise", None)
    problem = from_document(bare)  # shapes only: what the blocks' rows are
    changes: dict[str, dict[str, Any]] = {}
    logs: dict[str, Draws] = {}
    for entry in _entries(document):
        given = [key for key in ("sigma", "covariance", "metric", "correlation") if key in entry]
        where = f"{entry.get('id')!r}: estimated_from {entry['estimated_from']!r}"
        names = [str(entry.get("id"))] if "blocks" not in entry else [str(name) for name in entry["blocks"]]
        if given:
            raise InputError(f"{where}: the log says what the noise is; leave {given[0]} out")
        for name in names:
            if name not in problem.block_by_id and not ("blocks" not in entry and name in problem.node_by_id):
                raise InputError(f"{where}: unknown block {name!r}")
            if name in changes:
                raise InputError(f"{where}: the noise of {name!r} is estimated twice")
        path = folder / entry["estimated_from"]
        draws = logs.setdefault(str(path), read_log(problem, path))
        try:
            changes |= _changes(problem, entry, names, draws)
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
    filled = {**document}
    for section in SECTIONS:
        if isinstance(document.get(section), list):
            filled[section] = [
                _without_log(e) | changes.get(str(e.get("id")), {}) if isinstance(e, dict) else e
                for e in document[section]
            ]
    return filled


def _without_log(entry: Any) -> Any:
    if isinstance(entry, dict) and isinstance(entry.get("estimated_from"), str):
        return {key: value for key, value in entry.items() if key != "estimated_from"}
    return entry


def _without_scatter(entry: Any) -> Any:
    """A node without what speaks of a σ that is not known yet."""
    bare = _without_log(entry)
    return bare if bare is entry else {key: value for key, value in bare.items() if key not in ("again", "repeats")}


def _changes(problem: Problem, entry: dict[str, Any], names: Sequence[str], draws: Draws) -> dict[str, dict[str, Any]]:
    """What is put into each block or node, and into the entry where it speaks of several."""
    if names[0] in problem.node_by_id:
        return {names[0]: _scatter(problem.node_by_id[names[0]], draws)}
    blocks = [problem.block_by_id[name] for name in names]
    parts = {name: rows_said(problem, block, draws) for name, block in zip(names, blocks, strict=True)}
    common = [place for place in draws if all(place in part for part in parts.values())]
    covariance, repeats = estimate({place: np.concatenate([parts[n][place] for n in names]) for place in common})
    result: dict[str, dict[str, Any]] = {}
    start = 0
    for name in names:
        height = len(parts[name][common[0]])
        own = covariance[start : start + height, start : start + height]
        noise = {"sigma": sqrt(float(own[0, 0]))} if height == 1 else {"covariance": own.tolist()}
        result[name] = {**noise, "estimated_from": repeats}
        start += height
    if "blocks" in entry:
        result[str(entry.get("id"))] = {"covariance": covariance.tolist(), "estimated_from": repeats}
    return result


def _scatter(node: Node, draws: Draws) -> dict[str, Any]:
    """σ of a node's answers: the root of the largest variance of any direction of its coordinates."""
    said = {place: np.array(part[node.id]) for place, part in draws.items() if node.id in part}
    for (item, _), value in said.items():
        if len(value) != node.dim:
            raise InputError(f"item {item!r}: {node.id!r} has {len(value)} numbers, not {node.dim}")
    covariance, repeats = estimate(said)
    return {"sigma": sqrt(float(np.linalg.eigvalsh(covariance)[-1])), "estimated_from": repeats}


def read_log(problem: Problem, path: Path) -> Draws:
    """The readable answers of a log by id and repeat; texts are read by the parser of their node."""
    from rrf_design.questions.answers import logged_answers
    from rrf_design.responses import parsers

    result: dict[tuple[str, int], dict[str, tuple[float, ...]]] = {}
    known = {*problem.node_by_id, *problem.block_by_id}
    for item, name, repeat, answer in logged_answers(path):
        if name not in known:
            raise InputError(f"{path}: item {item!r}: {name!r} is neither a node nor a block of the problem")
        value = answer.value
        if value is None and answer.text is not None and name in problem.node_by_id:
            spec = problem.node_by_id[name].parser
            if spec is None:
                raise InputError(f"{path}: item {item!r}: the answer of {name!r} is text, but the node names no parser")
            value = parsers.get(spec).parse(answer.text).value
        if value is not None:
            result.setdefault((item, repeat), {})[name] = tuple(value)
    return result


def rows_said(problem: Problem, block: Relation | Anchor, draws: Draws) -> dict[tuple[str, int], Array]:
    """What the rows of a block said in each repeat that has all of it: its own values, or its rows times the answers of its nodes."""
    from rrf_design.rows import block_rows

    try:
        parts = block_rows(problem, block)
    except ValueError as error:
        raise InputError(f"{block.title}: {error}") from None
    height = len(next(iter(parts.values())))
    result = {}
    for place, said in draws.items():
        if block.id in said:
            value = np.array(said[block.id])
        elif all(name in said for name in block.nodes):
            for name in block.nodes:
                if len(said[name]) != problem.node_by_id[name].dim:
                    raise InputError(
                        f"item {place[0]!r}: {name!r} has {len(said[name])} numbers, not {problem.node_by_id[name].dim}"
                    )
            value = sum((parts[name] @ np.array(said[name]) for name in parts), np.zeros(height))
        else:
            continue
        if len(value) != height:
            raise InputError(f"item {place[0]!r}: {block.id!r} has {len(value)} numbers, not {height}")
        result[place] = value
    return result


def estimate(draws: Mapping[tuple[str, int], Array]) -> tuple[Array, int]:
    """Σ̂ around the mean of each id, and the number of repeats of one id that would say as much (ν + 1)."""
    groups: dict[str, list[Array]] = {}
    for (item, _), value in draws.items():
        groups.setdefault(item, []).append(value)
    degrees = sum(len(group) - 1 for group in groups.values())
    if degrees < 1:
        raise InputError(
            "the log holds no id with two repeats of it that could be read; noise can't be estimated from it"
        )
    order = len(next(iter(draws.values())))
    total = np.zeros((order, order))
    for group in groups.values():
        away = np.array(group) - np.mean(group, axis=0)
        total += away.T @ away
    covariance = total / degrees
    if not np.all(np.diag(covariance) > 0.0):
        raise InputError("its repeats never differ, which says nothing about noise; declare it, or leave it out")
    return np.asarray((covariance + covariance.T) / 2), degrees + 1
