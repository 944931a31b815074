"""A chat server on loopback that behaves as badly as real ones do, and counts what it was asked:
for load tests of the live loop.

It delays, throttles (429 with and without Retry-After), fails (500), cuts connections and bodies,
and is away for a while: then new connections are refused, and those that are open are cut after
their next request. Every request that arrives whole is counted, whatever becomes of it, as a
provider's bill would have it.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Self

GOOD = "good"


@dataclass(frozen=True, slots=True)
class Manners:
    """How the server behaves: shares of requests with each fault, delays in seconds, when it goes
    away and for how long.
    """

    faults: Mapping[str, float] = field(default_factory=dict)
    """Of "429", "429 wait", "500", "cut", "half": the share of requests that end so."""
    delay: tuple[float, float] = (0.0, 0.0)
    away_after: int | None = None
    away: float = 0.0
    retry_after: str = "0.01"
    seed: int = 0
    host: str = "127.0.0.1"
    answers: Mapping[str, str] = field(default_factory=dict)
    """By a part of the prompt; "7" to all others."""
    allowance: tuple[int, float] | None = None
    """So many requests in so many seconds; more are throttled, and every response says in its rate
    headers what is left.
    """


class _Counts:
    """How often each prompt arrived and was answered, and what became of requests."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.most_at_once = 0

    @property
    def calls(self) -> int:
        return self.asked.total()


class RoughServer(_Counts):
    """A context manager; `url` while it runs, `asked` how often each prompt arrived, `faults` what
    became of requests.
    """

    def __init__(self, manners: Manners) -> None:
        super().__init__()
        self.manners = manners
        self._at_once = 0
        self._rng = random.Random(manners.seed)
        self._away = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="rough-server", daemon=True)
        self._ready = threading.Event()
        self._open: set[_Connection] = set()
        self._port = 0
        self._window = 0.0
        self._used = 0
        self._awaited: list[tuple[int, threading.Event]] = []

    @property
    def url(self) -> str:
        return f"http://{self.manners.host}:{self._port}/v1"

    def reached(self, calls: int) -> threading.Event:
        """Set when so many requests have arrived; ask for it before they do."""
        event = threading.Event()
        self._awaited.append((calls, event))
        return event

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self) -> None:
        self._loop.run_until_complete(self._listen())
        self._ready.set()
        self._loop.run_forever()
        self._listener.close()
        for connection in list(self._open):
            connection.transport.abort()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _listen(self) -> None:
        self._listener = await self._loop.create_server(
            lambda: _Connection(self), self.manners.host, self._port, backlog=2048, reuse_address=True
        )
        self._port = self._listener.sockets[0].getsockname()[1]

    def _leave(self) -> None:
        self._away = True
        self._listener.close()
        self._loop.call_later(self.manners.away, self._return)

    def _return(self) -> None:
        self._away = False
        self._coming = self._loop.create_task(self._listen())

    def request(self, connection: _Connection, prompt: str) -> None:
        """A request has arrived whole: count it, and decide what becomes of it."""
        self.asked[prompt] += 1
        for calls, event in self._awaited:
            if self.calls >= calls:
                event.set()
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        if self.manners.away_after is not None and self.calls == self.manners.away_after:
            self._leave()
        fault = "cut" if self._away else self._draw()
        if not self._allowed():
            fault = "429"
        self.faults[fault] += 1
        self._loop.call_later(self._rng.uniform(*self.manners.delay), self._reply, connection, prompt, fault)

    def _allowed(self) -> bool:
        if self.manners.allowance is None:
            return True
        count, seconds = self.manners.allowance
        if self._loop.time() >= self._window:
            self._window, self._used = self._loop.time() + seconds, 0
        self._used += 1
        return self._used <= count

    def _rates(self) -> str:
        """What a server with an allowance says about it in every response."""
        if self.manners.allowance is None:
            return ""
        left = max(0, self.manners.allowance[0] - self._used)
        reset = max(0.0, self._window - self._loop.time())
        return f"x-ratelimit-remaining-requests: {left}\r\nx-ratelimit-reset-requests: {round(1000 * reset)}ms\r\n"

    def _draw(self) -> str:
        point = self._rng.random()
        for fault, share in self.manners.faults.items():
            if point < share:
                return fault
            point -= share
        return GOOD

    def _reply(self, connection: _Connection, prompt: str, fault: str) -> None:
        self._at_once -= 1
        if fault == GOOD:
            self.answered[prompt] += 1
            said = next((text for part, text in self.manners.answers.items() if part in prompt), "7")
            connection.send(200, _completion(said), self._rates())
        elif fault == "500":
            connection.send(500, b'{"error": {"message": "out of order"}}')
        elif fault.startswith("429"):
            extra = f"retry-after: {self.manners.retry_after}\r\n" if fault == "429 wait" else self._rates()
            connection.send(429, b'{"error": {"message": "slow down"}}', extra)
        else:
            connection.send(200, _completion("7"), part=0.0 if fault == "cut" else 0.5)


class _Connection(asyncio.Protocol):
    def __init__(self, server: RoughServer) -> None:
        self._server, self._buffer = server, b""
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._server._open.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server._open.discard(self)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, found, rest = self._buffer.partition(b"\r\n\r\n")
        if not found:
            return
        if head.startswith(b"GET "):  # a new run looks whether its server and model are there: no question, not counted
            self._buffer = rest
            self.send(200, b'{"object": "model"}')
            return
        size = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        if len(rest) >= size:
            self._buffer = rest[size:]
            self._server.request(self, json.loads(rest[:size])["messages"][-1]["content"])

    def send(self, status: int, body: bytes, extra: str = "", part: float = 1.0) -> None:
        if self.transport.is_closing():
            return
        head = f"HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n{extra}content-length: {len(body)}\r\n\r\n"
        whole = head.encode() + body
        self.transport.write(whole[: int(part * len(whole))])
        if part < 1.0:
            self.transport.close()


def _completion(text: str) -> bytes:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    usage = {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10}
    return json.dumps({"id": "x", "object": "chat.completion", "choices": [choice], "usage": usage}).encode()


class ServerProcess(_Counts):
    """The same server in a process of its own, so that its work is not ours; counts are there when
    it has ended.
    """

    def __init__(self, manners: Manners) -> None:
        super().__init__()
        self._manners = manners
        self.url = ""

    def __enter__(self) -> Self:
        folder = Path(__file__).resolve().parents[2]
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                "from scenarios.kit.rough_server import serve; serve()",
                json.dumps(asdict(self._manners)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])},
        )
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        return self

    def __exit__(self, *_: object) -> None:
        said, _nothing = self._process.communicate()  # the end of its input ends it
        found = json.loads(said)
        self.asked, self.answered, self.faults = (Counter(found[name]) for name in ("asked", "answered", "faults"))
        self.most_at_once = found["most_at_once"]


def serve() -> None:
    """Serve until the standard input ends; then say what was counted."""
    given = json.loads(sys.argv[1])
    pairs = {name: tuple(given[name]) if given[name] else given[name] for name in ("delay", "allowance")}
    with RoughServer(Manners(**{**given, **pairs})) as server:
        print(server.url, flush=True)
        sys.stdin.read()
    counted = {name: dict(getattr(server, name)) for name in ("asked", "answered", "faults")}
    print(json.dumps({**counted, "most_at_once": server.most_at_once}))
