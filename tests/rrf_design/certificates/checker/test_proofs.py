"""Proofs of lower bounds, of what is delivered, and tails of counts."""

from __future__ import annotations

import copy
from fractions import Fraction
from itertools import combinations, pairwise, product
from math import prod
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import rrf_design as rrf
from rrf_design.checker import _protection as protection
from rrf_design.checker._protection import ProtectionClaim, _Field, prove_protection
from rrf_design.checker._tails import at_most, tolerated
from rrf_design.checker.exact import ProofOutcome
from rrf_design.checker.premises import Premises
from rrf_design.checker.proofs import (
    _norm_up,
    positive_definite,
    prove_dominance,
    prove_dual,
    prove_floor,
    prove_listed,
    support_radii,
)
from rrf_design.derive import realised
from rrf_design.errors import Refused
from solvers import delivered_margin, margin, suspect_margin, wrong_check_margin
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


def test_zero_needs_no_proof_and_only_listed_supports_are_looked_at() -> None:
    record = make_record(np.zeros((1, 3)))
    assert prove_floor(record, 2, floor=0.0).tested == 0
    assert prove_floor(record, 2, floor=1e-12).outcome is ProofOutcome.REFUTED
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


def test_data_that_does_not_fit_proves_nothing_and_rounding_is_paid_for() -> None:
    assert _norm_up(np.zeros((2, 3, 3))).max() < 1e-200
    record = make_record(np.eye(3))
    for weights in (np.ones(2), -np.ones(3), np.array([1.0, np.nan, 1.0])):
        assert prove_dominance(record, 2, floor=0.5, weights=weights).outcome is ProofOutcome.UNDECIDED
    assert prove_dual(record, 2, floor=0.5, triangle=np.zeros(5)).outcome is ProofOutcome.UNDECIDED
    assert prove_dominance(record, 2, floor=2.0, weights=np.ones(3)).outcome is ProofOutcome.UNDECIDED
    assert positive_definite(np.eye(3), 0.9)
    assert not positive_definite(np.eye(3), 1.0)
    assert not positive_definite(np.array([[1.0, 1.0], [1.0, 1.0]]), 0.0)


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


def test_what_could_not_be_decided_is_left_open() -> None:
    B = np.random.default_rng(0).standard_normal((9, 8))
    proof = prove_protection(claim(B, [[i] for i in range(8)], range(8), 1e-6, size=4), time_limit=0.0, plain=True)
    assert proof.outcome is ProofOutcome.UNDECIDED
    assert "time limit" in proof.reason
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


@pytest.mark.parametrize("seed", range(20))
def test_probabilities_are_those_of_every_outcome(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rates = [round(float(rng.uniform(0.01, 0.9)), 2) for _ in range(int(rng.integers(1, 7)))]
    outcomes = list(product([False, True], repeat=len(rates)))
    for most in range(-1, len(rates) + 1):
        slow = sum(
            (prod((Fraction(r) if w else 1 - Fraction(r)) for r, w in zip(rates, wrong, strict=True)))
            for wrong in outcomes
            if sum(wrong) <= most
        )
        assert at_most(rates, most) == slow
    found = tolerated(rates, 0.95)
    assert at_most(rates, found) >= Fraction(0.95)
    assert found == 0 or at_most(rates, found - 1) < Fraction(0.95)
    assert tolerated([], 0.95) == 0


def judged(*rates: float | None, **settings: Any) -> rrf.Problem:
    anchors = [
        {"id": f"j{i}", "node": "x", "value": 7.0, **({} if rate is None else {"rate": rate})}
        for i, rate in enumerate(rates)
    ]
    return rrf.Problem(
        k=1,
        nodes=[{"id": "x"}, {"id": "y"}],
        relations=[{"id": "r", "tail": "x", "head": "y"}],
        anchors=anchors,
        **settings,
    )


def test_what_other_judges_leave_and_assume_is_said() -> None:
    assert judged(0.1, 0.1, 0.1).margin().value == pytest.approx(judged(None).margin().value)
    assert judged(0.2, 0.2, 0.2).margin().value == 0.0  # two of three may be wrong
    assert judged(0.01, 0.01, 0.01).margin().value == pytest.approx(judged(None, None, None).margin().value)
    left = realised(judged(0.1, 0.1, 0.1), failed=["j0", "j1"], values={})
    assert left.whole.premise.wrong_checks == 1
    assert left.whole.premise.suspects == {"j2"}
    told = rrf.repair(judged(0.01, 0.01), {"x": 7.0, "y": 7.0}).assumes
    assert "no check with a rate (with probability 0.98" in told


@pytest.mark.parametrize("rates", [(0.1, 0.1, 0.1), (0.01, 0.01)])
def test_certificates_carry_the_probability(rates: tuple[float, ...]) -> None:
    made = rrf.certify(judged(*rates, epsilon=0.01))
    assert rrf.verify(made).valid
    said = made.document["protection"]["rates"]
    assert made.document["error"]["confidence"] == said["confidence"]
    assert Fraction(said["confidence"]) <= at_most(rates, said["most"])
    for key, value in (("confidence", 0.999), ("most", 3), ("rates", [0.1, 1.5]), ("rates", [])):
        section = copy.deepcopy(made.document["protection"])
        section["rates"][key] = value
        with pytest.raises(Refused, match=r"protection\.rates"):
            Premises.read(section, made.record)


def test_no_false_certificate_beyond_the_stated_probability() -> None:
    """Judges err as declared, and in the worst way: all wrong ones agree.

    A certified value is wrong no more often than allowed.
    """
    rng = np.random.default_rng(5)
    wrong = 0
    for _ in range(300):
        errs = rng.random(4) < 0.15
        problem = judged(*[0.15] * 4)
        anchors = [
            a.model_copy(update={"value": 9.0 if bad else 7.0}) for a, bad in zip(problem.anchors, errs, strict=True)
        ]
        answers = {"x": 9.0, "y": 7.0} if errs.sum() > 1 else {"x": 7.0, "y": 7.0}
        found = rrf.repair(problem.model_copy(update={"anchors": anchors}), answers)
        wrong += found.verdict == "consistent" and found.repaired["x"] != (7.0,)
    assert wrong <= 0.05 * 300  # fmt: skip


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ({"rate": 1.5}, "rate must be less than 1"),
        ({"rate": 0.0}, "rate must be greater than 0"),
        ({"rate": 0.1, "trusted": True}, "trusted = true says that it is never wrong, but it has a rate"),
    ],
)
def test_bad_input(block: dict[str, Any], message: str) -> None:
    with pytest.raises(rrf.InputError, match=message):
        rrf.Problem(nodes=[{"id": "x"}], anchors=[{"id": "a", "node": "x", **block}])
