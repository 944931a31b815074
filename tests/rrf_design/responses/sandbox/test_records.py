"""What goes into the sandbox and what comes out: shapes refused before anything runs, levels in
order, shares of tests.
"""

from __future__ import annotations

from typing import Any

import pytest

from rrf_design.errors import InputError
from rrf_design.responses.sandbox import Execution, Isolation, Level, Program, ProgramLimits, ProgramStatus


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
