"""Several processes on one run: nothing is lost, doubled or overspent, whoever dies or is stopped.

Leases end by a clock of the test's own, so nobody waits for them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from fields import one_wrong, ring, scripted

from rrf_design.acquisition import Journal, Purchase, acquire, read_run
from rrf_design.acquisition._fetch import Fetcher
from rrf_design.acquisition._joined import LeasedAcquirer
from rrf_design.acquisition._leases import Leases
from rrf_design.acquisition._live import _settings
from rrf_design.acquisition._state import Booked, RunState
from rrf_design.acquisition.journal import Event, Kind
from rrf_design.cli import main
from rrf_design.errors import InputError, Refused, RetryLater
from rrf_design.models.prices import PriceTable

ITEMS = {f"i{j}": ring(4, name=f"i{j}", budget=None) for j in range(6)}
BUDGET = 12.0


MEMBERS: list[Member] = []


class Member:
    """One process on a run, as far as it goes: fetches one thing at a time, and may vanish."""

    def __init__(self, store: str, run: str, clock: list[float], model: Any = None) -> None:
        self.journal = Journal(store)
        MEMBERS.append(self)
        self.leases = Leases(self.journal, run, seconds=60.0, clock=lambda: clock[0])
        header = self.journal.header(run)
        self.fetcher = Fetcher({}, model or scripted(), known={}, prices=PriceTable({}))
        settings = _settings({}, header)
        self.acquirer = LeasedAcquirer(
            self.leases, self.fetcher, settings=settings, journal=self.journal, header=header
        )

    def fetch(self, purchase: Purchase) -> None:
        settlement = self.fetcher.fetch(purchase, self.acquirer.state.items[purchase.item])
        self.acquirer.tell(settlement, flush=False)

    def work(self) -> None:
        while purchases := self.acquirer.ask(3):
            for purchase in purchases:
                self.fetch(purchase)
        self.acquirer.leave()


class Vanished(BaseException):
    pass


@pytest.fixture(autouse=True)
def nobody_waits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("rrf_design.acquisition._joined.POLL", 0.0)
    yield
    while MEMBERS:
        MEMBERS.pop().journal.close()


@pytest.fixture
def opened(server: str) -> Any:
    """A run that is open for joining, on which nobody works: whoever began it was killed."""

    def begin(budget: float | None = BUDGET, mode: str = "agnostic") -> str:
        def killed(*_: Any, **__: Any) -> None:
            raise Vanished

        with pytest.MonkeyPatch.context() as patch, contextlib.suppress(Vanished):
            patch.setattr("rrf_design.acquisition._joined.work_on", killed)
            acquire(ITEMS, scripted(), store=server, budget=budget, mode=mode)
        with Journal(server) as journal:
            return journal.find("last")

    return begin


def books_hold(server: str, run: str, budget: float) -> RunState:
    """The journal read by the fold of one process: within the budget at every event, settled once,
    and the books say the same.
    """
    state, settled = RunState(list(ITEMS)), set()
    with Journal(server) as journal:
        for event in journal.events(run):
            state.apply(event)
            assert state.committed <= budget
            if event.kind is Kind.SETTLED:
                assert event.purchase not in settled
                settled.add(event.purchase)
        books = Leases(journal, run).books()
    assert books == state.booked
    return state


def test_one_who_is_killed_and_one_who_was_stopped_too_long(server: str, opened: Any) -> None:
    """What they had begun is in doubt and in the books; whoever comes back late is refused."""
    run, clock, calls = opened(), [1000.0], []

    def say(request: Any) -> str:
        calls.append(request.prompt)
        return one_wrong(request)

    killed, stopped = Member(server, run, clock, scripted(say)), Member(server, run, clock, scripted(say))
    assert len(killed.acquirer.ask(2)) == 2
    killed.journal.close()
    late = stopped.acquirer.ask(8)
    assert len(late) == 0  # the other one holds all items
    clock[0] += 61.0
    late = stopped.acquirer.ask(3)
    assert len(late) == 3
    assert [purchase.attempt for purchase in late] == [1, 1, 0]  # two were in doubt
    clock[0] += 61.0
    other = Member(server, run, clock, scripted(say))
    other.work()
    count = len(calls)
    stopped.fetch(late[0]) if late[0].item in stopped.acquirer.state.items else None
    stopped.acquirer.commit()  # refused by the fence: the item is nobody's of this process
    assert not stopped.acquirer.knows(late[0])
    assert stopped.acquirer.ask(3) == ()
    state = books_hold(server, run, BUDGET)
    assert all(item.stopped is not None for item in state.items.values())
    assert sum(state.doubtful.values()) == 0  # a local model: asked again under the same reservation
    calm = acquire(ITEMS, scripted(), store=":memory:", budget=BUDGET)
    wild = acquire(resume=run, model=scripted(), store=server)
    bought = [sorted((b.item, b.name, b.outcome, b.value, b.price) for b in run.purchases) for run in (wild, calm)]
    assert bought[0] == bought[1]
    assert wild.repaired == calm.repaired
    assert count == 4 * len(ITEMS) == len(calls) - 1


def test_two_at_once_never_spend_more_than_there_is(server: str, opened: Any) -> None:
    """Each decides with books that the other has overtaken; what does not fit is taken back."""
    run, clock = opened(budget=3.0, mode="agnostic"), [1000.0]
    with Journal(server) as journal:  # less than the schedules were made for
        Leases(journal, run).limit((1.0, None, 9))
    one, two = Member(server, run, clock), Member(server, run, clock)
    one.acquirer._slots = two.acquirer._slots = 3
    mine, theirs = one.acquirer.ask(8), two.acquirer.ask(8)
    assert len(mine) + len(theirs) == 9
    for member, purchases in ((one, mine), (two, theirs)):
        for purchase in purchases:
            member.fetch(purchase)
    one.work()
    two.work()
    state = books_hold(server, run, 1.0)
    assert state.calls == 9
    assert {str(item.stopped["because"]) for item in state.items.values() if item.stopped} <= {
        "calls used up",
        "budget used up",
        "schedule complete",
        "no affordable purchase can raise the margin",
    }
    assert Leases(one.journal, run).counts()["open"] == 0


def test_a_limit_stays_what_it_is_whatever_an_answer_costs(server: str, opened: Any) -> None:
    """One that cost more than was reserved for it is booked, and a limit may be lowered below what
    is booked: neither leaves room for more once something else is given back.
    """
    with Journal(server) as journal:
        leases = Leases(journal, opened())

        def book(money: int, *, reserving: bool = False) -> Fraction | None:
            said = Event(Kind.SESSION, {"joined": True})
            books = leases.write([(said, Booked(money=Fraction(money)))], reserving=reserving).books
            return None if books is None else books.money

        leases.limit((None, 10.0, None))
        assert book(9, reserving=True) == 9
        assert book(2) == 11
        assert book(-4) == 7
        assert book(4, reserving=True) is None
        assert book(3, reserving=True) == 10
        leases.limit((None, 1.0, None))
        assert book(-9) == 1
        assert book(1, reserving=True) is None


def test_what_was_lost_and_taken_again_while_it_was_decided_on_is_asked_once(
    server: str, opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lease ends before its first intent is written, somebody has it for a moment, and the same
    process takes it again in the same portion.
    """
    run, clock = opened(), [1000.0]
    one, two = Member(server, run, clock), Member(server, run, clock)
    one.acquirer._slots = 1
    take, takings = one.leases.take, []

    def taken(most: int) -> dict[str, int]:
        takings.append(most)
        return take(most)

    def more() -> bool:
        if len(takings) == 1:
            clock[0] += 61.0
            assert len(two.leases.take(1)) == 1
            two.leases.leave()
        return len(takings) < 2 and LeasedAcquirer._more(one.acquirer)

    monkeypatch.setattr(one.leases, "take", taken)
    monkeypatch.setattr(one.acquirer, "_more", more)
    asked = one.acquirer.ask(8)
    assert len(takings) == 2
    assert len({purchase.id for purchase in asked}) == len(asked) > 0


def test_a_paid_call_of_the_dead_is_booked_and_paid_again(server: str, opened: Any) -> None:
    run, clock = opened(), [1000.0]
    model = scripted()
    model.local = False
    killed, other = Member(server, run, clock, model), Member(server, run, clock, model)
    assert len(killed.acquirer.ask(3)) == 3
    clock[0] += 61.0
    other.work()
    state = books_hold(server, run, BUDGET)
    assert sum(state.doubtful.values()) == 3
    assert state.calls == 4 * len(ITEMS) + 3


def test_one_joins_and_the_run_is_that_of_one_process(server: str, opened: Any) -> None:
    run = opened(budget=None, mode="triage")
    with Journal(server) as journal:
        header = {"name": "x", "settings": {"mode": "agnostic", "budget": None}, "digests": {}, "prices": None}
        models = {"model": {"use": None, "identity": dict(scripted().identity)}}
        closed = journal.create({**header, "models": models}, {"": {}})
    with pytest.raises(RetryLater, match="not open for joining"):
        acquire(join=closed, model=scripted(), store=server)
    joined = acquire(join=run, model=scripted(slots=2), store=server)
    calm = acquire(ITEMS, scripted(), store=":memory:", mode="triage")
    assert joined.repaired == calm.repaired
    assert joined.stopped_because == calm.stopped_because
    assert joined.spent == calm.spent
    assert read_run(run, store=server).to_json()["items"] == joined.to_json()["items"]
    again = acquire(join=run, model=scripted(), store=server)  # nothing is left to do
    assert again.calls == joined.calls


def test_who_can_not_be_joined_says_why(server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = acquire(ITEMS, scripted(), store=server, budget=2.0, mode="triage").run
    with pytest.raises(Refused, match="mode triage decides over all items together under one budget"):
        acquire(join=run, model=scripted(), store=server)
    with pytest.raises(InputError, match="leave budget out"):
        acquire(join=run, model=scripted(), store=server, budget=3.0)
    acquire(ITEMS, scripted(), store=tmp_path / "r.sqlite")
    with pytest.raises(SystemExit, match="2"):
        main(["acquire", "--join", "last", "--store", str(tmp_path / "r.sqlite")])
    said = capsys.readouterr().err
    assert "one process works on it; to join a run, give --store postgresql://" in said
    with pytest.raises(SystemExit, match="2"):
        main(["acquire", "--join", run, "--resume", run, "--store", server])
    assert "leave resume out" in capsys.readouterr().err
