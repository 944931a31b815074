"""Inspect AI: `.eval` (a zip of `header.json` and `samples/ID_epoch_N.json`, zstd or deflate) and `.json` (one object).

Item: the sample's `id`; node: the task; repeat: the epoch. Long texts are kept once, as attachments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rrf_design.errors import InputError
from rrf_design.responses.imports.archive import Archive
from rrf_design.responses.imports.records import ImportedRow, RecordPaths, at, money, name_at, parse, text_of, whole

_SAMPLE = re.compile(r"samples/.+_epoch_\d+(?:/sample)?\.json")


def read(path: Path, where: RecordPaths) -> Iterator[ImportedRow]:
    """The answers of one log."""
    if path.suffix.lower() == ".json":
        log = whole(path)
        samples = at(log, "samples")
        if not isinstance(log, dict) or not isinstance(samples, list):
            raise InputError("no list of samples in it; is it a log of Inspect AI?")
        for number, sample in enumerate(samples, start=1):
            yield _row(sample, log, where, f"sample {number}")
        return
    with Archive(path) as archive:
        header = next((name for name in ("header.json", "_journal/start.json") if name in archive), None)
        head = parse(archive.read(header), header) if header else {}
        members = [name for name in archive if _SAMPLE.fullmatch(name)]
        if not members:
            raise InputError("no samples in it; is it a log of Inspect AI?")
        for name in members:
            yield _row(parse(archive.read(name), f"member {name!r:.80}"), head, where, f"member {name!r:.80}")


def _row(sample: Any, log: Any, where: RecordPaths, place: str) -> ImportedRow:
    if not isinstance(sample, dict):
        raise InputError(f"{place}: must be an object")
    try:
        item = name_at(sample, where.item or "id", "item")
        node = name_at(sample if where.node else log, where.node or "eval.task", "node")
    except InputError as error:
        raise InputError(f"{place}: {error}") from None
    epoch = sample.get("epoch", 1)
    if isinstance(epoch, bool) or not isinstance(epoch, int) or epoch < 1:
        raise InputError(f"{place}: epoch is {epoch!r:.40}, not a whole number from 1 on")
    model, status = at(log, "eval.model"), _status(sample)
    text = None if status else _attached(_answer(sample, where), sample)
    status = status or ("missing" if text is None else None)
    return ImportedRow(item, node, epoch, model if isinstance(model, str) else None, text, status, _cost(sample))


def _answer(sample: dict[str, Any], where: RecordPaths) -> str | None:
    if where.answer is not None:
        return text_of(at(sample, where.answer))
    completion = at(sample, "output.completion")
    if isinstance(completion, str) and completion:
        return completion
    return text_of(at(sample, "output.choices.0.message.content"))


def _attached(text: str | None, sample: dict[str, Any]) -> str | None:
    if text is None or not text.startswith("attachment://"):
        return text
    kept = at(sample, "attachments")
    found = kept.get(text.removeprefix("attachment://")) if isinstance(kept, dict) else None
    return found if isinstance(found, str) else None


def _status(sample: dict[str, Any]) -> str | None:
    if sample.get("error") is not None:
        return "error"
    limit = sample.get("limit")
    if limit is None:
        return None
    kind = limit.get("type") if isinstance(limit, dict) else limit
    return "timeout" if kind in ("time", "working") else "error"


def _cost(sample: dict[str, Any]) -> float | None:
    usage = sample.get("model_usage")
    costs = [money(at(entry, "total_cost")) for entry in usage.values()] if isinstance(usage, dict) else []
    known = [cost for cost in costs if cost is not None]
    return money(sum(known)) if known else None
