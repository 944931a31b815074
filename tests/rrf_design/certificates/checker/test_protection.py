"""Re-proofs: what the solver claims holds up, what is a little more is refuted, and every inequality agrees with plain enumeration."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import sparse

from rrf_design.certificates.checker.exact import Verdict
from rrf_design.certificates.checker.protection import ProtectionClaim, _Field, prove_protection
from solvers import delivered_margin, margin, suspect_margin, wrong_check_margin

RAISED = 1 + 1e-6


def field(seed):
    """Small rows with many zeros and dependent columns; units of one or two columns; blocks of one or two rows."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 7))
    B = rng.integers(-2, 3, size=(int(rng.integers(n, 2 * n + 2)), n)) * (rng.random((1, n)) < 0.9)
    B = (B * (rng.random(B.shape) < 0.7)).astype(float)
    if seed % 3 == 0:
        B[:, 1] = B[:, 0]
    units = [[0, 1], *([i] for i in range(2, n))] if seed % 2 else [[i] for i in range(n)]
    blocks = np.arange(len(B)) // 2
    blocks[rng.random(len(B)) < 0.2] = -1
    deliver = np.flatnonzero(rng.random(n) < 0.5)
    return B, units, deliver if len(deliver) else np.array([n - 1]), blocks


def claim(B, units, deliver, floor, *, size=2, suspect_of=None, removed=0, checks_count=False):
    return ProtectionClaim(
        matrix=sparse.csr_array(B),
        units=tuple(np.array(u) for u in units),
        deliver=np.asarray(deliver, dtype=np.int64),
        size=size,
        floor=floor,
        suspect_of=np.full(len(B), -1) if suspect_of is None else suspect_of,
        removed=removed,
        checks_count=checks_count,
    )


def test_claims_of_the_solver_hold_up_and_a_little_more_does_not():
    positive = 0
    for seed in range(60):
        B, units, deliver, _ = field(seed)
        found = delivered_margin(B, units, deliver, k=1)
        assert prove_protection(claim(B, units, deliver, found.lower)).verdict is Verdict.PROVED
        refuted = prove_protection(claim(B, units, deliver, max(found.upper * RAISED, 1e-9)))
        assert refuted.verdict is Verdict.REFUTED
        assert refuted.reason.startswith("it fails on the units")
        positive += found.lower > 0
    assert positive > 30


def test_the_same_with_suspect_checks():
    positive = 0
    for seed in range(30):
        B, units, deliver, blocks = field(seed)
        rows = [np.flatnonzero(blocks == b) for b in np.unique(blocks[blocks >= 0])]
        trusted = [np.array([r]) for r in np.flatnonzero(blocks < 0)]
        options = {"k": 1, "suspects": 1, "trusted": range(len(rows), len(rows) + len(trusted))}
        values = suspect_margin(B, units, [*rows, *trusted], deliver=deliver, **options)
        named = wrong_check_margin(B, units, [*rows, *trusted], **options)
        for found, inside, count in ((values, deliver, False), (named, [], True)):
            more = {"suspect_of": blocks, "removed": 2, "checks_count": count}
            assert prove_protection(claim(B, units, inside, found.lower, **more)).verdict is Verdict.PROVED
            above = max(found.upper * RAISED, 1e-9)
            assert prove_protection(claim(B, units, inside, above, **more)).verdict is Verdict.REFUTED
            positive += found.lower > 0
    assert positive > 8


def test_blind_directions_are_settled_in_rationals():
    invoice = np.array([[1.0, 1.0, -1.0], [0.0, 0.0, 1.0]])
    units = [[0], [1], [2]]
    whole = prove_protection(claim(invoice, units, [2], 1.0, size=3))
    assert whole.verdict is Verdict.PROVED
    assert whole.escalated == 1
    assert prove_protection(claim(invoice, units, [0], 1e-6)).verdict is Verdict.REFUTED


def test_supports_are_connected_complete_and_met_once():
    for seed in range(25):
        B, units, deliver, _ = field(seed)
        for size in (1, 2, 3):
            got = [tuple(sorted(s)) for s in _Field(claim(B, units, deliver, 0.1, size=size)).supports()]
            assert len(got) == len(set(got))
            assert set(got) == _expected(B, units, deliver, size)


def _expected(B, units, deliver, size):
    """Connected sets that meet D and can't grow within `size`, by trying every set of units."""
    touch = [set(np.flatnonzero(np.any(B[:, u] != 0, axis=1))) for u in units]

    def connected(chosen):
        seen, front = {chosen[0]}, [chosen[0]]
        while front:
            u = front.pop()
            fresh = {v for v in chosen if v not in seen and touch[u] & touch[v]}
            seen |= fresh
            front += fresh
        return len(seen) == len(chosen)

    found = set()
    for count in range(1, size + 1):
        for chosen in combinations(range(len(units)), count):
            if not connected(chosen) or not any(set(units[u]) & set(deliver.tolist()) for u in chosen):
                continue
            grows = any(connected((*chosen, v)) for v in range(len(units)) if v not in chosen)
            if count == size or not grows:
                found.add(chosen)
    return found


def test_time_runs_out_openly():
    B = np.random.default_rng(0).standard_normal((9, 8))
    proof = prove_protection(claim(B, [[i] for i in range(8)], range(8), 1e-6, size=4), time_limit=0.0, plain=True)
    assert proof.verdict is Verdict.UNDECIDED
    assert "time limit" in proof.reason


def test_wide_singular_supports_are_left_undecided_not_proved():
    B = np.ones((1, 42))
    proof = prove_protection(claim(B, [list(range(42))], [0], 0.5))
    assert proof.verdict is Verdict.UNDECIDED


def test_everything_delivered_is_the_plain_claim():
    B, units, _, _ = field(1)
    plain = margin(B, units, k=1)
    assert prove_protection(claim(B, units, range(B.shape[1]), plain.lower)).verdict is Verdict.PROVED


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"units": [[0]]}, "units: must name each of the 2 columns exactly once"),
        ({"deliver": []}, "deliver: names no column"),
        ({"deliver": [2]}, "deliver: a column is out of range"),
        ({"suspect_of": np.zeros(3)}, "suspect_of: has 3 entries"),
        ({"size": 0}, "size must be at least 1"),
        ({"removed": -1}, "removed at least 0"),
        ({"floor": -1.0}, "floor: -1.0 is no bound"),
        ({"floor": 1.0, "checks_count": True}, "floor: 1.0 is no bound"),
    ],
)
def test_what_is_no_claim_is_refused(change, message):
    given = {"B": np.eye(2), "units": [[0], [1]], "deliver": [0], "floor": 0.5} | change
    with pytest.raises(ValueError, match=message):
        claim(given.pop("B"), given.pop("units"), given.pop("deliver"), given.pop("floor"), **given)


def test_squares_below_the_range_of_doubles_prove_nothing():
    """Sixty-four rows whose square rounds up from 1.6 to 2 of the least doubles: in floats they are a quarter longer than they are."""
    B = np.zeros((65, 2))
    B[:64, 0], B[64, 1] = 2.2227587494850775e-162 * np.sqrt(1.6), 1.0
    true = 8 * B[0, 0]
    assert prove_protection(claim(B, [[0], [1]], [0], true)).verdict is Verdict.PROVED
    assert prove_protection(claim(B, [[0], [1]], [0], true * 1.1)).verdict is Verdict.REFUTED
