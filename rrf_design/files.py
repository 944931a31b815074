"""Problem files: TOML for people, JSON for programs, one schema, a round trip without loss.

Every fault is one line: the file, the entry by its id, what is wrong, and the nearest known key
where one was mistyped. Files are written to a temporary neighbour and renamed, so that nothing is
ever half-written.

Noise may be estimated from a log of repeats that a file names in `estimated_from` instead of a
number. The log has rows `id node repeat value`, where `node` is a node whose answers the block
compares, or the block itself. What the block's rows say in one repeat is one draw of their noise
and of a truth that stays the same for one id. So the covariance is that of the draws around the
mean of their id, Σ̂ = Σ (v − v̄)(v − v̄)ᵀ/ν with ν draws more than ids, and counts as estimated
from ν + 1 repeats: `rrf_design.rows` raises it accordingly. Of a node, the draws are its own
answers, and σ² the largest variance of any direction of them. The file's own digest, plans and
certificates hold the numbers.
"""

from __future__ import annotations

import difflib
import gc
import hashlib
import json
import os
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ValidationError

from rrf_design.blocks import Anchor, Nonlinear, Relation, Rule, SharedNoise, Tier, Transport
from rrf_design.documents import reason, write_text
from rrf_design.errors import InputError
from rrf_design.field import Node, dumped, simplified, written
from rrf_design.problem import Problem

OF_RECIPES = ("data", "answer", "ask", "equation", "veto", "check")
"""Sections that only a recipe has: it speaks of the rows of a table."""
SECTIONS: Mapping[str, type[BaseModel]] = {
    "nodes": Node,
    "relations": Relation,
    "anchors": Anchor,
    "nonlinear": Nonlinear,
    "rules": Rule,
    "tiers": Tier,
    "noise": SharedNoise,
}
_BARE = re.compile("[A-Za-z0-9_-]+")
SETTINGS = tuple(name for name in Problem.model_fields if name not in (*SECTIONS, "models"))


def load(path: str | os.PathLike[str]) -> Problem:
    """Read a problem file.

    Parameters
    ----------
    path
        A .toml or .json file.

    Returns
    -------
    The `Problem`. InputError names the file, the entry and the key that does not fit, and the
    nearest known one.

    >>> import pathlib, tempfile
    >>> import rrf_design as rrf
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "problem.json"
    >>> _ = path.write_text('{"nodes": [{"id": "a"}], "anchors": [{"id": "x", "node": "a"}]}')
    >>> rrf.load(path).margin().value
    1.0
    """
    path = Path(path)
    text = read_source(path)
    collecting = gc.isenabled()
    gc.disable()  # a million entries are no garbage, and looking through them takes as long as reading
    try:
        document = parse_text(text, path.suffix.lower())
        if _names_a_table(document):
            from rrf_design._columns import with_tables

            document = with_tables(document, path.parent, bare=_names_a_log(document))
        if _names_a_log(document):
            document = _with_estimates(document, path.parent)
        return from_document(document)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    finally:
        if collecting:
            gc.enable()


def load_unless_recipe(path: Path) -> Problem | None:
    """The problem of a file; None where the file is a recipe."""
    return None if is_recipe(parse_text(read_source(path), path.suffix.lower())) else load(path)


def read_source(path: Path) -> str:
    """The text of a file that a person wrote; InputError when it is not there or not UTF-8."""
    try:
        return path.read_bytes().decode("utf-8-sig")  # some editors begin a file with a mark
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text (at byte {error.start})") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: can't be read ({reason(error)})".replace("\0", "\\0")) from None


def loads(text: str, kind: str = "toml") -> Problem:
    """Read a problem from the text of its file.

    Parameters
    ----------
    text
        What the file would hold.
    kind
        "toml" or "json".

    Returns
    -------
    The `Problem`; InputError as `load` has it.

    >>> import rrf_design as rrf
    >>> rrf.loads('{"nodes": [{"id": "a"}]}', "json").k
    1
    """
    return from_document(parse_text(text, f".{kind}"))


def save(problem: Problem, path: str | os.PathLike[str]) -> None:
    """Write a problem file, whole or not at all; `load` gives an equal problem back.

    Parameters
    ----------
    problem
        What is written.
    path
        Where; the ending (.toml or .json) chooses the form.

    >>> import pathlib, tempfile
    >>> import rrf_design as rrf
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "problem.json"
    >>> rrf.save(rrf.Problem(nodes=[{"id": "a"}]), path)
    >>> rrf.load(path) == rrf.Problem(nodes=[{"id": "a"}])
    True
    """
    write_text(path, dumps(problem, _kind(Path(path).suffix.lower())))


def dumps(problem: Problem, kind: str = "toml") -> str:
    """The text of a problem file.

    Parameters
    ----------
    problem
        What is written.
    kind
        "toml" or "json".

    Returns
    -------
    The text; `loads` gives an equal problem back.

    >>> import rrf_design as rrf
    >>> print(rrf.dumps(rrf.Problem(k=2, nodes=[{"id": "a"}])).strip())
    [problem]
    k = 2
    <BLANKLINE>
    [[nodes]]
    id = "a"
    """
    document = to_document(problem) | ({"models": simplified(problem.models)} if problem.models else {})
    if _kind(f".{kind}") == "json":
        return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    parts = [f"[problem]\n{toml_entry(document['problem'])}"]
    parts += [f"[models]\n{toml_entry(document['models'])}"] if problem.models else []
    parts += [f"[[{key}]]\n{toml_entry(entry)}" for key in SECTIONS for entry in document.get(key, ())]
    return "\n".join(parts)


def is_recipe(document: Any) -> bool:
    """Whether the content of a file is a recipe by itself, rather than a plain problem."""
    return isinstance(document, dict) and any(key in document for key in OF_RECIPES)


def from_document(document: Any) -> Problem:
    """Problem from the parsed content of a file."""
    if not isinstance(document, dict):
        raise InputError("the top level must be a table with [problem] and [[nodes]]")
    settings = document.get("problem", {})
    if not isinstance(settings, dict):
        raise InputError("problem: must be a table")
    for key in document:
        if key in OF_RECIPES:
            raise InputError(
                f"[{key}] makes this a recipe, which speaks of the rows of a table; give the table with --data"
            )
        if key not in ("problem", "models", *SECTIONS):
            raise InputError(f"unknown section {key!r}{known_keys(key, ['problem', 'models', *SECTIONS])}")
    for key in settings:
        if key not in SETTINGS:
            raise InputError(f"[problem]: unknown key {key!r}{known_keys(key, SETTINGS)}")
    if "nodes" not in document:
        raise InputError("nodes: the field is empty; declare at least one node")
    for key in SECTIONS:
        if key in document and not isinstance(document[key], list):
            beside = f', or in a file {key} = {{ table = "FILE" }}' if key in ("nodes", "relations", "anchors") else ""
            raise InputError(f"{key}: must be a list of tables; write [[{key}]]{beside}")
    return Problem(**settings, **{key: document[key] for key in (*SECTIONS, "models") if key in document})


def to_document(problem: Problem) -> dict[str, Any]:
    """What `from_document` reads back to an equal problem: plain lists, tables, strings and
    numbers. Who is asked in a live run is no part of it: a design, its plans and its certificates
    stay the same whoever answers.
    """
    settings = dumped(problem, exclude={*SECTIONS, "models"})
    settings.setdefault("k", problem.k)
    found = {key: [written(entry) for entry in entries] for key in SECTIONS if (entries := getattr(problem, key))}
    return {"problem": settings, **found}


def digest(problem: Problem) -> str:
    """The name by which plans, certificates and runs refer to the problem they belong to.

    Parameters
    ----------
    problem
        Two equal problems have the same digest, whatever their files look like.

    Returns
    -------
    The SHA-256 of its canonical JSON, in hexadecimal.

    >>> import rrf_design as rrf
    >>> len(rrf.digest(rrf.Problem(nodes=[{"id": "a"}])))
    64
    """
    return problem.digest


def canonical_digest(document: Any) -> str:
    """SHA-256 of a document's canonical JSON."""
    return hashlib.sha256(canonical_json(document).encode()).hexdigest()


def canonical_json(document: Any) -> str:
    """The one way to write a document that its digest is made from."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def suggestion(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""


def known_keys(word: str, known: Iterable[str]) -> str:
    """For an unknown key: the nearest known one, or else all of them."""
    names = list(known)
    return suggestion(word, names) or f"; known: {', '.join(names)}"


def one_line(
    error: ValidationError,
    data: Mapping[str, Any],
    *,
    lists: Mapping[str, type[BaseModel]] = SECTIONS,
    tables: Mapping[str, type[BaseModel]] | None = None,
    top: type[BaseModel] = Problem,
) -> str:
    """The first fault of a failed validation as one line that names the entry by its id.

    `lists` are the sections that are lists of entries, `tables` those that are one; `top` has all
    of them for fields.
    """
    first = _most_telling(error.errors())
    location = _location(first)
    where, model, keys = "[problem]" if top is Problem else "the top level", top, location
    section = str(location[0]) if location else ""
    if section == "models":
        where, keys = "[models]", location[1:]
    elif section in (tables or {}):
        where, model, keys = f"[{section}]", (tables or {})[section], location[1:]
        keys = keys[1:] if keys and isinstance(keys[0], int) else keys
    elif section in lists:
        where, model, keys = section, lists[section], location[2:]
        if len(location) > 1 and isinstance(location[1], int):
            where = _entry_name(section, location[1], data)
        if "transport" in keys[:1]:
            model = Transport
    path = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys).removeprefix(".")
    if first["type"] == "extra_forbidden":
        key = str(keys[-1])
        names = [field.alias or name for name, field in model.model_fields.items()]
        return f"{where}: unknown key {key!r}{known_keys(key, names)}"
    if first["type"] == "missing":
        return f"{where}: {path or 'an entry'} is missing"
    if first["type"] == "value_error":
        return f"{where}: {path + ': ' if path else ''}{first['ctx']['error']}"
    message = _WORDS.get(first["type"]) or first["msg"].replace("Input should be", "must be")
    return f"{where}: {path + ' ' if path else ''}{message}, not {_short(first['input'])}"


_WORDS = {
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "string_type": "must be text",
    "string_unicode": "must be valid Unicode text",
    "string_too_short": "must be non-empty text",
    "too_short": "must be a non-empty list",
    "tuple_type": "must be a list",
    "dict_type": "must be a table",
    "model_type": "must be a table",
}


def _most_telling(errors: list[Any]) -> Any:
    """Of the first faulty key's errors (a union reports one per arm): the one that got furthest
    into the value.
    """
    place = _location(errors[0])[:3]
    same = [error for error in errors if _location(error)[:3] == place]
    return max(same, key=lambda error: (not error["type"].endswith("_type"), len(_location(error))))


def _location(error: Any) -> list[Any]:
    """Where in the data, without pydantic's names for the arms of a union."""
    arms = {"float", "int", "str", "constrained-float", "constrained-str", "constrained-int", "lax-or-strict"}
    return [part for part in error["loc"] if not (isinstance(part, str) and ("[" in part or part in arms))]


def _entry_name(section: str, index: int, data: Mapping[str, Any]) -> str:
    entries = data.get(section)
    entry = entries[index] if isinstance(entries, list | tuple) else None
    name = entry.get("id") if isinstance(entry, dict) else getattr(entry, "id", None)
    kind = section.removesuffix("s")
    return f"{kind} {name!r}" if isinstance(name, str) and name else f"{kind} number {index + 1}"


def toml_entry(entry: dict[str, Any]) -> str:
    """One entry as key = value lines; tables inside it stay on their line, so that [[...]] is never
    broken up.
    """
    return "".join(f"{_toml_key(key)} = {_toml_value(value)}\n" for key, value in entry.items())


def _toml_key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _toml_value(key)


def _toml_value(value: Any) -> str:
    if isinstance(value, dict):
        inside = ", ".join(f"{_toml_key(key)} = {_toml_value(item)}" for key, item in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml_value, value))}]"
    # JSON's strings, numbers and booleans are TOML's too; only DEL must be escaped there and need
    # not be here
    return json.dumps(value, ensure_ascii=False, allow_nan=False).replace("\x7f", "\\u007f")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _kind(suffix: str) -> str:
    if suffix in (".toml", ".json"):
        return suffix[1:]
    raise InputError(f"problem files end in .toml or .json, not {suffix or 'nothing'!r}")


def parse_text(text: str, suffix: str) -> Any:
    """The tables in a TOML or JSON text; InputError says what is not valid."""
    try:
        if _kind(suffix) == "json":
            return json.loads(text, object_pairs_hook=_no_repeats, parse_constant=_no_constant)
        return tomllib.loads(text)
    except InputError:
        raise
    except RecursionError:
        raise InputError("nested too deeply") from None
    except ValueError as error:  # both parsers' own errors, and whole numbers of thousands of digits
        raise InputError(f"not valid {suffix[1:].upper()}: {' '.join(str(error).split(';')[0].split())}") from None


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise InputError(f"the key {twice!r} stands twice in one table")
    return result


def _no_constant(name: str) -> Any:
    raise InputError(f"{name} is not a number that can be used here")


Array = NDArray[np.float64]
Draws = Mapping[tuple[str, int], Mapping[str, tuple[float, ...]]]
"""By id and repeat: what each name said."""
WITH_NOISE = ("nodes", "relations", "anchors", "noise")


def _names_a_table(document: Any) -> bool:
    """Whether some section of a problem file's content lies beside it, as columns."""
    return isinstance(document, dict) and any(isinstance(document.get(key), dict) for key in SECTIONS)


def _names_a_log(document: Any) -> bool:
    """Whether some block or noise of a problem file's content is to be estimated from a log."""
    return isinstance(document, dict) and any(True for _ in _entries(document))


def _entries(document: dict[str, Any]) -> list[dict[str, Any]]:
    listed = [document.get(section) for section in WITH_NOISE]
    entries = [entry for section in listed if isinstance(section, list) for entry in section]
    return [e for e in entries if isinstance(e, dict) and isinstance(e.get("estimated_from"), str)]


def _with_estimates(document: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The content of a problem file with covariances and numbers of repeats where it names logs,
    which lie beside it.
    """
    bare = {**document}
    for section in WITH_NOISE:
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
        draws = logs.setdefault(str(path), _read_log(problem, path))
        try:
            changes |= _changes(problem, entry, names, draws)
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
    filled = {**document}
    for section in WITH_NOISE:
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
    parts = {name: _rows_said(problem, block, draws) for name, block in zip(names, blocks, strict=True)}
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
    """σ of a node's answers: the root of the largest variance of any direction of its
    coordinates.
    """
    said = {place: np.array(part[node.id]) for place, part in draws.items() if node.id in part}
    for (item, _), value in said.items():
        if len(value) != node.dim:
            raise InputError(f"item {item!r}: {node.id!r} has {len(value)} numbers, not {node.dim}")
    covariance, repeats = estimate(said)
    return {"sigma": sqrt(float(np.linalg.eigvalsh(covariance)[-1])), "estimated_from": repeats}


def _read_log(problem: Problem, path: Path) -> Draws:
    """The readable answers of a log by id and repeat; texts are read by the parser of their
    node.
    """
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


def _rows_said(problem: Problem, block: Relation | Anchor, draws: Draws) -> dict[tuple[str, int], Array]:
    """What the rows of a block said in each repeat that has all of it: its own values, or its rows
    times the answers of its nodes.
    """
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
    """Σ̂ around the mean of each id, and the number of repeats of one id that would say as much (ν
    + 1).
    """
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
