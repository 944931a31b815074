"""Slots: every templated text of a recipe's long form, with what is expected there and how it is
read from a row.

A slot's kind follows from its place: a prompt is a text, a cost a number, `value` of a check a
number or an answer in words, `options` a list, `when` a condition. Slots of texts, offsets and
values may differ between items of one structure; what stands in the others decides the structure
(docs/algorithms.md, fact 21).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rrf_design.errors import InputError
from rrf_design.files import SECTIONS
from rrf_design.questions.recipe import Recipe
from rrf_design.questions.templates import TextTemplate, strict_number, template

Cells = Mapping[str, Any]
Path = tuple[str | int, ...]
SAME_FOR_ALL = {
    *(
        "id",
        "tail",
        "head",
        "node",
        "nodes",
        "family",
        "requires",
        "excludes",
        "blocks",
        "unit",
        "model",
        "deliver",
        "read_from",
        "tolerance",
        "veto",
    ),
    *("sum", "difference", "max_tokens", "trusted", "k", "wrong_checks", "at_least", "at_most", "dim"),
}
"""Keys that hold no placeholder."""
_SHORT_KEYS = {"value": "by", "source": "by", "parser": "parse", "offset": "change", "transport": "change"}
"""What keys of the long form are called in the short one."""


class SlotKind(StrEnum):
    """What is expected where a templated text stands."""

    TEXT = "text"
    NUMBER = "number"
    VALUE = "value"
    LIST = "list"
    WHEN = "when"
    EXPRESSION = "expression"
    VERIFIER = "verifier"


@dataclass(frozen=True, slots=True)
class Slot:
    """One templated text: where it stands in the long form, what is expected there, and whether it
    is the item's own.
    """

    section: str
    place: int
    path: Path
    kind: SlotKind
    template: TextTemplate
    own: bool
    where: str
    """The entry, key and line of the recipe, for messages."""
    inner: frozenset[str] = frozenset()
    """Names in it that are no columns: variables of the node, and what a verifier's prompt learns
    later.
    """

    @property
    def columns(self) -> frozenset[str]:
        return self.template.names - self.inner


def entries(recipe: Recipe, section: str) -> list[dict[str, Any]]:
    """The entries of a section of the long form; [problem] is a list of one."""
    found: Any = recipe.long.get(section, [])
    return [found] if isinstance(found, dict) else found


def find_slots(recipe: Recipe) -> tuple[Slot, ...]:
    """All slots of a recipe; InputError for a placeholder where none can be."""
    found = []
    for section in ("problem", *SECTIONS):
        for place, entry in enumerate(entries(recipe, section)):
            for path, text in _texts(entry):
                slot = _slot(recipe, section, place, path, text)
                if slot is not None:
                    found.append(slot)
    return tuple(found)


def _slot(recipe: Recipe, section: str, place: int, path: Path, text: str) -> Slot | None:
    entry = entries(recipe, section)[place]
    kind = _kind(section, path, entry)
    templated = any(mark in text for mark in ("{{", "{%", "{#"))
    # Without a placeholder only these need reading: `{x}` in a text may be a slip, a value may be
    # an answer in words.
    plain = {SlotKind.WHEN, SlotKind.EXPRESSION, SlotKind.VALUE} | ({SlotKind.TEXT} if "{" in text else set())
    if not templated and kind not in plain:
        return None
    key = str(path[0])
    origin = recipe.origins.get(entry.get("id", ""))
    short = origin is not None and origin.section in ("ask", "check")
    where = recipe.where(entry.get("id", ""), _SHORT_KEYS.get(key, key) if short else key)
    if key in SAME_FOR_ALL and kind is not SlotKind.TEXT:
        raise InputError(f"{where}: {key} is the same for every row and can't hold a placeholder")
    try:
        made = template(text)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    if kind is SlotKind.NUMBER and not made.one_placeholder:
        raise InputError(f"{where}: {text!r} must be a number, or one placeholder that stands for it")
    decides = (SlotKind.WHEN, SlotKind.LIST, SlotKind.NUMBER)
    own = kind not in decides or (section, key) in (("relations", "offset"), ("anchors", "value")) or key == "source"
    return Slot(section, place, path, kind, made, own, where, _inner(recipe, section, entry, kind, key))


def _kind(section: str, path: Path, entry: Mapping[str, Any]) -> SlotKind:
    key = path[0]
    if key == "when":
        return SlotKind.WHEN
    if key in ("prompt", "system", "name", "variables") or (key == "veto" and path[-1] in ("in_text", "returns")):
        return SlotKind.TEXT
    if key == "parser":
        listed = path[-1] in ("options", "tests") and (len(path) == 2 or path[1:-1] == ("of",))
        return SlotKind.LIST if listed else SlotKind.TEXT
    if key == "value" and section == "anchors":
        return SlotKind.VALUE if len(path) == 1 else SlotKind.NUMBER
    if key == "source":
        if len(path) == 1:
            return SlotKind.EXPRESSION if str(entry[key]).lstrip().startswith("expression") else SlotKind.TEXT
        if path[1] == "expression":
            return SlotKind.EXPRESSION
        if path[1] in ("tests", "expected") and len(path) == 2:
            return SlotKind.LIST
        return SlotKind.VERIFIER if path[1] == "prompt" and "verifier" in entry[key] else SlotKind.TEXT
    return SlotKind.NUMBER


def _inner(recipe: Recipe, section: str, entry: Mapping[str, Any], kind: SlotKind, key: str) -> frozenset[str]:
    if section == "nodes":
        return frozenset(entry.get("variables") or ()) if key != "variables" else frozenset()
    nodes = entries(recipe, "nodes")
    looked_at = entry.get("nodes") or [entry.get("node")]
    variables = {name for node in nodes if node.get("id") in looked_at for name in node.get("variables") or ()}
    if kind is SlotKind.VERIFIER:
        own = entry["source"].get("variables") or ()
        return frozenset({"answer", *(str(node.get("id")) for node in nodes), *own, *variables})
    return frozenset(variables) if kind is SlotKind.EXPRESSION else frozenset()


def _texts(entry: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Every text inside an entry, with the keys that lead to it."""
    if isinstance(entry, str) and path:
        yield path, entry
    elif isinstance(entry, Mapping):
        for key, value in entry.items():
            yield from _texts(value, (*path, key))
    elif isinstance(entry, list | tuple):
        for at, value in enumerate(entry):
            yield from _texts(value, (*path, at))


def read_text(slot: Slot, row: Cells) -> str:
    return slot.template.fill(row)


def read_number(slot: Slot, row: Cells) -> float:
    return strict_number(slot.template.value(row))


def read_list(slot: Slot, row: Cells) -> list[Any]:
    """A cell that is a list, or the text of one in JSON."""
    cell = slot.template.value(row)
    if isinstance(cell, str):
        try:
            cell = json.loads(cell)
        except (ValueError, RecursionError):
            raise ValueError(f'is {cell!r:.60}, not a list; in a CSV file write it as JSON, ["a", "b"]') from None
    if not isinstance(cell, list | tuple) or not cell:
        raise ValueError(f"is {cell!r:.60}, not a list with something in it")
    return [as_plain(one) for one in cell]


def read_condition(slot: Slot, row: Cells) -> bool:
    """Not empty: neither nothing nor false nor blanks. A 0 is something."""
    found = slot.template.value(row) if slot.template.one_placeholder else slot.template.fill(row)
    if isinstance(found, str):
        return bool(found.strip())
    return found is not None and found is not False and found != [] and found != {}


def read_exactly(name: str, cell: Any) -> int | float:
    """A cell as a variable of an expression: whole numbers of any length, others as numbers."""
    try:
        number = strict_number(cell)
    except ValueError as error:
        raise InputError(f"column {name!r} {error}") from None
    text = str(cell).strip()
    return int(text) if re.fullmatch(r"[+-]?\d{1,400}", text, re.ASCII) else number


def as_plain(value: Any) -> Any:
    """What a problem file can hold; anything else as it shows itself."""
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        return [as_plain(one) for one in value]
    return value if isinstance(value, str | bool | int | float) else str(value)


def deciding(slot: Slot, row: Cells) -> Any:
    """What of a slot decides the structure: whether, how much, how many."""
    if slot.kind is SlotKind.WHEN:
        return read_condition(slot, row)
    return len(read_list(slot, row)) if slot.kind is SlotKind.LIST else read_number(slot, row)


def some_text(slot: Slot, row: Cells) -> str:
    """A text that is not empty."""
    text = read_text(slot, row)
    if not text.strip():
        raise ValueError("is empty")
    return text


def is_blank(cell: Any) -> bool:
    """Whether nothing stands there."""
    return cell is None or (isinstance(cell, str) and not cell.strip())
