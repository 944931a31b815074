"""rrf-design import: answers that exist already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rrf_design.cli.output import Printer, print_json
from rrf_design.documents import writing
from rrf_design.errors import InputError

if TYPE_CHECKING:
    from rrf_design.responses.imports import ImportedRow


def import_verb(
    logs: Annotated[list[Path], typer.Argument(help="Logs of another tool.", show_default=False)],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            help="The rows to write: a .jsonl file, or a folder of Parquet parts by the hash of the id.",
            show_default=False,
        ),
    ],
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
    parts: Annotated[
        int | None, typer.Option("--parts", help="Of a folder: files that it has; 32 by default.", show_default=False)
    ] = None,
    *,
    printer: Printer,
) -> None:
    """Read answers that exist already from another tool's log into rows that repair and acquire
    take.

    Each row has an id, a node, a repeat, the model, and a text or the status that says why there is
    none. No call is made. A folder is for repair -o FOLDER/, whose workers read it part by part.

    Example: rrf-design import log.eval --from inspect --item metadata.invoice -o answers.jsonl
    """
    from rrf_design.responses.imports import RecordPaths, node_names, read_logs

    if out.suffix.lower() not in (".jsonl", ""):
        raise InputError(f"{out}: the rows are written as .jsonl, or into a folder, whose name has no ending")
    if out.suffix and parts is not None:
        raise InputError("--parts goes with a folder: -o FOLDER/")
    renamed = node_names(names or ())
    items: set[str] = set()
    nodes: Counter[str] = Counter()
    unanswered = 0
    with _lines(out) if out.suffix else _parts(out, parts) as write:
        for row in read_logs(logs, tool, where=RecordPaths(item, node, answer), names=renamed):
            write(row)
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


@contextmanager
def _lines(out: Path) -> Iterator[Callable[[ImportedRow], object]]:
    from rrf_design.responses.imports import row_line

    with writing(out) as stream:
        yield lambda row: stream.write((row_line(row) + "\n").encode())


@contextmanager
def _parts(out: Path, parts: int | None) -> Iterator[Callable[[ImportedRow], object]]:
    from rrf_design.questions.answers import PARTS, AnswerParts

    with AnswerParts(out, PARTS if parts is None else parts) as folder:
        yield lambda row: folder.add(asdict(row))
