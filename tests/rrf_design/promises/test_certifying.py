"""Premises for what a pilot proves, its tails, and whole procedures at their level."""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from math import comb
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rrf_design import certify, verify
from rrf_design.checker import _tails as tails
from rrf_design.checker._forms import written
from rrf_design.checker.document import content_digest
from rrf_design.checker.premises import rate_above
from rrf_design.errors import InputError, Refused
from rrf_design.promises import PilotSettings
from rrf_design.promises._premise import _with_pilot_of_table, premise_summary, with_pilot
from rrf_design.risk import (
    Among,
    AuditSequence,
    Limit,
    Replay,
    Scope,
    Statement,
    Stratum,
    Stream,
    draw_order,
    first_look,
    fit_crowd,
    fronts,
    lead_family,
    rate_bound,
    replay,
    sequential_tail,
    staggered,
    stratified_order,
    stratified_risk,
)
from rrf_design.risk import Scope as Sized
from rrf_design.risk._policies import decide
from rrf_design.risk._statements import ClaimAndGate, Sighting, evidence, evidences
from rrf_design.tables._structures import certify_dataset


@pytest.fixture
def made(make_world: Any) -> Any:
    world = make_world(items=100, wrong=0.15)
    policy = world.document(PilotSettings(60, 0.3))
    name = next(item for item in world.dataset if item not in policy["drawn"])
    return world, policy, name, certify(world.dataset.item(name).problem)


def test_the_bounded_probability_that_the_premise_fails(made: Any) -> None:
    world, policy, name, plain = made
    found = with_pilot(plain, policy, recipe_digest=world.dataset.recipe.digest, item=name)
    section = found.document["pilot"]
    marks = policy["wrong_answers"]["by_node"]
    failed = sum(sum(marks[node][at] == "1" for node in marks) > 1 for at in range(60))
    assert section["more_than_k"] == failed > 0
    assert section["bound"] == rate_bound(60, failed, 0.95)
    assert f"wrong in {failed} of 60 items drawn from" in section["sentence"]
    assert "table.jsonl (100 items)" in section["sentence"]
    checked = verify(found)
    assert checked.valid, checked.reason
    assert any("drawn items recounted" in check.detail for check in checked.checks)
    assert verify(plain).valid  # and nothing is claimed without a pilot


FORGERIES: dict[str, Callable[[dict[str, Any]], object]] = {
    "a smaller bound": lambda s: s.update(bound=s["bound"] * 0.9),
    "fewer failures": lambda s: s.update(more_than_k=s["more_than_k"] - 1),
    "another draw": lambda s: s["places"].reverse(),
    "another seed": lambda s: s.update(seed=s["seed"] + 1),
    "a mark": lambda s: s["wrong"].update({next(iter(s["wrong"])): "0" * 60}),
    "a node less": lambda s: s["wrong"].pop(next(iter(s["wrong"]))),
    "marks of another kind": lambda s: s["wrong"].update({next(iter(s["wrong"])): "x" * 60}),
    "another table": lambda s: s.update(table="another"),
    "more confidence": lambda s: s.update(confidence=0.99),
    "a key more": lambda s: s.update(more=1),
    "no population": lambda s: s.update(size=0),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_premise_is_refused(made: Any, forgery: str) -> None:
    _, policy, _, plain = made
    document = copy.deepcopy(with_pilot(plain, policy).document)
    FORGERIES[forgery](document["pilot"])
    document["digest"] = content_digest(document)
    checked = verify(replace(plain, document=document))
    assert not checked.valid
    assert "pilot" in checked.reason


def test_what_a_pilot_does_not_speak_of_is_refused(made: Any) -> None:
    _, policy, name, plain = made
    with pytest.raises(Refused, match="no evidence for itself"):
        with_pilot(plain, policy, item=policy["drawn"][0])
    with pytest.raises(Refused, match="recipe has changed"):
        with_pilot(plain, policy, recipe_digest="0" * 64, item=name)
    with pytest.raises(Refused):
        with_pilot(plain, {**policy, "risk": 0.01})
    import rrf_design as rrf

    other = certify(
        rrf.Problem(nodes=[{"id": "total"}, {"id": "x"}], relations=[{"id": "r", "tail": "total", "head": "x"}])
    )
    with pytest.raises(InputError, match="node 'x'"):
        with_pilot(other, policy)


def test_a_table_gets_a_premise_for_each_structure(made: Any) -> None:
    world, policy, _, _ = made
    found = _with_pilot_of_table(certify_dataset(world.dataset), policy)
    assert len(found.speakers) == 1
    for speaker in found.speakers:
        assert verify(speaker.result).valid
        assert speaker.result.document["pilot"]["more_than_k"] > 0
    told = premise_summary(found)
    assert told["bound"] == found.worst.result.document["pilot"]["bound"]
    assert told["sentence"].endswith(found.worst.result.document["pilot"]["sentence"])
    everything = {**policy, "drawn": list(world.dataset)}
    with pytest.raises(Refused, match="their truth is known"):
        _with_pilot_of_table(certify_dataset(world.dataset), everything)


@pytest.fixture
def run_in() -> Any:
    def make(folder: Any, labels: int) -> tuple[Any, Any]:
        from rrf_design.promises import gold_truths, plan_pilot, policy_document, run_pilot
        from rrf_design.questions import dataset
        from rrf_design.questions.answers import RecordedAnswers

        found = dataset(folder / "rrf.toml")
        with RecordedAnswers(found, folder / "answers.jsonl") as answers:
            plan = plan_pilot(found, answers, PilotSettings(labels, 0.3))
        truths, _ = gold_truths(plan)
        return found, policy_document(run_pilot(plan, truths, truth_source="gold column 'booked'"))

    return make


@pytest.fixture
def mixed(tmp_path: Any) -> Any:
    """Two kinds of rows: printed ones, never wrong and asked twice; a few handwritten ones, asked
    three times and always wrong at all of them.
    """
    import json

    (tmp_path / "rrf.toml").write_text(
        """[data]
table = "table.jsonl"
id = "no"
gold = "booked"

[answer]
of = "total"
k = 1

[[ask]]
id = "total"
prompt = "{{ text }}"
cost = 1.0

[[ask]]
id = "reworded"
like = "total"
prompt = "{{ text }} again"
cost = 1.0

[[ask]]
id = "enlarged"
like = "total"
prompt = "{{ text }} enlarged"
when = "{{ hand }}"
cost = 1.0

[[check]]
id = "clerk"
of = "total"
by = { person = "{{ no }}?" }
cost = 30.0
"""
    )
    rows = [
        {"no": f"i{n}", "text": f"item {n}", "booked": n + 10, "hand": "yes" if n % 10 == 0 else ""} for n in range(120)
    ]
    nodes = ("total", "reworded", "enlarged")
    said = [
        {"id": row["no"], "node": node, "text": str(int(str(row["booked"])) + (5 if row["hand"] else 0))}
        for row in rows
        for node in nodes[: 3 if row["hand"] else 2]
    ]
    for name, lines in (("table", rows), ("answers", said)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return tmp_path


def test_a_kind_of_item_is_judged_by_its_own_kind(mixed: Any, run_in: Any) -> None:
    """Over all items the premise fails in one of ten.

    Of the handwritten ones it always fails, of the printed ones never; each certificate says its
    own, and a common rate, which would be false for the one and too much for the other, is in
    neither.
    """
    table, policy = run_in(mixed, 60)
    drawn = [int(name[1:]) for name in policy["drawn"]]
    hand = sum(n % 10 == 0 for n in drawn)
    assert 0 < hand < 20
    marks = policy["wrong_answers"]["by_node"]
    assert [mark == "-" for mark in marks["enlarged"]] == [n % 10 != 0 for n in drawn]
    assert (
        policy["wrong_answers"]["more_than"][1]["items"] == hand
    )  # a question that was not asked is not a wrong answer
    node = policy["wrong_answers"]["nodes"][2]
    assert (node["wrong"], node["bound"]) == (hand, 1.0)
    found = _with_pilot_of_table(certify_dataset(table), policy)
    told = {len(one.problem.nodes): one.result.document["pilot"] for one in found.speakers}
    assert (told[3]["more_than_k"], told[3]["bound"]) == (hand, 1.0)
    assert (told[2]["more_than_k"], told[2]["bound"]) == (0, rate_bound(60 - hand, 0, 0.95))
    assert f"in 0 of {60 - hand} items that are asked the same, among 60 drawn from" in told[2]["sentence"]
    for one in found.speakers:
        checked = verify(one.result)
        assert checked.valid, checked.reason
    summary = premise_summary(found)
    assert (summary["bound"], summary["alike"]) == (1.0, hand)
    assert "of the weakest of 2 structures" in summary["sentence"]
    forged = copy.deepcopy(found.speakers[0].result.document)
    first = next(iter(forged["pilot"]["wrong"]))
    forged["pilot"]["wrong"][first] = forged["pilot"]["wrong"][first].replace("1", "-")
    forged["digest"] = content_digest(forged)
    assert not verify(replace(found.speakers[0].result, document=forged)).valid


def test_an_item_is_judged_by_its_own_kind_too(mixed: Any, run_in: Any) -> None:
    """Without the table at hand the marks say which items are asked at least the same."""
    table, policy = run_in(mixed, 60)
    name = next(n for n in table if n not in policy["drawn"] and int(n[1:]) % 10 == 0)
    plain = certify(table.item(name).problem)
    assert with_pilot(plain, policy, item=name).document["pilot"]["bound"] == 1.0


def test_a_kind_that_was_never_drawn_is_not_promised_anything(mixed: Any, run_in: Any) -> None:
    table, policy = run_in(mixed, 60)
    name = next(n for n in table if n not in policy["drawn"])
    found = with_pilot(certify(table.item(name).problem), policy, item=name, like=[name])
    assert found.document["pilot"]["bound"] == 1.0
    assert "says nothing about its premise" in found.document["pilot"]["sentence"]
    assert verify(found).valid


def test_a_kind_that_was_piloted_whole_needs_no_premise(mixed: Any, run_in: Any) -> None:
    """Its truth is known; the other kind still gets its own."""
    table, policy = run_in(mixed, 60)
    kept = [n for n in table if int(n[1:]) % 10 or n in policy["drawn"]]
    found = _with_pilot_of_table(certify_dataset(table.only(kept)), policy, whole=table)
    sections = ["pilot" in one.result.document for one in found.speakers]
    assert sorted(sections) == [False, True]
    assert premise_summary(found)["more_than_k"] == 0


def test_a_pilot_of_another_table_says_nothing_about_this_one(made: Any) -> None:
    """Next month's rows with the same ids, or drawn items under other names: neither was
    piloted.
    """
    from rrf_design.promises._pilot_design import Population

    world, policy, name, plain = made
    here = Population.of(world.dataset)
    digest = world.dataset.recipe.digest
    with_pilot(plain, policy, recipe_digest=digest, population=here, item=name)
    others = [*policy["drawn"][1:], policy["drawn"][0]]
    with pytest.raises(Refused, match="was drawn, and its draw is of"):
        with_pilot(plain, {**policy, "drawn": others}, recipe_digest=digest, population=here, item=name)
    path = world.folder / "table.jsonl"
    path.write_text(path.read_text().replace("item ", "invoice "))
    later = world.dataset
    assert list(later) == list(here.ids)
    assert later.recipe.digest == digest
    with pytest.raises(Refused, match="the table has changed since the pilot"):
        with_pilot(plain, policy, recipe_digest=digest, population=Population.of(later), item=name)
    with pytest.raises(Refused, match="the table has changed since the pilot"):
        _with_pilot_of_table(certify_dataset(later), policy)


@pytest.mark.parametrize(("size", "drawn"), [(12, 5), (40, 20)])
def test_the_premise_is_bounded_in_the_table_and_not_in_what_a_pilot_leaves_over(size: int, drawn: int) -> None:
    """Every number of failing items and every draw: the share in the table is covered; that among
    the rows left over, which docs/promises.md does not promise, is not.
    """
    bounds = [Fraction(rate_above(drawn, seen, 0.95)) for seen in range(drawn + 1)]

    def covered(failing: int, *, over: bool) -> Fraction:
        ways = {x: comb(failing, x) * comb(size - failing, drawn - x) for x in range(min(drawn, failing) + 1)}
        share = {x: Fraction(failing - x, size - drawn) if over else Fraction(failing, size) for x in ways}
        return Fraction(sum(count for x, count in ways.items() if bounds[x] >= share[x]), comb(size, drawn))

    assert min(covered(failing, over=False) for failing in range(size + 1)) >= Fraction(19, 20)
    assert min(covered(failing, over=True) for failing in range(size + 1)) < Fraction(3, 5)


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
    few = tails._hypergeometric(10, 4, 3, 0)
    exact = Fraction(math.comb(6, 3), math.comb(10, 3))
    assert few.at_most(exact)
    assert not few.at_most(exact - Fraction(1, 10**40))
    assert tails._hypergeometric(10, 9, 3, 0).at_most(Fraction(0))


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


SIZE, LABELS, RISK, TIMES = 200, 70, Fraction(7, 100), 2000
SURE_WHOLE_PROCEDURES = Fraction(9, 10)
ALLOWED = 0.1 + 3 * (0.1 * 0.9 / TIMES) ** 0.5
LABELS_OF = ["rare" if at % 8 == 0 else "common" for at in range(SIZE)]


def answers_of(world: str) -> NDArray[np.int64]:
    """Codes of four nodes; 0 is the truth."""
    draw = np.random.default_rng(7)
    codes = np.where(draw.random((SIZE, 4)) < 0.1, draw.integers(1, 9, size=(SIZE, 4)), 0)
    if world == "place":  # the first rows are wrong in every answer, and all answers agree
        codes[: int(0.072 * SIZE) + 1] = 5
    elif world == "unit":  # two nodes are one model, and wrong together
        both = draw.random(SIZE) < 0.1
        codes[both, :2] = 6
    else:  # all that is wrong is in a rare stratum
        rare = np.array([label == "rare" for label in LABELS_OF])
        codes[rare & (draw.random(SIZE) < 0.6)] = 7
    return codes


@cache
def board(world: str) -> tuple[NDArray[np.int64], list[Replay], NDArray[np.bool_], NDArray[np.float64]]:
    codes = answers_of(world)
    ladders = lead_family(4, [range(4), [3, 2, 1, 0]])
    played = replay(ladders, codes, prices=[1, 1, 2, 4], check=30.0, gold=np.zeros(SIZE, dtype=int))
    return codes, played, np.column_stack([p.wrong for p in played]), np.column_stack([p.cost for p in played])


def orders(world: str, limit: Limit, scope: Scope, *, count: int = 5) -> list[tuple[Stream, ...]]:
    """From draws of their own, as a pilot makes them for a finite statement."""
    codes, played, _, _ = board(world)
    found = []
    for seed in range(count):
        aside = draw_order(SIZE, seed, digest="order of tests")[:60]
        away = [
            Replay(p.name, p.cost[aside], p.delivered[aside], p.wrong[aside], p.checked[aside], p.value[aside])
            for p in played
        ]
        chains = fronts(fit_crowd(codes[aside]), codes[aside], away, prices=[1, 1, 2, 4])
        named = [[str(place) for place in chain] for chain in chains]
        found.append(staggered(named, limit, scope, confidence=SURE_WHOLE_PROCEDURES))
    return found


def broken(world: str, statement: Statement, *, strata: bool = False) -> tuple[int, int]:
    """(false promises, promises) over the seeds."""
    _, _, wrong, cost = board(world)
    limit = Limit(RISK, among=Among.ALL)
    if strata:
        taken = Counter(LABELS_OF[at] for at in stratified_order(LABELS_OF, 0, digest="x")[:LABELS])
        parts = [Stratum(count, taken[label]) for label, count in sorted(Counter(LABELS_OF).items())]
        limit = Limit(stratified_risk(parts, RISK), among=Among.ALL)
    scope = Scope(statement, LABELS, None if statement is Statement.FRESH else SIZE)
    ways = orders(world, limit, scope)
    known: dict[int, ClaimAndGate] = {}
    totals, false, made = wrong.sum(axis=0), 0, 0

    def weighed(count: int) -> ClaimAndGate:
        if count not in known:
            known[count] = evidence(limit, scope, LABELS, count)
        return known[count]

    for seed in range(TIMES):
        order = stratified_order(LABELS_OF, seed, digest="x") if strata else draw_order(SIZE, seed, digest="x")
        pilot = order[:LABELS]
        counts, price = wrong[pilot].sum(axis=0), cost[pilot].mean(axis=0)
        streams = ways[seed % len(ways)]
        tested = {name: weighed(int(counts[int(name)])) for stream in streams for name in stream.names}
        proven = [int(name) for name, told in decide(tested, streams, 1 - SURE_WHOLE_PROCEDURES).items() if told.proven]
        if proven:
            chosen = min(proven, key=lambda place: float(price[place]))
            left = int(totals[chosen]) - (int(counts[chosen]) if statement in (Statement.FILE, Statement.REST) else 0)
            made += 1
            false += left > RISK * (SIZE - LABELS if statement is Statement.REST else SIZE)
    return false, made


@pytest.mark.parametrize("world", ["place", "unit", "stratum"])
@pytest.mark.parametrize("statement", list(Statement))
def test_a_pilot_is_false_no_more_often_than_it_may_be(world: str, statement: Statement) -> None:
    rates = board(world)[2].mean(axis=0)
    assert float(rates.max()) > RISK  # there is something to be wrong about
    false, made = broken(world, statement)
    assert false / TIMES <= ALLOWED, f"{false} of {made}"


def test_a_stratified_pilot_too() -> None:
    false, made = broken("stratum", Statement.FRESH, strata=True)
    assert false / TIMES <= ALLOWED, f"{false} of {made}"


@pytest.mark.parametrize("wrong", [1, 9])
def test_an_audit_that_stops_when_it_likes_the_bound_is_false_no_more_often_than_it_may_be(wrong: int) -> None:
    """The wrong ones stand first in the table; the auditor stops at the smallest bound that any
    moment shows.
    """
    size, drawn, false = 60, 40, 0
    for seed in range(TIMES):
        sequence, least = AuditSequence(size, 0.9), size
        for place in draw_order(size, seed, digest="audit")[:drawn]:
            sequence.observe(place < wrong)
            least = min(least, sequence.bound)
        false += least < wrong
    assert false / TIMES <= ALLOWED
