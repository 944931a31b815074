"""The vectorised replay against its slow, obvious twin: one item, one answer after another."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from rrf_design.errors import InputError
from rrf_design.risk import UNREADABLE, Gate, Ladder, Last, dilute, lead_family, replay


def plain(
    ladder: Ladder, said: list[int], gold: int, prices: list[float], check: float
) -> tuple[float, bool, bool, bool]:
    """Cost, delivered, wrong, checked of one item.

    Stops where no completion of the answers could change the outcome.
    """
    cost, votes = 0.0, Counter[int]()
    for asked, node in enumerate(ladder.order[: ladder.within], start=1):
        cost += prices[node]
        if said[node] != UNREADABLE:
            votes[said[node]] += 1
        left = ladder.within - asked
        ranked = votes.most_common()
        top = ranked[0][1] if ranked else 0
        second = ranked[1][1] if len(ranked) > 1 else 0
        if ladder.gate is Gate.LEAD:
            accepted, hopeless = top - second >= ladder.number, top - second + left < ladder.number
        else:
            accepted, hopeless = top >= ladder.within - ladder.number, top + left < ladder.within - ladder.number
        if accepted:
            return cost, True, ranked[0][0] != gold, False
        if hopeless:
            break
    if ladder.last is Last.GOLD:
        return cost + check, True, False, True
    return cost, False, False, False


@pytest.mark.parametrize("last", list(Last))
@pytest.mark.parametrize("values", [2, 4])
def test_every_ladder_agrees_with_its_twin(last: Last, values: int) -> None:
    rng = np.random.default_rng(values)
    answers = rng.integers(-1, values, size=(40, 6))
    gold = rng.integers(-2, values, size=40)
    prices = [1.0, 1.0, 2.0, 2.0, 8.0, 8.0]
    ladders = lead_family(6, [range(6), range(5, -1, -1), [2, 0, 4, 1, 3, 5]], last=last)
    assert len({ladder.name for ladder in ladders}) == len(ladders)
    for ladder, found in zip(ladders, replay(ladders, answers, prices=prices, check=30.0, gold=gold), strict=True):
        expected = [plain(ladder, row.tolist(), int(g), prices, 30.0) for row, g in zip(answers, gold, strict=True)]
        told = list(
            zip(
                found.cost.tolist(),
                found.delivered.tolist(),
                found.wrong.tolist(),
                found.checked.tolist(),
                strict=True,
            )
        )
        assert told == expected


def test_nothing_is_accepted_that_nobody_said() -> None:
    silent = np.full((3, 4), UNREADABLE)
    for found in replay(lead_family(4, [range(4)]), silent, prices=np.ones(4), check=5.0, gold=np.zeros(3, dtype=int)):
        assert found.checked.all()
        assert not found.wrong.any()


def test_giving_up_early_saves_calls_and_changes_no_outcome() -> None:
    """A lead of four within four is lost with the first disagreement: two calls are paid, not
    four.
    """
    (found,) = replay([Ladder((0, 1, 2, 3), Gate.LEAD, 4, 4)], [[0, 1, 0, 0]], prices=np.ones(4), check=10.0)
    assert found.cost.tolist() == [12.0]


@pytest.mark.parametrize("seed", range(3))
def test_rungs_one_after_the_other_are_the_plain_rule(seed: int) -> None:
    """Ask T answers, count the largest camp, accept or go on: slowly, and without stopping
    early.
    """
    draw = np.random.default_rng(seed)
    codes = draw.integers(-1, 3, size=(300, 7))
    rungs = ((2, 0), (4, 1), (7, 2))
    ladder = Ladder((0, 1, 2, 3, 4, 5, 6), Gate.EXPLAINED, 2, 7, earlier=rungs[:2])
    (found,) = replay([ladder], codes, prices=np.ones(7), check=100.0, gold=np.zeros(300, dtype=int))
    for row, value, checked, cost in zip(codes, found.value, found.checked, found.cost, strict=True):
        told, needed = UNREADABLE, 7
        for answers, k in rungs:
            held = [int(code) for code in row[:answers] if code != UNREADABLE]
            top = max((held.count(code) for code in held), default=0)
            if top >= answers - k:
                told, needed = max(held, key=held.count), answers
                break
        assert (int(value), bool(checked)) == (told, told == UNREADABLE)
        assert cost - (100.0 if checked else 0.0) <= needed
    assert len(set(found.value.tolist())) == 4


def test_silence_has_its_price() -> None:
    ladder = Ladder((0, 1), Gate.LEAD, 2, 2, Last.ABSTAIN)
    (found,) = replay([ladder], [[0, 0], [0, 1]], prices=[1, 1], check=10.0, withheld=4.0)
    assert found.cost.tolist() == [2.0, 6.0]
    assert found.delivered.tolist() == [True, False]


def test_without_gold_nothing_is_wrong_and_arrays_are_frozen() -> None:
    (found,) = replay([Ladder((0, 1), Gate.LEAD, 1, 1)], [[0, 1]], prices=[1, 1], check=10.0)
    assert not found.wrong.any()
    with pytest.raises(ValueError, match="read-only"):
        found.cost[0] = 0.0


def test_dilution_adds_the_expected_price_of_random_checks() -> None:
    ladder = Ladder((0, 1), Gate.LEAD, 2, 2)
    (found,) = replay([ladder], [[0, 0], [0, 1]], prices=[1, 1], check=10.0, gold=[1, 1])
    half = dilute(found, 0.5, check=10.0)
    assert half.cost.tolist() == [7.0, 12.0]
    assert float(half.checked_share) == 0.5
    assert half.name != found.name


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: lead_family(3, [[0, 1]]), "should name each of the 3 nodes once"),
        (lambda: replay([], [[0, 1]], prices=[1], check=1.0), "want \\(items, nodes\\), \\(nodes,\\)"),
        (lambda: replay([], [[0, 1]], prices=[1, 1], check=1.0, gold=[1, 2]), "gold has shape"),
        (lambda: dilute(replay(lead_family(1, [[0]]), [[0]], prices=[1], check=1.0)[0], 1.0, check=1.0), "q is 1.0"),
    ],
)
def test_bad_input_is_one_line(call: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()  # type: ignore[operator]
