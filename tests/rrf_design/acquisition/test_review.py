"""People in the loop, classes that come up on the way, and calls in batches."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from batch_server import BatchServer
from fields import ring, scripted

import rrf_design as rrf
from rrf_design.acquisition import Acquirer, Settings, Settlement, acquire
from rrf_design.acquisition._batch_driver import custom_id
from rrf_design.acquisition._fetch import Fetcher
from rrf_design.acquisition._purchases import Buys, Purchase
from rrf_design.acquisition._review import queue, read_queue, write_queue
from rrf_design.acquisition.classes import HeardClasses, class_of, open_nodes, with_room
from rrf_design.errors import InputError
from rrf_design.responses import parsers


def problem() -> rrf.Problem:
    """Three nodes in a chain and a lone pair; reviews at different prices, one of them worth
    little.
    """
    names = ["a", "b", "c"]
    return rrf.Problem(
        k=1,
        nodes=[{"id": name, "prompt": f"={name}?", "dim": 1} for name in names],
        relations=[{"id": "ab", "tail": "a", "head": "b"}, {"id": "bc", "tail": "b", "head": "c"}],
        anchors=[
            {"id": f"see {name}", "node": name, "cost": cost, "source": f"person: Check {name}."}
            for name, cost in zip(names, (4.0, 1.0, 1.0), strict=True)
        ],
    )


@pytest.fixture
def run() -> tuple[Acquirer, Fetcher]:
    given = problem()
    fetcher = Fetcher({"": given}, scripted(lambda r: "7"), known={})
    acquirer = Acquirer(given, settings=Settings(method="witness"), terms=fetcher.terms)
    while purchases := [p for p in acquirer.ask(9) if not p.deferred]:
        acquirer.tell(*(Settlement(p, "told", (7.0,), evidence={"reply": {"text": "=7"}}) for p in purchases))
    return acquirer, fetcher


def test_ordered_by_certified_gain_per_cost_without_duplicates(run: tuple[Acquirer, Fetcher]) -> None:
    reviews = queue(*run)
    names = [review["anchor"] for review in reviews]
    assert len(set(names)) == len(names) == 3
    assert [r["gain_per_cost"] for r in reviews] == sorted((r["gain_per_cost"] for r in reviews), reverse=True)
    assert reviews[0]["gain_per_cost"] > 0

    acquirer = run[0]
    now = acquirer.margin()
    design, held = acquirer.designs[""], acquirer.state.items[""].held
    with_it = design.margin({*held, names[0]})
    assert reviews[0]["gain_per_cost"] == pytest.approx(with_it.lower - now.upper)


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_round_trip(run: tuple[Acquirer, Fetcher], tmp_path: Path, form: str) -> None:
    path = tmp_path / f"q.{form}"
    write_queue(path, queue(*run))
    rows: list[dict[str, Any]]
    if form == "csv":
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert rows[0]["model_answer"] == "'=7"  # a spreadsheet must not take it for a formula
        rows[0]["value"] = " 9 "
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    else:
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        rows[0]["value"] = [9]
        path.write_text("\n".join(json.dumps(row) for row in rows))
    settlements = read_queue(path, *run)
    assert [(s.purchase.name, s.value) for s in settlements] == [(rows[0]["anchor"], (9.0,))]
    run[0].tell(*settlements)
    assert read_queue(path, *run) == []  # reading it again changes nothing
    assert len(queue(*run)) == 2


@pytest.mark.parametrize("ending", ["\u2028", "\u0085"])
def test_what_ends_a_line_elsewhere_ends_no_row(run: tuple[Acquirer, Fetcher], tmp_path: Path, ending: str) -> None:
    path = tmp_path / "q.jsonl"
    rows = [row | {"model_answer": f"67{ending}41"} for row in queue(*run)]
    write_queue(path, rows)
    path.write_text(path.read_text().replace('"value": ""', '"value": "9"'))
    write_queue(path, rows)  # which keeps what is filled in
    assert {settlement.value for settlement in read_queue(path, *run)} == {(9.0,)}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["id,value", "see x,7"], "'see x' is not an open review"),
        (["id,value", "see a,seven"], "is neither a number nor an answer"),
        (["id,value", "see a,nan"], "is neither a number"),
        (["id,value", "see a,7 8"], "is neither a number"),
        (["id,value", "see a,7", "see a,8"], "two different values"),
        (["name,value", "see a,7"], "the column id is missing"),
    ],
)
def test_wrong_entries_are_named(run: tuple[Acquirer, Fetcher], tmp_path: Path, lines: list[str], message: str) -> None:
    path = tmp_path / "q.csv"
    path.write_text("\n".join(lines))
    with pytest.raises(InputError) as caught:
        read_queue(path, *run)
    assert message in str(caught.value)


def test_wrong_files(run: tuple[Acquirer, Fetcher], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"end in \.csv or \.jsonl"):
        write_queue(tmp_path / "q.txt", [])
    with pytest.raises(InputError, match="no such file"):
        read_queue(tmp_path / "missing.csv", *run)
    (tmp_path / "q.jsonl").write_text("{")
    with pytest.raises(InputError, match="row 1: not valid JSON"):
        read_queue(tmp_path / "q.jsonl", *run)
    (tmp_path / "q.jsonl").write_text("[1]")
    with pytest.raises(InputError, match="row 1: "):
        read_queue(tmp_path / "q.jsonl", *run)
    (tmp_path / "q.jsonl").write_text("[" * 100_000)
    with pytest.raises(InputError, match="row 1: not valid JSON"):
        read_queue(tmp_path / "q.jsonl", *run)


@pytest.mark.parametrize("value", [{"x": 1}, [{"x": 1}]])
def test_a_table_is_no_answer(run: tuple[Acquirer, Fetcher], tmp_path: Path, value: object) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text(json.dumps({"id": "see a", "value": value}))
    with pytest.raises(InputError, match="'see a': value is the table"):
        read_queue(path, *run)


def test_a_long_answer_is_no_obstacle(run: tuple[Acquirer, Fetcher], tmp_path: Path) -> None:
    path = tmp_path / "q.csv"
    rows = [row | {"model_answer": "7" * 200_000} for row in queue(*run)]
    write_queue(path, rows)
    write_queue(path, rows)
    assert read_queue(path, *run) == []


@pytest.mark.parametrize("form", [".csv", ".jsonl"])
def test_a_queue_that_is_written_again_keeps_what_was_filled_in(
    run: tuple[Acquirer, Fetcher], tmp_path: Path, form: str
) -> None:
    """Before anybody has read it back."""
    path = tmp_path / f"queue{form}"
    write_queue(path, queue(*run))
    text = path.read_text().splitlines()
    if form == ".csv":
        path.write_text("\n".join([text[0], text[1] + "7", *text[2:]]) + "\n")
    else:
        path.write_text("\n".join([text[0].replace('"value": ""', '"value": "7"'), *text[1:]]) + "\n")
    before = [one.value for one in read_queue(path, *run)]
    assert before == [(7.0,)]
    write_queue(path, queue(*run))
    assert [one.value for one in read_queue(path, *run)] == before


LABEL, DECIMAL = parsers.get("label"), parsers.get("decimal")


def classes_problem(*names: Any, checks: int = 0) -> rrf.Problem:
    nodes = [{"id": f"n{i}", "prompt": "?", "parser": parser} for i, parser in enumerate(names)]
    relations = [{"id": f"r{i}", "tail": "n0", "head": f"n{i}"} for i in range(1, len(names))]
    anchors = [{"id": f"a{i}", "node": "n0", "cost": 1.0, "source": {"label": "x"}} for i in range(checks)]
    return rrf.Problem(k=1, nodes=nodes, relations=relations, anchors=anchors)


def test_places_are_given_in_the_order_heard() -> None:
    heard = HeardClasses(3)
    assert heard.vector("b") == (1.0, 0.0, 0.0)
    assert heard.vector("a") == (0.0, 1.0, 0.0)
    assert heard.vector("b") == (1.0, 0.0, 0.0)
    assert heard.vector("c") == (0.0, 0.0, 1.0)
    with pytest.raises(StopIteration):  # room is for as many as there can be: a fourth is a fault of the caller
        heard.vector("d")


def entry(text: str | None, value: tuple[float, ...] | None, *, ok: bool = True) -> Any:
    return SimpleNamespace(text=text, value=value, ok=ok)


def test_a_resumed_run_goes_on_with_the_same_places() -> None:
    heard = HeardClasses(3)
    settled = {
        "n0": entry("cat", (0.0, 1.0, 0.0)),
        "a0": entry("dog", (1.0, 0.0, 0.0)),
        "n1": entry("bird", None, ok=False),
        "n2": entry("fish", (1.0, 0.0)),  # another number of places: of an older run
    }
    heard.recall(SimpleNamespace(settled=settled), {"n0": LABEL, "n2": LABEL})  # type: ignore[arg-type]
    assert heard.vector("cat") == (0.0, 1.0, 0.0)
    assert heard.vector("dog") == (1.0, 0.0, 0.0)
    assert heard.vector("bird") == (0.0, 0.0, 1.0)


def test_the_class_of_a_text_is_its_parser_s_and_a_check_s_own_word() -> None:
    assert class_of("sport", LABEL) == LABEL.parse("sport").label
    assert class_of("Any Words", None) == "Any Words"
    assert class_of("7", DECIMAL) is None


@pytest.mark.parametrize(
    ("parser", "is_open"),
    [
        ("label", True),
        ("literal", True),
        ("decimal", False),
        ("json", False),  # it needs options: said where it is used
        ("nobody-knows-it", False),
        ({"name": "json", "field": "total"}, False),
        ({"name": "yes-no", "count": 2}, False),
        ({"name": "label"}, True),
    ],
)
def test_which_nodes_answer_in_classes(parser: Any, is_open: bool) -> None:
    assert open_nodes(classes_problem(parser, "decimal")) == (frozenset({"n0"}) if is_open else frozenset())


def test_there_is_room_for_every_class_that_can_be_named() -> None:
    wide = with_room(classes_problem("label", "label", "label", checks=2))
    assert {node.dim for node in wide.nodes} == {5}
    assert {node.dim for node in with_room(classes_problem("label")).nodes} == {2}
    numbers = classes_problem("decimal", "decimal")
    assert with_room(numbers) is numbers


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
