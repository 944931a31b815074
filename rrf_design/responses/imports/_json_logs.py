"""The tools whose logs are plain JSON, an object or lines of them; each says what it takes for
item, node and repeat where `RecordPaths` does not.

OpenAI batch output has its lines in any order: item, wording and repeat stand in `custom_id` as
`ITEM::NODE::REPEAT`. Both the chat and the responses format of the body are read; several choices
of one request are its repeats.

promptfoo writes `-o out.json` (an object with `results.results`) and `.jsonl` (a result a line).
The item is a variable or metadata of the test, which must be named (`--item vars.no`), since
`testIdx` counts on through repeats and combinations and names nothing; the node is the prompt's
label, or its number where it has none. Repeats are not exported, so they are counted.

lm-evaluation-harness writes `samples_TASK_DATE.jsonl`, a line per document and filter, so that
documents stand there more than once. The item is `doc_id`, the node the task, and the repeats are
the texts in `resps[0]`. Log-likelihood tasks have no texts and are refused.

Runs of this program (`show --answers FILE.jsonl`) have an answer a line, with its item and node; a
question that was asked several times has a node for each. What checks were told is left out: it
is no answer to a node.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rrf_design.errors import InputError
from rrf_design.responses.imports._records import (
    ImportedRow,
    RecordPaths,
    at,
    by_line,
    each,
    money,
    name_at,
    objects,
    text_of,
    whole,
)
from rrf_design.responses.parsed import recorded_response


def own_run(path: Path, where: RecordPaths) -> Iterator[ImportedRow]:
    """The answers of one run of this program."""

    def rows(record: dict[str, Any]) -> Iterator[ImportedRow]:
        said = recorded_response(record)
        if said is not None:
            item, node = name_at(record, where.item or "item", "item"), name_at(record, where.node or "node", "node")
            yield ImportedRow(item, node, text=said.get("text"), status=said.get("status"))

    return each(by_line(path), rows)


_SAMPLES = re.compile(r"samples_(?P<task>.+?)_\d{4}-\d{2}-\d{2}T[\d\-.]+\.jsonl")


def lm_eval(path: Path, where: RecordPaths) -> Iterator[ImportedRow]:
    """The answers of one file of samples of lm-evaluation-harness."""
    named = _SAMPLES.fullmatch(path.name)
    task = named["task"] if named else path.stem.removeprefix("samples_")
    seen: dict[tuple[str, str], Any] = {}

    def rows(record: dict[str, Any]) -> Iterator[ImportedRow]:
        item = name_at(record, where.item or "doc_id", "item")
        node = name_at(record, where.node, "node") if where.node else task
        texts = _sampled_texts(record, where)
        # Another filter of the same document repeats its answers word for word; anything else is a
        # second document.
        mark = (record.get("doc_hash"), texts)
        if seen.setdefault((item, node), mark) is mark:
            for repeat, text in enumerate(texts, start=1):
                yield ImportedRow(item, node, repeat, None, text, "missing" if text is None else None)
        elif seen[item, node] != mark:
            raise InputError(f"a second document {item!r} with other answers; use --item doc_hash")

    return each(by_line(path), rows)


def _sampled_texts(record: dict[str, Any], where: RecordPaths) -> tuple[str | None, ...]:
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


def openai_batch(path: Path, where: RecordPaths) -> Iterator[ImportedRow]:
    """The answers of one output file; failures are in a second file of the same form."""

    def rows(record: dict[str, Any]) -> Iterator[ImportedRow]:
        item, node, repeat = _batch_names(record, where)
        body = at(record, "response.body")
        model = at(body, "model")
        model = model if isinstance(model, str) else None
        if record.get("error") is not None or at(record, "response.status_code") != 200 or not isinstance(body, dict):
            yield ImportedRow(item, node, repeat, model, None, "error")
            return
        found = _batch_answers(body) if where.answer is None else [(text_of(at(record, where.answer)), None)]
        for place, (text, status) in enumerate(found):
            yield ImportedRow(item, node, repeat + place, model, text, status or ("missing" if text is None else None))

    return each(by_line(path), rows)


def _batch_names(record: dict[str, Any], where: RecordPaths) -> tuple[str, str, int]:
    custom = record.get("custom_id")
    parts = custom.split("::") if isinstance(custom, str) else []
    if len(parts) == 3 and not (parts[2].isdecimal() and 1 <= int(parts[2][:9]) <= 10**6):
        raise InputError(f"custom_id {custom!r:.80}: its repeat must be a whole number from 1 on")
    named = len(parts) in (2, 3)
    alone = len(parts) == 1 and where.node is not None  # the whole id is the item's
    if (where.item is None and not alone and not named) or (where.node is None and not named):
        raise InputError(
            f"custom_id {custom!r:.80} is not ITEM::NODE or ITEM::NODE::REPEAT; say with --item and --node where"
            " they are"
        )
    item = name_at(record, where.item, "item") if where.item else name_at({"custom_id": parts[0]}, "custom_id", "item")
    node = name_at(record, where.node, "node") if where.node else name_at({"custom_id": parts[1]}, "custom_id", "node")
    return item, node, int(parts[2]) if len(parts) == 3 else 1


def _batch_answers(body: dict[str, Any]) -> list[tuple[str | None, str | None]]:
    """Text or status of each choice."""
    choices, output = body.get("choices"), body.get("output")
    if isinstance(choices, list):
        found = []
        for choice in choices:
            text = text_of(at(choice, "message.content"))
            refused = text is None and bool(at(choice, "message.refusal"))
            found.append((text, "refusal" if refused else None))
        return found or [(None, "missing")]
    if isinstance(output, list):
        contents = [content for entry in output if isinstance(content := at(entry, "content"), list)]
        parts = [part for content in contents for part in content if isinstance(part, dict)]
        texts = [part["text"] for part in parts if isinstance(part.get("text"), str)]
        if texts:
            return [("".join(texts), None)]
        return [(None, "refusal" if any(part.get("type") == "refusal" for part in parts) else "missing")]
    raise InputError("neither choices nor output in its body")


_ITEMS = ("vars.id", "testCase.metadata.id", "metadata.id")
_LABEL = 80


def promptfoo(path: Path, where: RecordPaths) -> Iterator[ImportedRow]:
    """The answers of one export of promptfoo."""
    seen: Counter[tuple[str, str, str | None]] = Counter()

    def rows(result: dict[str, Any]) -> Iterator[ImportedRow]:
        known = where.item or next((known for known in _ITEMS if at(result, known) is not None), None)
        if known is None:
            given = at(result, "vars")
            names = ", ".join(f"vars.{name:.40}" for name in list(given)[:8]) if isinstance(given, dict) else ""
            raise InputError(
                f"which variable names the item? Say so with --item{f' (there are: {names})' if names else ''}"
            )
        item = name_at(result, known, "item")
        node = name_at(result, where.node, "node") if where.node else _prompt_name(result)
        provider, output = result.get("provider"), at(result, "response.output")
        named = (at(provider, "label"), at(provider, "id"), provider)
        model = next((name for name in named if isinstance(name, str) and name), None)
        failed = result.get("failureReason") == 2 or (output is None and bool(result.get("error")))
        text = None if failed else text_of(at(result, where.answer or "response.output"))
        seen[item, node, model] += 1
        status = "error" if failed else "missing" if text is None else None
        yield ImportedRow(item, node, seen[item, node, model], model, text, status, money(result.get("cost")))

    if path.suffix.lower() == ".jsonl":
        return each(by_line(path), rows)
    results = at(whole(path), "results.results")
    if not isinstance(results, list):
        raise InputError("no results.results in it; is it an export of promptfoo?")
    return each(objects(results, "result"), rows)


def _prompt_name(result: dict[str, Any]) -> str:
    label = at(result, "prompt.label")
    if isinstance(label, str) and 0 < len(label.strip()) <= _LABEL and "\n" not in label and "{{" not in label:
        return label.strip()
    place = result.get("promptIdx")
    if isinstance(place, bool) or not isinstance(place, int):
        raise InputError("neither a label nor a number of its prompt; say with --node what tells the wordings apart")
    return f"prompt-{place + 1}"
