"""Growth with completion bounds, against plain enumeration of every connected support.

The flag of the checker's searches: down before its time, up after it, and no thread left
behind.
"""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from rrf_design.checker import _completion as completion
from rrf_design.checker._completion import flag_at
from rrf_design.checker._gram import field_of
from rrf_design.checker.exact import ProofOutcome
from rrf_design.checker.proofs import prove_floor

from ..conftest import brute_margin, make_record


def thin_field(seed: int, *, nodes: int = 30, family: str = "random"):
    """Few relations of two or three nodes, and anchors: sparse enough to be walked along its
    edges.
    """
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(nodes - 1):
        row = np.zeros(nodes)
        row[[i, i + 1]] = (1.0, -1.0) if family == "identity" else rng.standard_normal(2)
        rows.append(row)
    for _ in range(nodes // 3):
        row = np.zeros(nodes)
        chosen = rng.choice(nodes, 3 if family == "ternary" else 2, replace=False)
        row[chosen] = (1.0, -1.0) if family == "identity" else rng.standard_normal(len(chosen))
        rows.append(row)
    return np.vstack([*rows, np.eye(nodes)[rng.random(nodes) < 0.5] * 0.7])


def least_of(matrix, size: int) -> float:
    """The margin by the walker's own enumeration, narrowed down by halves."""
    record = make_record(matrix)
    low, high = 0.0, float(np.sqrt(np.square(matrix).sum(axis=0)).max())
    for _ in range(40):
        middle = (low + high) / 2
        proved = prove_floor(record, size, floor=middle, plain=True).outcome is ProofOutcome.PROVED
        low, high = (middle, high) if proved else (low, middle)
    return low


@pytest.mark.parametrize("family", ["random", "identity", "ternary"])
@pytest.mark.parametrize("seed", range(3))
def test_true_claims_are_proved_and_false_ones_refuted(family: str, seed: int) -> None:
    matrix, size = thin_field(seed, nodes=26, family=family), 7
    record = make_record(matrix)
    gram = field_of(record, size, np.zeros(0)).gram
    assert gram is not None
    assert completion.suits(gram)
    value = least_of(matrix, size)
    proved = prove_floor(record, size, floor=value * (1 - 1e-9))
    assert proved.outcome is ProofOutcome.PROVED
    assert proved.tested > 0
    refuted = prove_floor(record, size, floor=value * (1 + 1e-6))
    assert refuted.outcome is ProofOutcome.REFUTED
    assert 1 <= len(refuted.support) <= size
    assert brute_margin(matrix[:, list(refuted.support)], [1] * len(refuted.support), size) < value * (1 + 1e-6)


def test_growth_visits_far_fewer_sets_than_there_are() -> None:
    matrix = thin_field(1, nodes=60)
    record = make_record(matrix)
    value = least_of(matrix, 6)
    record_floor = 0.5 * value
    grown = prove_floor(record, 9, floor=record_floor)
    plain = prove_floor(record, 9, floor=record_floor, plain=True)
    assert grown.outcome is plain.outcome
    assert grown.tested < plain.tested


def test_a_planted_blind_set_is_always_found() -> None:
    """Nine nodes whose relations leave one direction free: no positive floor may pass, whatever the
    rest looks like.
    """
    for seed in range(6):
        rng = np.random.default_rng(seed)
        matrix = thin_field(seed, nodes=40)
        hidden = np.sort(rng.choice(40, 9, replace=False))
        free = rng.standard_normal(9)
        matrix = matrix[~(np.abs(matrix[:, hidden]).sum(axis=1) > 0)]
        links = np.zeros((8, 40))
        for t in range(8):
            links[t, hidden[t]], links[t, hidden[t + 1]] = free[t + 1], -free[t]
        record = make_record(np.vstack([matrix, links, np.eye(40)[np.setdiff1d(np.arange(40), hidden)]]))
        assert prove_floor(record, 9, floor=1e-3).outcome is ProofOutcome.REFUTED
        assert prove_floor(record, 8, floor=1e-6).outcome is ProofOutcome.PROVED


def test_no_time_is_no_proof() -> None:
    record = make_record(thin_field(0, nodes=60))
    late = prove_floor(record, 10, floor=1e-3, time_limit=0.0)
    assert late.outcome is ProofOutcome.UNDECIDED
    gram = field_of(record, 10, np.zeros(0)).gram
    assert gram is not None
    assert not completion.prove_by_growth(gram, 1e-6, deadline=time.monotonic() - 1.0).finished


def test_radii_blocks_and_small_supports_are_left_to_the_walker() -> None:
    matrix = thin_field(0)
    for record, size, radii2 in (
        (make_record(matrix), 4, np.zeros(0)),
        (make_record(matrix, radii=np.full(len(matrix), 0.1)), 8, np.full(len(matrix), 0.01)),
        (make_record(np.kron(matrix, np.eye(2)), [2] * 30), 8, np.zeros(0)),
    ):
        gram = field_of(record, size, radii2).gram
        assert gram is not None
        assert not completion.suits(gram)


def test_without_a_deadline_the_flag_stays_down_and_nothing_is_started() -> None:
    before = threading.active_count()
    with flag_at(None) as flag:
        assert flag.tolist() == [0]
        assert threading.active_count() == before


def test_a_deadline_that_has_passed_raises_the_flag() -> None:
    with flag_at(time.monotonic() - 1.0) as flag:
        for thread in threading.enumerate():
            if isinstance(thread, threading.Timer):
                thread.join()
        assert flag.tolist() == [1]


def test_a_search_that_ends_before_its_time_leaves_the_flag_down_and_no_timer() -> None:
    with flag_at(time.monotonic() + 3600.0) as flag:
        (timer,) = (thread for thread in threading.enumerate() if isinstance(thread, threading.Timer))
    timer.join()
    assert flag.tolist() == [0]
