"""What is said about a program from inside: one line a call, and nothing but integers counts as a
number.

The functions that fork and confine are tried by `test_worker`, `test_runner` and `test_hostile`;
here are those that judge.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import pytest

from rrf_design.responses.sandbox import _zygote as zygote


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
