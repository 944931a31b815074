"""What is right: the gold column of a table, or what people wrote into a review file, compared with
a delivered value.

Gold is a value, a list of values that are all right, or a value with a tolerance in its own unit.
It is read by the parser that reads the delivered answers, so that "B", "1,200.00" and a Python
literal mean the same on both sides. Nothing but pilots and audits sees it.

Truth from people: a file with one line for each item that somebody has to look at, filled in and
read back.

Rows are in the order of the draw; a row says nothing about which answer the policies would accept,
so that nobody is led.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rrf_design.errors import InputError
from rrf_design.files import suggestion
from rrf_design.problem import Problem
from rrf_design.questions.recipe import DataSection
from rrf_design.questions.reviews import check_review_file as check_review_file
from rrf_design.questions.reviews import read_review_file, write_review_file
from rrf_design.questions.templates import strict_number
from rrf_design.responses import parsers
from rrf_design.responses.open_text import ChoiceParser, Classes, YesNoParser
from rrf_design.responses.parsed import Parser, parse_stated
from rrf_design.tables.items import rounding
from rrf_design.tables.rows import shown_value

COLUMNS = ("id", "question", "text", "value")


def write_reviews(path: str | os.PathLike[str], rows: Iterable[tuple[str, str, str]]) -> int:
    """Write (id, question, text) of each item, and return how many are asked; what people wrote
    into the file stays.
    """
    return write_review_file(path, (dict(zip(COLUMNS, row, strict=False)) for row in rows), COLUMNS)


def read_reviews(path: str | os.PathLike[str], *, only: Sequence[str] | None = None) -> dict[str, Any]:
    """What people wrote, by item; empty values are left out.

    InputError for an item that was not asked about (`only`), or one with two values.
    """
    known = None if only is None else frozenset(only)

    def asked(name: str, _: str) -> str:
        if known is not None:
            refuse_strangers([name], known)
        return name

    return read_review_file(path, asked)


def refuse_strangers(said: Iterable[str], known: Collection[str]) -> None:
    """InputError for an item that people said something about and nobody asked them about."""
    for name in said:
        if name not in known:
            raise InputError(f"item {name!r} was not asked about")


def joined_reviews(paths: Sequence[str | os.PathLike[str]], *, only: Sequence[str] | None = None) -> dict[str, Any]:
    """What people wrote into several files; InputError where two of them say something else of one
    item, or one speaks of an item that is none (`only`).
    """
    found: dict[str, Any] = {}
    for path in paths:
        for name, value in read_reviews(path, only=only).items():
            if found.setdefault(name, value) != value:
                raise InputError(f"{path}: item {name!r} has another value there than in a review file before it")
    return found


def row_text(cells: Mapping[str, Any], *, hidden: Collection[str | None] = ()) -> str:
    """A row for whoever says what is right: what was asked about, and nothing of what was
    answered.
    """
    return "; ".join(f"{key}: {value}" for key, value in cells.items() if key not in hidden)


def person_question(problem: Problem, check: str | None = None) -> str | None:
    """What a person is asked by this check, or by the first that asks one; None where none does."""
    for anchor in problem.anchors:
        source = anchor.source
        if (check is None or anchor.id == check) and isinstance(source, Mapping) and "person" in source:
            return str(source["person"])
    return None


Said = tuple[float, ...] | str
"""An answer as it is compared: numbers, or the class of an open answer."""
EXACT_CHECKS = "the recipe's exact checks"
"""Whose word is the truth where there is neither a gold column nor a review."""
CANNOT_TELL = "?"
"""What a reviewer writes who can't say what is right.

It counts as wrong whatever was delivered: a label that is left out must not help.
"""
_GROUPED = re.compile(r"[+\-−]?\d{1,3}(?:[,.'’ \u00a0\u202f]\d{3})+(?:[.,]\d+)?")
GOLD_KEYS = ("column", "tolerance", "separator")


@dataclass(frozen=True, slots=True)
class GoldRule:
    """How the gold column is read.

    `separator` splits a cell into several values, each of them right.
    """

    column: str | None = None
    tolerance: float | None = None
    separator: str | None = None

    def __post_init__(self) -> None:
        if self.tolerance is not None and not 0 <= self.tolerance < math.inf:
            raise InputError(f"a tolerance of {self.tolerance} for the truth; give a number that is 0 or more")

    def within(self, tolerance: float | None) -> GoldRule:
        """The same for an item whose own answer may be so far off: rows may name tolerances of
        their own. What gold names goes before it.
        """
        return self if self.tolerance is not None else replace(self, tolerance=tolerance)

    def words(self, reviews: int) -> str:
        """Whose word is the truth, and how far off a value may be and still count as right: whoever
        reads a bound has to know.
        """
        said = "" if not reviews else f"{reviews:,} review{'s' * (reviews != 1)}"
        parts = ("" if self.column is None else f"gold column {self.column!r}", said)
        whose = " and ".join(part for part in parts if part)
        return f"{whose}, right within {self.tolerance:g}" if whose and self.tolerance else whose

    @classmethod
    def of(cls, data: DataSection, *, tolerance: float | None = None) -> GoldRule:
        """The rule of a recipe; `tolerance` is the answer's own, where gold names none."""
        if data.gold is None or isinstance(data.gold, str):
            return cls(data.gold, tolerance)
        for key in data.gold:
            if key not in GOLD_KEYS:
                raise InputError(f"[data] gold: unknown key {key!r}{suggestion(key, GOLD_KEYS)}")
        if not isinstance(data.gold.get("column"), str):
            raise InputError("[data] gold: it needs column = the name of the column that holds the truth")
        own, separator = data.gold.get("tolerance"), data.gold.get("separator")
        if own is not None and (isinstance(own, bool) or not isinstance(own, int | float) or own < 0):
            raise InputError(f"[data] gold: tolerance = {own!r} should be a number, 0 or more")
        if separator is not None and (not isinstance(separator, str) or not separator):
            raise InputError(f"[data] gold: separator = {separator!r} should be a text such as ' | '")
        return cls(str(data.gold["column"]), tolerance if own is None else float(own), separator)


@dataclass(frozen=True, slots=True)
class Truth:
    """What is right about one item: any of these values, each within the tolerance."""

    values: tuple[Said, ...]
    tolerance: float | None = None
    text: str = ""

    @classmethod
    def unknown(cls) -> Truth:
        """Somebody looked and could not tell: no value is right, which is the worst case."""
        return cls((), None, CANNOT_TELL)

    def right(self, said: Said | None) -> bool:
        return said is not None and any(same(said, value, self.tolerance) for value in self.values)


def same(said: Said, value: Said, tolerance: float | None = None) -> bool:
    """Classes by their string, numbers up to rounding or within the tolerance in every
    coordinate.
    """
    if isinstance(said, str) or isinstance(value, str):
        return said == value
    if len(said) != len(value):
        return False
    reach = 0.0 if tolerance is None else tolerance
    return all(
        a == b or abs(a - b) <= max(rounding(max(abs(a), abs(b))), reach * (1 + 1e-9))
        for a, b in zip(said, value, strict=True)
    )


def place_of(said: Said) -> int | None:
    """Which option an answer names; None for an answer that is no choice."""
    if isinstance(said, str) or sorted(said) != [0.0] * (len(said) - 1) + [1.0] or len(said) < 2:
        return None
    return said.index(1.0)


def cannot_tell(cell: Any) -> bool:
    """Of a reviewer's field, never of a gold column, where a question mark may be an answer."""
    return isinstance(cell, str) and cell.strip() == CANNOT_TELL


def read_truth(cell: Any, parser: Parser | None, rule: GoldRule) -> Truth | None:
    """The truth in a cell (or in a reviewer's field); None where it is empty, InputError where it
    can't be read.
    """
    if cell is None or (isinstance(cell, str) and not cell.strip()) or cell == []:
        return None
    several = isinstance(cell, list | tuple) and not _is_vector(parser)
    parts = list(cell) if several else [cell]
    if rule.separator is not None and isinstance(cell, str):
        parts = [part.strip() for part in cell.split(rule.separator)]
    values = tuple(_read(part, parser) for part in parts)
    # Choices and classes are the same or not; a distance means nothing among them.
    tolerance = None if worded(parser) else rule.tolerance
    return Truth(values, tolerance, str(cell))


def _read(cell: Any, parser: Parser | None) -> Said:
    if not worded(parser):
        try:
            numbers = cell if isinstance(cell, list | tuple) else [cell]
            return tuple(strict_number(number) for number in numbers)
        except ValueError as error:
            if parser is None or not isinstance(cell, str):
                raise InputError(f"the truth {str(cell)!r:.60} {error}") from None
    assert parser is not None
    found = parse_stated(parser, str(cell))
    if not found.ok:
        raise InputError(f"the truth {str(cell)!r:.60} is no answer to the parser {parser.name!r}: {found.detail}")
    said = found.label if found.label is not None else found.value
    assert said is not None
    return said


def worded(parser: Parser | None) -> bool:
    """Whether answers are words (choices, yes or no, open classes) rather than numbers."""
    inner = getattr(parser, "of", parser)
    return parser is not None and (parser.dim == 0 or isinstance(inner, ChoiceParser | YesNoParser))


def _is_vector(parser: Parser | None) -> bool:
    return parser is not None and parser.dim > 1 and not worded(parser)


def shown(said: Said, parser: Parser | None) -> Any:
    """What was said, as a delivered table shows it: a class by its label, everything else as
    `shown_value` does.
    """
    return said if isinstance(said, str) else shown_value(tuple(said), parser, Classes(()))


def answer_is_right(answer: Any, gold: Any, parser: Parser | None, rule: GoldRule) -> bool | None:
    """Whether a delivered cell is right by a gold cell, both read by the recipe's parser where
    answers are words: equal dictionaries need not be written alike.
    """
    if worded(parser) and not isinstance(answer, list | tuple):
        try:
            truth, said = read_truth(gold, parser, rule), read_truth(answer, parser, GoldRule())
        except InputError:  # words that the parser does not know are the same only as they are written
            pass
        else:
            return None if truth is None else said is not None and truth.right(said.values[0])
    return cell_is_right(answer, gold, tolerance=rule.tolerance, separator=rule.separator)


def cell_is_right(answer: Any, gold: Any, *, tolerance: float | None, separator: str | None = None) -> bool | None:
    """Whether a delivered cell is right by a gold cell, for tables whose recipe is not at hand;
    None where gold is empty.
    """
    if gold is None or (isinstance(gold, str) and not gold.strip()):
        return None
    values = _numbers(answer)
    if (
        values is not None and (whole := _listed(gold)) is not None
    ):  # an answer of several numbers, all of which must be right
        rows = [_numbers(row) for row in (whole if all(_listed(part) is not None for part in whole) else [whole])]
        return any(row is not None and same(values, row, tolerance) for row in rows)
    parts = list(gold) if isinstance(gold, list | tuple) else [gold]
    if separator is not None and isinstance(gold, str):
        parts = [part.strip() for part in gold.split(separator)]
    return any(same(_plain(answer), _plain(part), tolerance) for part in parts)


def _listed(cell: Any) -> list[Any] | None:
    """A list, or one that a table holds as text."""
    if isinstance(cell, str) and cell.strip().startswith("["):
        try:
            cell = json.loads(cell)
        except (ValueError, RecursionError):
            return None
    return list(cell) if isinstance(cell, list | tuple) else None


def _numbers(cell: Any) -> tuple[float, ...] | None:
    found = _listed(cell)
    try:
        return None if not found else tuple(float(strict_number(value)) for value in found)
    except (ValueError, TypeError):
        return None


def _plain(cell: Any) -> Said:
    try:
        return (strict_number(cell),)
    except ValueError:
        text = str(cell).strip()
    if _GROUPED.fullmatch(text):  # 1,200.00 as people write it; what could mean two numbers stays a text
        found = parsers.get("decimal").parse(text)
        if found.ok and found.value is not None:
            return tuple(found.value)
    return text
