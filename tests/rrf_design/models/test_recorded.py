"""Models that answer from a script, a log or a cache."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design import models
from rrf_design.acquisition import acquire
from rrf_design.acquisition.result import answer_log
from rrf_design.errors import InputError, RetryLater
from rrf_design.models import Attempt, Model, Outcome, PriceTable, Request, Usage, read_records, record, write_records
from rrf_design.models.cache import FILE, AnswerCache, _default_folder, folder_of
from rrf_design.models.replay import ReplayModel
from rrf_design.models.scripted import ScriptedModel


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ({"rule": []}, "keys rules and default"),
        ({"rules": [3]}, "rule 1: a rule is an object"),
        ({"rules": [{"prompt": "a", "text": "b"}, {"promt": "a"}]}, "rule 2: unknown key 'promt'"),
        ({"rules": [{"text": "a"}]}, "either prompt or pattern"),
        ({"rules": [{"prompt": "a"}]}, "a text or an outcome"),
        ({"rules": [{"pattern": "(", "text": "b"}]}, "rule 1"),
        ({"rules": [{"prompt": "a", "outcome": "tired"}]}, "tired"),
        ({"rules": [{"prompt": "a", "text": "b", "failures": ["refused"]}]}, "never retried"),
    ],
)
def test_bad_scripts(script: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ScriptedModel(script)


def test_not_json(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text("{")
    with pytest.raises(InputError, match="not JSON"):
        ScriptedModel(path)


@pytest.mark.parametrize("outcome", list(Outcome))
def test_every_outcome_can_be_scripted(outcome: Outcome) -> None:
    model = ScriptedModel({"rules": [{"prompt": "a", "outcome": outcome.value, "detail": "because"}]})
    reply = model.ask(Request("a"))
    assert reply.outcome is outcome
    assert reply.detail == "because"


def test_failures_come_before_the_answer_in_every_ask() -> None:
    rule = {"prompt": "a", "text": "5", "failures": ["rate_limited", "unreachable"]}
    model = ScriptedModel({"rules": [rule]})
    for _ in range(2):
        reply = model.ask(Request("a"))
        assert (reply.outcome, reply.attempts) == (Outcome.ANSWERED, 3)
        assert reply.usage.calls == 2  # a server that was never reached is not paid


def test_unknown_prompts_and_whole_attempts() -> None:
    assert ScriptedModel({"rules": []}).ask(Request("a")).outcome is Outcome.FAILED
    assert ScriptedModel({"default": "x"}).ask(Request("a")).text == "x"
    model = ScriptedModel(lambda request: Attempt(Outcome.REFUSED, "no", Usage(1, 1, 1)))
    assert model.ask(Request("a")).outcome is Outcome.REFUSED


def test_identity_is_the_content(tmp_path: Path) -> None:
    script = {"default": "1"}
    path = tmp_path / "s.json"
    path.write_text(json.dumps(script, indent=3))
    assert ScriptedModel(path).identity == ScriptedModel(script).identity
    assert ScriptedModel({"default": "2"}).identity != ScriptedModel(script).identity


REQUESTS = [Request("a"), Request("a", seed=1), Request("b", system="s")]


def test_replays_the_purchase_itself(tmp_path: Path) -> None:
    asked: list[Request] = []

    def script(request: Request) -> str:
        asked.append(request)
        return f"{request.prompt} {request.seed} {len(asked)}"

    source = ScriptedModel(script)
    originals = source.complete(REQUESTS)
    again = source.ask(REQUESTS[0])
    entries = [record(r, reply) for r, reply in zip(REQUESTS, originals, strict=True)]
    write_records(tmp_path / "log.jsonl", [*entries, record(REQUESTS[0], again)])
    replayed = models.get(f"replay:{tmp_path / 'log.jsonl'}")
    calls = len(asked)
    assert replayed.complete(REQUESTS) == originals  # the first answer counts, and it is the whole reply
    assert len(asked) == calls
    assert replayed.identity == source.identity


def test_never_asks_what_was_not_logged() -> None:
    model = ReplayModel([record(REQUESTS[0], ScriptedModel(lambda r: "5").ask(REQUESTS[0]))])
    with pytest.raises(InputError, match="no recorded answer to the prompt 'b'"):
        model.ask(REQUESTS[2])
    with pytest.raises(InputError, match="no recorded answer"):
        model.ask(REQUESTS[1])  # another seed is another purchase


def test_backends_are_not_mixed() -> None:
    one, two = (ScriptedModel(lambda r: "5", name=name) for name in ("one", "two"))
    log = [record(REQUESTS[0], one.ask(REQUESTS[0])), record(REQUESTS[0], two.ask(REQUESTS[0]))]
    with pytest.raises(InputError, match=r"several backends \(one, two\)"):
        ReplayModel(log)
    assert ReplayModel(log, model="two").identity == two.identity
    with pytest.raises(InputError, match="no answers of model 'three'"):
        ReplayModel(log, model="three")
    with pytest.raises(InputError, match="no answers to replay"):
        ReplayModel([])


def test_round_trip(tmp_path: Path) -> None:
    model = ScriptedModel(lambda request: f"Unicode line\u2028separator, {request.prompt}")
    requests = [Request("ä"), Request("b\nc")]
    entries = [record(request, model.ask(request), node="n") for request in requests]
    write_records(tmp_path / "log.jsonl", entries)
    assert list(read_records(tmp_path / "log.jsonl")) == entries
    assert entries[0]["node"] == "n"


def test_a_log_that_is_no_utf8(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_bytes(b"{\xe9}")
    with pytest.raises(InputError, match=r"log.jsonl: can't read the answer log"):
        list(read_records(tmp_path / "log.jsonl"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2: not JSON"),
        ("[]", "line 2: not a recorded answer"),
        ('{"format": "other"}', "line 2: not a recorded answer"),
        ('{"format": "rrf-answer", "version": 99}', "version 99 is not known"),
    ],
)
def test_bad_lines(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "log.jsonl").write_text("\n" + line + "\n")
    with pytest.raises(InputError, match=message):
        list(read_records(tmp_path / "log.jsonl"))


class Shop(ScriptedModel):
    """Somebody else's model: what is asked is charged."""

    local = False

    def __init__(self, name: str = "shop", answer: str = "7") -> None:
        self.asked: list[str] = []
        super().__init__(lambda request: (self.asked.append(request.prompt), answer)[1], name=name)
        self.kept = True


def fill(folder: Path, model: Shop, *requests: Request) -> None:
    with AnswerCache(folder) as cache:
        for request in requests:
            cache.keep(request, model.ask(request), model)


def test_a_kept_answer_costs_nothing_and_survives_the_process(tmp_path: Path) -> None:
    model, request = Shop(), Request("2 + 5?")
    fill(tmp_path, model, request)
    with AnswerCache(tmp_path) as cache:
        found = cache.find(request, model)
    assert found is not None
    assert (found.text, found.outcome, found.usage, found.attempts) == ("7", Outcome.ANSWERED, Usage(), 0)


@pytest.mark.parametrize(
    "change",
    [{"prompt": "2 + 6?"}, {"temperature": 0.7}, {"seed": 1}, {"repeat": 1}, {"max_tokens": 9}, {"system": "s"}],
)
def test_another_question_is_another_key(tmp_path: Path, change: dict[str, Any]) -> None:
    model, request = Shop(), Request("2 + 5?")
    fill(tmp_path, model, request)
    with AnswerCache(tmp_path) as cache:
        assert cache.find(replace(request, **change), model) is None
        assert cache.find(request, Shop("another")) is None


def test_only_answers_are_kept_and_the_first_one_stays(tmp_path: Path) -> None:
    fill(tmp_path, Shop(answer=""), Request("?"))
    fill(tmp_path, Shop(), Request("?"))
    fill(tmp_path, Shop(answer="8"), Request("?"))
    with AnswerCache(tmp_path) as cache:
        found = cache.find(Request("?"), Shop())
        assert found is not None
        assert found.text == "7"
        assert [(entry.model, entry.answers) for entry in cache.summary()] == [("shop", 1)]
        assert (cache.clear("nobody"), cache.clear("shop"), cache.summary()) == (0, 1, ())


def problem(**settings: Any) -> rrf.Problem:
    nodes = [{"id": name, "prompt": "What is 2 + 5?", **settings} for name in ("a", "a2")]
    return rrf.Problem(k=1, nodes=nodes, relations=[{"id": "r", "tail": "a", "head": "a2"}])


def test_a_second_run_asks_nobody_and_pays_nothing(tmp_path: Path) -> None:
    prices = PriceTable.load({"shop": {"output": 1.0, "call": 1.0}})
    runs = []
    for number, cache in enumerate(("kept", "kept", None)):
        model = Shop()
        store = tmp_path / f"{number}.sqlite"
        run = acquire(problem(), model, store=store, prices=prices, cache=cache and tmp_path / cache)
        runs.append((len(model.asked), run.calls, run.money, run.items[0].answers))
    answers = {"a": (7.0,), "a2": (7.0,)}
    assert runs == [(2, 2, 4.0, answers), (0, 0, 0.0, answers), (2, 2, 4.0, answers)]


def test_answers_of_the_embedded_model_are_kept(tmp_path: Path, embedded: Model) -> None:
    """Really asked once: a second run has its very words, and a store where nothing was kept asks
    again.
    """
    spent = []
    for number, cache in enumerate(("kept", "kept", None)):
        store = tmp_path / f"{number}.sqlite"
        run = acquire(problem(), embedded, store=store, cache=cache and tmp_path / cache)
        spent.append((run.calls, [entry["reply"]["text"] for entry in answer_log(run.run, store=store)]))
    (calls, texts), (again, same), (fresh, _) = spent
    assert (calls, again, fresh) == (2, 0, 2)
    assert len(texts) == 2
    assert same == texts
    with AnswerCache(tmp_path / "kept") as kept:
        assert [(entry.model, entry.answers) for entry in kept.summary()] == [("embedded", 2)]


def test_whose_answers_are_kept(tmp_path: Path) -> None:
    """A script by its digest; not a record, which is kept already, nor a function, which two of one
    name could not be told apart.
    """
    script = {"rules": [], "default": "7"}
    recorded = ReplayModel([record(Request("?"), ScriptedModel(script).ask(Request("?")))])
    assert [m.kept for m in (ScriptedModel(script), ScriptedModel(lambda _: "7"), recorded)] == [True, False, False]
    for number in range(2):
        run = acquire(problem(), ScriptedModel(script), store=tmp_path / f"{number}.sqlite", cache=tmp_path)
        assert run.calls == 2 - 2 * number
    assert acquire(
        problem(), ScriptedModel({**script, "default": "8"}), store=tmp_path / "3.sqlite", cache=tmp_path
    ).calls
    function = ScriptedModel(lambda _: "7")
    calls = [acquire(problem(), function, store=tmp_path / f"f{n}.sqlite", cache=tmp_path).calls for n in range(2)]
    assert calls == [2, 2]


def test_a_judge_is_paid_once_for_what_it_was_shown(tmp_path: Path) -> None:
    """Two equal judges of one answer are asked for opinions of their own; the next run asks neither
    again.
    """
    judges = [
        {"id": name, "node": "a", "sigma": 0.1, "source": {"verifier": "judge", "prompt": "Is {{ answer }} right?"}}
        for name in ("j1", "j2")
    ]
    judged = rrf.Problem(k=1, nodes=[{"id": "a", "prompt": "What is 2 + 5?"}], anchors=judges)
    asked = []
    for number in range(3):
        reader, judge = Shop(answer="7" if number < 2 else "8"), Shop("judge")
        acquire(
            judged,
            {"reader": reader, "judge": judge},
            store=tmp_path / f"{number}.sqlite",
            cache=tmp_path / str(number // 2),
        )
        asked.append((reader.asked, judge.asked))
    assert asked[0] == (["What is 2 + 5?"], ["Is 7 right?", "Is 7 right?"])
    assert asked[1] == ([], [])
    assert asked[2] == (["What is 2 + 5?"], ["Is 8 right?", "Is 8 right?"])


def test_where_answers_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RRF_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert folder_of(None) == _default_folder() == tmp_path / "rrf-design"
    assert folder_of("off") is None
    monkeypatch.setenv("RRF_CACHE", "off")
    assert folder_of(None) is None
    assert folder_of("here") == Path("here")


def test_a_place_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="can't keep answers there"):
        AnswerCache(tmp_path / "file" / "folder")
    with pytest.raises(InputError, match="no answers are kept"):
        AnswerCache(tmp_path, make=False)
    (tmp_path / FILE).write_text("this is no database, and long enough to be seen as none" * 50)
    with pytest.raises(RetryLater, match="--cache off"):
        AnswerCache(tmp_path)
