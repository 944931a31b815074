"""The judge itself knows a wrong bound; its fields are repeatable."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from scenarios.kit.exact_elimination import semidefinite
from scenarios.protection import FAMILIES, QUESTIONS, choices, field, holds


def test_the_judge_is_exact() -> None:
    columns, counts = np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([False, True])
    assert holds(columns, counts, 1.0, strictly=False)
    assert not holds(columns, counts, 1.0, strictly=True)
    assert not holds(columns, counts, float(np.nextafter(1.0, 2.0)), strictly=False)
    assert not holds(np.array([[1.0, 1.0]]), counts, 1e-200, strictly=False)


@pytest.mark.parametrize("family", FAMILIES)
def test_fields_are_repeatable_and_complete(family: str) -> None:
    matrix, units, deliver, blocks, trusted = field(family, 3)
    assert (matrix == field(family, 3)[0]).all()
    assert sorted(c for unit in units for c in unit) == list(range(matrix.shape[1]))
    assert sorted(r for block in blocks for r in block) == list(range(len(matrix)))
    assert deliver
    assert set(trusted) < set(range(len(blocks)))


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_question_has_choices(question: str) -> None:
    for matrix, counts in choices(question, field("gaussian", 1)):
        assert matrix.shape[1] == len(counts)
        assert counts.any()


def test_elimination_knows_semidefinite_from_definite() -> None:
    half, one, nothing = Fraction(1, 2), Fraction(1), Fraction(0)
    assert not semidefinite([[-half]])
    assert not semidefinite([[nothing, half], [half, nothing]])
    assert not semidefinite([[one, one], [one, one - Fraction(1, 10**30)]])
    assert semidefinite([[one, one], [one, one]])
    assert not semidefinite([[one, one], [one, one]], 1)
    assert semidefinite([[nothing, nothing], [nothing, one]], 1)
    assert not semidefinite([[nothing, nothing], [nothing, one]], 0)
