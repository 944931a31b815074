"""The pace of calls, on a clock of its own: halved once per wave of 429, quiet when asked to be,
one trial at a time when nobody answers.
"""

from __future__ import annotations

import asyncio

import pytest

from rrf_design.models import Attempt, NotBegun, Outcome, Request, Retry, Usage
from rrf_design.models.base import Model
from rrf_design.models.pacing import AWAY, LONGEST, PATIENCE, Pace, Turn

ANSWERED = Attempt(Outcome.ANSWERED, "7", Usage(3, 1, 1))
THROTTLED = Attempt(Outcome.RATE_LIMITED, usage=Usage(calls=1))
GONE = Attempt(Outcome.UNREACHABLE, usage=Usage())


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def heard(most: int = 64) -> tuple[Pace, Clock]:
    clock = Clock()
    pace = Pace(most, clock=clock)
    pace.end(ANSWERED, pace.begin())
    return pace, clock


def fill(pace: Pace) -> list[Turn]:
    return [pace.begin() for _ in range(pace.room)]


def test_it_begins_with_everything_that_is_allowed() -> None:
    pace = Pace(64)
    assert pace.room == 64
    fill(pace)
    assert pace.room == 0


def test_a_wave_of_429_halves_once_and_answers_raise_again() -> None:
    pace, clock = heard()
    wave = fill(pace)
    clock.now += 1.0
    for begun in wave:
        pace.end(THROTTLED, begun)
    assert pace.limit == 32.0
    assert pace.room == 0  # a short pause, though the server asked for none
    clock.now += LONGEST
    wave = fill(pace)
    assert len(wave) == 32
    for begun in wave[:10]:
        pace.end(ANSWERED, begun)
    assert pace.limit == 42.0
    pace.end(THROTTLED, wave[10])
    assert pace.limit == 21.0


def test_the_limit_never_falls_below_one_nor_rises_above_what_is_allowed() -> None:
    pace, clock = heard(4)
    for _ in range(9):
        clock.now += LONGEST
        pace.end(THROTTLED, pace.begin())
    assert pace.limit == 1.0
    for _ in range(20):
        clock.now += LONGEST
        pace.end(ANSWERED, pace.begin())
    assert pace.limit == 4.0


@pytest.mark.parametrize("outcome", [Outcome.RATE_LIMITED, Outcome.ANSWERED, Outcome.UNREACHABLE])
def test_the_server_is_left_alone_as_long_as_it_wants(outcome: Outcome) -> None:
    pace, clock = heard()
    pace.end(Attempt(outcome, "7", Usage(calls=1), retry_after=7.0), pace.begin())
    clock.now += 6.9
    assert pace.room == 0
    clock.now += 0.2
    assert pace.room > 0


def test_no_more_calls_are_begun_than_the_rate_headers_allow() -> None:
    """Five were left when the second of ten calls arrived; the eight after it have taken three too
    many already.
    """
    pace, clock = heard()
    wave = [pace.begin() for _ in range(10)]
    pace.end(Attempt(Outcome.ANSWERED, "7", Usage(3, 1, 1), allowance=(5, 2.0)), wave[1])
    assert pace.room == 0
    pace.end(Attempt(Outcome.ANSWERED, "7", Usage(3, 1, 1), allowance=(4, 2.0)), wave[9])
    assert pace.room == 4
    pace.end(
        Attempt(Outcome.ANSWERED, "7", Usage(3, 1, 1), allowance=(9, 2.0)), wave[0]
    )  # an older word counts no more
    assert len(fill(pace)) == 4
    assert pace.room == 0
    clock.now += 2.1
    assert pace.room > 4


def test_single_failures_among_answers_change_nothing() -> None:
    pace, _ = heard()
    for _ in range(50):
        pace.end(GONE, pace.begin())
        pace.end(ANSWERED, pace.begin())
    assert pace.room == 64


def test_a_server_that_is_away_is_tried_by_one_call_at_a_time_with_growing_pauses() -> None:
    pace, clock = heard()
    wave = fill(pace)
    for begun in wave:
        pace.end(GONE, begun)
    assert len(wave) > AWAY
    pauses = []
    for _ in range(12):
        before = clock.now
        while not pace.room:
            clock.now += 0.05
        pauses.append(clock.now - before)
        assert pace.room == 1
        begun = pace.begin()
        assert pace.room == 0
        pace.end(GONE, begun)
    assert pauses[0] < 1.0 < pauses[6] <= LONGEST + 0.1
    assert max(pauses) <= LONGEST + 0.1
    assert not pace.hopeless
    clock.now += PATIENCE
    assert pace.hopeless
    pace.end(ANSWERED, pace.begin())
    assert not pace.hopeless
    assert pace.room >= 32


def test_patience_is_for_servers_that_were_there_and_for_what_costs_nothing() -> None:
    assert not Pace(4).forgives(GONE)
    pace, _ = heard()
    assert pace.forgives(GONE)
    assert pace.forgives(THROTTLED)
    assert not pace.forgives(Attempt(Outcome.UNREACHABLE, usage=None))
    stingy = Pace(4, patient=False)
    stingy.end(ANSWERED, stingy.begin())
    assert stingy.forgives(GONE)
    assert not stingy.forgives(THROTTLED)  # where a bare call costs money


class Flaky(Model):
    """Plays a list of attempts."""

    asynchronous = True
    identity = {"adapter": "flaky", "model": "flaky"}  # noqa: RUF012

    def __init__(self, *plan: Attempt) -> None:
        self.plan = list(plan)

    def attempt(self, request: Request) -> Attempt:
        return self.plan.pop(0)

    async def attempt_async(self, request: Request) -> Attempt:
        return self.plan.pop(0)


def asked(model: Model, pace: Pace, **options: object) -> object:
    async def main() -> object:
        loop = asyncio.get_running_loop()
        real = loop.call_later
        # Pauses pass at once: the alarm rings in the next turn of the loop, and the clock says that
        # it is time.
        loop.call_later = lambda wait, call, *more: (advance(wait), real(0.0, call, *more))[1]  # type: ignore[method-assign]
        return await model.ask_async(Request("?"), pace, **options)  # type: ignore[arg-type]

    def advance(wait: float) -> None:
        pace._clock.now += wait + 0.01  # type: ignore[attr-defined]

    return asyncio.run(main())


def test_attempts_that_cost_nothing_are_repeated_until_the_server_is_back_and_counted() -> None:
    pace, _ = heard(1)
    reply = asked(Flaky(*[GONE] * 20, *[THROTTLED] * 5, ANSWERED), pace)
    assert (reply.outcome, reply.attempts, reply.usage.calls) == (Outcome.ANSWERED, 26, 6)  # type: ignore[attr-defined]


def test_attempts_that_may_have_been_charged_are_bounded() -> None:
    pace, _ = heard(1)
    cut = Attempt(Outcome.UNREACHABLE, usage=None)
    model = Flaky(*[cut] * 9)
    reply = asked(model, pace)
    assert (reply.attempts, len(model.plan)) == (4, 5)  # type: ignore[attr-defined]
    assert reply.usage.estimated  # type: ignore[attr-defined]


def test_a_server_that_was_never_there_is_given_up_soon() -> None:
    model = Flaky(*[GONE] * 9)
    reply = asked(model, Pace(1, clock=Clock()))
    assert (reply.outcome, reply.attempts) == (Outcome.UNREACHABLE, 4)  # type: ignore[attr-defined]


def test_again_is_asked_before_each_repeated_attempt() -> None:
    pace, _ = heard(1)
    counted = []

    async def again(tried: int) -> bool:
        counted.append(tried)
        return len(counted) < 3

    cut = Attempt(Outcome.UNREACHABLE, usage=None)
    reply = asked(Flaky(GONE, cut, *[GONE] * 9), pace, again=again)
    assert reply.attempts == 3  # type: ignore[attr-defined]
    assert counted == [0, 1, 1]  # what certainly cost nothing does not count


@pytest.mark.parametrize("tried", [0, 1, 3])
def test_attempts_of_earlier_sessions_count(tried: int) -> None:
    pace, _ = heard(1)
    reply = asked(Flaky(*[Attempt(Outcome.UNREACHABLE, usage=None)] * 9), pace, tried=tried)
    assert reply.attempts == 4 - tried  # type: ignore[attr-defined]
    model = Flaky(*[GONE] * 9)
    model.retry = Retry(sleep=lambda seconds: None)
    assert model.ask(Request("?"), tried=tried).attempts == 4 - tried


def test_a_session_that_ends_keeps_what_was_paid_and_begins_nothing() -> None:
    pace, _ = heard(1)
    paid = Attempt(Outcome.TIMEOUT, usage=Usage(5, 0, 1))

    async def again(tried: int) -> bool:
        pace.stop()
        return True

    reply = asked(Flaky(paid, ANSWERED), pace, again=again)
    assert (reply.outcome, reply.usage) == (Outcome.TIMEOUT, Usage(5, 0, 1))  # type: ignore[attr-defined]
    with pytest.raises(NotBegun):
        asked(Flaky(ANSWERED), pace)
