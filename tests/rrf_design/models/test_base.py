from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from rrf_design.errors import InputError
from rrf_design.models import Attempt, Model, Outcome, Request, Retry, Usage, key


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prompt": " \n"}, "the prompt is empty"),
        ({"max_tokens": 0}, "max_tokens is 0"),
        ({"temperature": -0.5}, "temperature is -0.5"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"top_p": 0.0}, "top_p is 0.0"),
    ],
)
def test_bad_requests(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Request(**{"prompt": "x", **change})


class Failing(Model):
    """Fails in a given order, then answers; a failing double for whoever calls models."""

    name = "failing"

    def __init__(self, *outcomes: Outcome, attempts: int = 4, retry_after: float | None = None) -> None:
        self.outcomes = list(outcomes)
        self.waits: list[float] = []
        self.retry = Retry(attempts=attempts, base=0.5, longest=8.0, sleep=self.waits.append)
        self.retry_after = retry_after

    @property
    def identity(self) -> Mapping[str, Any]:
        return {"adapter": "failing", "model": "failing"}

    def attempt(self, request: Request) -> Attempt:
        if self.outcomes:
            return Attempt(self.outcomes.pop(0), usage=Usage(2, 0, 1), retry_after=self.retry_after)
        return Attempt(Outcome.ANSWERED, "5", Usage(3, 1, 1))


def test_retries_are_bounded_and_paid_for() -> None:
    model = Failing(Outcome.RATE_LIMITED, Outcome.TIMEOUT)
    reply = model.ask(Request("x"))
    assert (reply.outcome, reply.text, reply.attempts) == (Outcome.ANSWERED, "5", 3)
    assert reply.usage == Usage(7, 1, 3)
    assert len(model.waits) == 2

    model = Failing(*[Outcome.UNREACHABLE] * 9)
    reply = model.ask(Request("x"))
    assert (reply.outcome, reply.attempts, len(model.waits)) == (Outcome.UNREACHABLE, 4, 3)


@pytest.mark.parametrize("outcome", [Outcome.REFUSED, Outcome.EMPTY, Outcome.GARBAGE, Outcome.FAILED])
def test_final_outcomes_are_not_retried(outcome: Outcome) -> None:
    model = Failing(outcome)
    reply = model.ask(Request("x"))
    assert (reply.outcome, reply.attempts, model.waits) == (outcome, 1, [])
    assert not reply.parseable


def test_waits_are_jittered_within_bounds_and_respect_the_server() -> None:
    waits: list[float] = []
    retry = Retry(base=0.5, longest=8.0, sleep=waits.append)
    for done in range(1, 60):
        retry.wait(done, None)
    assert all(0.0 <= wait <= min(8.0, 0.5 * 2.0**done) for done, wait in enumerate(waits, 1))
    assert len(set(waits)) > 10
    model = Failing(Outcome.RATE_LIMITED, retry_after=3.0)
    model.ask(Request("x"))
    assert model.waits[0] == 3.0
    model = Failing(Outcome.RATE_LIMITED, retry_after=3600.0)
    model.ask(Request("x"))
    assert model.waits == [8.0]


def test_unknown_usage_is_charged_at_the_ceiling() -> None:
    class Silent(Failing):
        def attempt(self, request: Request) -> Attempt:
            return Attempt(Outcome.ANSWERED, "5")

    request = Request("héllo", system="sys", max_tokens=9)
    reply = Silent().ask(request)
    assert reply.usage == request.ceiling()
    assert reply.usage.estimated
    assert reply.usage.output_tokens == 9
    assert reply.usage.input_tokens >= len("héllosys".encode())


def test_key_is_canonical() -> None:
    request = Request("ä", stop=("\n",))
    assert key(request, {"a": 1, "b": 2}) == key(Request("ä", stop=("\n",)), {"b": 2, "a": 1})
    assert len(key(request, {})) == 64
    changed = [Request("ä"), Request("ä", stop=("\n",), seed=1), Request("ä", stop=("\n",), system="s")]
    assert len({key(r, {}) for r in [request, *changed]}) == 4


def test_request_round_trip() -> None:
    request = Request("q", system="s", stop=("a", "b"), temperature=0.7, top_p=0.9, seed=3, grammar="root ::= [0-9]+")
    assert Request.from_document(json.loads(json.dumps(request.document()))) == request


def test_complete_uses_all_slots() -> None:
    together = threading.Barrier(3)

    class Wide(Failing):
        slots = 3

        def attempt(self, request: Request) -> Attempt:
            together.wait(timeout=10)  # returns only if three calls are in flight at once
            return Attempt(Outcome.ANSWERED, request.prompt, Usage(1, 1, 1))

    replies = Wide().complete([Request(str(i)) for i in range(6)])
    assert [reply.text for reply in replies] == [str(i) for i in range(6)]


def test_context_manager_closes() -> None:
    closed = []

    class Closing(Failing):
        def close(self) -> None:
            closed.append(True)

    with Closing():
        pass
    assert closed == [True]
