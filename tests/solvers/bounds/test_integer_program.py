"""The mixed-integer relaxation through both front ends."""

from __future__ import annotations

import numpy as np
import pytest

from solvers.bounds import _FrontEnd, mixed_integer

from .fields import dense, exact, ring


@pytest.mark.parametrize("front_end", list(_FrontEnd))
def test_mixed_integer_front_ends(front_end: _FrontEnd) -> None:
    matrix = ring(6)
    truth = exact(matrix, [1] * 6, 2)
    found = mixed_integer(matrix, size=2, front_end=front_end, time_limit=60.0)
    assert 0.8 * truth <= found.estimate <= truth * (1 + 1e-5)
    assert str(front_end) in found.method


def test_mixed_integer_with_vectors() -> None:
    matrix = dense(1, [2, 2, 2])
    found = mixed_integer(matrix, [2, 2, 2], size=2, time_limit=60.0)
    assert found.estimate <= exact(matrix, [2, 2, 2], 2) * (1 + 1e-5)


def test_wrong_calls() -> None:
    with pytest.raises(ValueError, match="60 coordinates"):
        mixed_integer(np.eye(60), size=2)
    with pytest.raises(ValueError, match="'magic' is not a valid _FrontEnd"):
        mixed_integer(np.eye(3), size=2, front_end="magic")
