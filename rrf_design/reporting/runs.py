"""The page of a live run: what was bought, what it cost, what came back, and what the answers
became.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from rrf_design.reporting._charts import Bar, Series, bar_chart, step_chart
from rrf_design.reporting._fieldview import FieldView, folded
from rrf_design.reporting._graph import draw_field
from rrf_design.reporting._repairs import answers, repaired_view
from rrf_design.reporting._sentences import MEANINGS, said
from rrf_design.reporting.delivery import choices_of, items_table, moment, run_delivery, run_head, vector
from rrf_design.reporting.designs import gamma
from rrf_design.reporting.pages import (
    MANY,
    SIGNS,
    Card,
    Child,
    Column,
    Markup,
    PageParts,
    Section,
    amount,
    at_least,
    callout,
    cards,
    figure,
    figures,
    join,
    listing,
    number,
    prose,
    section,
    table,
    tag,
    verdict_bar,
)
from rrf_design.verdict import Verdict

if TYPE_CHECKING:
    from rrf_design.problem import Problem
    from rrf_design.reporting.documents import PageSource

MANY_ITEMS = 60
"""Data sets of more fields than this are shown in one table only, not drawn field by field."""
DRAWN = 400
"""Purchases on a curve of money; more of them are thinned out."""


def run_page(source: PageSource) -> PageParts:
    """The page of a run document; with its problems (item to Problem) the fields are drawn too."""
    data = source.data
    items = data["items"]
    parts: list[Section] = []
    if len(items) > 1:
        parts.append(section("Every item", items_table(run_delivery(data, source.answers, source.problems))))
    else:
        parts += _item_sections(items[0], source)
    led = len(items) == 1 and _view(items[0], source) is None  # its money leads the page
    if money := _money(data)[1 if led else 0 :]:
        parts.append(section("Money", *money))
    if 1 < len(items) <= MANY_ITEMS:
        parts.append(section("The margins", *_items(items)))
    if source.problems and 1 < len(items) <= MANY_ITEMS:
        parts.append(section("Field by field", [_folded_item(item, source) for item in items]))
    parts.append(
        section(
            "Every purchase",
            folded("All purchases", _purchases(data["purchases"], source.problems), len(data["purchases"])),
        )
    )
    header = data.get("header", {})
    title = str(header.get("name") or "run")
    return PageParts(
        f"Run: {title}",
        parts,
        subtitle=f"Run {data['run']}, model {header.get('model', 'not said')}",
        lead=join(_words(data), cards(_figures(data))),
        picture=_picture(source),
        facts=_facts(data),
        refresh=source.refresh,
    )


def _picture(source: PageSource) -> Markup | None:
    """Of many fields how many have which verdict; of one its drawing, or what it cost."""
    items = source.data["items"]
    if len(items) > 1:
        return verdict_bar(source.data["verdicts"])
    if (view := _view(items[0], source)) is not None:
        return draw_field(view, open_rows=0)
    return join(_money(source.data)[:1])


def _view(item: Mapping[str, Any], source: PageSource) -> FieldView | None:
    """The field of an item, with what its answers became; None where its problem is not known."""
    alone = len(source.data["items"]) == 1
    problem = source.problems.get(str(item["item"])) or (source.problem if alone else None)
    if problem is None:
        return None
    repair = item.get("repair")
    if repair and repair.get("repaired"):
        return repaired_view(problem, repair)
    known = {*problem.node_by_id, *problem.block_by_id}
    return FieldView(problem, [n for n in item["selected"] if n in known])


def _figures(data: Mapping[str, Any]) -> list[Card]:
    items = data["items"]
    reached = sum(bool(item["reached"]) for item in items)
    wrong = sum(len((item.get("repair") or {}).get("support") or ()) for item in items)
    ks = sorted({int(item["k"]) for item in items})
    alone = len(items) == 1
    stopped = str(data["stopped_because"])
    result = [Card("stopped because", stopped)]
    if not alone:
        result = [Card("fields", number(len(items)), f"stopped because: {stopped}")]
    if alone:
        item = items[0]
        goal, verdict = item.get("goal"), str(item["verdict"])
        wanted = "no goal named" if goal is None else f"goal {number(goal)}"
        sure = float(item.get("robust_lower", item["gamma_lower"]))
        left = "" if sure >= item["gamma_lower"] else f", {at_least(sure)} of it with uncertain relations"
        result.insert(0, Card("verdict", verdict, MEANINGS[verdict], SIGNS[verdict]))
        note = f"lower bound{left}; {wanted}: {'reached' if item['reached'] else 'not reached'}"
        kind = "good" if item["reached"] else "bad"
        result.append(Card(f"certified margin {gamma(int(item['k']))}", at_least(item["gamma_lower"]), note, kind))
    else:
        counts = data["verdicts"]
        result += [Card(name, number(counts[name]), MEANINGS[name], SIGNS[name]) for name in MEANINGS if counts[name]]
        note = f"k = {', '.join(map(str, ks))}; what was bought and read, before any answer is judged"
        result.append(Card("designs that reach their goal", f"{reached} of {len(items)}", note))
    lost = f"; {number(data['lost'])} of it lost to a crash" if data.get("lost") else ""
    money = f"; money {number(data['money'])}" if data.get("money") else ""
    result.append(Card("spent", number(data["spent"]), f"in the unit of the file's costs{lost}"))
    result.append(Card("model calls", number(int(data["calls"])), f"{number(len(data['purchases']))} purchases{money}"))
    result.append(Card("answers found wrong", number(wrong), f"in {len(items)} field{'s' if len(items) > 1 else ''}"))
    return result


def _words(data: Mapping[str, Any]) -> Markup:
    """What may be relied on, and whether more is to come."""
    items = data["items"]
    waiting = f"{data['open_reviews']} reviews by people are still open." if data.get("open_reviews") else ""
    if data["stopped_because"] in UNFINISHED:
        waiting = f"The run is not finished ({data['stopped_because']}): this is how it stands. {waiting}".strip()
    if len(items) == 1:
        ended = f"Buying ended because: {data['stopped_because']}" + (f": {data['detail']}" if data["detail"] else "")
        return said(items[0].get("repair"), ended, waiting)
    ended = f"Buying ended because: {data['stopped_because']}."
    kind = "unsure" if waiting else SIGNS[Verdict(data["verdict"])]
    return callout(prose(run_head(data)["sentence"]), prose(ended), prose(waiting) if waiting else None, kind=kind)


UNFINISHED = ("paused", "pending", "unfinished")


def _money(data: Mapping[str, Any]) -> list[Child]:
    bought = sorted(data["purchases"], key=lambda p: float(p.get("at") or 0.0))
    settings = data.get("header", {}).get("settings") or {}
    times, unit = _times(data, bought)
    parts: list[Child] = [_spent(bought, times, unit, "price", "spent (unit of costs)", settings.get("budget"))]
    if data.get("money"):
        label = "paid to the model's provider (its currency)"
        parts.append(_spent(bought, times, unit, "money", label, settings.get("money")))
    return parts


def _spent(
    bought: Sequence[Mapping[str, Any]], times: list[float], unit: str, what: str, label: str, limit: float | None
) -> Markup:
    steps = [0.0, *accumulate(float(p.get(what) or 0.0) for p in bought)]
    names = ["start", *(f"{p['item'] + ' ' if p['item'] else ''}{p['name']}" for p in bought)]
    kept = _thinned(len(steps))
    series = Series(label, [times[i] for i in kept], [steps[i] for i in kept], labels=[names[i] for i in kept])
    picture = step_chart(series, label, limit, x_label=unit, target_name="budget")
    every = "purchase by purchase" if len(kept) == len(steps) else f"at {len(kept)} of {len(steps)} moments"
    return figure(picture, caption=f"Money over time: {label}, {every}.")


def _thinned(count: int) -> list[int]:
    """At most DRAWN places, evenly, with the first and the last among them."""
    if count <= DRAWN:
        return list(range(count))
    return [round(i * (count - 1) / (DRAWN - 1)) for i in range(DRAWN)]


def _times(data: Mapping[str, Any], bought: Sequence[Mapping[str, Any]]) -> tuple[list[float], str]:
    """When each purchase was settled, after the run's beginning; only their order where the
    document has no times.
    """
    moments = [float(p.get("at") or 0.0) for p in bought]
    if not moments or min(moments) <= 0:
        return [float(i) for i in range(len(bought) + 1)], "purchases, in order"
    created = data.get("header", {}).get("created")
    began = min(moments[0], datetime.fromisoformat(str(created)).timestamp() if created else moments[0])
    size, unit = next(((s, u) for s, u in _UNITS if moments[-1] - began >= 2 * s), _UNITS[-1])
    return [0.0, *((at - began) / size for at in moments)], f"time since the beginning ({unit})"


_UNITS = ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"))


def _items(items: Sequence[Mapping[str, Any]]) -> list[Child]:
    k = sorted({int(item["k"]) for item in items})
    bars = []
    for item in items:
        lower, upper = float(item["gamma_lower"]), float(item["gamma"])
        bars.append(Bar(str(item["item"] or item["name"]), lower, lower, upper, str(item["stopped_because"])))
    chart = bar_chart(bars, label="field", value_label=f"certified margin (k = {', '.join(map(str, k))})")
    return [figure(chart, caption="The certified margin of each field.")]


def _folded_item(item: Mapping[str, Any], source: PageSource) -> Markup:
    """Everything about one field of a data set, behind a line that sums it up."""
    wrong = ", ".join((item.get("repair") or {}).get("support") or ()) or "none"
    name, k = item["item"] or item["name"], int(item["k"])
    summary = (
        f"{name}: {item['verdict']}; certified {gamma(k)} = {at_least(item['gamma_lower'], 4)}; wrong: {wrong};"
        f" {item['stopped_because']}"
    )
    inside = [[tag("h3", part.heading), part.content] for part in _item_sections(item, source)]
    return tag("details", tag("summary", summary), inside)


def _item_sections(item: Mapping[str, Any], source: PageSource) -> list[Section]:
    alone = len(source.data["items"]) == 1
    repair = item.get("repair")
    problem = source.problems.get(str(item["item"])) or (source.problem if alone else None)
    parts = []
    content: list[Child] = []
    if repair and repair.get("repaired"):
        content += [None if alone else said(repair), answers(repair, item.get("answers"), problem=problem)]
    else:
        reason = (repair or {}).get("reason", "the run has not come to its end")
        content.append(callout(prose(f"No repair: {reason}."), kind="bad"))
        choices = choices_of(problem)
        rows = [[node, vector(value, choices.get(node))] for node, value in item.get("answers", {}).items()]
        content.append(table(["node", "answer"], rows))
    if item.get("failed"):
        rows = [[node, str(why)] for node, why in item["failed"].items()]
        content.append(
            table(["gave no value", "why"], rows, caption="Not every question was answered in a way that can be read")
        )
    parts.append(section("Answers, and what they became", *content))
    asked = [_asked(answer) for answer in source.answers if str(answer["item"]) == str(item["item"])]
    if asked and alone:  # of many items it stands behind each row of the table
        parts.append(section("Questions and raw answers", asked))
    curve = _trajectory(item, float(source.data["spent"]) if alone else None)
    if curve is not None:
        parts.append(section("The margin as it was bought", curve))
    if not alone and (view := _view(item, source)) is not None:  # alone, it leads the page
        parts.append(section("The field", draw_field(view)))
    return parts


def _asked(answer: Mapping[str, Any]) -> Markup:
    """One question as it was sent, and the text that came back."""
    request, reply, parsed = (answer.get(key) or {} for key in ("request", "reply", "parsed"))
    read = parsed.get("canonical") or parsed.get("detail") or parsed.get("status") or ""
    return tag(
        "details",
        tag("summary", f"{answer['node']}: {reply.get('outcome', '')}; read as: {read}"),
        tag("h3", "Asked"),
        tag("pre", str(request.get("prompt") or "")),
        tag("h3", "Answered"),
        tag("pre", str(reply.get("text") or "")),
    )


def _trajectory(item: Mapping[str, Any], spent_at_end: float | None) -> Markup | None:
    rounds = [entry for entry in item.get("trajectory", []) if "gamma" in entry]
    if not rounds:
        return None
    margin, whose = gamma(int(item["k"])), "" if spent_at_end is not None else " by the whole run"
    end = {**item, "committed": max(float(rounds[-1]["committed"]), spent_at_end or 0.0)}
    keys = ("committed", "gamma", "gamma_lower", "gamma")
    words = [*(f"before {', '.join(entry['names'])}" for entry in rounds), "at the end"]
    series = Series.of("margin", (*rounds, end), *keys, labels=words)
    label = f"committed{whose} (unit of costs)"
    picture = step_chart(series, f"margin {margin}", item.get("goal"), x_label=label, target_name="goal")
    return figure(picture, caption=f"{margin} before each purchase and at the end, with its proven lower bound.")


def _purchases(bought: Sequence[Mapping[str, Any]], problems: Mapping[str, Problem]) -> Markup:
    choices = {name: choices_of(problem) for name, problem in problems.items()}

    def value(purchase: Mapping[str, Any]) -> str:
        own = choices.get(str(purchase["item"]), {})
        return "" if purchase["value"] is None else vector(purchase["value"], own.get(purchase["name"]))

    made = listing(
        bought[:MANY],
        Column("field", "item"),
        Column("purchase", "name"),
        Column("what", "buys"),
        Column("outcome", "outcome"),
        Column("value", value),
        figures("price (unit of costs)", lambda p: amount(p["price"])),
        figures("attempt", lambda p: number(int(p["attempt"]) + 1)),
        Column("settled (UTC)", moment),
        filled=True,
    )
    left = len(bought) - MANY
    more = prose(f"{number(left)} more purchases are not shown; the document has them all.") if left > 0 else None
    return join(made, more)


def _facts(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    header = data.get("header", {})
    facts = [("run", str(data["run"])), ("model", str(header.get("model", "not said")))]
    facts += [(f"model {name}", str(value)) for name, value in (header.get("identity") or {}).items()]
    of_program = ("seed", "program", "revision", "python")
    facts += [(name, str(header[name])) for name in of_program if header.get(name) not in (None, "")]
    for item, value in list((header.get("digests") or {}).items())[:5]:
        facts.append((f"digest of the problem {item}".rstrip() + " (SHA-256)", str(value)))
    return facts
