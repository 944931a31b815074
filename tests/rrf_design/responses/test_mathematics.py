from __future__ import annotations

import importlib.util

import pytest

from rrf_design.errors import InputError, MissingDependency
from rrf_design.responses import ParseStatus, parsers
from rrf_design.responses._mathematics import pieces

needs_it = pytest.mark.skipif(
    importlib.util.find_spec("math_verify") is None,
    reason="left out: symbolic answers, because math-verify is not installed",
)


def test_without_the_extra_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingDependency, match=r"rrf-design\[mathematics\]"):
        parsers.get("mathematics")


def test_seconds_are_checked() -> None:
    with pytest.raises(InputError, match="seconds is -1"):
        parsers.get({"name": "mathematics", "seconds": -1})


def test_where_the_answer_stands() -> None:
    assert pieces("We find $x$ and $y$.") == ["x", "y"]
    assert pieces("With $x$, \\boxed{y} it is") == ["y"]
    assert pieces("there are three apples and five pears") == []


@needs_it
def test_equal_expressions_are_one_class() -> None:
    parser = parsers.get("mathematics")
    half = parser.parse("The answer is $\\frac{1}{2}$.")
    assert half.label == parser.parse("0.5").label == parser.parse("\\boxed{\\frac12}").label == "1/2"
    assert parser.parse("$(x+1)^2$").label == parser.parse("$x^2 + 2x + 1$").label is not None
    assert parser.parse("$\\sqrt{8}$").label == parser.parse("$2\\sqrt{2}$").label
    assert parser.parse("1,234").status is ParseStatus.AMBIGUOUS
    assert parser.parse("\\boxed{3} or \\boxed{4}").status is ParseStatus.AMBIGUOUS
    assert parser.parse("no idea at all").status is ParseStatus.PARSE_FAILURE
    assert parser.parse("\ud800 $x$").ok
    assert parser.parse("x" * 30_000).status is ParseStatus.PARSE_FAILURE


@needs_it
def test_a_worker_that_is_busy_for_ever_is_replaced() -> None:
    parser = parsers.get({"name": "mathematics", "seconds": 1})
    assert parser.parse("$10^{10^{10}}$").status is ParseStatus.TIMEOUT
    assert parser.parse("$\\frac{2}{4}$").label == "1/2"
