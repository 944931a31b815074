from __future__ import annotations

import numpy as np
import pytest

from scenarios.worked import theorems
from scenarios.worked_examples import EXAMPLES


@pytest.mark.parametrize(
    "name", [name for name, function in EXAMPLES.items() if function.__module__ == theorems.__name__]
)
def test_a_theorem_holds_on_what_is_drawn(name: str) -> None:
    assert [case.what for case in EXAMPLES[name]() if not case.agrees] == []


def test_drawn_operators_have_both_outcomes() -> None:
    """Else the equivalences would be tried on one side only."""
    ranks = {bool(np.linalg.matrix_rank(B) == B.shape[1]) for B in theorems._operators(7, 120)}
    assert ranks == {True, False}
