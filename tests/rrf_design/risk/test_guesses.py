"""Guessed answers are right as often as was guessed, and wrong together more often than chance
would have it.
"""

from __future__ import annotations

import pytest

from rrf_design.errors import InputError
from rrf_design.promises.forecast import guessed_answers


@pytest.mark.parametrize("accuracy", [0.6, 0.9, 0.99])
def test_right_as_often_as_guessed_and_wrong_together(accuracy: float) -> None:
    codes, gold = guessed_answers(accuracy, 6, items=20_000)
    right = codes == gold[:, None]
    assert right.mean() == pytest.approx(accuracy, abs=0.01)
    both = (~right[:, 0] & ~right[:, 1]).mean()
    assert both > 1.3 * (1 - accuracy) ** 2
    assert (codes[~right] == 1).any()  # two wrong answers may be the same


def test_the_same_each_time_and_bad_guesses_are_one_line() -> None:
    assert (guessed_answers(0.8, 3)[0] == guessed_answers(0.8, 3)[0]).all()
    with pytest.raises(InputError, match=r"accuracy is 1\.5"):
        guessed_answers(1.5, 3)
    with pytest.raises(InputError, match="nodes is 0"):
        guessed_answers(0.5, 0)
