"""Parsers of words, fields and expressions; one vocabulary for all that fails."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rrf_design as rrf
from rrf_design.errors import InputError, MissingDependency
from rrf_design.responses import Parsed, ParseStatus, parsers
from rrf_design.responses._mathematics import pieces
from rrf_design.responses.open_text import Classes
from rrf_design.responses.parsed import INVALID, VALID, numbers
from rrf_design.responses.sandbox import ProgramStatus

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


def test_contradiction_and_silence_are_no_choice() -> None:
    assert parsers.get("yes-no").parse("It is yes and no.").status is ParseStatus.AMBIGUOUS
    assert parsers.get("yes-no").parse("Nobody knows, yesterday").status is ParseStatus.PARSE_FAILURE
    assert parsers.get(CITIES).parse("Rome or Paris").status is ParseStatus.AMBIGUOUS
    assert parsers.get(CITIES).parse("Parisian romance").status is ParseStatus.PARSE_FAILURE


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


PAIR = {"name": "choice", "options": ["Output (a)", "Output (b)"]}


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("Output (b) is better. Output (a) is not helpful.", "Output (b)"),
        ("Output (a) is short, Output (b) is long. Therefore, Output (a) is better.", "Output (a)"),
        ("Output (a) repeats itself.\n\nTherefore, Output (b) is better than Output (a). It is clear.", "Output (b)"),
        ("Output (a)\nSince Output (b) is too long.", "Output (a)"),
        ("Output (a) is long. The answer is Output (b).", "Output (b)"),
    ],
)
def test_the_option_that_is_given_counts(text: str, chosen: str) -> None:
    assert parsers.get(PAIR).parse(text).canonical == chosen


@pytest.mark.parametrize(
    "text",
    [
        "Neither Output (a) nor Output (b) follows the instruction.",
        "Output (a) is better. Therefore, Output (b) is better.",
        "Output (a) is short and Output (b) is long.",
        "It is certainly not Output (a).",
        "Both are bad. Therefore, based on this, Output (a)",
    ],
)
def test_no_verdict_is_no_choice(text: str) -> None:
    assert not parsers.get(PAIR).parse(text + " Output (b)" * text.endswith("Output (a)")).ok


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("so it is so. The answer is (C).", "C"),
        ("Final Answer: The answer is B.", "B"),
        ("That number is $\\boxed{9}$. So, the answer is D.", "D"),
        ("Answer: C. Evaporation cools.", "C"),
        ("The answer is **A**.", "A"),
        ("\\boxed{\\text{B}}", "B"),
    ],
)
def test_letters_as_options(text: str, letter: str) -> None:
    assert parsers.get({"name": "choice", "options": list("ABCD")}).parse(text).canonical == letter


@pytest.mark.parametrize(
    "text",
    [
        "A city in France.",
        "I think a dog.",
        "The answer is (A) and (B).",
        "The answer is (A). The answer is (B).",
        "a: x\nb: y",
        "A. one\nB. two",
    ],
)
def test_a_letter_in_a_sentence_is_no_answer(text: str) -> None:
    assert not parsers.get({"name": "choice", "options": list("ABCDI")}).parse(text).ok


def test_choice_by_letter() -> None:
    parser = parsers.get({**CITIES, "letters": True})
    for text in ("B", "b", "(B)", "B. Rome", "b) because"):
        assert parser.parse(text).value == (0.0, 1.0, 0.0), text
    assert parser.parse("B").strict_ok
    assert parser.parse("A city called Rome").canonical == "Rome"
    assert parser.parse("D").status is ParseStatus.PARSE_FAILURE
    assert parsers.get(CITIES).parse("B").status is ParseStatus.PARSE_FAILURE


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


def test_open_answers_have_classes_and_no_vector() -> None:
    readings = [LITERAL.parse(text) for text in ("[1]", "[2]", "[1 ]", "no literal")]
    classes = Classes.of(readings)
    assert classes.labels == ("[1]", "[2]")
    assert [classes.vector(reading) for reading in readings] == [(1.0, 0.0), (0.0, 1.0), (1.0, 0.0), None]
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


needs_it = pytest.mark.skipif(
    importlib.util.find_spec("math_verify") is None,
    reason="left out: symbolic answers, because math-verify is not installed",
)


def test_without_the_extra_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingDependency, match=r"rrf-design\[mathematics\]"):
        parsers.get("mathematics")


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


def test_a_failure_can_carry_no_value() -> None:
    with pytest.raises(ValueError, match="a value comes with status"):
        Parsed(ParseStatus.PARSE_FAILURE, (0.0,))
    with pytest.raises(ValueError, match="a value comes with status"):
        Parsed(ParseStatus.PARSED)


def test_document_is_json() -> None:
    parsed = numbers([1, 2], strict=True, canonical="1 2")
    assert json.loads(json.dumps(parsed.document())) == {
        "status": "parsed",
        "value": [1.0, 2.0],
        "strict_ok": True,
        "canonical": "1 2",
        "detail": "",
    }


def test_every_failure_has_one_word() -> None:
    assert not set(INVALID) & set(VALID)
    assert len(set(INVALID)) == len(INVALID)
    assert {status.value for status in ParseStatus} <= {*INVALID, *VALID}
    assert ParseStatus.PARSED.value in VALID
    fine = {ProgramStatus.RIGHT, ProgramStatus.WRONG, ProgramStatus.RAN}
    assert {status.value for status in ProgramStatus if status not in fine} <= set(INVALID)


def test_every_word_is_taken_by_repair(tmp_path: Path) -> None:
    """The reader of response files knows exactly these words."""
    problem = rrf.Problem(k=1, nodes=[{"id": n} for n in "abc"], relations=[{"id": r, "tail": r[0], "head": r[1]} for r in ("ab", "bc", "ca")])  # fmt: skip
    for word in INVALID:
        found = rrf.repair(problem, {"a": {"status": word}, "b": 1.0, "c": 1.0})
        assert tuple(found.erased) == ("a",)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"name": "yes-no", "count": 0}, "count is 0"),
        ({"name": "choice", "options": ["a"]}, "two or more"),
        ({"name": "choice", "options": "ab"}, "two or more"),
        ({"name": "choice", "options": ["a", "A."]}, "are the same"),
        ({"name": "json", "field": ""}, "field must name"),
        ({"name": "json", "field": "a", "dim": True}, "dim is True"),
        ({"name": "json", "field": ["a", "b"], "dim": 3}, "dim is 3"),
        ({"name": "json", "field": "a", "decimal": "x"}, "decimal is 'x'"),
        ({"name": "json", "field": ["a"], "of": "literal"}, "one `field`"),
        ({"name": "label", "normalise": ["upper"]}, "'upper' is none of them"),
        ({"name": "label", "normalise": "space"}, "normalise is a list"),
        ({"name": "label", "words": 0}, "words is 0"),
        ({"name": "literal", "bare": "number"}, "bare is 'number'"),
        ({"name": "mathematics", "seconds": -1}, "seconds is -1"),
    ],
)
def test_bad_options(spec: dict[str, Any], message: str) -> None:
    if spec["name"] == "mathematics":
        pytest.importorskip("math_verify")
    with pytest.raises(InputError, match=message):
        parsers.get(spec)


@settings(deadline=None)
@given(
    st.text()
    | st.text(alphabet="{}[]()\":,\\ab1.-' \n", max_size=40)
    | st.dictionaries(st.just("a"), st.floats()).map(json.dumps)
)
def test_any_text_is_read_or_refused(text: str) -> None:
    fields: list[Any] = [NESTED, {"name": "json", "field": "a"}, {"name": "json", "field": "a", "of": "literal"}]
    for spec in (*fields, "yes-no", {"name": "yes-no", "count": 2}, CITIES, PAIR, LITERAL, BARE, CALL, LABEL):
        parser = parsers.get(spec)
        parsed = parser.parse(text)
        assert parsed.ok == (parsed.status is ParseStatus.PARSED)
        assert parser not in (LITERAL, BARE, CALL, LABEL) or parsed.ok == (parsed.label is not None)


@pytest.mark.parametrize("field", [True, 1.5, 7, {}, [], [""], [3]])
def test_a_json_parser_whose_field_is_no_name_is_refused(field: Any) -> None:
    with pytest.raises(InputError, match="field must name where the answer stands"):
        parsers.get({"name": "json", "field": field})
