"""The page of a proof of `deliver`: the sentence that it proves, and the staircase of its random
rows.

The proof is made again for the page, by the checker; what the checker refuses is shown as refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from rrf_design.checker.delivery import RIGHT, ProvenDelivery, boundary, prove_delivery
from rrf_design.errors import Refused
from rrf_design.reporting._charts import Bar, Series, bar_chart, line_chart
from rrf_design.reporting.delivery import delivery_lead, proven_head
from rrf_design.reporting.pages import (
    Markup,
    PageParts,
    Section,
    amount,
    callout,
    code,
    figure,
    join,
    prose,
    section,
    table,
)

if TYPE_CHECKING:
    from rrf_design.reporting.documents import PageSource


def delivered_page(source: PageSource) -> PageParts:
    """The page of an `rrf-delivered` document."""
    data = source.data
    people = data["population"]
    title, subtitle = f"{people['table']}: what was handed over", "A table whose promise was tested"
    facts = [
        ("recipe", f"{data['recipe']['name']}, SHA-256 {data['recipe']['digest']}"),
        ("table", f"{people['table']}, SHA-256 of its rows {people['digest']}"),
        ("delivered values (SHA-256)", str(data["delivered"])),
        ("seed", str(data["seed"])),
        ("format", f"{data['format']}, version {data['version']}"),
    ]
    try:
        proven = prove_delivery(data)
    except Refused as error:
        lead = callout(prose(f"REFUSED: {error}. Nothing on this page is proven."), kind="bad")
        return PageParts(title, [], subtitle=subtitle, lead=lead, facts=facts)
    cost = ["cost", amount(data["spent"]), f"labels at {amount(data['label_cost'])} each, answers and checks"]
    head = proven_head(proven)
    parts = [_looks(data, proven), _rests(data)]
    lead = delivery_lead({**head, "figures": [*head["figures"], cost]})
    picture = _random(data, proven) or _decided(data, proven)
    return PageParts(title, parts, subtitle=subtitle, lead=lead, picture=picture, facts=facts)


def _looks(data: Mapping[str, Any], proven: ProvenDelivery) -> Section:
    """Who decided how many rows."""

    def wrong(marks: Sequence[Sequence[Any]]) -> str:
        return f"{sum(mark[1] != RIGHT for mark in marks):,}"

    rows = [
        ["decided by a check", f"{len(data['checked']):,}", ""],
        ["known from earlier labels", f"{len(data['before']):,}", wrong(data["before"])],
        ["doubtful, worst first", f"{len(data['looked']):,}", wrong(data["looked"])],
        ["drawn at random", f"{len(data['draws']):,}", wrong(data["draws"])],
        ["showing the same as one of them", f"{len(data['alike']):,}", wrong(data["alike"])],
        ["nobody looked", f"{proven.remaining:,}", ""],
        ["handed over empty", f"{len(data['withheld']):,}", ""],
    ]
    shown = [row for row in rows if row[1] != "0"]
    told = "Labels of doubtful rows fix them and teach whom to believe; only rows drawn at random prove."
    return section(
        "The rows",
        prose(told),
        table(("rows", "how many", "wrong"), shown, right=[1, 2], caption=f"Labels: {data['truth']}"),
    )


def _decided(data: Mapping[str, Any], proven: ProvenDelivery) -> Markup:
    """Who decided the rows, where none was drawn at random."""
    people = sum(len(data[key]) for key in ("before", "looked", "draws", "alike"))
    found = {"a check": len(data["checked"]), "a person": people, "nobody looked": proven.remaining}
    bars = [Bar(name, count) for name, count in found.items()]
    return figure(bar_chart(bars, label="who decided", value_label="rows"), caption="Who decided how many rows.")


def _random(data: Mapping[str, Any], proven: ProvenDelivery) -> Markup | None:
    """The staircase: rows drawn across, wrong ones up, and where it would have been proven."""
    if data["picks"] is None:
        return None
    found = [0, *accumulate(int(mark != RIGHT) for _, mark, _ in data["draws"])]
    steps = [at for at, count in enumerate(found) if at in (0, len(found) - 1) or count != found[at - 1]]
    counts = boundary(proven.untouched, proven.allowed, 1 - proven.confidence, most=found[-1] + 1)
    picture = line_chart(
        [
            Series("wrong among those drawn", steps, [found[at] for at in steps]),
            Series("proven from here on", counts, list(range(len(counts)))),
        ],
        x_label="rows drawn at random",
        y_label="wrong, and fixed",
        step=True,
    )
    told = (
        f"Everything about the {proven.untouched:,} rows that nobody had looked at was fixed before the first was"
        f" drawn. With none wrong {counts[0]:,} rows prove it; each wrong one asks for more."
    )
    return join(figure(picture, caption="The random rows: draws end where the stairs meet the line."), prose(told))


def _rests(data: Mapping[str, Any]) -> Section:
    return section(
        "What it rests on",
        prose(f"The labels ({data['truth']}) are right, and seed {data['seed']} was not chosen after looking."),
        prose(
            "Draws, order and stop were made again for this page; ",
            code("rrf-design verify"),
            " with ",
            code("--delivered"),
            " also compares the table.",
        ),
    )
