"""Result documents as Markdown, and the index of all of them.

The HTML page of a document is `rrf_design.reporting`'s.

Every number on a page comes from the document or a table. Text is escaped: model answers and
problem files may hold markup.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scenarios.kit.report import Cell, Report

MARKS = {"met": "✓ met", "violated": "✗ violated", "not judged": "– not judged"}
INDEX = (
    "Each page was made by `rrf-design scenario run NAME`. Conditions stand in the code before a run and are all "
    "reported, violations included."
)
REVISED = "Changed after a first result had been seen, and weaker evidence for it"


def show(cell: Cell) -> str:
    """A cell for people; the CSV file has all digits."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)


def markdown_page(document: Mapping[str, Any], outcome: Report) -> str:
    parts = [
        f"# {_m(document['title'])}",
        f"**{_m(document['question'])}**",
        _m(outcome.answer),
        *(_m(text) for text in document["about"].split("\n\n")),
        "## What was expected, and what came",
        _markdown_rows(*_expectations(document)),
        *_revised([document], named=False),
        *(_m(note) for note in document["notes"]),
    ]
    for table in outcome.tables:
        rows = [[show(cell) for cell in row] for row in table.rows[: table.shown]]
        parts += [f"## {_m(table.name)}", _m(table.caption)]
        if rows:
            parts.append(_markdown_rows(list(table.columns), rows))
        parts.append(f"All {len(table.rows)} rows: [{table.name}.csv.gz]({table.name}.csv.gz)")
    parts += ["## How it was made", _markdown_rows(["what", "value"], _made(document))]
    return "\n\n".join(part for part in parts if part) + "\n"


def html_index(documents: Sequence[Mapping[str, Any]], results: Path) -> str:
    """The page over all scenarios, whose results lie in a folder: each with a picture."""
    from rrf_design.reporting import page, section, table, thumbnail
    from rrf_design.reporting.pages import tag

    revised = revisions(documents, named=True)
    rows = [
        [
            thumbnail(results / d["name"], d),
            tag("a", d["title"], href=f"{d['name']}/index.html"),
            d["question"],
            _summary(d),
            d["size"],
        ]
        for d in documents
    ]
    parts = [section("All scenarios", table(["conditions met", "scenario", "question", "conditions", "size"], rows))]
    if revised:
        parts.append(section("Conditions that were revised", *(tag("p", text) for text in revised)))
    return page("Scenarios", parts, subtitle=INDEX.replace("`", ""))


def markdown_index(documents: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        [f"[{_m(d['title'])}]({d['name']}/README.md)", _m(d["question"]), _summary(d), d["size"]] for d in documents
    ]
    return (
        "\n\n".join(
            [
                "# Scenarios",
                INDEX,
                _markdown_rows(["scenario", "question", "conditions", "size"], rows, raw=True),
                *_revised(documents, named=True),
            ]
        )
        + "\n"
    )


def revisions(documents: Sequence[Mapping[str, Any]], *, named: bool) -> list[str]:
    """One line per condition that is not what it was before its first result."""
    return [
        f"{document['name'] + ': ' if named else ''}{entry['text']} ({entry['revised']})"
        for document in documents
        for entry in document["expectations"]
        if entry.get("revised")
    ]


def _revised(documents: Sequence[Mapping[str, Any]], *, named: bool) -> list[str]:
    lines = revisions(documents, named=named)
    return [f"{REVISED}:", "\n".join(f"- {_m(line)}" for line in lines)] if lines else []


def _counts(document: Mapping[str, Any]) -> dict[str, int]:
    statuses = [e["status"] for e in document["expectations"]]
    return {status: statuses.count(status) for status in MARKS}


def _summary(document: Mapping[str, Any]) -> str:
    return ", ".join(f"{count} {status}" for status, count in _counts(document).items() if count)


def _expectations(document: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    entries = document["expectations"]
    paper = any(e["paper"] for e in entries)
    head = ["condition", *(["paper"] if paper else []), "seen", "verdict"]
    return head, [[e["text"], *([e["paper"]] if paper else []), e["seen"], MARKS[e["status"]]] for e in entries]


def _made(document: Mapping[str, Any]) -> list[list[str]]:
    where = document["environment"]
    packages = ", ".join(f"{name} {version}" for name, version in where["packages"].items())
    return [
        ["command", f"rrf-design scenario run {document['name']}{' --quick' if document['size'] == 'quick' else ''}"],
        ["parameters", json.dumps(document["parameters"], ensure_ascii=False)],
        ["work", f"{document['parts']} parts, {document['part_seconds']:.1f} s of computing"],
        ["finished", document["finished"]],
        [
            "environment",
            f"Python {where['python']} on {where['system']} {where['machine']}, {where['cores']} cores; {packages}",
        ],
    ]


def _markdown_rows(head: Sequence[str], rows: Sequence[Sequence[str]], *, raw: bool = False) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    lines += [f"| {' | '.join(cell if raw else _m(cell) for cell in row)} |" for row in rows]
    return "\n".join(lines)


def _m(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    escaped = "".join(f"\\{c}" if c in "\\`*_[]|<>#" else c for c in str(text))
    return " ".join(escaped.split())
