"""Centres searched and taken away, against every support's own eigenvalue and against plain
enumeration.
"""

from __future__ import annotations

import time
from itertools import combinations

import numpy as np
import pytest

from rrf_design.checker import _centre_elimination as centre_elimination
from rrf_design.checker._centres import Dense
from rrf_design.checker._gram import field_of
from rrf_design.checker.exact import ProofOutcome
from rrf_design.checker.proofs import prove_floor

from ..conftest import make_record


def crowded_field(family: str, seed: int, nodes: int = 11):
    """Mostly filled fields: as many rows as nodes or fewer, so that large supports are weak."""
    rng = np.random.default_rng([seed, len(family)])
    matrix = rng.standard_normal((nodes + int(rng.integers(-1, 6)), nodes))
    if family == "integer":
        matrix = rng.integers(-2, 3, matrix.shape).astype(float)
    elif family == "half-empty":
        matrix *= rng.random(matrix.shape) < 0.6
    elif family == "unlike columns":
        matrix *= 10.0 ** rng.integers(-1, 2, nodes)
    elif family == "cancelling":  # every pair shares rows, many of their sums are zero
        matrix = np.vstack([matrix, matrix * rng.choice([-1.0, 1.0], nodes)])
    elif family == "nearly equal":
        matrix[:, 1] = matrix[:, 0] + 1e-2 * rng.standard_normal(len(matrix))
    return matrix


def part_of(matrix, size: int) -> Dense:
    field = field_of(make_record(matrix), size, np.zeros(0))
    assert field.gram is None
    return field.dense[0]


def least(matrix, size: int) -> float:
    """The least eigenvalue of every support's Gram matrix, from singular values."""
    return min(
        float(np.linalg.svd(np.vstack([matrix, np.zeros_like(matrix)])[:, s], compute_uv=False)[-1]) ** 2
        for s in combinations(range(matrix.shape[1]), size)
    )


@pytest.mark.parametrize(
    "family", ["gaussian", "integer", "half-empty", "unlike columns", "cancelling", "nearly equal"]
)
@pytest.mark.parametrize("size", [5, 6, 8])
def test_proved_just_below_the_least_value_and_stopped_just_above(family: str, size: int) -> None:
    judged = 0
    for seed in range(6):
        matrix = crowded_field(family, seed)
        value = least(matrix, size)
        if value < 1e-7 * float(np.square(matrix).sum(axis=0).max()):
            continue
        part = part_of(matrix, size)
        below = centre_elimination.prove_by_centre_elimination(part, size, value * (1 - 1e-6), deadline=None)
        assert below.finished
        assert not below.support
        above = centre_elimination.prove_by_centre_elimination(part, size, value * (1 + 1e-6), deadline=None)
        assert not above.finished
        assert 1 <= len(set(above.support)) == len(above.support) <= size
        assert least(matrix[:, list(above.support)], len(above.support)) < value * (1 + 1e-5)
        judged += 1
    assert judged


@pytest.mark.parametrize("seed", range(3))
def test_the_whole_proof_says_what_plain_enumeration_says(seed: int) -> None:
    matrix, size = crowded_field("gaussian", seed, nodes=13), 7
    record, value = make_record(matrix), float(np.sqrt(least(matrix, size)))
    assert centre_elimination.suits(part_of(matrix, size), size)
    for floor in (0.3 * value, value * (1 - 1e-9), value * (1 + 1e-9), 1.2 * value):
        quick, plain = (prove_floor(record, size, floor=floor, plain=way) for way in (False, True))
        assert quick.outcome is plain.outcome
        assert quick.tested < plain.tested


def test_a_planted_blind_set_is_always_found() -> None:
    """Eight columns with one direction that no row sees: no positive floor may pass, and with seven
    of them all is well.
    """
    for seed in range(5):
        rng = np.random.default_rng(seed)
        matrix = rng.standard_normal((20, 26))
        hidden = rng.choice(26, 8, replace=False)
        matrix[:, hidden[0]] = matrix[:, hidden[1:]] @ rng.choice([-1.0, 1.0, 0.5], 7)
        record = make_record(matrix)
        assert prove_floor(record, 8, floor=1e-4).outcome is ProofOutcome.REFUTED
        assert prove_floor(record, 7, floor=1e-4).outcome is ProofOutcome.PROVED


def test_equal_columns_are_a_pair_that_fails() -> None:
    matrix = np.random.default_rng(0).standard_normal((30, 12))
    matrix[:, 7] = -matrix[:, 3]
    refuted = prove_floor(make_record(matrix), 8, floor=1e-6)
    assert refuted.outcome is ProofOutcome.REFUTED
    assert {3, 7} <= set(refuted.support)


def test_what_floats_can_not_prove_goes_to_exact_arithmetic() -> None:
    """At its own exact level (a power of two) a support is neither proved nor refuted by floats;
    the claim is true.
    """
    matrix = np.vstack([np.eye(9), np.zeros((9, 9))])
    matrix[9:] = 2.0**-12 * np.random.default_rng(1).integers(-1, 2, (9, 9))
    record = make_record(matrix)
    part = part_of(matrix, 8)
    assert centre_elimination.prove_by_centre_elimination(part, 8, 1.0 - 1e-6, deadline=None).finished
    exact = make_record(np.vstack([np.ones((1, 9)), 2.0 * np.eye(9)]))
    assert not centre_elimination.prove_by_centre_elimination(
        part_of(np.vstack([np.ones((1, 9)), 2.0 * np.eye(9)]), 8), 8, 4.0, deadline=None
    ).finished
    assert prove_floor(exact, 8, floor=2.0).outcome is ProofOutcome.PROVED
    assert prove_floor(record, 8, floor=1.1).outcome is ProofOutcome.REFUTED


def test_no_time_is_no_proof_and_progress_is_told() -> None:
    matrix = np.random.default_rng(2).standard_normal((24, 30))
    record, heard = make_record(matrix), []
    late = prove_floor(record, 9, floor=0.05, time_limit=0.0)
    assert late.outcome is ProofOutcome.UNDECIDED
    part = part_of(matrix, 9)
    assert not centre_elimination.prove_by_centre_elimination(part, 9, 0.05, deadline=time.monotonic() - 1.0).finished
    assert centre_elimination.prove_by_centre_elimination(part, 9, 1e-4, deadline=None, progress=heard.append).finished
    assert heard == sorted(heard)
    assert 0.0 < heard[-1] <= 1.0


def test_radii_blocks_and_small_supports_are_left_to_the_stars() -> None:
    matrix = np.random.default_rng(0).standard_normal((24, 12))
    plain = np.zeros(0)
    assert not centre_elimination.suits(part_of(matrix, 4), 4)
    blocks = field_of(make_record(matrix, [2] * 6), 4, plain)
    assert not centre_elimination.suits(blocks.dense[0], 8)
    radii = field_of(make_record(matrix, radii=np.full(24, 0.1)), 8, np.full(24, 0.01))
    assert not any(centre_elimination.suits(part, 8) for part in radii.dense)
