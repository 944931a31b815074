"""What can be said of a recipe before a row is seen, and of a table's columns before a row is filled in."""

from __future__ import annotations

from collections.abc import Collection
from copy import deepcopy
from typing import Any

from rrf_design.errors import InputError
from rrf_design.files import from_document, suggestion
from rrf_design.questions.filling import Filler
from rrf_design.questions.slots import SlotKind


def check_recipe(filler: Filler) -> None:
    """Refuse a recipe that no row could make a problem of; placeholders are taken for 1, or for a list of two."""
    document: dict[str, Any] = deepcopy(dict(filler.recipe.long))
    for slot in filler.slots:
        place: Any = document["problem"] if slot.section == "problem" else document[slot.section][slot.place]
        for key in slot.path[:-1]:
            place = place[key]
        if slot.kind is SlotKind.VALUE:
            del place[slot.path[-1]]  # a number, or as many as the parser reads
        elif slot.kind is SlotKind.NUMBER:
            place[slot.path[-1]] = 1.0
        elif slot.kind is SlotKind.LIST:
            place[slot.path[-1]] = [[1], [2]] if slot.path[-1] == "tests" else ["1", "2"]
    for section in ("nodes", "relations", "anchors"):
        for at, entry in enumerate(document.get(section, ())):
            if not isinstance(entry.get("id"), str) or not entry["id"]:
                raise InputError(f"{section.removesuffix('s')} number {at + 1}: id is missing")
            entry.pop("when", None)
            if section == "nodes" and "dim" not in entry and isinstance(entry.get("parser"), str | dict):
                entry["dim"] = max(1, filler.parser(at, entry["parser"]).dim)  # of classes there is one at least
    try:
        from_document(document)
    except InputError as error:
        raise InputError(filler.back(str(error))) from None


def check_columns(filler: Filler, columns: Collection[str], table: str) -> None:
    """Every placeholder names a column, the gold column is not among them, and no `{column}` is there for `{{ column }}`."""
    gold = filler.recipe.data.gold_column
    for slot in filler.slots:
        if gold is not None and gold in slot.columns:
            raise InputError(f"{slot.where}: {gold!r} is the gold column, which no question and no check may see")
        for name in sorted(slot.columns - set(columns)):
            raise InputError(f"{table}: no column {name!r}{suggestion(name, columns)} ({slot.where})")
        try:
            slot.template.refuse_single_braces(columns)
        except InputError as error:
            raise InputError(f"{error} ({slot.where})") from None
