"""What is claimed, what it takes, and what it would take at worst."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from rrf_design.errors import InputError
from rrf_design.promises._forecast import _guessed_answers
from rrf_design.risk import (
    Among,
    Gate,
    Limit,
    Prospect,
    Scope,
    Statement,
    best_risk,
    forecast,
    least_labels,
    pilot_size,
)
from rrf_design.risk._arguments import choice, share, whole
from rrf_design.risk._counts import GUARD, BinomialTail, CertainTail, HypergeometricTail, PValue
from rrf_design.risk._statements import _forbidden_counts, _tails, _UnknownSize, _worst_tails, evidence, together

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


def test_known_numbers_delivered_are_used_and_none_proves_nothing() -> None:
    limit = Limit.of(0.05)
    scope = Scope(Statement.REST, 100, 1000)
    assert evidence(limit, scope, 80, 0, delivers=700).claim.value < 0.05
    with pytest.raises(InputError, match="can't be proven while their number is unknown"):
        evidence(limit, scope, 80, 0)
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
        (lambda: least_labels(0, 0.95), "risk is 0"),
        (lambda: best_risk(0, 0.95), "labels is 0"),
        (lambda: pilot_size(0, 0.05), "population is 0"),
        (lambda: forecast([9], 0.05, 0.95, population=100, check=1, panel=1, prospects=[]), "at least one prospect"),
        (
            lambda: forecast([101], 0.05, 0.95, population=100, check=1, panel=1, prospects=PROSPECTS),
            "labels is 101",
        ),
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


PROSPECTS = [Prospect(20.0, 0.001), Prospect(10.0, 0.01), Prospect(3.0, 0.03)]


@pytest.mark.parametrize(("risk", "labels"), [(0.05, 59), (0.02, 149), (0.01, 299)])
def test_clean_labels_needed(risk: float, labels: int) -> None:
    assert least_labels(risk, 0.95) == labels
    assert best_risk(labels, 0.95) <= risk < best_risk(labels - 1, 0.95)


@pytest.mark.parametrize("wrong", [1, 4, 20])
def test_more_wrong_items_need_more_labels(wrong: int) -> None:
    n = least_labels(0.05, 0.95, wrong=wrong)
    rate, level = share(0.05, "risk"), 1 - share(0.95, "confidence")
    assert BinomialTail(n, rate, wrong).at_most(level)
    assert not BinomialTail(n - 1, rate, wrong).at_most(level)


def test_pilot_size_follows_the_rule_of_thumb_and_never_exceeds_the_data() -> None:
    assert pilot_size(5000, 0.05) == 221
    assert pilot_size(20, 0.01) == 20


def test_a_pilot_pays_where_data_are_many_and_the_risk_is_not_tiny() -> None:
    found = forecast([100, 200, 400], 0.01, 0.95, population=1319, check=30, panel=25, prospects=PROSPECTS)
    assert [f.allowed_wrong for f in found] == [-1, -1, 0]
    assert not any(f.pays for f in found)
    # Below 299 labels nothing can be proven: not even the bound is below checking everything.
    assert [f.possible for f in found] == [False, False, True]
    small, large = forecast([100, 400], 0.05, 0.95, population=20_000, check=30, panel=25, prospects=PROSPECTS)
    assert small.pays
    assert large.pays
    assert large.least_cost <= large.expected_cost < large.check_everything


def test_the_estimate_is_between_the_bound_and_checking_what_is_left() -> None:
    for found in forecast(range(50, 1000, 50), 0.03, 0.9, population=1000, check=30, panel=25, prospects=PROSPECTS):
        assert found.least_cost - 1e-9 <= found.expected_cost
        assert found.expected_cost <= found.pilot_cost + (1000 - found.labels) * 30 + 1e-9


@pytest.mark.parametrize(("risk", "least"), [(0.1, 38), (0.05, 82), (0.02, 217)])
def test_the_first_look_is_where_a_proof_begins_to_be_possible(risk: float, least: int) -> None:
    from fractions import Fraction

    import numpy as np

    from rrf_design.risk import first_look, least_labels, sequential_tail

    assert first_look(risk, 0.95) == least > least_labels(risk, 0.95)
    for labels, proven in ((least - 1, False), (least, True)):
        assert sequential_tail(np.zeros(labels, dtype=bool), risk).at_most(Fraction(1, 20)) is proven


@pytest.mark.parametrize("accuracy", [0.6, 0.9, 0.99])
def test_right_as_often_as_guessed_and_wrong_together(accuracy: float) -> None:
    codes, gold = _guessed_answers(accuracy, 6, items=20_000)
    right = codes == gold[:, None]
    assert right.mean() == pytest.approx(accuracy, abs=0.01)
    both = (~right[:, 0] & ~right[:, 1]).mean()
    assert both > 1.3 * (1 - accuracy) ** 2
    assert (codes[~right] == 1).any()  # two wrong answers may be the same


def test_the_same_each_time_and_bad_guesses_are_one_line() -> None:
    assert (_guessed_answers(0.8, 3)[0] == _guessed_answers(0.8, 3)[0]).all()
    with pytest.raises(InputError, match=r"accuracy is 1\.5"):
        _guessed_answers(1.5, 3)
    with pytest.raises(InputError, match="nodes is 0"):
        _guessed_answers(0.5, 0)


@pytest.mark.parametrize("value", [0.95, np.float64(0.95), Decimal("0.95"), Fraction(19, 20)])
def test_a_share_is_the_decimal_that_was_written(value: float) -> None:
    assert share(value, "confidence") == Fraction(19, 20)


def test_arguments_may_be_of_any_equal_kind() -> None:
    assert share(0, "risk", zero=True) == 0
    assert whole(3.0, "labels") == 3
    assert whole(Fraction(6, 2), "labels", least=3, most=3) == 3
    assert choice(Among, "all", "among") is Among.ALL
    assert choice(Gate, Gate.LEAD, "gate") is Gate.LEAD


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: share(0, "risk"), "risk is 0, and should lie strictly between 0 and 1"),
        (lambda: share(True, "risk"), "risk should be a number between 0 and 1, not True"),
        (lambda: share("much", "risk"), "risk should be a number between 0 and 1, not 'much'"),  # type: ignore[arg-type]
        (lambda: whole(2.5, "labels"), "labels should be a whole number, not 2.5"),
        (lambda: whole(True, "labels"), "labels should be a whole number, not True"),
        (lambda: whole(float("inf"), "labels"), "labels should be a whole number, not inf"),
        (lambda: whole(5, "labels", most=4), "labels is 5, and should be between 0 and 4"),
        (lambda: choice(Among, "some", "among"), "among should be one of 'delivered', 'all', not 'some'"),
    ],
)
def test_bad_input_is_one_line_of_arguments(call: object, words: str) -> None:
    with pytest.raises(InputError) as caught:
        call()  # type: ignore[operator]
    assert str(caught.value) == words


def every_tail(rate: Fraction, drawn: int, seen: int, *, most: int, extra: int) -> list[HypergeometricTail]:
    """The slow path: one tail for each number of delivered items that the draw allows."""
    found = []
    for size in range(drawn, most + 1):
        wrong = int(rate * size) + 1 + extra
        if wrong <= size - (drawn - seen):
            found.append(HypergeometricTail(size, wrong, drawn, seen))
    return found


def worst_tail(rate: Fraction, drawn: int, seen: int, *, most: int, extra: int) -> PValue:
    return _worst_tails(rate, [_UnknownSize(drawn, seen, most, extra)])[0]


@pytest.mark.parametrize("rate", ["0.01", "0.05", "0.2", "1/3", "0.7"])
@pytest.mark.parametrize("seed", range(12))
def test_the_largest_of_all(rate: str, seed: int) -> None:
    rng = np.random.default_rng([seed, *map(ord, rate)])
    share = Fraction(rate)
    most = int(rng.integers(50, 900))
    drawn = int(rng.integers(20, min(most, 300)))
    about = float(share) * drawn
    for seen in sorted({int(rng.integers(0, drawn)), int(about), int(about / 2), int(min(drawn - 1, about * 1.5))}):
        for extra in sorted({0, seen, seen // 2}):
            listed = every_tail(share, drawn, seen, most=most, extra=extra)
            found = worst_tail(share, drawn, seen, most=most, extra=extra)
            largest = max((tail.value for tail in listed), default=0.0)
            assert found.value == pytest.approx(largest, rel=2 * GUARD, abs=1e-300)
            # What is decided is decided as all of them together would: at the largest tail itself,
            # and on both sides of it.
            for level in (Fraction(largest), Fraction(largest * (1 - 1e-3)), Fraction(largest * (1 + 1e-3))):
                if 0 < level < Fraction(99, 100):
                    assert found.at_most(level) is all(tail.at_most(level) for tail in listed)


def test_what_nobody_refutes_and_what_cannot_be() -> None:
    assert worst_tail(Fraction(1, 20), 100, 60, most=5000, extra=60).value == 1.0
    assert worst_tail(Fraction(1, 20), 100, 100, most=5000, extra=0).value == 1.0
    assert worst_tail(Fraction(1, 2), 10, 0, most=10, extra=3).value == 0.0


def test_many_tails_are_single_ones() -> None:
    sizes, wrong = np.array([400, 900, 5000]), np.array([40, 90, 700])
    for drawn, seen in ((100, 0), (100, 12), (300, 30), (390, 35), (390, 2)):
        listed = [HypergeometricTail(int(n), int(k), drawn, seen).value for n, k in zip(sizes, wrong, strict=True)]
        many = _tails(sizes, wrong, np.full(3, drawn), np.full(3, seen))
        assert many == pytest.approx(listed, rel=1e-9, abs=1e-300)


def test_far_counts_come_in_short_blocks() -> None:
    starts, ends = _forbidden_counts(50_000)
    assert starts[0] == 1
    assert ends[-1] == 50_000
    assert (starts[1:] == ends[:-1] + 1).all()
    assert (ends[:-1] <= np.maximum(starts[:-1] * 1.002, starts[:-1])).all()


def test_many_at_once_are_the_same_as_one_after_the_other() -> None:
    rng = np.random.default_rng(4)
    rate = Fraction(3, 20)
    asked = []
    for _ in range(60):
        drawn = int(rng.integers(10, 200))
        seen = int(rng.integers(0, drawn // 2))
        asked.append(_UnknownSize(drawn, seen, 1500 + drawn, int(rng.choice([0, seen, 3]))))
    found = _worst_tails(rate, [*asked, *asked])
    assert found[: len(asked)] == found[len(asked) :] == [_worst_tails(rate, [one])[0] for one in asked]
    assert any(isinstance(one, CertainTail) for one in found)
