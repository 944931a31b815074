"""A run asks before it spends what nobody has allowed; without a terminal it refuses, with the
remedy.
"""

from __future__ import annotations

import json
import os
import subprocess
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
MINI = ("acquire", "p.toml", "--model", "openai:gpt-4.1-mini", "--cache", "off")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-nobodys-key-123456")
    for name in ("RRF_OPENAI_BASE_URL", "OPENAI_BASE_URL", "RRF_OPENAI_API_KEY", "RRF_STORE"):
        monkeypatch.delenv(name, raising=False)
    Path("p.toml").write_text(PROBLEM)
    return tmp_path


def test_without_a_terminal_the_limit_must_be_said(run, here):
    ran = run(*MINI)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "nobody said how much it may (1 calls expected, at most 4;" in ran.err
    assert "--money or --budget, or agree with --yes" in ran.err
    assert not Path("rrf-runs.sqlite").exists() or "no runs yet" in run("runs").out


def test_what_costs_nothing_or_was_limited_is_not_asked_about(run, here, server):
    Path("s.json").write_text('{"default": "42"}')
    assert run("acquire", "p.toml", "--model", "scripted:s.json").code == 0
    own = ("acquire", "p.toml", "--model", "openai:m", "--base-url", server, "--json")
    ran = run(*own)
    assert (ran.code, ran.json["money"]) == (0, 0.0)
    assert 'no price is known of openai:m, so what it costs is not counted; write [model."openai:m"]' in ran.err
    assert ran.json["header"]["prices"] == {"openai:m": None}
    Path("prices.toml").write_text('[model."openai:m"]\ninput = 1e-6\noutput = 2e-6\n')
    priced = (*own, "--prices", "prices.toml")
    assert run(*priced).code == 2
    for said in (("--yes",), ("--budget", "5"), ("--money", "1"), ("--max-calls", "9")):
        ran = run(*priced, *said)
        assert ran.json["money"] == 7e-6, said
        assert ran.json["header"]["prices"]["openai:m"] == {"input": 1e-6, "output": 2e-6, "call": 0.0}


class Answering(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "42"}}
        payload = json.dumps({"choices": [choice], "usage": {"prompt_tokens": 5, "completion_tokens": 1}}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    made = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{made.server_port}/v1"
    made.shutdown()
    made.server_close()
    thread.join()


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="left out: the question at a terminal, for want of one")
def test_at_a_terminal_it_asks(here):
    keyboard, terminal = os.openpty()
    program = "import sys; from rrf_design.cli import main; main(sys.argv[1:])"
    root = str(Path(__file__).resolve().parents[3])
    with subprocess.Popen(
        [sys.executable, "-c", program, *MINI],
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=terminal,
        env={**os.environ, "PYTHONPATH": root},
    ) as process:
        os.write(keyboard, b"n\n")
        assert process.wait(timeout=60) == 2
    os.close(terminal)
    said = b""
    try:
        while part := os.read(keyboard, 4096):
            said += part
    except OSError:
        pass  # how a terminal says that nobody is there any more
    os.close(keyboard)
    assert b"1 calls expected, at most 4;" in said
    assert b"Go on? [y/N]" in said
    assert b"nothing was asked and nothing was spent" in said
