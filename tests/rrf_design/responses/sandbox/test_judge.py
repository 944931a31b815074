"""What is checked before and after a program runs: its source, its answer, its walls."""

from __future__ import annotations

import ast
import re
import signal
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rrf_design.responses.sandbox import Isolation, Program, ProgramLimits, ProgramStatus
from rrf_design.responses.sandbox import _confine as confine
from rrf_design.responses.sandbox._validator import violation
from rrf_design.responses.sandbox.runner import _judged

HELD = Isolation(("limits", "seccomp"))
PROGRAM = Program.build("", [[1], [2]], expected=[5, -7])


def verdict(payload: bytes, *, end: str = "exit", code: int = 0, cpu: float = 0.0) -> tuple[ProgramStatus, str]:
    report = {"end": end, "code": code, "cpu": cpu}
    result = _judged(PROGRAM, report, payload, isolation=HELD, limits=ProgramLimits(cpu=1))
    assert len(result.tests) == len(result.outputs) == 2
    return result.status, result.detail


@pytest.mark.parametrize(
    ("payload", "status"),
    [
        (b"accepted\nint 5\nint -7\ndone\n", ProgramStatus.RIGHT),
        (b"accepted\nint 5\nint 7\ndone\n", ProgramStatus.WRONG),
        (b"accepted\nint 5\nint -7\n", ProgramStatus.CRASH),
        (b"accepted\nint 5\nint -7\ndone", ProgramStatus.CRASH),
        (b"accepted\nint 5\nint -7\nint 1\ndone\n", ProgramStatus.CRASH),
        (b"accepted\nint +5\nint -7\ndone\n", ProgramStatus.CRASH),
        (b"accepted\nint 5 \nint -7\ndone\n", ProgramStatus.CRASH),
        (b"accepted\nint \xd9\xa5\nint -7\ndone\n", ProgramStatus.CRASH),
        (b"accepted\nint " + b"f" * 5000 + b"\nint -7\ndone\n", ProgramStatus.CRASH),
        (b"accepted\nother float\nint -7\ndone\n", ProgramStatus.NON_INTEGER),
        (b"accepted\nright\nright\ndone\n", ProgramStatus.CRASH),
        (b"accepted\nabsent\n", ProgramStatus.PARSE_FAILURE),
        (b"accepted\nbroken memory\n", ProgramStatus.MEMORY),
        (b"accepted\nbroken int 5\n", ProgramStatus.CRASH),
        (b"accepted\nbroken other float\n", ProgramStatus.NON_INTEGER),
        (b"rejected import\n", ProgramStatus.REJECTED),
        (b"uncompilable SyntaxError\n", ProgramStatus.COMPILE_FAILURE),
        (b"", ProgramStatus.CRASH),
        (b"int 5\nint -7\ndone\n", ProgramStatus.CRASH),
    ],
)
def test_lines(payload: bytes, status: ProgramStatus) -> None:
    assert verdict(payload)[0] is status


@pytest.mark.parametrize(
    ("end", "code", "cpu", "status", "detail"),
    [
        ("wall", -signal.SIGKILL, 0.1, ProgramStatus.TIMEOUT, "wall"),
        ("output", -signal.SIGKILL, 0.1, ProgramStatus.CRASH, "output"),
        ("exit", -signal.SIGXCPU, 0.4, ProgramStatus.TIMEOUT, "CPU"),
        ("exit", -signal.SIGKILL, 0.98, ProgramStatus.TIMEOUT, "CPU"),
        ("exit", -signal.SIGKILL, 0.1, ProgramStatus.CRASH, "signal 9"),
        ("exit", -signal.SIGSYS, 0.1, ProgramStatus.CRASH, "forbidden"),
        ("exit", -signal.SIGSEGV, 0.1, ProgramStatus.CRASH, "signal 11"),
        ("exit", 72, 0.1, ProgramStatus.MEMORY, "memory"),
        ("exit", 70, 0.1, ProgramStatus.CRASH, "exit code 70"),
    ],
)
def test_endings(end: str, code: int, cpu: float, status: ProgramStatus, detail: str) -> None:
    for payload in (b"", b"accepted\n", b"accepted\nint 5\n"):
        seen = verdict(payload, end=end, code=code, cpu=cpu)
        assert seen[0] is status
        assert detail in seen[1]


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_no_bytes_make_a_program_right(noise: bytes) -> None:
    if noise.strip(b"\n") != b"int 5\nint -7\ndone":
        assert verdict(b"accepted\n" + noise)[0] is not ProgramStatus.RIGHT
    assert verdict(noise)[0] in set(ProgramStatus)


@settings(deadline=None)
@given(st.integers(-(2**4096), 2**4096))
def test_integers_read_back(number: int) -> None:
    program = Program.build("", [[1]])
    payload = f"accepted\nint {number:x}\ndone\n".encode()
    report = {"end": "exit", "code": 0, "cpu": 0.0}
    assert _judged(program, report, payload, isolation=HELD, limits=ProgramLimits()).outputs == (number,)


@given(
    st.lists(
        st.sampled_from(
            ["broken ", "int 5", "int -7", "done", "absent", "other x", "error x", "right", " ", "accepted"]
        ),
        max_size=6,
    )
)
@settings(max_examples=300, deadline=None)
def test_an_answer_has_an_integer_for_every_test(pieces: list[str]) -> None:
    """Whatever lines a program forges: where it is said to have run, every test has its integer."""
    lines = "\n".join(["accepted", *pieces]).replace("broken \n", "broken ") + "\n"
    asked = Program.build("", [[1], [2]])
    report = {"end": "exit", "code": 0, "cpu": 0.0}
    result = _judged(asked, report, lines.encode(), isolation=HELD, limits=ProgramLimits(cpu=1))
    if result.status is ProgramStatus.RAN:
        assert all(type(value) is int for value in result.outputs)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import os", "import"),
        ("from os import path", "import"),
        ("def f():\n    import os", r"import \(line 2\)"),
        ("def f():\n    global x", "global"),
        ("def f():\n    x = 1\n    def g():\n        nonlocal x", "nonlocal"),
        ("class A: pass", "class"),
        ("async def f(): pass", "async function"),
        ("().__class__", "dunder name __class__"),
        ("__builtins__", "dunder name"),
        ("def __f(): pass", "dunder name"),
        ("f(__x=1)", "dunder name"),
        ("def f(__x): pass", "dunder name"),
        ("match x:\n    case int(__class__=y): pass", "dunder name"),
        ("match x:\n    case {**__y}: pass", "dunder name"),
        ("'{0.__class__}'.format(x)", "a string with a dunder"),
        ("f'{x.__class__}'", "dunder name"),
        ("b'__class__'", "a string with a dunder"),
        ("eval('1')", "dynamic primitive eval"),
        ("e = exec", "dynamic primitive exec"),
        ("compile", "dynamic primitive"),
        ("open('x')", "dynamic primitive"),
        ("getattr(x, 'a')", "dynamic primitive"),
        ("type(x)", "dynamic primitive"),
        ("g.gi_frame", "attribute gi_frame"),
        ("e.tb_frame", "attribute"),
        ("f.f_globals", "attribute"),
        ("'{x}'.format_map(y)", "attribute format_map"),
    ],
)
def test_rejected(source: str, reason: str) -> None:
    found = violation(ast.parse(source))
    assert found is not None
    assert re.search(reason, found)


@pytest.mark.parametrize(
    "source",
    [
        "def solve(n):\n    return sum(int(d) for d in str(n))",
        "def solve(xs):\n    xs = sorted(set(xs))\n    return xs[-2] if len(xs) > 1 else 0",
        "solve = lambda a, b: a if b == 0 else solve(b, a % b)",
        (
            "def solve(n):\n    memo = {}\n    def f(k):\n        if k not in memo: memo[k] = k if k < 2 else f(k-1) +"
            " f(k-2)\n        return memo[k]\n    return f(n)"
        ),
        "def solve(n):\n    try:\n        return 10 // n\n    except ZeroDivisionError:\n        return 0",
        "def solve(a_b, _c):\n    return '{} {}'.format(a_b, _c).count(' ')",
    ],
)
def test_accepted(source: str) -> None:
    assert violation(ast.parse(source)) is None


ALLOW, KILL = 0x7FFF0000, 0x80000000
DENY = 0x00050001


def evaluate(program: bytes, *, number: int, arch: int, arguments: tuple[int, ...] = ()) -> int:
    """A small interpreter of the filter language: what would the kernel decide about this call?"""
    padded = (*arguments, *[0] * (6 - len(arguments)))
    data = struct.pack("IIQ6Q", number, arch, 0, *padded)
    place, value = 0, 0
    while True:
        code, yes, no, constant = struct.unpack_from("HBBI", program, 8 * place)
        place += 1
        if code == 0x20:
            value = struct.unpack_from("I", data, constant)[0]
        elif code == 0x06:
            return int(constant)
        else:
            met = {0x15: value == constant, 0x35: value >= constant, 0x45: bool(value & constant)}[code]
            place += yes if met else no


@pytest.mark.parametrize("machine", list(confine._MACHINES))
def test_filter_decides_every_call(machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confine, "_MACHINE", confine._MACHINES[machine])
    arch, _, plain, write, memory, denied = confine._MACHINES[machine]
    program = confine.seccomp_program()
    for number in range(600):
        verdict = evaluate(program, number=number, arch=arch)
        if number in plain or number in memory:
            assert verdict == ALLOW
        elif number in denied:
            assert verdict == DENY
        else:
            assert verdict == KILL, number
        assert evaluate(program, number=number, arch=arch ^ 1) == KILL
        assert evaluate(program, number=number | 0x40000000, arch=arch) == KILL
    for fd in (0, 1, 2, 4, 1000):
        assert evaluate(program, number=write, arch=arch, arguments=(fd,)) == KILL
    assert evaluate(program, number=write, arch=arch, arguments=(confine.RESULT_FD,)) == ALLOW
    for number in memory:
        assert evaluate(program, number=number, arch=arch, arguments=(0, 4096, 3)) == ALLOW
        assert evaluate(program, number=number, arch=arch, arguments=(0, 4096, 5)) == KILL


def test_unknown_machines_have_no_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confine, "_MACHINE", None)
    for layer in (confine.seccomp_program, confine.landlock, lambda: confine.namespaces("/")):
        with pytest.raises(OSError, match="no "):
            layer()
