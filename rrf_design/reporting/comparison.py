"""The page of two designs side by side: margins at the same k, what each buys, and how each sees the other's witness."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rrf_design.reporting.charts import Series, line_chart
from rrf_design.reporting.designs import Design, budget_curve, facts_of, margin_card
from rrf_design.reporting.explain import wanted_margin
from rrf_design.reporting.fieldview import FieldView
from rrf_design.reporting.graph import draw_field
from rrf_design.reporting.markup import Child, Markup
from rrf_design.reporting.mending import price
from rrf_design.reporting.page import Card, callout, cards, figure, number, page, prose, section, table

if TYPE_CHECKING:
    from rrf_design.margins import DesignMargin


def comparison_page(first: Design, second: Design, *, k: int | None = None, **options: Any) -> str:
    """Two designs side by side: margins at the same k, what each buys, and how each sees the other's witness."""
    names = (first.name or "A", second.name or "B")
    same_k = k if k is not None else first.problem.k
    results = [d.problem.margin(d.selected, k=same_k, **options) for d in (first, second)]
    parts = [
        section("In words", _compare_words(names, results)),
        section("What differs", _differences(first, second, names)),
        section("Each sees the other's witness", _crossed((first, second), names, results)),
    ]
    curves = [curve for d in (first, second) if (curve := budget_curve(d, options)) is not None]
    if len(curves) == 2:
        named = [Series(name, c.x, c.y, c.lower, c.upper) for name, c in zip(names, curves, strict=True)]
        picture = line_chart(named, x_label="k, wrong answers", y_label="margin γ of that k")
        parts.append(
            section(
                "How many wrong answers",
                figure(picture, caption="The margin of both designs for other corruption budgets."),
            )
        )
    for name, design, result in zip(names, (first, second), results, strict=True):
        parts.append(
            section(f"The field of {name}", draw_field(FieldView(design.problem, result.selected, result.witness)))
        )
    lead = cards(
        [_named(name, design, result) for name, design, result in zip(names, (first, second), results, strict=True)]
    )
    facts = [
        (f"{name}: {what}", value)
        for name, d in zip(names, (first, second), strict=True)
        for what, value in facts_of(d.problem)[:2]
    ]
    return page(
        f"{names[0]} against {names[1]}", parts, subtitle=f"Two designs at k = {same_k}", lead=lead, facts=facts
    )


def _named(name: str, design: Design, result: DesignMargin) -> Card:
    card = margin_card(result, wanted_margin(design.problem))
    return Card(
        f"{name}: {card.label}",
        card.value,
        f"{card.note}; bought for {number(price(design.problem, result.selected))}",
        card.kind,
    )


def _compare_words(names: tuple[str, str], results: Sequence[DesignMargin]) -> Markup:
    a, b = results
    if a.lower > b.upper or b.lower > a.upper:
        better, worse = (0, 1) if a.lower > b.upper else (1, 0)
        ratio = results[better].lower / results[worse].upper if results[worse].upper > 1e-9 else None
        by = (
            f", at least {number(ratio, 3)} times as much"
            if ratio is not None
            else ", while the other may miss it altogether"
        )
        text = f"{names[better]} sees its worst error better than {names[worse]} sees its own{by}: {number(results[better].value)} against {number(results[worse].value)}, both at k = {a.k}."
        return callout(prose(text), kind="plain")
    return callout(
        prose(
            f"The bounds overlap: at k = {a.k} neither design is proven better. Margins {number(a.value)} and {number(b.value)}."
        ),
        kind="unsure",
    )


def _differences(first: Design, second: Design, names: tuple[str, str]) -> Markup:
    sides = [set(d.selected) for d in (first, second)]
    everything = [
        {b.id for b in d.problem.blocks if b.owned} | side for d, side in zip((first, second), sides, strict=True)
    ]
    only = [sorted(everything[0] - everything[1]), sorted(everything[1] - everything[0])]
    both = everything[0] & everything[1]
    rows = [
        [f"only in {name}", number(len(ids)), ", ".join(ids[:40]) + (" …" if len(ids) > 40 else "")]
        for name, ids in zip(names, only, strict=True)
    ]
    rows.append(["in both", number(len(both)), ""])
    return table(["blocks", "how many", "which"], rows, right=[1])


def _crossed(designs: Sequence[Design], names: tuple[str, str], results: Sequence[DesignMargin]) -> Markup:
    rows: list[Sequence[Child]] = []
    for i, other in ((0, 1), (1, 0)):
        operator = results[i].operator
        witness = results[other].witness
        if not set(witness) <= set(operator.node_ids):
            rows.append([names[i], f"{names[other]}'s witness", "asks nodes that it does not have"])
            continue
        whole = {name: np.zeros(designs[i].problem.node_by_id[name].dim) for name in operator.node_ids}
        whole.update({name: np.asarray(part) for name, part in witness.items()})
        seen = float(np.linalg.norm(operator.matrix @ operator.stack(whole)))
        rows.append([names[i], f"{names[other]}'s witness on {', '.join(witness)}", number(seen)])
    return table(["design", "looks at", "moves its measurements by ‖B h‖"], rows, right=[2])
