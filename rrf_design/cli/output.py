"""What every verb prints: with --json exactly one object on standard output, otherwise a text for
people.

Progress and messages go to standard error, colour only to terminals.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rrf_design.texts import json_text, rounded_down, rounded_up, showable

if TYPE_CHECKING:
    from rich.console import Console

    from rrf_design.problem import Problem
    from rrf_design.questions import Dataset
    from rrf_design.tables import DeliveredParts, Delivery

NUMERICAL_ZERO = 1e-9
"""A margin whose witness leaves less than this is shown as zero (the paper's rule)."""


@cache
def _console(*, stderr: bool = False) -> Console:
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, soft_wrap=True)


def print_json(document: dict[str, Any]) -> None:
    """One object, full precision, and nothing else; NaN and infinities are not JSON, so they are
    null.
    """
    sys.stdout.write(json_text(_finite(document), allow_nan=False) + "\n")


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> None:
    """A small table for people; text from problem files is never taken for markup."""
    from rich.table import Table
    from rich.text import Text

    result = Table(title=title or None, title_justify="left", box=None, pad_edge=False)
    for index, column in enumerate(columns):
        result.add_column(column, justify="right" if index in right else "left")
    for row in rows:
        result.add_row(*(Text(showable(cell)) for cell in row))
    _console().print(result)


def say(text: str) -> None:
    """A line for people on standard output; never taken for markup."""
    _console().print(showable(text), markup=False)


def note(text: str) -> None:
    """A message on standard error."""
    _console(stderr=True).print(showable(text), markup=False, style="dim")


class _Progress:
    """A bar on standard error: how far, how long still, and the bounds so far, which are also told
    when interrupted.

    Where nobody can say what share is done, the time limit says how far it is. Not on a terminal it
    only remembers.
    """

    def __init__(self, what: str, *, time_limit: float | None, shown: bool) -> None:
        self.what = what
        self.bounds: tuple[float, float] | None = None
        self.words = ""
        self._limit = time_limit
        self._began = time.monotonic()
        self._bar = _bar(time_limit) if shown else None
        self._task: Any = None

    def __call__(self, share: float | None, bounds: tuple[float, float] | None, words: str) -> None:
        self.bounds, self.words = bounds, words
        self._show(share, words or ("" if bounds is None else f"between {bounds[0]:.6g} and {bounds[1]:.6g}"))

    def _show(self, fraction: float | None, text: str) -> None:
        if self._bar is None:
            return
        timed = fraction is None and self._limit is not None
        if self._task is None:  # what is done in an instant shows no bar
            self._bar.start()
            self._task = self._bar.add_task(self.what, total=1.0 if timed or fraction is not None else None, bounds="")
        done = (time.monotonic() - self._began) / (self._limit or 1.0) if timed else fraction
        self._bar.update(self._task, completed=done, bounds=text)

    def stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()


@contextmanager
def progress_bar(what: str, *, quiet: bool = False, time_limit: float | None = None) -> Iterator[_Progress]:
    """A `Progress` for one long solve; nothing is shown when quiet or not on a terminal.

    The first use on a machine compiles kernels, and says so.
    """
    if not quiet:
        tell_compiling()
    progress = _Progress(what, time_limit=time_limit, shown=not quiet and sys.stderr.isatty())
    try:
        with _interrupts():
            yield progress
    except KeyboardInterrupt as stop:
        if progress.words or getattr(stop, "margin", None) is None:  # a margin has its own bounds, to the moment
            stop.add_note(_progress_words(progress))
        raise
    finally:
        progress.stop()


@contextmanager
def _interrupts() -> Iterator[None]:
    """Ctrl-C inside a compiled kernel comes out as a SystemError with the interrupt as its cause;
    make it one again.
    """
    try:
        yield
    except SystemError as fault:
        cause: BaseException | None = fault
        while isinstance(cause, SystemError):
            cause = cause.__cause__
        if isinstance(cause, KeyboardInterrupt):
            raise cause from None
        raise


def floor(value: float) -> str:
    """Nine digits, cut off rather than rounded: what is printed as proven is proven."""
    return f"{rounded_down(value, 9):.9g}"


def ceiling(value: float, digits: int = 9) -> str:
    return f"{rounded_up(value, digits):.{digits}g}"


def proven_range(lower: float, upper: float) -> str:
    """What a margin is proven to lie between; a zero is shown as zero, without the digits of its
    rounding.
    """
    if lower == upper == 0.0:
        return "0"
    if upper <= NUMERICAL_ZERO:
        return f"0 (numerically: below {NUMERICAL_ZERO:g})"
    return f"between {floor(lower)} and {ceiling(upper)}"


def _progress_words(progress: _Progress) -> str:
    if progress.words:
        return f"{progress.what}: {progress.words}"
    if progress.bounds is None:
        return f"{progress.what}: nothing is proven yet"
    lower, upper = progress.bounds
    return f"{progress.what}: so far proven between {floor(lower)} and {ceiling(upper)}"


def _bar(time_limit: float | None) -> Any:
    from rich.progress import BarColumn, ProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar
    from rich.text import Text

    class AtMost(ProgressColumn):
        """What is left until the time limit, where there is one."""

        def render(self, task: Any) -> Text:
            return Text(f"at most {max(0.0, (time_limit or 0.0) - (task.elapsed or 0.0)):.0f} s left")

    return Bar(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TimeElapsedColumn(),
        *([AtMost()] if time_limit else [TextColumn("left:"), TimeRemainingColumn()]),
        TextColumn("{task.fields[bounds]}", markup=False),
        console=_console(stderr=True),
        transient=True,
    )


@cache
def tell_compiling() -> None:
    """One line when the first kernel is really compiled; silent when it comes from the cache."""
    import logging

    class Once(logging.Handler):
        told = False

        def emit(self, record: logging.LogRecord) -> None:
            if not self.told:
                self.told = True
                note("compiling the solver's kernels: once per machine, some seconds each; later calls start at once")

    log = logging.getLogger("rrf_design.compiler")
    log.setLevel(logging.INFO)
    log.addHandler(Once())


def tell_interrupted(stop: BaseException) -> None:
    """One line about what an interrupted solver had proven, where it had proven anything."""
    margin, notes = getattr(stop, "margin", None), getattr(stop, "__notes__", [])
    if margin is not None and not notes:
        note(
            f"interrupted; so far the margin at k = {margin.k} is proven between {floor(margin.lower)} and"
            f" {ceiling(margin.upper)}"
        )
    else:
        note("; ".join(["interrupted", *notes]))


def unit_numbers(values: Sequence[float]) -> str:
    """Coordinates of a unit vector; what rounding leaves of nothing is 0."""
    largest = max((abs(x) for x in values), default=0.0)
    shown = ", ".join(f"{x:.4g}" if abs(x) > 1e-12 * max(largest, 1e-300) else "0" for x in values[:6])
    return shown + (", …" if len(values) > 6 else "")


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    return value


SHOWN = 12
"""Items of a table that are listed."""


def results(found: Any) -> list[Any]:
    """What was found of a problem, or of each structure of a table."""
    from rrf_design.tables import ByStructure

    return [one.result for one in found.speakers] if isinstance(found, ByStructure) else [found]


def weakest(given: Problem | Dataset, found: Any) -> tuple[Problem, Any]:
    """A problem and what was found of it; of a table those of its weakest structure, once a line
    has said which items are like it.
    """
    from rrf_design.problem import Problem

    if isinstance(given, Problem):
        return given, found
    worst, count = found.worst, len(found.speakers)
    total = f"{given.recipe.name}: {len(given)} items of {count} structure{'s' if count > 1 else ''}"
    say(
        f"{total}; this is that of item {worst.item}{f' and {worst.count - 1} more, the weakest' if count > 1 else ''}."
    )
    return worst.problem, worst.result


def hand_over(
    delivery: Delivery, outputs: Sequence[Path], *, review: Path | None, printer: Printer, called: str | None = None
) -> None:
    """Write everything that was asked for; endings are looked at before anything is written.

    `called`: what `review` stands for, where that is a store of labels.
    """
    from rrf_design.studio.labels import shown
    from rrf_design.tables import write_output, write_reviews
    from rrf_design.tables.delivered import check_outputs, spare_inputs

    check_outputs(outputs)
    spare_inputs(outputs, delivery.dataset)
    for path in outputs:
        write_output(path, delivery)
        printer.note(f"written to {path}")
    if review is not None:
        count = write_reviews(review, delivery)
        many = f"{count} question{'s' * (count != 1)} for people, first things first"
        printer.note(f"{many}, written to {shown(called) if called else review}")


def describe_delivery(delivery: Delivery) -> None:
    """A table of items for people: what may be handed over, and what they should look at first."""
    say(f"{delivery.dataset.recipe.name}: {delivery.sentence()}")
    mended: list[tuple[str, ...]] = []
    open_items: list[tuple[int, tuple[str, ...]]] = []
    for _, row, rank in delivery.ranked():
        if rank is not None and rank <= SHOWN:
            worst = max(row.values, key=lambda value: value.verdict.rank)
            open_items.append((rank, (str(rank), row.id, _short(worst.raw), row.verdict.value, _short(row.reason, 70))))
        elif row.changed and len(mended) <= SHOWN:
            value = next(value for value in row.values if value.changed)
            mended.append((row.id, _short(value.raw), _short(value.answer), ", ".join(row.wrong)))
    if mended:
        table("", ["item", "answered", "is", "wrong"], mended[:SHOWN])
        if len(mended) > SHOWN:
            say("and more with wrong answers; -o delivered.csv has them all")
    if open_items:
        table("", ["look at", "item", "answered", "verdict", "why"], [row for _, row in sorted(open_items)], right=[0])
        if len(delivery.ranks) > SHOWN:
            say(f"and {len(delivery.ranks) - SHOWN} more; --review review.csv has them all")


def share_holds(delivery: Delivery | DeliveredParts, share: float | None) -> bool:
    """Whether what was required of a data set holds; without a requirement, being complete is
    enough.
    """
    return share is None or delivery.passing_share >= share


def _short(value: Any, most: int = 40) -> str:
    text = "" if value is None else str(value).replace("\n", " ")
    return text if len(text) <= most else f"{text[: most - 1]}…"


MINUTE = 60.0
BLINK = 0.2
EVENT = 5.0
"""Seconds between two lines in a log, on a terminal, and between two events for programs."""


class _RunProgress:
    """Called as every progress is; `close` ends the line on a terminal."""

    def __init__(self, *, terminal: bool | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._terminal = sys.stderr.isatty() if terminal is None else terminal
        self._clock = clock
        self._shown = clock()
        self._width = 0

    def __call__(self, share: float | None, bounds: tuple[float, float] | None, words: str) -> None:
        if share is None:
            note(words)
            return
        now = self._clock()
        if now - self._shown < (BLINK if self._terminal else MINUTE):
            return
        self._shown = now
        if not self._terminal:
            note(words)
            return
        text = showable(words)
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()
        self._width = len(text)

    def close(self) -> None:
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()
            self._width = 0


class _RunEvents:
    """The same for programs; `event` takes the state of a run as its teller has it, `close` says
    the last one.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._shown = clock()
        self._last: Mapping[str, Any] | None = None

    def __call__(self, share: float | None, bounds: tuple[float, float] | None, words: str) -> None:
        self.event({"event": "progress", "share": share, "words": words})

    def event(self, document: Mapping[str, Any]) -> None:
        self._last = document
        if self._clock() - self._shown >= EVENT:
            self._show()

    def close(self) -> None:
        self._show()

    def _show(self) -> None:
        self._shown = self._clock()
        if self._last is not None:
            note(json.dumps(self._last))
            self._last = None


@dataclass(frozen=True, slots=True)
class Printer:
    """How a verb speaks: to people, in fewer words, or to programs; a group of options
    (`rrf_design.cli._options`).
    """

    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="The answer only: no progress, no messages.")] = False
    as_json: Annotated[bool, typer.Option("--json", help="Print exactly one JSON object on standard output.")] = False

    def result(self, document: Callable[[], dict[str, Any]] | dict[str, Any], describe: Callable[[], object]) -> None:
        """The answer: one JSON object, or a text for people."""
        if self.as_json:
            print_json(document() if callable(document) else document)
        else:
            describe()

    def news(self, text: str) -> None:
        """A line for people who want to know more than the answer."""
        if not (self.quiet or self.as_json):
            say(text)

    def note(self, text: str) -> None:
        """A message on standard error for whoever wants messages."""
        if not self.quiet:
            note(text)

    def remark(self, text: str) -> None:
        """What belongs to the answer: beside it for people, on standard error for programs."""
        note(text) if self.as_json else say(text)

    def progress(self, what: str, *, time_limit: float | None = None) -> AbstractContextManager[_Progress]:
        return progress_bar(what, quiet=self.quiet, time_limit=time_limit)

    def run_progress(self) -> _RunProgress | _RunEvents | None:
        """Whoever is told how far a run is."""
        return None if self.quiet else _RunEvents() if self.as_json else _RunProgress()
