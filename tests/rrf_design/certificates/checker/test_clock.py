"""The flag of the checker's searches: down before its time, up after it, and no thread left behind."""

from __future__ import annotations

import threading
import time

from rrf_design.certificates.checker.clock import flag_at


def test_without_a_deadline_the_flag_stays_down_and_nothing_is_started() -> None:
    before = threading.active_count()
    with flag_at(None) as flag:
        assert flag.tolist() == [0]
        assert threading.active_count() == before


def test_a_deadline_that_has_passed_raises_the_flag() -> None:
    with flag_at(time.monotonic() - 1.0) as flag:
        for thread in threading.enumerate():
            if isinstance(thread, threading.Timer):
                thread.join()
        assert flag.tolist() == [1]


def test_a_search_that_ends_before_its_time_leaves_the_flag_down_and_no_timer() -> None:
    with flag_at(time.monotonic() + 3600.0) as flag:
        (timer,) = (thread for thread in threading.enumerate() if isinstance(thread, threading.Timer))
    timer.join()
    assert flag.tolist() == [0]
