"""Proofs without enumeration: sound for any weights and any dual matrix, tight where they should be."""

from __future__ import annotations

import numpy as np
import pytest

from rrf_design.certificates.checker.exact import Verdict
from rrf_design.certificates.checker.relaxations import norm_up, positive_definite, prove_dominance, prove_dual
from solvers.bounds import dominance, semidefinite

from ..conftest import brute_margin, make_record, random_field


@pytest.mark.parametrize("shape", [(40, 1, 1), (40, 2, 2), (40, 4, 4), (40, 3, 5), (40, 5, 2)])
def test_norms_are_bounded_from_above_and_closely(shape: tuple[int, int, int]) -> None:
    blocks = np.random.default_rng(1).standard_normal(shape)
    truth = np.linalg.norm(blocks, 2, axis=(1, 2))
    bound = norm_up(blocks)
    assert (bound >= truth).all()
    assert (bound <= truth * 1.008).all()


def test_norm_of_zero() -> None:
    assert norm_up(np.zeros((2, 3, 3))).max() < 1e-200


@pytest.mark.parametrize("seed", range(30))
def test_whatever_is_proved_is_true(seed: int) -> None:
    matrix, sizes, heights, _ = random_field(seed)
    record = make_record(matrix, sizes, blocks=heights)
    rng = np.random.default_rng(seed)
    truth = brute_margin(matrix, sizes, 2)
    order = record.columns
    for floor in (truth * (1 + 1e-10), truth * 1.1 + 1e-8):
        for weights in (np.ones(len(sizes)), rng.random(len(sizes)) + 0.1):
            assert prove_dominance(record, 2, floor=floor, weights=weights).verdict is not Verdict.PROVED
        for triangle in (np.zeros(order * (order + 1) // 2), rng.standard_normal(order * (order + 1) // 2)):
            assert prove_dual(record, 2, floor=floor, triangle=triangle).verdict is not Verdict.PROVED


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
        assert proved.verdict is Verdict.PROVED
    assert strong.data is not None
    assert 0 < strong.estimate <= truth * (1 + 1e-9)
    assert prove_dual(record, 2, floor=strong.estimate * (1 - 1e-6), triangle=strong.data).verdict is Verdict.PROVED


def test_data_that_does_not_fit_proves_nothing() -> None:
    record = make_record(np.eye(3))
    for weights in (np.ones(2), -np.ones(3), np.array([1.0, np.nan, 1.0])):
        assert prove_dominance(record, 2, floor=0.5, weights=weights).verdict is Verdict.UNDECIDED
    assert prove_dual(record, 2, floor=0.5, triangle=np.zeros(5)).verdict is Verdict.UNDECIDED
    assert prove_dominance(record, 2, floor=2.0, weights=np.ones(3)).verdict is Verdict.UNDECIDED


def test_positive_definite_pays_for_its_rounding() -> None:
    assert positive_definite(np.eye(3), 0.9)
    assert not positive_definite(np.eye(3), 1.0)
    assert not positive_definite(np.array([[1.0, 1.0], [1.0, 1.0]]), 0.0)
