"""A program in the text, and its execution signature: the integers it returns on fixed tests, as a
vector.

Extraction is part of the measurement: a fence that is opened and never closed (the token limit),
closed and never opened, or absent must not decide whether a program counts. What runs is the first
fenced block that defines the function, else the text from the first top-level definition to the end
of the code.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from rrf_design.errors import InputError
from rrf_design.responses.parsed import Parsed, Parser, ParseStatus, failure, numbers
from rrf_design.responses.sandbox.records import Execution, Program, ProgramLimits, ProgramStatus
from rrf_design.responses.sandbox.runner import Sandbox

_FENCED = re.compile(
    r"^[ \t]*(?:```|~~~)[ \t]*([\w+-]*)[^\n]*\n(.*?)(?:^[ \t]*(?:```|~~~)|\Z)", re.DOTALL | re.MULTILINE
)
_PYTHON = frozenset({"", "python", "py", "python3"})
_START = re.compile(r"(?:def|async def|class)\s+\w|@\w|import\s+\w+\s*$|from\s+\w+\s+import\b")


def extract(text: str, entry: str = "solve") -> str | None:
    """The program in an answer, or None if nothing in it defines ``entry``."""
    text = text.replace("\r\n", "\n")
    defines = re.compile(rf"^[ \t]*def\s+{re.escape(entry)}\s*\(", re.MULTILINE)
    for language, block in _FENCED.findall(text):
        if language.lower() in _PYTHON and defines.search(block):
            return _dedent(block)
    if not defines.search(text):
        return None
    return _unfenced(text, defines)


def _unfenced(text: str, defines: re.Pattern[str]) -> str | None:
    """From the first top-level definition on, as long as lines are indented, blank or start another
    one.
    """
    kept: list[str] = []
    for line in text.split("\n"):
        code = _START.match(line) is not None
        if line.lstrip().startswith(("```", "~~~")) or (kept and line[:1].strip() and not code):
            if defines.search("\n".join(kept)):
                break
            kept = []
        elif kept or code:
            kept.append(line)
    source = "\n".join(kept).strip("\n")
    return source + "\n" if defines.search(source) else None


def _dedent(block: str) -> str:
    """A block inside a list item is indented as a whole."""
    lines = block.split("\n")
    margin = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "\n".join(line[margin:] for line in lines)


class CodeParser(Parser):
    """``code``: tests are lists of arguments; the value has one integer per test."""

    name = "code"

    def __init__(
        self, tests: Sequence[Sequence[Any]], *, entry: str = "solve", seconds: float = 1.0, require: str = "seccomp"
    ) -> None:
        if isinstance(tests, str) or not isinstance(tests, Sequence):
            raise InputError("parser 'code': tests is a list with one list of arguments per call")
        self._inputs = [list(arguments) if isinstance(arguments, list | tuple) else arguments for arguments in tests]
        self._template = Program.build("", self._inputs, entry=entry)
        self._seconds = seconds
        self._require = require
        self.dim = len(self._inputs)

    def parse(self, text: str) -> Parsed:
        return self.parse_many([text])[0]

    def parse_many(self, texts: Sequence[str]) -> tuple[Parsed, ...]:
        sources = [extract(text, self._template.entry) for text in texts]
        programs = [self._program(source) for source in sources if source is not None]
        results = iter(shared(self._seconds, self._require).run_many(programs) if programs else ())
        return tuple(
            failure(f"no function {self._template.entry} in the text")
            if source is None
            else _parsed(next(results), strict=_bare(text, source))
            for text, source in zip(texts, sources, strict=True)
        )

    def _program(self, source: str) -> Program:
        return Program(source, self._template.tests, None, self._template.entry)

    @property
    def spec(self) -> Mapping[str, Any]:
        return {
            "name": self.name,
            "tests": self._inputs,
            "entry": self._template.entry,
            "seconds": self._seconds,
            "require": self._require,
        }


def _parsed(result: Execution, *, strict: bool) -> Parsed:
    held = f"isolation {result.isolation.level.value}"
    if result.status is not ProgramStatus.RAN:
        return failure(f"{result.detail}; {held}", ParseStatus(result.status.value))
    integers = [value for value in result.outputs if value is not None]
    parsed = numbers(integers, strict=strict, canonical=" ".join(map(str, integers)))
    return parsed if not parsed.ok else Parsed(parsed.status, parsed.value, strict, parsed.canonical, held)


def _bare(text: str, source: str) -> bool:
    """The answer is the program and nothing else, fenced or not."""
    lines = [line for line in text.strip().split("\n") if not line.startswith(("```", "~~~"))]
    return "\n".join(lines).strip() == source.strip()


def shared(seconds: float, require: str) -> Sandbox:
    """The process's sandbox for these limits; its workers are reused by every parser and end with
    the process.
    """
    return _shared(seconds, require, os.getpid())


@cache
def _shared(seconds: float, require: str, _process: int) -> Sandbox:
    if not (math.isfinite(seconds) and 0.0 < seconds <= 3600.0):
        raise InputError(f"parser 'code': seconds is {seconds}; it must be a positive number")
    return Sandbox(
        limits=ProgramLimits(call=seconds, cpu=math.ceil(3 * seconds), wall=10 + 5 * seconds), require=require
    )
