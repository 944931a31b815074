"""The page of a design: its margin and witness, why the margin is no larger, and what would help."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rrf_design.reporting.charts import Series, line_chart
from rrf_design.reporting.explain import Explanation, explain, words
from rrf_design.reporting.graph import draw_field
from rrf_design.reporting.markup import Child, Markup, join
from rrf_design.reporting.mending import price
from rrf_design.reporting.page import Card, Section, callout, cards, figure, number, page, prose, section, table

if TYPE_CHECKING:
    from rrf_design.margins import DesignMargin
    from rrf_design.problem import Problem

BUDGETS = 4
"""Corruption budgets over which a small field's margin is drawn."""
SMALL = 48
"""Fields of at most so many nodes get that curve: it asks for supports of 2·BUDGETS nodes."""


@dataclass(frozen=True)
class Design:
    """A problem and what is bought of it, under the name a comparison calls it by."""

    problem: Problem
    selected: tuple[str, ...] = ()
    name: str = ""

    @property
    def title(self) -> str:
        return self.name or self.problem.name


def facts_of(problem: Problem) -> list[tuple[str, str]]:
    """What ties a page to its problem and to the program that made it."""
    from rrf_design import __version__
    from rrf_design.files import digest

    return [
        ("problem", problem.name),
        ("digest of the problem (SHA-256)", digest(problem)),
        ("made by", f"rrf-design {__version__}"),
    ]


def subscript(k: int) -> str:
    return str(k).translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))


def gamma(k: int) -> str:
    """γ with its k, which it never goes without."""
    return f"γ{subscript(k)}"


def bounds_words(lower: float, upper: float, status: str) -> str:
    """What is proven about a margin, in words."""
    if lower == 0 and upper < 1e-9:
        return "zero, up to rounding: the witness moves no measurement"
    if status == "exact":
        return f"exact: proven between {number(lower, 7)} and {number(upper, 7)}"
    return f"not settled: proven between {number(lower, 7)} and {number(upper, 7)}"


def margin_card(margin: DesignMargin, wanted: float | None = None) -> Card:
    short = margin.lower <= 0 if wanted is None else margin.lower < wanted
    kind = (
        "good"
        if not short
        else (
            "bad"
            if (margin.upper <= 0 or margin.value == 0 or (wanted is not None and margin.upper < wanted))
            else "unsure"
        )
    )
    return Card(
        f"margin {gamma(margin.k)} (k = {margin.k} wrong answer{'s' if margin.k > 1 else ''})",
        number(margin.value),
        bounds_words(margin.lower, margin.upper, str(margin.status)),
        kind,
    )


def design_page(design: Design, *, k: int | None = None, **options: Any) -> str:
    """The page of one design."""
    found = explain(design.problem, design.selected, k=k, **options)
    margin = found.margin
    parts = [
        section("In words", _verdict(found)),
        section("The field and its witness", _witness_words(found), draw_field(found.view)),
        section("Who sees the witness", *_eyes(found)),
        section("What would help", *_offers(found)),
    ]
    curve = _by_budget(design, options)
    if curve is not None:
        parts.append(curve)
    bought = f"owned blocks plus {len(margin.selected)} bought" if margin.selected else "owned blocks only"
    return page(
        design.title, parts, subtitle=f"A design: {bought}", lead=cards(_figures(found)), facts=facts_of(design.problem)
    )


def _figures(found: Explanation) -> list[Card]:
    margin, problem = found.margin, found.view.problem
    rows, columns = margin.operator.shape
    result = [margin_card(margin, found.wanted)]
    if found.wanted is not None:
        source = "the problem's target" if problem.target is not None else "2ε/δ from the problem"
        result.append(
            Card(
                f"wanted {gamma(margin.k)}",
                number(found.wanted),
                f"{source}; {'reached' if found.enough else 'not proven reached'}",
            )
        )
    if margin.value > 0:
        result.append(
            Card(
                "an error can hide up to",
                f"{number(2 / margin.lower if margin.lower > 0 else None, 4)} ε",
                f"2/{gamma(margin.k)} times the noise radius ε, by the lower bound",
            )
        )
    result.append(
        Card(
            "field",
            f"{number(len(margin.operator.node_ids))} nodes",
            f"{number(columns)} coordinates, {number(len(margin.operator.block_ids))} blocks, {number(rows)} rows",
        )
    )
    if margin.selected:
        result.append(
            Card(
                "bought",
                number(price(problem, margin.selected)),
                f"{len(margin.selected)} item{'s' if len(margin.selected) > 1 else ''}, in the unit of the file's costs",
            )
        )
    return result


def _verdict(found: Explanation) -> Markup:
    kind = "good" if found.enough else ("bad" if found.margin.value == 0 else "unsure")
    return join(
        callout(prose(words(found)), kind=kind),
        prose(
            "A margin speaks of the declared relations, anchors, parsers and k; it does not say that they are right, and agreement alone is never truth."
        ),
    )


def _witness_words(found: Explanation) -> Markup:
    margin = found.margin
    return prose(
        f"The witness is the error on at most 2k = {2 * margin.k} nodes that this design sees least: one unit of it moves all measurements"
        f" together by {gamma(margin.k)} = {number(margin.value)}. Its nodes carry a heavy ring."
    )


def _eyes(found: Explanation) -> list[Child]:
    sees = [[name, number(energy, 4)] for name, energy in found.sees.items()]
    content: list[Child] = [table(["block that sees it", "energy ‖C h‖²"], sees, right=[1], most=40)]
    if found.blind:
        shown = ", ".join(found.blind[:20]) + (f" and {len(found.blind) - 20} more" if len(found.blind) > 20 else "")
        content.append(prose(f"On the witness's nodes, but blind to it ({len(found.blind)}): ", shown, "."))
    return content


def _offers(found: Explanation) -> list[Child]:
    margin = found.margin
    content: list[Child] = []
    if found.singles:
        rows = [
            [", ".join(p.ids), number(p.cost), number(p.gamma), number(p.lower, 7), p.status] for p in found.singles
        ]
        columns = ["buy", "cost", f"{gamma(margin.k)} then", "lower bound", "status"]
        content.append(table(columns, rows, right=[1, 2, 3], caption="Single purchases that see the witness"))
    goal = f"{gamma(margin.k)} > 0" if found.wanted is None else f"{gamma(margin.k)} ≥ {number(found.wanted)}"
    if found.enough:
        content.append(callout(prose(f"The design has {goal} already."), kind="good"))
    elif found.mend is not None:
        claim = "nothing cheaper reaches it: proven" if found.proven else "not proven to be the cheapest"
        text = f"To reach {goal}, buy {', '.join(found.mend.ids)} for {number(found.mend.cost)}; {claim}."
        content.append(callout(prose(text), kind="plain"))
    else:
        content.append(callout(prose(nothing_helps(found, goal)), kind="bad"))
    return content


def nothing_helps(found: Explanation, goal: str) -> str:
    """What to do when no purchase was found that reaches the goal."""
    claim = "Nothing on sale reaches" if found.proven else "Nothing was found on sale that reaches"
    nodes = " or ".join(list(found.view.shares)[:3])
    return f"{claim} {goal}. Put up for sale an anchor on {nodes}, or a relation from there to other nodes."


def _by_budget(design: Design, options: dict[str, Any]) -> Section | None:
    curve = budget_curve(design, options)
    if curve is None:
        return None
    picture = line_chart([curve], x_label="k, wrong answers", y_label="margin γ of that k")
    words_ = "The margin for other corruption budgets: how many wrong answers this design could stand."
    return section("How many wrong answers", figure(picture, caption=words_))


def budget_curve(design: Design, options: dict[str, Any]) -> Series | None:
    from solvers import margins

    operator = design.problem.operator(design.selected)
    nodes = len(operator.node_ids)
    most = min(BUDGETS, nodes // 2)
    if nodes > SMALL or most < 2:
        return None
    found = margins(operator.matrix, operator.groups, k=most, **options)
    return Series(
        design.title,
        [m.k for m in found],
        [m.value for m in found],
        [m.lower for m in found],
        [m.upper for m in found],
    )
