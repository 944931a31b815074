"""OpenAI-compatible servers: what is sent, what statuses and bodies mean, and the wire that they go
over.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from loopback_server import GOOD, SECRET, WIRINGS, Backend, Wiring, ask, over_the_wire

from rrf_design import models
from rrf_design.errors import InputError
from rrf_design.models import Model, Outcome, Reply, Request, Usage
from rrf_design.models.openai import _Broken, _reaches, _Response, _Silent, _Unsent, _Wire


@pytest.fixture(params=["client", "wire"])
def wiring(request: pytest.FixtureRequest) -> Wiring:
    """Everything is tried through the general client and over the lean wire: it must mean the
    same.
    """
    return WIRINGS[request.param]


def test_request_as_sent(backend: Backend, client: Model) -> None:
    reply = ask(backend, client, (200, {}, GOOD), seed=4, top_p=0.9)
    assert (reply.text, reply.outcome, reply.usage) == ("5", Outcome.ANSWERED, Usage(7, 1, 1))
    sent = backend.seen[0]
    assert sent == reply.raw_request
    assert sent["messages"] == [{"role": "system", "content": "s"}, {"role": "user", "content": "2 + 3?"}]
    assert (sent["seed"], sent["temperature"], sent["top_p"], sent["stop"]) == (4, 0.5, 0.9, ["\n"])
    assert reply.raw_response == GOOD


@pytest.mark.parametrize(
    "body",
    ['{"choices": []}', '{"choices": [{"message": {"content": 5}}]}', "[" * 5000],
)
def test_garbage(backend: Backend, client: Model, body: str) -> None:
    reply = ask(backend, client, (200, {}, body))
    assert reply.outcome is Outcome.GARBAGE
    assert reply.usage.estimated  # an answer came, so it is paid for


def test_unstated_usage_is_charged_at_the_ceiling(backend: Backend, client: Model) -> None:
    reply = ask(backend, client, (200, {}, {"choices": GOOD["choices"], "usage": {"prompt_tokens": "many"}}))
    assert reply.outcome is Outcome.ANSWERED
    assert reply.usage.estimated


def test_password_in_the_address_is_not_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with models.get("openai:m", base_url="http://me:hunter2@127.0.0.1:9/v1?token=hunter3") as model:
        assert model.identity["base_url"] == "http://127.0.0.1:9/v1"


def test_bad_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "RRF_OPENAI_API_KEY", "RRF_OPENAI_BASE_URL", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InputError, match="set OPENAI_API_KEY, or OPENAI_BASE_URL"):
        models.get("openai:m")
    with pytest.raises(InputError, match="must begin with http"):
        models.get("openai:m", base_url="localhost:80")


@pytest.mark.parametrize("name", ["OPENAI_BASE_URL", "RRF_OPENAI_BASE_URL"])
def test_the_address_comes_from_the_environment(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with the provider's own client: a key must not go to another server than the one that was
    named.
    """
    monkeypatch.delenv("RRF_OPENAI_BASE_URL", raising=False)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:2/v1")
    monkeypatch.setenv(name, "http://127.0.0.1:1/v1")
    with models.get("openai:m") as model:
        assert model.identity["base_url"] == "http://127.0.0.1:1/v1"


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


@pytest.mark.parametrize("directly", [True, False])
def test_a_web_page_is_no_model_server(monkeypatch: pytest.MonkeyPatch, directly: bool) -> None:
    """Every answer of it would be garbage that counts as paid for."""
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    with looked_at(b"text/html", b"<html>Welcome</html>") as url, models.get("openai:m", base_url=url) as model:
        model.asynchronous = directly
        with pytest.raises(InputError, match=r"a web page answers at http://127.0.0.1:\d+/v1.*correct base_url"):
            model.preflight()


@pytest.mark.parametrize("directly", [True, False])
def test_a_model_that_is_not_there_is_named_with_the_nearest(monkeypatch: pytest.MonkeyPatch, directly: bool) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    no, known = b'{"error": {"message": "no", "code": "model_not_found"}}', b'{"data": [{"id": "small"}]}'
    with looked_at(b"application/json", known, no=no) as url, models.get("openai:smal", base_url=url) as model:
        model.asynchronous = directly
        with pytest.raises(InputError, match=r"has no such model.*did you mean 'small'"):
            model.preflight()


@contextlib.contextmanager
def looked_at(kind: bytes, body: bytes, *, no: bytes | None = None) -> Iterator[str]:
    """A server that shows `body`, and says `no` of single models."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            missing = no is not None and not self.path.endswith("/models")
            self.send_response(404 if missing else 200)
            self.send_header("content-type", kind.decode())
            self.end_headers()
            self.wfile.write((no or b"") if missing else body)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()
        thread.join()


def test_a_certificate_that_is_not_trusted_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise ssl.SSLCertVerificationError(
            1, "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate (_ssl.c:1006)"
        )

    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setattr(http.client.HTTPSConnection, "request", refuse)
    with (
        models.get("openai:m", base_url="https://127.0.0.1:9/v1") as model,
        pytest.raises(InputError, match=r"is not trusted here \(self-signed certificate\).*SSL_CERT_FILE"),
    ):
        model.preflight()


def test_the_client_is_not_imported_where_the_wire_will_do() -> None:
    code = (
        "import asyncio, sys; from rrf_design import models; from rrf_design.models import Request\n"
        "from rrf_design.models.pacing import Pace\n"
        "model = models.get('openai:m', retry=models.Retry(attempts=1), base_url='http://127.0.0.1:9/v1')\n"
        "reply = asyncio.run(model.ask_async(Request('?'), Pace(1)))\n"
        "model.close(); print(reply.outcome, 'openai' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.split() == ["unreachable", "False"]


PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Thing: a b\r\n\r\n{}"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;x=y\r\n{\r\n1\r\n}\r\n0\r\nTrailer: 1\r\n\r\n"
UNTIL_CLOSED = b"HTTP/1.0 200 OK\r\n\r\n{}"
CONTINUED = b"HTTP/1.1 100 Continue\r\n\r\n" + PLAIN


async def closed(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


class Server:
    """Plays responses, one a request; counts connections and keeps what it was sent.

    None closes without a word.
    """

    def __init__(self, *plan: bytes | None) -> None:
        self.plan, self.seen, self.connections = list(plan), list[bytes](), 0

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while self.plan:
                head = await reader.readuntil(b"\r\n\r\n")
                size = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                self.seen.append(head + await reader.readexactly(size))
                answer = self.plan.pop(0)
                writer.write(answer or b"")
                if answer != PLAIN and answer != CHUNKED:
                    break
        except asyncio.IncompleteReadError:
            pass
        await closed(writer)


def post(server: Server, times: int = 1, *, timeout: float = 30.0) -> list[Any]:
    async def main() -> list[Any]:
        listening = await asyncio.start_server(server, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        wire = _Wire(f"http://127.0.0.1:{port}/v1/chat", {"authorization": "Bearer x"}, timeout=timeout)
        found: list[Any] = []
        for _ in range(times):
            try:
                found.append(await wire.post(b'{"a": 1}'))
            except (_Broken, _Unsent) as error:
                found.append(error)
        await wire.close()
        listening.close()
        await asyncio.gather(*(task for task in asyncio.all_tasks() if task is not asyncio.current_task()))
        return found

    return asyncio.run(main())


@pytest.mark.parametrize("answer", [PLAIN, CHUNKED, UNTIL_CLOSED, CONTINUED])
def test_every_way_to_end_a_body(answer: bytes) -> None:
    server = Server(answer)
    (found,) = post(server)
    assert isinstance(found, _Response)
    assert (found.status, found.body) == (200, b"{}")
    head, _, body = server.seen[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /v1/chat HTTP/1.1\r\nhost: 127.0.0.1:")
    assert b"authorization: Bearer x" in head
    assert body == b'{"a": 1}'


def test_connections_are_used_again() -> None:
    server = Server(PLAIN, CHUNKED, PLAIN)
    assert [found.status for found in post(server, 3)] == [200, 200, 200]
    assert server.connections == 1


@pytest.mark.parametrize("whole", [PLAIN, CHUNKED])
def test_a_response_that_is_cut_anywhere_is_broken(whole: bytes) -> None:
    for cut in range(len(whole)):
        (found,) = post(Server(whole[:cut] or None))
        assert isinstance(found, _Broken), cut
        assert found.seen == (cut > 0)  # whoever has begun to answer has seen the request


@pytest.mark.parametrize(
    "answer",
    [
        b"SMTP ready\r\n\r\n",
        b"HTTP/1.1 two OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -3\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
    ],
)
def test_what_is_not_http_is_broken(answer: bytes) -> None:
    (found,) = post(Server(answer))
    assert isinstance(found, _Broken)
    assert found.seen


def test_a_server_that_closed_in_between_is_asked_on_a_new_connection() -> None:
    closing = PLAIN.replace(b"\r\nX-Thing", b"\r\nConnection: close\r\nX-Thing")
    server = Server(closing, PLAIN)
    assert [found.status for found in post(server, 2)] == [200, 200]
    assert server.connections == 2


def test_nobody_there() -> None:
    with socket.socket() as taken:  # bound and not listening: connections are refused
        taken.bind(("127.0.0.1", 0))
        wire = _Wire(f"http://127.0.0.1:{taken.getsockname()[1]}/", {}, timeout=30.0)
        with pytest.raises(_Unsent, match="ConnectionRefused"):
            asyncio.run(wire.post(b""))


def test_silence_ends_with_the_time_limit() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        await closed(writer)

    (found,) = post(silent, timeout=0.05)  # type: ignore[arg-type]
    assert isinstance(found, _Silent)
    assert not found.seen  # it may never have arrived


def test_what_needs_the_general_client(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    assert _reaches("http://127.0.0.1:8000/v1")
    assert not _reaches("http://me:word@127.0.0.1/v1")
    assert not _reaches("http://127.0.0.1/v1?token=x")
    monkeypatch.setenv("http_proxy", "http://proxy:3128")
    assert not _reaches("http://example.org/v1")
    assert _reaches("https://example.org/v1")
    monkeypatch.setenv("no_proxy", "example.org")
    assert _reaches("http://example.org/v1")
