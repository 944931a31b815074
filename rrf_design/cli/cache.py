"""rrf-design cache: the answers that are kept across runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rrf_design.cli._options import flattened
from rrf_design.cli.output import Printer, say, table
from rrf_design.errors import InputError

if TYPE_CHECKING:
    from rrf_design.models.cache import AnswerCache, Kept

Folder = Annotated[str | None, typer.Option("--cache", help="Folder of the kept answers; default: your cache folder.")]


def _list_answers(folder: Folder = None, *, printer: Printer) -> None:
    """How many answers of each model are kept.

    Example: rrf-design cache list
    """
    found: tuple[Kept, ...] = ()
    with _opened(folder) as (place, cache):
        if cache is not None:
            found = cache.summary()

    def describe() -> None:
        say(f"{place}: {sum(entry.answers for entry in found)} answers")
        rows = [(entry.model, str(entry.answers), _day(entry.first), _day(entry.last)) for entry in found]
        if rows:
            table("", ["model", "answers", "first", "last"], rows, right=[1])

    printer.result({"folder": str(place), "models": [asdict(entry) for entry in found]}, describe)


def _clear(
    model: Annotated[str | None, typer.Option("--model", help="Only the answers of this model.")] = None,
    folder: Folder = None,
    *,
    printer: Printer,
) -> None:
    """Forget kept answers; the next run asks, and pays, again.

    Example: rrf-design cache clear --model openai:gpt-4.1-mini
    """
    with _opened(folder) as (place, cache):
        gone = 0 if cache is None else cache.clear(model)
    printer.result({"folder": str(place), "cleared": gone}, lambda: say(f"{place}: {gone} answers forgotten"))


@contextmanager
def _opened(given: str | None) -> Iterator[tuple[Path, AnswerCache | None]]:
    """The folder, and the answers in it; None where none are kept yet."""
    from rrf_design.models.cache import FILE, AnswerCache, folder_of

    place = folder_of(given)
    if place is None:
        raise InputError("the cache is off; name its folder with --cache")
    with AnswerCache(place) if (place / FILE).exists() else nullcontext() as cache:
        yield place, cache


def _day(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}"


group = typer.Typer(
    no_args_is_help=True, help="Answers kept across runs: list them, or forget them.", rich_markup_mode=None
)
group.command("list")(flattened(_list_answers))
group.command("clear")(flattened(_clear))
