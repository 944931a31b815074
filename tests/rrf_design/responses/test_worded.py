from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rrf_design.errors import InputError
from rrf_design.responses import ParseStatus, parsers

CITIES = {"name": "choice", "options": ["Paris", "Rome", "Paris, Texas"]}


@pytest.mark.parametrize(
    ("text", "value", "strict"),
    [
        ("Yes", 1.0, True),
        ("no.", 0.0, True),
        ("Yes, because there is no other way.", 1.0, False),
        ("**No**, it is not.", 0.0, False),
        ("I think it is true.", 1.0, False),
        ("The claim is false, clearly false.", 0.0, False),
    ],
)
def test_one_verdict(text: str, value: float, strict: bool) -> None:
    parsed = parsers.get("yes-no").parse(text)
    assert (parsed.value, parsed.strict_ok) == ((value,), strict)


def test_contradiction_and_silence() -> None:
    assert parsers.get("yes-no").parse("It is yes and no.").status is ParseStatus.AMBIGUOUS
    assert parsers.get("yes-no").parse("Nobody knows, yesterday").status is ParseStatus.PARSE_FAILURE


def test_vector_of_verdicts() -> None:
    three = parsers.get({"name": "yes-no", "count": 3})
    assert three.dim == 3
    assert three.parse("yes no, yes").value == (1.0, 0.0, 1.0)
    assert three.parse("yes no yes").strict_ok
    lines = "1. Yes, there is no doubt.\n2. No.\n3. True"
    assert three.parse(lines).value == (1.0, 0.0, 1.0)
    assert three.parse("yes no").status is ParseStatus.PARSE_FAILURE
    assert three.parse("yes no").value is None


@pytest.mark.parametrize(
    ("text", "value", "strict"),
    [
        ('{"a": {"b": 7}}', 7.0, True),
        ('Sure: ```json\n{"a": {"b": -2.5}}\n```', -2.5, False),
        ('{"c": 1} {"a": {"b": "1,234"}}', 1234.0, False),
    ],
)
def test_json_field(text: str, value: float, strict: bool) -> None:
    parsed = parsers.get({"name": "json", "field": "a.b"}).parse(text)
    assert (parsed.value, parsed.strict_ok) == ((value,), strict)


@pytest.mark.parametrize(
    "text",
    ["", "{", '{"a": 3}', '{"a": {"b": true}}', '{"a": {"b": null}}', '{"a": {"b": NaN}}', '{"a":' * 3000, "{" * 9000,
     '{"a": {"b": ' + "9" * 5000 + "}}", '{"a": {"b": [1, 2]}}'],
)  # fmt: skip
def test_json_failures(text: str) -> None:
    parsed = parsers.get({"name": "json", "field": "a.b"}).parse(text)
    assert parsed.status is ParseStatus.PARSE_FAILURE


def test_json_vector() -> None:
    parser = parsers.get({"name": "json", "field": "v", "dim": 2})
    assert parser.parse('{"v": [1, 2.5]}').value == (1.0, 2.5)
    assert parser.parse('{"v": [1]}').status is ParseStatus.PARSE_FAILURE


@pytest.mark.parametrize(
    ("text", "chosen", "strict"),
    [
        ("Paris", 0, True),
        ("rome.", 1, True),
        ("The capital is Rome, of course.", 1, False),
        ("I mean Paris, Texas", 2, False),
    ],
)
def test_choice(text: str, chosen: int, strict: bool) -> None:
    parsed = parsers.get(CITIES).parse(text)
    assert parsed.value == tuple(float(i == chosen) for i in range(3))
    assert parsed.strict_ok is strict


def test_choice_failures() -> None:
    assert parsers.get(CITIES).parse("Rome or Paris").status is ParseStatus.AMBIGUOUS
    assert parsers.get(CITIES).parse("Parisian romance").status is ParseStatus.PARSE_FAILURE


def test_choice_by_letter() -> None:
    parser = parsers.get({**CITIES, "letters": True})
    for text in ("B", "b", "(B)", "B. Rome", "b) because"):
        assert parser.parse(text).value == (0.0, 1.0, 0.0), text
    assert parser.parse("B").strict_ok
    assert parser.parse("A city called Rome").canonical == "Rome"
    assert parser.parse("D").status is ParseStatus.PARSE_FAILURE
    assert parsers.get(CITIES).parse("B").status is ParseStatus.PARSE_FAILURE


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"name": "yes-no", "count": 0}, "count is 0"),
        ({"name": "json", "field": ""}, "field must name"),
        ({"name": "json", "field": "a", "dim": True}, "dim is True"),
        ({"name": "choice", "options": ["a"]}, "two or more"),
        ({"name": "choice", "options": "ab"}, "two or more"),
        ({"name": "choice", "options": ["a", "A."]}, "are the same"),
    ],
)
def test_bad_options(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        parsers.get(spec)


@settings(deadline=None)
@given(st.text() | st.from_type(type(None)).map(lambda _: json.dumps({"a": {"b": 1}})))
def test_any_text_is_read_or_refused(text: str) -> None:
    for spec in ("yes-no", {"name": "yes-no", "count": 2}, {"name": "json", "field": "a.b"}, CITIES):
        parsed = parsers.get(spec).parse(text)
        assert parsed.ok == (parsed.status is ParseStatus.PARSED)
