"""What callers give: taken as written, or refused in one line."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from rrf_design.errors import InputError
from rrf_design.risk import Among, Gate
from rrf_design.risk.arguments import choice, share, whole


@pytest.mark.parametrize("value", [0.95, np.float64(0.95), Decimal("0.95"), Fraction(19, 20)])
def test_a_share_is_the_decimal_that_was_written(value: float) -> None:
    assert share(value, "confidence") == Fraction(19, 20)


def test_zero_is_a_share_where_it_may_be() -> None:
    assert share(0, "risk", zero=True) == 0


def test_a_whole_number_may_be_of_any_kind_that_equals_one() -> None:
    assert whole(3.0, "labels") == 3
    assert whole(Fraction(6, 2), "labels", least=3, most=3) == 3


def test_a_name_chooses_a_member_and_a_member_itself() -> None:
    assert choice(Among, "all", "among") is Among.ALL
    assert choice(Gate, Gate.LEAD, "gate") is Gate.LEAD


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: share(0, "risk"), "risk is 0, and should lie strictly between 0 and 1"),
        (lambda: share(True, "risk"), "risk should be a number between 0 and 1, not True"),
        (lambda: share("much", "risk"), "risk should be a number between 0 and 1, not 'much'"),  # type: ignore[arg-type]
        (lambda: whole(2.5, "labels"), "labels should be a whole number, not 2.5"),
        (lambda: whole(True, "labels"), "labels should be a whole number, not True"),
        (lambda: whole(float("inf"), "labels"), "labels should be a whole number, not inf"),
        (lambda: whole(5, "labels", most=4), "labels is 5, and should be between 0 and 4"),
        (lambda: choice(Among, "some", "among"), "among should be one of 'delivered', 'all', not 'some'"),
    ],
)
def test_bad_input_is_one_line(call: object, words: str) -> None:
    with pytest.raises(InputError) as caught:
        call()  # type: ignore[operator]
    assert str(caught.value) == words
