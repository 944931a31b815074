"""acquire from end to end: what it refuses, what it finds, and what is written down of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fields import go, one_wrong, ring, scripted

import rrf_design as rrf
from rrf_design.acquisition import Journal, acquire, answer_log, read_run
from rrf_design.acquisition.journal import Kind
from rrf_design.errors import InputError
from rrf_design.models.base import Attempt, Outcome, Usage
from rrf_design.models.replay import ReplayModel


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"nodes": [{"id": "n"}]}, "node 'n': it has no prompt"),
        ({"nodes": [{"id": "n", "prompt": "?", "parser": "integer-lst"}]}, "node 'n': unknown parser"),
        ({"nodes": [{"id": "n", "prompt": "?", "dim": 2}]}, "node 'n': its parser gives 1 numbers"),
        ({"nodes": [{"id": "n", "prompt": "{{ x }}", "variables": {"y": 1}}]}, "node 'n': template"),
        (
            {"nodes": [{"id": "n", "prompt": "?"}], "anchors": [{"id": "A", "node": "n", "cost": 1.0}]},
            "anchor 'A': it has no value and no source",
        ),
    ],
)
def test_faults_are_found_before_anything_is_bought(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        go(rrf.Problem(k=1, **changes), tmp_path)
    assert message in str(caught.value)
    with Journal(tmp_path / "runs.sqlite") as journal:
        assert journal.summaries() == ()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "clever"}, "modes are agnostic, adaptive and triage"),
        ({"doubt": "same"}, "use again or skip"),
        (
            {"money": 1.0, "model": "openai:m", "model_options": {"base_url": "http://127.0.0.1:9/v1"}},
            "no price is known of model 'openai:m', and a money budget needs one; write",
        ),
        ({"responses": {"zz": 1.0}}, "no node 'zz'"),
        ({"model": "scritped:x"}, "did you mean 'scripted:x'"),
        ({"resume": "2020"}, "no journal of runs"),
    ],
)
def test_wrong_calls_are_one_line(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        go(ring(), tmp_path, **options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_nothing_to_do(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing to acquire"):
        acquire(None, scripted(), store=tmp_path / "r.sqlite")


@pytest.mark.parametrize("mode", ["agnostic", "adaptive"])
@pytest.mark.parametrize("slots", [1, 3])
def test_a_wrong_answer_is_found_and_repaired(tmp_path: Path, mode: str, slots: int) -> None:
    run = go(ring(), tmp_path, scripted(slots=slots), mode=mode, batch=slots)
    assert run.items[0].answers["n2"] == (12.0,)
    assert run.items[0].repair["support"] == ["n2"]
    assert run.repaired["n2"] == pytest.approx([7.0])
    assert run.gamma_lower > 0
    assert run.certified
    assert run.spent <= 4


def test_the_document_has_the_promised_keys_and_reads_back(tmp_path: Path) -> None:
    run = go(ring(), tmp_path)
    document = run.to_json()
    assert {"run", "stopped_because", "spent", "gamma_lower", "purchases", "repaired"} <= set(document)
    assert (document["format"], document["version"]) == ("rrf-run", 2)
    again = read_run("last", store=tmp_path / "runs.sqlite").to_json()
    assert json.loads(json.dumps(again)) == json.loads(json.dumps(document))
    header = document["header"]
    assert {"program", "packages", "seed", "settings", "digests", "identity", "format_version"} <= set(header)
    assert header["digests"][""] == rrf.digest(ring())


def test_refusals_garbage_and_parse_failures_are_stored_as_such(tmp_path: Path) -> None:
    texts = {"0": "7", "1": "I can't help with that.", "2": "", "3": "seven", "4": "7"}
    run = go(ring(), tmp_path, scripted(lambda request: texts[request.prompt[-2]]))
    assert run.items[0].failed == {"n1": "refused", "n2": "empty", "n3": "parse failure"}
    assert run.items[0].answers == {"n0": (7.0,), "n4": (7.0,)}
    assert run.items[0].repair["erased"].keys() == {"n1", "n2", "n3"}


def test_a_field_without_a_readable_answer_does_not_stop_the_others(tmp_path: Path) -> None:
    items = {"good": ring(name="good"), "mute": ring(name="mute")}
    model = scripted(lambda request: "no idea" if request.prompt.startswith("mute") else "7")
    run = go(items, tmp_path, model, budget=8.0)
    good, mute = run.items
    assert good.repair["support"] == []
    assert (mute.stopped_because, mute.gamma_lower, mute.repaired) == ("no answer could be read", 0.0, None)
    assert not run.certified


def test_the_result_can_be_certified(tmp_path: Path) -> None:
    mute = scripted(lambda request: "no idea" if "question 4" in request.prompt else "7")
    run = go(ring(), tmp_path, mute, mode="adaptive")
    certificate = run.items[0].certify()
    # in the run, rows that touch question 4 count too
    assert run.gamma_lower == run.items[0].repair["gamma_lower"] > certificate.gamma_lower
    assert rrf.verify(certificate).valid


def test_known_responses_are_not_asked(tmp_path: Path) -> None:
    problem = ring()
    silent = scripted(lambda request: pytest.fail("nothing has to be asked"))
    run = go(problem, tmp_path, silent, responses={f"n{i}": 7.0 for i in range(5)})
    assert run.calls == 0
    assert run.items[0].repair["support"] == []


def test_owned_anchors_get_their_value_from_their_source(tmp_path: Path) -> None:
    problem = rrf.Problem(
        k=1,
        nodes=[{"id": f"n{i}", "prompt": f"question {i}?", "variables": {"a": 3}} for i in range(3)],
        relations=[{"id": f"r{i}", "tail": f"n{i}", "head": f"n{(i + 1) % 3}"} for i in range(3)],
        anchors=[{"id": "A", "node": "n0", "source": "expression: a + 4"}],
    )
    run = go(problem, tmp_path)
    assert run.items[0].anchors == {"A": (7.0,)}
    assert run.repaired["n2"] == pytest.approx([7.0])


def test_the_answers_can_be_published_and_replayed(tmp_path: Path) -> None:
    run = go(ring(), tmp_path)
    records = answer_log(run.run, store=tmp_path / "runs.sqlite")
    assert {record["node"] for record in records} == {f"n{i}" for i in range(5)}
    again = go(ring(), tmp_path, ReplayModel(records))
    assert again.items[0].answers == run.items[0].answers


def test_every_purchase_has_an_intent_before_its_settlement(tmp_path: Path) -> None:
    run = go(ring(), tmp_path)
    with Journal(tmp_path / "runs.sqlite") as journal:
        events = journal.events(run.run)
    places = {(event.kind, event.purchase): i for i, event in enumerate(events)}
    settled = [event.purchase for event in events if event.kind is Kind.SETTLED]
    assert len(settled) == len(run.purchases)
    assert all(places[Kind.INTENT, name] < places[Kind.SETTLED, name] for name in settled)


@pytest.mark.parametrize("where", ["file", "server"])
def test_broken_unicode_survives(tmp_path: Path, where: str, request: pytest.FixtureRequest) -> None:
    store = tmp_path / "runs.sqlite" if where == "file" else request.getfixturevalue("server")
    words = "half \ud83d and NUL \x00: 7"
    items = {"odd \x00 \udc00": ring(name="NUL \x00")}
    run = go(items, tmp_path, scripted(lambda request: words), store=store)
    texts = {record["reply"]["text"] for record in answer_log(run.run, store=store)}
    assert texts == {words}
    again = read_run(run.run, store=store)
    assert again.purchases == run.purchases
    assert [entry.item for entry in again.items] == list(items)
    assert go(None, tmp_path, scripted(lambda request: words), store=store, resume=run.run).purchases == run.purchases


def test_an_answer_cut_at_its_limit_is_no_answer(tmp_path: Path) -> None:
    cut = Attempt(Outcome.TRUNCATED, "12", Usage(1, 1, 1), detail="cut at the token limit")
    run = go(ring(), tmp_path, scripted(lambda request: cut if "question 2" in request.prompt else "7"))
    assert run.items[0].failed == {"n2": "truncated"}
    assert run.items[0].repair["erased"].keys() == {"n2"}


def test_finished_items_have_their_result_while_others_wait_for_a_person(tmp_path: Path) -> None:
    asks = rrf.Problem(
        k=1,
        target=0.9,
        nodes=[{"id": "n1", "prompt": "1?"}, {"id": "n2", "prompt": "2?"}],
        relations=[{"id": "r", "tail": "n1", "head": "n2"}],
        anchors=[{"id": f"a{i}", "node": f"n{i}", "cost": 1.0, "source": "person"} for i in (1, 2)],
    )
    queue = tmp_path / "reviews.csv"
    run = go({"done": ring(), "waits": asks}, tmp_path, budget=6.0, review_file=queue)
    done, waits = run.items
    assert (waits.stopped_because, waits.repair) == ("waiting for review", None)
    assert done.repair["support"] == ["n2"]
    assert read_run("last", store=tmp_path / "runs.sqlite").items[0].repair == done.repair
    lines = queue.read_text().splitlines()
    queue.write_text("\n".join([lines[0], *(line + "7" for line in lines[1:])]))
    whole = go(None, tmp_path, resume="last", reviews=queue)
    assert whole.items[0].repair == done.repair
    assert whole.items[1].repair is not None
    assert {p.source for p in whole.purchases if p.item == "waits" and p.buys == "anchor"} == {"person"}


def test_a_run_can_be_read_while_it_is_under_way(tmp_path: Path) -> None:
    """Read from the journal in the middle of the second item: the first has its result."""
    seen: list[Any] = []

    def script(request: Any) -> str:
        if request.prompt == "b: question 3?":
            seen.append(read_run("last", store=tmp_path / "runs.sqlite"))
        return one_wrong(request)

    go({"a": ring(name="a"), "b": ring(name="b")}, tmp_path, scripted(script), budget=8.0)
    assert seen[0].stopped_because == "unfinished"
    assert seen[0].items[0].repair["support"] == ["n2"]
    assert seen[0].items[1].repair is None
