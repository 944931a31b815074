"""The page of a scenario: what was expected, what came, its figures and its tables.

Figures lie beside the document as SVG files. They enter the page as images, in which no script
runs, whoever wrote them. Results that were kept without their pictures are shown without them.
"""

from __future__ import annotations

import base64
import csv
import gzip
import io
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rrf_design.errors import InputError
from rrf_design.reporting.pages import (
    Card,
    Child,
    Column,
    Markup,
    PageParts,
    cards,
    listing,
    number,
    prose,
    section,
    share_bar,
    sign,
    table,
    tag,
)

if TYPE_CHECKING:
    from rrf_design.reporting.documents import PageSource

REVISED = "Changed after a first result had been seen, and weaker evidence for it"
_SIGNS = {"met": "good", "violated": "bad"}


def scenario_page(source: PageSource) -> PageParts:
    """The page of a scenario's result document; `source.path` is where its tables and figures
    lie.
    """
    data = source.data
    verdicts = data.get("expectations", [])
    parts = [
        section(
            "What was expected, and what came",
            _expectations(verdicts),
            [prose(f"{REVISED}: {e.get('text', '')} ({e['revised']})") for e in verdicts if e.get("revised")],
            [prose(note) for note in data.get("notes", [])],
        )
    ]
    folder = source.path.parent if source.path is not None else None
    answer, figures = str(data.get("answer", "")), _drawn(folder, data.get("figures", []))
    opening = []
    if answer:
        opening.append(tag("p", tag("strong", answer)))
    picture: Child = condition_bar(verdicts)
    if figures:
        places = len(parts) + (2 if figures[1:] else 1)
        picture = [figures.pop(0), _numbers(data.get("tables", []), first=places)]
    if figures:
        parts.append(section("Figures", figures))
    if folder is not None:
        parts += [
            section(str(item["name"]), prose(str(item.get("caption", ""))), _table(folder, item))
            for item in data.get("tables", [])
        ]
    rows = [[name, _short(value)] for name, value in data.get("parameters", {}).items()]
    made = table(["parameter", "value"], rows, caption=f"Parameters of the {data.get('size', '')} size")
    parts.append(section("How it was made", made))
    facts = [(str(name), _short(value)) for name, value in data.get("environment", {}).items()]
    facts.append(("finished", str(data.get("finished", "not said"))))
    computed = Card("parts", number(data.get("parts")), f"{number(data.get('part_seconds'), 3)} s of computing")
    lead = cards([_conditions_card(verdicts), computed])
    return PageParts(
        str(data.get("title") or data.get("name", "scenario")),
        parts,
        subtitle=str(data.get("question", "")),
        lead=[*opening, lead],
        picture=[picture, prose(str(data.get("about", "")))],
        facts=facts,
    )


def condition_bar(verdicts: Sequence[Mapping[str, Any]]) -> Markup | None:
    """How many conditions were met, as a bar."""
    counts = Counter(str(item["status"]) for item in verdicts)
    kinds = {"met": "v-met", "violated": "v-violated", "not judged": "v-unjudged"}
    return share_bar([(name, counts[name], kind) for name, kind in kinds.items()])


def thumbnail(folder: Path, data: Mapping[str, Any]) -> Markup | None:
    """A scenario's first picture, small; without one, how many conditions were met.

    Parameters
    ----------
    folder : Path
        Where its result lies.
    data : mapping
        Its result document.

    Returns
    -------
    Markup, or None where there is nothing to draw.

    Examples
    --------
    >>> drawn = thumbnail(Path("."), {"expectations": [{"status": "met"}, {"status": "met"}]})
    >>> "2 met" in str(drawn)
    True
    """
    for item in data.get("figures", []):
        path = _inside(folder, f"{item['name']}.svg")
        if path.is_file():
            return tag("div", _image(path, str(item.get("caption", ""))), class_="thumb")
    return condition_bar(data.get("expectations", []))


def _conditions_card(verdicts: Sequence[Mapping[str, Any]]) -> Card:
    """How many conditions were met; one that was not judged is no failure, and no success
    either.
    """
    counts = {status: sum(item["status"] == status for item in verdicts) for status in (*_SIGNS, "not judged")}
    revised = sum(bool(item.get("revised")) for item in verdicts)
    words = "stated before the run" + (f", {revised} of them changed after a first result" if revised else "")
    words += "".join(f"; {counts[status]} {status}" for status in ("violated", "not judged") if counts[status])
    kind = "bad" if counts["violated"] else "good" if counts["met"] == len(verdicts) else "unsure"
    return Card("conditions met", f"{counts['met']} of {len(verdicts)}", words, kind)


def _expectations(verdicts: list[Mapping[str, Any]]) -> Markup:

    def verdict(item: Mapping[str, Any]) -> Markup:
        kind = _SIGNS.get(str(item["status"]), "unsure")
        return tag("span", sign(kind), str(item["status"]), class_=kind)

    return listing(
        verdicts,
        Column("verdict", verdict),
        Column("condition", lambda item: str(item.get("text", ""))),
        Column("paper", lambda item: str(item.get("paper", ""))) if any(e.get("paper") for e in verdicts) else None,
        Column("seen", lambda item: str(item.get("seen", ""))),
    )


def _numbers(tables: Sequence[Mapping[str, Any]], *, first: int) -> Markup | None:
    """Where the numbers behind the figures stand: tables are the sections from `first` on."""
    links = [tag("a", str(item["name"]), href=f"#part-{place}") for place, item in enumerate(tables, start=first)]
    if not links:
        return None
    listed = [child for i, link in enumerate(links) for child in ((", " if i else ""), link)]
    return prose("The same as tables: ", listed, ".")


def _inside(folder: Path, name: str) -> Path:
    path = folder / name
    if path.parent.resolve() != folder.resolve():
        raise InputError(f"{name!r}: a scenario's files lie beside its document")
    return path


def _drawn(folder: Path | None, figures: Sequence[Mapping[str, Any]]) -> list[Markup]:
    """The pictures that are there."""
    if folder is None:
        return []
    named = [(_inside(folder, f"{item['name']}.svg"), str(item.get("caption", ""))) for item in figures]
    return [_figure(path, caption) for path, caption in named if path.is_file()]


def _figure(path: Path, caption: str) -> Markup:
    return tag(
        "figure", tag("div", _image(path, caption), class_="drawing"), tag("figcaption", caption), class_="figure"
    )


def _image(path: Path, caption: str) -> Markup:
    encoded = base64.b64encode(path.read_bytes()).decode()
    return tag("img", src=f"data:image/svg+xml;base64,{encoded}", alt=caption)


def _table(folder: Path, item: Mapping[str, Any]) -> Markup:
    places = [_inside(folder, f"{item['name']}{ending}") for ending in (".csv.gz", ".csv")]
    path = next((place for place in places if place.is_file()), None)
    if path is None:
        return prose(f"The table {item['name']} is missing.")
    try:
        content = path.read_bytes()
        text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise InputError(f"{path}: can't be read ({error})") from None
    head, *rows = list(csv.reader(io.StringIO(text, newline=""))) or [[]]
    numeric = [i for i in range(len(head)) if rows and all(_number(row[i]) is not None or row[i] == "" for row in rows)]
    shown = [[_cell(cell) for cell in row] for row in rows[: item.get("shown", 60)]]
    left = len(rows) - len(shown)
    return tag(
        "div",
        table(head, shown, right=numeric),
        prose(f"{number(left)} more rows in {path.name}.") if left > 0 else None,
    )


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _cell(text: str) -> str:
    value = _number(text)
    return text if value is None else number(int(text) if text.lstrip("-").isdigit() else value)


def _short(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {item}" for name, item in value.items())
    text = number(value) if isinstance(value, float) else str(value)
    return text if len(text) <= 300 else text[:299] + "…"
