from __future__ import annotations

import math
from typing import Any

import pytest

from rrf_design.errors import InputError
from rrf_design.promises._truths import GoldRule, answer_is_right, cell_is_right, read_truth, same, shown
from rrf_design.questions.recipe import DataSection
from rrf_design.responses import parsers


def truth(cell: Any, parser: Any = "decimal", **rule: Any) -> Any:
    return read_truth(cell, None if parser is None else parsers.get(parser), GoldRule("gold", **rule))


def test_a_number_is_right_up_to_rounding_or_within_the_tolerance() -> None:
    assert truth("119.00").right((119.0,))
    assert not truth("119.00").right((119.004,))
    assert truth(119, tolerance=0.005).right((119.005,))
    assert not truth(119, tolerance=0.005).right((119.0051,))
    assert not truth(119).right(None)


@pytest.mark.parametrize(
    ("said", "value", "right"),
    [
        (4006381333931.0, 4006381333931.0, True),
        (4006381333931.0, 4006381333930.0, False),
        (4111111111111111.0, 4111111111111112.0, False),
        (1234567890.12, 1234567890.13, False),
        (1234567890.12, 1234567890.12 * 3 / 3, True),
        (4006381333931.0, 4006381333931.0 + 2**-10, True),
        (0.1 + 0.2, 0.3, True),
        (1e-7, 1.00000001e-7, False),
        (math.inf, 1.0, False),
    ],
)
def test_long_numbers_differ_in_their_last_digit(said: float, value: float, right: bool) -> None:
    """A code of 13 digits with four wrong ones is wrong, though it is a billionth away."""
    assert same((said,), (value,)) is right


def test_several_values_can_be_right() -> None:
    assert truth([3, 4]).right((4.0,))
    assert truth("3 | 4", separator="|").right((4.0,))
    assert not truth("3 | 4", separator="|").right((5.0,))


def test_words_are_read_by_the_parser_of_the_answers() -> None:
    letters = {"name": "choice", "options": ["A", "B"]}
    found = truth("B", letters, tolerance=9.0)  # a distance means nothing among choices
    assert found.right((0.0, 1.0))
    assert not found.right((1.0, 0.0))
    assert truth("[1,  2]", "literal").right("[1, 2]")
    assert shown((0.0, 1.0), parsers.get(letters)) == "B"


@pytest.mark.parametrize("cell", [None, "", "  ", []])
def test_an_empty_cell_is_no_truth(cell: Any) -> None:
    assert truth(cell) is None


@pytest.mark.parametrize(
    ("cell", "parser"), [("many", "decimal"), ("C", {"name": "choice", "options": ["A", "B"]}), ("x", None)]
)
def test_what_cannot_be_read_is_named(cell: str, parser: Any) -> None:
    with pytest.raises(InputError, match="the truth"):
        truth(cell, parser)


@pytest.mark.parametrize(
    ("gold", "words"),
    [
        ({"column": "g", "tolerence": 1.0}, "did you mean|unknown key"),
        ({"tolerance": 1.0}, "needs column"),
        ({"column": "g", "tolerance": -1.0}, "tolerance"),
        ({"column": "g", "separator": ""}, "separator"),
    ],
)
def test_a_bad_rule_is_refused(gold: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        GoldRule.of(DataSection(gold=gold))


def test_the_rule_of_the_recipe_goes_before_the_tolerance_of_the_answer() -> None:
    assert GoldRule.of(DataSection(gold="g"), tolerance=0.5) == GoldRule("g", 0.5)
    assert GoldRule.of(DataSection(gold={"column": "g", "tolerance": 0.1}), tolerance=0.5).tolerance == 0.1


def test_delivered_cells_are_compared_as_numbers_where_they_are_numbers() -> None:
    assert cell_is_right("119.00", "119", tolerance=None)
    assert cell_is_right("yes", " yes ", tolerance=None)
    assert cell_is_right("yes", "no", tolerance=None) is False
    assert cell_is_right("5", "", tolerance=None) is None
    assert cell_is_right(5, "4;5", tolerance=None, separator=";")
    assert not same((1.0, 2.0), (1.0,))


@pytest.mark.parametrize(
    ("answer", "gold", "right"),
    [
        (1200, "1,200.00", True),
        ("1200", "1.200,00", True),
        (1200, "1,200.01", False),
        (-1200000, "-1,200,000", True),
        (1234, "1,234", False),  # 1234, or 1.234: what could be two numbers is no proof that the answer is right
        (1.234, "1,234", False),
        (2024, "2024-01-05", False),
        ("2024-01-05", "2024-01-05", True),
        ("1,200 apples", "1,200 apples", True),
        (1200, "1,200 apples", False),
    ],
)
def test_numbers_as_people_write_them_without_a_recipe(answer: Any, gold: Any, right: bool) -> None:
    """A reviewer's 1,200.00 is the 1200 that was delivered; whatever could mean something else
    counts as wrong.
    """
    assert cell_is_right(answer, gold, tolerance=None) is right


@pytest.mark.parametrize("tolerance", [-1.0, float("nan"), float("inf")])
def test_a_tolerance_is_a_distance(tolerance: float) -> None:
    """Infinite, everything would be right."""
    with pytest.raises(InputError, match="a tolerance of"):
        GoldRule("booked", tolerance)


@pytest.mark.parametrize(
    ("answer", "gold", "right"),
    [
        ([2.0, 4.0], [2, 4], True),
        ([2.0, 5.0], [2, 4], False),
        ("[2, 4]", "[2.0,4.0]", True),
        ("[2, 4]", [[9, 9], [2, 4]], True),
        ([2.0, 4.0], [2, 4, 4], False),
        (4.0, [2, 4], True),  # of one number, a list says which are right
        ("[a, b]", "[a, b]", True),
        ([2.0, 4.0], "", None),
        ("[" * 5000, "[1]", False),
    ],
)
def test_an_answer_of_several_numbers_is_right_as_a_whole(answer: Any, gold: Any, right: bool | None) -> None:
    assert cell_is_right(answer, gold, tolerance=0.1) is right


def test_whose_word_it_was_is_told_with_its_tolerance() -> None:
    """A tolerance of a thousand makes everything right, and the certificate has to say so."""
    assert GoldRule("booked").words(0) == "gold column 'booked'"
    assert GoldRule("booked", 0.0).words(1) == "gold column 'booked' and 1 review"
    assert GoldRule("booked", 1000.0).words(6) == "gold column 'booked' and 6 reviews, right within 1000"
    assert GoldRule(None, 1000.0).words(0) == ""


@pytest.mark.parametrize(
    ("answer", "gold", "parser", "right"),
    [
        ("{'a': 1, 'f': 2}", "{'f': 2, 'a': 1}", "literal", True),
        ("{'a': 1, 'f': 2}", "{'f': 2, 'a': 3}", "literal", False),
        ("372359", "'372359'", "literal", False),
        ("[0]", "0", "literal", False),
        ("not a literal", "not a literal", "literal", True),
        ("5", "", "literal", None),
        ("5.00", "5", "decimal", True),
        ("5", "5", None, True),
    ],
)
def test_words_are_read_by_their_parser_on_both_sides(answer: str, gold: str, parser: str | None, right: Any) -> None:
    assert answer_is_right(answer, gold, None if parser is None else parsers.get(parser), GoldRule("g")) is right
