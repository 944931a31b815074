"""What a run may use: money, calls, time and slots, each kept where something is reserved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fields import PRICES, Flaky, go, ring, scripted

import rrf_design as rrf
from rrf_design.acquisition import Journal, Limits, acquire, read_run
from rrf_design.errors import InputError, Refused
from rrf_design.models.base import Attempt, Outcome, Usage


def test_a_team_shares_one_server(tmp_path: Path, server: str) -> None:
    flaky = Flaky()
    paused = go(ring(), tmp_path, scripted(flaky), store=server)
    assert paused.stopped_because == "paused"
    flaky.left = 99
    with Journal(server) as journal, journal.holding(paused.run), pytest.raises(Refused, match="is working on it"):
        go(None, tmp_path, scripted(flaky), store=server, resume=paused.run)
    resumed = go(None, tmp_path, scripted(flaky), store=server, resume=paused.run)
    assert flaky.calls == 5
    assert resumed.repaired["n2"] == pytest.approx([7.0])
    assert read_run(paused.run, store=server).purchases == resumed.purchases


def test_a_wrong_key_does_not_burn_the_budget(tmp_path: Path) -> None:
    server = Flaky(Outcome.FAILED, after=0)
    paused = go(ring(), tmp_path, scripted(server))
    assert paused.stopped_because == "paused"
    assert "the backend refuses the call: connection refused" in paused.detail
    assert paused.spent == 0
    later = Flaky(Outcome.FAILED, after=3)  # a single failed call among answers is an answer that is missing
    run = go(ring(), tmp_path, scripted(later))
    assert run.items[0].failed["n3"] == "failed"


def test_money_is_real_and_bounded(tmp_path: Path) -> None:
    free = go(ring(), tmp_path, prices=PRICES)
    assert free.money > 5 * 0.01
    tight = go(ring(), tmp_path, prices=PRICES, money=free.money / 2)
    assert tight.money <= free.money / 2
    assert len(tight.items[0].answers) < 5


@pytest.mark.parametrize("slots", [1, 4])
def test_calls_can_be_limited(tmp_path: Path, slots: int) -> None:
    """No more calls than allowed, also with several items and several calls at once; and the run goes on with more."""
    asked: list[str] = []
    items = {f"i{j}": ring(4, name=f"i{j}") for j in range(3)}

    def script(request: Any) -> str:
        asked.append(request.prompt)
        return "7"

    model = scripted(script, slots=slots)
    run = go(items, tmp_path, model, budget=9.0, limits=Limits(calls=5))
    assert "calls used up: 2" in run.stopped_because
    assert run.calls == len(asked) == 5
    again = go(None, tmp_path, model, resume=run.run, limits=Limits(calls=7))
    assert again.calls == len(asked) == 7
    lowered = go(None, tmp_path, model, resume=run.run, limits=Limits(calls=2))
    assert lowered.calls == len(asked) == 7
    done = go(None, tmp_path, model, resume=run.run, limits=Limits(calls=99))
    assert done.calls == len(asked) == 12


def test_repeated_calls_count_against_the_limit(tmp_path: Path) -> None:
    model = scripted(lambda request: Attempt(Outcome.TIMEOUT, usage=Usage(calls=1)))
    run = go(ring(), tmp_path, model, limits=Limits(calls=6))
    assert run.calls == 6  # four for the first question, two for the second


def test_time_is_a_limit_where_a_purchase_is_reserved(tmp_path: Path) -> None:
    run = go(ring(), tmp_path, limits=Limits(seconds=0.0))
    assert (run.stopped_because, run.calls) == ("time used up", 0)


def test_many_items_fill_the_slots(tmp_path: Path) -> None:
    items = {f"i{j}": ring(4, name=f"i{j}") for j in range(5)}
    run = go(items, tmp_path, scripted(slots=4), budget=20.0)
    assert run.spent <= 20
    assert set(run.repaired) == set(items)
    assert all(entry.repair["support"] == ["n2"] for entry in run.items)
    assert run.gamma_lower == min(entry.gamma_lower for entry in run.items)


def test_every_question_is_asked_when_its_reservation_fits(tmp_path: Path) -> None:
    """A reservation is many times what a call costs; questions wait for each other instead of being left out."""
    asked = go(ring(), tmp_path, scripted(slots=5), prices=PRICES, money=2.0)
    assert len(asked.items[0].answers) == 5


def test_a_judge_costs_no_more_than_was_reserved_however_long_the_answer_is(tmp_path: Path) -> None:
    """Its prompt holds the answer, which was not there when the run began."""
    long = "so " * 3000 + "7"

    def say(request: Any) -> str:
        return "7" if request.prompt.startswith("Right?") else long

    judge = {"verifier": "scripted", "prompt": "Right? {{ answer }}", "max_tokens": 3}
    problem = rrf.Problem(
        nodes=[{"id": "a", "prompt": "?", "max_tokens": 4000}, {"id": "b", "prompt": "??", "max_tokens": 4000}],
        relations=[{"id": "r", "tail": "a", "head": "b"}],
        anchors=[{"id": "A", "node": "a", "source": judge, "sigma": 1.0, "cost": 1.0}],
        target=0.5,
    )
    prices = {"scripted": {"input": 0.001, "output": 0.0001}}
    free = go(problem, tmp_path, scripted(say), prices=prices)
    assert free.items[0].anchors == {"A": (7.0,)}
    assert free.money > 3.0  # mostly the judge's
    tight = go(problem, tmp_path, scripted(say), prices=prices, money=4.0)
    assert tight.money <= 4.0
    assert tight.items[0].anchors == {}  # not asked: it could have cost more than was left


def test_cycles_are_looked_for_less_often_while_a_run_goes_on_and_as_before_afterwards(tmp_path: Path) -> None:
    import gc

    before, seen = gc.get_threshold(), []

    def script(_: Any) -> str:
        seen.append(gc.get_threshold()[0])
        return "7"

    acquire(ring(), scripted(script), store=tmp_path / "r.sqlite")
    assert min(seen) >= 50_000
    assert gc.get_threshold() == before
    with pytest.raises(InputError):
        acquire(ring(), "no such model", store=tmp_path / "r.sqlite")
    assert gc.get_threshold() == before
