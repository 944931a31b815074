"""lm-evaluation-harness: `samples_TASK_DATE.jsonl`, a line per document and filter, so that
documents stand there more than once.

Item: `doc_id`; node: the task; repeats: the texts in `resps[0]`. Log-likelihood tasks have no texts
and are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rrf_design.errors import InputError
from rrf_design.responses.imports.records import ImportedRow, RecordPaths, at, lines, name_at, text_of

_FILE = re.compile(r"samples_(?P<task>.+?)_\d{4}-\d{2}-\d{2}T[\d\-.]+\.jsonl")


def read(path: Path, where: RecordPaths) -> Iterator[ImportedRow]:
    """The answers of one file of samples."""
    named = _FILE.fullmatch(path.name)
    task = named["task"] if named else path.stem.removeprefix("samples_")
    seen: dict[tuple[str, str], Any] = {}
    for number, record in lines(path):
        try:
            item = name_at(record, where.item or "doc_id", "item")
            node = name_at(record, where.node, "node") if where.node else task
            texts = _texts(record, where)
            # Another filter of the same document repeats its answers word for word; anything else
            # is a second document.
            mark = (record.get("doc_hash"), texts)
            if (item, node) in seen:
                if seen[item, node] != mark:
                    raise InputError(f"a second document {item!r} with other answers; use --item doc_hash")
                continue
        except InputError as error:
            raise InputError(f"line {number}: {error}") from None
        seen[item, node] = mark
        for repeat, text in enumerate(texts, start=1):
            yield ImportedRow(item, node, repeat, None, text, "missing" if text is None else None)


def _texts(record: dict[str, Any], where: RecordPaths) -> tuple[str | None, ...]:
    if where.answer is not None:
        return (text_of(at(record, where.answer)),)
    resps = record.get("resps")
    first = resps[0] if isinstance(resps, list) and resps else None
    if isinstance(first, str):
        first = [first]
    if not isinstance(first, list) or not first:
        raise InputError("no resps in it; is it a file of samples of lm-eval?")
    if not all(isinstance(text, str) for text in first):
        raise InputError("its answers are log-likelihoods, not texts; only tasks that generate text can be imported")
    return tuple(first)
