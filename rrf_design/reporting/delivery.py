"""The page of many items: the sentence one may say about all of them, then every item in one table, and each item's story behind it.

A delivered table, a repair of many fields and a run over many items all become an `rrf-item-table` document first:

    head      title, sentence, and where known subtitle, good (is all well?), verdicts (how many of each), figures
              ([label, value, note]), notes, refresh (seconds; while more is to come), facts ([name, value])
    columns   names; the one called `verdict` gets buttons, and the first one names the item
    rows      one list per item, in the order of the columns: texts, numbers, null
    details   optional, one entry per row: null, or a list of {heading, text} and {heading, columns, rows}

Rows and details are data in the page, as text that is parsed as JSON and shown as text; `assets/items.js` writes only the rows
that are in sight, so that 100,000 of them stay quick. Without the script the first rows are there all the same.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rrf_design.amounts import digits
from rrf_design.documents import checked
from rrf_design.errors import InputError
from rrf_design.reporting.markup import Child, Markup, join, tag, visible
from rrf_design.reporting.pages import Card, amount, callout, cards, page, prose, section, table
from rrf_design.reporting.sentences import MEANINGS, SIGNS
from rrf_design.verdict import Verdict

if TYPE_CHECKING:
    from rrf_design.reporting.documents import PageSource

FIRST = 50
"""Rows that are there without the script, and on paper before it ran."""
CARRIED = 16_000_000
"""Characters of details that a page carries: the items that most need a look first, the others as far as they fit."""


def delivery_page(document: Mapping[str, Any]) -> str:
    """The page of an `rrf-item-table` document; InputError where a row does not fit the columns."""
    data = checked(document, "rrf-item-table", what="item table")
    head = data["head"]
    return page(
        str(head["title"]),
        [section("Every item", items_table(data))],
        subtitle=str(head.get("subtitle") or ""),
        lead=delivery_lead(head),
        facts=[(str(name), str(value)) for name, value in head.get("facts") or ()],
        refresh=head.get("refresh"),
    )


def item_table_page(source: PageSource) -> str:
    return delivery_page(source.data)


def delivered(source: PageSource) -> str:
    """The page of an `rrf-delivery`: a delivered table."""
    from rrf_design.reporting.items import delivered_items

    return delivery_page(delivered_items(checked(source.data, "rrf-delivery", what="delivery")))


def batch_page(source: PageSource) -> str:
    """The page of an `rrf-repair-batch`."""
    from rrf_design.reporting.items import batch_delivery

    return delivery_page(batch_delivery(source.data))


def delivery_lead(head: Mapping[str, Any]) -> Markup:
    """The sentence first, then how many there are of each verdict and what it cost."""
    kind = {True: "good", False: "bad", None: "unsure"}[head.get("good")]
    shown = [Card(str(label), amount(value), str(note)) for label, value, note in head.get("figures") or ()]
    counts = head.get("verdicts") or {}
    shown = [
        Card(name, amount(int(counts[name])), MEANINGS[name], SIGNS[name]) for name in MEANINGS if counts.get(name)
    ] + shown
    notes = [prose(str(note)) for note in head.get("notes") or ()]
    return join(callout(prose(str(head["sentence"])), notes, kind=kind), cards(shown) if shown else None)


def items_table(data: Mapping[str, Any]) -> Markup:
    """All rows as data, a place for the script to show them, and the first rows as a plain table."""
    columns = [visible(str(name)) for name in data["columns"]]
    rows = data["rows"]
    for index, row in enumerate(rows):
        if len(row) != len(columns):
            raise InputError(f"delivery: row {index + 1} has {len(row)} cells, there are {len(columns)} columns")
    details = data.get("details") or []
    if details and len(details) != len(rows):
        raise InputError(f"delivery: {len(details)} details for {len(rows)} rows")
    cells = [[_cell(cell) for cell in row] for row in rows]
    kept = list(_carried(cells, columns, details))
    text = json.dumps(
        {"columns": columns, "rows": cells, "details": kept},
        ensure_ascii=False,
        separators=(",", ":"),
        allow_nan=False,
    )
    left = sum(bool(entry) for entry in details) - sum(bool(entry) for entry in kept)
    more = (
        f"The page would be too large with everything: what lies behind {left} items is in the document only."
        if left
        else None
    )
    plain = table(columns, [[_shown(cell) for cell in row] for row in cells[:FIRST]], most=FIRST)
    rest = len(cells) - FIRST
    return tag(
        "div",
        prose(more) if more else None,
        tag("div", class_="tools"),
        tag("div", plain, class_="fallback"),
        tag("p", f"… and {rest} more", class_="more fallback") if rest > 0 else None,
        tag("pre", Markup(html.escape(text, quote=False)), class_="data", hidden=True),
        tag("dialog", class_="behind"),
        class_="items",
    )


def _carried(
    rows: Sequence[Sequence[Any]], columns: Sequence[str], details: Sequence[Any]
) -> Iterator[list[dict[str, Any]] | None]:
    """Details row by row; None for what no longer fits. Items that nobody may rely on come first."""
    place = columns.index("verdict") if "verdict" in columns else None
    ranks: dict[Any, int] = {verdict.value: verdict.rank for verdict in Verdict}

    def need(index: int) -> int:
        return 0 if place is None else -ranks.get(rows[index][place], 0)

    left, fits = CARRIED, set()
    for index in sorted(range(len(details)), key=need):
        if details[index]:
            left -= len(json.dumps(details[index], ensure_ascii=False))
            if left < 0:
                break
            fits.add(index)
    for index, entry in enumerate(details):
        yield [_part(part) for part in entry] if index in fits else None


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {"heading": visible(str(part["heading"]))}
    if "text" in part:
        made["text"] = visible(str(part["text"]))
    else:
        made["columns"] = [visible(str(name)) for name in part["columns"]]
        made["rows"] = [[_cell(cell) for cell in row] for row in part["rows"]]
    return made


def _cell(cell: Any) -> str | int | float | None:
    """Texts with nothing hidden in them; numbers as they are; lists and the like as text."""
    if cell is None or (isinstance(cell, int) and not isinstance(cell, bool)):
        return cell
    if isinstance(cell, float):
        return float(digits(cell)) if cell - cell == 0 else None
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, list | tuple):
        return ", ".join("" if part is None else visible(str(part)) for part in cell)
    return visible(str(cell))


def _shown(cell: str | int | float | None) -> Child:
    return "" if cell is None else str(cell)
