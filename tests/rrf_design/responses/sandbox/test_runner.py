from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from rrf_design.errors import InputError, Refused
from rrf_design.responses.sandbox import Level, Program, ProgramLimits, ProgramStatus, Sandbox, throughput

LIMITS = ProgramLimits(call=0.2, cpu=1, wall=5.0)


@pytest.fixture(scope="module")
def box() -> Iterator[Sandbox]:
    with Sandbox(workers=2, limits=LIMITS) as sandbox:
        yield sandbox


@pytest.mark.parametrize(
    ("source", "status", "detail"),
    [
        ("def solve(a, b): return a + b", ProgramStatus.RIGHT, ""),
        ("def solve(a, b): return a - b", ProgramStatus.WRONG, ""),
        ("def solve(a, b): return a + b if a else 0.5", ProgramStatus.NON_INTEGER, "float"),
        ("def solve(a, b): return None", ProgramStatus.NON_INTEGER, "NoneType"),
        ("def solve(a, b): return a + b == 3", ProgramStatus.NON_INTEGER, "bool"),
        ("def solve(a, b): return str(a + b)", ProgramStatus.NON_INTEGER, "str"),
        ("def solve(a): return a", ProgramStatus.CRASH, "TypeError"),
        ("def solve(a, b): return undefined", ProgramStatus.CRASH, "NameError"),
        ("def solve(a, b): raise ValueError('x')", ProgramStatus.CRASH, "ValueError"),
        ("x = 1 // 0", ProgramStatus.CRASH, "outside the function: ZeroDivisionError"),
        ("def other(a, b): return 1", ProgramStatus.PARSE_FAILURE, "no function solve"),
        ("solve = 5", ProgramStatus.PARSE_FAILURE, "no function solve"),
        ("", ProgramStatus.PARSE_FAILURE, "no function solve"),
        ("def solve(a, b) return a", ProgramStatus.COMPILE_FAILURE, "SyntaxError"),
        ("def solve(a, b):\nreturn a", ProgramStatus.COMPILE_FAILURE, "IndentationError"),
        ("import math\ndef solve(a, b): return a", ProgramStatus.REJECTED, "import (line 1)"),
        ("def solve(a, b): return len('x' * 10**12)", ProgramStatus.MEMORY, "memory"),
        ("def solve(a, b):\n    while True: pass", ProgramStatus.TIMEOUT, "timeout"),
        ("def solve(a, b):\n    print('hello')\n    return a + b", ProgramStatus.RIGHT, ""),
        ("def solve(a, b): return a + b if a is 0 or '\\d' else 0", ProgramStatus.RIGHT, ""),  # compiles with warnings
    ],
)
def test_statuses(box: Sandbox, source: str, status: ProgramStatus, detail: str) -> None:
    result = box.run(Program.build(source, [[0, 1], [1, 2], [1, 2]], expected=[1, 3, 3]))
    assert result.status is status
    assert detail in result.detail
    assert (result.status is ProgramStatus.RIGHT) == (result.passed == 1.0)


def test_each_test_has_its_own_status(box: Sandbox) -> None:
    source = (
        "def solve(n):\n    if n == 1: return n / 2\n    if n == 2: return 1 // 0\n    if n == 3:\n"
        "        while True: pass\n    return n"
    )
    result = box.run(Program.build(source, [[0], [1], [2], [3], [4]], expected=[0, 0, 0, 0, 5]))
    assert [status.value for status in result.tests] == ["right", "non-integer", "crash", "timeout", "wrong"]
    assert result.outputs == (0, None, None, None, 4)
    assert result.status is ProgramStatus.NON_INTEGER
    assert result.passed == 0.2


def test_without_expectations_it_ran(box: Sandbox) -> None:
    result = box.run(Program.build("def solve(xs, t): return sum(x > t for x in xs)", [[[1, 5, 9], 4]]))
    assert (result.status, result.outputs) == (ProgramStatus.RAN, (2,))
    assert result.document()["isolation"] == result.isolation.level.value


def test_big_and_negative_integers_come_back_exactly(box: Sandbox) -> None:
    result = box.run(Program.build("def solve(n): return -(3 ** n)", [[0], [1], [2000]]))
    assert result.outputs == (-1, -3, -(3**2000))


def test_programs_share_nothing(box: Sandbox) -> None:
    leave = (
        "import builtins, sys, os\nbuiltins.trace = 1\nsys.trace = 1\nos.environ['TRACE'] = '1'\ndef solve(): return 1"
    )
    look = (
        "import builtins, sys, os\n"
        "def solve(): return hasattr(builtins, 'trace') + hasattr(sys, 'trace') + ('TRACE' in os.environ)"
    )
    for _ in range(3):
        programs = [Program.build(source, [[]], checked=False) for source in (leave, look)] * 2
        assert [result.outputs for result in box.run_many(programs)] == [(1,), (0,)] * 2


def test_arguments_are_fresh_for_each_call(box: Sandbox) -> None:
    source = "def solve(xs):\n    xs.append(1)\n    return len(xs)"
    assert box.run(Program.build(source, [[[0]], [[0]]])).outputs == (2, 2)


def test_iteration_order_repeats(box: Sandbox) -> None:
    source = "def solve(): return int(''.join(str(ord(c)) for c in {'a', 'b', 'c', 'd', 'e', 'f', 'g'}))"
    results = box.run_many([Program.build(source, [[]])] * 6)
    assert len({result.outputs for result in results}) == 1


def test_many_programs_in_order(box: Sandbox) -> None:
    programs = [Program.build(f"def solve(): return {i}", [[]], expected=[i]) for i in range(40)]
    results = box.run_many(programs)
    assert [result.outputs for result in results] == [(i,) for i in range(40)]


def test_a_lost_zygote_is_replaced() -> None:
    others = {process.pid for process in psutil.Process().children(recursive=True)}
    with Sandbox(workers=1, limits=LIMITS) as sandbox:
        program = Program.build("def solve(): return 7", [[]], expected=[7])
        assert sandbox.run(program).status is ProgramStatus.RIGHT
        for child in psutil.Process().children(recursive=True):
            if child.pid not in others:
                os.kill(child.pid, signal.SIGKILL)
        result = sandbox.run(program)
        assert result.status is ProgramStatus.CRASH
        assert "lost" in result.detail
        assert sandbox.run(program).status is ProgramStatus.RIGHT


def test_an_interrupted_run_leaves_no_answer_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> bytes:
        raise KeyboardInterrupt

    with Sandbox(workers=1, limits=LIMITS) as sandbox:
        assert sandbox.isolation.layers
        with monkeypatch.context() as patch:
            patch.setattr("rrf_design.responses.sandbox._worker.Worker._line", interrupt)
            with pytest.raises(KeyboardInterrupt):
                sandbox.run(Program.build("def solve(): return 1", [[]]))
        assert sandbox.run(Program.build("def solve(): return 2", [[]])).outputs == (2,)


def test_nothing_is_left_after_close(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = {process.pid for process in psutil.Process().children(recursive=True)}
    with Sandbox(workers=2, limits=LIMITS) as sandbox:
        sandbox.run_many([Program.build("def solve(): return 7", [[]])] * 4)
        assert not list(tmp_path.iterdir())  # nothing to clean up even if this process were killed now
    assert {process.pid for process in psutil.Process().children(recursive=True)} <= before


def test_weaker_isolation_is_refused() -> None:
    with pytest.raises(Refused, match="weaker than the required seccomp; nothing was run"):
        Sandbox(without=["seccomp"]).run(Program.build("def solve(): return 1", [[]]))
    with pytest.raises(Refused, match=r"weaker than the required seccomp\+namespaces"):
        _ = Sandbox(without=["namespaces"], require="seccomp+namespaces").isolation
    with Sandbox(without=["seccomp", "namespaces", "landlock"], require="limits", workers=1) as sandbox:
        assert sandbox.isolation.level is Level.LIMITS
        result = sandbox.run(Program.build("def solve(): return 1", [[]], expected=[1]))
        assert (result.status, result.isolation.level) == (ProgramStatus.RIGHT, Level.LIMITS)


def test_bad_requests() -> None:
    with pytest.raises(InputError, match="the levels are limits, seccomp"):
        Sandbox(require="steel")
    with pytest.raises(InputError, match="must be positive"):
        ProgramLimits(call=0)
    with pytest.raises(InputError, match="2 expected values for 1 tests"):
        Program.build("", [[1]], expected=[1, 2])
    with pytest.raises(InputError, match="expected values are integers"):
        Program.build("", [[1]], expected=[True])


def test_throughput_counts_right_programs() -> None:
    result = throughput(20, workers=1, tests=2)
    assert result.programs == result.right == 20
    assert result.rate > 0


def test_the_zygote_goes_when_its_owner_is_killed() -> None:
    script = (
        "import sys, psutil\n"
        "from rrf_design.responses.sandbox import Program, Sandbox\n"
        "box = Sandbox(workers=1)\n"
        "box.run(Program.build('def solve(): return 1', [[]]))\n"
        "print(*[p.pid for p in psutil.Process().children(recursive=True)], flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        born = [psutil.Process(int(pid)) for pid in owner.stdout.readline().split()]
        assert born
        owner.kill()
        _, alive = psutil.wait_procs(born, timeout=20)
        assert not alive
