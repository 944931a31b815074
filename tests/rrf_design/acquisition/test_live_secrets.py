"""No key and no password gets out: not into the journal, a document, a message or the screen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fields import go, ring, scripted

import rrf_design as rrf
from rrf_design.acquisition import acquire, answer_log
from rrf_design.errors import InputError, RetryLater
from rrf_design.models.base import Attempt, Outcome, Usage


def test_secrets_reach_neither_journal_nor_document_nor_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    key = "planted-key-31415926535"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    leaky = Attempt(Outcome.REFUSED, "", Usage(1, 1, 1), {"headers": key}, {"error": key}, f"bad key {key}")
    seen: list[Any] = []
    script = scripted(lambda r: leaky if "question 1" in r.prompt else f"7 {key}")
    run = go(ring(), tmp_path, script, progress=lambda *told: seen.append(told))
    assert seen
    assert key not in repr(seen)
    gone = Attempt(Outcome.UNREACHABLE, usage=Usage(), detail=f"no route with {key}")
    paused = go(ring(), tmp_path, scripted(lambda r: gone))
    content = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert key.encode() not in content
    assert key not in json.dumps([run.to_json(), paused.to_json()])
    assert key not in json.dumps(answer_log(run.run, store=tmp_path / "runs.sqlite"))
    assert "[hidden]" in paused.detail
    assert key not in "".join(capsys.readouterr())
    keyed = rrf.Problem(k=1, nodes=[{"id": "n", "prompt": f"use {key}"}])
    with pytest.raises(InputError) as caught:
        go(keyed, tmp_path)
    assert key not in str(caught.value)


def test_a_secret_that_an_adapter_declares_is_hidden(tmp_path: Path) -> None:
    model = scripted(lambda request: "7 (from declared-secret-123)")
    model.secrets = ("declared-secret-123",)  # type: ignore[attr-defined]
    run = go(ring(), tmp_path, model)
    assert "declared-secret" not in json.dumps(answer_log(run.run, store=tmp_path / "runs.sqlite"))


def test_passwords_of_addresses_are_kept_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = "hunter2-in-the-address"
    monkeypatch.setenv("RRF_STORE", f"postgresql://me:{secret}@127.0.0.1:1/none")
    with pytest.raises(RetryLater) as caught:
        acquire(ring(), scripted())
    assert secret not in str(caught.value)
    for address in (f"postgresql://me:{secret}/x@host/db", f"postgresql://127.0.0.1:1/db?password={secret}"):
        with pytest.raises((RetryLater, InputError)) as caught:
            acquire(ring(), scripted(), store=address)
        assert secret not in str(caught.value)
    assert secret not in "".join(capsys.readouterr())
