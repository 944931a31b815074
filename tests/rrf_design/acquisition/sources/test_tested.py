"""Expected outputs of public tests: the value is theirs, the program's own run is evidence only."""

from __future__ import annotations

from typing import Any

import pytest
from fields import source_of

from rrf_design.acquisition.sources import Asked
from rrf_design.errors import InputError

NOTHING = Asked({}, {})


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"tests": [[1]]}, "either expected values or a reference"),
        ({"tests": [[1]], "expected": [1], "reference": ""}, "either expected values or a reference"),
        ({"tests": [[1], [2]], "expected": [1, 2]}, "2 tests for 1 rows"),
        ({"tests": [1], "expected": [1]}, "each test is a list of arguments"),
        ({"tests": [[1]], "expected": [1.5]}, "expected values are integers"),
        ({"tests": 5, "expected": [1]}, "tests is 5; give a list"),
        ({"tests": [[1]], "expected": 5}, "expected is 5; give a list"),
        ({"tests": [[1]], "reference": 5}, "reference is 5; give the program as text"),
    ],
)
def test_refusals_before_anything_is_bought(source: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        source_of(source)


def test_public_tests_give_the_expected_outputs_and_run_the_program_as_evidence() -> None:
    source = source_of({"tests": [[1], [3]], "expected": [1, 9]}, dim=2)
    wrong = "```python\ndef solve(n):\n    return 3 * n - 2\n```"
    found = source.fetch(Asked({"n": wrong}, {}))
    assert found.value == (1.0, 9.0)
    assert found.evidence["execution"]["tests"] == ["right", "wrong"]
    assert source.fetch(NOTHING).value == (1.0, 9.0)


@pytest.mark.parametrize(
    ("body", "value", "outcome"),
    [
        ("n * n", (16.0,), "tested"),
        ("n / 0", None, "the reference program ended with: "),
        ("3 ** 2000", None, "a number that no double can hold"),
    ],
)
def test_a_reference_program_is_run_in_the_sandbox(body: str, value: Any, outcome: str) -> None:
    found = source_of({"tests": [[4]], "reference": f"def solve(n):\n    return {body}"}).fetch(NOTHING)
    assert found.value == value
    assert found.outcome.startswith(outcome)
