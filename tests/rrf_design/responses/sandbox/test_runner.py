"""Programs run: alone, many in order, by a worker and by its zygote."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from rrf_design.errors import InputError, MissingDependency, Refused
from rrf_design.responses.sandbox import (
    Execution,
    Isolation,
    Level,
    Program,
    ProgramLimits,
    ProgramStatus,
    Sandbox,
)
from rrf_design.responses.sandbox import _zygote as zygote
from rrf_design.responses.sandbox import runner as module
from rrf_design.responses.sandbox.runner import _Worker

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


def test_integers_come_back_exactly_and_arguments_are_fresh(box: Sandbox) -> None:
    result = box.run(Program.build("def solve(n): return -(3 ** n)", [[0], [1], [2000]]))
    assert result.outputs == (-1, -3, -(3**2000))
    source = "def solve(xs):\n    xs.append(1)\n    return len(xs)"
    assert box.run(Program.build(source, [[[0]], [[0]]])).outputs == (2, 2)


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
            patch.setattr("rrf_design.responses.sandbox.runner._Worker._line", interrupt)
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


LIMITS_WORKER = ProgramLimits(call=0.5, cpu=2, wall=5.0)
SEVEN = Program.build("def solve(): return 7", [[]], expected=[7])


@pytest.fixture(scope="module")
def worker() -> Iterator[_Worker]:
    made = _Worker(without=("namespaces",))
    yield made
    made.close()


def test_a_program_and_the_next_one(worker: _Worker) -> None:
    for _ in range(2):
        assert worker.run(SEVEN, LIMITS_WORKER).status is ProgramStatus.RIGHT
    large = Program.build("def solve(xs): return sum(xs)", [[list(range(60_000))]], expected=[sum(range(60_000))])
    assert worker.run(large, LIMITS_WORKER).status is ProgramStatus.RIGHT  # more than a pipe holds


def test_a_system_without_processes_or_layers_says_so(worker: _Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "namespaces" not in worker.isolation.layers
    assert worker.isolation.level is not Level.NAMESPACES
    monkeypatch.setattr(module.sys, "executable", "/bin/false")
    with pytest.raises(MissingDependency, match=r"could not start here \(exit code 1\)"):
        _Worker(without=("namespaces",))


def test_a_lost_process_is_replaced_and_its_program_has_crashed() -> None:
    made = _Worker(without=("namespaces",))
    first = made._process.pid
    os.killpg(first, signal.SIGKILL)
    assert made.run(SEVEN, LIMITS_WORKER).status is ProgramStatus.CRASH
    assert made._process.pid != first
    assert made.run(SEVEN, LIMITS_WORKER).status is ProgramStatus.RIGHT
    made.close()


def test_nothing_stays_after_closing_and_it_starts_again_when_it_is_used() -> None:
    made = _Worker(without=("namespaces",))
    first = made._process.pid
    made.close()
    made.close()
    assert not psutil.pid_exists(first)
    assert made.run(SEVEN, LIMITS_WORKER).status is ProgramStatus.RIGHT
    made.close()


def test_an_answer_on_its_way_is_never_the_next_program_s(monkeypatch: pytest.MonkeyPatch) -> None:
    made = _Worker(without=("namespaces",))

    def interrupted(*_: object) -> bytes:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(made, "_line", interrupted)
        with pytest.raises(KeyboardInterrupt):
            made.run(Program.build("def solve(): return 8", [[]]), LIMITS_WORKER)
    found = made.run(SEVEN, LIMITS_WORKER)
    assert (found.status, found.outputs) == (ProgramStatus.RIGHT, (7,))
    made.close()


def test_a_system_without_processes_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(module.os, "fork")
    with pytest.raises(MissingDependency, match="needs Linux"):
        _Worker()


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """The lines that a program leads to, run in this process without any confinement: only harmless
    ones are given.
    """

    def run(source: str, *tests: list[Any], checked: bool = True) -> list[str]:
        lines: list[str] = []
        monkeypatch.setattr(zygote.os, "write", lambda fd, data: lines.append(data.decode()) or len(data))
        task = {"source": source, "entry": "solve", "checked": checked, "call": 5.0}
        zygote._run_program({**task, "tests": [json.dumps(test) for test in tests]})
        monkeypatch.undo()
        assert all(line.endswith("\n") and line.count("\n") == 1 for line in lines)
        return [line[:-1] for line in lines]

    return run


def test_a_program_line_by_line(said: Callable[..., list[str]]) -> None:
    source = "def solve(n): return n * n if n else None"
    assert said(source, [3], [0], [-16]) == ["accepted", "int 9", "other NoneType", "int 100", "done"]


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("def solve(", ["uncompilable SyntaxError"]),
        ("x = 1\0", ["uncompilable SyntaxError"]),
        ("import os", ["rejected import"]),
        ("x = 1 / 0", ["accepted", "broken error ZeroDivisionError"]),
        ("solve = 5", ["accepted", "absent"]),
        ("def other(): pass", ["accepted", "absent"]),
    ],
)
def test_programs_that_never_run(said: Callable[..., list[str]], source: str, lines: list[str]) -> None:
    found = said(source, [1])
    assert len(found) == len(lines)
    assert all(line.startswith(start) for line, start in zip(found, lines, strict=True))


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (7, "int 7"),
        (-255, "int -ff"),
        (2**4095, f"int {2**4095:x}"),
        (2**4096, "other int of 4097 bits"),
        (True, "other bool"),
        (1.0, "other float"),
        ("7", "other str"),
    ],
)
def test_only_integers_of_a_bounded_size_are_numbers(value: Any, line: str) -> None:
    assert zygote._guarded(lambda: value, 5.0) == line


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("secret"), "error ValueError"),
        (MemoryError(), "memory"),
        (zygote._CallTimeout(), "timeout"),
        (SystemExit(0), "error SystemExit"),
        (KeyboardInterrupt(), "error KeyboardInterrupt"),
    ],
)
def test_whatever_is_raised_is_one_word_without_its_text(error: BaseException, line: str) -> None:
    def raising() -> None:
        raise error

    assert zygote._guarded(raising, 5.0) == line


def test_names_offered_to_programs_open_no_door() -> None:
    assert not {"open", "exec", "eval", "compile", "__import__", "input", "getattr", "setattr", "type", "object"} & set(
        zygote._BUILTINS
    )
    assert zygote._BUILTINS["print"]("x", end="") is None


def test_a_line_is_short_and_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[bytes] = []
    monkeypatch.setattr(zygote.os, "write", lambda fd, data: lines.append(data) or len(data))
    zygote._say("rejected", "two\nlines ü " + "x" * 5000)
    monkeypatch.undo()
    assert lines[0].startswith(b"rejected two lines ? x")
    assert len(lines[0]) == 2049


def test_a_layer_that_the_machine_lacks_is_not_claimed() -> None:
    layers = ["limits"]

    def missing() -> None:
        raise OSError("no such call")

    zygote._layer(layers, "landlock", [], missing)
    zygote._layer(layers, "seccomp", ["seccomp"], lambda: None)
    zygote._layer(layers, "no-root", [], lambda: None)
    assert layers == ["limits", "no-root"]


def test_frames_are_written_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe may take a few bytes at a time."""
    written = bytearray()

    def slowly(fd: int, data: bytes) -> int:
        written.extend(data[:3])
        return min(3, len(data))

    monkeypatch.setattr(zygote.os, "write", slowly)
    zygote._send({"bytes": 5}, b"ab\ncd")
    monkeypatch.undo()
    assert bytes(written) == b'{"bytes": 5}\nab\ncd'
    assert os.write is not slowly


@pytest.mark.parametrize(
    ("tests", "options", "message"),
    [
        ([1], {}, "each test is a list of arguments"),
        (["ab"], {}, "each test is a list of arguments"),
        ([], {}, "there are none"),
        ([[float("nan")]], {}, "arguments must be JSON values"),
        ([[{1, 2}]], {}, "arguments must be JSON values"),
        ([[1]], {"entry": "a b"}, "'a b' can't be the name of a function"),
        ([[1]], {"entry": ""}, "can't be the name of a function"),
        ([[1]], {"expected": [1, 2]}, "2 expected values for 1 tests"),
        ([[1]], {"expected": [True]}, "expected values are integers"),
        ([[1]], {"expected": [1.0]}, "expected values are integers"),
    ],
)
def test_shapes_that_are_refused(tests: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=f"code tests: .*{message}"):
        Program.build("", tests, **options)


def test_arguments_are_kept_as_json_and_expected_values_apart() -> None:
    made = Program.build("x", [(1, "ü"), [[2.5], None]], expected=(10**30, -1), entry="f")
    assert made.tests == ('[1, "\\u00fc"]', "[[2.5], null]")
    assert made.expected == (10**30, -1)
    assert (made.entry, made.checked) == ("f", True)
    assert Program.build("x", [[]]).expected is None


@pytest.mark.parametrize(
    ("layers", "level"),
    [
        (("limits",), Level.LIMITS),
        (("limits", "namespaces"), Level.LIMITS),
        (("limits", "seccomp"), Level.SECCOMP),
        (("limits", "namespaces", "seccomp"), Level.NAMESPACES),
    ],
)
def test_a_level_is_no_stronger_than_its_layers(layers: tuple[str, ...], level: Level) -> None:
    found = Isolation(layers)
    assert found.level is level
    assert str(found) == f"{level.value} ({', '.join(layers)})"


def test_levels_are_ordered() -> None:
    assert [level.rank for level in (Level.LIMITS, Level.SECCOMP, Level.NAMESPACES)] == [0, 1, 2]


@pytest.mark.parametrize("name", ["call", "cpu", "wall", "memory", "output"])
def test_limits_are_positive(name: str) -> None:
    with pytest.raises(InputError, match="must be positive"):
        ProgramLimits(**{name: 0})


def test_the_share_of_tests_that_passed() -> None:
    statuses = (ProgramStatus.RIGHT, ProgramStatus.WRONG, ProgramStatus.RAN, ProgramStatus.RIGHT)
    found = Execution(ProgramStatus.WRONG, statuses, (1, 2, 3, 4), "", Isolation(("limits",)), 0.5)
    assert found.passed == 0.5
    told = found.document()
    assert told["tests"] == ["right", "wrong", "ran", "right"]
    assert (told["status"], told["isolation"], told["layers"]) == ("wrong", "limits", ["limits"])
