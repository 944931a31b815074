"""Several models in one run: by name, each with its options, judges among them."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.acquisition import Journal, acquire
from rrf_design.errors import InputError, Refused
from rrf_design.models import Roster
from rrf_design.models.scripted import ScriptedModel


def two(seen: list[Any]) -> dict[str, Any]:
    def script(answer: str) -> Any:
        def say(request: Any) -> str:
            seen.append(request)
            return answer

        return ScriptedModel(say, name=f"says {answer}")

    return {"mini": {"use": script("7"), "temperature": 0.7}, "other": script("8")}


def problem(**other: Any) -> rrf.Problem:
    nodes: list[dict[str, Any]] = [
        {"id": "a", "prompt": "?"},
        {"id": "b", "prompt": "?", "model": "other", **other},
        {"id": "c", "prompt": "?"},
    ]
    judge = {"verifier": "other", "prompt": "Is {{ answer }} right?"}
    anchors = [{"id": "A", "node": "a", "source": judge, "sigma": 1.0}]
    return rrf.Problem(k=1, nodes=nodes, relations=[{"id": "r", "tail": "a", "head": "c"}], anchors=anchors)


def test_nodes_and_judges_choose_their_model(tmp_path: Path) -> None:
    seen: list[Any] = []
    result = acquire(problem(), two(seen), store=tmp_path / "r.sqlite")
    answers = result.items[0].answers
    assert {name: value[0] for name, value in answers.items()} == {"a": 7.0, "b": 8.0, "c": 7.0}
    asked = sorted((request.prompt, request.repeat, request.temperature) for request in seen if request.temperature)
    assert asked == [("?", 0, 0.7), ("?", 1, 0.7)]  # two nodes of one model ask the same: the second is a repeat
    assert "Is 7 right?" in {request.prompt for request in seen if request.temperature is None}
    assert sorted(request.repeat for request in seen if request.prompt == "?") == [0, 0, 1]
    with Journal(tmp_path / "r.sqlite") as journal:
        header = journal.header(journal.find("last"))
    assert {name: entry["identity"]["model"] for name, entry in header["models"].items()} == {
        "mini": "says 7",
        "other": "says 8",
    }
    assert header["models"]["mini"]["temperature"] == 0.7


def test_a_name_that_is_none_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    seen: list[Any] = []
    with pytest.raises(InputError, match=r"node 'b': model 'othr' is not among .* did you mean 'other'"):
        acquire(problem(model="othr"), two(seen), store=tmp_path / "r.sqlite")
    assert seen == []


def test_a_run_goes_on_with_all_its_models(tmp_path: Path) -> None:
    store = tmp_path / "r.sqlite"
    acquire(problem(), two([]), store=store)
    with pytest.raises(Refused, match="can't be mixed"):
        acquire(resume="last", model={"mini": two([])["other"], "other": two([])["mini"]}, store=store)
    acquire(resume="last", model=two([]), store=store)


def test_what_is_started_is_closed_together() -> None:
    closed: list[str] = []

    class Closing(ScriptedModel):
        def close(self) -> None:
            closed.append(self.name)

    with contextlib.ExitStack() as stack:
        Roster.start({"mine": Closing(lambda request: "7", name="mine")}, stack)
    assert closed == []  # somebody else's
    with pytest.raises(InputError, match=r"\[models\] mini: it needs use"), contextlib.ExitStack() as stack:
        Roster.start({"mini": {"us": "embedded"}}, stack)
    with pytest.raises(InputError, match="at least one model"):
        Roster({})
