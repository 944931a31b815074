"""Answers that exist already, in the logs of other tools: rows `id node repeat model text status
cost`, and no call is made.

One function per tool reads its log as that tool writes it. What is taken for the item, the wording
and the answer can be said by a path into the tool's own record (`metadata.invoice`, `vars.no`), or
by a constant (`=total`). Logs are anybody's: nothing in them is executed or written to a path of
its own choosing, and sizes are bounded.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from rrf_design.errors import InputError
from rrf_design.files import suggestion
from rrf_design.responses.imports import _inspect_logs as inspect_logs
from rrf_design.responses.imports import _json_logs as json_logs
from rrf_design.responses.imports._records import ImportedRow as ImportedRow
from rrf_design.responses.imports._records import RecordPaths as RecordPaths
from rrf_design.responses.imports._records import first_record
from rrf_design.responses.parsed import RECORDED

Reader = Callable[[Path, RecordPaths], Iterator[ImportedRow]]
TOOLS: Mapping[str, Reader] = {
    "inspect": inspect_logs.read,
    "promptfoo": json_logs.promptfoo,
    "lm-eval": json_logs.lm_eval,
    "openai-batch": json_logs.openai_batch,
    "rrf-design": json_logs.own_run,
}


def node_names(given: Iterable[str]) -> dict[str, str]:
    """New names of nodes by old ones, from texts `old=new,...`.

    An old one may hold commas and equals signs: it is a tool's own label.
    """
    found: dict[str, str] = {}
    for text in given:
        begun = ""
        for part in text.split(","):
            begun = f"{begun},{part}" if begun else part
            if "=" not in part:
                continue  # the label goes on behind its comma
            old, _, new = (piece.strip() for piece in begun.rpartition("="))
            if not old or not new or found.setdefault(old, new) != new:
                raise InputError(f"--node-names {begun.strip()!r}: write old=new,... with each old name once")
            begun = ""
        if begun:
            raise InputError(f"--node-names {begun.strip()!r}: write old=new,...")
    return found


def read_logs(
    paths: Iterable[str | os.PathLike[str]],
    tool: str = "auto",
    *,
    where: RecordPaths | None = None,
    names: Mapping[str, str] | None = None,
) -> Iterator[ImportedRow]:
    """The answers in some logs, one after the other; InputError names the file, the record and what
    is wrong.

    `names`: what nodes are called instead; each of them must occur.
    """
    new, met = names or {}, set[str]()
    if tool != "auto" and tool not in TOOLS:
        raise InputError(f"--from {tool!r} is unknown{suggestion(tool, TOOLS)} (known: {', '.join(TOOLS)}, auto)")
    seen: dict[tuple[str, str, str, int], str] = {}
    for path in map(Path, paths):
        try:
            read = TOOLS[recognise(path) if tool == "auto" else tool]
            for own in read(path, where or RecordPaths()):
                met.add(own.node)
                row = replace(own, node=new.get(own.node, own.node))
                key = (row.id, row.node, row.model or "", row.repeat)
                if key in seen:
                    raise InputError(
                        f"a second answer of item {row.id!r}, node {row.node!r}, repeat {row.repeat}"
                        f" (the first is in {seen[key]}); say with --item and --node what tells them apart"
                    )
                seen[key] = str(path)
                yield row
        except InputError as error:
            message = str(error)
            raise InputError(message if message.startswith(f"{path}: ") else f"{path}: {message}") from None
    for name in new:
        if name not in met:
            raise InputError(f"--node-names: no node {name!r}{suggestion(name, met)} (there are: {_listed(met)})")


def _listed(names: Iterable[str]) -> str:
    listed = sorted(names)
    return ", ".join(listed[:12]) + (f" and {len(listed) - 12} more" if len(listed) > 12 else "")


def recognise(path: Path) -> str:
    """Which tool wrote a log, by its ending and its first record."""
    if path.suffix.lower() == ".eval":
        return "inspect"
    record = first_record(path)
    if record.get("format") == RECORDED:
        return "rrf-design"
    if "custom_id" in record:
        return "openai-batch"
    if "resps" in record:
        return "lm-eval"
    if "eval" in record or "samples" in record:  # its scores are called results, too
        return "inspect"
    if "results" in record or "promptIdx" in record or "testIdx" in record:
        return "promptfoo"
    raise InputError(f"no log of a known tool; say which with --from ({', '.join(TOOLS)})")


def row_line(row: ImportedRow) -> str:
    """The row as a line of JSON; what there is not is left out."""
    given = {"id": row.id, "node": row.node, "repeat": row.repeat, "model": row.model, "text": row.text}
    given |= {"status": row.status, "cost": row.cost}
    given = {key: value for key, value in given.items() if value is not None}
    line = json.dumps(given, ensure_ascii=False)
    # Half a character has no UTF-8; JSON can still say it.
    return json.dumps(given) if any("\ud800" <= character <= "\udfff" for character in line) else line
