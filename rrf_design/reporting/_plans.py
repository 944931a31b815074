"""Pages of plans and frontiers: what to buy, how the margin grows with it, and how far from the
best it can be.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from math import inf, nan
from typing import TYPE_CHECKING, Any

from rrf_design.goal import CERTAIN
from rrf_design.reporting._charts import Series, step_chart
from rrf_design.reporting._fieldview import FieldView
from rrf_design.reporting._graph import draw_field
from rrf_design.reporting.designs import facts_of, gamma
from rrf_design.reporting.pages import (
    Card,
    Column,
    Markup,
    PageParts,
    amount,
    at_least,
    at_most,
    callout,
    cards,
    figure,
    figures,
    join,
    listing,
    number,
    prose,
    section,
)
from rrf_design.texts import listed

if TYPE_CHECKING:
    from rrf_design.problem import Problem
    from rrf_design.reporting.documents import PageSource

STATUS = {
    "optimal": ("good", "proven: no design within the budget and the rules does better by more than the stated gap"),
    "feasible": ("unsure", "a valid design; the gap says how far a better one could be"),
    "infeasible": ("bad", "the target is out of reach: proven; this is the best that the money can buy"),
}


def plan_page(source: PageSource) -> PageParts:
    """The page of a plan; with its problem, the field is drawn with what is bought."""
    data, k = source.data, _k(source)
    parts = [
        section("What to buy, in this order", _steps(data, k)),
    ]
    curve = _curve(source, k)
    if source.problem is not None:
        parts.append(section("The field when everything is bought", draw_field(_view(source.problem, data))))
    if data.get("notes"):
        parts.append(section("Notes", [prose(str(note)) for note in data["notes"]]))
    wish = f"target {number(data.get('target'))}"
    if data.get("budget") is not None:
        wish = f"budget {amount(data['budget'])}"
    return PageParts(
        f"Plan for {_name(source)}",
        parts,
        subtitle=f"k = {k}, {wish}, method {data.get('method', 'not said')}",
        lead=join(_words(data, k), cards(_figures(data, k))),
        picture=curve,
        facts=_facts(source),
    )


def frontier_page(source: PageSource) -> PageParts:
    """The page of a frontier: the best margin that each amount of money buys, with the bound on
    anything better; where asking again is on sale, the error that each amount promises.
    """
    data, k = source.data, _k(source)
    if data.get("of_error"):
        return _error_page(source)
    points = [dict(point) for point in data["points"]]
    for p in points:
        p["upper"] = inf if p.get("upper_bound") is None else max(float(p["upper_bound"]), float(p["gamma"]))
        p["lower"] = nan if p.get("gamma_lower") is None else float(p["gamma_lower"])
    labels = [f"{len(p['selected'])} bought, {p['status']}" for p in points]
    series = Series.of("best margin", points, "cost", "gamma", "lower", "upper", labels=labels)
    costs, best = series.x, max(series.y, default=None)
    picture = step_chart(series, f"best margin {gamma(k)}", _target(source))
    table = listing(
        points,
        figures("cost (unit of costs)", lambda p: amount(p["cost"])),
        figures(gamma(k), lambda p: number(float(p["gamma"]))),
        figures("proven at least", lambda p: at_least(p["lower"], 7)),
        figures("nothing for this money beats", lambda p: at_most(p["upper"], 7)),
        Column("status", "status"),
        Column("buys", lambda p: ", ".join(p["selected"]) or "nothing"),
    )
    positive = next((p for p in points if p["gamma"] > 0), None)
    text = "No amount of money on this frontier buys a positive margin."
    if positive is not None:
        text = (
            f"The first positive margin costs {amount(positive['cost'])}; the largest, {number(series.y[-1])}, costs"
            f" {amount(costs[-1])}."
        )
    words = (
        f"The best {gamma(k)} for each amount: proven from below for the design that is named, and from above for"
        " every design of that cost. The band is what is not yet settled."
    )
    parts = [section("What each point buys", table)]
    if source.problem is not None and points:
        parts.append(section("The field at the last point", draw_field(_view(source.problem, points[-1]))))
    span = f"from cost {number(costs[0] if costs else None)} to {number(costs[-1] if costs else None)}"
    lead = cards(
        [Card("points", number(len(points)), span), Card(f"largest margin {gamma(k)}", number(best), f"k = {k}")]
    )
    return PageParts(
        f"Frontier of {_name(source)}",
        parts,
        subtitle=f"The best margin for every budget, k = {k}",
        lead=join(callout(prose(text), kind="bad" if positive is None else "plain"), lead),
        picture=figure(picture, caption=words),
        facts=_facts(source),
    )


def _error_page(source: PageSource) -> PageParts:
    """The page of a frontier where asking again is on sale: the error that each amount of money
    promises.
    """
    k, points = _k(source), source.data["points"]
    promised = [p for p in points if p.get("error_bound") is not None]
    keys = ("cost", "error_bound", "error_floor", "error_bound")
    series = Series.of("promised error", promised, *keys, labels=[_purchase(p) for p in promised])
    picture = step_chart(series, "promised error (unit of answers)")
    table = listing(
        points,
        figures("cost (unit of costs)", lambda p: amount(p["cost"])),
        figures("promised error", lambda p: at_most(p["error_bound"], 7)),
        figures("nothing for this money promises less than", lambda p: at_least(p["error_floor"], 7)),
        figures(gamma(k), lambda p: number(p["gamma"])),
        Column("status", "status"),
        Column("buys", _purchase),
    )
    text = "No amount of money on this frontier promises any error."
    if promised:
        first, last = ((at_most(p["error_bound"], 7), amount(p["cost"])) for p in (promised[0], promised[-1]))
        text = (
            f"The first promise, an error of at most {first[0]}, costs {first[1]}; the smallest, {last[0]}, costs"
            f" {last[1]}."
        )
    drawn = figure(picture, caption="How the promised error falls with money: a larger margin and less noise.")
    parts = [section("What each point buys", table)]
    return PageParts(
        f"Frontier of {_name(source)}",
        parts,
        subtitle=f"The smallest promised error for every budget, k = {k}",
        lead=callout(prose(text), kind="plain" if promised else "bad"),
        picture=drawn if promised else None,
        facts=_facts(source),
    )


def _purchase(point: Mapping[str, Any]) -> str:
    """What a point buys and how often it asks, in words."""
    asked = [f"{name} asked {times} times" for name, times in point.get("repeats", {}).items()]
    return ", ".join([*point["selected"], *asked]) or "nothing"


def _k(source: PageSource) -> int:
    if source.data.get("k") is not None:
        return int(source.data["k"])
    return source.problem.k if source.problem is not None else 1


def _target(source: PageSource) -> float | None:
    value = source.data.get("target")
    if value is None and source.problem is not None:
        value = source.problem.target
    return None if value is None else float(value)


def _name(source: PageSource) -> str:
    if source.problem is not None:
        return source.problem.name
    named = source.data.get("problem")
    return named if isinstance(named, str) else "a problem"


def _facts(source: PageSource) -> list[tuple[str, str]]:
    if source.problem is not None:
        return facts_of(source.problem)
    return [("problem", _name(source)), ("digest of the problem (SHA-256)", str(source.data.get("digest", "not said")))]


def _figures(data: Mapping[str, Any], k: int) -> list[Card]:
    kind, meaning = _status(data)
    lower, upper, budget = data.get("gamma_lower"), data.get("gamma_upper"), data.get("budget")
    settled = lower is not None and upper is not None
    proven = f"proven between {at_least(lower, 7)} and {at_most(upper, 7)}" if settled else ""
    limit = "" if budget is None else f"; budget {amount(budget)}"
    gap = f"proven bound on every admissible design; gap {number(100 * data['gap'], 3)} %"
    best = f"best possible {gamma(k)}" + (f", {CERTAIN}" if data.get("objective") == "robust" else "")
    return [
        Card(f"margin {gamma(k)} when bought", number(data["gamma"]), proven, "good" if data["gamma"] > 0 else "bad"),
        Card("cost", amount(data["cost"]), f"in the unit of the file's costs{limit}"),
        Card(best, at_most(data["upper_bound"]), gap),
        Card("status", str(data["status"]), meaning, kind),
    ]


def _status(data: Mapping[str, Any]) -> tuple[str, str]:
    """The sign and the meaning of a plan's status; a plan for a target is about cost."""
    kind, meaning = STATUS.get(str(data["status"]), ("plain", ""))
    if data["status"] == "optimal" and data.get("target") is not None:
        meaning = "proven: no design that reaches the target costs less"
    elif data["status"] == "optimal" and data.get("least_cost"):
        meaning += ", and none that does as well costs less"
    return kind, meaning


def _words(data: Mapping[str, Any], k: int) -> Markup:
    kind, meaning = _status(data)
    text = "Buy nothing: no purchase was found that is worth its cost."
    if data["selected"]:
        bought = listed(data["selected"], 12)
        text = f"Buy {bought} for {amount(data['cost'])}: the margin {gamma(k)} is {number(data['gamma'])} then."
    if data.get("wanted") is not None and data.get("robust_lower") is not None:
        text += f" The problem's goal asks for a margin of {number(data['wanted'])};"
        text += f" certain are {at_least(data['robust_lower'], 7)}" + _apart(data) + "."
    if data.get("cost_bound") is not None and data.get("target") is not None:
        text += f" Nothing cheaper than {amount(data['cost_bound'])} reaches the target."
    return callout(prose(text), prose(f"{str(data['status']).capitalize()}: {meaning}."), kind=kind)


def _apart(data: Mapping[str, Any]) -> str:
    """Which margin that is, and what error is promised: a goal of an error is held against γ
    itself, a target against what uncertain relations leave of it.
    """
    lower, error = data.get("gamma_lower"), data.get("error_bound")
    text = f" {CERTAIN}" if lower is not None and data["robust_lower"] < lower else ""
    text += f", {at_least(lower, 7)} without" if text else ""
    return text + ("" if error is None else f"; the promised error is at most {at_most(error, 7)}")


def _steps(data: Mapping[str, Any], k: int) -> Markup:
    return listing(
        enumerate(data["trajectory"], start=1),
        figures("step", lambda at: number(at[0])),
        Column("buy", lambda at: at[1]["block"]),
        Column("asks", lambda at: ", ".join(at[1].get("opened", []))),
        figures("cost (unit of costs)", lambda at: amount(at[1]["cost"])),
        figures(f"{gamma(k)} then", lambda at: number(at[1]["gamma"])),
        Column("attacks an error on", lambda at: ", ".join(at[1]["support"])),
        figures(
            "energy on the witness before, ‖C h‖²",
            lambda at: number(at[1]["energy"], 4) if at[1].get("energy") is not None else "",
        ),
        filled=True,
    )


def _curve(source: PageSource, k: int) -> Markup | None:
    data = source.data
    steps = data["trajectory"]
    if not steps:
        return None
    xs = list(accumulate(float(step["cost"]) for step in steps))
    ys = [float(step["gamma"]) for step in steps]
    words = [str(step["block"]) for step in steps]
    if data.get("owned_gamma") is not None:
        xs, ys, words = [0.0, *xs], [float(data["owned_gamma"]), *ys], ["owned already", *words]
    lower, upper = [nan] * len(xs), [nan] * len(xs)
    if data.get("gamma_lower") is not None and data.get("gamma_upper") is not None:
        lower[-1], upper[-1] = float(data["gamma_lower"]), float(data["gamma_upper"])
    picture = step_chart(Series("margin", xs, ys, lower, upper, words), f"margin {gamma(k)}", data.get("target"))
    caption = f"The margin {gamma(k)} as the plan is bought; at the end with its proven lower and upper bounds."
    return figure(picture, caption=caption)


def _view(problem: Problem, data: Mapping[str, Any]) -> FieldView:
    return FieldView(problem, problem.resolve(list(data["selected"])), data.get("witness") or {})
