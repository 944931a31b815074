"""HTTP/1.1 to one server with many calls under way in one event loop: just enough for posting JSON, and nothing more.

General clients spend one to three milliseconds of processor time on a call, most of it in the pool of connections, which is more than 500
calls at once leave. Here a call costs a tenth of one: an idle connection is taken from a stack, the request is one write, the response is
read by its length. What this can't do (proxies, passwords in the address) is left to the general client, see `reaches`.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

LARGEST = 64 * 2**20
"""Bytes of a response; a chat completion is a thousand times smaller."""


class Unsent(Exception):
    """No connection could be made: the server has seen nothing."""


class Broken(Exception):
    """The connection broke after the request was sent. `seen`: the server had begun to answer, so it has seen the request;
    if not, it may have."""

    def __init__(self, reason: str, *, seen: bool) -> None:
        super().__init__(reason)
        self.seen = seen


class Silent(Broken):
    """No whole response in time."""


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    headers: Mapping[str, str]
    """Names in small letters."""
    body: bytes


def reaches(url: str) -> bool:
    """Whether a plain connection will do: no proxy in between, no password and no query in the address."""
    parts = urlsplit(url)
    proxies = getproxies()
    direct = not (parts.scheme in proxies or "all" in proxies) or bool(proxy_bypass(parts.hostname or ""))
    return direct and parts.username is None and not parts.query and parts.hostname is not None


class Wire:
    """Connections to one server, kept open between calls; for one event loop."""

    def __init__(self, url: str, headers: Mapping[str, str], *, timeout: float) -> None:
        parts = urlsplit(url)
        secure = parts.scheme == "https"
        self._host, self._port = parts.hostname or "", parts.port or (443 if secure else 80)
        self._tls = ssl.create_default_context() if secure else None
        self._timeout = timeout
        lines = {"host": parts.netloc, **headers, "content-type": "application/json"}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        self._head = f"POST {parts.path or '/'} HTTP/1.1\r\n{head}content-length: ".encode("latin-1")
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def post(self, body: bytes) -> Response:
        """The server's response. `Unsent`, `Broken` or `Silent` if there is none."""
        sent = seen = keep = False
        try:
            async with asyncio.timeout(self._timeout):
                reader, writer = await self._connection()
                sent = True
                try:
                    writer.write(b"%b%d\r\n\r\n%b" % (self._head, len(body), body))
                    head = await _head(reader)
                    seen = True
                    response, keep = await _rest(reader, head)
                except asyncio.IncompleteReadError as error:
                    raise Broken(f"{type(error).__name__}: {error}", seen=seen or bool(error.partial)) from None
                except (OSError, EOFError, ValueError, asyncio.LimitOverrunError) as error:
                    begun = seen or isinstance(error, asyncio.LimitOverrunError)
                    raise Broken(f"{type(error).__name__}: {error}", seen=begun) from None
                finally:
                    if keep:
                        self._idle.append((reader, writer))
                    else:
                        writer.close()
                return response
        except TimeoutError:
            words = f"no answer in {self._timeout:g} s"
            raise (Silent(words, seen=seen) if sent else Unsent(words)) from None

    async def close(self) -> None:
        idle, self._idle = self._idle, []
        for _, writer in idle:
            writer.transport.abort()
        await asyncio.sleep(0)  # the loop closes the sockets in its next turn

    async def _connection(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        while self._idle:
            reader, writer = self._idle.pop()
            if not reader.at_eof() and not writer.is_closing():
                return reader, writer
            writer.close()
        try:
            return await asyncio.open_connection(self._host, self._port, ssl=self._tls)
        except (OSError, TimeoutError) as error:
            raise Unsent(f"{type(error).__name__}: {error}") from None


async def _head(reader: asyncio.StreamReader) -> list[str]:
    """The lines of one head."""
    return (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")


async def _rest(reader: asyncio.StreamReader, head: list[str]) -> tuple[Response, bool]:
    """One response whose first head has come, and whether the connection can be used again."""
    while True:
        version, status, *_ = head[0].split(" ", 2)
        if not version.startswith("HTTP/1.") or not status.isdigit():
            raise ValueError("this is not HTTP")
        if not 100 <= int(status) < 200:
            break
        head = await _head(reader)
    headers: dict[str, str] = {}
    for line in head[1:]:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    keep = version == "HTTP/1.1" and headers.get("connection", "").lower() != "close"
    if "chunked" in headers.get("transfer-encoding", "").lower():
        body = await _chunks(reader)
    elif "content-length" in headers:
        body = await reader.readexactly(_size(headers["content-length"], 10))
    else:
        body, keep = await reader.read(LARGEST), False
    return Response(int(status), headers, body), keep


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    parts: list[bytes] = []
    left = LARGEST
    while size := _size((await reader.readuntil(b"\r\n")).split(b";")[0].strip().decode("latin-1"), 16, most=left):
        parts.append(await reader.readexactly(size))
        left -= size
        await reader.readexactly(2)
    while await reader.readuntil(b"\r\n") != b"\r\n":
        pass  # trailers say nothing that is needed here
    return b"".join(parts)


def _size(text: str, base: int, *, most: int = LARGEST) -> int:
    size = int(text, base)
    if not 0 <= size <= most:
        raise ValueError(f"a response of {size} bytes")
    return size
