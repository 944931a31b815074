"""Runs through the batch interface against a loopback server: pending, collected, and never asked
or charged twice.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from batch_server import BatchServer
from fields import ring, scripted

from rrf_design.acquisition import acquire
from rrf_design.acquisition._batch_driver import custom_id
from rrf_design.acquisition._purchases import Buys, Purchase
from rrf_design.errors import InputError

PRICES = {f"{name}:m": {"input": 0.001, "output": 0.01} for name in ("openai", "anthropic")}
ONE = 10 * 0.001 + 2 * 0.01


class Candidates(BatchServer):
    """The server as one provider's."""

    provider = "openai"


@pytest.fixture(params=["openai", "anthropic"])
def server(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Candidates]:
    """One contract, two wire formats: every promise is kept by both."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none-of-yours")
    made = Candidates()
    made.provider = request.param
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    thread.join()


def go(server: Candidates, folder: Path, **options: Any) -> Any:
    given = () if "resume" in options else (ring(), f"{server.provider}:m")
    base = {"base_url": server.address(server.provider)}
    first = {} if "resume" in options else {"batch_api": True, "model_options": base}
    return acquire(*given, store=folder / "r.sqlite", **first, **{"prices": PRICES, **options})


def test_pending_then_collected(server: Candidates, tmp_path: Path) -> None:
    server.looks = 1
    first = go(server, tmp_path)
    count = len(ring().nodes)
    assert (first.stopped_because, first.finished) == ("pending", False)
    assert first.detail == f"answers pending: {count}, in batches: 1; --resume collects them"
    assert len(server.bill) == count
    assert go(server, tmp_path, resume="last").stopped_because == "pending"  # it is not done yet
    last = go(server, tmp_path, resume="last")
    assert last.finished
    assert {name: value[0] for name, value in last.items[0].answers.items()} == dict.fromkeys(last.items[0].nodes, 7.0)
    assert (set(server.bill.values()), len(server.batches)) == ({1}, 1)
    assert last.money == pytest.approx(count * ONE)
    assert last.models["model"] == {
        "answers": count,
        "calls": count,
        "input_tokens": 10 * count,
        "output_tokens": 2 * count,
        "money": pytest.approx(count * ONE),
    }


def test_failed_lines_are_handed_in_again_and_given_up_in_the_end(server: Candidates, tmp_path: Path) -> None:
    prompts = [node.prompt for node in ring().nodes]
    server.statuses = {str(prompts[0]): 500}
    server.silent = {str(prompts[1])}
    go(server, tmp_path)
    again = go(server, tmp_path, resume="last")
    assert again.stopped_because == "pending"
    assert len(server.batches) == 2
    last_made = list(server.batches.values())[-1]
    if server.provider == "openai":
        lines = [json.loads(line) for line in server.files[last_made["input_file_id"]].splitlines()]
        lines = [{"custom_id": line["custom_id"], "params": line["body"]} for line in lines]
    else:
        lines = [{**line, "custom_id": line["custom_id"].partition("_")[2]} for line in last_made["requests"]]
    assert {line["params"]["messages"][-1]["content"] for line in lines} == set(prompts[:2])
    assert all(line["custom_id"].startswith("1-") for line in lines)  # another intent, another name
    assert again.money > 3 * ONE  # the line that is missing may have been charged
    server.statuses, server.silent = {}, set()
    last = go(server, tmp_path, resume="last")
    assert (last.finished, last.items[0].unread) == (True, ())


@pytest.mark.parametrize("status", ["expired", "cancelled"])
def test_what_expired_was_not_charged_and_is_asked_again(server: Candidates, tmp_path: Path, status: str) -> None:
    server.status = status
    server.silent = {str(node.prompt) for node in ring().nodes}
    go(server, tmp_path)
    result = go(server, tmp_path, resume="last")
    assert (result.stopped_because, result.money, len(server.batches)) == ("pending", 0.0, 2)
    go(server, tmp_path, resume="last")
    result = go(server, tmp_path, resume="last")  # the third time is the last
    assert (result.finished, len(result.items[0].unread)) == (True, len(ring().nodes))


def test_a_refused_batch_pauses_with_the_reason(server: Candidates, tmp_path: Path) -> None:
    server.status = "failed"
    result = go(server, tmp_path)
    if server.provider == "openai":  # it finds out later
        result = go(server, tmp_path, resume="last")
        assert "the provider refuses the batch: no such model" in result.detail
    assert (result.stopped_because, result.spent, result.money) == ("paused", 0.0, 0.0)
    assert "no such model" in result.detail
    assert server.bill == {}


def test_a_batch_that_is_gone_counts_as_lost(server: Candidates, tmp_path: Path) -> None:
    go(server, tmp_path)
    server.batches.clear()
    result = go(server, tmp_path, resume="last")
    assert result.stopped_because == "pending"  # handed in again, beside what may have been charged
    assert result.money > 0.0


def test_money_is_kept(server: Candidates, tmp_path: Path) -> None:
    result = go(server, tmp_path, money=0.5)
    while result.stopped_because == "pending":
        result = go(server, tmp_path, resume="last")
    assert sum(server.bill.values()) * ONE <= result.money <= 0.5
    assert len(server.bill) < len(ring().nodes)


def test_a_provider_that_goes_away_pauses_the_run(server: Candidates, tmp_path: Path) -> None:
    server.refuses = {"files" if server.provider == "openai" else "batches"}
    result = go(server, tmp_path)
    assert (result.stopped_because, result.money, server.bill) == ("paused", 0.0, {})
    server.refuses = set()
    assert go(server, tmp_path, resume="last").stopped_because == "pending"
    server.refuses = {"batches"}
    assert go(server, tmp_path, resume="last").stopped_because == "paused"
    server.refuses = set()
    assert go(server, tmp_path, resume="last").finished
    assert set(server.bill.values()) == {1}


def test_a_model_without_the_interface(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="none of the run's models has a batch interface"):
        acquire(ring(), scripted(), store=tmp_path / "r.sqlite", batch_api=True)


def test_names_are_short_and_plain() -> None:
    names = {custom_id(Purchase(item, "n", Buys.ANSWER, 0.0, attempt=k)) for item in ("ä" * 500, "b") for k in (0, 1)}
    assert len(names) == 4
    assert all(len(name) <= 64 and name.isascii() for name in names)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="left out: killed batches, because this system can't fork")
def test_killed_anywhere_nothing_is_lost_doubled_or_overspent(folder: Path) -> None:
    program = Path(__file__).with_name("batch_killing.py")
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(program), str(folder)], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout)["kills"] >= 18


def test_message_batches_as_the_official_client_reads_and_writes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loopback server speaks the real format: the client's own types take every field of it;
    and what a batch says is what a call says.
    """
    import anthropic
    from anthropic.types import MessageCreateParams
    from anthropic.types.messages import MessageBatch, MessageBatchIndividualResponse
    from pydantic import TypeAdapter

    from rrf_design import models

    made = BatchServer()
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "none-of-yours")
        options: dict[str, Any] = {"temperature": 0.5, "top_p": None, "seed": None, "max_tokens": 9}
        request = models.Request("How many?", system="Be short.", stop=("\n",), **options)
        made.statuses = {"broken": 500}
        with models.get("anthropic:m", base_url=made.address("anthropic")) as model:
            body = model.batch_body(request)
            TypeAdapter(MessageCreateParams).validate_python(body)
            assert body == {
                "model": "m",
                "max_tokens": 9,
                "temperature": 0.5,
                "stop_sequences": ["\n"],
                "system": "Be short.",
                "messages": [{"role": "user", "content": "How many?"}],
            }
            client = anthropic.Anthropic(base_url=made.address("anthropic"), max_retries=0)
            broken = {**body, "messages": [{"role": "user", "content": "broken"}]}
            requests: Any = [{"custom_id": "x_0", "params": body}, {"custom_id": "x_1", "params": broken}]
            created = client.messages.batches.create(requests=requests)
            shown = client.messages.batches.retrieve(created.id)
            for batch in (created, shown):
                MessageBatch.model_validate(batch.to_dict(), strict=False)
            lines = {line.custom_id: line for line in client.messages.batches.results(created.id)}
            for line in lines.values():
                MessageBatchIndividualResponse.model_validate(line.to_dict(), strict=False)
            reply = model.batch_reply(request, lines["x_0"].to_dict())
            assert (reply.text, reply.usage.input_tokens, reply.usage.output_tokens) == ("7", 10, 2)
            failed = model.batch_reply(request, lines["x_1"].to_dict())
            assert (failed.outcome.value, failed.detail) == ("unreachable", "api_error: status 500")
            garbage = {"result": {"type": "succeeded", "message": {"content": 5}}}
            assert model.batch_reply(request, garbage).outcome.value == "garbage"
    finally:
        made.shutdown()
        made.server_close()
        thread.join()
