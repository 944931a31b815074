"""A model server on loopback that plays a list of answers, in the wire formats that adapters speak:
for the suite that all of them pass.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from rrf_design.models import Model, Reply, Request
from rrf_design.models.pacing import Pace

SECRET = "sk-very-secret-0123456789"
GOOD = {
    "choices": [{"finish_reason": "stop", "index": 0, "message": {"role": "assistant", "content": "5"}}],
    "usage": {"prompt_tokens": 7, "completion_tokens": 1},
}


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


@dataclass(frozen=True, slots=True)
class Wiring:
    """One adapter's way to a server."""

    spec: str
    key: str
    """The variable that holds its key."""
    path: str = "/v1"
    write: Callable[[str, str], dict[str, Any]] = chat
    by_wire: bool = False
    """Through the event loop, over the lean wire."""


WIRINGS = {
    "client": Wiring("openai:m", "OPENAI_API_KEY"),
    "wire": Wiring("openai:m", "OPENAI_API_KEY", by_wire=True),
    "openrouter": Wiring("openrouter:m", "OPENROUTER_API_KEY"),
    "anthropic": Wiring("anthropic:m", "ANTHROPIC_API_KEY", "", message),
}


class Backend(ThreadingHTTPServer):
    """Plays a list of answers: (status, headers, body), or "hang" or "drop"."""

    daemon_threads = True

    def __init__(self, wiring: Wiring) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.wiring, self.spec, self.write, self.by_wire = wiring, wiring.spec, wiring.write, wiring.by_wire
        self.url = f"http://127.0.0.1:{self.server_port}{wiring.path}"
        self.plan: list[Any] = []
        self.seen: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.release = threading.Event()


class Handler(BaseHTTPRequestHandler):
    server: Backend

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.seen.append(json.loads(body))
        self.server.paths.append(self.path)
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


def send(backend: Backend, client: Model, request: Request) -> Reply:
    return asyncio.run(over_the_wire(client, request)) if backend.by_wire else client.ask(request)


def ask(backend: Backend, client: Model, *plan: Any, **options: Any) -> Reply:
    """One question, to a server that will answer so."""
    backend.plan = list(plan)
    plain: dict[str, Any] = {"seed": None, "temperature": 0.5, "top_p": None}
    return send(backend, client, Request("2 + 3?", system="s", stop=("\n",), **{**plain, **options}))
