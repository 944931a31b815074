"""Live runs from end to end: models, limits, and no secret anywhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fields import PRICES, Flaky, go, one_wrong, ring, scripted

import rrf_design as rrf
from rrf_design.acquisition import Journal, acquire, answer_log, read_run
from rrf_design.acquisition.journal import Kind
from rrf_design.errors import InputError, Refused, RetryLater
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
        ({"mode": "clever"}, "modes are agnostic, adaptive, triage and expected"),
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
    assert run.passes
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
    assert not run.passes


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


def test_a_team_shares_one_server(tmp_path: Path, server: str) -> None:
    flaky = Flaky()
    paused = go(ring(), tmp_path, scripted(flaky), store=server)
    assert paused.stopped_because == "paused"
    flaky.left = 99
    with Journal(server) as journal, journal.holding(paused.run), pytest.raises(Refused, match="is working on it"):
        go(None, tmp_path, scripted(flaky), store=server, resume=paused.run)
    resumed = go(None, tmp_path, scripted(flaky), store=server, resume=paused.run)
    assert flaky.calls == 5
    assert resumed.repaired["n2"] == pytest.approx([7.0])
    assert read_run(paused.run, store=server).purchases == resumed.purchases


def test_a_wrong_key_does_not_burn_the_budget(tmp_path: Path) -> None:
    server = Flaky(Outcome.FAILED, after=0)
    paused = go(ring(), tmp_path, scripted(server))
    assert paused.stopped_because == "paused"
    assert "the backend refuses the call: connection refused" in paused.detail
    assert paused.spent == 0
    later = Flaky(Outcome.FAILED, after=3)  # a single failed call among answers is an answer that is missing
    run = go(ring(), tmp_path, scripted(later))
    assert run.items[0].failed["n3"] == "failed"


def test_money_is_real_and_bounded(tmp_path: Path) -> None:
    free = go(ring(), tmp_path, prices=PRICES)
    assert free.money > 5 * 0.01
    tight = go(ring(), tmp_path, prices=PRICES, money=free.money / 2)
    assert tight.money <= free.money / 2
    assert len(tight.items[0].answers) < 5


@pytest.mark.parametrize("slots", [1, 4])
def test_calls_can_be_limited(tmp_path: Path, slots: int) -> None:
    """No more calls than allowed, also with several items and several calls at once; and the run
    goes on with more.
    """
    asked: list[str] = []
    items = {f"i{j}": ring(4, name=f"i{j}") for j in range(3)}

    def script(request: Any) -> str:
        asked.append(request.prompt)
        return "7"

    model = scripted(script, slots=slots)
    run = go(items, tmp_path, model, budget=9.0, calls=5)
    assert "calls used up: 2" in run.stopped_because
    assert run.calls == len(asked) == 5
    again = go(None, tmp_path, model, resume=run.run, calls=7)
    assert again.calls == len(asked) == 7
    lowered = go(None, tmp_path, model, resume=run.run, calls=2)
    assert lowered.calls == len(asked) == 7
    done = go(None, tmp_path, model, resume=run.run, calls=99)
    assert done.calls == len(asked) == 12


def test_repeated_calls_count_against_the_limit(tmp_path: Path) -> None:
    model = scripted(lambda request: Attempt(Outcome.TIMEOUT, usage=Usage(calls=1)))
    run = go(ring(), tmp_path, model, calls=6)
    assert run.calls == 6  # four for the first question, two for the second


def test_time_is_a_limit_where_a_purchase_is_reserved(tmp_path: Path) -> None:
    run = go(ring(), tmp_path, seconds=0.0)
    assert (run.stopped_because, run.calls) == ("time used up", 0)


def test_many_items_fill_the_slots(tmp_path: Path) -> None:
    items = {f"i{j}": ring(4, name=f"i{j}") for j in range(5)}
    run = go(items, tmp_path, scripted(slots=4), budget=20.0)
    assert run.spent <= 20
    assert set(run.repaired) == set(items)
    assert all(entry.repair["support"] == ["n2"] for entry in run.items)
    assert run.gamma_lower == min(entry.gamma_lower for entry in run.items)


def test_every_question_is_asked_when_its_reservation_fits(tmp_path: Path) -> None:
    """A reservation is many times what a call costs; questions wait for each other instead of being
    left out.
    """
    asked = go(ring(), tmp_path, scripted(slots=5), prices=PRICES, money=2.0)
    assert len(asked.items[0].answers) == 5


def test_a_judge_costs_no_more_than_was_reserved_however_long_the_answer_is(tmp_path: Path) -> None:
    """Its prompt holds the answer, which was not there when the run began."""
    long = "so " * 3000 + "7"

    def say(request: Any) -> str:
        return "7" if request.prompt.startswith("Right?") else long

    judge = {"verifier": "scripted", "prompt": "Right? {{ answer }}", "max_tokens": 3}
    problem = rrf.Problem(
        nodes=[{"id": "a", "prompt": "?", "max_tokens": 4000}, {"id": "b", "prompt": "??", "max_tokens": 4000}],
        relations=[{"id": "r", "tail": "a", "head": "b"}],
        anchors=[{"id": "A", "node": "a", "source": judge, "sigma": 1.0, "cost": 1.0}],
        target=0.5,
    )
    prices = {"scripted": {"input": 0.001, "output": 0.0001}}
    told: list[Any] = []
    free = go(
        problem, tmp_path, scripted(say), prices=prices, consent=lambda spending, said: told.append(spending) or True
    )
    assert "A is judged by scripted, which answers the questions too" in told[0].judges[0]
    assert free.items[0].anchors == {"A": (7.0,)}
    assert free.money > 3.0  # mostly the judge's
    tight = go(problem, tmp_path, scripted(say), prices=prices, money=4.0)
    assert tight.money <= 4.0
    assert tight.items[0].anchors == {}  # not asked: it could have cost more than was left


def test_a_question_after_the_repair_is_shown_what_the_others_come_to(tmp_path: Path) -> None:
    """It is asked last, sees the repaired field and not the answer that was wrong, and its own
    answer is one more: it can be blamed like any other.
    """
    asked: list[str] = []

    def say(request: Any) -> str:
        asked.append(request.prompt)
        return {"One?": "7", "Two?": "9", "Three?": "7"}.get(request.prompt, "8")

    problem = rrf.Problem(
        k=1,
        nodes=[
            {"id": "again", "prompt": "Again?", "cost": 1.0, "after": "repair"},
            {"id": "a", "prompt": "One?"},
            {"id": "b", "prompt": "Two?"},
            {"id": "c", "prompt": "Three?"},
        ],
        relations=[
            {"id": f"{one}{two}", "tail": one, "head": two}
            for one, two in (("a", "b"), ("b", "c"), ("a", "c"), ("a", "again"), ("b", "again"), ("c", "again"))
        ],
        target=1.5,
    )
    run = go(problem, tmp_path, scripted(say))
    assert asked[:3] == ["One?", "Two?", "Three?"]
    assert asked[3].startswith("Again?\n\n")
    assert "Brought into agreement, the answers are:\na: 7\nb: 7\nc: 7\n" in asked[3]
    (item,) = run.items
    assert item.answers["again"] == (8.0,)
    assert item.repair["verdict"] == "contradicted"  # two are wrong now: 9, and what was asked after


def test_what_is_asked_after_the_repair_is_on_sale() -> None:
    with pytest.raises(InputError, match="give a cost, and no repeats"):
        rrf.Problem(nodes=[{"id": "a", "prompt": "?", "after": "repair"}])


def test_cycles_are_looked_for_less_often_while_a_run_goes_on_and_as_before_afterwards(tmp_path: Path) -> None:
    import gc

    before, seen = gc.get_threshold(), []

    def script(_: Any) -> str:
        seen.append(gc.get_threshold()[0])
        return "7"

    acquire(ring(), scripted(script), store=tmp_path / "r.sqlite")
    assert min(seen) >= 50_000
    assert gc.get_threshold() == before
    with pytest.raises(InputError):
        acquire(ring(), "no such model", store=tmp_path / "r.sqlite")
    assert gc.get_threshold() == before


def test_every_item_is_decided_as_soon_as_it_is_done(tmp_path: Path) -> None:
    """The journal says so before the next ones are asked, and what is bought later decides anew."""
    items = {f"i{j}": ring(4, name=f"i{j}") for j in range(6)}
    steady = go(items, tmp_path, budget=50.0)
    with Journal(tmp_path / "runs.sqlite") as journal:
        kinds = [event.kind for event in journal.events(steady.run)]
    assert kinds.index(Kind.DECIDED) < len(kinds) // 2
    run = go(items, tmp_path, budget=2.0, mode="adaptive")
    with Journal(tmp_path / "runs.sqlite") as journal:
        events = journal.events(run.run)
    kinds = [event.kind for event in events]
    assert Kind.RESULT not in kinds
    decided = {event.body["item"]: event.body["repair"] for event in events if event.kind is Kind.DECIDED}
    assert decided == {entry.item: entry.repair for entry in run.items}
    more = go(None, tmp_path, resume=run.run, budget=24.0)
    again = read_run(run.run, store=tmp_path / "runs.sqlite")
    assert {entry.item: entry.repair for entry in more.items} == {entry.item: entry.repair for entry in again.items}
    assert {entry.item: entry.repair for entry in more.items} != decided


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


@pytest.mark.parametrize("replaced", [False, True])
def test_a_store_that_is_deleted_while_a_run_goes_on_is_noticed(tmp_path: Path, replaced: bool) -> None:
    asked: list[str] = []

    def script(request: Any) -> str:
        asked.append(request.prompt)
        if len(asked) == 2:
            for file in tmp_path.glob("runs.sqlite*"):
                file.unlink()
            if replaced:
                Journal(tmp_path / "runs.sqlite").close()
        return one_wrong(request)

    with pytest.raises(Refused, match="was deleted or replaced while the run went on") as caught:
        go(ring(), tmp_path, scripted(script))
    assert "\n" not in str(caught.value)
    assert len(asked) == 2


def test_an_item_that_money_did_not_reach_says_so(tmp_path: Path) -> None:
    untouched = go(ring(2), tmp_path, prices={"scripted": {"call": 1.0}}, money=0.5)
    assert untouched.items[0].stopped_because == "money used up"
    assert untouched.items[0].repair["reason"].startswith("no question was asked: money used up")
    silent = go(ring(2), tmp_path, scripted(lambda request: "no idea"))
    assert silent.items[0].repair["reason"] == "no answer could be read"


def test_the_median_of_repeats_is_taken_where_tails_are_heavy(tmp_path: Path) -> None:
    """One wild answer of five moves a mean by hundreds, and the median not at all."""
    said: dict[str, list[str]] = {}

    def script(request: Any) -> str:
        given = said.setdefault(request.prompt, ["7", "1000", "6", "8", "7"])
        return given.pop()

    nodes = [{"id": name, "prompt": f"{name}?", "repeats": 5, "take": "median"} for name in "abc"]
    relations = [{"id": x + y, "tail": x, "head": y} for x, y in ("ab", "bc", "ca")]
    problem = rrf.Problem(nodes=nodes, relations=relations)
    run = go(problem, tmp_path, scripted(script))
    assert run.verdict == "consistent"
    assert run.repaired == {name: [7.0] for name in "abc"}
    assert run.calls == 15
    assert read_run("last", store=tmp_path / "runs.sqlite").repaired == run.repaired
    assert go(None, tmp_path, scripted(script), resume="last").repaired == run.repaired
    for refused in ({"sigma": 1.0}, {"repeats": 1}, {"again": 1.0, "sigma": 1.0}):
        with pytest.raises(InputError, match=r"take = .median. is of repeats"):
            rrf.Problem(nodes=[{**nodes[0], **refused}])
