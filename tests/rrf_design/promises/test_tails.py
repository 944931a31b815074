"""The checker's own counts agree with those of the makers (`rrf_design.risk`), which it never uses:
p-values, exact answers at their levels, procedures, and bounds of audits.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from rrf_design.checker import tails
from rrf_design.checker.forms import written
from rrf_design.risk import AuditSequence, Limit, Statement, Stream, first_look, sequential_tail
from rrf_design.risk import Scope as Sized
from rrf_design.risk.policies import decide
from rrf_design.risk.statements import ClaimAndGate, Sighting, evidences

SURE = Fraction(19, 20)


@pytest.mark.parametrize("delivered", [False, True])
@pytest.mark.parametrize("statement", list(Statement))
@pytest.mark.parametrize("seed", range(6))
def test_evidence_is_that_of_the_makers(statement: Statement, delivered: bool, seed: int) -> None:
    """For small tables and large ones, with the number of deliveries known and unknown, next to
    levels and at them.
    """
    rng = np.random.default_rng(seed)
    piloted = int(rng.integers(1, 200))
    size = piloted + int(rng.choice([0, 3, 300, 40_000, 1_000_000]))
    rate = Fraction(int(rng.integers(1, 60)), 200)
    among = "delivered" if delivered else "all"
    depth = int(rng.integers(0, 4)) if statement in (Statement.FILE, Statement.REST) else 0
    depth = min(depth, piloted)
    seen = []
    for _ in range(12):
        counted = int(rng.integers(0, piloted + 1)) if delivered else piloted
        marked = int(rng.integers(0, min(counted, 12) + 1))
        known = not delivered or statement is Statement.REST or rng.random() < 0.5
        most = size - piloted + counted
        delivers = int(rng.integers(counted, most + 1)) if delivered and known else None
        seen.append((rate, counted, marked, delivers))
    finite = statement is not Statement.FRESH
    made = evidences(
        [Sighting(Limit(r, among=among), n, x, d) for r, n, x, d in seen],  # type: ignore[arg-type]
        Sized(statement, piloted, size if finite else None, depth),
    )
    again = tails.promised(tails.PromiseScope(str(statement), piloted, size, delivered, depth), seen)
    for pair, (claim, gate) in zip(made, again, strict=True):
        for maker, checker in ((pair.claim, claim), (pair.gate, gate)):
            assert math.isclose(maker.value, checker.value, rel_tol=1e-6, abs_tol=1e-300)
            levels = [Fraction(1, 20), Fraction(1, 3), Fraction(1, 1000)]
            if 0 < maker.value < 1:
                levels += [Fraction(maker.value), Fraction(maker.value) * (1 + Fraction(1, 10**12))]
            assert [maker.at_most(level) for level in levels] == [checker.at_most(level) for level in levels]


def test_a_tail_at_its_level_is_told_exactly() -> None:
    """Where the tail is the level, floats can't tell; integers do."""
    half = tails.binomial(5, Fraction(1, 2), 1)
    assert half.at_most(Fraction(6, 32))
    assert not half.at_most(Fraction(6, 32) - Fraction(1, 10**40))
    few = tails.hypergeometric(10, 4, 3, 0)
    exact = Fraction(math.comb(6, 3), math.comb(10, 3))
    assert few.at_most(exact)
    assert not few.at_most(exact - Fraction(1, 10**40))
    assert tails.hypergeometric(10, 9, 3, 0).at_most(Fraction(0))


@pytest.mark.parametrize("seed", range(12))
def test_procedures_decide_alike(seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = [f"p{n}" for n in range(int(rng.integers(1, 9)))]
    found = {}
    for name in names:
        two = [tails.binomial(60, Fraction(1, 5), int(rng.integers(0, 9))) for _ in range(2)]
        found[name] = (two[0], max(two, key=lambda one: one.value)) if rng.random() < 0.3 else (two[0], two[0])
    streams, left = [], Fraction(1)
    for _ in range(int(rng.integers(1, 4))):
        share = left * Fraction(int(rng.integers(0, 5)), 4)
        left -= share
        kept = [name for name in rng.permutation(names).tolist() if rng.random() < 0.8]
        streams.append((share, kept, bool(rng.random() < 0.4)))
    made = decide(
        {name: ClaimAndGate(*both) for name, both in found.items()},
        [Stream(share, tuple(kept), pooled) for share, kept, pooled in streams],
        1 - SURE,
    )
    again = tails.decided(found, streams, 1 - SURE)
    assert {name: (one.level, one.proven) for name, one in made.items()} == again


@pytest.mark.parametrize("seed", range(8))
def test_looks_at_every_moment_agree(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size, rate = int(rng.choice([1, 20, 400, 50_000])), float(rng.choice([0.01, 0.05, 0.3]))
    labels = (rng.random(min(size, 150)) < rate).tolist()
    sequence = AuditSequence(size, SURE)
    for at, label in enumerate(labels, start=1):
        sequence.observe(label)
        assert tails.audit_bound(size, labels[:at], SURE) == sequence.bound
    share = Fraction(str(rate))
    places = np.flatnonzero(labels).tolist()
    tail, again = sequential_tail(labels, rate), tails.at_every_moment(places, len(labels), share)
    assert math.isclose(tail.value, again.value, rel_tol=1e-9)
    assert tail.at_most(1 - SURE) is again.at_most(1 - SURE)
    first = first_look(rate, 0.95)
    assert tails.first_look(10**6, share, 1 - SURE) == first
    assert tails.first_look(first - 1, share, 1 - SURE) == max(1, first - 1)


@pytest.mark.parametrize("value", ["0.95", "1/3", "0", "1", "0.0001220703125"])
def test_fractions_are_written_so_that_they_can_be_read(value: str) -> None:
    assert Fraction(written(Fraction(value))) == Fraction(value)
