"""Calls under way: driven, fetched, and told about."""

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

import rrf_design as rrf
from rrf_design.acquisition import Journal, acquire, read_run
from rrf_design.acquisition import _driver as driver
from rrf_design.acquisition import _live as live
from rrf_design.acquisition._driver import _AsyncWorker, _Returned, _Size, _Workers
from rrf_design.acquisition._fetch import Fetcher
from rrf_design.acquisition._progress import ProgressReport
from rrf_design.acquisition._purchases import Buys, Purchase, Settlement
from rrf_design.acquisition._state import ItemState
from rrf_design.acquisition.journal import Event, Kind
from rrf_design.acquisition.sources.base import Unreachable
from rrf_design.errors import InputError
from rrf_design.models import Attempt, Model, NotBegun, Outcome, PriceTable, Request, Retry, Usage
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


PRICES = PriceTable.load({"scripted": {"input": 0.001, "output": 0.01}})


def problem(**node: Any) -> rrf.Problem:
    given = {"id": "n", "prompt": "What is {{ a }} + 1?", "variables": {"a": 6}, "system": "Be brief.", "max_tokens": 9}
    return rrf.Problem(k=1, nodes=[given | node], anchors=[{"id": "A", "node": "n", "value": 7.0, "cost": 1.0}])


def fetcher(script: Any = lambda request: "7", **options: Any) -> Fetcher:
    return Fetcher({"": problem()}, scripted(script), known={}, **options)


def ask(one: Fetcher) -> Any:
    return one.fetch(Purchase("", "n", Buys.ANSWER, 0.0), ItemState())


def test_the_request_is_what_the_node_says_and_a_plain_prompt_as_it_is() -> None:
    request = fetcher(seed=5).questions["", "n"].request
    assert (request.prompt, request.system, request.max_tokens, request.seed) == ("What is 6 + 1?", "Be brief.", 9, 5)
    assert request.grammar is None
    assert fetcher(constrained=True).questions["", "n"].request.grammar is not None
    one = Fetcher({"": problem(variables=None, prompt="{{ braces }}")}, scripted(), known={})
    assert one.questions["", "n"].request.prompt == "{{ braces }}"


def test_answers_carry_their_evidence() -> None:
    settled = ask(fetcher())
    assert (settled.outcome, settled.value, settled.ok, settled.calls) == ("answered", (7.0,), True, 1)
    assert settled.evidence["request"]["prompt"] == "What is 6 + 1?"
    assert settled.evidence["parsed"]["canonical"] == "7"


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ("no number", "parse failure"),
        ("", "empty"),
        (Attempt(Outcome.TIMEOUT, usage=Usage(1, 0, 1)), "timeout"),
        (Attempt(Outcome.FAILED, usage=Usage(calls=1)), "failed"),
    ],
)
def test_failures_are_named_and_have_no_value(answer: Any, outcome: str) -> None:
    settled = ask(fetcher(lambda request: answer))
    assert (settled.outcome, settled.value, settled.ok) == (outcome, None, False)


def test_nobody_there_buys_nothing_but_charged_attempts_are_settled() -> None:
    with pytest.raises(Unreachable, match="unreachable: gone"):
        ask(fetcher(lambda request: Attempt(Outcome.UNREACHABLE, usage=Usage(), detail="gone")))
    charged = Attempt(Outcome.UNREACHABLE, usage=Usage(10, 0, 1), detail="gone")
    settled = ask(fetcher(lambda request: charged, prices=PRICES))
    assert (settled.outcome, settled.value, settled.ok) == ("unreachable", None, False)
    assert settled.money > 0.0


def test_the_ceiling_covers_what_a_call_can_cost() -> None:
    one = fetcher(prices=PRICES)
    terms = one.terms("", "n")
    assert ask(one).money <= terms.ceiling
    assert terms.local
    assert fetcher().terms("", "n").ceiling == 0.0


def test_what_is_known_or_in_the_file_is_settled_at_once() -> None:
    one = Fetcher({"": problem(prompt=None)}, scripted(), known={"": {"n": 7.0}})
    assert one.questions == {}
    assert one.all_local
    one = fetcher()
    settled = one.instant(Purchase("", "A", Buys.ANCHOR, 1.0))
    assert settled is not None
    assert settled.value == (7.0,)
    assert one.instant(Purchase("", "n", Buys.ANSWER, 0.0)) is None


def test_equal_questions_keep_their_numbers_whatever_is_known() -> None:
    """Of a node whose answer is given, too; one that can't be asked counts for nothing."""
    nodes = [{"id": name, "prompt": "6 + 1?"} for name in ("a", "b", "c")]
    nodes += [{"id": "other", "prompt": "6 + 2?"}, {"id": "elsewhere", "prompt": "6 + 1?", "model": "nobody"}]
    whole = rrf.Problem(k=1, nodes=nodes)
    numbers = {"a": 0, "b": 1, "c": 2, "other": 0}
    for given in ({"elsewhere"}, {"elsewhere", "a"}, {"elsewhere", "b", "other"}, {"elsewhere", "a", "b", "c"}):
        one = Fetcher({"": whole}, scripted(), known={"": dict.fromkeys(given, 7.0)})
        asked = {name: question.request.repeat for (_, name), question in one.questions.items()}
        assert asked == {name: number for name, number in numbers.items() if name not in given}


def test_a_schema_goes_to_whoever_takes_one() -> None:
    asked = problem(parser={"name": "json", "field": "total"})
    assert Fetcher({"": asked}, scripted(), known={}).questions["", "n"].request.schema is None
    able = scripted()
    able.supports_schema = True
    schema = Fetcher({"": asked}, able, known={}).questions["", "n"].request.schema
    assert schema is not None
    assert '"required": ["total"]' in schema
    assert Fetcher({"": problem()}, able, known={}).questions["", "n"].request.schema is None  # it reads no JSON


def test_what_a_model_does_not_take_is_found_before_anything_is_bought() -> None:
    deaf = scripted()
    deaf.supports_grammar = False
    with pytest.raises(InputError, match="node 'n': model scripted: it offers no grammars"):
        Fetcher({"": problem()}, deaf, known={}, constrained=True)


SESSION = {"budget": 400.0, "money": None, "items": 300, "done": 0, "spent": 0.0, "paid": 0.0, "calls": 0}


def settled(at: float, **changes: Any) -> Event:
    body = {"item": "i", "name": "n", "outcome": "answered", "value": [7.0], "price": 0.5, "money": 0.0, "calls": 1}
    return Event(Kind.SETTLED, body | changes, at=at)


def listening() -> tuple[ProgressReport, list[tuple[Any, Any, str]]]:
    heard: list[tuple[Any, Any, str]] = []
    return ProgressReport(lambda *told: heard.append(told)), heard


def test_the_line_says_items_money_rate_and_time_left() -> None:
    teller, heard = listening()
    teller(Event(Kind.SESSION, SESSION, at=0.0))
    for i in range(100):
        teller(settled(float(i)))
    teller(Event(Kind.STOPPED, {"item": "i", "because": "x"}, at=100.0))
    assert heard[-1] == (1 / 300, None, "1 of 300 items; spent 50 of 400; 100 calls, 1 a second; about 8.31 h left")


def test_money_is_shown_where_there_is_a_limit() -> None:
    teller, heard = listening()
    teller(Event(Kind.SESSION, SESSION | {"money": 2.0, "paid": 0.25, "done": 7, "calls": 9}, at=0.0))
    assert heard[-1][2] == "7 of 300 items; spent 0 of 400; money 0.25 of 2; 9 calls"


def test_a_single_field_tells_its_story() -> None:
    teller, heard = listening()
    teller(Event(Kind.SESSION, SESSION | {"items": 1}, at=0.0))
    teller(settled(1.0))
    teller(settled(1.5, name="m", outcome="unreadable", value=None))
    teller(Event(Kind.ROUND, {"gamma": 0.5, "support": ["a", "b"], "names": ["x"]}, at=1.6))
    teller(Event(Kind.STOPPED, {"item": "", "because": "target reached"}, at=2.0))
    assert [words for _, _, words in heard] == [
        "  n: answered = 7  [0.5]",
        "  m: unreadable  [0.5]",
        "margin 0.5, worst on a, b; next: x",
        "stopped: target reached",
    ]
    assert {share for share, _, _ in heard} == {None}  # nobody knows how long it will be


def test_questions_that_every_item_has_say_how_long_it_takes_before_an_item_is_done() -> None:
    teller = ProgressReport(lambda share, bounds, words: None)
    teller(Event(Kind.SESSION, SESSION | {"open": 1200}, at=0.0))
    for i in range(301):
        teller(settled(0.1 * i, price=0.0))
    assert teller.words.startswith("0 of 300 items; 301 of 1,200 questions; spent 0 of 400; 301 calls, ")
    assert teller.words.endswith("about 90 s left")


def test_who_takes_events_gets_the_state_as_a_document() -> None:
    class Taker:
        def __init__(self) -> None:
            self.seen: list[Any] = []

        def __call__(self, share: float | None, bounds: tuple[float, float] | None, words: str) -> None:
            raise AssertionError("it wants events")

        def event(self, document: Any) -> None:
            self.seen.append(document)

    taker = Taker()
    teller = ProgressReport(taker)
    teller(Event(Kind.SESSION, SESSION | {"items": 1}, at=0.0))
    teller(settled(2.0))
    teller(Event(Kind.RELEASED, {"item": "i", "name": "n", "reason": "x", "calls": 2, "money": 0.5}, at=3.0))
    teller(Event(Kind.STOPPED, {"item": "i", "because": "x"}, at=4.0))
    last = taker.seen[-1]
    assert (last["event"], last["done"], last["items"], last["calls"], last["money"]) == ("progress", 1, 1, 3, 0.5)
    assert (last["calls_per_second"], last["seconds_left"]) == (0.75, 0.0)


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
