"""The studio's pages as HTML, made of the fragments that static pages are made of.

Every text enters through `rrf_design.reporting.pages.tag`, which escapes it. Links carry ids in
their query, since an id may hold a slash. Everything works by links and forms; the scripts add
keys, the review and what is live.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from rrf_design.documents import write_text
from rrf_design.errors import InputError, RRFError
from rrf_design.reporting.documents import fragments, render
from rrf_design.reporting.pages import (
    SIGNS,
    Card,
    Child,
    Markup,
    amount,
    callout,
    cards,
    join,
    page,
    prose,
    scripts_of,
    section,
    sentence,
    table,
    tag,
    verdict_bar,
)
from rrf_design.studio._index import PAGE, ListView, TableIndex
from rrf_design.studio._items import Item
from rrf_design.studio._library import Library, LibraryEntry
from rrf_design.texts import cell_text, json_text
from rrf_design.verdict import Verdict, table_sentence

LONGEST = 4000
"""Characters of a cell or an answer that are open; what is behind them unfolds."""
CLOSED = ("rrf-delivery", "rrf-item-table", "rrf-policy-run", "rrf-run", "rrf-repair", "rrf-repair-batch", "rrf-audit")
"""Documents with rows in them: closed while a row waits for a blind look."""
PROVEN = ("rrf-certificate", "rrf-policy", "rrf-audit", "rrf-delivered")
"""Documents that carry a proof."""
KINDS = {"table": "Delivered table", "run": "Run", "labels": "Review", "document": "Document"}


def address(view: str, **query: str) -> str:
    """A link to a view; ids and keys go into its query."""
    found = {name.rstrip("_"): text for name, text in query.items() if text}
    return f"/{view}?{urlencode(found, errors='replace')}" if found else f"/{view}"


def frame(title: str, main: Markup, *, here: str = "", waiting: int = 0, scripts: Sequence[str] = ()) -> str:
    """A page of the studio: its head, the way to the other views, and what it shows."""
    places = [("", "Home"), ("review", f"Review ({waiting:,})" if waiting else "Review")]
    places += [("promise", "Promise"), ("compare", "Compare")]
    links = [
        tag("a", words, href=f"/{place}", aria_current="page" if place == here else None) for place, words in places
    ]
    used = ["studio.js", *dict.fromkeys([*scripts, *scripts_of(main)])]
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{title} · studio"),
        Markup('<link rel="icon" href="data:,">'),
        [Markup(f'<link rel="stylesheet" href="/static/{name}">') for name in ("page.css", "studio.css")],
        [tag("script", src=f"/static/{name}", defer=True) for name in used],
    )
    skip = tag("a", "Skip to the content", href="#content", class_="skip")
    top = tag("nav", tag("span", "rrf-design studio", class_="brand"), links, class_="places", aria_label="Views")
    offline = tag("p", "The studio does not answer. It is asked again by itself.", class_="offline", hidden=True)
    body = tag("body", skip, top, tag("div", offline, role="status"), tag("div", main, id="content"))
    return f'<!doctype html>\n<html lang="en">{head}{body}</html>\n'


def home(entries: Sequence[LibraryEntry], places: Sequence[str]) -> Markup:
    """Everything that was found, the newest first."""
    shown = [_entry(entry) for entry in entries]
    where = ", ".join(places)
    lead = prose(f"{len(entries)} found in {where}: documents, delivered tables, runs and reviews.")
    if not entries:
        lead = join(
            prose(f"Nothing to show in {where} yet."),
            prose("A table comes from: rrf-design deliver RECIPE --responses ANSWERS --risk 5% -o delivered.csv"),
        )
    return tag("main", tag("h1", "What there is"), lead, tag("ul", shown, class_="entries"))


def _entry(entry: LibraryEntry) -> Markup:
    link = link_of(entry)
    facts = [KINDS[entry.kind]]
    if entry.cost is not None:
        facts.append(f"cost {amount(round(entry.cost, 6) + 0.0)}")
    if entry.at is not None:
        facts.append(f"{entry.at:%Y-%m-%d %H:%M} UTC")
    name = tag("a", entry.title or entry.key, href=link) if not entry.trouble else tag("span", entry.title or entry.key)
    return tag(
        "li",
        tag("h2", name),
        tag("p", f"Can't be shown: {entry.trouble}", class_="trouble") if entry.trouble else prose(entry.sentence),
        verdict_bar(entry.verdicts) or entry.thumbnail,
        tag("p", " · ".join([entry.key, *facts]), class_="facts"),
        tag("p", "Next: ", entry.next, class_="facts") if entry.next else None,
        class_="entry",
    )


def link_of(entry: LibraryEntry) -> str:
    """Where something is shown."""
    view = {"table": "items", "labels": "review"}.get(entry.kind, "document")
    if entry.run and entry.next == "Watch it":
        view = "live"
    return address(view, of=entry.key)


def items(entry: LibraryEntry, index: TableIndex, view: ListView) -> Markup:
    """The rows of a delivered table."""
    total, counts = index.found(view)
    rows = index.rows(view)
    pages = max(1, -(-total // PAGE))
    shown = _table(entry, index, view, rows)
    masked = index.masked
    hidden = None
    if masked:
        many = "1 row waits for a blind look and is" if masked == 1 else f"{masked:,} rows wait for blind looks and are"
        hidden = callout(prose(f"{many} not shown here before the label is saved."))
    verdicts = index.verdicts if not masked else counts
    unread = f"; {index.unread:,} of the file can't be read (a NUL character, or too few cells)" if index.unread else ""
    return tag(
        "main",
        tag("header", tag("h1", entry.title), _subtitle(entry, entry.key) if entry.key != entry.title else None),
        callout(prose(table_sentence(index.verdicts))) if not masked else hidden,
        verdict_bar(verdicts),
        _filters(entry, index, view, counts),
        tag("p", f"{total:,} of {index.count:,} rows{unread}", class_="count", role="status"),
        shown,
        _paging(entry, view, pages),
        _links(entry, masked=bool(masked)),
        data_here="items",
    )


def _links(entry: LibraryEntry, *, masked: bool) -> Markup:
    links: list[Child] = [tag("a", "What may be promised of it", href=address("promise", of=entry.key))]
    if not masked:
        links += [" · ", tag("a", "Download the table", href=address("items/file", of=entry.key))]
    if entry.format == "rrf-delivery":
        links += [" · ", tag("a", "The whole document as a page", href=address("document", of=entry.key))]
    return prose(links)


def _filters(entry: LibraryEntry, index: TableIndex, view: ListView, counts: Mapping[str, int]) -> Markup:
    """Search and filters, as a form that works by itself."""

    def choice(name: str, words: str, here: bool, **changed: str) -> Markup:
        query = {**view.filters().query(), **changed}
        return tag("a", words, href=address("items", of=entry.key, **query), aria_current="true" if here else None)

    total = sum(counts.values())
    links = [choice("verdict", f"all {total:,}", not view.verdict, verdict="")]
    for verdict in Verdict:
        if counts.get(verdict.value):
            words = f"{verdict.value} {counts[verdict.value]:,}"
            links.append(choice("verdict", words, view.verdict == verdict.value, verdict=verdict.value))
    onlys = [("", "every row"), ("waiting", "waits for a look"), ("changed", "was corrected")]
    asked = ("q", "page", "column", "holds", "who")
    kept = {"of": entry.key, **{k: v for k, v in view.filters().query().items() if k not in asked}}
    columns = [tag("option", name, value=name, selected=name == view.column) for name in index.columns]
    who = {"": "anyone, or no one", **{name: f"{name} ({count:,})" for name, count in index.wrong().items()}}
    nodes = [tag("option", words, value=name, selected=name == view.who) for name, words in who.items()]
    untold = "This table has no column that says who was wrong: the delivery as .json does, and a row that is opened."
    form = tag(
        "form",
        [tag("input", type="hidden", name=name, value=text) for name, text in kept.items()],
        tag("label", "Search ", tag("input", type="search", name="q", value=view.search, autocomplete="off")),
        tag("label", "and in ", tag("select", columns, name="column")),
        tag("label", "the text ", tag("input", type="text", name="holds", value=view.holds, autocomplete="off")),
        tag("label", "wrong was ", tag("select", nodes, name="who")) if index.tells_who else None,
        tag("button", "Find", type="submit"),
        method="get",
        action="/items",
        role="search",
    )
    return tag(
        "div",
        form,
        tag("p", untold, class_="soft") if not index.tells_who else None,
        tag("div", links, class_="choices", role="group", aria_label="Verdict"),
        tag(
            "div",
            [choice("only", words, view.only == name, only=name) for name, words in onlys],
            class_="choices",
            role="group",
            aria_label="Rows",
        ),
        class_="filters",
    )


def _table(entry: LibraryEntry, index: TableIndex, view: ListView, rows: Sequence[Mapping[str, Any]]) -> Markup:
    """One page of rows; heads sort, the first cell opens."""
    first = [index.id_column] if index.id_column else []
    ours = [name for name in ("verdict",) if name in index.delivered.ours]
    said = [index.delivered.ours[name] for name in (*ours, "answer", "raw") if name in index.delivered.ours]
    said = [*said, *index.delivered.fields]
    shown = list(dict.fromkeys([*first, *said, *index.columns]))
    heads = [_head(entry, view, name) for name in shown]
    if not first:
        heads = [tag("th", "row", scope="col"), *heads]
    body = []
    verdict = index.delivered.ours["verdict"]
    for row in rows:
        link = tag("a", row["id"] or "(no id)", href=item_link(entry.key, row["id"], view), class_="opens")
        cells: list[Markup] = [] if first else [tag("td", link)]
        for name in shown:
            text = row["cells"][name]
            kind = f"v-{row['verdict']} verdict" if name == verdict else "right" if name in index.numeric else None
            cells.append(tag("td", link if first and name == first[0] else text, class_=kind))
        body.append(tag("tr", cells))
    empty = prose("No row fits.") if not rows else None
    made = tag("table", tag("thead", tag("tr", heads)), tag("tbody", body))
    return join(empty, tag("div", made, class_="rows", tabindex="0", role="region", aria_label="Rows"))


def _head(entry: LibraryEntry, view: ListView, name: str) -> Markup:
    here = view.sort == name
    down = here and not view.descending
    query = replace(view.filters(), sort=name, descending=down).query()
    link = tag("a", name, href=address("items", of=entry.key, **query))
    order = ("descending" if view.descending else "ascending") if here else None
    return tag("th", link, scope="col", aria_sort=order)


def _paging(entry: LibraryEntry, view: ListView, pages: int) -> Markup | None:
    if pages < 2:
        return None

    def link(words: str, number: int, rel: str) -> Markup:
        if not 1 <= number <= pages:
            return tag("span", words, class_="soft")
        query = {**view.filters().query(), "page": str(number)}
        return tag("a", words, href=address("items", of=entry.key, **query), rel=rel)

    at = tag("span", f"page {min(view.page, pages):,} of {pages:,}")
    return tag(
        "nav", link("Previous", view.page - 1, "prev"), at, link("Next", view.page + 1, "next"), class_="paging",
        aria_label="Pages",
    )  # fmt: skip


def item_link(key: str, name: str, view: ListView) -> str:
    """The address of one row, which remembers the list it stands in."""
    return address("item", of=key, id=name, **view.query())


def item(entry: LibraryEntry, index: TableIndex, view: ListView, found: Item) -> Markup:
    """One row with everything behind it."""
    at, total, before, after = index.beside(view, found.place)
    where = {key: text for key, text in view.query().items() if key != "page"}

    def step(words: str, name: str | None, rel: str) -> Markup:
        if name is None:
            return tag("span", words, class_="soft")
        return tag("a", words, href=address("item", of=entry.key, id=name, **where), rel=rel)

    back_to = {**where, "page": str(max(1, -(-at // PAGE)))} if at else where
    ways = tag(
        "nav",
        tag("a", "All rows", href=address("items", of=entry.key, **back_to), rel="up"),
        step("Previous (k)", before, "prev"),
        tag("span", f"{at:,} of {total:,}") if at else None,
        step("Next (j)", after, "next"),
        class_="paging",
        aria_label="Rows",
    )
    ours, titles = index.delivered.ours, {name: key for key, name in index.delivered.ours.items()}
    verdict = cell_text(found.ours.get(ours["verdict"]))
    answer = cell_text(found.ours.get(ours.get("answer", "")))
    shown = [Card("verdict", verdict, "", _kind(verdict))]
    if "answer" in ours:
        shown.append(Card("answer", (answer if len(answer) <= 80 else f"{answer[:80]}…") or "none"))
    reason = cell_text(found.ours.get(ours.get("reason", ""), ""))
    said = {titles.get(name, name): cell for name, cell in found.ours.items() if cell not in (None, "")}
    said = {key: cell for key, cell in said.items() if key not in ("verdict", "answer", "reason")}
    left = [
        _part("What was handed in", _definitions(found.own)),
        _part("What is said of it", _definitions(said)),
    ]
    right = [
        _part("Answers by what they mean", _groups(found.groups)) if found.groups else None,
        _part("The field", found.drawing) if found.drawing is not None else None,
    ]
    return tag(
        "main",
        ways,
        tag("header", tag("h1", f"Row {found.id}"), _subtitle(entry, entry.title)),
        callout(_in_words(found.groups), prose(sentence(reason or verdict)), kind=_kind(verdict)),
        cards(shown),
        prose(found.note) if found.note else None,
        tag("div", tag("div", left), tag("div", right), class_="sides") if any(right) else left,
        _part("What was asked and answered", _answers(found)) if found.answers else None,
        _bought(found) if found.run else None,
        data_here="item",
    )


def _in_words(groups: Sequence[tuple[str, Sequence[Any]]]) -> Markup | None:
    """How far the answers agree, before any reason."""
    if not groups:
        return None
    count = sum(len(who) for _, who in groups)
    text, most = groups[0][0], len(groups[0][1])
    if len(groups) == 1:
        return prose(f"{count} answer{'s' * (count != 1)}, all of them {_short(text)}.")
    ahead = f"{most} say {_short(text)}" if most > len(groups[1][1]) else f"no {most + 1} agree"
    return prose(f"{count} answers, {len(groups)} values: {ahead}.")


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}…"


def _part(heading: str, *content: Child) -> Markup:
    return tag("section", tag("h2", heading), content)


def _subtitle(entry: LibraryEntry, title: str) -> Markup | None:
    """Where it lies, if the title does not say so."""
    words = " · ".join(dict.fromkeys(text for text in (title, entry.key) if text))
    return tag("p", words, class_="subtitle")


def _kind(verdict: str) -> str:
    return SIGNS.get(verdict, "plain")


def _definitions(cells: Mapping[str, Any]) -> Markup:
    listed = [[tag("dt", name), tag("dd", _text(cell_text(cell)))] for name, cell in cells.items()]
    return tag("dl", listed, class_="cells")


def _text(text: str) -> Child:
    """A text with its line ends; what is long unfolds."""
    if len(text) <= LONGEST:
        return tag("span", text, class_="text")
    more = tag("details", tag("summary", f"all {len(text):,} characters"), tag("span", text, class_="text"))
    return [tag("span", f"{text[:LONGEST]}…", class_="text"), more]


def _groups(groups: Sequence[tuple[str, Sequence[Any]]]) -> Markup:
    """What was said, and by whom."""
    rows: list[list[Child]] = [[text, len(who), ", ".join(one.node for one in who)] for text, who in groups]
    return table(("value", "answers", "said by"), rows, right=[1])


def _answers(found: Item) -> list[Child]:
    made: list[Child] = []
    for said in found.answers:
        means = f"means {said.means}" if said.means is not None else said.status or "says only part of it"
        wrong = "found wrong; " if said.wrong else ""
        made.append(
            tag(
                "details",
                tag("summary", f"{said.node}: {wrong}{means}"),
                tag("h3", "Asked") if said.prompt else None,
                tag("pre", said.prompt, tabindex="0") if said.prompt else None,
                tag("h3", "Answered"),
                tag("pre", said.text or said.status, tabindex="0"),
            )
        )
    return made


def _bought(found: Item) -> Markup:
    """What was bought of the row, when and why, and what was sent and came back."""
    head = ("when (UTC)", "what", "why", "cost", "came to")
    rows = [
        [f"{one.at:%Y-%m-%d %H:%M:%S}", one.name, one.why, amount(one.cost), _short(one.came)] for one in found.bought
    ]
    raw = [
        tag(
            "details",
            tag("summary", f"{one.name}: raw request and response"),
            tag("pre", json_text(one.raw, indent=1), tabindex="0"),
        )
        for one in found.bought
        if one.raw
    ]
    return _part(
        "What was bought, and why",
        prose(f"In run {found.run}. It ended with: {found.ended}."),
        table(head, rows, right=[3], most=len(rows) + 1),
        raw,
    )


def live(entry: LibraryEntry) -> Markup:
    """A run while it goes on; `live.js` fills it in, and keeps it fresh."""

    def card(label: str, name: str, note: str) -> Markup:
        return tag(
            "div",
            tag("div", label, class_="label"),
            tag("div", "…", class_="value", data_name=name),
            tag("div", "", class_="note", data_name=note),
            class_="card",
        )

    figures = [
        card("items with a verdict", "items", "answered"),
        card("spent", "spent", "budget"),
        card("model calls", "calls", "flight"),
        card("money", "money", "limit"),
        card("answers a second", "rate", "over"),
        card("answers that failed", "failed", "kinds"),
    ]
    bar = tag("svg", viewBox="0 0 100 10", preserveAspectRatio="none", role="img", class_="verdicts")
    return tag(
        "main",
        tag("header", tag("h1", entry.title), tag("p", entry.run, class_="subtitle")),
        callout(tag("p", "It is being read …", data_name="state", role="status")),
        tag("div", bar, tag("ul", class_="legend"), class_="bar-by-verdict"),
        tag("div", figures, class_="cards"),
        prose("Verdicts are those of the answers there are so far; what is bought later may change them."),
        prose(tag("a", "Everything about the run, as it stands", href=address("document", of=entry.key))),
        tag("noscript", prose("This page needs JavaScript; rrf-design show says the same.")),
        data_live=entry.key,
    )


def review(library: Library, key: str) -> Markup:
    """The place where people answer; `review.js` asks for one question after the other."""
    stores = library.label_stores()
    if not key and len(stores) == 1:
        (key,) = stores
    if key not in stores:
        links = [tag("li", tag("a", name, href=address("review", of=name))) for name in stores]
        words = "Which of these?" if stores else "Nobody is asked anything here."
        how = [
            prose("A verb asks people when it is given a store of labels, and goes on when it is repeated:"),
            tag("pre", "rrf-design deliver RECIPE --responses ANSWERS --risk 5% --review labels.sqlite -o TABLE"),
        ]
        return tag("main", tag("h1", "Review"), prose(words), tag("ul", links) if links else how)
    store = stores[key]
    files = [
        tag("a", f"{queue}, as {form}", href=address("review/file", of=key, queue=queue, form=form))
        for queue in store.queues()
        for form in ("csv", "jsonl")
    ]
    keys = [
        [tag("kbd", key_), f" {words}"]
        for key_, words in (
            ("1", "to 9 take that answer; "),
            ("Enter", "what you typed; "),
            ("?", "nobody can tell; "),
            ("s", "later; "),
            ("u", "undo"),
        )
    ]
    form = tag(
        "form",
        tag("label", "What is right?", tag("input", type="text", name="value", autocomplete="off", spellcheck="false")),
        tag("button", "Save", type="submit"),
        tag("button", "Can't tell", type="button", data_act="unknown"),
        tag("button", "Later", type="button", data_act="later"),
        tag("button", "Undo", type="button", data_act="undo"),
    )
    return tag(
        "main",
        tag("h1", "Review"),
        tag("p", key, class_="subtitle"),
        tag("progress", value=0, max=1, aria_label="How much is answered"),
        tag("p", "The first question is fetched …", class_="said", role="status"),
        tag(
            "div",
            tag("p", class_="question"),
            tag("div", class_="about"),
            tag("ol", class_="answers"),
            form,
            class_="asked",
            hidden=True,
        ),
        prose(
            tag("button", "Have 10 labelled rows labelled by a second person", type="button", data_act="twice"),
            tag("span", "", class_="twice", role="status"),
        ),
        tag("p", keys, " — keys count while nothing is typed.", class_="keys"),
        prose("The review file: ", [[link, " "] for link in files]) if files else None,
        tag("noscript", prose("The review needs JavaScript. Without it, fill in the review file.")),
        class_="review",
        data_of=key,
    )


def document(library: Library, entry: LibraryEntry) -> tuple[str, Markup]:
    """A document's own page, within the studio."""
    if closed(library, entry):
        return entry.title, waits(entry)
    parts = fragments(library.source(entry))
    named = {"rrf-frontier": ("steps", "Go through it step by step")}
    named |= dict.fromkeys(PROVEN, ("proof", "Verify it now"))
    if entry.format in named:
        view, words = named[entry.format]
        link = tag("a", words, href=address(view, of=entry.key), class_="button", role="button")
        parts = replace(parts, lead=join(parts.lead, prose(link)))
    elif entry.format == "rrf-plan":
        words = "Every budget of it, step by step: rrf-design frontier PROBLEM -o frontier.json makes a slider here."
        parts = replace(parts, lead=join(parts.lead, prose(words)))
    return parts.title, parts.body()


def closed(library: Library, entry: LibraryEntry) -> bool:
    """Whether a document may not be seen now: it shows answers, and rows wait for a blind look."""
    return (entry.format in CLOSED or entry.kind == "run") and bool(library.blind())


def waits(entry: LibraryEntry) -> Markup:
    """In place of what would show answers."""
    words = "Rows wait for a blind look: this page shows answers, and opens when they are labelled."
    return tag("main", tag("h1", entry.title), callout(prose(words)), prose(tag("a", "Review", href="/review")))


def problem(title: str, words: str) -> Markup:
    """In place of what can't be shown."""
    return tag("main", tag("h1", title), callout(prose(words), kind="bad"), prose(tag("a", "Home", href="/")))


def export(library: Library, folder: str | os.PathLike[str]) -> list[Path]:
    """The same as static pages, each in one file, with an index.

    Parameters
    ----------
    library : Library
        What is shown.
    folder : path
        Where the pages are written; it is made where it is not there.

    Returns
    -------
    The files, the index first.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> [path.name for path in export(Library([folder]), folder)]
    ['index.html']
    """
    out = Path(folder)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: can't be made a folder ({error.strerror})") from None
    made, rows = [out / "index.html"], []
    for number, entry in enumerate(library.look(), start=1):
        name = f"{number:03d}-{''.join(c if c.isalnum() else '-' for c in Path(entry.key).name)[:60]}.html"
        shown: Child = entry.title
        if entry.kind != "labels" and not entry.trouble and not closed(library, entry):
            try:
                write_text(out / name, _static(library, entry))
            except RRFError as error:
                entry_words: str = f"{entry.sentence} (not written: {error})"
                rows.append([shown, "", entry_words, ""])
                continue
            made.append(out / name)
            shown = tag("a", entry.title, href=name)
        drawn = verdict_bar(entry.verdicts) or entry.thumbnail
        rows.append([shown, drawn, entry.trouble or entry.sentence, f"{entry.at:%Y-%m-%d %H:%M}" if entry.at else ""])
    listed = table(("what", "picture", "what may be said of it", "when (UTC)"), rows, most=len(rows) + 1)
    write_text(made[0], page("What there is", [section("Pages", listed)]))
    return made


def _static(library: Library, entry: LibraryEntry) -> str:
    if entry.kind != "table" or entry.format:
        return render(library.source(entry))
    assert entry.path is not None
    index = library.index(entry.path)
    from rrf_design.documents import sealed
    from rrf_design.reporting.delivery import delivery_page

    rows, number = [], 1
    while found := index.rows(ListView(page=number)):
        rows += [[row["cells"][name] for name in index.columns] for row in found]
        number += 1
    head = {"title": entry.title, "sentence": entry.sentence, "verdicts": index.verdicts}
    return delivery_page(sealed("rrf-item-table", {"head": head, "columns": index.columns, "rows": rows}))
