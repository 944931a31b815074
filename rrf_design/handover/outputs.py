"""Several outputs of one result: the ending of each decides what it is."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from rrf_design.documents.formats import FORMATS
from rrf_design.documents.junit import Case, write_junit
from rrf_design.errors import InputError
from rrf_design.files import write_text, writing
from rrf_design.handover.delivered import Delivery
from rrf_design.questions.delivery import FORMS, deliver, json_text
from rrf_design.verdict import Verdict

ENDINGS = (".json", *FORMS, ".html", ".xml")
PAGE_ROWS = 2_000
"""Rows that a page shows; it says how many there are, and the delivered table has them all."""


def check_outputs(paths: Sequence[str | os.PathLike[str]]) -> None:
    """Refuse endings that mean nothing, before any work is done."""
    for path in paths:
        if Path(path).suffix.lower() not in ENDINGS:
            raise InputError(f"{path}: an output ends in {', '.join(ENDINGS)}")


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
    from rrf_design.reporting import page, prose, section, table

    columns = ["rank", "id", "answer", "verdict", "bound", "raw", "wrong", "reason"]
    rows = []
    for document in islice(delivery.documents(), PAGE_ROWS):
        shown = {**document, "wrong": ", ".join(document["wrong"])}
        rows.append(["" if shown[name] is None else str(shown[name]) for name in columns])
    said = prose(delivery.sentence())
    cut = prose(f"The first {PAGE_ROWS} are shown.") if len(delivery) > PAGE_ROWS else None
    title = f"{delivery.dataset.recipe.name}: what may be handed over"
    write_text(
        path, page(title, [section("Items", cut, table(columns, rows, right=[0, 4], most=PAGE_ROWS))], lead=said)
    )
