"""Threads and the event loop that fetch: everything handed out comes back, errors included."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable

import pytest

from rrf_design.acquisition.crew import Courier, Crew, Returned
from rrf_design.acquisition.purchases import Buys, Purchase, Settlement
from rrf_design.models import Attempt, NotBegun, Outcome, Request
from rrf_design.models.pacing import Pace


def purchase(number: int) -> Purchase:
    return Purchase("", f"n{number}", Buys.ANSWER, 0.0)


def gather(crew: Crew, count: int) -> list[Returned]:
    found: list[Returned] = []
    while len(found) < count:
        results = crew.done.get(timeout=30)
        found += results
        crew.returned(results)
    return found


def threads(fetch: Callable[[Purchase], Settlement], size: int) -> Crew:
    return Crew(fetch, lambda purchase: ("", size))


async def nothing() -> None:
    return None


def flying(
    fetch: Callable[[Purchase], Awaitable[Settlement]],
    hurry: Callable[[], None] = lambda: None,
    release: Callable[[], Awaitable[None]] = nothing,
) -> Crew:
    def never(purchase: Purchase) -> Settlement:
        raise AssertionError("no thread is asked")

    return Crew(never, lambda purchase: None, Courier(fetch, hurry=hurry, release=release))


def test_everything_comes_back_once_and_errors_too() -> None:
    def fetch(given: Purchase) -> Settlement:
        if given.name == "n3":
            raise KeyboardInterrupt
        return Settlement(given, "told", (7.0,))

    crew = threads(fetch, 4)
    crew.start(purchase(number) for number in range(20))
    found = gather(crew, 20)
    crew.close()
    assert sorted(result.purchase.name for result in found) == sorted(f"n{i}" for i in range(20))
    assert [result.purchase.name for result in found if isinstance(result.error, KeyboardInterrupt)] == ["n3"]


def test_purchases_are_fetched_side_by_side() -> None:
    """Both wait for each other: one thread alone would never get past this."""
    both = threading.Barrier(2, timeout=30)

    def fetch(given: Purchase) -> Settlement:
        both.wait()
        return Settlement(given, "told", (7.0,))

    crew = threads(fetch, 2)
    crew.start(purchase(number) for number in range(4))
    assert all(result.error is None for result in gather(crew, 4))
    crew.wake()
    assert crew.done.get(timeout=30) == ()
    crew.close()


def test_a_slow_lane_holds_up_nobody_else() -> None:
    begun, gate = threading.Event(), threading.Event()

    def fetch(given: Purchase) -> Settlement:
        if given.name == "n0":
            begun.set()
            assert gate.wait(30)
        return Settlement(given, "told", (7.0,))

    crew = Crew(fetch, lambda purchase: ("slow" if purchase.name in ("n0", "n1") else "quick", 1))
    crew.start(purchase(number) for number in range(6))
    assert {result.purchase.name for result in gather(crew, 4)} == {"n2", "n3", "n4", "n5"}
    assert begun.wait(30)
    assert [given.name for given in crew.recall()] == ["n1"]
    gate.set()
    assert [result.purchase.name for result in gather(crew, 1)] == ["n0"]
    crew.close()


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

    crew = flying(fetch, release=release)
    crew.start(purchase(number) for number in range(count))
    found = gather(crew, count)
    crew.close()
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

    crew = flying(fetch, hurry)
    crew.start([purchase(0), purchase(1), purchase(2)])
    assert begun.wait(30)
    assert crew.recall() == []
    found = {result.purchase.name: result for result in gather(crew, 3)}
    assert found["n0"].settlement is not None  # what was begun is waited for
    assert all(isinstance(found[name].error, NotBegun) for name in ("n1", "n2"))
    crew.close()


def test_closing_drops_calls_that_nobody_waits_for() -> None:
    begun = threading.Event()

    async def fetch(given: Purchase) -> Settlement:
        begun.set()
        await asyncio.get_running_loop().create_future()
        raise AssertionError("nobody answers")

    crew = flying(fetch)
    crew.start([purchase(0)])
    assert begun.wait(30)
    crew.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "fetch-loop"]
