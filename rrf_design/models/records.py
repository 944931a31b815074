"""Answers on paper: one JSON object per line, ``{"format", "version", "key", "request", "reply"}``.

The journal stores the same object per purchase, so a run's log can be published and replayed without the weights.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rrf_design.documents import checked, sealed
from rrf_design.errors import InputError
from rrf_design.models.base import Reply, Request, key
from rrf_design.texts import json_text


def record(request: Request, reply: Reply, **extra: Any) -> dict[str, Any]:
    """The log entry of one answer; ``extra`` carries what the caller knows (run, item, node, parsed value)."""
    said = {"key": key(request, reply.identity), "request": request.document(), "reply": reply.document()}
    return sealed("rrf-answer", {**said, **extra})


def write_records(path: str | Path, records: Iterable[Mapping[str, Any]]) -> None:
    with Path(path).open("w", encoding="utf-8") as file:
        for entry in records:
            file.write(json_text(entry, sort_keys=True) + "\n")


def read_records(path: str | Path) -> Iterator[dict[str, Any]]:
    """The entries of a log file; a line that is not an answer is an error with its line number."""
    try:
        lines = Path(path).read_text(encoding="utf-8").split("\n")
    except OSError as error:
        raise InputError(f"{path}: can't read the answer log ({error.strerror})") from None
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield _entry(line, f"{path}, line {number}")


def _entry(line: str, where: str) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except ValueError as error:
        raise InputError(f"{where}: not JSON ({error})") from None
    try:
        return dict(checked(entry, "rrf-answer", what="recorded answer"))
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
