"""Recorded answers as values, classes or the reason why there is none."""

from __future__ import annotations

from typing import Any

import pytest

from rrf_design.errors import InputError
from rrf_design.questions.answers import RecordedAnswer
from rrf_design.responses import parsers
from rrf_design.responses.open_text import Classes
from rrf_design.tables.items import Reading, classes_of, field_of, plain, read_answer

DECIMAL, LABEL = parsers.get("decimal"), parsers.get("label")


def read(parser: Any = DECIMAL, *, dim: int = 1, **answer: Any) -> Reading:
    return read_answer(RecordedAnswer(**answer), parser, dim)


def test_numbers_and_texts_and_failures() -> None:
    number = read(value=(3.0,), cost=0.5)
    assert number.parsed is not None
    assert (number.parsed.value, number.raw, number.cost) == ((3.0,), 3, 0.5)
    text = read(text="It is 4.50.")
    assert text.parsed is not None
    assert (text.parsed.value, text.raw, text.status) == ((4.5,), "It is 4.50.", None)
    failed = read(status="timeout", text="cut o")
    assert (failed.parsed, failed.status, failed.raw) == (None, "timeout", "cut o")
    assert read(text="no idea").status == "parse failure"
    assert read(text="I'm sorry, but I can't help with that.").status == "refusal"


def test_a_refusal_is_no_class_though_any_words_may_be_one() -> None:
    assert read(LABEL, text="sport").parsed is not None
    refused = read(LABEL, text="I'm sorry, but I can't help with that.")
    assert (refused.parsed, refused.status) == (None, "refusal")


@pytest.mark.parametrize(
    ("parser", "answer", "dim", "message"),
    [
        (None, {"text": "4"}, 1, "names no parser; give numbers, or a parser"),
        (LABEL, {"value": (1.0,)}, 1, "its node reads classes; give its text"),
        (DECIMAL, {"value": (1.0, 2.0)}, 1, "has 2 numbers, but its node has dimension 1"),
        (DECIMAL, {"value": (float("nan"),)}, 1, "not finite; where there is none, give a status"),
        (None, {"value": (float("inf"), 1.0)}, 2, "not finite"),
    ],
)
def test_what_can_not_belong_to_its_node(parser: Any, answer: dict[str, Any], dim: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(parser, dim=dim, **answer)


def test_classes_are_those_of_the_answers_then_those_of_the_checks() -> None:
    readings = [read(LABEL, text=word) for word in ("b", "a", "b")] + [read(LABEL, status="missing")]
    classes = classes_of(readings, ["c", "a"])
    assert classes.labels == ("b", "a", "c")
    field = field_of({"x": readings[0], "y": readings[1], "z": readings[3]}, ["x", "y", "z", "gone"], classes)
    assert field.values == {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0)}
    assert field.invalid == {"z": "missing", "gone": "missing"}


def test_only_the_nodes_of_the_design_are_there() -> None:
    readings = {"x": read(value=(1.0,)), "y": read(value=(2.0,)), "z": read(text="no idea")}
    field = field_of(readings, ["y", "z"], Classes(()))
    assert (field.values, field.invalid) == ({"y": (2.0,)}, {"z": "parse failure"})


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ((2.0,), 2),
        ((0.1 + 0.2,), 0.3),
        ((1.0, 2.5), [1, 2.5]),
        ((1e16,), 1e16),
        ((-0.0,), 0),
        ((123456789.123456789,), 123456789.123),
        ((4006381333931.0,), 4006381333931),  # no digit of a code is lost
        ((4006381333931.0 + 2**-10,), 4006381333931),
        ((1234567890123.45,), 1234567890123.45),
        ((2.9999999999999996,), 3),
        ((1000.0000005,), 1000.0000005),
    ],
)
def test_numbers_as_people_write_them(value: tuple[float, ...], shown: Any) -> None:
    assert plain(value) == shown
    assert type(plain(value)) is type(shown)
