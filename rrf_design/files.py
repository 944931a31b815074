"""Problem files: TOML for people, JSON for programs, one schema, a round trip without loss.

Every fault is one line: the file, the entry by its id, what is wrong, and the nearest known key where one was
mistyped. Files are written to a temporary neighbour and renamed, so that nothing is ever half-written.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
import secrets
import shutil
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
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
_BARE = re.compile("[A-Za-z0-9_-]+")
SETTINGS = tuple(name for name in Problem.model_fields if name not in SECTIONS)


def load(path: str | os.PathLike[str]) -> Problem:
    """Read a problem file (.toml or .json)."""
    path = Path(path)
    try:
        text = path.read_bytes().decode("utf-8-sig")  # some editors begin a file with a mark
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text (at byte {error.start})") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: can't be read ({_reason(error)})".replace("\0", "\\0")) from None
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
    """The text of a problem file; kind is "toml" or "json"."""
    document = to_document(problem)
    if _kind(f".{kind}") == "json":
        return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    parts = [f"[problem]\n{_toml_entry(document['problem'])}"]
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
    """Write a file whole or not at all; nothing is left behind when it fails."""
    write_bytes(path, text.encode())


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """The same for bytes."""
    temporary: Path | None = None
    try:
        target = Path(os.path.realpath(path))  # through a link, not over it
        if target.exists() and not target.is_file() and not target.is_dir():
            target.write_bytes(content)  # a pipe or a device can't be replaced
            return
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
        with temporary.open("xb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        if target.exists():
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
        temporary = None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: can't be written ({_reason(error)})".replace("\0", "\\0")) from None
    finally:
        if temporary is not None:
            with suppress(OSError):  # it may never have come to be
                temporary.unlink()


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error).lower()


def suggestion(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""


def one_line(error: ValidationError, data: Mapping[str, Any]) -> str:
    """The first fault of a failed validation as one line that names the entry by its id."""
    first = _most_telling(error.errors())
    location = _location(first)
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
    path = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys).removeprefix(".")
    if first["type"] == "extra_forbidden":
        key = str(keys[-1])
        names = [field.alias or name for name, field in model.model_fields.items()]
        return f"{where}: unknown key {key!r}{suggestion(key, names)}"
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
    """Of the first faulty key's errors (a union reports one per arm): the one that got furthest into the value."""
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


def _toml_entry(entry: dict[str, Any]) -> str:
    """One entry as key = value lines; tables inside it stay on their line, so that [[...]] is never broken up."""
    return "".join(f"{_toml_key(key)} = {_toml_value(value)}\n" for key, value in entry.items())


def _toml_key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _toml_value(key)


def _toml_value(value: Any) -> str:
    if isinstance(value, dict):
        inside = ", ".join(f"{_toml_key(key)} = {_toml_value(item)}" for key, item in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml_value, value))}]"
    # JSON's strings, numbers and booleans are TOML's too; only DEL must be escaped there and need not be here
    return json.dumps(value, ensure_ascii=False, allow_nan=False).replace("\x7f", "\\u007f")


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


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value + 0.0 if isinstance(value, float) else value  # -0.0 is 0.0: equal problems have one digest
