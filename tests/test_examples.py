"""The examples in the docstrings of the public functions do what they say."""

from __future__ import annotations

import doctest
import inspect

import pytest

import rrf_design
import solvers

FUNCTIONS = {name: value for name in rrf_design.__all__ if inspect.isfunction(value := getattr(rrf_design, name))} | {
    f"solvers.{name}": value for name in solvers.__all__ if inspect.isfunction(value := getattr(solvers, name))
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
