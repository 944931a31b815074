"""A loopback server with the files and batches of OpenAI and the message batches of Anthropic, a
bill, and a hand that kills: for the tests of the batch interfaces.

As a program it prints its address and serves until its input ends. `/control` sets what it does,
`/bill` says what was charged.
"""

from __future__ import annotations

import email
import json
import os
import re
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class BatchServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        self.files: dict[str, str] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        self.answers: dict[str, str] = {}
        """Prompt to text; 7 otherwise."""
        self.looks = 0
        """So many looks at a batch find it under way."""
        self.status = "completed"
        self.statuses: dict[str, int] = {}
        """Prompt to the status of its line, where that is not 200."""
        self.silent: set[str] = set()
        """Prompts that get no line."""
        self.bill: dict[str, int] = {}
        """Prompt to how often it was charged."""
        self.refuses: set[str] = set()
        """Parts of the interface that answer 503."""
        self.requests = 0
        self.kill: tuple[int, int, str] | None = None
        """Process, which request, and whether before or after it is carried out."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def address(self, provider: str) -> str:
        """As the provider's client wants it."""
        return self.url if provider == "openai" else self.url.removesuffix("/v1")

    def make_messages(self, body: dict[str, Any]) -> dict[str, Any] | None:
        """A message batch; None where the service would refuse it."""
        names = [asked["custom_id"] for asked in body["requests"]]
        assert len(set(names)) == len(names)
        assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in names)
        for asked in body["requests"]:
            assert {"model", "max_tokens", "messages"} <= set(asked["params"])
            assert set(asked) == {"custom_id", "params"}
            assert all(message["role"] in ("user", "assistant") for message in asked["params"]["messages"])
        if self.status == "failed":
            return None
        name = f"msgbatch_{len(self.batches)}"
        self.batches[name] = {"requests": body["requests"], "looks": self.looks, "ended": False}
        for asked in body["requests"]:
            prompt = asked["params"]["messages"][-1]["content"]
            if self.result(prompt)["type"] == "succeeded" and prompt not in self.silent:
                self.bill[prompt] = self.bill.get(prompt, 0) + 1
        return self.shown_messages(name)

    def shown_messages(self, name: str) -> dict[str, Any]:
        batch = self.batches[name]
        total, ended = len(batch["requests"]), batch["ended"]
        when = "2026-01-01T00:00:00Z"
        counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
        return {
            "id": name,
            "type": "message_batch",
            "processing_status": "ended" if ended else "in_progress",
            "request_counts": counts | ({"succeeded": total} if ended else {"processing": total}),
            "created_at": when,
            "expires_at": when,
            "ended_at": when if ended else None,
            "archived_at": None,
            "cancel_initiated_at": None,
            "results_url": f"{self.url}/messages/batches/{name}/results" if ended else None,
        }

    def look_messages(self, name: str) -> dict[str, Any]:
        batch = self.batches[name]
        batch["ended"] = batch["looks"] <= 0
        batch["looks"] -= 1
        return self.shown_messages(name)

    def result(self, prompt: str) -> dict[str, Any]:
        if self.status in ("expired", "cancelled") and prompt in self.silent:
            return {"type": "expired" if self.status == "expired" else "canceled"}
        if self.statuses.get(prompt, 200) != 200:
            error = {"type": "api_error", "message": f"status {self.statuses[prompt]}"}
            return {"type": "errored", "error": {"type": "error", "error": error, "request_id": None}}
        message = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [{"type": "text", "text": self.answers.get(prompt, "7"), "citations": None}],
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 10, "output_tokens": 2},
        }
        return {"type": "succeeded", "message": message}

    def results(self, name: str) -> str:
        found = []
        for asked in reversed(self.batches[name]["requests"]):
            prompt = asked["params"]["messages"][-1]["content"]
            if prompt not in self.silent or self.status in ("expired", "cancelled"):
                found.append({"custom_id": asked["custom_id"], "result": self.result(prompt)})
        return "".join(json.dumps(line) + "\n" for line in found)

    def make(self, body: dict[str, Any]) -> dict[str, Any]:
        name = f"batch_{len(self.batches)}"
        batch = {"id": name, "object": "batch", "endpoint": body["endpoint"], "completion_window": "24h"}
        batch |= {"input_file_id": body["input_file_id"], "created_at": 1, "metadata": body.get("metadata")}
        self.batches[name] = {**batch, "status": "validating", "looks": self.looks}
        if self.status != "failed":
            for line in self.files[body["input_file_id"]].splitlines():
                prompt = json.loads(line)["body"]["messages"][-1]["content"]
                if self.statuses.get(prompt, 200) == 200 and prompt not in self.silent:
                    self.bill[prompt] = self.bill.get(prompt, 0) + 1
        return self.shown(name)

    def shown(self, name: str) -> dict[str, Any]:
        return {key: value for key, value in self.batches[name].items() if key != "looks"}

    def look(self, name: str) -> dict[str, Any]:
        batch = self.batches[name]
        if batch["looks"] > 0:
            batch["looks"] -= 1
            batch["status"] = "in_progress"
        elif batch["status"] in ("validating", "in_progress"):
            batch["status"] = self.status
            if self.status == "failed":
                batch["errors"] = {"object": "list", "data": [{"code": "x", "message": "no such model"}]}
            else:
                self.finish(batch)
        return self.shown(name)

    def finish(self, batch: dict[str, Any]) -> None:
        good, bad = [], []
        for line in self.files[batch["input_file_id"]].splitlines():
            asked = json.loads(line)
            prompt = asked["body"]["messages"][-1]["content"]
            if prompt in self.silent:
                continue
            status = self.statuses.get(prompt, 200)
            message = {"role": "assistant", "content": self.answers.get(prompt, "7")}
            said: dict[str, Any] = {"choices": [{"index": 0, "finish_reason": "stop", "message": message}]}
            said["usage"] = {"prompt_tokens": 10, "completion_tokens": 2}
            body = said if status == 200 else {"error": {"message": f"status {status}"}}
            entry = {"id": "r", "custom_id": asked["custom_id"], "error": None}
            (good if status == 200 else bad).append({**entry, "response": {"status_code": status, "body": body}})
        for key, lines in (("output_file_id", list(reversed(good))), ("error_file_id", bad)):
            if lines:
                batch[key] = f"{key}_{batch['id']}"
                self.files[batch[key]] = "".join(json.dumps(line) + "\n" for line in lines)


class Handler(BaseHTTPRequestHandler):
    server: BatchServer

    def do_GET(self) -> None:
        self.serve(b"")

    def do_POST(self) -> None:
        self.serve(self.rfile.read(int(self.headers["content-length"])))

    def serve(self, body: bytes) -> None:
        server = self.server
        path = self.path.partition("?")[0]
        with server.lock:
            if path == "/control":
                for name, value in json.loads(body).items():
                    setattr(server, name, tuple(value) if name == "kill" and value else value)
                return self.reply({})
            if path == "/bill":
                return self.reply({"bill": server.bill, "requests": server.requests, "batches": len(server.batches)})
            if server.refuses.intersection(path.split("/")):
                return self.reply({"error": {"message": "later"}}, 503)
            server.requests += 1
            mine = server.kill is not None and server.requests == server.kill[1]
            if mine and server.kill is not None and server.kill[2] == "before":
                os.kill(server.kill[0], signal.SIGKILL)
                return None
            found = self.answer(path, body)
            if mine and server.kill is not None:
                os.kill(server.kill[0], signal.SIGKILL)
                return None
        if found is None and path.startswith("/v1/messages") and body:
            error = {"type": "invalid_request_error", "message": "no such model"}
            return self.reply({"type": "error", "error": error}, 400)
        return self.reply(found) if found is not None else self.reply({"error": {"message": "not found"}}, 404)

    def messages(self, parts: list[str], body: bytes) -> Any:
        server = self.server
        assert self.headers["x-api-key"] == "none-of-yours"
        assert self.headers["anthropic-version"]
        if body:
            return server.make_messages(json.loads(body))
        if not parts:
            listed = [server.look_messages(name) for name in reversed(server.batches)]  # time passes for all
            ends = {"first_id": listed[0]["id"], "last_id": listed[-1]["id"]} if listed else {}
            return {"data": listed, "has_more": False, **ends}
        if parts[0] not in server.batches:
            return None
        return server.results(parts[0]) if parts[1:] == ["results"] else server.look_messages(parts[0])

    def answer(self, path: str, body: bytes) -> Any:
        server, parts = self.server, path.removeprefix("/v1/").split("/")
        if parts[:2] == ["messages", "batches"]:
            return self.messages(parts[2:], body)
        if parts[0] == "models":  # a look before anything is bought
            return {"data": [], "has_more": False, "id": "m"}
        if parts == ["files"]:
            head = f"content-type: {self.headers['content-type']}\r\n\r\n".encode()
            given = {
                part.get_param("name", header="content-disposition"): part.get_payload(decode=True)
                for part in email.message_from_bytes(head + body).get_payload()  # type: ignore[union-attr]
            }
            assert given["purpose"] == b"batch"
            name = f"file_{len(server.files)}"
            server.files[name] = given["file"].decode()  # type: ignore[union-attr]
            return {"id": name, "object": "file", "bytes": 1, "created_at": 1, "filename": "x", "purpose": "batch"}
        if parts == ["batches"] and body:
            return server.make(json.loads(body))
        if parts == ["batches"]:
            listed = [server.shown(name) for name in server.batches]
            return {"object": "list", "data": listed, "has_more": False}
        if parts[0] == "batches":
            return server.look(parts[1]) if parts[1] in server.batches else None
        return server.files.get(parts[1])

    def reply(self, found: Any, status: int = 200) -> None:
        payload = found.encode() if isinstance(found, str) else json.dumps(found).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    server = BatchServer()
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    print(server.url, flush=True)
    sys.stdin.read()
