"""Parsers by name, with their grammar; what a person said; programs in answers."""

from __future__ import annotations

import json
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from rrf_design.errors import InputError
from rrf_design.responses import ParseStatus, parsers, sensitivity, separating_inputs
from rrf_design.responses.parsers import AMBIGUOUS, NO_NUMBER, _Form, reviewed_value, written_forms
from rrf_design.responses.programs import extract

SPECS: list[dict[str, Any]] = [
    {"name": "integer", "decimal": "."},
    {"name": "integer-strict"},
    {"name": "integer-last"},
    {"name": "integer-first"},
    {"name": "rational"},
    {"name": "decimal"},
    {"name": "yes-no", "count": 2},
    {"name": "json", "field": "a.b", "dim": 2},
    {"name": "choice", "options": ["left", "right"], "letters": False},
    {"name": "literal", "bare": "string"},
    {"name": "label", "normalise": ["casefold", "space"], "words": 5},
    {"name": "call"},
    {"name": "mathematics", "seconds": 2.0},
    {"name": "date", "formats": ["%d.%m.%Y"]},
    {"name": "code", "tests": [[1, 2], [3, 4]], "entry": "f", "seconds": 0.5, "require": "seccomp"},
]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("integer-lst", "did you mean 'integer-last'"),
        ("qqq", "known: integer, integer-strict"),
        ({"options": []}, "unknown parser None"),
        ({"name": "choice"}, "parser 'choice': it needs 'options'"),
        ({"name": "choice", "option": ["a", "b"]}, "unknown option 'option'; did you mean 'options'"),
        ({"name": "call", "x": 1}, "unknown option 'x'; it takes none"),
    ],
)
def test_bad_specs(spec: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parsers.get(spec)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: str(spec["name"]))
def test_a_parser_rebuilds_itself(spec: dict[str, Any]) -> None:
    if spec["name"] == "mathematics":
        pytest.importorskip("math_verify")
    parser = parsers.get(spec)
    assert dict(parser.spec) == spec
    assert parsers.get(parser) is parser
    assert parsers.get(parser.spec).dim == parser.dim


def test_all_names_are_covered() -> None:
    assert set(parsers.names()) == {spec["name"] for spec in SPECS}


# What the model may say under a parser's grammar: the parser must read it, and as strict.
SAID = {
    "integer-strict": "-12",
    "integer-last": "-12",
    "rational": "-3/4",
    "decimal": "-1.25",
    "yes-no": "yes no",
    "json": '{"a": {"b": [1, -2.5]}}',
    "choice": "right",
}


@pytest.mark.parametrize("spec", [spec for spec in SPECS if spec["name"] in SAID], ids=lambda spec: str(spec["name"]))
def test_grammar_and_parser_agree(spec: dict[str, Any]) -> None:
    parser = parsers.get(spec)
    assert parser.grammar is not None
    assert parser.grammar.startswith("root ::= ")
    parsed = parser.parse(SAID[parser.name])
    assert parsed.ok
    assert parsed.strict_ok
    assert parsed.value is not None
    assert len(parsed.value) == parser.dim


def test_parsers_of_other_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    offered = {"theirs": EntryPoint("theirs", "rrf_design.responses._numeric:DecimalParser", "rrf_design.parsers"),
               "broken": EntryPoint("broken", "no_such_module:x", "rrf_design.parsers")}  # fmt: skip
    monkeypatch.setattr(parsers, "_offered", lambda: offered)
    assert parsers.names()[-2:] == ("theirs", "broken")
    assert parsers.get({"name": "theirs", "decimal": ","}).parse("1.234").value == (1234.0,)
    with pytest.raises(InputError, match="can't be loaded"):
        parsers.get("broken")


@pytest.mark.parametrize("form", written_forms(), ids=lambda form: f"{form.kind}-{form.text!a}-{form.decimal}")
def test_every_form_is_read_as_the_table_says(form: _Form) -> None:
    assert form.reading() == form.reads
    # The same rule in a field of JSON, and never another number for integers.
    whole = parsers.get("integer" if form.decimal is None else {"name": "integer", "decimal": form.decimal}).parse(
        form.text
    )
    if whole.ok and form.reads not in (AMBIGUOUS, NO_NUMBER):
        assert whole.canonical == form.reads


def test_the_table_is_large_and_says_each_thing_once() -> None:
    table = written_forms()
    assert len(table) >= 200
    assert len({(form.text, form.decimal) for form in table}) == len(table)
    assert {AMBIGUOUS, NO_NUMBER} < {form.reads for form in table}


def test_where_parsers_part() -> None:
    texts = ["19", "12 + 7 = 19", "none"]
    result = sensitivity(texts, ["integer-strict", "integer-last", "integer-first"])
    assert result.disagreements == (1,)
    assert result.validity == {"integer-strict": 1 / 3, "integer-last": 2 / 3, "integer-first": 2 / 3}
    assert result.violations == {"integer-strict": 0, "integer-last": 1, "integer-first": 1}
    assert result.pairs[("integer-last", "integer-first")] == 1
    document = json.loads(json.dumps(result.document()))
    assert document["disagreements"][0]["text"] == "12 + 7 = 19"
    assert document["disagreements"][0]["readings"]["integer-last"]["value"] == [19.0]
    assert document["disagreements"][0]["readings"]["integer-strict"]["value"] is None


def test_two_parsers_are_compared_or_it_is_refused() -> None:
    one, two = {"name": "json", "field": "a"}, {"name": "json", "field": "b"}
    result = sensitivity(['{"a": 1, "b": 2}'], [one, two])
    assert result.parsers == ("json#1", "json#2")
    assert result.disagreements == (0,)
    with pytest.raises(InputError, match="at least two parsers"):
        sensitivity(["1"], ["decimal"])
    assert sensitivity([], ["decimal", "rational"]).validity == {"decimal": 0.0, "rational": 0.0}


JSON = parsers.get({"name": "json", "field": "total"})
PAIR = parsers.get({"name": "json", "field": ["net", "tax"]})
LABEL = parsers.get("label")
YES_NO = parsers.get("yes-no")


@pytest.mark.parametrize(
    ("said", "parser", "rows", "value"),
    [
        ("7", None, None, (7.0,)),
        (" 7.50 ", JSON, None, (7.5,)),
        ("67,41 EUR", JSON, None, (67.41,)),
        ('{"total": 8}', JSON, None, (8.0,)),
        ("1 2", PAIR, None, (1.0, 2.0)),
        ("1; 2", PAIR, None, (1.0, 2.0)),
        ("1, 2", PAIR, None, (1.0, 2.0)),
        ("1,2", PAIR, None, (1.0, 2.0)),
        ('{"net": 3, "tax": 4}', PAIR, None, (3.0, 4.0)),
        ("1 2 3", None, 3, (1.0, 2.0, 3.0)),
        ("yes", YES_NO, None, (1.0,)),
        ("0", YES_NO, None, (0.0,)),
        ("sport", LABEL, None, "sport"),
        ("Sport.", LABEL, 5, "sport"),
    ],
)
def test_what_people_write(said: str, parser: Any, rows: int | None, value: Any) -> None:
    found = reviewed_value("clerk", said, parser, rows=rows)
    assert found == value or (isinstance(value, str) and isinstance(found, str) and found.casefold() == value)


@pytest.mark.parametrize(
    ("said", "parser", "rows", "message"),
    [
        ("", None, None, "review 'clerk': '' is neither a number nor an answer"),
        ("about seven or eight", None, None, "neither a number"),
        ("nan", None, None, "neither a number"),
        ("inf", None, None, "neither a number"),
        ("1 2", None, None, "neither a number"),
        ("1", PAIR, None, "neither 2 numbers"),
        ("1 2 3", PAIR, None, "neither 2 numbers"),
        ("7", JSON, 2, "neither 2 numbers"),
        ("", LABEL, None, "is no answer to the parser 'label'"),
    ],
)
def test_what_is_no_value(said: str, parser: Any, rows: int | None, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        reviewed_value("clerk", said, parser, rows=rows)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


BODY = "def solve(a, b):\n    return a + b\n"
CODE = {"name": "code", "tests": [[1, 2], [30, 4]]}


@pytest.mark.parametrize(
    "text",
    [
        BODY,
        f"```python\n{BODY}```",
        f"```\n{BODY}```\nThat is all.",
        f"Sure!\n\n```python\n{BODY}```\n\n```python\nprint(solve(1, 2))\n```",
        f"```python\n{BODY}",
        f"{BODY}```\nIt adds.",
        f"Here it is:\n\n{BODY}\nThis function adds a and b.",
        "1. Write:\n   ```py\n   def solve(a, b):\n       return a + b\n   ```",
        f"```text\nno code\n```\n```Python\n{BODY}```",
        BODY.replace("\n", "\r\n"),
    ],
)
def test_extraction(text: str) -> None:
    source = extract(text)
    assert source is not None
    assert source.strip() == BODY.strip()


def test_helpers_come_along() -> None:
    text = "Use a helper.\n\ndef one():\n    return 1\n\n\ndef solve(a, b):\n    return a + one()\nDone."
    source = extract(text)
    assert source is not None
    assert "def one" in source
    assert "Done" not in source


@pytest.mark.parametrize("text", ["", "def other(): pass", "```python\nx = 1\n```", "solve(a, b) adds", "```\n" * 50])
def test_nothing_to_extract(text: str) -> None:
    assert extract(text) is None
    assert parsers.get(CODE).parse(text).status is ParseStatus.PARSE_FAILURE


def test_signature() -> None:
    parsed = parsers.get(CODE).parse(f"```python\n{BODY}```")
    assert parsed.value == (3.0, 34.0)
    assert parsed.canonical == "3 34"
    assert parsed.strict_ok
    assert "isolation seccomp" in parsed.detail
    assert not parsers.get(CODE).parse(f"Sure:\n```python\n{BODY}```").strict_ok


@pytest.mark.parametrize(
    ("source", "status"),
    [
        ("def solve(a, b):\n    return a +\n", ParseStatus.COMPILE_FAILURE),
        ("import os\ndef solve(a, b):\n    return 1\n", ParseStatus.REJECTED),
        ("def solve(a, b):\n    return a / b\n", ParseStatus.NON_INTEGER),
        ("def solve(a, b):\n    return 1 // 0\n", ParseStatus.CRASH),
        ("def solve(a, b):\n    return len([0] * 10**10)\n", ParseStatus.MEMORY),
        ("def solve(a, b):\n    return 2**60\n", ParseStatus.OUT_OF_RANGE),
        ("def solve(a, b):\n    while True: pass\n", ParseStatus.TIMEOUT),
    ],
)
def test_failures_keep_their_names(source: str, status: ParseStatus) -> None:
    parsed = parsers.get({**CODE, "seconds": 0.1}).parse(source)
    assert parsed.status is status
    assert parsed.value is None


def test_many_texts_in_order() -> None:
    texts = [f"def solve(a, b):\n    return {i}\n" if i % 3 else "no program" for i in range(12)]
    values = [parsed.value for parsed in parsers.get(CODE).parse_many(texts)]
    assert values == [(float(i), float(i)) if i % 3 else None for i in range(12)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tests": []}, "there are none"),
        ({"tests": [1]}, "each test is a list of arguments"),
        ({"tests": "ab"}, "one list of arguments per call"),
        ({"tests": [[float("nan")]]}, "JSON values"),
        ({"entry": "a b"}, "can't be the name"),
    ],
)
def test_bad_options(change: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        parsers.get({**CODE, **change})


def test_bad_settings_are_found_when_it_runs() -> None:
    with pytest.raises(InputError, match="isolation 'armoured' is unknown"):
        parsers.get({**CODE, "require": "armoured"}).parse(BODY)
    with pytest.raises(InputError, match="must be a positive number"):
        parsers.get({**CODE, "seconds": -1.0}).parse(BODY)


TESTS = [[1], [2], [5]]
ABSOLUTE = "def solve(n):\n    return n if n > 0 else -n\n"
IDENTITY = "def solve(n):\n    return n\n"


def test_programs_that_all_tests_call_alike_are_told_apart_by_another() -> None:
    """Both are the same response on the public tests; an input below zero separates them."""
    found = separating_inputs({"a": ABSOLUTE, "b": f"```python\n{IDENTITY}```"}, TESTS)
    assert found
    for one in found:
        (n,) = one.arguments
        assert n < 0
        assert one.outputs == {"a": -n, "b": n}
    assert separating_inputs({"a": ABSOLUTE, "b": IDENTITY}, TESTS) == found  # from a seed, like every draw
    check = found[0].check("total", cost=2.0)
    assert check["of"] == "total"
    assert check["by"]["person"].startswith(f"What should solve({found[0].arguments[0]}) return? (a says ")


def test_nothing_is_found_between_programs_that_are_alike_or_fail() -> None:
    broken = "def solve(n):\n    return n if n > 0 else [][0]\n"
    assert separating_inputs({"a": IDENTITY, "b": "def solve(n):\n    return n + 0\n"}, TESTS, tries=60) == ()
    assert separating_inputs({"a": IDENTITY, "b": broken}, TESTS, tries=60) == ()  # no other integer, only failures
    assert separating_inputs({"a": IDENTITY, "b": "not a program"}, TESTS, tries=60) == ()
    with pytest.raises(InputError, match="two programs or more"):
        separating_inputs({"a": IDENTITY}, TESTS)
    with pytest.raises(InputError, match="each test is a list of arguments"):
        separating_inputs({"a": IDENTITY, "b": ABSOLUTE}, [3])


def test_inputs_of_lists_and_texts_are_tried_too() -> None:
    first = "def solve(items):\n    return sum(items)\n"
    second = "def solve(items):\n    return sum(set(items))\n"
    found = separating_inputs({"a": first, "b": second}, [[[1, 2]], [[3, 5, 8]]])
    assert found[0].outputs["a"] != found[0].outputs["b"]
    longest = "def solve(text):\n    return len(text)\n"
    stripped = "def solve(text):\n    return len(text.strip())\n"
    assert separating_inputs({"a": longest, "b": stripped}, [["ab"], ["xyz"]])
