"""A program that kills runs whose calls are being repeated: by SIGKILL, at a request that has
arrived, again and again.

Run by `test_kills.py` in a process of its own, since forking is only safe where nothing else runs;
the provider is another process, which counts the requests and does the killing. It cuts the
connection at the first requests of every question and answers the later ones. Usage:
attempt_killing.py FOLDER; prints one JSON object.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from batch_killing import last_run, session_in_child, tell  # type: ignore[import-not-found]

MONEY = 50.0
CUTS = 2
ATTEMPTS = 4
"""What the adapter allows for one question."""
MOST = 60
"""Sessions after which a run counts as one that never ends."""


class Provider(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        self.seen: Counter[str] = Counter()
        self.kill: tuple[int, int] | None = None
        """Process, and at which request from now."""


class Handler(BaseHTTPRequestHandler):
    server: Provider
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.reply({"id": "m"} if self.path == "/v1/models/m" else dict(self.server.seen))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        server = self.server
        with server.lock:
            if self.path == "/control":
                server.kill = body["kill"]
                return self.reply({})
            prompt = body["messages"][-1]["content"]
            server.seen[prompt] += 1
            if server.kill is not None:
                pid, left = server.kill
                server.kill = (pid, left - 1)
                if left == 1:
                    os.kill(pid, signal.SIGKILL)
                    server.kill = None
                    self.close_connection = True
                    return None
            if server.seen[prompt] <= CUTS:
                self.close_connection = True
                return None
        said = {"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "7"}}]}
        return self.reply({**said, "usage": {"prompt_tokens": 10, "completion_tokens": 2}})

    def reply(self, found: Any) -> None:
        payload = json.dumps(found).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *_: object) -> None:
        pass


def run(url: str, store: Path, name: str, *, resume: bool, calls: int | None = None) -> Any:
    from fields import ring  # type: ignore[import-not-found]

    from rrf_design.acquisition import acquire
    from rrf_design.models import pacing

    pacing.FIRST = 0.0  # nobody has to wait here
    if resume:
        return acquire(resume="last", store=store)
    options: dict[str, Any] = {"model_options": {"base_url": url, "slots": 1}, "money": MONEY, "budget": 0.0}
    prices = {"openai:m": {"input": 0.001, "output": 0.01}}
    more = {} if calls is None else {"calls": calls}
    return acquire(ring(3, name=name), "openai:m", store=store, prices=prices, **options, **more)


def play(url: str, folder: Path, step: int, calls: int | None = None) -> dict[str, Any]:
    """A run whose every session is killed at its step-th request, until one ends by itself."""
    name = f"step {step} calls {calls}"
    store = folder / f"{name}.sqlite"
    kills, begun = 0, False
    while True:
        assert kills < MOST, "no session ends the run"
        work = lambda: run(url, store, name, resume=begun, calls=calls)  # noqa: B023, E731
        killed = session_in_child(work, lambda pid: tell(url, "/control", {"kill": [pid, step]}))
        seen = {prompt: count for prompt, count in tell(url, "/seen").items() if prompt.startswith(f"{name}:")}
        found = last_run(store)
        begun = found is not None
        assert max(seen.values(), default=0) <= ATTEMPTS, f"more attempts than are allowed: {seen}"
        assert calls is None or sum(seen.values()) <= calls, "more calls than are allowed"
        assert found is None or found.money <= MONEY, "overspent"
        if not killed:
            break
        kills += 1
    assert found is not None
    assert found.stopped_because not in ("unfinished", "paused"), found.stopped_because
    used = found.models["model"]
    assert used["calls"] == sum(seen.values()), f"the books say {used['calls']}, the provider counted {seen}"
    settled = Counter(purchase["name"] for purchase in found.to_json()["purchases"])
    assert set(settled.values()) == {1}
    answers = len(found.items[0].answers)
    return {"kills": kills, "seen": sorted(seen.values()), "answers": answers}


def main(folder: Path) -> None:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, __file__], text=True, **pipes) as provider:  # type: ignore[call-overload]
        url = provider.stdout.readline().strip()
        run(url, folder / "warm.sqlite", "warm", resume=False)  # import and compile once, before anything is forked
        found = {str(step): play(url, folder, step) for step in (1, 2)}
        found["limited"] = play(url, folder, 2, calls=7)
        provider.stdin.close()
    print(json.dumps(found))


def serve() -> None:
    server = Provider()
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    print(f"http://127.0.0.1:{server.server_port}/v1", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(Path(sys.argv[1])) if len(sys.argv) > 1 else serve()
