from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rrf_design.errors import InputError
from rrf_design.responses import ParseStatus, parsers

NESTED = {"name": "json", "field": "a.b"}
ANSWER = {"name": "json", "field": "answer"}


@pytest.mark.parametrize(
    ("text", "value", "strict"),
    [
        ('{"a": {"b": 7}}', 7.0, True),
        ('Sure: ```json\n{"a": {"b": -2.5}}\n```', -2.5, False),
        ('{"c": 1} {"a": {"b": "1,234.0"}}', 1234.0, False),
        ('{"a": {"b": 3.142}}', 3.142, True),
    ],
)
def test_a_field(text: str, value: float, strict: bool) -> None:
    parsed = parsers.get(NESTED).parse(text)
    assert (parsed.value, parsed.strict_ok) == ((value,), strict)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"reasoning": "first\nthen", "answer": "18"}', 18.0),
        ('{"answer": "$90"}', 90.0),
        ('{"answer": $90}\n', 90.0),
        ('{"answer": "12,34"}', 12.34),
        ('{"answer": "1.234,50"}', 1234.5),
        ('{"answer": "12 + 7 = 19"}', 19.0),
        ('{"answer": 7,}', 7.0),
        ('{"reasoning": "\\(x\\)", "answer": "5"}', 5.0),
        ('{"reasoning": "he said "no" again", "answer": "5"\n}', 5.0),
        ('{"answer": 5} or again {"answer": "5"}', 5.0),
        ('{"reasoning": "12.50 each", "answer": "1,250"}', 1250.0),
        ('So it is. \nAnswer: "83"\n', 83.0),
    ],
)
def test_json_as_models_write_it(text: str, value: float) -> None:
    assert parsers.get(ANSWER).parse(text).value == (value,)


@pytest.mark.parametrize(
    "text",
    [
        '{"answer": "1,234"}',
        '{"answer": 5, "answer": 6}',
        '{"answer": 5} no: {"answer": 6}',
        '{"answer": "3 apples and 4 pears"}',
        '{"answer": "x + 3"}',
        '{"answer": (50000 * 5) / 100\n}',
    ],
)
def test_json_that_must_not_be_guessed_at(text: str) -> None:
    assert parsers.get(ANSWER).parse(text).status is ParseStatus.AMBIGUOUS


@pytest.mark.parametrize(
    "text",
    ["", "{", '{"a": 3}', '{"a": {"b": true}}', '{"a": {"b": null}}', '{"a": {"b": NaN}}', '{"a":' * 3000, "{" * 9000,
     '{"a": {"b": ' + "9" * 5000 + "}}", '{"a": {"b": [1, 2]}}', '{"a": {"b": -Infinity}}', '{"a": {"b": "12', '{"a": {"b": 12'],
)  # fmt: skip
def test_failures(text: str) -> None:
    assert parsers.get(NESTED).parse(text).status is ParseStatus.PARSE_FAILURE


def test_vectors() -> None:
    listed = parsers.get({"name": "json", "field": "v", "dim": 2})
    assert listed.parse('{"v": [1, 2.5]}').value == (1.0, 2.5)
    assert listed.parse('{"v": [1]}').status is ParseStatus.PARSE_FAILURE
    named = parsers.get({"name": "json", "field": ["net", "tax"]})
    assert named.dim == 2
    assert named.parse('{"tax": "19,00", "net": 100}').value == (100.0, 19.0)
    assert named.parse('{"net": 100}').status is ParseStatus.PARSE_FAILURE
    assert parsers.get(named.spec).parse('{"net": 1, "tax": 2}').value == (1.0, 2.0)


def test_exact_digits_are_kept() -> None:
    assert parsers.get(ANSWER).parse('{"answer": 0.1}').canonical == "1/10"


def test_other_parsers_read_a_field() -> None:
    choice = parsers.get({**ANSWER, "of": {"name": "choice", "options": ["yes", "no"]}})
    assert choice.parse('{"answer": "No"}').value == (0.0, 1.0)
    literal = parsers.get({**ANSWER, "of": "literal"})
    assert literal.parse('{"answer": [1, "a", null]}').label == parsers.get("literal").parse("[1, 'a', None]").label
    assert literal.parse('{"answer": "[1, 2]"}').label == "[1, 2]"
    assert literal.parse('{"answer": [1]} {"answer": [2]}').status is ParseStatus.AMBIGUOUS
    assert dict(parsers.get(literal.spec).spec) == dict(literal.spec)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"name": "json", "field": ""}, "field must name"),
        ({"name": "json", "field": "a", "dim": True}, "dim is True"),
        ({"name": "json", "field": ["a", "b"], "dim": 3}, "dim is 3"),
        ({"name": "json", "field": "a", "decimal": "x"}, "decimal is 'x'"),
        ({"name": "json", "field": ["a"], "of": "literal"}, "one `field`"),
    ],
)
def test_bad_options(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        parsers.get(spec)


@settings(deadline=None)
@given(
    st.text()
    | st.text(alphabet='{}[]":,\\ab1.-\n', max_size=40)
    | st.dictionaries(st.just("a"), st.floats()).map(json.dumps)
)
def test_any_text_is_read_or_refused(text: str) -> None:
    for spec in (NESTED, {"name": "json", "field": "a"}, {"name": "json", "field": "a", "of": "literal"}):
        parsed = parsers.get(spec).parse(text)
        assert parsed.ok == (parsed.status is ParseStatus.PARSED)


@pytest.mark.parametrize(
    ("spec", "answer"),
    [
        ({"field": "total"}, {"total": 7.5}),
        ({"field": "a.b"}, {"a": {"b": 7.5}}),
        ({"field": ["net", "sum.tax"]}, {"net": 1, "sum": {"tax": 2}}),
        ({"field": "list", "dim": 2}, {"list": [1, 2]}),
    ],
)
def test_the_schema_is_that_of_an_answer_it_reads(spec: dict[str, Any], answer: Any) -> None:
    parser = parsers.get({"name": "json", **spec})
    assert parser.schema is not None
    assert _fits(answer, parser.schema)
    assert not _fits({}, parser.schema)
    assert parser.parse(json.dumps(answer)).strict_ok


def test_no_schema_where_an_amount_is_wanted_as_it_is_written() -> None:
    assert parsers.get({"name": "json", "field": "total", "decimal": ","}).schema is None
    assert parsers.get({"name": "json", "field": ["a", "a.b"]}).schema is None
    assert parsers.get("decimal").schema is None


def _fits(value: Any, schema: Any) -> bool:
    """As much of JSON Schema as is used here."""
    if schema["type"] == "number":
        return isinstance(value, int | float)
    if schema["type"] == "array":
        sized = schema["minItems"] <= len(value) <= schema["maxItems"]
        return sized and all(_fits(entry, schema["items"]) for entry in value)
    return all(name in value and _fits(value[name], schema["properties"][name]) for name in schema["required"])
