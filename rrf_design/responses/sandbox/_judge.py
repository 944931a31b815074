"""From the bytes a program's process left behind to statuses. Nothing in these bytes is trusted.

After ``accepted`` the program may have written every line itself. It can claim integers, and so be
wrong; it can't claim to be right, because the expected values never left this side and are compared
here, as plain integers.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping, Sequence
from typing import Any

from rrf_design.responses.sandbox._validator import LONGEST_SOURCE
from rrf_design.responses.sandbox.records import Execution, Isolation, Program, ProgramLimits, ProgramStatus

_INTEGER = re.compile(r"int (-?[0-9a-f]{1,1100})")
_PROBLEM = {"timeout": ProgramStatus.TIMEOUT, "memory": ProgramStatus.MEMORY}


def judged(
    program: Program, report: Mapping[str, Any], payload: bytes, *, isolation: Isolation, limits: ProgramLimits
) -> Execution:
    """The verdict on one program: its first failing test names it."""
    lines = payload.decode("ascii", "replace").split("\n")
    verdict, _, detail = lines[0].partition(" ")
    count = len(program.tests)
    cpu = float(report["cpu"])
    if verdict == "rejected":
        return _whole(ProgramStatus.REJECTED, detail, count, isolation, cpu)
    if verdict == "uncompilable":
        return _whole(ProgramStatus.COMPILE_FAILURE, detail, count, isolation, cpu)
    ended, reason = _ending(report, limits)
    if verdict != "accepted":
        return _whole(ended or ProgramStatus.CRASH, reason or "no word from the program", count, isolation, cpu)
    body = lines[1:-1]
    if ended is None and body[:1] == ["absent"]:
        return _whole(ProgramStatus.PARSE_FAILURE, f"no function {program.entry}", count, isolation, cpu)
    if body and body[0].startswith("broken "):
        status, _, text = _line(body[0].removeprefix("broken "), None)
        if (
            status is ProgramStatus.RAN
        ):  # a forged line: outside the function nothing returns an integer, and no answer is one without values
            status, text = ProgramStatus.CRASH, "unreadable result"
        return _whole(status, f"outside the function: {text}", count, isolation, cpu)
    if ended is None and (len(body) != count + 1 or body[-1] != "done"):
        return _whole(ProgramStatus.CRASH, "it ended before its tests did", count, isolation, cpu)
    expected: Sequence[int | None] = program.expected or [None] * count
    results = [_line(line, wanted) for line, wanted in zip(body[:count], expected, strict=False)]
    missing = (ended or ProgramStatus.CRASH, None, reason)
    results += [missing] * (count - len(results))
    first = next((r for r in results if r[0] not in (ProgramStatus.RIGHT, ProgramStatus.RAN)), results[0])
    return Execution(first[0], tuple(r[0] for r in results), tuple(r[1] for r in results), first[2], isolation, cpu)


def too_long(program: Program, isolation: Isolation) -> Execution | None:
    """No program of this length is sent anywhere."""
    size = len(program.source.encode("utf-8", "replace"))
    if size <= LONGEST_SOURCE:
        return None
    return _whole(ProgramStatus.REJECTED, f"{size} bytes of source", len(program.tests), isolation, 0.0)


def lost(program: Program, isolation: Isolation) -> Execution:
    return _whole(ProgramStatus.CRASH, "the sandbox process was lost", len(program.tests), isolation, 0.0)


def _line(line: str, wanted: int | None) -> tuple[ProgramStatus, int | None, str]:
    if match := _INTEGER.fullmatch(line):
        value = int(match.group(1), 16)
        if wanted is None:
            return ProgramStatus.RAN, value, ""
        return (ProgramStatus.RIGHT if value == wanted else ProgramStatus.WRONG), value, ""
    kind, _, detail = line.partition(" ")
    if kind in _PROBLEM:
        return _PROBLEM[kind], None, kind
    if kind == "other":
        return ProgramStatus.NON_INTEGER, None, detail
    return ProgramStatus.CRASH, None, detail if kind == "error" else "unreadable result"


def _ending(report: Mapping[str, Any], limits: ProgramLimits) -> tuple[ProgramStatus | None, str]:
    """How the process ended, if not by itself and in peace."""
    end, code = report["end"], int(report["code"])
    if end == "wall":
        return ProgramStatus.TIMEOUT, f"{limits.wall} s of wall time"
    if end == "output":
        return ProgramStatus.CRASH, "too much output"
    if code == 0:
        return None, ""
    # The limit is counted in ticks and the report precisely; on a busy virtual machine the two
    # differ by a lot.
    if code == -signal.SIGXCPU or (code == -signal.SIGKILL and float(report["cpu"]) > 0.5 * limits.cpu):
        return ProgramStatus.TIMEOUT, f"{limits.cpu} s of CPU time"
    if code == 72:
        return ProgramStatus.MEMORY, "out of memory"
    if code == -signal.SIGSYS:
        return ProgramStatus.CRASH, "forbidden system call"
    return ProgramStatus.CRASH, f"signal {-code}" if code < 0 else f"exit code {code}"


def _whole(status: ProgramStatus, detail: str, count: int, isolation: Isolation, cpu: float) -> Execution:
    return Execution(status, (status,) * count, (None,) * count, detail, isolation, cpu)
