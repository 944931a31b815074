"""The judge against what is known: diagonals, singular matrices, delivered columns, numbers at the ends of the range."""

from __future__ import annotations

import numpy as np
import pytest

from scenarios.exact_elimination import ExactGram


@pytest.mark.parametrize("scale", [1.0, 5e-324, 2.0**-1000, 2.0**1000])
def test_levels_are_decided_to_the_last_bit(scale: float) -> None:
    gram = ExactGram(np.diag([4.0, 2.0]) * scale)
    assert gram.above([0, 1], 2.0 * scale)
    assert not gram.above([0, 1], 2.0 * scale, strictly=True)
    assert not gram.above([0, 1], float(np.nextafter(2.0 * scale, np.inf)))
    assert gram.above([0], 4.0 * scale)


def test_what_is_not_delivered_may_be_blind_but_not_lead_astray() -> None:
    """Column 1 is blind: alone it does no harm. Columns 0 and 2 are equal: what is delivered of 0 can hide behind 2."""
    gram = ExactGram(np.array([[1.0, 0.0, 1.0], [0.0, 0.0, 0.0]]))
    assert gram.above([0, 1], 1.0, wanted=[True, False])
    assert not gram.above([0, 1], 1e-300)
    assert not gram.above([0, 2], 1e-300, wanted=[True, False])
    assert gram.above([0, 2], 0.0, wanted=[True, False])


@pytest.mark.parametrize("seed", range(20))
def test_it_agrees_with_singular_values(seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((6, 4))
    wanted = np.array([True, True, False, True])
    free = matrix[:, ~wanted]
    rest = matrix[:, wanted] - free @ np.linalg.lstsq(free, matrix[:, wanted], rcond=None)[0]
    least = float(np.linalg.svd(rest, compute_uv=False)[-1])
    gram = ExactGram(matrix)
    assert gram.above(range(4), least * (1 - 1e-9), wanted=wanted)
    assert not gram.above(range(4), least * (1 + 1e-9), wanted=wanted)
