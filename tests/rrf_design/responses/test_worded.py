from __future__ import annotations

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


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"name": "yes-no", "count": 0}, "count is 0"),
        ({"name": "choice", "options": ["a"]}, "two or more"),
        ({"name": "choice", "options": "ab"}, "two or more"),
        ({"name": "choice", "options": ["a", "A."]}, "are the same"),
    ],
)
def test_bad_options(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        parsers.get(spec)


@settings(deadline=None)
@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    for spec in ("yes-no", {"name": "yes-no", "count": 2}, CITIES, PAIR):
        parsed = parsers.get(spec).parse(text)
        assert parsed.ok == (parsed.status is ParseStatus.PARSED)
