"""What every adapter that talks to a server promises, tried over each of their ways to one: a
failure is an outcome of its own, no attempt is hidden, only what is certainly free is free, and no
key leaks. A new way joins with one line in ``WIRINGS``.
"""

from __future__ import annotations

import json
import socket
import threading

import pytest
from loopback_server import SECRET, WIRINGS, Backend, Wiring, ask

from rrf_design import models
from rrf_design.models import Model, Outcome, Retry, Usage


@pytest.fixture(params=WIRINGS)
def wiring(request: pytest.FixtureRequest) -> Wiring:
    return WIRINGS[request.param]


@pytest.mark.parametrize(
    ("status", "outcome", "attempts"),
    [
        (400, Outcome.FAILED, 1),
        (401, Outcome.FAILED, 1),
        (404, Outcome.FAILED, 1),
        (408, Outcome.TIMEOUT, 2),
        (429, Outcome.RATE_LIMITED, 2),
        (500, Outcome.UNREACHABLE, 2),
        (503, Outcome.UNREACHABLE, 2),
        (529, Outcome.UNREACHABLE, 2),
    ],
)
def test_statuses_and_no_hidden_attempts(
    backend: Backend, client: Model, status: int, outcome: Outcome, attempts: int
) -> None:
    step = (status, {}, {"error": {"message": "no, ECHO"}})
    reply = ask(backend, client, step, step)
    assert (reply.outcome, reply.attempts, reply.usage.calls) == (outcome, attempts, attempts)
    assert len(backend.seen) == attempts  # the client's own retries are off
    assert SECRET not in json.dumps(reply.document())
    assert "[redacted]" in reply.detail


def test_rate_limit_waits_as_told(backend: Backend, client: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(client, "retry", Retry(attempts=2, sleep=waits.append))
    reply = ask(backend, client, (429, {"retry-after": "7"}, {}), (200, {}, backend.write("5", "stop")))
    assert (reply.outcome, reply.attempts, waits) == (Outcome.ANSWERED, 2, [] if backend.by_wire else [7.0])


def test_cut_off_refused_and_silent_answers_are_none(backend: Backend, client: Model) -> None:
    outcomes = [
        ask(backend, client, (200, {}, backend.write(text, finish))).outcome
        for text, finish in (("5 or", "length"), ("x", "content_filter"), ("", "stop"))
    ]
    assert outcomes == [Outcome.TRUNCATED, Outcome.REFUSED, Outcome.EMPTY]


@pytest.mark.parametrize("body", ["<html>busy</html>", "[]", "{}", '{"choices": [], "content": 5}'])
def test_garbage_is_paid_for(backend: Backend, client: Model, body: str) -> None:
    reply = ask(backend, client, (200, {}, body))
    assert reply.outcome in (Outcome.GARBAGE, Outcome.EMPTY)
    assert reply.usage.estimated  # an answer came


def test_hanging_dropping_and_absent_servers(backend: Backend, client: Model) -> None:
    with models.get(backend.spec, base_url=backend.url, timeout=0.2, retry=Retry(attempts=1)) as hasty:
        reply = ask(backend, hasty, "hang")
        assert (reply.outcome, reply.usage.estimated) == (Outcome.TIMEOUT, True)  # it may have answered, and charged
        reply = ask(backend, hasty, "drop")
        assert (reply.outcome, reply.usage.estimated) == (Outcome.UNREACHABLE, True)
    with socket.socket() as taken:  # bound and not listening: connections are refused
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}{backend.wiring.path}"
        with models.get(backend.spec, base_url=url, retry=Retry(attempts=2, sleep=lambda _: None)) as gone:
            reply = ask(backend, gone)
    assert (reply.outcome, reply.attempts, reply.usage) == (Outcome.UNREACHABLE, 2, Usage())
    assert ask(backend, client, (200, {}, backend.write("5", "stop"))).outcome is Outcome.ANSWERED


def test_schemas_are_passed_on_or_given_up(backend: Backend, client: Model) -> None:
    schema = '{"type": "object", "properties": {"total": {"type": "number"}}, "required": ["total"]}'
    plan = [(400, {}, {"error": {"message": "json_schema is not supported"}}), (200, {}, backend.write("5", "stop"))]
    reply = ask(backend, client, *plan, schema=schema)
    sent = [bool({"response_format", "output_config"} & set(call)) for call in backend.seen]
    assert sent == [True, False]
    assert (reply.outcome, reply.usage.calls) == (Outcome.ANSWERED, 2)
    assert reply.detail == "asked without the JSON schema, which the server refused"


def test_the_key_never_leaves(backend: Backend, client: Model) -> None:
    replies = [
        ask(backend, client, (200, {}, backend.write("my header is ECHO", "stop"))),
        ask(backend, client, (200, {}, "ECHO")),
        ask(backend, client, (401, {}, {"error": {"message": "wrong key ECHO"}})),
    ]
    assert replies[0].text.endswith("[redacted]")
    shown = [repr(client), str(client.identity), *(repr(reply) for reply in replies)]
    assert not any(SECRET in text for text in shown)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(backend: Backend, client: Model, wiring: Wiring, status: int) -> None:
    """Whoever can answer for a server must not learn the questions by pointing elsewhere."""
    other = Backend(wiring)
    thread = threading.Thread(target=other.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        other.plan = [(200, {}, backend.write("5", "stop"))]
        reply = ask(backend, client, (status, {"location": f"{other.url}/chat/completions"}, {}))
    finally:
        other.shutdown()
        other.server_close()
        thread.join()
    assert other.seen == []
    assert (reply.outcome, reply.usage, len(backend.seen)) == (Outcome.FAILED, Usage(calls=1), 1)
    assert "the server redirects to another address, which is not followed; correct base_url" in reply.detail
