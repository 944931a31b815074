"""Values that nobody has to be asked for."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.errors import InputError
from rrf_design.known import known_value


def value(dim: int = 1, **anchor: Any) -> Any:
    node = {"id": "n", "dim": dim, "variables": {"a": 1, "b": 3}}
    problem = rrf.Problem(k=1, nodes=[node], anchors=[{"id": "A", "node": "n", "cost": 1.0, **anchor}])
    return known_value(problem, problem.anchors[0])


def test_what_is_computed_is_exact() -> None:
    assert value(source="expression: a / b") == (Fraction(1, 3),)
    assert value(source={"expression": "a + c", "variables": {"c": 5}}) == (6,)
    assert value(dim=2, source="expression: [a, b]") == (1, 3)


def test_values_in_the_file_are_the_decimals_that_were_written() -> None:
    assert value(value=0.1) == (Fraction(1, 10),)
    assert value(dim=2, value=[1.0, 2.5], source="value") == (1, Fraction(5, 2))


@pytest.mark.parametrize("source", ["person", {"command": ["true"]}, {"verifier": "embedded", "prompt": "?"}])
def test_what_has_to_be_fetched_is_not_known(source: Any) -> None:
    assert value(source=source) is None
    assert value(source=source, value=3.0) is None


def test_an_expression_must_fit_its_anchor() -> None:
    with pytest.raises(InputError, match="anchor 'A': the expression gives 2 numbers, but the anchor has 1 rows"):
        value(source="expression: [a, b]")


@pytest.mark.parametrize(("text", "fits"), [("10 ** 308", True), ("10 ** 309", False), ("-(10 ** 309)", False), ("10 ** 400 / 10 ** 399", True)])  # fmt: skip
def test_a_number_beyond_the_doubles_is_refused_where_it_is_made(text: str, fits: bool) -> None:
    anchor = {"id": "x", "node": "n", "source": f"expression: {text}"}
    problem = rrf.Problem(nodes=[{"id": "n"}], anchors=[anchor])
    if fits:
        assert known_value(problem, problem.anchors[0]) is not None
        return
    with pytest.raises(InputError, match="anchor 'x': the expression gives a number that no double can hold"):
        known_value(problem, problem.anchors[0])
