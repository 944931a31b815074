"""What goes into the sandbox and what comes out: programs, limits, isolation levels, statuses,
executions.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rrf_design.errors import InputError


class ProgramStatus(StrEnum):
    """What became of a program, or of one of its tests.

    ``ran`` is an integer that nothing was expected of.
    """

    PARSE_FAILURE = "parse failure"  # no program, or no function of the wanted name
    COMPILE_FAILURE = "compile failure"
    REJECTED = "rejected"
    TIMEOUT = "timeout"
    MEMORY = "memory"
    CRASH = "crash"
    NON_INTEGER = "non-integer"
    WRONG = "wrong"
    RIGHT = "right"
    RAN = "ran"


class Level(StrEnum):
    """How strongly a program is held, from weakest to strongest."""

    LIMITS = "limits"
    SECCOMP = "seccomp"
    NAMESPACES = "seccomp+namespaces"

    @property
    def rank(self) -> int:
        return list(Level).index(self)


@dataclass(frozen=True, slots=True)
class Isolation:
    """The layers that are really on, as the sandbox process found out by putting them on."""

    layers: tuple[str, ...]

    @property
    def level(self) -> Level:
        if "seccomp" not in self.layers:
            return Level.LIMITS
        return Level.NAMESPACES if "namespaces" in self.layers else Level.SECCOMP

    def __str__(self) -> str:
        return f"{self.level.value} ({', '.join(self.layers)})"


@dataclass(frozen=True, slots=True)
class ProgramLimits:
    """Of one program: CPU seconds of a call and of all calls, wall seconds, bytes of memory and of
    output.
    """

    call: float = 1.0
    cpu: int = 3
    wall: float = 10.0
    memory: int = 256 * 2**20
    output: int = 64 * 2**10

    def __post_init__(self) -> None:
        if min(self.call, self.cpu, self.wall, self.memory, self.output) <= 0:
            raise InputError("sandbox limits must be positive")


@dataclass(frozen=True, slots=True)
class Program:
    """Source, the function to call, its arguments test by test, and, kept out of the sandbox, the
    expected integers.

    Arguments are JSON values (numbers, strings, lists). ``checked=False`` leaves out the validator
    and the restricted builtins: the isolation has to hold on its own, and the tests show that it
    does.
    """

    source: str
    tests: tuple[str, ...]
    expected: tuple[int, ...] | None = None
    entry: str = "solve"
    checked: bool = True

    @classmethod
    def build(
        cls,
        source: str,
        tests: Any,
        *,
        expected: Any = None,
        entry: str = "solve",
        checked: bool = True,
    ) -> Program:
        """From plain lists: ``tests`` holds one list of arguments per call."""
        if any(not isinstance(arguments, list | tuple) for arguments in tests):
            raise InputError("code tests: each test is a list of arguments, as in [[1, 2], [3, 4]]")
        try:
            encoded = tuple(json.dumps(list(arguments), allow_nan=False) for arguments in tests)
        except (TypeError, ValueError) as error:
            raise InputError(f"code tests: arguments must be JSON values ({error})") from None
        if not encoded:
            raise InputError("code tests: there are none; an execution signature needs at least one")
        if not entry.isidentifier():
            raise InputError(f"code tests: {entry!r} can't be the name of a function")
        values = None if expected is None else tuple(expected)
        if values is not None:
            if len(values) != len(encoded):
                raise InputError(f"code tests: {len(values)} expected values for {len(encoded)} tests")
            if any(type(value) is not int for value in values):
                raise InputError("code tests: expected values are integers")
        return cls(source, encoded, values, entry, checked)


@dataclass(frozen=True, slots=True)
class Execution:
    """One program's end: its status, each test's status and integer, and under which isolation it
    ran.
    """

    status: ProgramStatus
    tests: tuple[ProgramStatus, ...]
    outputs: tuple[int | None, ...]
    detail: str
    isolation: Isolation
    cpu: float

    @property
    def passed(self) -> float:
        """Share of tests with the expected integer."""
        return sum(status is ProgramStatus.RIGHT for status in self.tests) / len(self.tests)

    def document(self) -> dict[str, Any]:
        return {
            "status": self.status.value,
            "tests": [status.value for status in self.tests],
            "outputs": list(self.outputs),
            "detail": self.detail,
            "isolation": self.isolation.level.value,
            "layers": list(self.isolation.layers),
            "cpu": self.cpu,
        }
