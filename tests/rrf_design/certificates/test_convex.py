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


def test_nothing_is_claimed_of_rows_that_are_far_apart_unless_the_checker_proves_it() -> None:
    """Products of such rows cancel in floats: a residual of 1e-12 there may be 1e-8 in truth, and refutes nothing then."""
    rng = np.random.default_rng(0)
    for _ in range(150):
        nodes = int(rng.integers(3, 7))
        rows = nodes + int(rng.integers(0, 3))
        record = make_record(rng.standard_normal((rows, nodes)) * 10.0 ** rng.integers(-70, 71, (rows, 1)))
        for k in (1, 2):
            section = nullspace_section(record, k)
            assert check_nullspace(section, record, k).startswith(section["status"])
