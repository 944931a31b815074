"""A program in the text, and its execution signature: the integers it returns on fixed tests, as a
vector.

Extraction is part of the measurement: a fence that is opened and never closed (the token limit),
closed and never opened, or absent must not decide whether a program counts. What runs is the first
fenced block that defines the function, else the text from the first top-level definition to the end
of the code.

Programs with one signature are one response, right or wrong together: a semantic collision.
`separating_inputs` looks for a further test that tells them apart: a question with a definite
answer, for a person or a reference. It never says which program is right, and finding nothing
proves nothing.
"""

from __future__ import annotations

import math
import os
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from rrf_design.errors import InputError
from rrf_design.responses.parsed import Parsed, Parser, ParseStatus, failure, numbers
from rrf_design.responses.sandbox import Sandbox
from rrf_design.responses.sandbox.records import Execution, Program, ProgramLimits, ProgramStatus

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


EDGES = (0, 1, -1, 2, 3, 7, 10, 12, 97, 100, -5, 1000)
BATCH = 24
"""Inputs in one run of a program: an endless loop on one of them costs the others of its batch."""


@dataclass(frozen=True, slots=True)
class SeparatingInput:
    """An input on which programs differ that agree on all tests."""

    arguments: tuple[Any, ...]
    outputs: Mapping[str, int]
    """What each program returns, by its name."""

    def check(self, of: str, *, entry: str = "solve", cost: float | None = None) -> dict[str, Any]:
        """A check of a recipe that asks a person what is right there: one row, the new test, of a
        node that gets one more coordinate for it.
        """
        call = f"{entry}({', '.join(map(repr, self.arguments))})"
        said = ", ".join(f"{name} says {value}" for name, value in self.outputs.items())
        asked = {"id": f"{of} at {call}", "of": of, "by": {"person": f"What should {call} return? ({said})"}}
        return asked if cost is None else {**asked, "cost": cost}


def separating_inputs(
    programs: Mapping[str, str],
    tests: Sequence[Sequence[Any]],
    *,
    entry: str = "solve",
    tries: int = 240,
    most: int = 3,
    seconds: float = 1.0,
    require: str = "seccomp",
    seed: int = 0,
) -> tuple[SeparatingInput, ...]:
    """Inputs on which programs differ, at most `most`, those first that tell most of them apart.

    Only programs that return an integer are compared: an input on which some fail (a wrong type
    too) counts by those that do not. An empty tuple means that none was found, and no more.

    Parameters
    ----------
    programs : the texts of programs, or answers that hold one, by the name of whoever wrote it.
    tests : the public tests, one list of arguments per call; inputs are made like them.
    entry : the function that is called.
    tries : how many inputs are tried.
    most : how many are given.
    seconds : what one call may take.
    require : the least isolation, as in a run.
    seed : of the inputs.

    Examples
    --------
    >>> from rrf_design.responses import separating_inputs
    >>> programs = {"one": "def solve(x): return abs(x)", "two": "def solve(x): return x"}
    >>> found = separating_inputs(programs, [[2], [5]], most=1)  # both say 2 and 5
    >>> sorted(found[0].outputs) == ["one", "two"]
    True
    """
    if len(programs) < 2:
        raise InputError("separating_inputs: give two programs or more; one can't differ from itself")
    sources = {name: extract(text, entry) or text for name, text in programs.items()}
    inputs = _inputs(tests, tries, random.Random(seed))
    box, found = shared(seconds, require), list[SeparatingInput]()
    for begin in range(0, len(inputs), BATCH):
        batch = inputs[begin : begin + BATCH]
        ran = box.run_many([Program.build(source, batch, entry=entry) for source in sources.values()])
        for at, arguments in enumerate(batch):
            outputs = {name: one.outputs[at] for name, one in zip(sources, ran, strict=True)}
            said = {name: value for name, value in outputs.items() if value is not None}
            if len(set(said.values())) > 1:
                found.append(SeparatingInput(tuple(arguments), said))
    found.sort(key=lambda one: (-len(set(one.outputs.values())), -len(one.outputs), len(repr(one.arguments))))
    return tuple(found[:most])


def _inputs(tests: Sequence[Sequence[Any]], tries: int, rng: random.Random) -> list[list[Any]]:
    """New lists of arguments: every test with one argument at an edge, then random changes of
    several.
    """
    Program.build("", tests)  # checks the shapes
    known = {repr(list(test)) for test in tests}
    found: list[list[Any]] = []

    def take(arguments: list[Any]) -> None:
        if repr(arguments) not in known:
            known.add(repr(arguments))
            found.append(arguments)

    for test in tests:
        for at, value in enumerate(test):
            for edge in _edges(value):
                take([*test[:at], edge, *test[at + 1 :]])
    rng.shuffle(found)
    for _ in range(20 * tries):
        if len(found) >= tries or not tests:
            break
        take([_changed(value, rng) for value in rng.choice(tests)])
    return found[:tries]


def _edges(value: Any) -> list[Any]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [*EDGES, value + 1, value - 1, -value, 2 * value]
    if isinstance(value, str):
        return ["", value[::-1], value * 2, value.upper(), value[:1], f" {value}"]
    if isinstance(value, list | tuple):
        kept = list(value)
        return [[], kept[::-1], kept[:1], kept + kept, sorted(kept, key=repr), *([*kept, edge] for edge in EDGES[:3])]
    return []


def _changed(value: Any, rng: random.Random) -> Any:
    """A value of the same kind, near or far."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return rng.choice([value, rng.choice(EDGES), rng.randint(-20, 20), value + rng.randint(-3, 3)])
    if isinstance(value, float):
        return rng.choice([value, 0.0, -value, value / 2, value + 1.0])
    if isinstance(value, str):
        return rng.choice([value, *_edges(value)])
    if isinstance(value, list | tuple):
        length = rng.choice([len(value), rng.randint(0, len(value) + 2)])
        return [_changed(rng.choice(value), rng) if value else rng.choice(EDGES) for _ in range(length)]
    return value
