"""Parsers by name: ``get("integer-last")`` or ``get({"name": "choice", "options": ["Paris", "Rome"]})``."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from rrf_design.errors import InputError
from rrf_design.responses.parsed import Parser


def _integer(which: str) -> Callable[..., Parser]:
    def build() -> Parser:
        from rrf_design.responses.numeric import IntegerParser

        return IntegerParser(which)

    return build


def _rational() -> Parser:
    from rrf_design.responses.numeric import RationalParser

    return RationalParser()


def _decimal() -> Parser:
    from rrf_design.responses.numeric import DecimalParser

    return DecimalParser()


def _yes_no(*, count: int = 1) -> Parser:
    from rrf_design.responses.worded import YesNoParser

    return YesNoParser(count)


def _json(*, field: str, dim: int = 1) -> Parser:
    from rrf_design.responses.worded import JsonParser

    return JsonParser(field, dim=dim)


def _choice(*, options: list[str], letters: bool = False) -> Parser:
    from rrf_design.responses.worded import ChoiceParser

    return ChoiceParser(options, letters=letters)


def _code(*, tests: list[list[Any]], entry: str = "solve", seconds: float = 1.0, require: str = "seccomp") -> Parser:
    from rrf_design.responses.code import CodeParser

    return CodeParser(tests, entry=entry, seconds=seconds, require=require)


_PARSERS: dict[str, Callable[..., Parser]] = {
    "integer-strict": _integer("strict"),
    "integer-last": _integer("last"),
    "integer-first": _integer("first"),
    "rational": _rational,
    "decimal": _decimal,
    "yes-no": _yes_no,
    "json": _json,
    "choice": _choice,
    "code": _code,
}


def names() -> tuple[str, ...]:
    return tuple(_PARSERS)


def get(spec: str | Mapping[str, Any] | Parser) -> Parser:
    """The parser that ``spec`` names: a name, or a mapping with ``name`` and the parser's own options."""
    if isinstance(spec, Parser):
        return spec
    options = {"name": spec} if isinstance(spec, str) else dict(spec)
    name = options.pop("name", None)
    if name not in _PARSERS:
        near = difflib.get_close_matches(str(name), _PARSERS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(_PARSERS)}"
        raise InputError(f"unknown parser {name!r}; {hint}")
    build = _PARSERS[name]
    parameters = inspect.signature(build).parameters
    for option in options:
        if option not in parameters:
            raise InputError(_unknown_option(name, option, list(parameters)))
    for parameter in parameters.values():
        if parameter.default is parameter.empty and parameter.name not in options:
            raise InputError(f"parser {name!r}: it needs {parameter.name!r}")
    return build(**options)


def _unknown_option(name: str, option: str, known: list[str]) -> str:
    if not known:
        return f"parser {name!r}: unknown option {option!r}; it takes none"
    near = difflib.get_close_matches(option, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"it takes {', '.join(known)}"
    return f"parser {name!r}: unknown option {option!r}; {hint}"
