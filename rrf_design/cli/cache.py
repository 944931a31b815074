"""rrf-design cache: the answers that are kept across runs."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rrf_design.cli.options import AsJson, Quiet
from rrf_design.cli.output import print_json, say, table
from rrf_design.errors import InputError

if TYPE_CHECKING:
    from rrf_design.models.cache import Kept

Folder = Annotated[str | None, typer.Option("--cache", help="Folder of the kept answers; default: your cache folder.")]


def list_answers(folder: Folder = None, quiet: Quiet = False, as_json: AsJson = False) -> None:
    """How many answers of each model are kept.

    Example: rrf-design cache list
    """
    from rrf_design.models.cache import FILE, AnswerCache

    place = _folder(folder)
    found: tuple[Kept, ...] = ()
    if (place / FILE).exists():
        with AnswerCache(place) as cache:
            found = cache.summary()
    if as_json:
        print_json({"folder": str(place), "models": [asdict(entry) for entry in found]})
        return
    say(f"{place}: {sum(entry.answers for entry in found)} answers")
    rows = [(entry.model, str(entry.answers), _day(entry.first), _day(entry.last)) for entry in found]
    if rows:
        table("", ["model", "answers", "first", "last"], rows, right=[1])


def clear(
    model: Annotated[str | None, typer.Option("--model", help="Only the answers of this model.")] = None,
    folder: Folder = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Forget kept answers; the next run asks, and pays, again.

    Example: rrf-design cache clear --model openai:gpt-4.1-mini
    """
    from rrf_design.models.cache import FILE, AnswerCache

    place = _folder(folder)
    gone = 0
    if (place / FILE).exists():
        with AnswerCache(place) as cache:
            gone = cache.clear(model)
    if as_json:
        print_json({"folder": str(place), "cleared": gone})
    else:
        say(f"{place}: {gone} answers forgotten")


def _folder(given: str | None) -> Path:
    from rrf_design.models.cache import folder_of

    place = folder_of(given)
    if place is None:
        raise InputError("the cache is off; name its folder with --cache")
    return place


def _day(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}"


group = typer.Typer(
    no_args_is_help=True, help="Answers kept across runs: list them, or forget them.", rich_markup_mode=None
)
group.command("list")(list_answers)
group.command("clear")(clear)
