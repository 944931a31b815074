"""What every verb prints: with --json exactly one object on standard output, otherwise a text for people.

Progress and messages go to standard error, colour only to terminals.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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


Progress = Callable[[float, float, float], None]
"""Called with the fraction that is done, the lower and the upper bound so far."""


@contextmanager
def progress_bar(what: str, *, quiet: bool = False) -> Iterator[Progress | None]:
    """A bar on standard error with the time left and the bounds so far; nothing when quiet or not on a terminal.

    Yields what `solvers.margin` takes as `progress`. The bar appears with the first report, so that what is done in
    an instant shows none. The first use on a machine compiles kernels, and says so.
    """
    if not quiet:
        _tell_compiling()
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = [
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[bounds]}", markup=False),
    ]
    with Progress(*columns, console=console(stderr=True), transient=True, disable=False) as bar:
        task = bar.add_task(what, total=1.0, bounds="", visible=False)

        def report(done: float, lower: float, upper: float) -> None:
            bar.update(task, completed=done, visible=True, bounds=f"between {lower:.6g} and {upper:.6g}")

        yield report


@cache
def _tell_compiling() -> None:
    """One line when the first kernel is really compiled; silent when it comes from the cache."""
    from numba.core import event

    class Once(event.Listener):  # type: ignore[misc]
        told = False

        def on_start(self, event: Any) -> None:
            if not self.told:
                self.told = True
                note(
                    "compiling the solver's kernels: once per machine, some tens of seconds; later calls start at once"
                )

        def on_end(self, event: Any) -> None:
            pass

    event.register("numba:compile", Once())


def tell_interrupted(stop: BaseException) -> None:
    """One line about what an interrupted solver had proven, where it had proven anything."""
    margin = getattr(stop, "margin", None)
    if margin is None:
        note("interrupted")
        return
    note(
        f"interrupted; so far the margin at k = {margin.k} is proven between {margin.lower:.9g} and {margin.upper:.9g}"
    )


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
