"""Live runs against a server that throttles, fails, cuts connections and goes away: each question is settled once, and the books
agree with the server's own."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import rrf_design as rrf
from rrf_design.acquisition import Journal, acquire
from rrf_design.acquisition.journal import Kind
from rrf_design.models import get
from scenarios.rough_server import Manners, RoughServer

ROUGH = {"429": 0.05, "429 wait": 0.05, "500": 0.05, "cut": 0.04, "half": 0.04}


def fields(count: int) -> dict[str, rrf.Problem]:
    return {f"f{i}": field(f"f{i}") for i in range(count)}


def field(name: str) -> rrf.Problem:
    return rrf.Problem(
        name=name,
        k=1,
        nodes=[{"id": f"n{i}", "prompt": f"{name}: question {i}?"} for i in range(4)],
        relations=[{"id": f"r{i}", "tail": f"n{i}", "head": f"n{(i + 1) % 4}"} for i in range(4)],
    )


def settled(store: Path) -> Counter[str | None]:
    with Journal(store) as journal:
        events = journal.events(journal.find("last"))
    return Counter(event.purchase for event in events if event.kind is Kind.SETTLED)


def test_every_question_is_settled_once_and_every_call_is_booked(tmp_path: Path) -> None:
    store = tmp_path / "r.sqlite"
    manners = Manners(ROUGH, delay=(0.0, 0.01), away_after=120, away=0.3)
    with RoughServer(manners) as server, get("openai:m", base_url=server.url, slots=32) as model:
        result = acquire(fields(60), model, store=store)
        assert result.stopped_because != "paused", result.detail
        assert result.calls >= server.calls > 240  # a call that a dying connection swallowed is booked all the same
    assert {fault for fault, count in server.faults.items() if count} == {"good", *ROUGH}
    counts = settled(store)
    assert len(counts) == 240
    assert set(counts.values()) == {1}
    assert all(len(entry.answers) + len(entry.failed) == 4 for entry in result.items)
    assert sum(len(entry.failed) for entry in result.items) <= 2  # each would be twelve cut connections in a row


def test_all_slots_are_used_and_no_more(tmp_path: Path) -> None:
    manners = Manners(delay=(0.05, 0.05))
    with RoughServer(manners) as server, get("openai:m", base_url=server.url, slots=24) as model:
        acquire(fields(12), model, store=tmp_path / "r.sqlite")
    assert server.most_at_once == 24
    assert set(server.answered.values()) == {1}


def test_a_limit_on_calls_holds_also_where_most_of_them_fail(tmp_path: Path) -> None:
    with RoughServer(Manners({"500": 0.5})) as server, get("openai:m", base_url=server.url, slots=8) as model:
        result = acquire(fields(20), model, store=tmp_path / "r.sqlite", limits=rrf.acquisition.Limits(calls=50))
        assert server.calls <= result.calls <= 50


def test_a_server_that_never_answers_pauses_the_run_and_its_calls_are_booked(tmp_path: Path) -> None:
    with RoughServer(Manners({"500": 1.0})) as server, get("openai:m", base_url=server.url, slots=2) as model:
        result = acquire(fields(3), model, store=tmp_path / "r.sqlite")
        assert result.stopped_because == "paused"
        assert "out of order" in result.detail
        assert result.purchases == ()
        assert result.calls >= server.calls
