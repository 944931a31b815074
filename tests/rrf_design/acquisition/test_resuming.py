"""Runs that stopped, were killed or are read again, and go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fields import PRICES, Flaky, go, one_wrong, ring, scripted

import rrf_design as rrf
from rrf_design.acquisition import Journal, acquire, read_run
from rrf_design.acquisition.journal import Kind
from rrf_design.acquisition.stopping import Calls, default
from rrf_design.errors import InputError, Refused, RetryLater
from rrf_design.models.base import Outcome


def test_looking_for_a_run_makes_no_journal(tmp_path: Path) -> None:
    store = tmp_path / "none.sqlite"
    for look in (lambda: acquire(resume="last", store=store), lambda: read_run("last", store=store)):
        with pytest.raises(InputError, match="no journal of runs"):
            look()
    assert list(tmp_path.iterdir()) == []


def test_a_finished_run_buys_nothing_when_resumed(tmp_path: Path) -> None:
    asked = []

    def script(request: Any) -> str:
        asked.append(request.prompt)
        return "7"

    first = go(ring(), tmp_path, scripted(script))
    count = len(asked)
    second = go(None, tmp_path, scripted(script), resume="last")
    assert len(asked) == count
    assert second.purchases == first.purchases


def test_a_larger_budget_on_resume_goes_on(tmp_path: Path) -> None:
    first = go(ring(), tmp_path, budget=1.0, mode="adaptive")
    second = go(None, tmp_path, resume=first.run, budget=4.0)
    assert first.spent <= 1.0 < second.spent <= 4.0
    assert [p.name for p in second.purchases][: len(first.purchases)] == [p.name for p in first.purchases]


def test_a_run_of_the_second_format_is_resumed_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rrf_design.acquisition.journal.FORMAT", 2)
    items = {f"i{j}": ring(4, name=f"i{j}") for j in range(2)}
    first = go(items, tmp_path, budget=1.0, mode="adaptive")
    monkeypatch.undo()
    second = go(None, tmp_path, resume=first.run, budget=8.0)
    assert first.spent < second.spent
    with Journal(tmp_path / "runs.sqlite") as journal:
        kinds = [event.kind for event in journal.events(first.run)]
    assert kinds.count(Kind.RESULT) == 2
    assert Kind.DECIDED not in kinds
    assert read_run(first.run, store=tmp_path / "runs.sqlite").to_json()["items"] == second.to_json()["items"]


def test_another_problem_or_another_backend_is_refused(tmp_path: Path) -> None:
    run = go(ring(), tmp_path)
    with pytest.raises(InputError, match="belongs to another problem"):
        go(ring(6), tmp_path, resume=run.run)
    with pytest.raises(Refused, match="answers of different backends can't be mixed"):
        go(None, tmp_path, scripted(name="another"), resume=run.run)
    with pytest.raises(InputError, match="adapter object; give it again"):
        acquire(resume=run.run, store=tmp_path / "runs.sqlite")


def test_two_processes_on_one_run_are_refused(tmp_path: Path) -> None:
    run = go(ring(), tmp_path)
    with (
        Journal(tmp_path / "runs.sqlite") as journal,
        journal.holding(run.run),
        pytest.raises(Refused, match="is working on it"),
    ):
        go(None, tmp_path, resume=run.run)


@pytest.mark.parametrize("slots", [1, 2])
@pytest.mark.parametrize("outcome", [Outcome.UNREACHABLE, Outcome.RATE_LIMITED])
def test_model_server_gone_and_back(tmp_path: Path, outcome: Outcome, slots: int) -> None:
    server = Flaky(outcome)
    paused = go(ring(), tmp_path, scripted(server, slots=slots))
    assert paused.stopped_because == "paused"
    assert "connection refused" in paused.detail
    assert not paused.passes
    assert paused.repaired is None
    server.left = 99
    resumed = go(None, tmp_path, scripted(server, slots=slots), resume="last")
    assert resumed.stopped_because != "paused"
    assert server.calls == 5  # no question was paid for twice
    assert resumed.repaired["n2"] == pytest.approx([7.0])
    assert resumed.lost == 0


def test_people_review_and_the_run_goes_on(tmp_path: Path) -> None:
    problem = rrf.Problem(
        k=1,
        budget=6.0,
        target=0.9,
        nodes=[{"id": "n1", "prompt": "question 1?"}, {"id": "n2", "prompt": "question 2?"}],
        relations=[{"id": "r", "tail": "n1", "head": "n2"}],
        anchors=[{"id": f"a{i}", "node": f"n{i}", "cost": 1.0, "source": "person"} for i in (1, 2)],
    )
    queue = tmp_path / "reviews.csv"
    waiting = go(problem, tmp_path, review_file=queue)
    assert waiting.open_reviews == 2
    assert waiting.stopped_because == "waiting for review"
    assert waiting.repaired is None
    assert waiting.gamma_lower == 0  # nothing is promised on answers that are not there
    lines = queue.read_text().splitlines()
    queue.write_text("\n".join([lines[0], *(line + "7" for line in lines[1:])]))
    done = go(None, tmp_path, resume="last", reviews=queue)
    assert done.open_reviews == 0
    assert done.stopped_because == "target reached"
    assert done.repaired["n2"] == pytest.approx([7.0])
    assert {p.outcome for p in done.purchases if p.buys == "anchor"} == {"reviewed"}


def test_full_disk_ends_with_a_clear_message_and_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writes = iter(range(10_000))

    def full(self: Journal, what: str) -> None:
        if what == "written" and next(writes) == 5:
            raise RetryLater("the journal can't be written (No space left on device); free some disk space")

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "_doing", full)
        with pytest.raises(RetryLater, match="free some disk space"):
            go(ring(), tmp_path)
    run = go(None, tmp_path, resume="last")
    assert run.repaired["n2"] == pytest.approx([7.0])
    assert run.spent <= 4


def test_a_resumed_run_keeps_the_rules_it_was_begun_with(tmp_path: Path) -> None:
    first = go(ring(budget=9.0), tmp_path, stop=Calls(2))
    again = go(None, tmp_path, resume=first.run)
    assert first.stopped_because == again.stopped_because == "calls used up"
    assert again.spent == first.spent
    more = go(None, tmp_path, resume=first.run, stop=default())
    assert more.spent > first.spent


def test_resuming_needs_neither_prices_nor_the_same_slots(tmp_path: Path) -> None:
    first = go(ring(), tmp_path, scripted(slots=1), prices=PRICES, money=3.3, calls=2)
    assert first.header["prices"] == {"scripted": PRICES["scripted"]}
    second = go(None, tmp_path, scripted(slots=3), resume=first.run, calls=99)
    assert 0 < first.money < second.money <= 3.3


def test_an_address_with_a_password_can_be_given_again_alone(tmp_path: Path) -> None:
    """It is never kept, so the run asks for it; then nothing else has to be repeated."""
    from rrf_design.acquisition._live import entries_of

    address = "http://me:[hidden]@host/v1"
    before = {"run": "r1", "models": {"model": {"use": "openai:m", "base_url": address, "name": "m", "identity": {}}}}
    with pytest.raises(InputError, match="run r1: its base_url holds a password, which is never kept; give it again"):
        entries_of(None, {}, before, {}, {})
    found = entries_of(None, {"base_url": "http://me:secret@host/v1"}, before, {}, {})
    assert found == {"model": {"use": "openai:m", "base_url": "http://me:secret@host/v1"}}


@pytest.mark.parametrize("local", [True, False])
@pytest.mark.parametrize("begun_with_cache", [True, False])
def test_a_killed_run_resumes_whatever_the_cache_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, local: bool, begun_with_cache: bool
) -> None:
    """The intent of the first question has no outcome, and the cache has its answer: from the run
    itself, which keeps an answer before the journal has it, or from another one.
    """
    asked: list[str] = []

    def script(request: Any) -> str:
        asked.append(request.prompt)
        return one_wrong(request)

    model, kept = scripted(script), tmp_path / "kept"
    model._identity, model.kept, model.local = {"adapter": "shop"}, True, local
    if not begun_with_cache:
        go(ring(), tmp_path, model, store=tmp_path / "other.sqlite", cache=kept)
    writes = iter(range(10_000))

    def killed(self: Journal, what: str) -> None:
        if what == "written" and next(writes) == 2:
            raise RetryLater("killed before the first answer was in the journal")

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "_doing", killed)
        with pytest.raises(RetryLater, match="killed"):
            go(ring(), tmp_path, model, cache=kept if begun_with_cache else None)
    with Journal(tmp_path / "runs.sqlite") as journal:
        last = journal.events(journal.find("last"))[-1]
    assert (last.kind, last.purchase) == (Kind.INTENT, "n0")
    before = len(asked)
    run = go(None, tmp_path, model, resume="last", cache=kept)
    assert run.repaired["n2"] == pytest.approx([7.0])
    assert len(asked) - before == (4 if begun_with_cache else 0)
    assert len(run.items[0].answers) == 5
    assert read_run("last", store=tmp_path / "runs.sqlite").to_json() == run.to_json()
    again = go(None, tmp_path, model, resume="last", cache=kept)
    assert again.purchases == run.purchases
