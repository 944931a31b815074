"""Calls under way: signals, workers, refused keys and batches."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from fields import priced, ring, scripted

from rrf_design.acquisition import Journal, acquire, read_run
from rrf_design.acquisition import _driver as driver
from rrf_design.acquisition import _live as live
from rrf_design.acquisition._driver import _AsyncWorker, _Returned, _Size, _Workers
from rrf_design.acquisition._purchases import Buys, Purchase, Settlement
from rrf_design.acquisition.journal import Kind
from rrf_design.errors import InputError
from rrf_design.models import Attempt, Model, NotBegun, Outcome, Request, Retry, Usage
from rrf_design.models.pacing import Pace

REMOTE = {"adapter": "shop", "model": "scripted"}


def remote(script: Any, **options: Any) -> Any:
    """A scripted model that counts as somebody else's: what is asked may be charged."""
    model = scripted(script, **options)
    model._identity, model.local = REMOTE, False
    return model


def kinds(tmp_path: Path) -> list[Kind]:
    with Journal(tmp_path / "r.sqlite") as journal:
        return [event.kind for event in journal.events(journal.find("last"))]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("slots", [1, 3])
def test_the_first_signal_lets_calls_under_way_settle(tmp_path: Path, number: signal.Signals, slots: int) -> None:
    asked = []

    def script(request: Any) -> str:
        asked.append(request.prompt)
        if "question 2" in request.prompt:
            os.kill(os.getpid(), number)
        return "7"

    before = signal.getsignal(number)
    paused = acquire(ring(), remote(script, slots=slots), store=tmp_path / "r.sqlite", method="witness")
    assert signal.getsignal(number) is before
    assert (paused.stopped_because, paused.detail) == ("paused", "interrupted")
    assert len(paused.items[0].answers) == len(asked) < 6
    assert paused.lost == 0
    done = acquire(resume="last", model=remote(script, slots=slots), store=tmp_path / "r.sqlite")
    assert done.stopped_because == "paused" or len(asked) == 5
    assert Kind.DOUBT not in kinds(tmp_path)
    assert Kind.ABANDONED not in kinds(tmp_path)


@pytest.mark.parametrize("local", [True, False])
def test_the_second_signal_books_what_is_under_way_and_ends_at_once(tmp_path: Path, local: bool) -> None:
    answered = threading.Event()
    first = [True]

    def script(request: Any) -> str:
        if first[0] and "question 1" in request.prompt:
            first[0] = False
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGTERM)  # two of one kind at once may arrive as one
            answered.wait(60)
        return "7"

    model = (scripted if local else remote)(script)
    store = tmp_path / "r.sqlite"
    paused = acquire(priced(budget=9.0), model, store=store, method="witness")
    answered.set()
    assert paused.stopped_because == "paused"
    assert paused.lost == (0 if local else 1)  # a question costs 1, and it may have been charged
    assert Kind.DOUBT not in kinds(tmp_path)
    done = acquire(resume="last", model=model, store=store)
    assert Kind.DOUBT not in kinds(tmp_path)
    assert done.stopped_because != "paused"
    assert done.spent <= 9


def test_patience_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "GRACE", 0.0)
    answered = threading.Event()

    def script(request: Any) -> str:
        os.kill(os.getpid(), signal.SIGTERM)
        answered.wait(60)
        return "7"

    paused = acquire(ring(), remote(script), store=tmp_path / "r.sqlite", method="witness")
    answered.set()
    assert (paused.stopped_because, paused.calls) == ("paused", 1)
    assert read_run("last", store=tmp_path / "r.sqlite").detail == "interrupted"


def test_an_error_while_fetching_leaves_nothing_in_doubt(tmp_path: Path) -> None:
    def script(request: Any) -> str:
        if "question 2" in request.prompt:
            raise InputError("no recorded answer")
        return "7"

    with pytest.raises(InputError, match="no recorded answer"):
        acquire(ring(), remote(script, slots=3), store=tmp_path / "r.sqlite", method="witness")
    assert Kind.RELEASED in kinds(tmp_path)  # the one that failed, and those of its neighbours that had not begun
    acquire(resume="last", model=remote(lambda request: "7"), store=tmp_path / "r.sqlite")
    assert Kind.DOUBT not in kinds(tmp_path)


def test_a_run_in_a_thread_needs_no_signals(tmp_path: Path) -> None:
    found: list[Any] = []
    work = lambda: found.append(acquire(ring(), scripted(), store=tmp_path / "r.sqlite", method="witness"))  # noqa: E731
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found[0].repaired["n2"] == pytest.approx([7.0])


def test_what_was_reserved_ahead_is_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen slots and two ahead: at the first signal those that nobody has begun are released,
    and nothing is lost.
    """
    begun: list[str] = []
    everybody = threading.Barrier(16, timeout=30)

    def script(request: Any) -> str:
        begun.append(request.prompt)
        if everybody.wait() == 0:
            os.kill(os.getpid(), signal.SIGINT)
        stopped.wait(30)
        return "7"

    stopped = threading.Event()

    def seen(event: Any) -> None:
        if event.kind is Kind.RELEASED:
            stopped.set()

    items = {f"i{j}": ring(name=f"i{j}") for j in range(6)}
    monkeypatch.setattr(live, "ProgressReport", lambda progress: seen)
    paused = acquire(items, remote(script, slots=16), store=tmp_path / "r.sqlite", method="witness", progress=print)
    assert (paused.stopped_because, paused.calls, paused.lost) == ("paused", 16, 0)
    assert len(begun) == 16
    assert kinds(tmp_path).count(Kind.RELEASED) == 2


def purchase(number: int) -> Purchase:
    return Purchase("", f"n{number}", Buys.ANSWER, 0.0)


def gather(workers: _Workers, count: int) -> list[_Returned]:
    found: list[_Returned] = []
    while len(found) < count:
        results = workers.done.get(timeout=30)
        found += results
        workers.returned(results)
    return found


def threads(fetch: Callable[[Purchase], Settlement], size: int) -> _Workers:
    return _Workers(each(fetch), lambda purchase: ("", _Size(size)))


def each(fetch: Callable[[Purchase], Settlement]) -> Callable[[list[Purchase]], list[Settlement | Exception]]:
    return lambda purchases: [fetch(purchase) for purchase in purchases]


async def nothing() -> None:
    return None


def flying(
    fetch: Callable[[Purchase], Awaitable[Settlement]],
    hurry: Callable[[], None] = lambda: None,
    release: Callable[[], Awaitable[None]] = nothing,
) -> _Workers:
    def never(purchase: Purchase) -> Settlement:
        raise AssertionError("no thread is asked")

    return _Workers(each(never), lambda purchase: None, _AsyncWorker(fetch, hurry=hurry, release=release))


def test_everything_comes_back_once_and_errors_too() -> None:
    def fetch(given: Purchase) -> Settlement:
        if given.name == "n3":
            raise KeyboardInterrupt
        return Settlement(given, "told", (7.0,))

    workers = threads(fetch, 4)
    workers.start(purchase(number) for number in range(20))
    found = gather(workers, 20)
    workers.close()
    assert sorted(result.purchase.name for result in found) == sorted(f"n{i}" for i in range(20))
    assert [result.purchase.name for result in found if isinstance(result.error, KeyboardInterrupt)] == ["n3"]


def test_purchases_are_fetched_side_by_side() -> None:
    """Both wait for each other: one thread alone would never get past this."""
    both = threading.Barrier(2, timeout=30)

    def fetch(given: Purchase) -> Settlement:
        both.wait()
        return Settlement(given, "told", (7.0,))

    workers = threads(fetch, 2)
    workers.start(purchase(number) for number in range(4))
    assert all(result.error is None for result in gather(workers, 4))
    workers.wake()
    assert workers.done.get(timeout=30) == ()
    workers.close()


def test_a_slow_lane_holds_up_nobody_else() -> None:
    begun, gate = threading.Event(), threading.Event()

    def fetch(given: Purchase) -> Settlement:
        if given.name == "n0":
            begun.set()
            assert gate.wait(30)
        return Settlement(given, "told", (7.0,))

    workers = _Workers(each(fetch), lambda bought: ("slow" if bought.name in ("n0", "n1") else "quick", _Size(1)))
    workers.start(purchase(number) for number in range(6))
    assert {result.purchase.name for result in gather(workers, 4)} == {"n2", "n3", "n4", "n5"}
    assert begun.wait(30)
    assert [given.name for given in workers.recall()] == ["n1"]
    gate.set()
    assert [result.purchase.name for result in gather(workers, 1)] == ["n0"]
    workers.close()


@pytest.mark.parametrize("count", [3, 200])
def test_the_event_loop_has_them_all_under_way_at_once(count: int) -> None:
    """Nobody is answered before the last one has been asked."""
    asked: list[str] = []
    released: list[bool] = []
    all_there: list[asyncio.Event] = []

    async def fetch(given: Purchase) -> Settlement:
        if not all_there:
            all_there.append(asyncio.Event())
        asked.append(given.name)
        if len(asked) == count:
            all_there[0].set()
        await all_there[0].wait()
        if given.name == "n1":
            raise ValueError("broken")
        return Settlement(given, "told", (7.0,))

    async def release() -> None:
        released.append(True)

    workers = flying(fetch, release=release)
    workers.start(purchase(number) for number in range(count))
    found = gather(workers, count)
    workers.close()
    assert sorted(result.purchase.name for result in found) == sorted(asked)
    assert [result.purchase.name for result in found if isinstance(result.error, ValueError)] == ["n1"]
    assert released == [True]


def test_what_waits_for_its_turn_comes_back_when_the_session_ends() -> None:
    pace = Pace(1)
    begun = threading.Event()
    answer: list[asyncio.Future[Attempt]] = []

    async def attempt(request: Request) -> Attempt:
        answer.append(asyncio.get_running_loop().create_future())
        begun.set()
        return await answer[0]

    async def fetch(given: Purchase) -> Settlement:
        await pace.call(attempt, Request("?"))
        return Settlement(given, "told", (7.0,))

    def hurry() -> None:
        pace.stop()
        answer[0].set_result(Attempt(Outcome.ANSWERED, "7"))

    workers = flying(fetch, hurry)
    workers.start([purchase(0), purchase(1), purchase(2)])
    assert begun.wait(30)
    assert workers.recall() == []
    found = {result.purchase.name: result for result in gather(workers, 3)}
    assert found["n0"].settlement is not None  # what was begun is waited for
    assert all(isinstance(found[name].error, NotBegun) for name in ("n1", "n2"))
    workers.close()


def test_closing_drops_calls_that_nobody_waits_for() -> None:
    begun = threading.Event()

    async def fetch(given: Purchase) -> Settlement:
        begun.set()
        await asyncio.get_running_loop().create_future()
        raise AssertionError("nobody answers")

    workers = flying(fetch)
    workers.start([purchase(0)])
    assert begun.wait(30)
    workers.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "fetch-loop"]


def keyless(status: int, *, after: int, until: int = 10**6) -> Callable[[Any], Any]:
    """Answers so many questions, then does not take the key any more until so many were asked."""
    asked = []

    def script(request: Any) -> Any:
        asked.append(request.prompt)
        if after < len(asked) <= until:
            kept = {"error": "bad key", "status": status}
            return Attempt(Outcome.FAILED, usage=Usage(calls=1), raw_response=kept, detail="bad key")
        return "7"

    return script


@pytest.mark.parametrize(("status", "after"), [(401, 0), (403, 0), (401, 2)])
def test_a_refused_key_ends_the_run_in_one_line(tmp_path: Path, status: int, after: int) -> None:
    store = tmp_path / "r.sqlite"
    line = r"^model scripted: the server refuses the key \(bad key\); correct it, then --resume \S+$"
    with pytest.raises(InputError, match=line):
        acquire(ring(), remote(keyless(status, after=after)), store=store, method="witness")
    left = read_run("last", store=store)
    assert (left.stopped_because, len(left.items[0].answers)) == ("paused", after)
    assert not left.items[0].failed
    assert "the server refuses the key (bad key)" in left.detail
    done = acquire(resume="last", model=remote(lambda request: "7"), store=store)
    assert len(done.items[0].answers) == 5


def test_refusals_after_an_answer_are_failures_of_their_questions(tmp_path: Path) -> None:
    forbidden = acquire(
        ring(), remote(keyless(403, after=1, until=2)), store=tmp_path / "a.sqlite", method="witness", budget=9.0
    )
    assert list(forbidden.items[0].failed.values()) == ["failed"]
    store = tmp_path / "b.sqlite"
    with pytest.raises(InputError, match="refuses the key"):
        acquire(ring(), remote(keyless(401, after=1)), store=store, method="witness")
    again = acquire(resume="last", model=remote(keyless(401, after=0, until=1)), store=store)  # the second of the run
    assert list(again.items[0].failed.values()) == ["failed"]


def test_ten_refusals_in_a_row_stop_a_run(tmp_path: Path) -> None:
    store, items = tmp_path / "r.sqlite", {f"i{i}": ring(3, name=f"i{i}") for i in range(6)}
    paused = acquire(items, remote(keyless(403, after=1)), store=store, method="witness")
    assert paused.stopped_because == "paused"
    assert paused.detail == "scripted: the server refused the key 10 times in a row (bad key)"
    assert sum(len(item.failed) for item in paused.items) == 10
    done = acquire(resume="last", model=remote(lambda request: "7"), store=store)
    assert done.stopped_because != "paused"
    assert sum(len(item.answers) for item in done.items) == 8


class Batching(Model):
    """Answers many together, and counts how many."""

    name = "batching"
    local = True
    batching = True
    identity = {"adapter": "batching"}  # noqa: RUF012 - a contract's property, given as a value

    def __init__(self, slots: int, *, throttled: frozenset[str] = frozenset()) -> None:
        self.slots, self.throttled = slots, set(throttled)
        self.retry = Retry(sleep=lambda seconds: None)
        self.sizes: list[int] = []

    def attempt(self, request: Request) -> Attempt:
        return self.attempt_all([request])[0]

    def attempt_all(self, requests: Sequence[Request]) -> list[Attempt]:
        self.sizes.append(len(requests))
        return [self._answer(request) for request in requests]

    def _answer(self, request: Request) -> Attempt:
        if request.prompt in self.throttled:
            self.throttled.discard(request.prompt)
            return Attempt(Outcome.RATE_LIMITED, "", Usage(calls=1))
        return Attempt(Outcome.ANSWERED, "12" if "question 2" in request.prompt else "7", Usage(9, 1, 1))


def test_a_model_that_answers_many_together_gets_batches_in_a_live_run(tmp_path: Path) -> None:
    """Never more than its slots, and with the same outcome as one by one."""
    fields = {f"item {i}": ring() for i in range(8)}
    batching = Batching(4)
    together = acquire(fields, batching, store=tmp_path / "batches.sqlite", method="witness", batch=6, cache=None)
    one_by_one = acquire(fields, Batching(1), store=tmp_path / "single.sqlite", method="witness", batch=6, cache=None)
    assert sum(batching.sizes) == together.calls == one_by_one.calls
    assert max(batching.sizes) == 4
    assert len(batching.sizes) < together.calls / 2
    assert [item.answers for item in together.items] == [item.answers for item in one_by_one.items]


def test_repeated_calls_of_a_batch_are_reserved_one_by_one(tmp_path: Path) -> None:
    """One throttled request is asked again, alone, and its repetition is in the journal first."""
    problem = ring()
    throttled = frozenset(node.prompt for node in problem.nodes[:2])
    model = Batching(6, throttled=throttled)
    run = acquire({"a": problem}, model, store=tmp_path / "r.sqlite", method="witness", batch=6)
    assert model.sizes[:2] == [5, 2]
    assert run.calls == sum(model.sizes)
    assert kinds(tmp_path).count(Kind.REPEATED) == 2


def test_a_batch_that_breaks_leaves_nothing_in_doubt(tmp_path: Path) -> None:
    class Breaking(Batching):
        def attempt_all(self, requests: Sequence[Request]) -> list[Attempt]:
            raise RuntimeError("the card fell out")

    with pytest.raises(RuntimeError, match="the card fell out"):
        acquire({"a": ring()}, Breaking(4), store=tmp_path / "r.sqlite", method="witness", batch=6)
    assert Kind.DOUBT not in kinds(tmp_path)
    done = acquire(resume="last", model=Batching(4), store=tmp_path / "r.sqlite")
    assert done.stopped_because != "paused"
