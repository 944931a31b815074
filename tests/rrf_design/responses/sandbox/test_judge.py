"""The judge reads bytes that a hostile program may have written; expected values never depend on
them.
"""

from __future__ import annotations

import signal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rrf_design.responses.sandbox import Isolation, Program, ProgramLimits, ProgramStatus
from rrf_design.responses.sandbox._judge import judged

HELD = Isolation(("limits", "seccomp"))
PROGRAM = Program.build("", [[1], [2]], expected=[5, -7])


def verdict(payload: bytes, *, end: str = "exit", code: int = 0, cpu: float = 0.0) -> tuple[ProgramStatus, str]:
    report = {"end": end, "code": code, "cpu": cpu}
    result = judged(PROGRAM, report, payload, isolation=HELD, limits=ProgramLimits(cpu=1))
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
    assert judged(program, report, payload, isolation=HELD, limits=ProgramLimits()).outputs == (number,)


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
    result = judged(asked, report, lines.encode(), isolation=HELD, limits=ProgramLimits(cpu=1))
    if result.status is ProgramStatus.RAN:
        assert all(type(value) is int for value in result.outputs)
