"""The page of many items: the sentence one may say about all of them, then every item in one table,
and each item's story behind it.

A delivered table, a repair of many fields and a run over many items all become an `rrf-item-table`
document first:

    head      title, sentence, and where known: subtitle, good (is all well?), verdicts (how many
              of each), figures ([label, value, note]), notes, refresh (seconds, while more is to
              come), facts ([name, value])
    columns   names; the one called `verdict` gets buttons, and the first one names the item
    rows      one list per item, in the order of the columns: texts, numbers, null
    details   optional, one entry per row: null, or a list of {heading, text} and {heading, columns,
              rows}: behind an item of a run its questions with the raw texts, how each was read,
              what it became, what was bought in which order, and the error that each purchase was
              to expose

Rows and details are data in the page, as text that is parsed as JSON and shown as text;
`assets/items.js` writes only the rows that are in sight, so that 100,000 of them stay quick.
Without the script the first rows are there all the same.
"""

from __future__ import annotations

import html
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rrf_design.documents import checked, sealed
from rrf_design.errors import InputError
from rrf_design.reporting._sentences import MEANINGS, common
from rrf_design.reporting.pages import (
    SIGNS,
    Card,
    Child,
    Markup,
    PageParts,
    amount,
    callout,
    cards,
    join,
    number,
    prose,
    section,
    table,
    tag,
    verdict_bar,
    visible,
)
from rrf_design.texts import digits, rounded_down, rounded_up
from rrf_design.verdict import Verdict, table_sentence

if TYPE_CHECKING:
    from rrf_design.checker.delivery import ProvenDelivery
    from rrf_design.problem import Problem
    from rrf_design.reporting.documents import PageSource

FIRST = 50
"""Rows that are there without the script, and on paper before it ran."""
CARRIED = 16_000_000
"""Characters of details that a page carries: the items that most need a look first, the others as
far as they fit.
"""


def _item_table_parts(document: Mapping[str, Any]) -> PageParts:
    """The page of an `rrf-item-table` document; InputError where a row does not fit the columns."""
    data = checked(document, "rrf-item-table", what="item table")
    head = data["head"]
    return PageParts(
        str(head["title"]),
        [section("Every item", items_table(data))],
        subtitle=str(head.get("subtitle") or ""),
        lead=delivery_lead(head),
        picture=verdict_bar(head.get("verdicts") or {}),
        facts=[(str(name), str(value)) for name, value in head.get("facts") or ()],
        refresh=head.get("refresh"),
    )


def delivery_page(document: Mapping[str, Any]) -> str:
    """The page of an `rrf-item-table` document as HTML."""
    return _item_table_parts(document).html()


def item_table_page(source: PageSource) -> PageParts:
    return _item_table_parts(source.data)


def delivered(source: PageSource) -> PageParts:
    """The page of an `rrf-delivery`: a delivered table."""
    return _item_table_parts(delivered_items(checked(source.data, "rrf-delivery", what="delivery")))


def batch_page(source: PageSource) -> PageParts:
    """The page of an `rrf-repair-batch`."""
    return _item_table_parts(_batch_delivery(source.data))


def delivery_lead(head: Mapping[str, Any]) -> Markup:
    """The sentence first, then how many there are of each verdict and what it cost."""
    kind = {True: "good", False: "bad", None: "plain"}[head.get("good")]
    shown = [Card(str(label), amount(value), str(note)) for label, value, note in head.get("figures") or ()]
    counts = head.get("verdicts") or {}
    shown = [
        Card(name, amount(int(counts[name])), MEANINGS[name], SIGNS[name]) for name in MEANINGS if counts.get(name)
    ] + shown
    notes = [prose(str(note)) for note in head.get("notes") or ()]
    return join(callout(prose(str(head["sentence"])), notes, kind=kind), cards(shown) if shown else None)


def items_table(data: Mapping[str, Any]) -> Markup:
    """All rows as data, a place for the script to show them, and the first rows as a plain
    table.
    """
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
    """Details row by row; None for what no longer fits. Items that nobody may rely on come
    first.
    """
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


SHOWN = 3
"""Values that a row shows; what lies behind it shows all."""

SIGNIFICANT = 5
"""Digits of bounds in a row, cut to the side on which they hold."""

Detail = dict[str, Any]


def run_delivery(
    data: Mapping[str, Any],
    answers: Iterable[Mapping[str, Any]] = (),
    problems: Mapping[str, Problem] | None = None,
) -> dict[str, Any]:
    """The items of a run; `answers` are its recorded ones and `problems` those of its items, where
    they are at hand: choices are words then.
    """
    bought: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for purchase in data["purchases"]:
        bought[str(purchase["item"])].append(purchase)
    said: dict[str, dict[str, Mapping[str, Any]]] = defaultdict(dict)
    for answer in answers:
        said[str(answer["item"])][str(answer["node"])] = answer
    rows, details = [], []
    for item in data["items"]:
        name = str(item["item"])
        repair = item.get("repair") or {}
        cost = sum(float(purchase["price"]) for purchase in bought[name])
        reason = str(repair.get("reason") or item.get("detail") or "")
        choices = choices_of((problems or {}).get(name))
        outcome = _outcome(item, repair, choices)
        rows.append([name or str(item["name"]), *outcome, cost, str(item["stopped_because"]), reason])
        details.append(_item_details(item, bought[name], said[name], choices))
    columns = ["item", "verdict", "values", "wrong", "bound", "certified margin", "cost", "stopped because", "reason"]
    content = {"head": run_head(data), "columns": columns, "rows": rows, "details": details}
    return sealed("rrf-item-table", content)


def _premise(items: Iterable[Mapping[str, Any]]) -> str:
    """What all consistent ones assume, or nothing."""
    return common([str(item.get("assumes", "")) for item in items if item["verdict"] == Verdict.CONSISTENT])


def run_head(data: Mapping[str, Any]) -> dict[str, Any]:
    """What a run over many items comes to."""
    premise = common(
        [str(item.get("assumes", "")) for item in data["items"] if Verdict(item["verdict"]) is Verdict.CONSISTENT]
    )
    return {
        "title": f"Run {data['run']}",
        "sentence": table_sentence(data["verdicts"], assumes=premise),
        "good": True if Verdict(data["verdict"]) is Verdict.CHECKED else None,
        "verdicts": data["verdicts"],
        "figures": [["spent", data["spent"], "in the unit of the file's costs"]],
    }


def _batch_delivery(data: Mapping[str, Any], *, title: str = "Repair of many fields") -> dict[str, Any]:
    """The fields of an `rrf-repair-batch`."""
    rows, details = [], []
    for entry in data["items"]:
        item = {**entry, "gamma_lower": entry.get("gamma_lower"), "repair": entry}
        rows.append([str(entry["field"]), *_outcome(item, entry, {}), str(entry.get("reason") or "")])
        details.append([_reasons(item), _answers(item, {}, {})])
    columns = ["field", "verdict", "values", "wrong", "bound", "certified margin", "reason"]
    premise = common(
        [str(entry.get("assumes", "")) for entry in data["items"] if Verdict(entry["verdict"]) is Verdict.CONSISTENT]
    )
    head = {
        "title": title,
        "sentence": table_sentence(data["verdicts"], item="field", assumes=premise),
        "good": True if Verdict(data["verdict"]) is Verdict.CHECKED else None,
        "verdicts": data["verdicts"],
        "notes": [f"Against the truth: {number(int(count))} × {name}" for name, count in data["failures"].items()],
    }
    return sealed("rrf-item-table", {"head": head, "columns": columns, "rows": rows, "details": details})


def delivered_items(
    data: Mapping[str, Any], stories: Sequence[list[Detail] | None] = (), *, proven: ProvenDelivery | None = None
) -> dict[str, Any]:
    """The rows of an `rrf-delivery`; `stories` is what was asked and answered about each, where it
    is at hand; `proven` what a test of the table proved: that is said first then.
    """
    rows, details = [], []
    fields = [str(value["field"]) for value in data["items"][0].get("values", ())] if data["items"] else []
    for place, item in enumerate(data["items"]):
        told = stories[place] if stories else None
        rows.append(_delivered_row(item))
        details.append([_delivered_reasons(item), *([_delivered_fields(item)] if fields else ()), *(told or ())])
    premise = _premise(data["items"])
    head = {
        "title": f"{data['recipe']}: what may be handed over",
        "subtitle": str(data["table"]),
        "sentence": table_sentence(data["verdicts"], assumes=premise),
        "good": True if Verdict(data["verdict"]) is Verdict.CHECKED else None,
        "verdicts": data["verdicts"],
        **({} if proven is None else proven_head(proven)),
    }
    own = [*fields, "verdict"] if fields else ["answer", "verdict", "bound", "raw"]
    columns = ["item", "rank", *own, "wrong", "cost", "reason"]
    return sealed("rrf-item-table", {"head": head, "columns": columns, "rows": rows, "details": details})


def proven_head(proven: ProvenDelivery) -> dict[str, Any]:
    """What leads the page of a table that was tested: the proven sentence and its counts."""
    return {
        "sentence": proven.sentence,
        "good": True if proven.reached else None,
        "figures": [
            ["may be wrong, at most", proven.bound, f"of {proven.rows:,} rows handed over"],
            ["looked at", proven.labels, f"by people; {proven.wrong_found:,} wrong, and fixed"],
            ["not checked", proven.remaining, "rows that nobody looked at"],
        ],
    }


def _delivered_row(item: Mapping[str, Any]) -> list[Any]:
    """An item with its value and what is said of it, or with the values of its fields."""
    if "values" in item:
        shown = [*(value["answer"] for value in item["values"]), item["verdict"]]
    else:
        bound = None if item["bound"] is None else rounded_up(item["bound"], SIGNIFICANT)
        shown = [item["answer"], item["verdict"], bound, item["raw"]]
    return [str(item["id"]), item["rank"], *shown, ", ".join(item["wrong"]), item["cost"], item["reason"]]


def _delivered_fields(item: Mapping[str, Any]) -> Detail:
    """Field by field, with what is said of each."""
    keys = ("field", "answer", "verdict", "bound", "raw", "assumes", "reason")
    return {
        "heading": "Fields",
        "columns": list(keys),
        "rows": [[value[key] for key in keys] for value in item["values"]],
    }


def _delivered_reasons(item: Mapping[str, Any]) -> Detail:
    rows = [
        ["verdict", item["verdict"]],
        ["because", item["reason"]],
        ["assumes", item["assumes"]],
        ["wrong", ", ".join(item["wrong"])],
        ["not readable", ", ".join(item["unread"])],
        ["who can decide it", item["check"]],
    ]
    return {"heading": "Why", "columns": ["", ""], "rows": [row for row in rows if row[1]]}


def _outcome(item: Mapping[str, Any], repair: Mapping[str, Any], choices: Choices) -> list[Any]:
    """Verdict, values, what is wrong, bound, margin."""
    values = repair.get("repaired") or {}
    shown = "; ".join(
        f"{name} {vector(value, choices.get(name))}"
        for name, value in list(values.items())[:SHOWN]
        if value is not None
    )
    bounds = [float(bound) for bound in (repair.get("bounds") or {}).values()]
    return [
        str(item["verdict"]),
        shown + ("; …" if shown and len(values) > SHOWN else ""),
        ", ".join(repair.get("support") or ()),
        rounded_up(max(bounds), SIGNIFICANT) if bounds else None,
        None if item.get("gamma_lower") is None else rounded_down(item["gamma_lower"], SIGNIFICANT),
    ]


def _item_details(
    item: Mapping[str, Any],
    bought: Sequence[Mapping[str, Any]],
    answers: Mapping[str, Mapping[str, Any]],
    choices: Choices,
) -> list[Detail]:
    """What lies behind one item of a run."""
    parts = [_reasons(item), _answers(item, answers, choices)]
    if bought:
        parts.append(_bought(item, bought, choices))
    for node, answer in answers.items():
        text = str((answer.get("request") or {}).get("prompt") or "")
        parts.append({"heading": f"{node}: asked", "text": text})
        parts.append({"heading": f"{node}: answered", "text": str((answer.get("reply") or {}).get("text") or "")})
    return parts


def _reasons(item: Mapping[str, Any]) -> Detail:
    repair = item.get("repair") or {}
    rows = [
        ["verdict", item["verdict"]],
        ["because", repair.get("reason")],
        ["assumes", item.get("assumes")],
        ["buying ended", " ".join(str(item.get(key) or "") for key in ("stopped_because", "detail")).strip()],
        ["not asked", ", ".join(item.get("unasked") or ())],
        ["not readable", ", ".join(item.get("unread") or ())],
    ]
    return {"heading": "Why", "columns": ["", ""], "rows": [row for row in rows if row[1]]}


def _answers(item: Mapping[str, Any], answers: Mapping[str, Mapping[str, Any]], choices: Choices) -> Detail:
    """Node by node: as it was read, under which label, and what it became."""
    repair = item.get("repair") or {}
    given, failed = item.get("answers") or {}, item.get("failed") or repair.get("erased") or {}
    values, wrong = repair.get("repaired") or {}, set(repair.get("support") or ())
    rows = []
    for node in dict.fromkeys([*given, *values, *(name for name in failed if name in (item.get("asked") or failed))]):
        read = given.get(node)
        value, off = values.get(node), (repair.get("error") or {}).get(node)
        if read is None and node not in failed and value is not None:
            read = [v + o for v, o in zip(value, off, strict=True)] if off is not None else value
        parsed = (answers.get(node) or {}).get("parsed") or {}
        own = choices.get(node)
        became = vector(value, own) if value is not None else ("not determined" if values else "")
        word = "wrong" if node in wrong else failed.get(node, "")
        rows.append([node, "" if read is None else vector(read, own), parsed.get("canonical") or "", became, word])
    return {"heading": "Answers", "columns": ["node", "read as", "label", "becomes", ""], "rows": rows}


def _bought(item: Mapping[str, Any], bought: Sequence[Mapping[str, Any]], choices: Choices) -> Detail:
    """What was bought, in order, and for the sake of which error."""
    reasons = {}
    for entry in item.get("trajectory") or ():
        if entry.get("support"):
            words = f"an error on {', '.join(entry['support'])} was seen least (margin {number(entry['gamma'], 4)})"
            reasons.update(dict.fromkeys(entry["names"], words))
    rows = [
        [
            purchase["name"],
            purchase["buys"] + (f" by {purchase['source']}" if purchase.get("source") else ""),
            purchase["outcome"],
            "" if purchase["value"] is None else vector(purchase["value"], choices.get(purchase["name"])),
            amount(purchase["price"]),
            reasons.get(purchase["name"], "asked at the beginning"),
            moment(purchase),
        ]
        for purchase in sorted(bought, key=lambda purchase: float(purchase.get("at") or 0.0))
    ]
    columns = ["bought", "what", "outcome", "value", "price", "why", "settled (UTC)"]
    return {"heading": "What was bought, and why", "columns": columns, "rows": rows}


def moment(purchase: Mapping[str, Any]) -> str:
    at = float(purchase.get("at") or 0.0)
    return datetime.fromtimestamp(at, tz=UTC).strftime("%Y-%m-%d %H:%M:%S") if at > 0 else ""


Choices = Mapping[str, Sequence[str]]
"""Of nodes and checks whose value is one of several choices: what each coordinate stands for."""


def choices_of(problem: Problem | None) -> Choices:
    """Those of a problem."""
    found: dict[str, Sequence[str]] = {}
    for node in () if problem is None else problem.nodes:
        parser = node.parser if isinstance(node.parser, Mapping) else {}
        inner = parser.get("of", parser)
        if isinstance(inner, Mapping) and inner.get("name") == "choice" and isinstance(inner.get("options"), list):
            found[node.id] = [str(option) for option in inner["options"]]
    anchors = () if problem is None else problem.anchors
    return found | {anchor.id: found[anchor.node] for anchor in anchors if anchor.node in found}


def vector(values: Any, choices: Sequence[str] | None = None) -> str:
    """An answer of one or several coordinates, with the digits it has; the word of a choice."""
    items = values if isinstance(values, list | tuple) else [values]
    if choices is not None and len(choices) == len(items):
        near = [abs(float(v) - 1) < 1e-6 for v in items]
        if near.count(True) == 1 and all(one or abs(float(v)) < 1e-6 for one, v in zip(near, items, strict=True)):
            return choices[near.index(True)]
    shown = ", ".join(amount(float(v)) for v in items[:8])
    return shown + (f", … ({len(items)} coordinates)" if len(items) > 8 else "")
