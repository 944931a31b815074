"""The label-free fit on synthetic crowds whose accuracies are known."""

from __future__ import annotations

import numpy as np
import pytest

from rrf_design.errors import InputError
from rrf_design.risk import UNREADABLE, disputed, fit_crowd

TRUTH = (0.95, 0.9, 0.8, 0.7, 0.6)


def crowd(items: int, values: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Independent nodes of known accuracy; a wrong answer falls on one of the other values."""
    rng = np.random.default_rng(seed)
    gold = rng.integers(0, values, size=items)
    right = rng.random((items, len(TRUTH))) < np.array(TRUTH)
    other = (gold[:, None] + rng.integers(1, values, size=right.shape)) % values
    return np.where(right, gold[:, None], other), gold


@pytest.mark.parametrize(("values", "slack"), [(2, 0.06), (5, 0.04)])
def test_accuracies_and_coincidence_are_found(values: int, slack: float) -> None:
    answers, _ = crowd(3000, values)
    found = fit_crowd(answers)
    assert np.abs(found.accuracy - np.array(TRUTH)).max() < slack
    assert found.coincidence == pytest.approx(min(1 / (values - 1), 0.95), abs=0.1)


def test_probabilities_are_calibrated_where_the_model_is_true() -> None:
    answers, gold = crowd(4000, 4)
    right = fit_crowd(answers).right(answers)
    truth = answers == gold[:, None]
    for low, high in ((0.0, 0.2), (0.4, 0.8), (0.9, 1.0)):
        here = (right >= low) & (right <= high)
        assert truth[here].mean() == pytest.approx(right[here].mean(), abs=0.06)


def test_a_discount_makes_agreement_worth_less() -> None:
    answers, _ = crowd(500, 4)
    found = fit_crowd(answers)
    unanimous = (answers == answers[:, :1]).all(axis=1)
    assert (found.right(answers, discount=0.35)[unanimous] < found.right(answers)[unanimous]).all()


def test_unreadable_answers_say_nothing() -> None:
    answers, _ = crowd(400, 4)
    answers[:50] = UNREADABLE
    answers[50:100, 2] = UNREADABLE
    found = fit_crowd(answers)
    assert (found.right(answers)[:50] == 0).all()
    assert (found.right(answers)[50:100, 2] == 0).all()
    assert found.accuracy[0] > found.accuracy[4]


def test_gold_that_everybody_contradicts_is_listed() -> None:
    answers, gold = crowd(400, 6)
    answers[[3, 40]] = 1
    gold[[3, 40]] = 2
    answers[5] = UNREADABLE
    found = disputed(fit_crowd(answers), answers, gold)
    assert {3, 40} <= set(found)
    assert all((answers[place] == gold[place]).sum() <= 2 for place in found)
    with pytest.raises(InputError, match="gold has shape"):
        disputed(fit_crowd(answers), answers, gold[:9])


@pytest.mark.parametrize("answers", [np.zeros((0, 3)), np.zeros((3, 0)), np.zeros(3)])
def test_bad_input_is_one_line(answers: np.ndarray) -> None:
    with pytest.raises(InputError, match="answers should be an array"):
        fit_crowd(answers)
