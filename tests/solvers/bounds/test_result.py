"""What a relaxation returns can't be changed afterwards."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from solvers.bounds import Relaxation


def test_a_relaxation_is_frozen_with_its_data() -> None:
    found = Relaxation(0.5, "dominance", np.ones(3), True)
    assert found.data is not None
    with pytest.raises(ValueError, match="read-only"):
        found.data[0] = 2.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.estimate = 1.0  # type: ignore[misc]


def test_one_that_is_proven_otherwise_has_no_data() -> None:
    assert Relaxation(0.0, "mixed-integer", None, False).data is None
