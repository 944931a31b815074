from __future__ import annotations

from typing import Any

import pytest

from rrf_design.responses import ParseStatus, parsers
from rrf_design.responses.finding import LONGEST, MOST_MARKS, marked

DECIMAL = parsers.get("decimal")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("First 3, then 5.\n#### 8", 8.0),
        ("The answer is 5. It has nothing to do with 7.", 5.0),
        ('{"reasoning": "the answer is 5 at first", "answer": "6"}', 6.0),
        ("3 and 4 make\n\n**7**", 7.0),
        ("There are 3 and 4. So, she has 7.", 7.0),
        ("3 * 4 = 12, 12 + 1 = 13 eggs.", 13.0),
        ("Fr. 697.68 + Fr. 139.54 = Fr. 837.22", 837.22),
        ("268,17 \u20ac + 53,63 \u20ac = EUR 321,80", 321.8),
        ("12 (of 20)", 12.0),
        ("twelve, that is 12, yes 12", 12.0),
        ("\\boxed{\\frac{1}{2}} follows from 3", 0.5),
    ],
)
def test_the_marked_number(text: str, value: float) -> None:
    assert DECIMAL.parse(text).value == (value,)


@pytest.mark.parametrize(
    "text",
    [
        "The answer is 5. No, the answer is 6.",
        "\\boxed{5} and \\boxed{6}",
        "Answer: 5 or 6",
        "She has 3 and 4.",
        "x = 3, y = 4",
        "the net amount + USD 3.75",
        "The answer is not 5.",
        "12 (or 13)",
        "Therefore it is between 3 and 5.",
    ],
)
def test_several_numbers(text: str) -> None:
    assert DECIMAL.parse(text).status is ParseStatus.AMBIGUOUS


def test_more_than_anybody_reads() -> None:
    assert not DECIMAL.parse("7" * (LONGEST + 1)).ok
    assert DECIMAL.parse("the answer is 5. " * (MOST_MARKS + 1)).status is ParseStatus.AMBIGUOUS
    assert marked("Answer: 5\n" * (MOST_MARKS + 1)) is None
    assert DECIMAL.parse("x 7 " * 20_000).status is ParseStatus.AMBIGUOUS


SIZE = 100_000
HOSTILE = ["9", "1 ", "1,", "1.1,", "(", "[", "{", '{"a":', '"', "*", "\\boxed{", "#", "answer: ", "answer to ", "<a", "\\text{", "1\u200b",
           "\u0661", "a=1 ", "$", "minus ", "\ud800", "\\", "(or ", "Output (a) ", '"a": "', "1e", "\u202e", "\u00bd", "not ", "A. \n"]  # fmt: skip
SPECS: list[Any] = ["decimal", "integer-last", {"name": "json", "field": "a"}, {"name": "choice", "options": ["Output (a)", "B"]},
         "literal", {"name": "literal", "bare": "string"}, "label", "call", "yes-no"]  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE, ids=ascii)
def test_long_hostile_texts_are_read_or_refused(piece: str) -> None:
    text = (piece * (SIZE // len(piece) + 1))[:SIZE]
    for spec in SPECS:
        parsed = parsers.get(spec).parse(text)
        assert parsed.ok == (parsed.status is ParseStatus.PARSED)
