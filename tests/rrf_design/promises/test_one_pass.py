"""Peel, then prove: what a pass asks for, what it fixes, and that it keeps its promise."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rrf_design.promises._one_pass import Event, OnePass, Stage
from rrf_design.risk import boundary

Codes = NDArray[np.int64]


def digest_of(picks: Mapping[int, int], withheld: Sequence[int]) -> str:
    return json.dumps([sorted(picks.items()), list(withheld)])


def a_pass(answers: Codes, *, risk: str = "0.05", seed: int = 0, **more: Any) -> OnePass:
    return OnePass(answers, risk=Fraction(risk), confidence=Fraction(19, 20), seed=seed, digest=digest_of, **more)


def right(answers: Codes, gold: Codes, place: int) -> list[int]:
    return [int(gold[place])] if (answers[place] == gold[place]).any() and gold[place] >= 0 else []


def walk(made: OnePass, answers: Codes, gold: Codes, *, most: int | None = None) -> OnePass:
    """Label what is asked for, until nothing is."""
    while looks := made.next().rows:
        for place in looks:
            if most is not None and made.looks >= most:
                return made
            made.label({place: right(answers, gold, place)})
    return made


def crowd(rng: np.random.Generator, rows: int, accuracy: Sequence[float]) -> tuple[Codes, Codes]:
    """Answers of independent nodes; wrong ones scatter over three values."""
    gold = np.zeros(rows, dtype=np.int64)
    answers = np.stack([np.where(rng.random(rows) < a, 0, rng.integers(1, 4, rows)) for a in accuracy], axis=1)
    return answers, gold


def left_wrong(made: OnePass, gold: Codes) -> int:
    """Of the rows that nobody looked at, and that are handed over."""
    gone = {*made.looked, *made.withheld, *made.settled}
    return sum(made.picks.code[place] != gold[place] for place in range(made.rows) if place not in gone)


def test_doubtful_rows_come_first_and_the_rest_is_proven() -> None:
    answers, gold = crowd(np.random.default_rng(1), 300, [0.9, 0.85, 0.85, 0.8])
    made = a_pass(answers)
    first = made.next()
    assert first.stage is Stage.DOUBTFUL
    assert first.answers_may_be_shown
    doubts = made.picks.doubt
    assert doubts[list(first.rows)].min() >= np.sort(doubts)[-len(first.rows)]
    walk(made, answers, gold)
    assert made.reached
    assert made.next().stage is Stage.DONE
    assert made.looks < 150
    assert left_wrong(made, gold) <= made.allowed == 15


def test_the_boundary_stops_a_pass_and_nothing_else_does() -> None:
    answers, gold = crowd(np.random.default_rng(2), 200, [0.9, 0.9, 0.9])
    made = walk(a_pass(answers), answers, gold)
    assert made.frozen is not None
    drawn = made.counted()
    wrong = [made.wrong[place] for place in drawn]
    limits = boundary(len(made.frozen.untouched), made.allowed, 0.05)
    assert limits.stops(len(drawn), sum(wrong))
    assert not any(limits.stops(n, sum(wrong[:n])) for n in range(len(drawn)))
    assert [made.frozen.untouched[at] for at in made.frozen.order[: len(drawn)]] == list(drawn)


@pytest.mark.parametrize("wrong", [0, 3, 16, 60, 250])
def test_where_answers_say_nothing_one_random_sequence_is_all_it_takes(wrong: int) -> None:
    """All rows alike, however many are wrong: no row is looked at before the random ones."""
    answers, gold = np.zeros((300, 3), dtype=np.int64), np.zeros(300, dtype=np.int64)
    gold[np.random.default_rng(wrong).permutation(300)[:wrong]] = 5
    made = walk(a_pass(answers), answers, gold)
    assert not made.peeled
    assert made.frozen is not None
    limits = boundary(300, 15, 0.05)
    found = np.cumsum([0, *(gold[made.frozen.untouched[at]] != 0 for at in made.frozen.order)])
    assert made.looks == next(n for n, count in enumerate(found.tolist()) if limits.stops(n, count))


def test_a_pass_that_is_killed_anywhere_ends_as_the_one_that_was_not() -> None:
    answers, gold = crowd(np.random.default_rng(3), 40, [0.8, 0.7, 0.7])
    whole: list[Event] = []
    walk(a_pass(answers, risk="0.1", record=whole.append), answers, gold)
    for kept in range(len(whole)):
        again = json.loads(json.dumps(whole[:kept]))
        walk(a_pass(answers, risk="0.1", record=again.append, history=list(again)), answers, gold)
        assert again == json.loads(json.dumps(whole))


def test_labels_of_random_rows_change_nothing_that_was_frozen() -> None:
    answers, gold = crowd(np.random.default_rng(4), 150, [0.75, 0.7, 0.65])
    made = a_pass(answers, risk="0.1")
    while made.frozen is None:
        for place in made.next().rows:
            if made.frozen is None:
                made.label({place: right(answers, gold, place)})
    picks, order = made.picks.code.copy(), made.frozen.order
    walk(made, answers, gold)
    assert (made.picks.code == picks).all()
    assert made.frozen.order == order


def test_labels_teach_whom_to_believe() -> None:
    rng = np.random.default_rng(5)
    gold = np.zeros(400, dtype=np.int64)
    good = np.where(rng.random(400) < 0.97, 0, 1)
    hard = rng.random(400) < 0.35
    answers = np.stack([good, np.where(hard, 2, 0), np.where(hard, 2, 0)], axis=1)
    made = a_pass(answers)
    assert made.picks.code[int(np.flatnonzero(hard & (good == 0))[0])] == 2  # two against one, untaught
    walk(made, answers, gold)
    assert made.reached
    assert made.looks < 200


def test_rows_without_an_answer_are_looked_at_first_or_handed_over_empty() -> None:
    answers, gold = crowd(np.random.default_rng(6), 200, [0.95, 0.95, 0.95])
    answers[:12] = -1
    made = a_pass(answers)
    seen: list[int] = []
    while len(seen) < 12:
        seen += (rows := made.next().rows)
        for place in rows:
            made.label({place: []})
    assert set(seen[:12]) == set(range(12))
    tight = walk(a_pass(answers, labels=75), answers, gold)
    assert tight.reached
    assert tight.looks <= 75
    assert set(tight.withheld) <= set(range(12))
    assert tight.withheld
    assert tight.allowed == int(Fraction("0.05") * (200 - len(tight.withheld)))


def test_a_budget_that_ends_too_early_reaches_nothing() -> None:
    answers, gold = crowd(np.random.default_rng(7), 200, [0.9, 0.9])
    made = walk(a_pass(answers, labels=20), answers, gold)
    assert made.looks == 20
    assert not made.reached
    assert made.next().stage is Stage.SPENT


def test_rows_that_nobody_can_tell_leave_the_denominator_before_the_freeze_and_count_as_wrong_after() -> None:
    answers, _ = crowd(np.random.default_rng(8), 100, [0.6, 0.6, 0.6])
    made = a_pass(answers, risk="0.1")
    first = made.next().rows[0]
    made.label({first: None})
    assert made.withheld == (first,)
    assert made.allowed == 9
    flat = np.zeros((100, 2), dtype=np.int64)
    made = a_pass(flat, risk="0.1")
    drawn = made.next().rows[0]
    made.label({drawn: None})
    assert made.withheld == ()
    assert made.wrong[drawn]
    assert made.allowed == 10


def test_what_a_check_settles_is_never_looked_at_and_never_wrong() -> None:
    answers, gold = crowd(np.random.default_rng(9), 120, [0.8, 0.8])
    made = walk(a_pass(answers, risk="0.1", settled=range(100)), answers, gold)
    assert not made.looked.keys() & set(range(100))
    assert made.allowed == 12
    assert made.looks <= 20 - 12
    assert made.reached


def test_labels_known_from_before_cost_nothing_and_prove_nothing() -> None:
    answers, gold = crowd(np.random.default_rng(10), 150, [0.9, 0.9, 0.9])
    made = a_pass(answers, risk="0.1")
    for place in range(30):
        made.label({place: right(answers, gold, place)}, free=True)
    walk(made, answers, gold)
    assert made.looks < len(made.looked)
    assert not set(made.counted()) & set(range(30))


def unanimous(rng: np.random.Generator, rows: int, wrong: int) -> tuple[Codes, Codes]:
    """So many rows on which all nodes say the same, and it is wrong."""
    answers, _ = crowd(rng, rows, [0.9, 0.9, 0.9])
    gold = np.zeros(rows, dtype=np.int64)
    places = rng.permutation(rows)[:wrong]
    answers[places], gold[places] = 0, 5
    return answers, gold


def copies(rng: np.random.Generator, rows: int, wrong: int) -> tuple[Codes, Codes]:
    """Five copies of one node beside two others, unanimous on some wrong rows."""
    answers, gold = unanimous(rng, rows, wrong)
    return np.concatenate([np.repeat(answers[:, :1], 5, axis=1), answers[:, 1:]], axis=1), gold


def broken(make: Any, *, rows: int, wrong: int, risk: str, times: int) -> float:
    """The share of tables whose promise is false."""
    found = 0
    for number in range(times):
        answers, gold = make(np.random.default_rng([11, number]), rows, wrong)
        made = walk(a_pass(answers, risk=risk, seed=number), answers, gold)
        found += left_wrong(made, gold) > made.allowed
    return found / times


@pytest.mark.parametrize(
    ("make", "rows", "wrong", "risk"),
    [(unanimous, 50, 3, "0.04"), (unanimous, 50, 1, "0.01"), (unanimous, 40, 9, "0.1"), (copies, 40, 5, "0.1")],
)
def test_the_promise_is_kept_where_errors_hide_behind_agreement(make: Any, rows: int, wrong: int, risk: str) -> None:
    assert broken(make, rows=rows, wrong=wrong, risk=risk, times=40) <= 0.19  # 5 % and four deviations


def test_no_rows_and_no_answers_are_no_faults() -> None:
    empty = a_pass(np.zeros((0, 3), dtype=np.int64))
    assert empty.next().stage is Stage.DONE
    mute: Codes = np.zeros((3, 0), dtype=np.int64)
    made = a_pass(mute)
    places: Iterable[int] = made.next().rows
    assert set(places) <= {0, 1, 2}
