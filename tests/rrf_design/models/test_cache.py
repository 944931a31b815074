"""Kept answers: the same question to the same backend is paid for once, and nothing else is mistaken for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.acquisition import acquire
from rrf_design.errors import InputError, RetryLater
from rrf_design.models import Outcome, PriceTable, Request, Usage
from rrf_design.models.cache import FILE, AnswerCache, default_folder, folder_of
from rrf_design.models.scripted import ScriptedModel


class Shop(ScriptedModel):
    """Somebody else's model: what is asked is charged."""

    local = False

    def __init__(self, name: str = "shop", answer: str = "7") -> None:
        self.asked: list[str] = []
        super().__init__(lambda request: (self.asked.append(request.prompt), answer)[1], name=name)


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


def problem() -> rrf.Problem:
    nodes = [{"id": name, "prompt": "What is 2 + 5?"} for name in ("a", "a2")]
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


def test_local_models_are_simply_asked_again(tmp_path: Path) -> None:
    model = Shop()
    model.local = True
    for number in range(2):
        acquire(problem(), model, store=tmp_path / f"{number}.sqlite", cache=tmp_path)
    assert len(model.asked) == 4


def test_where_answers_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RRF_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert folder_of(None) == default_folder() == tmp_path / "rrf-design"
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
