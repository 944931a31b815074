"""Parsers by name: ``get("integer-last")`` or ``get({"name": "choice", "options": ["Paris",
"Rome"]})``; and what several parsers make of the same text.

`sensitivity` reads texts with several parsers and says where they part: the margin is a statement
about parsed values, so where two sensible parsers disagree, the noise radius has to cover the
difference, or the parser has to be chosen before any answer is seen. `written_forms` is the table
of written numbers and how they are read; it was written by hand, nothing in it was copied from what
the program says. `reviewed_value` reads what a person wrote.
"""

from __future__ import annotations

import difflib
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.resources import files
from itertools import combinations
from typing import Any

from rrf_design.documents import sealed
from rrf_design.errors import InputError
from rrf_design.responses.parsed import Parsed, Parser, ParseStatus, parse_stated


@dataclass(frozen=True, slots=True)
class _Entry:
    """A parser as the registry knows it: where it is, and what it reads."""

    home: str
    """Module (in this package) and class or function; its parameters are the parser's options."""
    reads: str
    made_with: tuple[str, ...] = ()
    """First arguments, which are no options."""


_PARSERS = {
    "integer": _Entry(
        "_numeric:IntegerParser", "the whole number that the answer is: marked as such, or the only one", ("",)
    ),
    "integer-strict": _Entry("_numeric:IntegerParser", "the whole answer is one integer", ("strict",)),
    "integer-last": _Entry(
        "_numeric:IntegerParser",
        "the last number, which must be whole: by its place, not by its meaning",
        ("last",),
    ),
    "integer-first": _Entry("_numeric:IntegerParser", "the first number, which must be whole", ("first",)),
    "rational": _Entry(
        "_numeric:RationalParser", "the number that the answer is: a fraction, an integer or a decimal, exactly"
    ),
    "decimal": _Entry(
        "_numeric:DecimalParser", "the number that the answer is; `decimal` says which mark its decimals have"
    ),
    "yes-no": _Entry("open_text:YesNoParser", "yes is 1, no is 0; as many as `count` says"),
    "json": _Entry(
        "_numeric:json_parser",
        "the number at `field` of a JSON object, `dim` of them, the `total` of a list, or what `of` reads there",
    ),
    "choice": _Entry("open_text:ChoiceParser", "one of `options`, as a one and zeros; with `letters`, also by A, B, C"),
    "date": _Entry(
        "_dates:DateParser",
        "one day as a class, in its ISO form; `formats` where a day may be a month, or `days_since` another day",
    ),
    "literal": _Entry(
        "open_text:LiteralParser",
        "a Python literal as a class, compared by value; with `bare`, unquoted text is a string",
    ),
    "label": _Entry("open_text:LabelParser", "a short text as a class, reduced by what `normalise` lists"),
    "call": _Entry("open_text:CallParser", "a function call with literal arguments as a class"),
    "mathematics": _Entry("_mathematics:MathematicsParser", "LaTeX or a formula as a class (extra `mathematics`)"),
    "embedding": _Entry(
        "_embedding:EmbeddingParser",
        "a text as a unit vector, by the encoder in the folder `model`: near vectors, no certificate of meaning",
    ),
    "code": _Entry(
        "_programs:CodeParser", "a Python function `entry`, run in the sandbox on `tests`: one integer each"
    ),
}
"""All that has to be said of a new parser."""


def names() -> tuple[str, ...]:
    """The parsers there are: ours, then those that other packages offer."""
    return (*_PARSERS, *_offered())


@cache
def _offered() -> Mapping[str, EntryPoint]:
    """Parsers of other packages: entry points of the group ``rrf_design.parsers``, each a class or
    a function.
    """
    return {entry.name: entry for entry in entry_points(group="rrf_design.parsers") if entry.name not in _PARSERS}


def reads(name: str) -> str:
    """What a parser reads, in words."""
    return _PARSERS[name].reads if name in _PARSERS else "(of another package)"


@cache
def _parameters(name: str) -> Mapping[str, inspect.Parameter]:
    """The options of a parser; looking at them takes longer than making one."""
    return inspect.signature(_build(name)).parameters


def _build(name: str) -> Callable[..., Parser]:
    if name in _PARSERS:
        entry = _PARSERS[name]
        module, _, kind = entry.home.partition(":")
        return partial(getattr(import_module(f"rrf_design.responses.{module}"), kind), *entry.made_with)
    try:
        build: Callable[..., Parser] = _offered()[name].load()
    except Exception as error:  # another package's code: whatever it raises, the caller needs one line
        raise InputError(f"parser {name!r}: its package can't be loaded ({error})") from None
    return build


def get(spec: str | Mapping[str, Any] | Parser) -> Parser:
    """The parser that ``spec`` names: a name, or a mapping with ``name`` and the parser's own
    options.
    """
    if isinstance(spec, Parser):
        return spec
    options = {"name": spec} if isinstance(spec, str) else dict(spec)
    name = options.pop("name", None)
    if name not in names():
        near = difflib.get_close_matches(str(name), names(), n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(names())}"
        raise InputError(f"unknown parser {name!r}; {hint}")
    parameters = _parameters(name)
    for option in options:
        if option not in parameters:
            raise InputError(_unknown_option(name, option, list(parameters)))
    for parameter in parameters.values():
        if parameter.default is parameter.empty and parameter.name not in options:
            raise InputError(f"parser {name!r}: it needs {parameter.name!r}")
    return _build(name)(**options)


def _unknown_option(name: str, option: str, known: list[str]) -> str:
    if not known:
        return f"parser {name!r}: unknown option {option!r}; it takes none"
    near = difflib.get_close_matches(option, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"it takes {', '.join(known)}"
    return f"parser {name!r}: unknown option {option!r}; {hint}"


AMBIGUOUS, NO_NUMBER = "ambiguous", "no number"


@dataclass(frozen=True, slots=True)
class _Form:
    """One written form; ``decimal`` is the mark that the user declared, None without."""

    kind: str
    text: str
    reads: str
    decimal: str | None = None

    def reading(self) -> str:
        """What the program makes of it, in the words of ``reads``."""
        parsed = get("decimal" if self.decimal is None else {"name": "decimal", "decimal": self.decimal}).parse(
            self.text
        )
        if parsed.ok:
            return parsed.canonical
        return {ParseStatus.AMBIGUOUS: AMBIGUOUS, ParseStatus.PARSE_FAILURE: NO_NUMBER}.get(
            parsed.status, parsed.status.value
        )

    def document(self) -> dict[str, Any]:
        return {"kind": self.kind, "text": self.text, "decimal": self.decimal, "reads": self.reads}


@cache
def written_forms() -> tuple[_Form, ...]:
    """The table, in its own order."""
    lines = files("rrf_design.responses").joinpath("written_forms.jsonl").read_text(encoding="utf-8").splitlines()
    return tuple(_Form(**json.loads(line)) for line in lines if line)


def _reading(parsed: Parsed) -> tuple[float, ...] | str | None:
    """What was read, a vector or a class; None where nothing was."""
    return parsed.value if parsed.label is None else parsed.label


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """``parsed[t][p]`` is text t read by parser p; ``disagreements`` are the texts with more than
    one reading.
    """

    parsers: tuple[str, ...]
    texts: tuple[str, ...]
    parsed: tuple[tuple[Parsed, ...], ...]
    disagreements: tuple[int, ...]

    @property
    def validity(self) -> dict[str, float]:
        """Share of texts each parser could read."""
        count = max(1, len(self.texts))
        return {name: sum(row[i].ok for row in self.parsed) / count for i, name in enumerate(self.parsers)}

    @property
    def violations(self) -> dict[str, int]:
        """Texts that each parser could read only by leaving the strict format."""
        return {
            name: sum(row[i].ok and not row[i].strict_ok for row in self.parsed) for i, name in enumerate(self.parsers)
        }

    @property
    def pairs(self) -> dict[tuple[str, str], int]:
        """How many texts two parsers read differently (one failing alone counts)."""
        return {
            (self.parsers[i], self.parsers[j]): sum(_reading(row[i]) != _reading(row[j]) for row in self.parsed)
            for i, j in combinations(range(len(self.parsers)), 2)
        }

    def document(self) -> dict[str, Any]:
        content = {
            "parsers": list(self.parsers),
            "texts": len(self.texts),
            "validity": self.validity,
            "violations": self.violations,
            "pairs": [{"parsers": list(pair), "differ": count} for pair, count in self.pairs.items()],
            "disagreements": [
                {
                    "index": index,
                    "text": self.texts[index],
                    "readings": {
                        name: parsed.document() for name, parsed in zip(self.parsers, self.parsed[index], strict=True)
                    },
                }
                for index in self.disagreements
            ],
        }
        return sealed("rrf-parser-sensitivity", content)


def sensitivity(texts: Sequence[str], specs: Sequence[str | Mapping[str, Any] | Parser]) -> Sensitivity:
    """Read every text with every parser, and see where they part.

    Parameters
    ----------
    texts : answers as they were given.
    specs : two parsers or more, each by name, by name with options, or as an object.

    Returns
    -------
    Sensitivity
        All readings, with the share that each parser could read and the texts that they read
        differently.

    >>> from rrf_design.responses import sensitivity
    >>> sensitivity(["7", "first 3, then 4"], ["integer-first", "integer-last"]).disagreements
    (1,)
    """
    if len(specs) < 2:
        raise InputError("parser sensitivity compares at least two parsers")
    readers = [get(spec) for spec in specs]
    names = [reader.name for reader in readers]
    labels = [f"{n}#{i}" if names.count(n) > 1 else n for i, n in enumerate(names, start=1)]
    columns = [reader.parse_many(texts) for reader in readers]
    rows = tuple(zip(*columns, strict=True))
    differ = tuple(i for i, row in enumerate(rows) if len({_reading(parsed) for parsed in row}) > 1)
    return Sensitivity(tuple(labels), tuple(texts), rows, differ)


Numbers = tuple[float, ...]


def check_review(value: Any) -> None:
    """InputError where a table stands for what a person said: its text would be searched for a
    number, which may be anything.
    """
    if isinstance(value, Mapping):
        raise InputError(f"value is the table {value!r:.60}; write a number, a text, or a list of them")
    for part in value if isinstance(value, list | tuple) else ():
        check_review(part)


def reviewed_value(name: str, said: str, parser: Parser | None, *, rows: int | None = None) -> str | Numbers:
    """The class that a person named, where the parser reads classes, else numbers: as many as
    `rows`, or as the parser has.
    """
    if parser is not None and parser.dim == 0:
        found = parse_stated(parser, said)
        if found.label is None:
            raise InputError(f"review {name!r}: {said!r:.60} is no answer to the parser {parser.name!r}")
        return found.label
    wanted = rows or (1 if parser is None else parser.dim)
    from rrf_design.responses._numeric import DecimalParser

    numbers = _plain(said, wanted)
    if numbers is not None:
        return numbers
    for reader in (parser, DecimalParser()):  # people write 67,41 EUR where a model was asked for JSON
        value = parse_stated(reader, said).value if reader is not None and reader.dim == wanted else None
        if value is not None:
            return value
    count = "a number" if wanted == 1 else f"{wanted} numbers"
    raise InputError(f"review {name!r}: {said!r:.60} is neither {count} nor an answer to the question")


def _plain(said: str, wanted: int) -> Numbers | None:
    bare = said.replace(";", " ")
    for text in (bare, bare.replace(",", " ")) if wanted > 1 else (bare,):  # between two numbers a comma may stand, too
        try:
            numbers = tuple(float(part) for part in text.split())
        except ValueError:
            continue
        if len(numbers) == wanted and all(abs(x) < float("inf") for x in numbers):
            return numbers
    return None
