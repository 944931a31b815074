"""The near end of one zygote: one program at a time, a lost process is replaced, and nothing of it
stays.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import psutil
import pytest

from rrf_design.errors import MissingDependency
from rrf_design.responses.sandbox import Level, Program, ProgramLimits, ProgramStatus
from rrf_design.responses.sandbox import _worker as module
from rrf_design.responses.sandbox._worker import Worker

LIMITS = ProgramLimits(call=0.5, cpu=2, wall=5.0)
SEVEN = Program.build("def solve(): return 7", [[]], expected=[7])


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    made = Worker(without=("namespaces",))
    yield made
    made.close()


def test_a_program_and_the_next_one(worker: Worker) -> None:
    for _ in range(2):
        assert worker.run(SEVEN, LIMITS).status is ProgramStatus.RIGHT
    large = Program.build("def solve(xs): return sum(xs)", [[list(range(60_000))]], expected=[sum(range(60_000))])
    assert worker.run(large, LIMITS).status is ProgramStatus.RIGHT  # more than a pipe holds


def test_without_a_layer_it_says_so(worker: Worker) -> None:
    assert "namespaces" not in worker.isolation.layers
    assert worker.isolation.level is not Level.NAMESPACES


def test_a_lost_process_is_replaced_and_its_program_has_crashed() -> None:
    made = Worker(without=("namespaces",))
    first = made._process.pid
    os.killpg(first, signal.SIGKILL)
    assert made.run(SEVEN, LIMITS).status is ProgramStatus.CRASH
    assert made._process.pid != first
    assert made.run(SEVEN, LIMITS).status is ProgramStatus.RIGHT
    made.close()


def test_nothing_stays_after_closing_and_it_starts_again_when_it_is_used() -> None:
    made = Worker(without=("namespaces",))
    first = made._process.pid
    made.close()
    made.close()
    assert not psutil.pid_exists(first)
    assert made.run(SEVEN, LIMITS).status is ProgramStatus.RIGHT
    made.close()


def test_an_answer_on_its_way_is_never_the_next_program_s(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Worker(without=("namespaces",))

    def interrupted(*_: object) -> bytes:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(made, "_line", interrupted)
        with pytest.raises(KeyboardInterrupt):
            made.run(Program.build("def solve(): return 8", [[]]), LIMITS)
    found = made.run(SEVEN, LIMITS)
    assert (found.status, found.outputs) == (ProgramStatus.RIGHT, (7,))
    made.close()


def test_a_system_without_processes_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(module.os, "fork")
    with pytest.raises(MissingDependency, match="needs Linux"):
        Worker()


def test_a_process_that_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.sys, "executable", "/bin/false")
    with pytest.raises(MissingDependency, match=r"could not start here \(exit code 1\)"):
        Worker(without=("namespaces",))
