"""promptfoo: `-o out.json` (an object with `results.results`) and `.jsonl` (a result a line).

Item: a variable or metadata of the test, which must be named (`--item vars.no`), since `testIdx`
counts on through repeats and combinations and names nothing. Node: the prompt's label, or its
number where it has none; repeats are not exported, so they are counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rrf_design.errors import InputError
from rrf_design.responses.imports.records import ImportedRow, RecordPaths, at, lines, money, name_at, text_of, whole

_ITEMS = ("vars.id", "testCase.metadata.id", "metadata.id")
_LABEL = 80


def read(path: Path, where: RecordPaths) -> Iterator[ImportedRow]:
    """The answers of one export."""
    seen: Counter[tuple[str, str, str | None]] = Counter()
    for place, result in _results(path):
        try:
            row = _row(result, where)
        except InputError as error:
            raise InputError(f"{place}: {error}") from None
        key = (row.id, row.node, row.model)
        seen[key] += 1
        yield ImportedRow(row.id, row.node, seen[key], row.model, row.text, row.status, row.cost)


def _results(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    if path.suffix.lower() == ".jsonl":
        for number, record in lines(path):
            yield f"line {number}", record
        return
    results = at(whole(path), "results.results")
    if not isinstance(results, list):
        raise InputError("no results.results in it; is it an export of promptfoo?")
    for number, result in enumerate(results, start=1):
        if not isinstance(result, dict):
            raise InputError(f"result {number}: must be an object")
        yield f"result {number}", result


def _row(result: dict[str, Any], where: RecordPaths) -> ImportedRow:
    path = where.item or next((known for known in _ITEMS if at(result, known) is not None), None)
    if path is None:
        given = at(result, "vars")
        names = ", ".join(f"vars.{name:.40}" for name in list(given)[:8]) if isinstance(given, dict) else ""
        raise InputError(
            f"which variable names the item? Say so with --item{f' (there are: {names})' if names else ''}"
        )
    item = name_at(result, path, "item")
    node = name_at(result, where.node, "node") if where.node else _node(result)
    failed = result.get("failureReason") == 2 or (at(result, "response.output") is None and bool(result.get("error")))
    text = None if failed else text_of(at(result, where.answer or "response.output"))
    status = "error" if failed else "missing" if text is None else None
    return ImportedRow(item, node, 1, _model(result), text, status, money(result.get("cost")))


def _node(result: dict[str, Any]) -> str:
    label = at(result, "prompt.label")
    if isinstance(label, str) and 0 < len(label.strip()) <= _LABEL and "\n" not in label and "{{" not in label:
        return label.strip()
    place = result.get("promptIdx")
    if isinstance(place, bool) or not isinstance(place, int):
        raise InputError("neither a label nor a number of its prompt; say with --node what tells the wordings apart")
    return f"prompt-{place + 1}"


def _model(result: dict[str, Any]) -> str | None:
    provider = result.get("provider")
    for found in (at(provider, "label"), at(provider, "id"), provider):
        if isinstance(found, str) and found:
            return found
    return None
