"""Providers of the extra against real servers on loopback, in two wire formats: each failure is an outcome of its own, no attempt is
hidden, and no key leaks. What every adapter promises is in test_conformance."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from rrf_design import models
from rrf_design.errors import InputError, MissingDependency
from rrf_design.models import Model, Outcome, Request, Retry, Usage
from rrf_design.models.pacing import Pace

SECRET = "sk-very-secret-0123456789"


def chat(text: str, finish: str) -> dict[str, Any]:
    """A completion as OpenAI-compatible servers write it."""
    choice = {"finish_reason": finish, "index": 0, "message": {"role": "assistant", "content": text}}
    usage = {"prompt_tokens": 7, "completion_tokens": 1, "total_tokens": 8}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}


def message(text: str, finish: str) -> dict[str, Any]:
    """The same as Anthropic writes it."""
    reasons = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}
    content = [{"type": "text", "text": text}] if text else []
    usage = {"input_tokens": 7, "output_tokens": 1}
    head = {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None}
    return {**head, "content": content, "stop_reason": reasons[finish], "usage": usage}


class Backend(ThreadingHTTPServer):
    """Plays a list of answers: (status, headers, body), or "hang" or "drop"."""

    daemon_threads = True
    write: Callable[[str, str], dict[str, Any]]
    spec: str
    url: str

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.plan: list[Any] = []
        self.seen: list[tuple[str, dict[str, Any]]] = []
        self.release = threading.Event()


class Handler(BaseHTTPRequestHandler):
    server: Backend

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.seen.append((self.path, json.loads(body)))
        step = self.server.plan.pop(0)
        if step == "hang":
            self.server.release.wait(30)
            return
        if step == "drop":
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        status, headers, answer = step
        text = answer if isinstance(answer, str) else json.dumps(answer)
        payload = text.replace("ECHO", str(self.headers["authorization"] or self.headers["x-api-key"])).encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(params=["openrouter", "anthropic"])
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Backend]:
    server = Backend()
    server.spec = f"{request.param}:m"
    server.write = message if request.param == "anthropic" else chat
    server.url = f"http://127.0.0.1:{server.server_port}" + ("" if request.param == "anthropic" else "/v1")
    monkeypatch.setenv(f"{request.param.upper()}_API_KEY", SECRET)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.release.set()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def model(backend: Backend) -> Iterator[Model]:
    retry = Retry(attempts=2, sleep=lambda _: None)
    with models.get(backend.spec, base_url=backend.url, timeout=5.0, retry=retry) as made:
        yield made


def ask(backend: Backend, model: Model, *plan: Any) -> models.Reply:
    backend.plan = list(plan)
    return model.ask(Request("2 + 3?", system="s", stop=("\n",), seed=None, temperature=0.5, top_p=None))


def test_asked_once_with_what_is_set_and_nothing_else(backend: Backend, model: Model) -> None:
    reply = ask(backend, model, (200, {}, backend.write("5", "stop")))
    assert (reply.text, reply.outcome, reply.usage) == ("5", Outcome.ANSWERED, Usage(7, 1, 1))
    path, sent = backend.seen[0]
    assert sent["temperature"] == 0.5
    assert not {"seed", "top_p", "stream"} & set(sent)
    if path.endswith("/messages"):
        assert (sent["max_tokens"], sent["system"], sent["stop_sequences"]) == (64, "s", ["\n"])
    else:
        assert (sent["max_completion_tokens"], sent["stop"]) == (64, ["\n"])
    assert reply.raw_request["messages"][1]["content"] == "2 + 3?"
    assert model.identity["base_url"] == backend.url


@pytest.mark.parametrize(
    ("status", "outcome", "attempts"),
    [
        (400, Outcome.FAILED, 1),
        (401, Outcome.FAILED, 1),
        (404, Outcome.FAILED, 1),
        (408, Outcome.TIMEOUT, 2),
        (429, Outcome.RATE_LIMITED, 2),
        (500, Outcome.UNREACHABLE, 2),
        (529, Outcome.UNREACHABLE, 2),
    ],
)
def test_statuses_and_no_hidden_attempts(
    backend: Backend, model: Model, status: int, outcome: Outcome, attempts: int
) -> None:
    step = (status, {}, {"error": {"message": "no, ECHO"}})
    reply = ask(backend, model, step, step)
    assert (reply.outcome, reply.attempts, reply.usage.calls) == (outcome, attempts, attempts)
    assert len(backend.seen) == attempts  # the client's own retries are off
    assert SECRET not in json.dumps(reply.document())
    assert "[redacted]" in reply.detail


def test_rate_limit_waits_as_told(backend: Backend, model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(model, "retry", Retry(attempts=2, sleep=waits.append))
    reply = ask(backend, model, (429, {"retry-after": "7"}, {}), (200, {}, backend.write("5", "stop")))
    assert (reply.outcome, reply.attempts, waits) == (Outcome.ANSWERED, 2, [7.0])


def test_cut_off_refused_and_silent_answers_are_none(backend: Backend, model: Model) -> None:
    outcomes = [
        ask(backend, model, (200, {}, backend.write(text, finish))).outcome
        for text, finish in (("5 or", "length"), ("x", "content_filter"), ("", "stop"))
    ]
    assert outcomes == [Outcome.TRUNCATED, Outcome.REFUSED, Outcome.EMPTY]


@pytest.mark.parametrize("body", ["<html>busy</html>", "[]", "{}", '{"choices": [], "content": 5}'])
def test_garbage_is_paid_for(backend: Backend, model: Model, body: str) -> None:
    reply = ask(backend, model, (200, {}, body))
    assert reply.outcome in (Outcome.GARBAGE, Outcome.EMPTY)
    assert reply.usage.estimated


def test_hanging_dropping_and_absent_servers(backend: Backend) -> None:
    with models.get(backend.spec, base_url=backend.url, timeout=0.2, retry=Retry(attempts=1)) as model:
        reply = ask(backend, model, "hang")
        assert (reply.outcome, reply.usage.estimated) == (Outcome.TIMEOUT, True)
        reply = ask(backend, model, "drop")
        assert (reply.outcome, reply.usage.estimated) == (Outcome.UNREACHABLE, True)
    with socket.socket() as taken:  # bound and not listening: connections are refused
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with models.get(backend.spec, base_url=url, retry=Retry(attempts=2, sleep=lambda _: None)) as model:
            reply = ask(backend, model)
    assert (reply.outcome, reply.attempts, reply.usage) == (Outcome.UNREACHABLE, 2, Usage())


def test_many_at_once_in_an_event_loop(backend: Backend, model: Model) -> None:
    backend.plan = [(200, {}, backend.write("5", "stop"))] * 20

    async def all_of_them() -> list[models.Reply]:
        pace = Pace(8)
        asked = Request("?", seed=None, temperature=None, top_p=None)
        replies = await asyncio.gather(*(model.ask_async(asked, pace) for _ in range(20)))
        await model.release()
        return replies

    assert {(r.text, r.usage.calls) for r in asyncio.run(all_of_them())} == {("5", 1)}
    assert len(backend.seen) == 20


def test_a_setting_that_the_provider_does_not_know_buys_nothing(backend: Backend) -> None:
    with models.get(backend.spec, base_url=backend.url, extra={"colour": "blue"}) as model:
        reply = ask(backend, model)
    assert (reply.outcome, reply.usage, backend.seen) == (Outcome.FAILED, Usage(), [])
    assert "colour" in reply.detail


def test_schemas_are_passed_on_or_given_up(backend: Backend, model: Model) -> None:
    schema = '{"type": "object", "properties": {"total": {"type": "number"}}, "required": ["total"]}'
    request = Request("total?", schema=schema, seed=None, temperature=None, top_p=None)
    backend.plan = [
        (400, {}, {"error": {"message": "json_schema is not supported"}}),
        (200, {}, backend.write("5", "stop")),
    ]
    reply = model.ask(request)
    sent = [bool({"response_format", "output_config"} & set(call)) for _, call in backend.seen]
    assert sent == [True, False]
    assert (reply.outcome, reply.usage.calls) == (Outcome.ANSWERED, 2)
    assert reply.detail == "asked without the JSON schema, which the server refused"


def test_seeds_are_refused_where_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    with models.get("anthropic:m") as model, pytest.raises(InputError, match="anthropic knows no seeds"):
        model.ask(Request("?", seed=1))


@pytest.mark.parametrize(
    ("spec", "kind", "message"),
    [
        ("anthropic:m", InputError, "model anthropic:m: set ANTHROPIC_API_KEY"),
        (
            "nebius:m",
            MissingDependency,
            r"the client of nebius is not installed; .* pip install 'any-llm-sdk\[nebius\]'",
        ),
        ("liner:m", InputError, "repeats calls that nobody counts"),
    ],
)
def test_what_is_missing_is_said_in_one_line(
    spec: str, kind: type[Exception], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from any_llm import AnyLLM

    monkeypatch.setattr(AnyLLM.get_provider_class("nebius"), "MISSING_PACKAGES_ERROR", ImportError("no client"))
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(kind, match=message) as caught:
        models.get(spec)
    assert "\n" not in str(caught.value)


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "any_llm", None)
    with pytest.raises(MissingDependency, match=r"pip install 'rrf-design\[providers\]'"):
        models.get("anthropic:claude")
    with pytest.raises(InputError, match="did you mean 'openai:gpt-4o'"):
        models.get("opnai:gpt-4o")


def test_bad_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    with pytest.raises(InputError, match="must begin with http"):
        models.get("anthropic:m", base_url="localhost:80")
    with pytest.raises(InputError, match="unknown option 'slot'; did you mean 'slots'"):
        models.get("anthropic:m", slot=3)
