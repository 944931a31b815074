from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rrf_design.errors import InputError
from rrf_design.responses import ParseStatus, parsers
from rrf_design.responses.open_text import Classes

LITERAL, BARE = parsers.get("literal"), parsers.get({"name": "literal", "bare": "string"})
CALL, LABEL = parsers.get("call"), parsers.get("label")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("[1, 2]", "[1,2]"),
        ("'a'", '"a"'),
        ("{'a': 1, 'b': 2}", "{'b': 2, 'a': 1.0}"),
        ("{3, 1}", "{1, 3}"),
        ("```python\n(1,)\n```", "( 1, )"),
        ("The answer is [1, 2].", "[1, 2]"),
        ('"a\nb"', "'a\\nb'"),
        ('\\"ab\\"', "'ab'"),
    ],
)
def test_equal_literals(one: str, other: str) -> None:
    assert LITERAL.parse(one).label == LITERAL.parse(other).label is not None


@pytest.mark.parametrize(
    ("one", "other"), [("[1, 2]", "(1, 2)"), ("'1'", "1"), ("True", "1"), ("[]", "{}"), ("' a'", "'a'")]
)
def test_different_literals(one: str, other: str) -> None:
    assert LITERAL.parse(one).label != LITERAL.parse(other).label


def test_bare_strings_are_strings_only_if_declared() -> None:
    assert LITERAL.parse("hello there").status is ParseStatus.PARSE_FAILURE
    assert BARE.parse("hello there").label == "'hello there'"
    assert BARE.parse(" x ").label == "' x '"
    assert BARE.parse("'broken''").status is ParseStatus.AMBIGUOUS


@pytest.mark.parametrize(
    "text", ["1e999", "[" * 500 + "]" * 500, "0x" + "f" * 3900, "a" * 5000, "f(x)", "\x00", "\ud800'"]
)
def test_what_is_no_literal(text: str) -> None:
    assert not LITERAL.parse(text).ok


def test_calls() -> None:
    assert (
        CALL.parse('f(1, unit="km", n=2)').label == CALL.parse("f(1, n=2, unit='km')").label == "f(1, n=2, unit='km')"
    )
    assert CALL.parse('{"name": "f", "arguments": {"unit": "km"}}').label == CALL.parse("f(unit='km')").label
    for text in ("f(x)", "f(**{})", "f", "[f(1)]", "{}", '{"name": "f g"}', "(lambda: 1)(2)"):
        assert not CALL.parse(text).ok, text


def test_labels() -> None:
    assert LABEL.parse(" The  answer is: PARIS! ").label == LABEL.parse("paris").label == "paris"
    assert LABEL.parse("one " * 13).status is ParseStatus.PARSE_FAILURE
    assert LABEL.parse("...").status is ParseStatus.PARSE_FAILURE
    assert LABEL.parse("Answer: Paris\nAnswer: Rome").status is ParseStatus.AMBIGUOUS
    exact = parsers.get({"name": "label", "normalise": []})
    assert exact.parse("Paris").label != exact.parse("paris").label
    articles = parsers.get({"name": "label", "normalise": ["articles", "casefold", "space"]})
    assert articles.parse("The Hague").label == "hague"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"name": "label", "normalise": ["upper"]}, "'upper' is none of them"),
        ({"name": "label", "normalise": "space"}, "normalise is a list"),
        ({"name": "label", "words": 0}, "words is 0"),
        ({"name": "literal", "bare": "number"}, "bare is 'number'"),
    ],
)
def test_bad_options(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        parsers.get(spec)


def test_the_classes_of_an_item() -> None:
    readings = [LITERAL.parse(text) for text in ("[1]", "[2]", "[1 ]", "no literal")]
    classes = Classes.of(readings)
    assert classes.labels == ("[1]", "[2]")
    assert [classes.vector(reading) for reading in readings] == [(1.0, 0.0), (0.0, 1.0), (1.0, 0.0), None]


def test_an_open_answer_has_no_vector() -> None:
    parsed = LITERAL.parse("1")
    assert (parsed.ok, parsed.value, parsed.label, LITERAL.dim) == (True, None, "1", 0)
    assert parsed.document()["label"] == "1"


JSON_LIKE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)
@given(JSON_LIKE)
def test_what_is_written_down_reads_back_as_itself(value: Any) -> None:
    label = LITERAL.parse(repr(value)).label
    assert label is not None
    assert LITERAL.parse(label).label == label


@settings(deadline=None)
@given(st.text() | st.text(alphabet="[]{}()'\"\\,:1a. \n", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    for parser in (LITERAL, BARE, CALL, LABEL):
        parsed = parser.parse(text)
        assert parsed.ok == (parsed.label is not None)
