"""A model that can't be asked is told in one line, before anything is bought and before there is a
run.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

PROBLEM = """[[nodes]]
id = "a"
prompt = "6 * 7?"
[[anchors]]
id = "x"
node = "a"
value = 42.0
"""
SECRET = "sk-the-wrong-one-0123456789"


class Provider(ThreadingHTTPServer):
    """Knows two models and one key, and answers 42."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.posts = 0


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        key = self.headers.get("authorization") or self.headers.get("x-api-key") or ""
        if not key.endswith("right"):
            return self.reply({"error": {"type": "authentication_error", "message": f"wrong key {key}"}}, 401)
        listed = [{"id": name, "object": "model", "created": 1, "owned_by": "x"} for name in ("big-1", "small-1")]
        name = self.path.partition("/models")[2].partition("?")[0].strip("/")
        if name and name not in ("big-1", "small-1"):
            return self.reply({"error": {"code": "model_not_found", "message": "no"}}, 404)
        return self.reply({"object": "list", "data": listed} if not name else listed[0])

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.server.posts += 1
        message = {"role": "assistant", "content": "42"}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        self.reply({"choices": [choice], "usage": {"prompt_tokens": 5, "completion_tokens": 1}})

    def reply(self, document, status=200):
        payload = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *_):
        pass


@pytest.fixture
def provider():
    server = Provider()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in (
        "OPENAI_API_KEY",
        "RRF_OPENAI_API_KEY",
        "RRF_OPENAI_BASE_URL",
        "OPENAI_BASE_URL",
        "ANTHROPIC_API_KEY",
        "RRF_STORE",
    ):
        monkeypatch.delenv(name, raising=False)
    Path("p.toml").write_text(PROBLEM)
    return tmp_path


def refused(run, *options):
    """The one line, of a call that left no run behind."""
    ran = run("acquire", "p.toml", "--budget", "1", "-q", *options)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1), ran.err
    assert SECRET not in ran.err
    assert "no runs yet" in run("runs").out or not Path("rrf-runs.sqlite").exists()
    return ran.err


@pytest.mark.parametrize(
    ("model", "line"),
    [
        ("gpt-4o", "unknown model 'gpt-4o'; did you mean 'openai:gpt-4o'?"),
        ("opnai:gpt-4o", "did you mean 'openai:gpt-4o'?"),
        ("claude-haiku-4-5", "did you mean 'anthropic:claude-haiku-4-5'?"),
        ("openai:gpt-4o", "set OPENAI_API_KEY"),
        ("anthropic:claude-haiku-4-5", "set ANTHROPIC_API_KEY, in the environment or in .env"),
    ],
)
def test_names_and_missing_keys(run, here, model, line):
    assert line in refused(run, "--model", model)


def test_a_provider_whose_extra_is_not_installed(run, here, monkeypatch):
    monkeypatch.setitem(sys.modules, "any_llm", None)
    assert "pip install 'rrf-design[providers]'" in refused(run, "--model", "anthropic:claude-haiku-4-5")


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_a_wrong_key(run, here, provider, monkeypatch, kind):
    monkeypatch.setenv(f"{kind.upper()}_API_KEY", SECRET)
    url = f"http://127.0.0.1:{provider.server_port}" + ("/v1" if kind == "openai" else "")
    line = refused(run, "--model", f"{kind}:big-1", "--base-url", url)
    assert f"model {kind}:big-1: the server refuses the key in {kind.upper()}_API_KEY" in line
    assert provider.posts == 0


def test_a_model_that_does_not_exist(run, here, provider, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "right")
    url = f"http://127.0.0.1:{provider.server_port}/v1"
    line = refused(run, "--model", "openai:big-2", "--base-url", url)
    assert "the server has no such model, or this key may not use it; did you mean 'big-1'?" in line
    assert provider.posts == 0
    assert run("acquire", "p.toml", "--model", "openai:big-1", "--base-url", url).code == 0
    assert provider.posts == 1


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_an_address_where_nobody_answers(run, here, monkeypatch, kind):
    monkeypatch.setenv(f"{kind.upper()}_API_KEY", "right")
    with socket.socket() as taken:  # bound and not listening: connections are refused
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        line = refused(run, "--model", f"{kind}:m", "--base-url", url)
    assert f"model {kind}:m: nobody answers at {url}; start the server there, or correct base_url" in line
