"""The benchmark counts programs that gave the expected integers; its rate is theirs by the
second.
"""

from __future__ import annotations

from rrf_design.responses.sandbox import Isolation, throughput
from rrf_design.responses.sandbox._benchmark import Throughput


def test_all_programs_are_right() -> None:
    found = throughput(6, workers=1, tests=3)
    assert (found.programs, found.right, found.workers) == (6, 6, 1)
    assert found.seconds > 0.0


def test_the_rate() -> None:
    assert Throughput(30, 30, 1.5, 2, Isolation(("limits",))).rate == 20.0
