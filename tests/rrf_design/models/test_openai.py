"""Failures of a server, from a server: each becomes its own outcome, and none of them leaks the key."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from rrf_design import models
from rrf_design.errors import InputError
from rrf_design.models import Model, Outcome, Reply, Request, Retry, Usage
from rrf_design.models.pacing import Pace

SECRET = "sk-very-secret-0123456789"
GOOD = {
    "choices": [{"finish_reason": "stop", "index": 0, "message": {"role": "assistant", "content": "5"}}],
    "usage": {"prompt_tokens": 7, "completion_tokens": 1},
}


class Backend(ThreadingHTTPServer):
    """Plays a list of answers: (status, headers, body), or "hang" or "drop"."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.plan: list[Any] = []
        self.seen: list[dict[str, Any]] = []
        self.release = threading.Event()
        self.by_wire = False


class Handler(BaseHTTPRequestHandler):
    server: Backend

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.seen.append(json.loads(body))
        step = self.server.plan.pop(0)
        if step == "hang":
            self.server.release.wait(30)
            return
        if step == "drop":
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        status, headers, answer = step
        text = answer if isinstance(answer, str) else json.dumps(answer)
        payload = text.replace("ECHO", str(self.headers["authorization"])).encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(params=["client", "wire"])
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    """Everything is tried through the general client and over the lean wire: it must mean the same."""
    server = Backend()
    server.by_wire = request.param == "wire"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.release.set()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def client(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> Iterator[Model]:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("RRF_OPENAI_BASE_URL", f"http://127.0.0.1:{backend.server_port}/v1")
    with models.get("openai:m", timeout=5.0, retry=Retry(attempts=2, sleep=lambda _: None)) as model:
        yield model


def ask(backend: Backend, client: Model, *plan: Any) -> Reply:
    backend.plan = list(plan)
    request = Request("2 + 3?", system="s", stop=("\n",), seed=4, temperature=0.5, top_p=0.9)
    return asyncio.run(over_the_wire(client, request)) if backend.by_wire else client.ask(request)


class Restless(Pace):
    """Waits for nothing."""

    @property
    def room(self) -> int:
        return 1


async def over_the_wire(client: Model, request: Request) -> Reply:
    assert client.asynchronous
    reply = await client.ask_async(request, Restless(1))
    await client.release()
    return reply


def test_request_as_sent(backend: Backend, client: Model) -> None:
    reply = ask(backend, client, (200, {}, GOOD))
    assert (reply.text, reply.outcome, reply.usage) == ("5", Outcome.ANSWERED, Usage(7, 1, 1))
    sent = backend.seen[0]
    assert sent == reply.raw_request
    assert sent["messages"] == [{"role": "system", "content": "s"}, {"role": "user", "content": "2 + 3?"}]
    assert (sent["seed"], sent["temperature"], sent["top_p"], sent["stop"]) == (4, 0.5, 0.9, ["\n"])
    assert reply.raw_response == GOOD


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
    ],
)
def test_statuses(backend: Backend, client: Model, status: int, outcome: Outcome, attempts: int) -> None:
    step = (status, {}, {"error": {"message": "no, ECHO"}})
    reply = ask(backend, client, step, step)
    assert (reply.outcome, reply.attempts, reply.usage.calls) == (outcome, attempts, attempts)
    assert SECRET not in json.dumps(reply.document())


def test_rate_limit_waits_as_told(backend: Backend, client: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(client, "retry", Retry(attempts=2, sleep=waits.append))
    reply = ask(backend, client, (429, {"retry-after": "7"}, {}), (200, {}, GOOD))
    assert (reply.outcome, reply.attempts, waits) == (Outcome.ANSWERED, 2, [] if backend.by_wire else [7.0])


@pytest.mark.parametrize(
    "body",
    ["<html>busy</html>", "[]", "{}", '{"choices": []}', '{"choices": [{"message": {"content": 5}}]}', "[" * 5000],
)
def test_garbage(backend: Backend, client: Model, body: str) -> None:
    reply = ask(backend, client, (200, {}, body))
    assert reply.outcome is Outcome.GARBAGE
    assert reply.usage.estimated  # an answer came, so it is paid for


def test_refusals_and_silence(backend: Backend, client: Model) -> None:
    def answer(finish: str, **message: Any) -> Any:
        return (200, {}, {"choices": [{"finish_reason": finish, "message": message}], "usage": GOOD["usage"]})

    assert ask(backend, client, answer("stop", content=None, refusal="no")).outcome is Outcome.REFUSED
    assert ask(backend, client, answer("content_filter", content="x")).outcome is Outcome.REFUSED
    assert ask(backend, client, answer("stop", content="")).outcome is Outcome.EMPTY
    assert ask(backend, client, answer("length", content="5 or")).outcome is Outcome.TRUNCATED


def test_unstated_usage_is_charged_at_the_ceiling(backend: Backend, client: Model) -> None:
    reply = ask(backend, client, (200, {}, {"choices": GOOD["choices"], "usage": {"prompt_tokens": "many"}}))
    assert reply.outcome is Outcome.ANSWERED
    assert reply.usage.estimated


def test_hanging_and_dropping_servers(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RRF_OPENAI_BASE_URL", f"http://127.0.0.1:{backend.server_port}/v1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with models.get("openai:m", timeout=0.1, retry=Retry(attempts=1)) as client:
        reply = ask(backend, client, "hang")
        assert reply.outcome is Outcome.TIMEOUT
        assert reply.usage.estimated  # the server may have answered, and charged
        reply = ask(backend, client, "drop")
        assert reply.outcome is Outcome.UNREACHABLE
        assert reply.usage.estimated


def test_server_gone_and_back(backend: Backend, client: Model) -> None:
    with socket.socket() as taken:  # bound and not listening: connections are refused
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        with models.get("openai:m", base_url=url, retry=Retry(attempts=3, sleep=lambda _: None)) as gone:
            reply = gone.ask(Request("x"))
    assert (reply.outcome, reply.attempts, reply.usage) == (Outcome.UNREACHABLE, 3, Usage())
    assert ask(backend, client, (200, {}, GOOD)).outcome is Outcome.ANSWERED


def test_the_key_never_leaves(backend: Backend, client: Model) -> None:
    echoed = json.loads(json.dumps(GOOD).replace('"5"', '"my header is ECHO"'))
    replies = [
        ask(backend, client, (200, {}, echoed)),
        ask(backend, client, (200, {}, "ECHO")),
        ask(backend, client, (401, {}, {"error": {"message": "wrong key ECHO"}})),
    ]
    assert replies[0].text == "my header is Bearer [redacted]"
    shown = [repr(client), str(client.identity), *(repr(reply) for reply in replies)]
    assert not any(SECRET in text for text in shown)
    assert all("[redacted]" in repr(reply) for reply in replies)


def test_password_in_the_address_is_not_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with models.get("openai:m", base_url="http://me:hunter2@127.0.0.1:9/v1?token=hunter3") as model:
        assert model.identity["base_url"] == "http://127.0.0.1:9/v1"


def test_bad_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "RRF_OPENAI_API_KEY", "RRF_OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InputError, match="set OPENAI_API_KEY, or RRF_OPENAI_BASE_URL"):
        models.get("openai:m")
    with pytest.raises(InputError, match="must begin with http"):
        models.get("openai:m", base_url="localhost:80")


def test_what_is_not_set_is_not_sent(backend: Backend, client: Model) -> None:
    backend.plan = [(200, {}, GOOD)]
    client.ask(Request("?", temperature=None, top_p=None, seed=None))
    assert set(backend.seen[0]) == {"model", "messages", "max_tokens"}


SCHEMA = '{"type": "object", "properties": {"total": {"type": "number"}}, "required": ["total"]}'


def form(backend: Backend, client: Model, *plan: Any) -> Reply:
    backend.plan = list(plan)
    request = Request("total?", schema=SCHEMA)
    return asyncio.run(over_the_wire(client, request)) if backend.by_wire else client.ask(request)


def test_a_schema_is_sent(backend: Backend, client: Model) -> None:
    reply = form(backend, client, (200, {}, GOOD))
    assert backend.seen[0]["response_format"]["json_schema"]["schema"] == json.loads(SCHEMA)
    assert (reply.outcome, reply.detail) == (Outcome.ANSWERED, "")


def test_a_server_that_refuses_schemas_is_asked_without_and_it_is_recorded(backend: Backend, client: Model) -> None:
    no = (400, {}, {"error": {"message": "'response_format' of type json_schema is not supported"}})
    reply = form(backend, client, no, (200, {}, GOOD))
    assert ["response_format" in call for call in backend.seen] == [True, False]
    assert (reply.outcome, reply.attempts, reply.usage.calls) == (Outcome.ANSWERED, 2, 2)  # every call is booked
    assert reply.detail == "asked without the JSON schema, which the server refused"
    assert "response_format" not in reply.raw_request
    reply = form(backend, client, (200, {}, GOOD))  # it is not offered again
    assert (reply.attempts, reply.detail) == (1, "asked without the JSON schema, which the server refused")


def test_another_refusal_is_none_of_the_schema(backend: Backend, client: Model) -> None:
    reply = form(backend, client, (400, {}, {"error": {"message": "the prompt is too long"}}))
    assert (reply.outcome, reply.attempts) == (Outcome.FAILED, 1)


def test_a_model_that_takes_no_limit_can_be_asked(backend: Backend) -> None:
    url = f"http://127.0.0.1:{backend.server_port}/v1"
    with models.get("openai:m", base_url=url, token_field="none", json_schema=False) as model:
        backend.plan = [(200, {}, GOOD)]
        model.ask(Request("?", temperature=None, top_p=None, seed=None))
        assert set(backend.seen[0]) == {"model", "messages"}
        assert not model.bounded
        with pytest.raises(InputError, match="takes no JSON schema"):
            model.ask(Request("?", schema=SCHEMA))


def test_a_web_page_is_no_model_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every answer of it would be garbage that counts as paid for."""
    import httpx
    import openai

    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    page = httpx.MockTransport(lambda _: httpx.Response(200, html="<html>Welcome</html>"))
    with models.get("openai:m", base_url="http://127.0.0.1:9/v1") as model:
        model._client = openai.OpenAI(  # type: ignore[attr-defined]
            api_key="k", base_url="http://127.0.0.1:9/v1", max_retries=0, http_client=httpx.Client(transport=page)
        )
        with pytest.raises(InputError, match=r"a web page answers at http://127.0.0.1:9/v1.*correct base_url"):
            model.preflight()


def test_a_certificate_that_is_not_trusted_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import httpx
    import openai

    def refuse(request: httpx.Request) -> httpx.Response:
        reason = "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate (_ssl.c:1006)"
        raise httpx.ConnectError(reason, request=request)

    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    with models.get("openai:m", base_url="https://127.0.0.1:9/v1") as model:
        own = httpx.Client(transport=httpx.MockTransport(refuse))
        model._client = openai.OpenAI(  # type: ignore[attr-defined]
            api_key="k", base_url="https://127.0.0.1:9/v1", max_retries=0, http_client=own
        )
        with pytest.raises(InputError, match=r"is not trusted here \(self-signed certificate\).*SSL_CERT_FILE"):
            model.preflight()
