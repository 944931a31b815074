"""Delivered values by the compiled searches, against every support in turn (`plain`) and against the solver's value."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from rrf_design.certificates.checker import guarded
from rrf_design.certificates.checker.exact import Verdict
from rrf_design.certificates.checker.protection import ProtectionClaim, prove_protection
from solvers import delivered_margin


def drawn_field(kind: str, seed: int):
    """(matrix, unit sizes, delivered columns, supports' size): thin or crowded, scalar or in units, some singular outside D."""
    rng = np.random.default_rng([seed, len(kind)])
    size = 8 if "large" in kind else int(rng.choice([2, 4]))
    nodes = int(rng.integers(9, 12)) if "large" in kind else int(rng.integers(5, 9))
    sizes = rng.integers(1, 3, nodes).tolist() if "units" in kind else [1] * nodes
    width = sum(sizes)
    if "crowded" in kind:
        matrix = rng.standard_normal((width + int(rng.integers(-2, 4)), width))
    else:
        rows = [np.zeros(width) for _ in range(int(1.5 * width))]
        for row in rows:
            row[rng.choice(width, 2, replace=False)] = rng.choice([1.0, -1.0, 0.5], 2)
        matrix = np.vstack([*rows, np.eye(width)[rng.random(width) < 0.7]])
    deliver = np.flatnonzero(rng.random(width) < (0.2 if seed % 3 == 0 else 0.6))
    deliver = deliver if len(deliver) else np.array([0])
    outside = np.setdiff1d(np.arange(width), deliver)
    if seed % 4 == 1 and len(outside) > 1:  # a blind direction that does no harm to what is delivered
        matrix[:, outside[1]] = matrix[:, outside[0]]
    return matrix, sizes, deliver, size


def claim_of(matrix, sizes, deliver, size: int, floor: float) -> ProtectionClaim:
    units = tuple(np.arange(a, b) for a, b in pairwise(np.cumsum([0, *sizes])))
    return ProtectionClaim(sparse.csr_array(matrix), units, deliver, size, floor, np.full(len(matrix), -1))


@pytest.mark.parametrize(
    "kind", ["thin", "thin units", "crowded", "crowded units", "thin large", "crowded large", "thin large units"]
)
def test_as_plain_enumeration_says(kind: str) -> None:
    verdicts = set()
    for seed in range(8):
        matrix, sizes, deliver, size = drawn_field(kind, seed)
        value = delivered_margin(matrix, sizes, deliver, k=size // 2)
        for floor in (0.5 * value.lower, value.lower, value.upper * (1 + 1e-9), 1.3 * value.upper):
            claim = claim_of(matrix, sizes, deliver, size, floor)
            quick, plain = prove_protection(claim), prove_protection(claim, plain=True)
            assert quick.verdict is plain.verdict
            assert quick.verdict is (Verdict.PROVED if floor <= value.lower else Verdict.REFUTED) or value.value == 0.0
            verdicts.add(quick.verdict)
    assert verdicts == {Verdict.PROVED, Verdict.REFUTED}


def test_far_fewer_sets_are_looked_at() -> None:
    rng = np.random.default_rng(0)
    matrix = np.vstack([rng.standard_normal((24, 16)), np.eye(16)])
    deliver = np.arange(0, 16, 2)
    value = delivered_margin(matrix, None, deliver, k=2).lower
    claim = claim_of(matrix, [1] * 16, deliver, 4, value)
    quick, plain = prove_protection(claim), prove_protection(claim, plain=True)
    assert quick.verdict is plain.verdict is Verdict.PROVED
    assert 10 * quick.tested < plain.tested


@pytest.mark.parametrize("seed", range(4))
def test_a_planted_set_that_hides_what_is_delivered_is_found(seed: int) -> None:
    """Eight columns with a blind direction through D; the same direction beside D does no harm."""
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((20, 24))
    matrix[:, 5] = matrix[:, 6:13] @ rng.choice([-1.0, 1.0], 7)
    for deliver, verdict in (([5, 20], Verdict.REFUTED), ([20, 21], Verdict.PROVED)):
        claim = claim_of(matrix, [1] * 24, np.array(deliver), 8, 1e-3)
        assert prove_protection(claim).verdict is verdict


def test_numbers_beyond_floats_are_left_to_rationals() -> None:
    matrix = np.diag([1e-250, 1.0, 1e200])
    claim = claim_of(matrix, [1, 1, 1], np.array([0]), 2, 5e-251)
    assert guarded.prove_delivered(claim, lambda _: Verdict.UNDECIDED, time_limit=None) is None
    assert prove_protection(claim).verdict is Verdict.PROVED


def test_units_are_nodes_with_their_columns_together() -> None:
    matrix = sparse.csr_array(np.array([[1.0, 2.0, 3.0], [0.0, 4.0, 0.0]]))
    units = (np.array([2, 0]), np.array([1]))
    claim = ProtectionClaim(matrix, units, np.array([1]), 2, 0.1, np.full(2, -1))
    record = guarded.record_of_units(claim)
    assert record.node_sizes.tolist() == [2, 1]
    assert record.matrix.toarray().tolist() == [[3.0, 1.0, 2.0], [0.0, 0.0, 4.0]]


def test_no_time_is_no_proof() -> None:
    matrix = np.random.default_rng(2).standard_normal((24, 30))
    claim = claim_of(matrix, [1] * 30, np.arange(10), 9, 0.05)
    assert prove_protection(claim, time_limit=0.0).verdict is Verdict.UNDECIDED
