"""Result documents as pages: one self-contained HTML file and one Markdown file, with the same content.

Every number on a page comes from the document or a table. Everything that is text is escaped: model answers and
problem files may hold markup.
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from typing import Any

from scenarios.base import Cell, Outcome, Table

STYLE = """
:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
h1{line-height:1.2}h2{margin-top:2.2rem}
table{border-collapse:collapse;font-size:.85rem;margin:.5rem 0}
th,td{padding:.2rem .6rem;text-align:left;border-bottom:1px solid #8884;vertical-align:top}
td.n{text-align:right;font-variant-numeric:tabular-nums}
.wide{overflow-x:auto}figure{margin:1.5rem 0}figure svg{max-width:100%;height:auto;background:#fff}
figcaption,.faint{color:#777;font-size:.85rem}
.met{color:#00664b}.violated{color:#b04a00;font-weight:600}
@media(prefers-color-scheme:dark){.met{color:#4fd1a5}.violated{color:#ffa35c}}
@media print{body{max-width:none}}
"""
MARKS = {"met": "✓ met", "violated": "✗ violated", "not judged": "– not judged"}


def show(cell: Cell) -> str:
    """A cell for people; the CSV file has all digits."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)


def html_page(document: Mapping[str, Any], outcome: Outcome) -> str:
    parts = [
        f"<h1>{_e(document['title'])}</h1>",
        f"<p><strong>{_e(document['question'])}</strong></p>",
        *(f"<p>{_e(text)}</p>" for text in _paragraphs(document["about"])),
        "<h2>What was expected, and what came</h2>",
        _html_rows(*_expectations(document), classes=[e["status"].split()[0] for e in document["expectations"]]),
        *(f"<p>{_e(note)}</p>" for note in document["notes"]),
    ]
    for figure in outcome.figures:
        parts.append(f"<figure>{figure.svg}<figcaption>{_e(figure.caption)}</figcaption></figure>")
    for table in outcome.tables:
        parts += [f"<h2>{_e(table.name)}</h2>", f"<p>{_e(table.caption)}</p>", _html_table(table)]
    parts += ["<h2>How it was made</h2>", _html_rows(["", ""], _made(document))]
    return _html(document["title"], parts)


def markdown_page(document: Mapping[str, Any], outcome: Outcome) -> str:
    parts = [
        f"# {_m(document['title'])}",
        f"**{_m(document['question'])}**",
        *(_m(text) for text in _paragraphs(document["about"])),
        "## What was expected, and what came",
        _markdown_rows(*_expectations(document)),
        *(_m(note) for note in document["notes"]),
        *(f"![{_m(figure.caption)}]({figure.name}.svg)" for figure in outcome.figures),
    ]
    for table in outcome.tables:
        rows = [[show(cell) for cell in row] for row in table.rows[: table.shown]]
        parts += [f"## {_m(table.name)}", _m(table.caption)]
        if rows:
            parts.append(_markdown_rows(list(table.columns), rows))
        parts.append(f"All {len(table.rows)} rows: [{table.name}.csv]({table.name}.csv)")
    parts += ["## How it was made", _markdown_rows(["what", "value"], _made(document))]
    return "\n\n".join(part for part in parts if part) + "\n"


def html_index(documents: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        f'<tr><td><a href="{_e(d["name"])}/index.html">{_e(d["title"])}</a></td><td>{_e(d["question"])}</td>'
        f'<td class="{"violated" if _counts(d)["violated"] else "met"}">{_e(_summary(d))}</td><td>{_e(d["size"])}</td></tr>'
        for d in documents
    ]
    head = "<tr><th>scenario</th><th>question</th><th>conditions</th><th>size</th></tr>"
    parts = [
        "<h1>Scenarios</h1>",
        f"<p>{_e(INDEX)}</p>",
        f'<div class="wide"><table>{head}{"".join(rows)}</table></div>',
    ]
    return _html("Scenarios", parts)


def markdown_index(documents: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        [f"[{_m(d['title'])}]({d['name']}/README.md)", _m(d["question"]), _summary(d), d["size"]] for d in documents
    ]
    return (
        "\n\n".join(
            ["# Scenarios", INDEX, _markdown_rows(["scenario", "question", "conditions", "size"], rows, raw=True)]
        )
        + "\n"
    )


INDEX = (
    "Each page was made by `rrf-design scenario run NAME`. The conditions were fixed before the run and are all "
    "reported, violations included."
)


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


def _paragraphs(text: str) -> list[str]:
    return [" ".join(part.split()) for part in text.split("\n\n") if part.strip()]


def _html(title: str, parts: Sequence[str]) -> str:
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{_e(title)}</title>'
    body = "\n".join(parts)
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}<style>{STYLE}</style></head>\n<body>\n{body}\n</body></html>\n'
    )


def _html_table(table: Table) -> str:
    if not table.rows:
        return "<p>No rows.</p>"
    head = "".join(f"<th>{_e(column)}</th>" for column in table.columns)
    body = "".join("<tr>" + "".join(_html_cell(cell) for cell in row) + "</tr>" for row in table.rows[: table.shown])
    left = len(table.rows) - len(table.rows[: table.shown])
    more = f'<p class="faint">{left} more rows in {_e(table.name)}.csv</p>' if left else ""
    return f'<div class="wide"><table><tr>{head}</tr>{body}</table></div>{more}'


def _html_cell(cell: Cell) -> str:
    number = isinstance(cell, int | float) and not isinstance(cell, bool)
    return f'<td class="n">{_e(show(cell))}</td>' if number else f"<td>{_e(show(cell))}</td>"


def _html_rows(head: Sequence[str], rows: Sequence[Sequence[str]], *, classes: Sequence[str] = ()) -> str:
    lines = ["<tr>" + "".join(f"<th>{_e(cell)}</th>" for cell in head) + "</tr>"] if any(head) else []
    for index, row in enumerate(rows):
        name = classes[index] if classes else ""
        cells = [f"<td>{_e(cell)}</td>" for cell in row]
        if name:
            cells[-1] = f'<td class="{_e(name)}">{_e(row[-1])}</td>'
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return f'<div class="wide"><table>{"".join(lines)}</table></div>'


def _markdown_rows(head: Sequence[str], rows: Sequence[Sequence[str]], *, raw: bool = False) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    lines += [f"| {' | '.join(cell if raw else _m(cell) for cell in row)} |" for row in rows]
    return "\n".join(lines)


def _e(text: str) -> str:
    return html.escape(str(text), quote=True)


def _m(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    escaped = "".join(f"\\{c}" if c in "\\`*_[]|<>#" else c for c in str(text))
    return " ".join(escaped.split())
