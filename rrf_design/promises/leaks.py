"""Truths that the questions already show: what no template may name can still stand in a column that is a copy of it.

The gold column itself reaches no text (`questions.preflight`, and rows are filled in without it). Here the columns that prompts do show are held against the truths of
the drawn items, and of no others: a column that is the truth in every one of them is refused, because a pilot of questions that show their answers says nothing about questions that do not. A
column that gives it away by rounding or by one line (truth = a · cell + b), and items whose text stands in the recipe itself as an example, are named and left to
the author: net amounts beside gross ones are honest questions.

What nothing here can see is said in docs/promises.md: texts that contain the truth are what reading an invoice is about.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from rrf_design.errors import Refused
from rrf_design.promises.sheets import AnswerSheet
from rrf_design.promises.truths import Said, Truth, worded
from rrf_design.questions.datasets import Dataset
from rrf_design.questions.slots import find_slots
from rrf_design.questions.templates import strict_number
from rrf_design.responses.parsed import Parser

FEWEST = 10
"""Items below which a column may be the truth by accident."""
FEWEST_VALUES = 3
"""Different truths below which any two columns lie on a line."""
LONG = 40
"""Characters of a text that stands nowhere else by accident."""
SHORT = 12
"""Characters below which a text may stand anywhere."""
DIGITS = 3
_SIGNS = re.compile(r"^(?:[A-Z]{3}(?![A-Za-z])|[€$£¥])\s*|\s*(?:(?<![A-Za-z])[A-Z]{3}|[€$£¥%])$")
_DIGITS = re.compile(r"[+-]?\d[\d.,'’ \u00a0\u202f]*")
_GAPS = re.compile(r"['’ \u00a0\u202f]")
TOLD = (("prompt",), ("system",), ("variables",), ("command",))
"""What of a check's source is shown to somebody who answers: a judge, a program."""


def leaks_of(dataset: Dataset, sheet: AnswerSheet, truths: Sequence[Truth]) -> list[dict[str, Any]]:
    """What should be looked at: `column`, `how` and `items`. Refused for a column that is a copy of the truth."""
    found = []
    for column, where in _shown(dataset).items():
        cells = [row.item.cells.get(column) for row in sheet.rows]
        pairs = [(cell, truth) for cell, truth in zip(cells, truths, strict=True) if truth.values]
        parsers = [row.parser for row, truth in zip(sheet.rows, truths, strict=True) if truth.values]
        if len(pairs) < FEWEST or len({truth.values for _, truth in pairs}) < 2:
            continue
        if all(_is(cell, truth, parser) for (cell, truth), parser in zip(pairs, parsers, strict=True)):
            raise Refused(
                f"{where}: column {column!r} is the truth in all {len(pairs)} drawn items; a pilot of questions that show their answers proves nothing about"
                " others. Take it out (as a check it may stay: by = { value = ... })"
            )
        how = _gives_away(pairs)
        if how is not None:
            found.append({"column": column, "how": how, "items": [row.id for row in sheet.rows]})
    return [*found, *_examples(dataset, sheet)]


def _shown(dataset: Dataset) -> dict[str, str]:
    """Columns that questions to models and judges show, and programs are given, with where they first are. What a check states is no question: it may be the truth."""
    found: dict[str, str] = {}
    for slot in find_slots(dataset.recipe):
        asked = slot.section == "nodes" and slot.path[0] in ("prompt", "system", "variables")
        told = slot.section == "anchors" and slot.path[0] == "source" and slot.path[1:2] in TOLD
        if asked or told:
            for column in sorted(slot.columns):
                found.setdefault(column, slot.where)
    return found


def _is(cell: Any, truth: Truth, parser: Parser | None = None) -> bool:
    """Whether a cell is one of the values that are right: as a number however it is written, as a list of numbers, as the same words, or as the parser reads short ones."""
    if any(truth.right((number,)) for number in _readings(cell)) or truth.right(_listed(cell)):
        return True
    plain = _plain(str(cell))
    words = {_plain(truth.text), *(_plain(value) for value in truth.values if type(value) is str)}
    if plain in words:
        return bool(plain)
    if not isinstance(cell, str) or not 0 < len(plain) < LONG or not worded(parser):
        return False
    assert parser is not None
    read = parser.parse(cell)
    return read.ok and truth.right(read.label if read.label is not None else read.value)


def _readings(cell: Any) -> list[float]:
    """The numbers that a cell may mean: 1234.5, 1,234.50, 1.234,50, each with a currency or a percent sign."""
    number = _number(cell)
    bare = _SIGNS.sub("", str(cell).strip()).replace("−", "-") if isinstance(cell, str) else ""
    found = [] if number is None else [number]
    if _DIGITS.fullmatch(bare):
        grouped = _GAPS.sub("", bare)
        for text in (grouped.replace(",", ""), grouped.replace(".", "").replace(",", ".")):
            read = _number(text)
            found += [] if read is None else [read]
    return found


def _listed(cell: Any) -> Said | None:
    """A list of numbers, or one that a table holds as text."""
    if isinstance(cell, str) and cell.strip().startswith("["):
        try:
            cell = json.loads(cell)
        except (ValueError, RecursionError):
            return None
    numbers = [_number(part) for part in cell] if isinstance(cell, list | tuple) else []
    return tuple(part for part in numbers if part is not None) if numbers and None not in numbers else None


def _gives_away(pairs: Sequence[tuple[Any, Truth]]) -> str | None:
    """How numbers in the column say the truth of every item; None where they do not."""
    points: list[tuple[float, float]] = []
    for cell, truth in pairs:
        number, value = next(iter(_readings(cell)), None), _single(truth.values)
        if number is None or value is None:
            return None
        points.append((number, value))
    if len({value for _, value in points}) < FEWEST_VALUES:
        return None
    for digits in range(DIGITS):
        if all(round(value, digits) == number for number, value in points):
            return f"it is the truth, rounded to {digits} decimals"
    line = _line(points)
    return None if line is None else f"the truth is {line}"


def _line(points: Sequence[tuple[float, float]]) -> str | None:
    """truth = a · cell + b through all points, in rationals up to the rounding of what was written."""
    first = points[0]
    other = next((point for point in points if point[0] != first[0]), None)
    if other is None:
        return None
    slope = (Fraction(other[1]) - Fraction(first[1])) / (Fraction(other[0]) - Fraction(first[0]))
    shift = Fraction(first[1]) - slope * Fraction(first[0])
    close = all(
        abs(slope * Fraction(x) + shift - Fraction(y)) <= Fraction(1, 10**9) * max(Fraction(1), abs(Fraction(y)))
        for x, y in points
    )
    return (
        f"{float(slope):.6g} · the cell {'+' if shift >= 0 else '−'} {abs(float(shift)):.6g}"
        if close and slope
        else None
    )


def _examples(dataset: Dataset, sheet: AnswerSheet) -> list[dict[str, Any]]:
    """Drawn items whose own text stands in the recipe, in a question or in what judges and programs are told: an example that is asked about is no evidence.

    A short text may stand there by accident, as names of kinds do; it counts where no other drawn item has it.
    """
    long = dataset.recipe.long
    told = [entry.get("source") for entry in long.get("anchors", [])]
    recipe = _plain(" ".join(_written([long.get("nodes", []), told])))
    named: dict[str, list[str]] = {}
    for column in _shown(dataset):
        texts = [_plain(str(row.item.cells.get(column))) for row in sheet.rows]
        often = Counter(texts)
        for row, text in zip(sheet.rows, texts, strict=True):
            alone = len(text) >= SHORT and often[text] == 1 and re.search(rf"(?<!\w){re.escape(text)}(?!\w)", recipe)
            if text in recipe and (len(text) >= LONG or alone):
                named.setdefault(column, []).append(row.id)
    return [
        {"column": column, "how": "its text stands in a prompt of the recipe, as an example does", "items": items}
        for column, items in named.items()
    ]


def _written(part: Any) -> Iterator[str]:
    if isinstance(part, str):
        yield part
    elif isinstance(part, Mapping | list | tuple):
        for inner in part.values() if isinstance(part, Mapping) else part:
            yield from _written(inner)


def _single(values: Sequence[Said]) -> float | None:
    value = values[0] if len(values) == 1 else None
    return value[0] if isinstance(value, tuple) and len(value) == 1 else None


def _number(cell: Any) -> float | None:
    try:
        return strict_number(cell)
    except ValueError:
        return None


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
