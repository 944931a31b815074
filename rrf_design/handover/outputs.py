"""Several outputs of one result: the ending of each decides what it is."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rrf_design.documents.formats import FORMATS
from rrf_design.documents.junit import Case, write_junit
from rrf_design.errors import InputError
from rrf_design.files import write_text, writing
from rrf_design.handover.delivered import Delivery
from rrf_design.questions.answers import RecordedAnswer, RecordedAnswers
from rrf_design.questions.datasets import Dataset
from rrf_design.questions.delivery import FORMS, deliver, json_text
from rrf_design.verdict import Verdict

ENDINGS = (".json", *FORMS, ".html", ".xml")
STORIES = 20_000
"""Tables of at most so many items have behind each what was asked and answered; longer ones, behind those that are not certified
or were changed."""


def check_outputs(paths: Sequence[str | os.PathLike[str]]) -> None:
    """Refuse endings that mean nothing, before any work is done."""
    for path in paths:
        if Path(path).suffix.lower() not in ENDINGS:
            raise InputError(f"{path}: an output ends in {', '.join(ENDINGS)}")


def spare_inputs(
    paths: Sequence[str | os.PathLike[str]], dataset: Dataset, *others: str | os.PathLike[str] | None
) -> None:
    """Refuse to write over what is read: the recipe, its table, and whatever else the call names."""
    recipe = dataset.recipe
    table = () if recipe.data.table is None else (recipe.folder / recipe.data.table,)
    inputs = {os.path.realpath(path) for path in (recipe.folder / recipe.name, *table, *others) if path is not None}
    for path in paths:
        if os.path.realpath(path) in inputs and Path(path).is_file():
            raise InputError(f"{path}: is read by this call, and would be written over; name another output")


def write_output(path: str | os.PathLike[str], delivery: Delivery) -> None:
    """`.json` is the whole result, a table's ending the delivered table, `.html` a page, `.xml` JUnit."""
    check_outputs([path])
    ending = Path(path).suffix.lower()
    if ending in FORMS:
        deliver(path, delivery.cells(), delivery.dataset.columns)
    elif ending == ".json":
        _write_document(path, delivery)
    elif ending == ".xml":
        write_junit(Path(path), delivery.dataset.recipe.name, _cases(delivery))
    else:
        _write_page(path, delivery)


def _write_document(path: str | os.PathLike[str], delivery: Delivery) -> None:
    """The whole result, item by item: it is never in memory at once."""
    form = FORMATS["rrf-delivery"]
    head = json_text({"format": form.name, "version": form.version, **delivery.head()})
    with writing(path) as stream:
        stream.write((head[:-1] + ', "items": [').encode("utf-8", "replace"))
        for number, document in enumerate(delivery.documents()):
            stream.write((("," if number else "") + "\n" + json_text(document)).encode("utf-8", "replace"))
        stream.write(b"\n]}\n")


def _cases(delivery: Delivery) -> list[Case]:
    """One case for each item; what is not certified failed, for its reason."""
    return [
        (row.id, 0.0, None if row.verdict is Verdict.CERTIFIED else f"{row.verdict.value}: {row.reason}")
        for row in delivery.rows()
    ]


def _write_page(path: str | os.PathLike[str], delivery: Delivery) -> None:
    from rrf_design.reporting.delivery import delivery_page
    from rrf_design.reporting.items import delivered_items

    write_text(path, delivery_page(delivered_items(delivery.to_json(), _stories(delivery))))


def _stories(delivery: Delivery) -> list[list[dict[str, Any]] | None]:
    """What was asked and answered about each item; of a large table, about those that somebody should look at."""
    if delivery.answers is None:
        return []
    found: list[list[dict[str, Any]] | None] = []
    with RecordedAnswers(delivery.dataset, delivery.answers) as recorded:
        for item, row, rank in delivery.ranked():
            told = rank is not None or row.changed or len(delivery) <= STORIES
            found.append(_story(item.prompts, recorded.of(item.id)) if told else None)
    return found


def _story(prompts: Mapping[str, str], answers: Mapping[str, RecordedAnswer]) -> list[dict[str, Any]]:
    rows = []
    for node in dict.fromkeys([*prompts, *answers]):
        said = answers.get(node, RecordedAnswer(status="missing"))
        numbers = None if said.value is None else ", ".join(map(str, said.value))
        rows.append([node, prompts.get(node), numbers if said.text is None else said.text, said.status])
    return [{"heading": "Asked and answered", "columns": ["node", "prompt", "answer", ""], "rows": rows}]
