"""Each statement keeps its own promise: the error of its test, summed over every outcome for every
truth.
"""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from rrf_design.errors import InputError
from rrf_design.risk import Among, Limit, Scope, Statement
from rrf_design.risk.counts import HypergeometricTail
from rrf_design.risk.statements import evidence, together

ALPHA = Fraction(1, 10)


def chance(population: int, wrong: int, drawn: int, seen: int) -> Fraction:
    if drawn - seen > population - wrong:
        return Fraction(0)
    ways = math.comb(wrong, seen) * math.comb(population - wrong, drawn - seen)
    return Fraction(ways, math.comb(population, drawn))


def holds(statement: Statement, population: int, drawn: int, wrong: int, seen: int, rate: Fraction) -> bool:
    """The statements as they are written down."""
    return {
        Statement.POLICY: wrong <= rate * population,
        Statement.FILE: wrong - seen <= rate * population,
        Statement.REST: wrong - seen <= rate * (population - drawn),
    }[statement]


@pytest.mark.parametrize("statement", [Statement.POLICY, Statement.FILE, Statement.REST])
@pytest.mark.parametrize("rate", ["0", "0.1", "0.2", "0.35"])
def test_no_truth_is_misclaimed_or_passed_too_often(statement: Statement, rate: str) -> None:
    """For every number of wrong items: claims that are false, and gates passed although the count
    is forbidden, together stay below α.
    """
    population, drawn = 60, 30
    limit = Limit.of(Fraction(rate), among=Among.ALL)
    found = [evidence(limit, Scope(statement, drawn, population), drawn, x) for x in range(drawn + 1)]
    some = 0
    base = population - drawn if statement is Statement.REST else population
    for wrong in range(population + 1):
        error = Fraction(0)
        for x in range(min(drawn, wrong) + 1):
            false_claim = found[x].claim.at_most(ALPHA) and not holds(
                statement, population, drawn, wrong, x, limit.share
            )
            false_gate = found[x].gate.at_most(ALPHA) and wrong > limit.share * base
            error += chance(population, wrong, drawn, x) * (false_claim or false_gate)
        some += error > 0
        assert error <= ALPHA
    assert some > 0 or rate == "0"


@pytest.mark.parametrize("statement", [Statement.FILE, Statement.REST])
@pytest.mark.parametrize("depth", [1, 3, 6])
def test_a_depth_makes_gates_easier_and_no_claim_false_too_often(statement: Statement, depth: int) -> None:
    """Below the depth's own forbidden count no claim is ever false; from there on, false claims and
    passed gates together stay below α.
    """
    population, drawn = 60, 30
    limit = Limit.of(0.2, among=Among.ALL)
    flat, deep = (
        [evidence(limit, Scope(statement, drawn, population, d), drawn, x) for x in range(drawn + 1)]
        for d in (0, depth)
    )
    assert sum(e.gate.at_most(ALPHA) for e in deep) >= sum(e.gate.at_most(ALPHA) for e in flat)
    first = int(limit.share * (population - drawn if statement is Statement.REST else population)) + 1
    for wrong in range(population + 1):
        error = Fraction(0)
        for x in range(min(drawn, wrong) + 1):
            false_claim = deep[x].claim.at_most(ALPHA) and not holds(
                statement, population, drawn, wrong, x, limit.share
            )
            false_gate = deep[x].gate.at_most(ALPHA) and wrong >= first + depth
            assert not (false_claim and deep[x].gate.at_most(ALPHA) and wrong < first + depth)
            error += chance(population, wrong, drawn, x) * (false_claim or false_gate)
        assert error <= ALPHA


def test_claims_are_as_strong_as_the_statement_is_weak() -> None:
    """(ii) is easier than (i); (iii) is harder than (ii)."""
    limit = Limit.of(0.05, among=Among.ALL)
    p = {
        statement: evidence(limit, Scope(statement, 200, 1319), 200, 5).claim.value
        for statement in (Statement.POLICY, Statement.FILE, Statement.REST)
    }
    assert p[Statement.FILE] <= p[Statement.POLICY]
    assert p[Statement.FILE] <= p[Statement.REST]


def test_a_gate_is_never_easier_than_its_claim() -> None:
    limit = Limit.of(0.1, among=Among.ALL)
    for statement in (Statement.FILE, Statement.REST):
        for x in range(12):
            found = evidence(limit, Scope(statement, 60, 300), 60, x)
            assert found.claim.value <= found.gate.value * (1 + 1e-12)


@pytest.mark.parametrize("statement", [Statement.POLICY, Statement.FILE])
def test_an_unknown_number_delivered_is_taken_at_its_worst(statement: Statement) -> None:
    """Against trying every possible number of delivered items."""
    population, piloted = 60, 25
    limit = Limit.of(0.15)
    for counted in (5, 12, 25):
        for x in range(5):
            found = evidence(limit, Scope(statement, piloted, population), counted, x).claim.value
            worst = 0.0
            for size in range(counted, population - (piloted - counted) + 1):
                wrong = int(limit.share * size) + 1 + (x if statement is Statement.FILE else 0)
                if wrong <= size - (counted - x):
                    worst = max(worst, HypergeometricTail(size, wrong, counted, x).value)
            assert found == pytest.approx(worst, rel=1e-9)


def test_blocks_of_counts_in_a_large_population_stay_on_the_safe_side() -> None:
    limit = Limit.of(0.05)
    population = 200_000
    blocks = evidence(limit, Scope(Statement.POLICY, 400, population), 300, 6).claim.value
    single = max(
        HypergeometricTail(size, size // 20 + 1, 300, 6).value for size in (319, 4_999, 79_999, 150_019, 199_900)
    )
    fresh = evidence(limit, Scope(Statement.FRESH, 400), 300, 6).claim.value
    assert single <= blocks * (1 + 1e-9)
    assert blocks <= 1.05 * fresh


def test_a_known_number_delivered_is_used() -> None:
    limit = Limit.of(0.05)
    scope = Scope(Statement.REST, 100, 1000)
    assert evidence(limit, scope, 80, 0, delivers=700).claim.value < 0.05
    with pytest.raises(InputError, match="can't be proven while their number is unknown"):
        evidence(limit, scope, 80, 0)


def test_nothing_delivered_proves_nothing() -> None:
    assert evidence(Limit.of(0.5), Scope(Statement.FRESH, 10), 0, 0).claim.value == 1.0


def test_several_limits_are_proven_together_or_not_at_all() -> None:
    scope = Scope(Statement.FILE, 60, 300)
    parts = [evidence(Limit.of(rate, among=Among.ALL), scope, 60, 1) for rate in (0.1, 0.2)]
    both = together(parts)
    assert both.claim.value == max(part.gate.value for part in parts)
    assert together(parts[:1]) is parts[0]


def test_several_limits_claim_nothing_that_one_of_them_would_not_claim() -> None:
    """The pilot holds 40 of 100 delivered rows where 10 were expected: the first forbidden count of
    the rest has fallen below the gate's, and with no wrong item seen a policy below the gate could
    be claimed falsely.
    """
    limit, scope = Limit.of(0.1), Scope(Statement.REST, 100, 1000)
    alone = evidence(limit, scope, 40, 0, delivers=100)
    assert alone.gate.at_most(ALPHA)
    assert not alone.claim.at_most(ALPHA)
    both = together([alone, evidence(Limit.of(0.2), scope, 40, 0, delivers=100)])
    assert both.gate.at_most(ALPHA)
    assert not both.claim.at_most(ALPHA)


def test_a_statement_by_its_name_is_that_statement() -> None:
    """A text equals a member without being it: tested by identity, 'policy' would have been taken
    for 'file'.
    """
    plain, named = Scope(Statement.POLICY, 60, 300), Scope("policy", 60, 300)  # type: ignore[arg-type]
    assert named == plain
    limits = Limit(Fraction(1, 10), among="all"), Limit.of(0.1, among=Among.ALL)  # type: ignore[arg-type]
    found = [evidence(limit, scope, 60, 3).claim for limit in limits for scope in (plain, named)]
    assert all(tail == found[0] for tail in found)


def test_a_limit_of_one_is_kept_by_whatever_is_not_all_wrong() -> None:
    """0.1 of all items with 0.9 of them checked at random: the others may all be wrong."""
    whole = Limit(Fraction(1), among=Among.ALL)
    assert whole == Limit(1.0, among=Among.ALL)  # type: ignore[arg-type]
    for scope in (Scope(Statement.FRESH, 20), Scope(Statement.POLICY, 20, 90)):
        assert evidence(whole, scope, 20, 19).claim.value == 0.0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Scope("all", 10, 90), "statement should be one of"),  # type: ignore[arg-type]
        (lambda: Scope(Statement.POLICY, 10, 90.5), "population should be a whole number"),  # type: ignore[arg-type]
        (lambda: Limit(Fraction(3, 2)), "risk is 3/2"),
        (lambda: Scope(Statement.POLICY, 10), "give population="),
        (lambda: Scope(Statement.POLICY, 10, 9), "population is 9, but 10"),
        (lambda: Scope(Statement.POLICY, 10, 90, 2), "a depth of 2 means nothing"),
        (lambda: Scope(Statement.FILE, 10, 90, 11), "depth is 11"),
        (lambda: Limit.of(1.0), "risk is 1.0"),
        (lambda: Limit.of(-0.1), "risk is -0.1"),
        (lambda: Limit.of(0.1, among="some"), "among should be one of 'delivered', 'all', not 'some'"),
    ],
)
def test_bad_input_is_one_line(call: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()  # type: ignore[operator]


@pytest.mark.parametrize("depth", [0, 2])
def test_rest_among_delivered_has_a_gate_that_no_draw_moves(depth: int) -> None:
    """How many delivered rows the pilot holds is drawn as well.

    Some threshold of K, the same for every draw, separates policies that are never claimed falsely
    from those that are claimed or passed with probability at most α, whatever that number came to.
    """
    population, piloted, size = 60, 30, 40
    limit, scope = Limit.of(Fraction("0.2")), Scope(Statement.REST, piloted, population, depth)
    draws = range(piloted - (population - size), piloted + 1)
    found = {m: [evidence(limit, scope, m, x, size) for x in range(m + 1)] for m in draws}
    gates = set()
    for wrong in range(size + 1):
        false_claims = {
            (m, x)
            for m in draws
            for x in range(max(0, m - size + wrong), min(m, wrong) + 1)
            if found[m][x].claim.at_most(ALPHA) and wrong - x > limit.share * (size - m)
        }
        if not false_claims and not gates:
            continue
        gates.add(wrong)
        for m in draws:
            error = sum(
                chance(size, wrong, m, x)
                for x in range(min(m, wrong) + 1)
                if (m, x) in false_claims or found[m][x].gate.at_most(ALPHA)
            )
            assert error <= ALPHA
    assert gates
