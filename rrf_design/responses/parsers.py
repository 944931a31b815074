"""Parsers by name: ``get("integer-last")`` or ``get({"name": "choice", "options": ["Paris", "Rome"]})``."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from rrf_design.errors import InputError
from rrf_design.responses.parsed import Parser


def _integer(which: str) -> Callable[..., Parser]:
    def build(*, decimal: str | None = None) -> Parser:
        from rrf_design.responses.numeric import IntegerParser

        return IntegerParser(which, decimal)

    return build


def _rational(*, decimal: str | None = None) -> Parser:
    from rrf_design.responses.numeric import RationalParser

    return RationalParser(decimal)


def _decimal(*, decimal: str | None = None) -> Parser:
    from rrf_design.responses.numeric import DecimalParser

    return DecimalParser(decimal)


def _yes_no(*, count: int = 1) -> Parser:
    from rrf_design.responses.worded import YesNoParser

    return YesNoParser(count)


def _json(
    *,
    field: str | list[str],
    dim: int | None = None,
    decimal: str | None = None,
    of: str | dict[str, Any] | None = None,
) -> Parser:
    from rrf_design.responses.structured import FieldParser, JsonParser

    if of is None:
        return JsonParser(field, dim=dim, decimal=decimal)
    if not isinstance(field, str) or dim is not None or decimal is not None:
        raise InputError("parser 'json': with `of`, one `field`; the other options belong to the parser it names")
    return FieldParser(field, get(of))


def _choice(*, options: list[str], letters: bool = False) -> Parser:
    from rrf_design.responses.worded import ChoiceParser

    return ChoiceParser(options, letters=letters)


def _literal(*, bare: str | None = None) -> Parser:
    from rrf_design.responses.open_text import LiteralParser

    return LiteralParser(bare)


def _label(*, normalise: list[str] | None = None, words: int = 12) -> Parser:
    from rrf_design.responses.open_text import LabelParser

    return LabelParser(words=words) if normalise is None else LabelParser(normalise, words)


def _call() -> Parser:
    from rrf_design.responses.open_text import CallParser

    return CallParser()


def _mathematics(*, seconds: float = 5.0) -> Parser:
    from rrf_design.responses.mathematics import MathematicsParser

    return MathematicsParser(seconds)


def _code(*, tests: list[list[Any]], entry: str = "solve", seconds: float = 1.0, require: str = "seccomp") -> Parser:
    from rrf_design.responses.programs import CodeParser

    return CodeParser(tests, entry=entry, seconds=seconds, require=require)


_PARSERS: dict[str, Callable[..., Parser]] = {
    "integer": _integer(""),
    "integer-strict": _integer("strict"),
    "integer-last": _integer("last"),
    "integer-first": _integer("first"),
    "rational": _rational,
    "decimal": _decimal,
    "yes-no": _yes_no,
    "json": _json,
    "choice": _choice,
    "literal": _literal,
    "label": _label,
    "call": _call,
    "mathematics": _mathematics,
    "code": _code,
}


def names() -> tuple[str, ...]:
    """The parsers there are: ours, then those that other packages offer."""
    return (*_PARSERS, *_offered())


@cache
def _offered() -> Mapping[str, EntryPoint]:
    """Parsers of other packages: entry points of the group ``rrf_design.parsers``, each a class or a function."""
    return {entry.name: entry for entry in entry_points(group="rrf_design.parsers") if entry.name not in _PARSERS}


def _build(name: str) -> Callable[..., Parser]:
    if name in _PARSERS:
        return _PARSERS[name]
    try:
        build: Callable[..., Parser] = _offered()[name].load()
    except Exception as error:  # another package's code: whatever it raises, the caller needs one line
        raise InputError(f"parser {name!r}: its package can't be loaded ({error})") from None
    return build


def get(spec: str | Mapping[str, Any] | Parser) -> Parser:
    """The parser that ``spec`` names: a name, or a mapping with ``name`` and the parser's own options."""
    if isinstance(spec, Parser):
        return spec
    options = {"name": spec} if isinstance(spec, str) else dict(spec)
    name = options.pop("name", None)
    if name not in names():
        near = difflib.get_close_matches(str(name), names(), n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(names())}"
        raise InputError(f"unknown parser {name!r}; {hint}")
    build = _build(name)
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
