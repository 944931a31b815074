"""Responses as servers write them, cut where they may be cut: each is read whole, or the call is broken."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import Any

import pytest

from rrf_design.models.wire import Broken, Response, Silent, Unsent, Wire, reaches

PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Thing: a b\r\n\r\n{}"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;x=y\r\n{\r\n1\r\n}\r\n0\r\nTrailer: 1\r\n\r\n"
UNTIL_CLOSED = b"HTTP/1.0 200 OK\r\n\r\n{}"
CONTINUED = b"HTTP/1.1 100 Continue\r\n\r\n" + PLAIN


async def closed(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


class Server:
    """Plays responses, one a request; counts connections and keeps what it was sent. None closes without a word."""

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
        wire = Wire(f"http://127.0.0.1:{port}/v1/chat", {"authorization": "Bearer x"}, timeout=timeout)
        found: list[Any] = []
        for _ in range(times):
            try:
                found.append(await wire.post(b'{"a": 1}'))
            except (Broken, Unsent) as error:
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
    assert isinstance(found, Response)
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
        assert isinstance(found, Broken), cut
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
    assert isinstance(found, Broken)
    assert found.seen


def test_a_server_that_closed_in_between_is_asked_on_a_new_connection() -> None:
    closing = PLAIN.replace(b"\r\nX-Thing", b"\r\nConnection: close\r\nX-Thing")
    server = Server(closing, PLAIN)
    assert [found.status for found in post(server, 2)] == [200, 200]
    assert server.connections == 2


def test_nobody_there() -> None:
    with socket.socket() as taken:  # bound and not listening: connections are refused
        taken.bind(("127.0.0.1", 0))
        wire = Wire(f"http://127.0.0.1:{taken.getsockname()[1]}/", {}, timeout=30.0)
        with pytest.raises(Unsent, match="ConnectionRefused"):
            asyncio.run(wire.post(b""))


def test_silence_ends_with_the_time_limit() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        await closed(writer)

    (found,) = post(silent, timeout=0.05)  # type: ignore[arg-type]
    assert isinstance(found, Silent)
    assert not found.seen  # it may never have arrived


def test_what_needs_the_general_client(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    assert reaches("http://127.0.0.1:8000/v1")
    assert not reaches("http://me:word@127.0.0.1/v1")
    assert not reaches("http://127.0.0.1/v1?token=x")
    monkeypatch.setenv("http_proxy", "http://proxy:3128")
    assert not reaches("http://example.org/v1")
    assert reaches("https://example.org/v1")
    monkeypatch.setenv("no_proxy", "example.org")
    assert reaches("http://example.org/v1")
