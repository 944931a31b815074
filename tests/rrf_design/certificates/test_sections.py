"""The sections of a certificate, each by itself.

What is written about the convex decoder is what the checker proves.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from rrf_design.certificates._sections import (
    SMALL,
    audit_section,
    bare_operator,
    further_budgets,
    nullspace_section,
    positive,
    unwhitened_section,
    witness_section,
)
from rrf_design.certificates.issue import _record_of
from rrf_design.checker.nullspace import NullSpace, check_nullspace
from rrf_design.errors import InputError
from rrf_design.problem import Problem

from .conftest import make_record, triangle


def test_a_witness_is_measured_exactly() -> None:
    record = make_record(np.array([[3.0, 0.0], [0.0, 4.0]]))
    named, image2, upper = witness_section(record, [0, 1], np.array([0.6, 0.8]))
    assert named == {"support": ["n0", "n1"], "direction": [[0.6], [0.8]]}
    assert image2 == (3 * Fraction(0.6)) ** 2 + (4 * Fraction(0.8)) ** 2
    length2 = Fraction(0.6) ** 2 + Fraction(0.8) ** 2
    assert Fraction(upper) ** 2 * length2 >= image2 > Fraction(np.nextafter(upper, 0.0)) ** 2 * length2


def test_a_zero_margin_has_a_pair_of_at_most_k_nodes_each() -> None:
    witness = {"support": ["a", "b", "c"], "direction": [[1.0], [1.0], [1.0]]}
    assert audit_section(witness, Fraction(0), 0.0, 2)["pair"] == {"first": ["a", "b"], "second": ["c"]}
    positive_margin = audit_section(witness, Fraction(1, 4), 0.5, 2)
    assert positive_margin == {"residual": 0.5, "pair": None, "sensitivity": 2.0}


def test_the_next_budget_is_certified_where_that_is_cheap() -> None:
    small, large = make_record(np.eye(8)), make_record(np.eye(400))
    assert further_budgets(None, 1, small) == [2]
    assert further_budgets(None, 4, small) == []
    assert further_budgets(None, 2, large) == []
    assert further_budgets([3, 1, 3], 1, large) == [3]


def test_numbers_that_must_be_positive() -> None:
    assert positive(None, "delta") is None
    for value in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(InputError, match="delta must be a positive number"):
            positive(value, "delta")


def test_the_operator_without_whitening() -> None:
    assert bare_operator(triangle(), None) is None
    problem = Problem(
        nodes=[{"id": "a"}, {"id": "b"}],
        relations=[{"id": "r", "tail": "a", "head": "b", "covariance": [[4.0]]}],
        anchors=[{"id": "x", "node": "a", "weight": 9.0}, {"id": "y", "node": "b", "sigma": 0.1}],
    )
    bare = bare_operator(problem, None)
    assert bare is not None
    assert bare.matrix.toarray().tolist() == [[-1.0, 1.0], [3.0, 0.0], [0.0, 1.0]]  # weights stay, noise goes
    options = {"time_limit": None, "n_jobs": None, "front_end": "ortools"}
    section = unwhitened_section(_record_of(bare), 1, options, lambda *_: None)
    assert section["lower"] <= np.linalg.svd(bare.matrix.toarray())[1][-1] <= section["upper"] * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_whatever_is_found_is_proved(seed: int) -> None:
    rng = np.random.default_rng(seed)
    record = make_record(rng.integers(-1, 2, (int(rng.integers(2, 7)), 5)).astype(float))
    section = nullspace_section(record, 1)
    assert check_nullspace(section, record, 1).startswith(section["status"])


def test_large_fields_are_left_open() -> None:
    assert nullspace_section(make_record(np.eye(SMALL + 1)), 1)["status"] == NullSpace.NOT_CERTIFIED


def test_nothing_is_claimed_of_rows_that_are_far_apart_unless_the_checker_proves_it() -> None:
    """Products of such rows cancel in floats: a residual of 1e-12 there may be 1e-8 in truth, and
    refutes nothing then.
    """
    rng = np.random.default_rng(0)
    for _ in range(150):
        nodes = int(rng.integers(3, 7))
        rows = nodes + int(rng.integers(0, 3))
        record = make_record(rng.standard_normal((rows, nodes)) * 10.0 ** rng.integers(-70, 71, (rows, 1)))
        for k in (1, 2):
            section = nullspace_section(record, k)
            assert check_nullspace(section, record, k).startswith(section["status"])
