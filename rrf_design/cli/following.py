"""`report RUN --follow`: the page is written anew whenever the run's journal has grown, until the
run is finished.

The page loads itself anew meanwhile. However following ends (the run is finished, the time is up,
Ctrl-C, SIGTERM), the last page that is written does not: it claims no freshness that nobody keeps
up. A run that waits for people is not finished: that is said, and waited for.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rrf_design.reporting.documents import PageSource

EVERY = 2
"""Seconds between two looks at the journal, and after which the page loads itself anew."""


def follow(
    out: Path,
    load: Callable[[], PageSource],
    length: Callable[[], int],
    *,
    seconds: float,
    wait: Callable[[float], None] = time.sleep,
    tell: Callable[[str], None] = lambda _: None,
) -> bool:
    """Keep the page of a run fresh for so long; whether the run was finished by then."""
    seen, left, told = -1, seconds, 0
    try:
        while True:
            now = length()
            if now != seen:
                seen, source = now, load()
                if finished(source):
                    _write(out, source)
                    return True
                people = 0 if _going_on(source) else int(source.data["open_reviews"])
                if people and people != told:
                    tell(
                        f"(the run waits for people, {people} question{'s' * (people > 1)}; followed until they have"
                        " answered)"
                    )
                told = people
                _write(out, replace(source, refresh=EVERY))
            if left <= 0:
                break
            wait(min(EVERY, left))
            left -= EVERY
    except KeyboardInterrupt:
        pass
    source = load()
    _write(out, source)
    return finished(source)


def finished(source: PageSource) -> bool:
    """Nothing more is to come: the run has ended, and no person is waited for."""
    return not _going_on(source) and not source.data["open_reviews"]


def _going_on(source: PageSource) -> bool:
    from rrf_design.reporting.runs import UNFINISHED

    return source.data["stopped_because"] in UNFINISHED


@contextmanager
def ended_politely() -> Iterator[None]:
    """SIGTERM ends what is followed as Ctrl-C does; only the main thread may say so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _write(out: Path, source: PageSource) -> None:
    from rrf_design.documents import write_text
    from rrf_design.reporting.documents import render

    write_text(out, render(source))
