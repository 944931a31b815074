"""OpenAI batch output: lines in any order, the item, wording and repeat in `custom_id` as
`ITEM::NODE::REPEAT`.

Both the chat and the responses format of the body are read; several choices of one request are its
repeats.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rrf_design.errors import InputError
from rrf_design.responses.imports.records import ImportedRow, RecordPaths, at, lines, name_at, text_of


def read(path: Path, where: RecordPaths) -> Iterator[ImportedRow]:
    """The answers of one output file; failures are in a second file of the same form."""
    for number, record in lines(path):
        try:
            yield from _rows(record, where)
        except InputError as error:
            raise InputError(f"line {number}: {error}") from None


def _rows(record: dict[str, Any], where: RecordPaths) -> Iterator[ImportedRow]:
    item, node, repeat = _names(record, where)
    body = at(record, "response.body")
    model = at(body, "model")
    model = model if isinstance(model, str) else None
    status_code = at(record, "response.status_code")
    if record.get("error") is not None or status_code != 200 or not isinstance(body, dict):
        yield ImportedRow(item, node, repeat, model, None, "error")
        return
    found = _answers(body) if where.answer is None else [(text_of(at(record, where.answer)), None)]
    for place, (text, status) in enumerate(found):
        yield ImportedRow(item, node, repeat + place, model, text, status or ("missing" if text is None else None))


def _names(record: dict[str, Any], where: RecordPaths) -> tuple[str, str, int]:
    custom = record.get("custom_id")
    parts = custom.split("::") if isinstance(custom, str) else []
    repeat = 1
    if len(parts) == 3:
        if not parts[2].isdecimal() or not 1 <= int(parts[2][:9]) <= 10**6:
            raise InputError(f"custom_id {custom!r:.80}: its repeat must be a whole number from 1 on")
        repeat = int(parts[2])
    whole_id = where.item is None and where.node is not None and len(parts) == 1
    if (where.item is None and not whole_id and len(parts) not in (2, 3)) or (
        where.node is None and len(parts) not in (2, 3)
    ):
        raise InputError(
            f"custom_id {custom!r:.80} is not ITEM::NODE or ITEM::NODE::REPEAT; say with --item and --node where"
            " they are"
        )
    item = name_at(record, where.item, "item") if where.item else name_at({"custom_id": parts[0]}, "custom_id", "item")
    node = name_at(record, where.node, "node") if where.node else name_at({"custom_id": parts[1]}, "custom_id", "node")
    return item, node, repeat


def _answers(body: dict[str, Any]) -> list[tuple[str | None, str | None]]:
    """Text or status of each choice."""
    choices = body.get("choices")
    if isinstance(choices, list):
        found = []
        for choice in choices:
            text = text_of(at(choice, "message.content"))
            refused = text is None and bool(at(choice, "message.refusal"))
            found.append((text, "refusal" if refused else None))
        return found or [(None, "missing")]
    output = body.get("output")
    if isinstance(output, list):
        contents = [content for entry in output if isinstance(content := at(entry, "content"), list)]
        parts = [part for content in contents for part in content if isinstance(part, dict)]
        texts = [part["text"] for part in parts if isinstance(part.get("text"), str)]
        if texts:
            return [("".join(texts), None)]
        return [(None, "refusal" if any(part.get("type") == "refusal" for part in parts) else "missing")]
    raise InputError("neither choices nor output in its body")
