"""What every verb prints: with --json exactly one object on standard output, otherwise a text for people.

Progress and messages go to standard error, colour only to terminals.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

ProblemFile = Annotated[Path, typer.Argument(help="Problem file (.toml or .json).", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print exactly one JSON object on standard output.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no messages on standard error.")]
Jobs = Annotated[int, typer.Option("--jobs", "-j", help="Processes to use; -1 for all cores.")]
TimeLimit = Annotated[
    float | None, typer.Option("--time-limit", help="Seconds after which the best bounds so far are returned.")
]
Seed = Annotated[int, typer.Option("--seed", help="Seed for everything random.")]
Select = Annotated[str | None, typer.Option("--select", help="Comma-separated ids of what to add to the owned blocks.")]


@cache
def console(*, stderr: bool = False) -> Console:
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, soft_wrap=True)


def print_json(document: dict[str, Any]) -> None:
    """One object, full precision, and nothing else; NaN and infinities are not JSON, so they are null."""
    sys.stdout.write(json.dumps(_finite(document), ensure_ascii=False, allow_nan=False) + "\n")


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> None:
    """A small table for people; text from problem files is never taken for markup."""
    from rich.table import Table
    from rich.text import Text

    result = Table(title=title or None, title_justify="left", box=None, pad_edge=False)
    for index, column in enumerate(columns):
        result.add_column(column, justify="right" if index in right else "left")
    for row in rows:
        result.add_row(*(Text(cell) for cell in row))
    console().print(result)


def say(text: str) -> None:
    """A line for people on standard output; never taken for markup."""
    console().print(text, markup=False)


def note(text: str) -> None:
    """A message on standard error."""
    console(stderr=True).print(text, markup=False, style="dim")


def split_ids(select: str | None) -> list[str] | None:
    return None if select is None else [part.strip() for part in select.split(",") if part.strip()]


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    return value
