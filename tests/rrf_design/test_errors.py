"""One root, and an exit code for all of it."""

from __future__ import annotations

import inspect

import pytest

from rrf_design import errors


@pytest.mark.parametrize(
    "error", [e for _, e in inspect.getmembers(errors, inspect.isclass) if e.__module__ == errors.__name__]
)
def test_every_error_has_the_one_root_and_exit_code_2(error: type[errors.RRFError]) -> None:
    assert issubclass(error, errors.RRFError)
    assert error.exit_code == 2
    assert error.__doc__


def test_a_wrong_input_is_a_value_error_too() -> None:
    assert issubclass(errors.InputError, ValueError)


def test_a_budget_error_carries_its_numbers() -> None:
    error = errors.BudgetError("too dear", needed=3.0, available=2.0)
    assert (str(error), error.needed, error.available) == ("too dear", 3.0, 2.0)
