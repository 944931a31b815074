"""The docstrings of the public functions say what they take and give, and their examples do what
they say.
"""

from __future__ import annotations

import doctest
import inspect
import re

import pytest

import rrf_design
import rrf_design.certificates
import rrf_design.questions
import rrf_design.repairing
import rrf_design.responses
import solvers
import solvers.decoding

FUNCTIONS = {name: value for name in rrf_design.__all__ if inspect.isfunction(value := getattr(rrf_design, name))} | {
    f"solvers.{name}": value for name in solvers.__all__ if inspect.isfunction(value := getattr(solvers, name))
}
ROOMS = (
    rrf_design.certificates,
    rrf_design.repairing,
    rrf_design.responses,
    rrf_design.questions,
    solvers.decoding,
)
FUNCTIONS |= {
    f"{room.__name__}.{name}": value
    for room in ROOMS
    for name in room.__all__
    if inspect.isfunction(value := getattr(room, name))
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_example_of_a_public_function_runs(name: str) -> None:
    function = inspect.unwrap(FUNCTIONS[name])
    finder = doctest.DocTestFinder(recurse=False)
    found = [test for test in finder.find(function, name, globs={}) if test.examples]
    assert found, f"{name} has no example"
    told: list[str] = []
    for test in found:
        result = doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE).run(
            test, out=told.append
        )
        assert result.failed == 0, "".join(told)


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if not name.startswith("solvers.")])
def test_the_docstring_of_a_public_function_names_every_parameter(name: str) -> None:
    """On a line of its own, as numpy's do, or between backticks in a sentence."""
    text = inspect.getdoc(FUNCTIONS[name]) or ""
    plain = [p.name for p in inspect.signature(FUNCTIONS[name]).parameters.values() if p.kind is not p.VAR_KEYWORD]
    missing = [
        one for one in plain if not re.search(rf"`{one}[`=]|^(?:\w+, )*{one}(?:, \w+)*(?: : .*)?$", text, re.MULTILINE)
    ]
    assert missing == [], f"{name}: nothing is said of {', '.join(missing)}"
