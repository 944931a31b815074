"""Transformations of a number: so many times as much, so much more, what is left of a whole,
another unit, its parts, its line items, its leading digits; of a day: days since another one; and
of a row: the same question once more with other numbers in it.

All but the last take the question over word for word and add one short sentence; a model that can't
follow it fails alone, and is found out. All but `rounded` are exact: T and offset are the numbers
of the sentence.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

from rrf_design.transforms._base import (
    BRACES,
    DAY,
    NUMBER,
    Options,
    Original,
    Transform,
    Transformed,
    is_number,
    written,
)

COPIED = "a number that is copied without being read, or read in another place"


class _OfNumbers(Transform):
    """Of one number, with numbers as its settings."""

    numbers: tuple[str, ...]

    def unfit(self, question: Original, options: Options) -> str:
        if question.answer != NUMBER:
            return f"it changes one number, and the answer is {question.answer}"
        for key in self.numbers:
            if key in options and not is_number(options[key]):
                return f"{key} = {options[key]!r} is neither a number nor one placeholder"
        return ""


class Scale(_OfNumbers):
    """k times as much, and so much more: y = k x + c."""

    name = "scale"
    says = "so many times as much"
    breaks = f"{COPIED}; not a wrong reading that is scaled with it"
    options = numbers = ("scale", "shift")

    def unfit(self, question: Original, options: Options) -> str:
        if options.get("scale") in (None, 0):
            return "give scale = a number that is not 0"
        return super().unfit(question, options)

    def write(self, question: Original, options: Options) -> Transformed:
        steps = [f"multiply the value by {written(options['scale'])}"]
        if "shift" in options:
            steps.append(f"add {written(options['shift'])} to it")
        sentence = f"\nBefore you write the answer down, {' and then '.join(steps)}."
        return Transformed(question.prompt + sentence, dict(options))

    def proposals(self, question: Original) -> Iterator[Any]:
        yield {"scale": 3}


class Plus(_OfNumbers):
    """So much more: y = x + c."""

    name = "plus"
    says = "so much more"
    breaks = COPIED
    options = numbers = ("plus", "shift")

    def unfit(self, question: Original, options: Options) -> str:
        if len(options) != 1:
            return "give plus = the number that is added"
        return super().unfit(question, options)

    def write(self, question: Original, options: Options) -> Transformed:
        (more,) = options.values()
        sentence = f"\nBefore you write the answer down, add {written(more)} to the value."
        return Transformed(question.prompt + sentence, {"shift": more})

    def proposals(self, question: Original) -> Iterator[Any]:
        yield {"plus": 19}


class Complement(_OfNumbers):
    """What is left of a whole: y = c − x."""

    name = "complement"
    says = "what is left of a whole"
    breaks = "the parts and the rest taken for each other; a number that is copied"
    options = numbers = ("complement",)

    def unfit(self, question: Original, options: Options) -> str:
        if "complement" not in options:
            return "give complement = the whole from which the value is taken away"
        return super().unfit(question, options)

    def write(self, question: Original, options: Options) -> Transformed:
        whole = written(options["complement"])
        sentence = f"\nInstead of that value, write what is left of {whole} when it is taken away: {whole} minus it."
        return Transformed(question.prompt + sentence, {"scale": -1.0, "shift": options["complement"]})

    def proposals(self, question: Original) -> Iterator[Any]:
        yield {"complement": 1000}


UNITS = {
    **{"cents": 100.0, "pence": 100.0, "percent": 100.0, "thousandths": 1000.0, "minutes": 60.0, "seconds": 60.0},
    **{"metres": 1000.0, "centimetres": 100.0, "millimetres": 10.0, "grams": 1000.0, "months": 12.0},
}
"""How many of each one of the next larger is: cents of a dollar, minutes of an hour, seconds of a
minute, metres of a kilometre, centimetres of a metre, millimetres of a centimetre.
"""


class Unit(_OfNumbers):
    """The same in another unit: y = k x."""

    name = "unit"
    says = "in another unit"
    breaks = "decimal and grouping marks read the wrong way round; a number that is copied"
    options, numbers = ("unit", "scale"), ("scale",)

    def unfit(self, question: Original, options: Options) -> str:
        if not isinstance(options.get("unit"), str) or not self._scale(options):
            known = ", ".join(UNITS)
            return f"give unit and scale = how many of them one of the old ones is; scale is known of {known}"
        return super().unfit(question, options)

    def _scale(self, options: Options) -> Any:
        return options.get("scale", UNITS.get(options["unit"]))

    def write(self, question: Original, options: Options) -> Transformed:
        return Transformed(f"{question.prompt}\nState the value in {options['unit']}.", {"scale": self._scale(options)})

    def proposals(self, question: Original) -> Iterator[Any]:
        if not question.whole:
            yield "cents"


class SummedParts(Transform):
    """The numbers that add up to it: x = y₁ + y₂ + …"""

    name = "parts"
    says = "the parts that add up to it"
    breaks = "a wrong amount that stands in the text: it must be taken apart"
    options = ("parts",)

    def unfit(self, question: Original, options: Options) -> str:
        names = options.get("parts")
        if not isinstance(names, list | tuple) or len({*map(str, names)}) < max(2, len(names)):
            return 'give parts = two names or more, as in ["net", "tax"]'
        return "" if question.answer == NUMBER else f"it takes one number apart, and the answer is {question.answer}"

    def write(self, question: Original, options: Options) -> Transformed:
        names = [str(name) for name in options["parts"]]
        form = "{" + ", ".join(f"{json.dumps(name)}: .." for name in names) + "}"
        sentence = f"\nInstead of that value, write the parts that add up to it. Return JSON only: {form}"
        return Transformed(question.prompt + sentence, parse={"json": names}, sums=True)


class LineItems(_OfNumbers):
    """All amounts that add up to it, however many there are: their sum is the value."""

    name = "line-items"
    says = "a list of all amounts that add up to it"
    breaks = "a wrong amount that stands in the text, such as a subtotal"
    options, numbers = ("line-items",), ()

    def write(self, question: Original, options: Options) -> Transformed:
        sentence = 'Instead of that value, list all amounts that add up to it. Return JSON only: {"items": [.., ..]}'
        return Transformed(f"{question.prompt}\n{sentence}", parse={"name": "json", "field": "items", "total": True})


class Rounded(_OfNumbers):
    """So many leading digits of it: approximate, off by half of the last one at most."""

    name = "rounded"
    says = "its leading digits"
    breaks = "a misplaced decimal mark; it sees nothing smaller"
    options, numbers = ("rounded",), ()

    def unfit(self, question: Original, options: Options) -> str:
        kept = options.get("rounded")
        if not isinstance(kept, int) or isinstance(kept, bool) or not 1 <= kept <= 6:
            return "give rounded = the number of digits that are kept, 1 to 6"
        return super().unfit(question, options)

    def write(self, question: Original, options: Options) -> Transformed:
        kept = options["rounded"]
        sentence = f"\nRound the value to {kept} significant digit{'s' * (kept > 1)}."
        return Transformed(question.prompt + sentence, radius=float(f"5e-{kept}"))


class IsoDay(Transform):
    """The same day in the one form that can be read in one way only."""

    name = "iso"
    says = "the day as YYYY-MM-DD"
    breaks = "a day in numbers of which nobody knows which is the month"
    options = ("iso",)

    def unfit(self, question: Original, options: Options) -> str:
        return (
            "" if question.answer == DAY else f'it changes a day (parse = "date"), and the answer is {question.answer}'
        )

    def write(self, question: Original, options: Options) -> Transformed:
        return Transformed(f"{question.prompt}\nWrite that day as YYYY-MM-DD, with the month in the middle.")

    def proposals(self, question: Original) -> Iterator[Any]:
        yield self.name


class DaysSince(Transform):
    """The number of days from a given day on, read back as a day: the same answer."""

    name = "days-since"
    says = "the number of days since another day"
    breaks = "day and month that are taken for each other; a day that is copied from another place"
    options = ("days-since",)

    def unfit(self, question: Original, options: Options) -> str:
        if question.answer != DAY:
            return f'it changes a day (parse = "date"), and the answer is {question.answer}'
        try:
            date.fromisoformat(str(options.get("days-since", "2000-01-01")))
        except ValueError:
            return f"days-since = {options['days-since']!r} is no day such as 2024-01-31"
        return ""

    def write(self, question: Original, options: Options) -> Transformed:
        start = str(options.get("days-since", "2000-01-01"))
        sentence = f"Instead of that day, write how many days after {start} it is, as one whole number."
        return Transformed(f"{question.prompt}\n{sentence}", parse={"name": "date", "days_since": start})

    def proposals(self, question: Original) -> Iterator[Any]:
        yield {"days-since": "2000-01-01"}


class ChangedRow(Transform):
    """The same question about a row in which some numbers are others (a metamorphic relation).

    The prompt speaks of columns that hold numbers; each that is named becomes scale · cell + shift,
    and whoever writes the recipe says what that does to the answer: scale, shift or both; nothing
    where it must stay.
    """

    name = "changed-row"
    says = "the same about a row with other numbers"
    breaks = "an answer that is known by heart, or taken from a number that does not matter"
    options = ("changed-row", "scale", "shift")

    def unfit(self, question: Original, options: Options) -> str:
        columns = options.get("changed-row")
        if not isinstance(columns, Mapping) or not columns:
            return "give changed-row = { COLUMN = { scale = 3 } }, and scale or shift of the answer if it changes"
        spoken = " ".join(BRACES.findall(question.prompt))
        for column, change in columns.items():
            if not re.search(rf"(?<![\w.]){re.escape(column)}\b", spoken) or not column.isidentifier():
                return f"changed-row: the prompt does not speak of {column!r}"
            if not isinstance(change, Mapping) or not change or not {*change} <= {"scale", "shift"}:
                return f"changed-row: {column} = {change!r} gives neither scale nor shift, as in {{ scale = 3 }}"
            if not all(is_number(number) for number in change.values()) or change.get("scale") == 0:
                return f"changed-row: {column}: scale and shift are numbers or one placeholder, and scale is not 0"
        moved = [options[key] for key in ("scale", "shift") if key in options]
        if moved and question.answer != NUMBER:
            return f"scale and shift change one number, and the answer is {question.answer}"
        return "" if all(map(is_number, moved)) else "scale and shift of the answer are numbers or one placeholder"

    def write(self, question: Original, options: Options) -> Transformed:
        sets = "".join(_set_to(column, change) for column, change in options["changed-row"].items())
        change = {key: options[key] for key in ("scale", "shift") if key in options}
        return Transformed(sets + question.prompt, change or None)


def _set_to(column: str, change: Mapping[str, Any]) -> str:
    """A command of the template: from here on the column says something else."""
    scale, shift = (written(change.get(key, default)) for key, default in (("scale", 1), ("shift", 0)))
    inner = [one.strip().removeprefix("{{").removesuffix("}}").strip() for one in (scale, shift)]
    return f"{{% set {column} = {column} | changed({', '.join(inner)}) %}}"
