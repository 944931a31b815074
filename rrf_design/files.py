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
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import BaseModel, ValidationError

from rrf_design.blocks import Anchor, Relation, Rule, SharedNoise, Tier, Transport
from rrf_design.errors import InputError
from rrf_design.field import Node
from rrf_design.logged import names_a_log, with_estimates
from rrf_design.nonlinearities import Nonlinear
from rrf_design.problem import Problem
from rrf_design.texts import whole

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
    """Read a problem file (.toml or .json).

    InputError names the file, the entry and the key that does not fit, and the nearest known one.

    >>> import pathlib, tempfile
    >>> import rrf_design as rrf
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "problem.json"
    >>> _ = path.write_text('{"nodes": [{"id": "a"}], "anchors": [{"id": "x", "node": "a"}]}')
    >>> rrf.load(path).margin().value
    1.0
    """
    path = Path(path)
    text = read_source(path)
    try:
        document = parse_text(text, path.suffix.lower())
        if names_a_log(document):
            document = with_estimates(document, path.parent)
        return from_document(document)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def read_source(path: Path) -> str:
    """The text of a file that a person wrote; InputError when it is not there or not UTF-8."""
    try:
        return path.read_bytes().decode("utf-8-sig")  # some editors begin a file with a mark
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text (at byte {error.start})") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: can't be read ({_reason(error)})".replace("\0", "\\0")) from None


def loads(text: str, kind: str = "toml") -> Problem:
    """The same from a string; kind is "toml" or "json".

    >>> import rrf_design as rrf
    >>> rrf.loads('{"nodes": [{"id": "a"}]}', "json").k
    1
    """
    return from_document(parse_text(text, f".{kind}"))


def save(problem: Problem, path: str | os.PathLike[str]) -> None:
    """Write a problem file; the ending (.toml or .json) chooses the form.

    Written whole or not at all; `load` gives an equal problem back.

    >>> import pathlib, tempfile
    >>> import rrf_design as rrf
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "problem.json"
    >>> rrf.save(rrf.Problem(nodes=[{"id": "a"}]), path)
    >>> rrf.load(path) == rrf.Problem(nodes=[{"id": "a"}])
    True
    """
    write_text(path, dumps(problem, _kind(Path(path).suffix.lower())))


def dumps(problem: Problem, kind: str = "toml") -> str:
    """The text of a problem file; kind is "toml" or "json".

    >>> import rrf_design as rrf
    >>> print(rrf.dumps(rrf.Problem(k=2, nodes=[{"id": "a"}])).strip())
    [problem]
    k = 2
    <BLANKLINE>
    [[nodes]]
    id = "a"
    """
    document = to_document(problem) | ({"models": _plain(problem.models)} if problem.models else {})
    if _kind(f".{kind}") == "json":
        return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    parts = [f"[problem]\n{toml_entry(document['problem'])}"]
    parts += [f"[models]\n{toml_entry(document['models'])}"] if problem.models else []
    parts += [f"[[{key}]]\n{toml_entry(entry)}" for key in SECTIONS for entry in document.get(key, ())]
    return "\n".join(parts)


def from_document(document: Any) -> Problem:
    """Problem from the parsed content of a file."""
    if not isinstance(document, dict):
        raise InputError("the top level must be a table with [problem] and [[nodes]]")
    settings = document.get("problem", {})
    if not isinstance(settings, dict):
        raise InputError("problem: must be a table")
    for key in document:
        if key in ("data", "answer", "ask", "check"):
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
            raise InputError(f"{key}: must be a list of tables; write [[{key}]]")
    return Problem(**settings, **{key: document[key] for key in (*SECTIONS, "models") if key in document})


def to_document(problem: Problem) -> dict[str, Any]:
    """What `from_document` reads back to an equal problem: plain lists, tables, strings and numbers. Who is asked in a live run
    is no part of it: a design, its plans and its certificates stay the same whoever answers."""
    dumped = problem.model_dump(mode="python", exclude_defaults=True, by_alias=True)
    document = {"problem": {key: dumped[key] for key in SETTINGS if key in dumped}}
    document["problem"].setdefault("k", problem.k)
    document.update({key: dumped[key] for key in SECTIONS if dumped.get(key)})
    plain: dict[str, Any] = _plain(document)
    return plain


def digest(problem: Problem) -> str:
    """SHA-256 of the canonical JSON: plans, certificates and runs name the problem they belong to by it.

    >>> import rrf_design as rrf
    >>> len(rrf.digest(rrf.Problem(nodes=[{"id": "a"}])))
    64
    """
    return problem.digest


def canonical_digest(document: Any) -> str:
    """SHA-256 of a document's canonical JSON."""
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a file whole or not at all; nothing is left behind when it fails."""
    write_bytes(path, whole(text).encode())


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """The same for bytes."""
    with writing(path) as stream:
        stream.write(content)


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A stream to a file that is there, whole, when the block ends, and not at all when it fails."""
    temporary: Path | None = None
    try:
        target = Path(os.path.realpath(path))  # through a link, not over it
        given = Path(path)
        if given.exists() and not given.is_file() and not given.is_dir():
            with given.open("wb") as device:  # a pipe or a device can't be replaced, and a pipe's link leads nowhere
                yield device
            return
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
        with temporary.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if target.exists():
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
        temporary = None
    except InputError:  # the block's own, which is a ValueError too
        raise
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

    `lists` are the sections that are lists of entries, `tables` those that are one; `top` has all of them for fields.
    """
    first = _most_telling(error.errors())
    location = _location(first)
    where, model, keys = "[problem]" if top is Problem else "the top level", top, location
    section = str(location[0]) if location else ""
    if section == "models":
        where, keys = "[models]", location[1:]
    elif section in (tables or {}):
        where, model, keys = f"[{section}]", (tables or {})[section], location[1:]
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


def toml_entry(entry: dict[str, Any]) -> str:
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


_AS_THEY_ARE = frozenset({str, int, bool, type(None)})


def _plain(value: Any) -> Any:
    if type(value) in _AS_THEY_ARE:  # most are: asked first, because a run over many items does this for every entry
        return value
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value + 0.0 if isinstance(value, float) else value  # -0.0 is 0.0: equal problems have one digest
