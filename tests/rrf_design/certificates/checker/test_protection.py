"""Re-proofs: what the solver claims holds up, what is a little more is refuted, and every
inequality agrees with plain enumeration.

Delivered values by the compiled searches, against every support in turn (`plain`) and against
the solver's value.
"""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from scipy import sparse

from rrf_design.checker import protection
from rrf_design.checker.exact import ProofOutcome
from rrf_design.checker.protection import ProtectionClaim, _Field, prove_protection
from solvers import delivered_margin, margin, suspect_margin, wrong_check_margin

RAISED = 1 + 1e-6


def field(seed):
    """Small rows with many zeros and dependent columns; units of one or two columns; blocks of one
    or two rows.
    """
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
        assert prove_protection(claim(B, units, deliver, found.lower)).outcome is ProofOutcome.PROVED
        refuted = prove_protection(claim(B, units, deliver, max(found.upper * RAISED, 1e-9)))
        assert refuted.outcome is ProofOutcome.REFUTED
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
            assert prove_protection(claim(B, units, inside, found.lower, **more)).outcome is ProofOutcome.PROVED
            above = max(found.upper * RAISED, 1e-9)
            assert prove_protection(claim(B, units, inside, above, **more)).outcome is ProofOutcome.REFUTED
            positive += found.lower > 0
    assert positive > 8


def test_blind_directions_are_settled_in_rationals():
    invoice = np.array([[1.0, 1.0, -1.0], [0.0, 0.0, 1.0]])
    units = [[0], [1], [2]]
    whole = prove_protection(claim(invoice, units, [2], 1.0, size=3))
    assert whole.outcome is ProofOutcome.PROVED
    assert whole.escalated == 1
    assert prove_protection(claim(invoice, units, [0], 1e-6)).outcome is ProofOutcome.REFUTED


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
    assert proof.outcome is ProofOutcome.UNDECIDED
    assert "time limit" in proof.reason


def test_wide_singular_supports_are_left_undecided_not_proved():
    B = np.ones((1, 42))
    proof = prove_protection(claim(B, [list(range(42))], [0], 0.5))
    assert proof.outcome is ProofOutcome.UNDECIDED


def test_everything_delivered_is_the_plain_claim():
    B, units, _, _ = field(1)
    plain = margin(B, units, k=1)
    assert prove_protection(claim(B, units, range(B.shape[1]), plain.lower)).outcome is ProofOutcome.PROVED


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
    """Sixty-four rows whose square rounds up from 1.6 to 2 of the least doubles: in floats they are
    a quarter longer than they are.
    """
    B = np.zeros((65, 2))
    B[:64, 0], B[64, 1] = 2.2227587494850775e-162 * np.sqrt(1.6), 1.0
    true = 8 * B[0, 0]
    assert prove_protection(claim(B, [[0], [1]], [0], true)).outcome is ProofOutcome.PROVED
    assert prove_protection(claim(B, [[0], [1]], [0], true * 1.1)).outcome is ProofOutcome.REFUTED


def drawn_field(kind: str, seed: int):
    """(matrix, unit sizes, delivered columns, supports' size): thin or crowded, scalar or in units,
    some singular outside D.
    """
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
            assert quick.outcome is plain.outcome
            assert (
                quick.outcome is (ProofOutcome.PROVED if floor <= value.lower else ProofOutcome.REFUTED)
                or value.value == 0.0
            )
            verdicts.add(quick.outcome)
    assert verdicts == {ProofOutcome.PROVED, ProofOutcome.REFUTED}


def test_far_fewer_sets_are_looked_at() -> None:
    rng = np.random.default_rng(0)
    matrix = np.vstack([rng.standard_normal((24, 16)), np.eye(16)])
    deliver = np.arange(0, 16, 2)
    value = delivered_margin(matrix, None, deliver, k=2).lower
    claim = claim_of(matrix, [1] * 16, deliver, 4, value)
    quick, plain = prove_protection(claim), prove_protection(claim, plain=True)
    assert quick.outcome is plain.outcome is ProofOutcome.PROVED
    assert 10 * quick.tested < plain.tested


@pytest.mark.parametrize("seed", range(4))
def test_a_planted_set_that_hides_what_is_delivered_is_found(seed: int) -> None:
    """Eight columns with a blind direction through D; the same direction beside D does no harm."""
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((20, 24))
    matrix[:, 5] = matrix[:, 6:13] @ rng.choice([-1.0, 1.0], 7)
    for deliver, verdict in (([5, 20], ProofOutcome.REFUTED), ([20, 21], ProofOutcome.PROVED)):
        claim = claim_of(matrix, [1] * 24, np.array(deliver), 8, 1e-3)
        assert prove_protection(claim).outcome is verdict


def test_numbers_beyond_floats_are_left_to_rationals() -> None:
    matrix = np.diag([1e-250, 1.0, 1e200])
    claim = claim_of(matrix, [1, 1, 1], np.array([0]), 2, 5e-251)
    assert protection._prove_delivered(claim, lambda _: ProofOutcome.UNDECIDED, time_limit=None) is None
    assert prove_protection(claim).outcome is ProofOutcome.PROVED


def test_units_are_nodes_with_their_columns_together() -> None:
    matrix = sparse.csr_array(np.array([[1.0, 2.0, 3.0], [0.0, 4.0, 0.0]]))
    units = (np.array([2, 0]), np.array([1]))
    claim = ProtectionClaim(matrix, units, np.array([1]), 2, 0.1, np.full(2, -1))
    record = protection._record_of_units(claim)
    assert record.node_sizes.tolist() == [2, 1]
    assert record.matrix.toarray().tolist() == [[3.0, 1.0, 2.0], [0.0, 0.0, 4.0]]


def test_no_time_is_no_proof() -> None:
    matrix = np.random.default_rng(2).standard_normal((24, 30))
    claim = claim_of(matrix, [1] * 30, np.arange(10), 9, 0.05)
    assert prove_protection(claim, time_limit=0.0).outcome is ProofOutcome.UNDECIDED
