"""Truth from people: a file with one line for each item that somebody has to look at, filled in and
read back.

Rows are in the order of the draw; a row says nothing about which answer the policies would accept,
so that nobody is led.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from rrf_design.errors import InputError
from rrf_design.problem import Problem
from rrf_design.questions.reviews import check_review_file as check_review_file
from rrf_design.questions.reviews import read_review_file, write_review_file

COLUMNS = ("id", "question", "text", "value")


def write_reviews(path: str | os.PathLike[str], rows: Iterable[tuple[str, str, str]]) -> int:
    """Write (id, question, text) of each item, and return how many are asked; what people wrote
    into the file stays.
    """
    return write_review_file(path, (dict(zip(COLUMNS, row, strict=False)) for row in rows), COLUMNS)


def read_reviews(path: str | os.PathLike[str], *, only: Sequence[str] | None = None) -> dict[str, Any]:
    """What people wrote, by item; empty values are left out.

    InputError for an item that was not asked about (`only`), or one with two values.
    """
    known = None if only is None else frozenset(only)

    def asked(name: str, _: str) -> str:
        if known is not None:
            refuse_strangers([name], known)
        return name

    return read_review_file(path, asked)


def refuse_strangers(said: Iterable[str], known: Collection[str], where: str = "") -> None:
    """InputError for an item that people said something about and nobody asked them about."""
    for name in said:
        if name not in known:
            raise InputError(f"{where}item {name!r} was not asked about")


def joined_reviews(paths: Sequence[str | os.PathLike[str]], *, only: Sequence[str] | None = None) -> dict[str, Any]:
    """What people wrote into several files; InputError where two of them say something else of one
    item, or one speaks of an item that is none (`only`).
    """
    found: dict[str, Any] = {}
    for path in paths:
        for name, value in read_reviews(path, only=only).items():
            if found.setdefault(name, value) != value:
                raise InputError(f"{path}: item {name!r} has another value there than in a review file before it")
    return found


def row_text(cells: Mapping[str, Any], *, hidden: Collection[str | None] = ()) -> str:
    """A row for whoever says what is right: what was asked about, and nothing of what was
    answered.
    """
    return "; ".join(f"{key}: {value}" for key, value in cells.items() if key not in hidden)


def person_question(problem: Problem, check: str | None = None) -> str | None:
    """What a person is asked by this check, or by the first that asks one; None where none does."""
    for anchor in problem.anchors:
        source = anchor.source
        if (check is None or anchor.id == check) and isinstance(source, Mapping) and "person" in source:
            return str(source["person"])
    return None
