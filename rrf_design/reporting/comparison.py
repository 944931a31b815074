"""The page of two designs side by side: margins at the same k, what each buys, and how each sees the other's witness.

Made from two `rrf-explanation` documents of the same k, with their problems.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import TYPE_CHECKING, Any

from rrf_design.errors import InputError
from rrf_design.reporting.charts import line_chart
from rrf_design.reporting.designs import budget_curve, facts_of, margin_card
from rrf_design.reporting.fieldview import FieldView
from rrf_design.reporting.graph import draw_field
from rrf_design.reporting.markup import Child, Markup, join
from rrf_design.reporting.pages import Card, amount, callout, cards, figure, number, page, prose, section, table

if TYPE_CHECKING:
    from rrf_design.reporting.documents import PageSource

Names = tuple[str, str]


def comparison_page(first: PageSource, second: PageSource, *, names: Names = ("A", "B")) -> str:
    """Two explained designs side by side."""
    views = [_view(source) for source in (first, second)]
    found = [first.data, second.data]
    k = int(found[0]["k"])
    if int(found[1]["k"]) != k:
        raise InputError(f"report: designs are compared at one k, not at {k} and {found[1]['k']}")
    parts = [
        section("What differs", _differences(views, names)),
        section("Each sees the other's witness", _crossed(views, names)),
    ]
    curves = [budget_curve(data, name) for name, data in zip(names, found, strict=True)]
    if all(curve is not None for curve in curves):
        drawn = [curve for curve in curves if curve is not None]
        picture = line_chart(drawn, x_label="k, wrong answers", y_label="margin γ of that k")
        words = "The margin of both designs for other corruption budgets."
        parts.append(section("How many wrong answers", figure(picture, caption=words)))
    for name, view in zip(names, views, strict=True):
        parts.append(section(f"The field of {name}", draw_field(view)))
    lead = join(
        _compare_words(names, found),
        cards([_named(name, data) for name, data in zip(names, found, strict=True)]),
    )
    facts = [
        (f"{name}: {what}", value)
        for name, view in zip(names, views, strict=True)
        for what, value in facts_of(view.problem)[:2]
    ]
    return page(f"{names[0]} against {names[1]}", parts, subtitle=f"Two designs at k = {k}", lead=lead, facts=facts)


def _view(source: PageSource) -> FieldView:
    if source.problem is None:
        raise InputError(f"report: the {source.kind} does not carry its problem; give it with --problem")
    return FieldView(source.problem, list(source.data["selected"]), source.data["witness"])


def _named(name: str, data: Mapping[str, Any]) -> Card:
    card = margin_card(data)
    return Card(f"{name}: {card.label}", card.value, f"{card.note}; bought for {amount(data['cost'])}", card.kind)


def _compare_words(names: Names, results: Sequence[Mapping[str, Any]]) -> Markup:
    a, b = results
    k = a["k"]
    if a["lower"] > b["upper"] or b["lower"] > a["upper"]:
        better, worse = (0, 1) if a["lower"] > b["upper"] else (1, 0)
        least, most = results[better]["lower"], results[worse]["upper"]
        by = (
            f", at least {number(least / most, 3)} times as much"
            if most > 1e-9
            else ", while the other may miss it altogether"
        )
        text = f"{names[better]} sees its worst error better than {names[worse]} sees its own{by}: {number(results[better]['gamma'])} against {number(results[worse]['gamma'])}, both at k = {k}."
        return callout(prose(text), kind="plain")
    return callout(
        prose(
            f"The bounds overlap: at k = {k} neither design is proven better. Margins {number(a['gamma'])} and {number(b['gamma'])}."
        ),
        kind="unsure",
    )


def _differences(views: Sequence[FieldView], names: Names) -> Markup:
    everything = [{b.id for b in view.problem.blocks if b.owned} | set(view.selected) for view in views]
    only = [sorted(everything[0] - everything[1]), sorted(everything[1] - everything[0])]
    both = everything[0] & everything[1]
    rows = [
        [f"only in {name}", number(len(ids)), ", ".join(ids[:40]) + (" …" if len(ids) > 40 else "")]
        for name, ids in zip(names, only, strict=True)
    ]
    rows.append(["in both", number(len(both)), ""])
    return table(["blocks", "how many", "which"], rows, right=[1])


def _crossed(views: Sequence[FieldView], names: Names) -> Markup:
    """‖B h‖ of each design for the other's witness h: the root of what its blocks see of it together."""
    rows: list[Sequence[Child]] = []
    for i, other in ((0, 1), (1, 0)):
        view, witness = views[i], views[other].witness
        if not set(witness) <= view.open_nodes:
            rows.append([names[i], f"{names[other]}'s witness", "asks nodes that it does not have"])
            continue
        energies = view.problem.structure.energies(witness)
        held = [b.id for b in view.problem.blocks if view.block_status(b) in ("owned", "bought")]
        seen = sqrt(sum(energies[name] for name in held))
        rows.append([names[i], f"{names[other]}'s witness on {', '.join(witness)}", number(seen)])
    return table(["design", "looks at", "moves its measurements by ‖B h‖"], rows, right=[2])
