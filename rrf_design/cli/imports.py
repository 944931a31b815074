"""rrf-design import: answers that exist already."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from rrf_design.cli.output import Printer, print_json
from rrf_design.documents import writing
from rrf_design.errors import InputError


def import_verb(
    logs: Annotated[list[Path], typer.Argument(help="Logs of another tool.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", "-o", help="The rows to write (.jsonl).", show_default=False)],
    tool: Annotated[
        str, typer.Option("--from", help="inspect, promptfoo, lm-eval, openai-batch, rrf-design or auto.")
    ] = "auto",
    item: Annotated[str | None, typer.Option("--item", help="Where in a record the item's id stands: vars.no.")] = None,
    node: Annotated[
        str | None, typer.Option("--node", help="Where the wording's name stands: metadata.wording; =total for all.")
    ] = None,
    names: Annotated[
        list[str] | None,
        typer.Option("--node-names", help="Other names for nodes: old=new,...; may be given several times."),
    ] = None,
    answer: Annotated[str | None, typer.Option("--answer", help="Where the answer's text stands.")] = None,
    *,
    printer: Printer,
) -> None:
    """Read answers that exist already from another tool's log into rows that repair and acquire
    take.

    Each row has an id, a node, a repeat, the model, and a text or the status that says why there is
    none. No call is made.

    Example: rrf-design import log.eval --from inspect --item metadata.invoice -o answers.jsonl
    """
    from rrf_design.responses.imports import RecordPaths, node_names, read_logs, row_line

    if out.suffix.lower() != ".jsonl":
        raise InputError(f"{out}: the rows are written as .jsonl")
    renamed = node_names(names or ())
    items: set[str] = set()
    nodes: Counter[str] = Counter()
    unanswered = 0
    with writing(out) as stream:
        for row in read_logs(logs, tool, where=RecordPaths(item, node, answer), names=renamed):
            stream.write((row_line(row) + "\n").encode())
            items.add(row.id)
            nodes[row.node] += 1
            unanswered += row.status is not None
        if not nodes:
            raise InputError(f"{', '.join(map(str, logs))}: no answers in there")
    told = {"file": str(out), "rows": nodes.total(), "items": len(items), "nodes": dict(nodes)}
    if printer.as_json:
        print_json({**told, "without_text": unanswered})
    printer.news(f"Wrote {out}: {nodes.total()} answers of {len(items)} items, {unanswered} of them without a text.")
    printer.news("Nodes: " + ", ".join(f"{name} ({count})" for name, count in nodes.most_common(12)) + ".")
