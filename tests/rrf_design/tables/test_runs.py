"""Live runs over a table: only what changed is asked again, classes are compared, people's words
are read in any form.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.acquisition import read_run
from rrf_design.errors import InputError
from rrf_design.models.base import Attempt, Outcome, Request, Usage
from rrf_design.models.scripted import ScriptedModel
from rrf_design.tables import delivery_of, write_reviews

RECIPE: dict[str, Any] = {
    "data": {"id": "no"},
    "answer": {"of": "total", "tolerance": 0.005, "k": 1},
    "ask": [
        {"id": "total", "prompt": "Total of {{ text }}?"},
        {"id": "reworded", "like": "total", "prompt": "To pay for {{ text }}?"},
        {"id": "again", "like": "total", "prompt": "Sum of {{ text }}?"},
    ],
    "check": [{"id": "clerk", "of": "total", "by": {"person": "Total of {{ no }}"}, "cost": 5}],
}
ROWS = [{"no": "a", "text": "10"}, {"no": "b", "text": "20"}, {"no": "c", "text": "odd 30"}]


class Paid(ScriptedModel):
    """A model that is paid for; it counts what it is asked. Odd rows get three answers."""

    local = False

    def __init__(self, name: str = "paid") -> None:
        self.heard: Counter[str] = Counter()
        super().__init__(self._answer, name=name)
        self.kept = True

    def _answer(self, request: Request) -> str:
        self.heard[request.prompt] += 1
        number = float("".join(c for c in request.prompt if c.isdigit()))
        return f"It is {number + ('odd' in request.prompt) * len(request.prompt):.2f}"


def go(folder: Path, rows: Any = ROWS, recipe: Mapping[str, Any] = RECIPE, **options: Any) -> tuple[Any, Counter[str]]:
    model = Paid()
    data = rrf.dataset(dict(recipe), rows)
    run = rrf.acquire(data, model, store=folder / "runs.sqlite", cache=folder / "kept", **options)
    return run, model.heard


def review(folder: Path, rows: Any, run: Any, values: Mapping[str, Any], *, form: str = "jsonl") -> Path:
    """The review list of a run, filled in."""
    path = folder / f"review.{form}"
    write_reviews(path, delivery_of(rrf.dataset(dict(RECIPE), rows), run))
    if form == "json":  # as Label Studio exports it
        tasks = json.loads(path.read_text())
        for task in tasks:
            said = {"value": {"text": [str(values[task["data"]["id"]])]}}
            task["annotations"] = [{"was_cancelled": False, "result": [said]}]
        path.write_text(json.dumps(tasks))
    else:
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        path.write_text("".join(json.dumps({**line, "value": values[line["id"]]}) + "\n" for line in lines))
    return path


def test_only_what_changed_is_asked_again(tmp_path: Path) -> None:
    first, heard = go(tmp_path)
    assert sum(heard.values()) == first.calls == 9
    assert first.verdicts["consistent"] == 2
    again, heard = go(tmp_path)
    assert (sum(heard.values()), again.calls) == (0, 0)
    assert [item.repaired for item in again.items] == [item.repaired for item in first.items]
    grown = [{"no": "new", "text": "70"}, *ROWS]
    run, heard = go(tmp_path, grown)
    assert all("70" in prompt for prompt in heard)
    assert sum(heard.values()) == run.calls == 3
    changed = [dict(entry) for entry in RECIPE["ask"]]
    changed[1]["prompt"] = "What is due for {{ text }}?"
    run, heard = go(tmp_path, grown, {**RECIPE, "ask": changed})
    assert all(prompt.startswith("What is due") for prompt in heard)
    assert sum(heard.values()) == 4


def test_what_people_said_is_not_asked_again(tmp_path: Path) -> None:
    first, _ = go(tmp_path, budget=5.0)
    assert (first.open_reviews, first.spent) == (1, 0.0)
    told = review(tmp_path, ROWS, first, {"c": "30,00 EUR"})
    data = rrf.dataset(dict(RECIPE), ROWS)
    options: dict[str, Any] = {"store": tmp_path / "runs.sqlite", "cache": tmp_path / "kept"}
    run = rrf.acquire(data, Paid(), resume=first.run, reviews=told, **options)
    assert (run.spent, run.open_reviews, delivery_of(data, run)["c"].answer) == (5.0, 0, 30)
    grown = [*ROWS, {"no": "d", "text": "odd 40"}]
    later, heard = go(tmp_path, grown, budget=5.0)
    assert sum(heard.values()) == 3
    assert (later.spent, later.open_reviews) == (
        0.0,
        1,
    )  # the label cost nothing, so the budget is there for the new row
    assert delivery_of(rrf.dataset(dict(RECIPE), grown), later)["c"].answer == 30
    other = [
        *ROWS[:2],
        {"no": "c", "text": "odd 31"},
    ]  # the row is another one: what was said of the old one says nothing
    changed, _ = go(tmp_path, other)
    assert changed.open_reviews == 1
    assert delivery_of(rrf.dataset(dict(RECIPE), other), changed)["c"].answer is None


@pytest.mark.parametrize(("form", "said"), [("jsonl", 30), ("jsonl", "30.00"), ("json", "CHF 30.-"), ("json", "30")])
def test_reviews_are_read_as_people_write_them(tmp_path: Path, form: str, said: Any) -> None:
    first, _ = go(tmp_path)
    told = review(tmp_path, ROWS, first, {"c": said}, form=form)
    run, heard = go(tmp_path, resume=first.run, reviews=told)
    assert not heard
    assert run.repaired["c"]["total"] == [30.0]


def test_a_review_that_is_no_answer_is_refused(tmp_path: Path) -> None:
    first, _ = go(tmp_path)
    told = review(tmp_path, ROWS, first, {"c": "1,234"})  # thousands or decimals: nobody knows
    with pytest.raises(InputError, match="neither a number nor an answer"):
        go(tmp_path, resume=first.run, reviews=told)


TOPICS: dict[str, Any] = {
    "data": {"id": "no"},
    "answer": {"of": "topic", "k": 1},
    "ask": [
        {"id": "topic", "prompt": "Topic of {{ text }}?", "parse": "label"},
        {"id": "subject", "like": "topic", "prompt": "Subject of {{ text }}?", "parse": "label"},
        {"id": "about", "like": "topic", "prompt": "What is {{ text }} about?", "parse": "label"},
    ],
    "check": [
        {"id": "known", "of": "topic", "by": {"value": "{{ known }}"}, "when": "{{ known }}"},
        {"id": "editor", "of": "topic", "by": {"person": "Topic of {{ text }}"}, "cost": 2},
    ],
}
SAID = {
    "bonds": ("Finance", "finance.", "Answer: money"),
    "goals": ("football", "Sport", "sport"),
    "rain": ("weather", "clouds", "climate"),
    "votes": ("I can't help with that.", "???", ""),
    "snow": ("ice", "cold", "x y z"),
}
ARTICLES = [{"no": name, "text": name, "known": "weather" if name == "snow" else ""} for name in SAID]


def _topic(request: Request) -> str:
    place = ("Topic", "Subject", "What").index(request.prompt.split()[0])
    return next(said[place] for name, said in SAID.items() if name in request.prompt)


def test_classes_are_compared_as_in_a_repair(tmp_path: Path) -> None:
    data = rrf.dataset(TOPICS, ARTICLES)
    rows = [
        {"id": name, "node": node, "text": text}
        for name, said in SAID.items()
        for node, text in zip(("topic", "subject", "about"), said, strict=True)
        if text
    ]
    repaired = rrf.repair(data, rows)
    store = tmp_path / "runs.sqlite"
    live = rrf.acquire(data, ScriptedModel(_topic), store=store, budget=0.0)
    recorded = rrf.acquire(data, responses=rows, store=store, budget=0.0)
    shown = {name: (row.answer, row.verdict.value) for name, row in repaired.items()}
    assert shown["bonds"] == ("finance", "consistent")
    assert shown["goals"] == ("sport", "consistent")
    assert (shown["rain"], shown["votes"]) == ((None, "contradicted"), (None, "incomplete"))
    for run in (live, recorded, read_run(live.run, store=store)):
        delivered = {name: (row.answer, row.verdict.value) for name, row in delivery_of(data, run).items()}
        snow = delivered.pop("snow")  # three different answers, and a check that states the class
        assert snow == ("weather", "checked")
        assert delivered == {name: found for name, found in shown.items() if name != "snow"}


def test_what_a_person_calls_a_class(tmp_path: Path) -> None:
    data = rrf.dataset(TOPICS, ARTICLES)
    options: dict[str, Any] = {"store": tmp_path / "runs.sqlite", "cache": tmp_path / "kept"}
    first = rrf.acquire(data, ScriptedModel(_topic), **options)
    assert first.open_reviews == 2
    path = tmp_path / "review.jsonl"
    write_reviews(path, delivery_of(data, first))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    said = {"rain": "Climate.", "votes": "Politics"}
    path.write_text("".join(json.dumps({**line, "value": said[line["id"]]}) + "\n" for line in lines))
    run = rrf.acquire(data, ScriptedModel(_topic), resume=first.run, reviews=path, **options)
    later = rrf.acquire(data, ScriptedModel(_topic), **options)
    for one in (run, later):
        found = delivery_of(data, one)
        assert {name: found[name].answer for name in said} == {"rain": "climate", "votes": "politics"}
    assert (run.spent, later.spent) == (4.0, 0.0)


def test_the_models_of_a_recipe_are_asked(tmp_path: Path) -> None:
    rules = {"rules": [{"pattern": "10", "text": "10"}, {"pattern": "20", "text": "20"}], "default": "30"}
    (tmp_path / "script.json").write_text(json.dumps(rules))
    use = f"scripted:{tmp_path / 'script.json'}"
    asks = [{**entry, "model": ["one", "two"]} for entry in RECIPE["ask"][:2]]
    recipe = {**RECIPE, "models": {"one": {"use": use}, "two": {"use": use}}, "ask": asks}
    run = rrf.acquire(rrf.dataset(recipe, ROWS), store=tmp_path / "runs.sqlite")
    assert run.verdicts["consistent"] == 3
    assert run.calls == 12
    with pytest.raises(InputError, match="names no model"):
        rrf.acquire(rrf.dataset(RECIPE, ROWS), store=tmp_path / "runs.sqlite")


def test_nobody_is_asked_about_an_empty_cell(tmp_path: Path) -> None:
    """The row is left to people; a question that names another column, too, or has conditions, is
    asked as it is.
    """
    rows = [*ROWS[:1], {"no": "b", "text": " "}, {"no": "c", "text": ""}]
    run, heard = go(tmp_path, rows, budget=5)
    assert set(heard) == {"Total of 10?", "To pay for 10?", "Sum of 10?"}
    found = delivery_of(rrf.dataset(dict(RECIPE), rows), run)
    assert [found[name].verdict for name in "abc"] == ["consistent", "incomplete", "incomplete"]
    assert run.open_reviews == 1  # there is money for one of the two
    named = [{**entry, "prompt": f"{{{{ no }}}}: {entry['prompt']}"} for entry in RECIPE["ask"]]
    asked = [{**entry, "prompt": "{% if text %}{{ text }}{% else %}7{% endif %}?"} for entry in RECIPE["ask"]]
    for ask in (named, asked):
        data = rrf.dataset({**RECIPE, "ask": ask}, rows)
        assert [item.silent for item in data.items_in_order()] == [frozenset()] * 3
    spent = rrf.estimate(rrf.dataset(dict(RECIPE), rows), "embedded")
    assert spent.calls.expected == 3
    assert "2 rows with empty cells: questions that name no other column are not asked" in spent.notes


def test_rows_that_a_run_did_not_come_to_say_why(tmp_path: Path) -> None:
    def script(request: Request) -> Any:
        return "10" if "10" in request.prompt else Attempt(Outcome.UNREACHABLE, usage=Usage(), detail="gone")

    data = rrf.dataset(RECIPE, ROWS)
    run = rrf.acquire(data, ScriptedModel(script), store=tmp_path / "r.sqlite", cache=None)
    rows = list(delivery_of(data, run).values())
    assert run.stopped_because == "paused"
    assert all(row.reason for row in rows if row.open)
    assert rows[2].reason.startswith("the run is paused: scripted: unreachable: gone")


def test_rows_that_money_did_not_reach_say_so(tmp_path: Path) -> None:
    data, model = rrf.dataset(RECIPE, ROWS), ScriptedModel(lambda request: "10", name="paid")
    prices = {"paid": {"call": 1.0}}
    run = rrf.acquire(data, model, store=tmp_path / "r.sqlite", cache=None, prices=prices, money=6.0)
    reasons = [row.reason for row in delivery_of(data, run).values()]
    assert len(run.items[0].answers) == 3
    assert all(reason.startswith("no question was asked: money used up") for reason in reasons[1:]), reasons
