"""Problem files: TOML for people, JSON for programs, one schema, a round trip without loss.

Every fault is one line: the file, the entry by its id, what is wrong, and the nearest known key where one was
mistyped. Files are written to a temporary neighbour and renamed, so that nothing is ever half-written.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import tempfile
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from rrf_design.blocks import Anchor, Relation, Rule, Tier, Transport
from rrf_design.errors import InputError
from rrf_design.field import Node
from rrf_design.problem import Problem

SECTIONS: Mapping[str, type[BaseModel]] = {
    "nodes": Node,
    "relations": Relation,
    "anchors": Anchor,
    "rules": Rule,
    "tiers": Tier,
}
SETTINGS = tuple(name for name in Problem.model_fields if name not in SECTIONS)


def load(path: str | os.PathLike[str]) -> Problem:
    """Read a problem file (.toml or .json)."""
    path = Path(path)
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: can't be read as UTF-8 text ({error})") from None
    try:
        return from_document(_parse(text, path.suffix.lower()))
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def loads(text: str, kind: str = "toml") -> Problem:
    """The same from a string; kind is "toml" or "json"."""
    return from_document(_parse(text, f".{kind}"))


def save(problem: Problem, path: str | os.PathLike[str]) -> None:
    """Write a problem file; the ending (.toml or .json) chooses the form."""
    write_text(path, dumps(problem, _kind(Path(path).suffix.lower())))


def dumps(problem: Problem, kind: str = "toml") -> str:
    document = to_document(problem)
    if kind == "json":
        return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    import tomli_w

    parts = [f"[problem]\n{tomli_w.dumps(document['problem'])}"]
    parts += [f"[[{key}]]\n{_toml_entry(entry)}" for key in SECTIONS for entry in document.get(key, ())]
    return "\n".join(parts)


def from_document(document: Any) -> Problem:
    """Problem from the parsed content of a file."""
    if not isinstance(document, dict):
        raise InputError("the top level must be a table with [problem] and [[nodes]]")
    settings = document.get("problem", {})
    if not isinstance(settings, dict):
        raise InputError("problem: must be a table")
    for key in document:
        if key != "problem" and key not in SECTIONS:
            raise InputError(f"unknown section {key!r}{suggestion(key, ['problem', *SECTIONS])}")
    for key in settings:
        if key not in SETTINGS:
            raise InputError(f"[problem]: unknown key {key!r}{suggestion(key, SETTINGS)}")
    if "nodes" not in document:
        raise InputError("nodes: the field is empty; declare at least one node")
    for key in SECTIONS:
        if key in document and not isinstance(document[key], list):
            raise InputError(f"{key}: must be a list of tables; write [[{key}]]")
    return Problem(**settings, **{key: document[key] for key in SECTIONS if key in document})


def to_document(problem: Problem) -> dict[str, Any]:
    """What `from_document` reads back to an equal problem: plain lists, tables, strings and numbers."""
    dumped = problem.model_dump(mode="python", exclude_defaults=True, by_alias=True)
    document = {"problem": {key: dumped[key] for key in SETTINGS if key in dumped}}
    document["problem"].setdefault("k", problem.k)
    document.update({key: dumped[key] for key in SECTIONS if dumped.get(key)})
    plain: dict[str, Any] = _plain(document)
    return plain


def digest(problem: Problem) -> str:
    """SHA-256 of the canonical JSON: plans, certificates and runs name the problem they belong to by it."""
    canonical = json.dumps(to_document(problem), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a file whole or not at all."""
    path = Path(path)
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.replace(temporary, path)
    except OSError as error:
        raise InputError(f"{path}: can't be written ({error.strerror or error})") from None


def suggestion(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""


def one_line(error: ValidationError, data: Mapping[str, Any]) -> str:
    """The first fault of a failed validation as one line that names the entry by its id."""
    first = error.errors()[0]
    location = [part for part in first["loc"] if not (isinstance(part, str) and ("[" in part or part in _UNION_ARMS))]
    where, model = "[problem]", Problem
    keys: list[Any] = location
    if location and location[0] in SECTIONS:
        section = str(location[0])
        model = SECTIONS[section]  # type: ignore[assignment]
        where = section
        if len(location) > 1 and isinstance(location[1], int):
            where = _entry_name(section, location[1], data)
        keys = location[2:]
        if "transport" in keys[:1]:
            model = Transport  # type: ignore[assignment]
    path = ".".join(str(key) for key in keys)
    if first["type"] == "extra_forbidden":
        key = str(keys[-1])
        names = [field.alias or name for name, field in model.model_fields.items()]
        return f"{where}: unknown key {key!r}{suggestion(key, names)}"
    if first["type"] == "missing":
        return f"{where}: {path or 'an entry'} is missing"
    message = first["msg"].removeprefix("Value error, ")
    seen = "" if first["type"] == "value_error" else f" (got {_short(first['input'])})"
    return f"{where}: {path + ': ' if path else ''}{message[0].lower() + message[1:]}{seen}"


_UNION_ARMS = {"float", "int", "str", "constrained-float", "constrained-str", "constrained-int", "lax-or-strict"}


def _entry_name(section: str, index: int, data: Mapping[str, Any]) -> str:
    entry = data[section][index]
    name = entry.get("id") if isinstance(entry, dict) else getattr(entry, "id", None)
    kind = section.removesuffix("s")
    return f"{kind} {name!r}" if isinstance(name, str) and name else f"{kind} number {index + 1}"


def _toml_entry(entry: dict[str, Any]) -> str:
    """One entry as key = value lines; tables inside it stay on their line, so that [[...]] is never broken up."""
    return "".join(f"{_toml_key(key)} = {_toml_inline(value)}\n" for key, value in entry.items())


def _toml_key(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() and key.isascii() else json.dumps(key)


def _toml_inline(value: Any) -> str:
    import tomli_w

    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_toml_key(key)} = {_toml_inline(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_toml_inline(item) for item in value) + "]"
    return tomli_w.dumps({"x": value}).removeprefix("x = ").rstrip("\n")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _kind(suffix: str) -> str:
    if suffix in (".toml", ".json"):
        return suffix[1:]
    raise InputError(f"problem files end in .toml or .json, not {suffix or 'nothing'!r}")


def _parse(text: str, suffix: str) -> Any:
    try:
        if _kind(suffix) == "json":
            return json.loads(text, object_pairs_hook=_no_repeats, parse_constant=_no_constant)
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"not valid TOML: {error}") from None
    except json.JSONDecodeError as error:
        raise InputError(f"not valid JSON: {error}") from None
    except RecursionError:
        raise InputError("nested too deeply") from None


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        keys = [key for key, _ in pairs]
        raise InputError(f"the key {next(key for key in keys if keys.count(key) > 1)!r} stands twice in one table")
    return result


def _no_constant(name: str) -> Any:
    raise InputError(f"{name} is not a number that can be used here")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
