"""`report RUN --follow`: the page is written anew whenever the run's journal has grown, until the run is finished.

The page loads itself anew meanwhile. However following ends (the run is finished, the time is up, Ctrl-C), the last page that is
written does not: it claims no freshness that nobody keeps up.
"""

from __future__ import annotations

import time
from collections.abc import Callable
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
) -> bool:
    """Keep the page of a run fresh for so long; whether the run was finished by then."""
    seen, left = -1, seconds
    try:
        while True:
            now = length()
            if now != seen:
                seen, source = now, load()
                if finished(source):
                    _write(out, source)
                    return True
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
    from rrf_design.reporting.runs import UNFINISHED

    return source.data["stopped_because"] not in UNFINISHED and not source.data["open_reviews"]


def _write(out: Path, source: PageSource) -> None:
    from rrf_design.files import write_text
    from rrf_design.reporting.documents import render

    write_text(out, render(source))
