"""The page: one self-contained HTML file that works offline, on paper, on a phone and without
colour vision.

A page is a title and sections; a section holds paragraphs, cards, tables and figures. A figure
can't be made without its table: `Picture` carries both, so that nobody has to read a number off a
drawing.

Nothing can be injected. Every text of a model, a problem file or a user enters a page through
`tag`, which escapes each child that is not `Markup` and every attribute; names of tags and
attributes come from our own code and are checked all the same. And the content security policy
allows exactly our own script and style by their hashes and nothing from anywhere else, so that
even markup that slipped through could not run.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from rrf_design.texts import digits, rounded_down, rounded_up

MANY = 200
"""Rows of a table beyond which only the first ones are written, with a line that says how many are
left out.
"""

SIGNS = {
    "checked": "good",
    "consistent": "plain",
    "ambiguous": "unsure",
    "incomplete": "unsure",
    "contradicted": "bad",
}
"""How a verdict is marked on every page: what is only consistent is not marked as right."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing, what it shows in one sentence (for those who can't see it), and the same as a
    table.
    """

    svg: Markup
    summary: str
    table: Markup


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with its content, linked from the list of contents."""

    heading: str
    content: Markup


@dataclass(frozen=True, slots=True)
class Card:
    """One figure that matters: what it is, its value, and the words without which the value means
    nothing.
    """

    label: str
    value: str
    note: str = ""
    kind: str = "plain"
    """"plain", "good", "bad" or "unsure": shown by a word-sized sign as well as by colour."""


def number(value: float | int | None, digits: int = 5) -> str:
    """A number for people: `digits` significant ones, a real minus sign, and words for what is not
    a number.
    """
    if value is None or value != value:
        return "not known"
    if value in (float("inf"), float("-inf")):
        return "unbounded" if value > 0 else "−∞"
    if isinstance(value, int):
        return f"{value:,}".replace(",", "\u202f").replace("-", "−")
    return f"{value:.{digits}g}".replace("e-0", "e-").replace("e+0", "e").replace("-", "−")


def at_least(value: float | None, digits: int = 5) -> str:
    """A proven lower bound for people: cut, so that what is shown is proven too."""
    return number(value if value is None or value - value != 0 else rounded_down(value, digits), digits)


def at_most(value: float | None, digits: int = 5) -> str:
    """A proven upper bound, an error that is promised: never shown smaller than it is."""
    return number(value if value is None or value - value != 0 else rounded_up(value, digits), digits)


def amount(value: Any) -> str:
    """A value that was answered, delivered or paid: with the digits it has, and without those that
    rounding left behind.
    """
    if isinstance(value, float) and value - value == 0:
        return digits(value).replace("e-0", "e-").replace("e+", "e").replace("-", "−")
    return number(value) if value is None or isinstance(value, int | float) else str(value)


def sentence(text: str) -> str:
    """With a capital letter and a full stop."""
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if not text or text.endswith((".", "!", "?")) else ".")


def prose(*children: Child) -> Markup:
    """A paragraph."""
    return tag("p", *children)


def code(text: str) -> Markup:
    """A name or a command, as it is typed."""
    return tag("code", text)


def bullets(items: Iterable[Child]) -> Markup:
    return tag("ul", [tag("li", item) for item in items])


def callout(*children: Child, kind: str = "plain") -> Markup:
    """A statement that must not be missed; kind as for a card."""
    return tag("div", sign(kind), tag("div", *children), class_=f"callout {kind}")


def sign(kind: str) -> Markup:
    """How a statement or a figure is marked, beside its colour."""
    return tag("span", {"plain": "i", "good": "✓", "bad": "✗", "unsure": "?"}[kind], class_="sign", aria_hidden="true")


def cards(items: Sequence[Card]) -> Markup:
    """The figures that matter, side by side."""
    made = []
    for item in items:
        mark = None if item.kind == "plain" else sign(item.kind)
        inside = [tag("div", item.label, class_="label"), tag("div", mark, item.value, class_="value")]
        note = tag("div", item.note, class_="note") if item.note else None
        made.append(tag("div", inside, note, class_=f"card {item.kind}"))
    return tag("div", made, class_="cards")


def verdict_bar(counts: Mapping[str, int]) -> Markup | None:
    """How many rows have which verdict; None where there is no row."""
    return share_bar([(name, counts.get(name, 0), f"v-{name}") for name in SIGNS])


def share_bar(parts: Sequence[tuple[str, int, str]]) -> Markup | None:
    """How many there are of each: one bar, with the numbers as words below; None where there is
    nothing. A part is a name, a count and the class of its colour.
    """
    named = [part for part in parts if part[1]]
    total = sum(count for _, count, _ in named)
    if not total:
        return None
    drawn, at = [], 0.0
    for _, count, kind in named:
        share = 100.0 * count / total
        drawn.append(tag("rect", x=at, y=0.0, width=share, height=10.0, class_=kind))
        at += share
    words = ", ".join(f"{count:,} {name}" for name, count, _ in named)
    where = {"viewBox": "0 0 100 10", "preserveAspectRatio": "none", "role": "img", "aria_label": words}
    legend = [
        tag("li", tag("svg", tag("rect", width=10.0, height=10.0, class_=kind), viewBox="0 0 10 10"),
            f"{count:,} {name}")
        for name, count, kind in named
    ]  # fmt: skip
    bar = tag("svg", tag("title", words), drawn, class_="verdicts", **where)
    return tag("div", bar, tag("ul", legend, class_="legend"), class_="bar-by-verdict")


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[Child]],
    *,
    caption: str = "",
    right: Sequence[int] = (),
    most: int = MANY,
    keys: Sequence[str] | None = None,
    follows: bool = False,
) -> Markup:
    """A table: `right` are the columns of numbers, `keys` tie rows to elements of a drawing
    (data-key), and a table that `follows` is filled anew when another part of the field is drawn.

    More than eight rows get a search box. More than `most` are cut, and the table says so.
    """
    shown, left = rows[:most], len(rows) - most
    side = ["right" if i in right else None for i in range(len(columns))]
    head = tag("tr", [tag("th", name, scope="col", class_=way) for name, way in zip(columns, side, strict=True)])
    body = []
    for index, row in enumerate(shown):
        cells = [tag("td", row[i], class_=side[i], data_label=name) for i, name in enumerate(columns)]
        body.append(tag("tr", cells, data_key=keys[index] if keys else None, tabindex="0" if keys else None))
    if not shown:
        body.append(tag("tr", tag("td", "nothing", colspan=str(len(columns)), class_="nothing")))
    more = f"{number(left)} more rows are not shown; the document has them all." if left > 0 else ""
    field = tag("input", type="search", class_="filter", autocomplete="off")
    search = tag("label", "Find in this table ", field, class_="search") if len(shown) > 8 else None
    parts = [tag("caption", caption) if caption else None, tag("thead", head), tag("tbody", body)]
    made = tag("table", parts, class_="follows" if follows else None)
    scroll = tag("div", made, class_="scroll", tabindex="0", role="region", aria_label=caption or "table")
    return tag("div", search, scroll, tag("p", more, class_="more") if more else None, class_="tablebox")


class Column(NamedTuple):
    """A column of a table of entries: its name, what its cell says of an entry (or the key under
    which the entry has it), and whether it holds numbers, which stand at the right.
    """

    name: str
    cell: Callable[[Any], Child] | str
    right: bool = False

    def of(self, entry: Any) -> Child:
        return str(entry[self.cell]) if isinstance(self.cell, str) else self.cell(entry)


def figures(name: str, cell: Callable[[Any], Child]) -> Column:
    """A column of numbers."""
    return Column(name, cell, right=True)


def listing(entries: Iterable[Any], *columns: Column | None, filled: bool = False, **options: Any) -> Markup:
    """A table with a row for each entry; `filled` leaves out columns that say nothing, None is no
    column, and `options` are those of `table`.
    """
    rows = list(entries)
    made = [(one, [one.of(entry) for entry in rows]) for one in columns if one is not None]
    if filled:
        made = [(one, cells) for one, cells in made if not rows or any(cell not in ("", None) for cell in cells)]
    right = [place for place, (one, _) in enumerate(made) if one.right]
    body = [[cells[i] for _, cells in made] for i in range(len(rows))]
    return table([one.name for one, _ in made], body, right=right, **options)


def figure(picture: Picture, *, caption: str) -> Markup:
    """A drawing with its caption and, beside it, its table, which scrolls where it is long."""
    return tag(
        "figure",
        tag("div", picture.svg, class_="drawing"),
        tag("figcaption", caption),
        tag("div", picture.table, class_="beside"),
        class_="figure pair",
    )


def section(heading: str, *content: Child) -> Section:
    """A part of the page: paragraphs, cards, tables and figures under one heading."""
    return Section(heading=heading, content=join(*content))


@dataclass(frozen=True, slots=True)
class PageParts:
    """What a kind of document shows, before it is HTML: the parts may be shown without their page.

    `lead`, the sentence that the verdict allows with the figures that go with it, stands above the
    contents; `picture`, the one drawing that says most, follows it; `facts` (digests, versions,
    dates) at the foot; a page that grows is loaded anew every `refresh` seconds.
    """

    title: str
    sections: Sequence[Section]
    subtitle: str = ""
    lead: Child = None
    picture: Child = None
    facts: Sequence[tuple[str, str]] = ()
    refresh: int | None = None

    @property
    def sentence(self) -> str:
        """What a page leads with, as text: its first paragraph."""
        found = re.search(r"<p>(.*?)</p>", join(self.lead), re.DOTALL)
        return "" if found is None else html.unescape(re.sub(r"<[^>]*>", "", found[1]))

    @property
    def thumbnail(self) -> Markup | None:
        """The picture, small and beside its sentence: nothing in it is a stop for the keyboard."""
        found = re.search(r"<svg(?! aria-hidden).*?</svg>", join(self.picture), re.DOTALL)
        if found is None:
            return None
        drawn = re.sub(r' (?:tabindex|role|data-[a-z]+|aria-[a-z]+)="[^"]*"', "", found[0])
        return tag("div", Markup(drawn), class_="thumb", aria_hidden="true")

    def body(self) -> Markup:
        """Everything between the head of a page and its scripts."""
        named = [(f"part-{i}", part) for i, part in enumerate(self.sections, start=1)]
        contents = None
        if len(named) > 2:
            links = [tag("li", tag("a", part.heading, href=f"#{anchor}")) for anchor, part in named]
            contents = tag("nav", tag("ul", links), aria_label="Contents")
        parts = [tag("section", tag("h2", part.heading), part.content, id=anchor) for anchor, part in named]
        listed = [[tag("dt", name), tag("dd", value)] for name, value in self.facts]
        foot = tag("footer", tag("dl", listed)) if listed else None
        subtitle = tag("p", self.subtitle, class_="subtitle") if self.subtitle else None
        header = tag("header", tag("h1", self.title), subtitle)
        return tag("main", header, self.lead, self.picture, contents, parts, foot)

    def html(self) -> str:
        """The whole page, in one file."""
        main = self.body()
        style, script = _asset("page.css"), Markup("".join(_asset(file) for file in scripts_of(main)))
        policy = (
            f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:;"
            " base-uri 'none'; form-action 'none'"
        )
        head = tag(
            "head",
            tag("meta", charset="utf-8"),
            tag("meta", http_equiv="Content-Security-Policy", content=policy),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("meta", name="color-scheme", content="light dark"),
            tag("meta", http_equiv="refresh", content=str(int(self.refresh))) if self.refresh else None,
            tag("title", self.title),
            tag("style", style),
        )
        return f'<!doctype html>\n<html lang="en">{head}<body>{main}{tag("script", script)}</body></html>\n'


def page(title: str, sections: Sequence[Section], **more: Any) -> str:
    """The whole page of these sections; see `PageParts`."""
    return PageParts(title, sections, **more).html()


_SCRIPTS = {'class="field"': "field.js", 'class="items"': "items.js"}
"""Scripts beyond the common one, by the element that needs them; data can't write either sign,
since it is escaped.
"""


def scripts_of(content: Markup) -> list[str]:
    """The scripts that this content needs, in the order in which they run."""
    return ["page.js", *(file for sign, file in _SCRIPTS.items() if sign in content)]


@cache
def _asset(name: str) -> Markup:
    """Our own style or script, written into every page."""
    return Markup(files("rrf_design.reporting").joinpath("assets", name).read_text(encoding="utf-8"))


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9:-]*\Z")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")
_VOID = frozenset({"meta", "input", "br", "hr", "img"})


class Markup(str):
    """Text that is already HTML or SVG. Only `tag`, `join` and our own constants make it."""

    __slots__ = ()


Child = str | float | None | Iterable["Child"]


def _escape(value: object) -> Markup:
    """Text as markup; control and direction-changing characters become visible, so that they can't
    disguise a page.
    """
    if isinstance(value, Markup):
        return value
    return Markup(html.escape(visible(str(value)), quote=True))


def visible(text: str) -> str:
    """Text in which nothing changes how the rest is shown."""
    if text.isprintable():  # most texts of most pages
        return text
    return _CONTROL.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def join(*children: Child) -> Markup:
    """All children one after the other; None is nothing, lists are flattened, text is escaped."""
    parts = []
    for child in children:
        if child is None:
            continue
        if isinstance(child, str | int | float):
            parts.append(_escape(child))
        else:
            parts.append(join(*child))
    return Markup("".join(parts))


def tag(name: str, /, *children: Child, **attributes: object) -> Markup:
    """One element.

    `class_` is class, `data_x` is data-x; False and None leave an attribute out, True has no value.
    """
    if not _NAME.match(name):
        raise ValueError(f"not the name of an element: {name!r}")
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{join(*children)}</{name}>")


def _attribute(key: str, value: object) -> str:
    name = key.rstrip("_").replace("_", "-")
    if not _NAME.match(name) or name.lower().startswith("on"):
        raise ValueError(f"not an attribute that a page may have: {name!r}")
    if value is None or value is False:
        return ""
    if value is True:
        return f" {name}"
    text = f"{value:.6g}" if isinstance(value, float) else _escape(value)
    return f' {name}="{text}"'
