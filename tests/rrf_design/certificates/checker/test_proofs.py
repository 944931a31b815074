"""Proofs by enumeration against brute force, and against what floating point gets wrong.

Proofs without enumeration: sound for any weights and any dual matrix, tight where they should
be.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from rrf_design.checker.exact import ProofOutcome
from rrf_design.checker.proofs import (
    _norm_up,
    positive_definite,
    prove_dominance,
    prove_dual,
    prove_floor,
    prove_listed,
    support_radii,
)
from solvers.bounds import dominance, semidefinite

from ..conftest import brute_margin, make_record, random_field


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("size", [1, 2, 4])
def test_true_claims_are_proved_and_false_ones_refuted(seed: int, size: int) -> None:
    matrix, sizes, heights, _ = random_field(seed)
    record = make_record(matrix, sizes, blocks=heights)
    value = brute_margin(matrix, sizes, size)
    if value > 1e-6:
        assert prove_floor(record, size, floor=value * (1 - 1e-12)).outcome is ProofOutcome.PROVED
        refuted = prove_floor(record, size, floor=value * (1 + 1e-9))
        assert refuted.outcome is ProofOutcome.REFUTED
        assert len(refuted.support) <= size
    else:
        assert prove_floor(record, size, floor=1e-4).outcome is ProofOutcome.REFUTED


@pytest.mark.parametrize("seed", range(15))
def test_the_bound_per_support_is_sound_for_perturbed_operators(seed: int) -> None:
    """Perturb every block within its radius, on its own nodes: no margin falls below a proved
    bound.
    """
    matrix, sizes, heights, radii = random_field(seed)
    record = make_record(matrix, sizes, blocks=heights, radii=radii)
    rng = np.random.default_rng(seed)
    low, high = 0.0, brute_margin(matrix, sizes, 2)
    for _ in range(12):
        middle = (low + high) / 2
        proved = prove_floor(record, 2, floor=middle, with_radii=True).outcome is ProofOutcome.PROVED
        low, high = (middle, high) if proved else (low, middle)
    ends = np.cumsum(heights)
    for _ in range(20):
        moved = matrix.copy()
        for begin, end, radius in zip(ends - heights, ends, radii, strict=True):
            touched = np.flatnonzero(np.abs(matrix[begin:end]).sum(axis=0))
            noise = rng.standard_normal((end - begin, len(touched)))
            moved[begin:end, touched] += radius * noise / max(np.linalg.norm(noise, 2), 1e-12)
        if low > 0:
            assert brute_margin(moved, sizes, 2) >= low * (1 - 1e-9)


def test_the_bound_per_support_beats_the_global_one() -> None:
    matrix = np.vstack([np.eye(6), np.eye(6)])
    record = make_record(matrix, radii=np.full(12, 0.1))
    global_bound = np.sqrt(2) - np.sqrt(12 * 0.01)
    assert prove_floor(record, 2, floor=global_bound + 0.1, with_radii=True).outcome is ProofOutcome.PROVED
    assert support_radii(record, (0,)) == (0.1, 0.1)


def test_ties_that_floating_point_rejects_are_settled_exactly() -> None:
    record = make_record(np.eye(5))
    proof = prove_floor(record, 2, floor=1.0)  # equality: every float test fails
    assert proof.outcome is ProofOutcome.PROVED
    assert proof.escalated == 5


@pytest.mark.parametrize("scale", [1e-150, 1e-9, 1e9, 1e150])
def test_scale_does_not_matter(scale: float) -> None:
    matrix = scale * np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0], [1.0, 0.0, 0.0]])
    value = brute_margin(matrix / scale, [1, 1, 1], 2) * scale
    assert prove_floor(make_record(matrix), 2, floor=value * (1 - 1e-12)).outcome is ProofOutcome.PROVED
    assert prove_floor(make_record(matrix), 2, floor=value * (1 + 1e-12)).outcome is ProofOutcome.REFUTED


def test_nearly_singular_pairs_are_never_wrongly_accepted() -> None:
    """Two columns that differ in the last bits: the truth is far below what floating point
    resolves.
    """
    rng = np.random.default_rng(5)
    for _ in range(60):
        column = rng.standard_normal(4)
        other = column * (1 + 2.0**-50)
        record = make_record(np.column_stack([column, other]))
        assert prove_floor(record, 2, floor=1e-9).outcome is ProofOutcome.REFUTED


def test_a_time_limit_is_not_a_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equality makes every float test fail; with no time to settle them, nothing is proved."""
    record = make_record(np.eye(4))
    proof = prove_floor(record, 2, floor=1.0, time_limit=0.0)
    assert proof.outcome is ProofOutcome.UNDECIDED
    assert "time limit" in proof.reason
    monkeypatch.setattr("rrf_design.checker.proofs.SLICE", 1)
    assert prove_floor(record, 2, floor=0.5, time_limit=0.0).outcome is ProofOutcome.UNDECIDED


def test_zero_needs_no_proof_and_an_empty_operator_has_no_margin() -> None:
    record = make_record(np.zeros((1, 3)))
    assert prove_floor(record, 2, floor=0.0).tested == 0
    assert prove_floor(record, 2, floor=1e-12).outcome is ProofOutcome.REFUTED


def test_listed_supports_only() -> None:
    matrix = np.diag([1.0, 1.0, 0.1])
    record = make_record(matrix)
    pairs = list(combinations(range(2), 2))
    assert prove_listed(record, pairs, floor=1.0).outcome is ProofOutcome.PROVED
    assert prove_listed(record, [*pairs, (2,)], floor=1.0).outcome is ProofOutcome.REFUTED


@pytest.mark.parametrize("seed", range(6))
def test_dense_fields_of_scalars_with_and_without_radii(seed: int) -> None:
    """These are searched around their centres (see test_centres): another path to the same
    verdicts.
    """
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((9, 7))
    radii = rng.random(9) * 0.02
    record = make_record(matrix, radii=radii)
    for size in (1, 2, 3, 4):
        value = brute_margin(matrix, [1] * 7, size)
        assert prove_floor(record, size, floor=value * (1 - 1e-11)).outcome is ProofOutcome.PROVED
        assert prove_floor(record, size, floor=value * (1 + 1e-11)).outcome is ProofOutcome.REFUTED
        robust = value - np.linalg.norm(radii)  # every row touches every support
        if robust > 0:
            assert prove_floor(record, size, floor=robust * (1 - 1e-9), with_radii=True).outcome is ProofOutcome.PROVED
            assert prove_floor(record, size, floor=robust * (1 + 1e-9), with_radii=True).outcome is ProofOutcome.REFUTED


@pytest.mark.parametrize("shape", [(40, 1, 1), (40, 2, 2), (40, 4, 4), (40, 3, 5), (40, 5, 2)])
def test_norms_are_bounded_from_above_and_closely(shape: tuple[int, int, int]) -> None:
    blocks = np.random.default_rng(1).standard_normal(shape)
    truth = np.linalg.norm(blocks, 2, axis=(1, 2))
    bound = _norm_up(blocks)
    assert (bound >= truth).all()
    assert (bound <= truth * 1.008).all()


def test_norm_of_zero() -> None:
    assert _norm_up(np.zeros((2, 3, 3))).max() < 1e-200


@pytest.mark.parametrize("seed", range(30))
def test_whatever_is_proved_is_true(seed: int) -> None:
    matrix, sizes, heights, _ = random_field(seed)
    record = make_record(matrix, sizes, blocks=heights)
    rng = np.random.default_rng(seed)
    truth = brute_margin(matrix, sizes, 2)
    order = record.columns
    for floor in (truth * (1 + 1e-10), truth * 1.1 + 1e-8):
        for weights in (np.ones(len(sizes)), rng.random(len(sizes)) + 0.1):
            assert prove_dominance(record, 2, floor=floor, weights=weights).outcome is not ProofOutcome.PROVED
        for triangle in (np.zeros(order * (order + 1) // 2), rng.standard_normal(order * (order + 1) // 2)):
            assert prove_dual(record, 2, floor=floor, triangle=triangle).outcome is not ProofOutcome.PROVED


@pytest.mark.parametrize("seed", [0, 3, 8])
def test_the_solvers_values_can_be_proved(seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = np.vstack([rng.standard_normal((14, 10)) / 4, 0.6 * np.eye(10)])
    sizes = [2] * 5
    record = make_record(matrix, sizes)
    truth = brute_margin(matrix, sizes, 2)
    weak = dominance(matrix, sizes, size=2)
    strong = semidefinite(matrix, sizes, size=2, iterations=300)
    if weak.estimate > 0:
        assert weak.data is not None
        proved = prove_dominance(record, 2, floor=weak.estimate * (1 - 1e-6), weights=weak.data)
        assert proved.outcome is ProofOutcome.PROVED
    assert strong.data is not None
    assert 0 < strong.estimate <= truth * (1 + 1e-9)
    assert (
        prove_dual(record, 2, floor=strong.estimate * (1 - 1e-6), triangle=strong.data).outcome is ProofOutcome.PROVED
    )


def test_data_that_does_not_fit_proves_nothing() -> None:
    record = make_record(np.eye(3))
    for weights in (np.ones(2), -np.ones(3), np.array([1.0, np.nan, 1.0])):
        assert prove_dominance(record, 2, floor=0.5, weights=weights).outcome is ProofOutcome.UNDECIDED
    assert prove_dual(record, 2, floor=0.5, triangle=np.zeros(5)).outcome is ProofOutcome.UNDECIDED
    assert prove_dominance(record, 2, floor=2.0, weights=np.ones(3)).outcome is ProofOutcome.UNDECIDED


def test_positive_definite_pays_for_its_rounding() -> None:
    assert positive_definite(np.eye(3), 0.9)
    assert not positive_definite(np.eye(3), 1.0)
    assert not positive_definite(np.array([[1.0, 1.0], [1.0, 1.0]]), 0.0)
