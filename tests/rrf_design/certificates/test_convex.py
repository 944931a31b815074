"""What is written about the convex decoder is what the checker proves."""

from __future__ import annotations

import numpy as np
import pytest

from rrf_design.certificates.checker.nullspace import NullSpace, check_nullspace
from rrf_design.certificates.convex import SMALL, nullspace_section

from .conftest import make_record


@pytest.mark.parametrize("seed", range(12))
def test_whatever_is_found_is_proved(seed: int) -> None:
    rng = np.random.default_rng(seed)
    record = make_record(rng.integers(-1, 2, (int(rng.integers(2, 7)), 5)).astype(float))
    section = nullspace_section(record, 1)
    assert check_nullspace(section, record, 1).startswith(section["status"])


def test_large_fields_are_left_open() -> None:
    assert nullspace_section(make_record(np.eye(SMALL + 1)), 1)["status"] == NullSpace.NOT_CERTIFIED
