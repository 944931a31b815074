"""What may be promised, what changed between two tables or runs, what money buys step by step, and
a proof made again: views that put several documents together, or work something out on request.

Everything is read. What takes work (a forecast, a proof) is done when somebody asks for it, by the
code of the verb that does it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from rrf_design.checker import audit_bound, verify
from rrf_design.errors import InputError, RRFError
from rrf_design.promises import forecast_delivery
from rrf_design.questions import dataset
from rrf_design.reporting.delivery import run_delivery
from rrf_design.reporting.documents import fragments
from rrf_design.reporting.pages import (
    Child,
    Markup,
    amount,
    callout,
    join,
    number,
    prose,
    section,
    sentence,
    table,
    tag,
    verdict_bar,
)
from rrf_design.risk import bound
from rrf_design.studio._index import ListView
from rrf_design.studio._pages import PROVEN, address, closed, item_link, link_of, waits
from rrf_design.verdict import Verdict

if TYPE_CHECKING:
    from rrf_design.studio._library import Library, LibraryEntry

PATIENCE = 60.0
"""Seconds that a proof may take here; the verb takes more."""
PROMISES = ("rrf-delivered", "rrf-policy", "rrf-policy-run", "rrf-audit")
MORE = 100
"""Labels whose worth is told."""
CONFIDENCE = 0.95
CHANGES = 300
"""Changed rows that are listed."""


def proof(entry: LibraryEntry) -> Markup:
    """A document's proof, made again by the checker, in the checker's own words."""
    if entry.format not in PROVEN or entry.path is None:
        raise InputError(f"{entry.key}: carries no proof")
    found = verify(entry.path, time_limit=PATIENCE)
    words = "It holds: made again by code that shares nothing with what made it." if found.valid else "REFUSED."
    checks = [[check.name, check.detail] for check in found.checks]
    trusted = prose(f"Taken on trust: {found.taken_on_trust}.") if found.valid and found.taken_on_trust else None
    return tag(
        "main",
        tag("h1", f"Proof of {entry.title}"),
        callout(prose(words), prose(sentence(found.reason or "")), kind="good" if found.valid else "bad"),
        table(["checked", "found"], checks, caption="The checker's own lines") if checks else None,
        trusted,
        prose(tag("a", "The document", href=address("document", of=entry.key))),
    )


def steps(library: Library, entry: LibraryEntry) -> Markup:
    """A frontier, point by point: what is held then, what the purchase adds, and where a margin is
    zero, why.
    """
    source = library.source(entry)
    points = source.data["points"] if entry.format == "rrf-frontier" else []
    if not points:
        raise InputError(f"{entry.key}: no frontier with points")
    shown, held = [], set[str]()
    for place, point in enumerate(points):
        selected = list(point["selected"])
        new = [name for name in selected if name not in held]
        gone = sorted(held.difference(selected))
        said: list[Child] = [
            tag("h2", f"Cost {amount(point['cost'])}: margin {number(float(point['gamma']))}"),
            prose(f"Held: what is owned, and {', '.join(selected) or 'nothing more'}."),
        ]
        if place and (new or gone):
            risen = float(point["gamma"]) - float(points[place - 1]["gamma"])
            less = f" in place of {', '.join(gone)}" if gone else ""
            said.append(prose(f"New here: {', '.join(new) or 'nothing'}{less}; the margin rises by {number(risen)}."))
        if point.get("upper_bound") is not None:
            best = "Proven best: no" if point["status"] == "optimal" else "No"
            said.append(prose(f"{best} design of this cost has more than {number(float(point['upper_bound']))}."))
        if point["gamma"] <= 0:
            said.append(callout(prose(_why_zero(source.problem, point)), kind="bad"))
        shown.append(tag("div", said, class_="point", data_point=str(place)))
        held = set(selected)
    last = str(len(points) - 1)
    slider = tag("input", type="range", min="0", max=last, value=last, step="1", class_="points")
    return tag(
        "main",
        tag("h1", entry.title),
        callout(prose(entry.sentence)),
        tag("label", "Money: ", slider, class_="slider"),
        tag("div", shown, class_="stepped", aria_live="polite"),
        fragments(source).picture,
        prose(tag("a", "Every point as a table", href=address("document", of=entry.key))),
    )


def _why_zero(problem: Any, point: Mapping[str, Any]) -> str:
    """Where an error hides that nothing held can see."""
    moved = list(point.get("witness") or {})
    hidden = f"an error on {', '.join(moved[:6])} changes nothing that is measured" if moved else "an error hides"
    if problem is None:
        return f"The margin is zero: {hidden}."
    design = problem.design(problem.resolve(list(point["selected"])))
    energies = design.energies(point.get("witness") or {})
    sees = sorted((name for name, energy in energies.items() if energy > 1e-12), key=lambda name: -energies[name])
    offered = [name for name in sees if name not in point["selected"]][:4]
    return f"The margin is zero: {hidden}." + (f" It would be seen by {', '.join(offered)}." if offered else "")


def promise(library: Library, key: str, *, asked: bool) -> Markup:
    """What may be said of the tables in a folder, from every document about them, and what more
    labels would say.
    """
    entry = library.entry(key) if key else None
    folders = {e.path.parent for e in library.entries() if e.path is not None and _promises(e)}
    if entry is None or entry.path is None:
        listed = [
            tag("li", tag("a", one.key, href=address("promise", of=one.key)), ": ", one.sentence)
            for one in library.entries()
            if one.path is not None and one.path.parent in folders and _promises(one)
        ]
        words = "Of which table?" if listed else "No delivered table, policy or audit is here yet."
        return tag("main", tag("h1", "What may be promised"), prose(words), tag("ul", listed))
    beside = [e for e in library.entries() if e.path is not None and e.path.parent == entry.path.parent]
    shown: list[Child] = []
    for one in sorted(beside, key=lambda one: (one.key != key, one.format)):
        if one.format in PROMISES and not closed(library, one):
            shown.append(_promised(library, one))
    tables = [entry] if entry.kind == "table" else []
    parts: list[Child] = [_more_labels(library, one) for one in tables or beside if _promises(one)]
    return tag(
        "main",
        tag("h1", f"What may be promised of {entry.path.parent.name or 'this folder'}"),
        callout(prose(entry.sentence)),
        verdict_bar(entry.verdicts),
        shown,
        [part for part in parts if part is not None],
        _forecast(library, entry, asked=asked),
    )


def _promises(entry: LibraryEntry) -> bool:
    return entry.kind == "table" or entry.format in PROMISES


def _promised(library: Library, entry: LibraryEntry) -> Markup:
    parts = fragments(library.source(entry))
    link = tag("a", parts.title, href=address("document", of=entry.key))
    return tag("section", tag("h2", link), prose(parts.sentence), parts.picture)


def _more_labels(library: Library, entry: LibraryEntry) -> Markup | None:
    """What a hundred more labels of rows drawn at random would say, by how many of them are
    wrong.
    """
    if entry.format == "rrf-audit":
        data = library.source(entry).data
        size, labels = int(data["population"]), [bool(label) for label in data["record"]["labels"]]
        more = min(MORE, size - len(labels))
        now, sure = int(data["bound"]), Fraction(str(data["confidence"]))
        rows = [
            [amount(wrong), number(audit_bound(size, [*labels, *[False] * (more - wrong), *[True] * wrong], sure))]
            for wrong in (0, 1, 2, 5)
            if wrong <= more
        ]
        words = f"The audit's {len(labels)} draws leave at most {now:,} of {size:,} wrong."
    elif entry.kind == "table":
        size = sum(int(entry.verdicts.get(v.value, 0)) for v in Verdict if v is Verdict.CONSISTENT)
        more = min(MORE, size)
        rows = [
            [amount(wrong), number(bound(size, more, wrong, CONFIDENCE))] for wrong in (0, 1, 2, 5) if wrong <= more
        ]
        words = f"Nobody has tested the {size:,} consistent rows of {entry.title}: all may be wrong."
    else:
        return None
    if more <= 0:
        return None
    head = [f"of {more} more labels of rows drawn at random, wrong", f"then at most wrong, of {size:,}"]
    return tag(
        "section", tag("h2", f"What {more} more labels would say"), prose(words), table(head, rows, right=[0, 1])
    )


def _forecast(library: Library, entry: LibraryEntry, *, asked: bool) -> Markup | None:
    """How many rows people would look at until a share is proven, from the answers alone."""
    assert entry.path is not None
    recipe, answers = library.recipe(entry.path), library.answers(entry.path.parent)
    if recipe is None or len(answers) != 1 or library.blind():
        return None
    if not asked:
        link = tag("a", "Work it out", href=address("promise", of=entry.key, forecast="1"), class_="button")
        words = "How many rows would people look at until a share is proven? From the answers alone: no truth is read."
        return tag("section", tag("h2", "Forecast"), prose(words), prose(link))
    try:
        found = forecast_delivery(dataset(recipe), answers[0].path)
    except (RRFError, ValueError) as error:
        return tag("section", tag("h2", "Forecast"), callout(prose(f"It can't be made: {error}"), kind="bad"))
    rows = [
        [f"{100 * one['risk']:g} %", number(one["allowed"]), amount(one.get("looks")), amount(one.get("likely_most")),
         amount(one.get("cost")), amount(one.get("check_everything"))]
        for one in found["risks"]
    ]  # fmt: skip
    head = ["risk", "may be wrong", "looks expected", "likely at most", "cost", "looking at every row"]
    words = "Nobody has looked yet, and what agreement hides a forecast can't know."
    return tag("section", tag("h2", "Forecast"), prose(words), table(head, rows, right=range(6)))


def compare(library: Library, first: str, second: str) -> Markup:
    """Two delivered tables or runs, row by row: what changed, from what to what."""
    able = [e for e in library.entries() if e.kind in ("table", "run") or e.format == "rrf-run"]
    options = [(entry.key, f"{entry.key} ({entry.at:%Y-%m-%d %H:%M})" if entry.at else entry.key) for entry in able]

    def choice(name: str, words: str, here: str) -> Markup:
        made = [tag("option", shown, value=key, selected=key == here) for key, shown in options]
        return tag("label", f"{words} ", tag("select", made, name=name))

    form = tag(
        "form",
        choice("a", "From", first),
        choice("b", "to", second),
        tag("button", "Compare", type="submit"),
        method="get",
        action="/compare",
        class_="filters",
    )
    heading = tag("h1", "What changed")
    if not first or not second:
        words = "Two delivered tables or runs of the same rows." if able else "No delivered table or run is here yet."
        return tag("main", heading, prose(words), form if able else None)
    sides = [library.entry(key) for key in (first, second)]
    for side in sides:
        if side.kind != "table" and closed(library, side):
            return waits(side)
    before, after = (_said(library, side) for side in sides)
    both = [name for name in before if name in after]
    changed = [name for name in both if before[name] != after[name]]
    moves = Counter((before[name][0], after[name][0]) for name in both)
    kinds = [verdict.value for verdict in Verdict if any(verdict.value in move for move in moves)]
    matrix = [[kind, *(number(moves[kind, other]) for other in kinds)] for kind in kinds]
    values = sum(before[name][1] != after[name][1] for name in changed)
    told = (
        f"{len(changed):,} of {len(both):,} rows that both have changed: {values:,} values,"
        f" {sum(before[name][0] != after[name][0] for name in changed):,} verdicts."
    )
    lost, new = len(before) - len(both), len(after) - len(both)
    apart = f"{lost:,} rows are only in the first, {new:,} only in the second." if lost or new else None
    rows: list[Sequence[Child]] = [
        [_opened(sides[1], name), *before[name], "→", *after[name]] for name in changed[:CHANGES]
    ]
    return tag(
        "main",
        heading,
        callout(prose(told), prose(apart) if apart else None),
        form,
        _beside(sides, before, after),
        section("Verdicts", table(["from / to", *kinds], matrix, right=range(1, len(kinds) + 1))).content,
        table(["row", "was", "value", "", "is", "value"], rows, caption="Rows that changed", most=CHANGES),
        prose(f"{len(changed) - CHANGES:,} more changed rows are not listed.") if len(changed) > CHANGES else None,
    )


def _beside(sides: Sequence[LibraryEntry], *said: Mapping[str, tuple[str, str]]) -> Markup:
    """How many rows have which verdict, in both."""
    bars: list[Child] = []
    for side, rows in zip(sides, said, strict=True):
        bars += [
            prose(tag("a", side.title or side.key, href=link_of(side))),
            verdict_bar(Counter(v for v, _ in rows.values())),
        ]
    return join(bars)


def _opened(entry: LibraryEntry, name: str) -> Child:
    return tag("a", name, href=item_link(entry.key, name, ListView())) if entry.kind == "table" else name


def _said(library: Library, entry: LibraryEntry) -> dict[str, tuple[str, str]]:
    """Verdict and value of each row, by its id."""
    if entry.kind == "table":
        assert entry.path is not None
        return dict(library.index(entry.path).said())
    source = library.source(entry)
    made = run_delivery(source.data, (), source.problems)
    return {str(row[0]): (str(row[1]), str(row[2] or "")) for row in made["rows"]}
