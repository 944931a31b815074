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
from rrf_design.models.roster import line_up
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
    used = result.to_json()["models"]
    assert {name: (entry["answers"], entry["calls"]) for name, entry in used.items()} == {
        "mini": (2, 2),
        "other": (2, 2),
    }
    assert used["mini"]["output_tokens"] == 2  # a word is a token of the double


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


def test_what_the_call_says_goes_over_what_the_file_says() -> None:
    own = {"mini": {"use": "embedded", "temperature": 0.7}, "other": "scripted:x.json"}
    assert line_up(None, own) == own
    assert line_up({"other": "openai:gpt-4o"}, own) == {"mini": own["mini"], "other": "openai:gpt-4o"}
    assert line_up("embedded", {}) == {"model": "embedded"}
    assert line_up("embedded", {"mini": "openai:m"}) == {"mini": "embedded"}
    with pytest.raises(
        InputError, match=r"several models \(mini, other\); say which is meant, as in --model mini=embedded"
    ):
        line_up("embedded", own)


def test_one_backend_under_two_names_is_started_once(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text('{"default": "7"}')
    spec = f"scripted:{tmp_path / 's.json'}"
    with contextlib.ExitStack() as stack:
        roster = Roster.start(
            {"a": {"use": spec, "temperature": 0.0}, "b": spec, "c": {"use": spec, "slots": 2}}, stack
        )
    assert roster["a"] is roster["b"]
    assert roster["a"] is not roster["c"]
    assert (roster.options("a"), roster.options("b")) == ({"temperature": 0.0}, {})


def test_a_problem_file_names_its_models(tmp_path: Path) -> None:
    for name in ("7", "8", "9"):
        (tmp_path / f"{name}.json").write_text(f'{{"default": "{name}"}}')
    file = tmp_path / "p.toml"
    file.write_text(
        f"""[models]
mini = "scripted:{tmp_path}/7.json"
other = {{ use = "scripted:{tmp_path}/8.json", slots = 2 }}
[[nodes]]
id = "a"
prompt = "?"
[[nodes]]
id = "b"
prompt = "?"
model = "other"
[[relations]]
id = "r"
tail = "a"
head = "b"
[[anchors]]
id = "judge"
node = "a"
sigma = 1.0
source = {{ verifier = "scripted:{tmp_path}/9.json", prompt = "{{{{ answer }}}}?" }}
[[anchors]]
id = "second"
node = "a"
sigma = 1.0
source = {{ verifier = "scripted:{tmp_path}/8.json", prompt = "{{{{ answer }}}}?" }}
"""
    )
    loaded = rrf.load(file)
    rrf.save(loaded, tmp_path / "again.toml")
    assert rrf.load(tmp_path / "again.toml") == loaded
    assert rrf.digest(loaded) == rrf.digest(loaded.model_copy(update={"models": {}}))  # whoever answers
    result = acquire(loaded, store=tmp_path / "r.sqlite")
    assert {name: value[0] for name, value in result.items[0].answers.items()} == {"a": 7.0, "b": 8.0}
    judge = f"scripted:{tmp_path}/9.json"
    used = {name: entry["answers"] for name, entry in result.models.items()}
    assert used == {"mini": 1, "other": 2, judge: 1}  # a judge that [models] has under another name is that one
    assert result.header["models"][judge]["identity"]["adapter"] == "scripted"
    assert acquire(resume="last", store=tmp_path / "r.sqlite").stopped_because == result.stopped_because
    swapped = acquire(loaded, {"mini": judge}, store=tmp_path / "r.sqlite")
    assert swapped.items[0].answers["a"] == (9.0,)
    with pytest.raises(InputError, match=r'\[models\]: mini: it needs use = "ADAPTER:NAME"'):
        rrf.Problem(nodes=[{"id": "a"}], models={"mini": {"us": "embedded"}})


def test_options_that_are_tables_are_found_again_on_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rrf_design.acquisition.settings import _entry

    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-one-0123")
    entry = {"use": "openai:m", "extra": {"top_k": 3, "stop": ["x"]}, "base_url": "http://127.0.0.1:9/v1"}
    with contextlib.ExitStack() as stack:
        roster = Roster.start({"m": entry}, stack)
        kept = _entry({**entry, "api_key": "hidden"}, roster["m"])
    assert {name: kept[name] for name in entry} == entry
    assert "api_key" not in kept


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
