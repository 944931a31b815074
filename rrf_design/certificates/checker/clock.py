"""A flag that compiled searches look at between two steps, set when their time is over."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray


@contextmanager
def flag_at(deadline: float | None) -> Iterator[NDArray[np.int64]]:
    """An array of one number, 0 until the deadline (of `time.monotonic`) has passed."""
    flag = np.zeros(1, np.int64)
    timer = None
    if deadline is not None:
        timer = threading.Timer(max(deadline - time.monotonic(), 0.0), flag.__setitem__, (0, 1))
        timer.daemon = True
        timer.start()
    try:
        yield flag
    finally:
        if timer is not None:
            timer.cancel()
