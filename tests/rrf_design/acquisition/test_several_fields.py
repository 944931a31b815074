"""Live runs of several fields: one call gives them all, and each is settled by its own check."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.acquisition.result import answer_log
from rrf_design.models.scripted import ScriptedModel
from rrf_design.reporting import write_report
from rrf_design.tables import delivery_of

FIELDS = {"total": {"tolerance": 0.005}, "date": {"parse": "date"}, "vendor": {}}
RIGHT = {"total": 119.0, "net": 100.0, "tax": 19.0, "date": "2024-03-05", "vendor": "Acme"}
ROWS = [{"no": f"{n}", "text": f"invoice {n}"} for n in range(6)]


def recipe(**more: Any) -> dict[str, Any]:
    asks = [
        {"id": "a", "prompt": "A {{ text }}", "cost": 1.0},
        {"id": "b", "like": "a", "prompt": "B {{ text }}", "cost": 1.0},
        {"id": "c", "like": "a", "prompt": "C {{ text }}", "cost": 1.0},
        {"id": "d", "like": "a", "prompt": "D {{ text }}", "cost": 1.0, "buy": "if needed"},
    ]
    answers = [{"of": f"a.{name}", **said} for name, said in FIELDS.items()]
    return {"data": {"id": "no"}, "answer": answers, "ask": asks, **more}


def said(prompt: str) -> str:
    """B is wrong about the vendor of invoice 1, C about the date of it; A can't read invoice 2."""
    ask, number = prompt.split(" invoice ")
    if (ask, number) == ("A", "2"):
        return "I'm sorry, I can't read this."
    change = {("B", "1"): {"vendor": "Acme Corp"}, ("C", "1"): {"date": "2024-05-03"}}.get((ask, number), {})
    return json.dumps(RIGHT | change)


class Counted:
    def __init__(self) -> None:
        self.prompts: list[str] = []

    def __call__(self, request: Any) -> str:
        self.prompts.append(request.prompt)
        return said(request.prompt)


def run(tmp_path: Path, asked: Counted | None = None, data: Any = None, **options: Any) -> Any:
    model = ScriptedModel(asked or Counted(), name="the same")
    model.kept = True
    return rrf.acquire(data or rrf.dataset(recipe(), ROWS), model, store=tmp_path / "runs.sqlite", **options)


def test_one_call_gives_all_fields_and_is_paid_once(tmp_path: Path) -> None:
    asked = Counted()
    found = run(tmp_path, asked)
    assert len(asked.prompts) == len(set(asked.prompts)) == found.calls
    assert found.spent == found.calls == sum(entry.price for entry in found.purchases)
    assert found.items[0].answers.keys() == {f"{ask}.{field}" for ask in "abc" for field in FIELDS}


def test_a_field_that_is_short_of_answers_buys_one_more_call(tmp_path: Path) -> None:
    asked = Counted()
    found = run(tmp_path, asked)
    assert [prompt for prompt in asked.prompts if prompt.startswith("D")] == ["D invoice 2"]
    assert found.verdict.passes


@pytest.mark.parametrize("more", [{}, {"equation": [{"sum": ["b.net", "b.tax"], "equals": "a.total"}]}])
def test_a_run_and_a_repair_of_its_answers_agree(tmp_path: Path, more: dict[str, Any]) -> None:
    answers = recipe()["answer"] + [{"of": f"a.{name}", "tolerance": 0.005} for name in ("net", "tax") if more]
    data = rrf.dataset(recipe(**more) | {"answer": answers}, ROWS)
    found = run(tmp_path, data=data)
    told = delivery_of(data, found)
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(entry) + "\n" for entry in answer_log(found.run, store=tmp_path / "runs.sqlite")))
    again = rrf.repair(data, log)
    for live, read in zip(told.rows(), again.rows(), strict=True):
        assert [(v.field, v.verdict, v.answer, v.bound) for v in live.values] == [
            (v.field, v.verdict, v.answer, v.bound) for v in read.values
        ]
        assert live.cost == read.cost


def test_answers_are_kept_field_by_field_for_the_next_run(tmp_path: Path) -> None:
    run(tmp_path, cache=tmp_path / "cache")
    asked = Counted()
    again = run(tmp_path, asked, cache=tmp_path / "cache")
    assert (asked.prompts, again.spent) == (["A invoice 2"], 1.0)  # a refusal is not kept
    assert again.verdict.passes


def test_a_run_that_ends_early_is_gone_on_with(tmp_path: Path) -> None:
    asked = Counted()
    first = run(tmp_path, asked, calls=7)
    again = run(tmp_path, asked, resume=first.run, calls=100)
    assert len(asked.prompts) == len(set(asked.prompts))
    assert again.verdict.passes


def test_recorded_answers_need_no_model(tmp_path: Path) -> None:
    data = rrf.dataset(recipe(), ROWS)
    listed = [
        {"id": row["no"], "node": ask, "text": said(f"{ask.upper()} {row['text']}")} for row in ROWS for ask in "abc"
    ]
    found = rrf.acquire(data, responses=listed, store=tmp_path / "runs.sqlite")
    assert (found.calls, found.verdict.value) == (0, "incomplete")
    assert [row.verdict.passes for row in delivery_of(data, found).rows()] == [True, True, False, True, True, True]


def test_people_are_asked_about_every_open_field_at_once(tmp_path: Path) -> None:
    people = [{"id": f"who-{f}", "of": f"a.{f}", "by": {"person": f"{f} of {{{{ no }}}}"}, "cost": 5.0} for f in FIELDS]
    data = rrf.dataset(recipe(check=people) | {"ask": recipe()["ask"][:2]}, ROWS)
    listed = [{"id": row["no"], "node": "a", "text": json.dumps(RIGHT)} for row in ROWS]
    listed += [{"id": row["no"], "node": "b", "text": json.dumps(RIGHT)} for row in ROWS[1:]]
    listed += [{"id": "0", "node": "b", "text": json.dumps(RIGHT | {"date": "2020-01-01", "vendor": "Other"})}]
    store, queue = tmp_path / "runs.sqlite", tmp_path / "queue.csv"
    first = rrf.acquire(data, responses=listed, store=store, review_file=queue)
    with queue.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    mine = [row["anchor"] for row in rows if row["item"] == "0"]
    assert {"who-date", "who-vendor"} <= set(mine)
    for row in rows:
        row["value"] = str(RIGHT[row["anchor"][4:]])
    with queue.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    done = rrf.acquire(data, responses=listed, store=store, resume=first.run, reviews=queue)
    told = {row.id: row for row in delivery_of(data, done).rows()}
    values = {value.field: (value.answer, value.verdict.value) for value in told["0"].values}
    assert values["a.date"] == ("2024-03-05", "checked")
    assert values["a.vendor"][1] == "checked"


def test_a_run_has_its_page(tmp_path: Path) -> None:
    data = rrf.dataset(recipe(), ROWS)
    found = run(tmp_path, data=data)
    page = write_report(found, tmp_path / "run.html", problem=dict(data.items()))
    assert "read from the answer of a.total" in Path(page).read_text()


def test_a_broken_equation_makes_the_answer_unread_in_a_run_too(tmp_path: Path) -> None:
    money = [{"of": f"a.{name}", "tolerance": 0.005} for name in ("total", "net", "tax")]
    within = [{"sum": ["a.net", "a.tax"], "equals": "a.total"}]
    data = rrf.dataset(recipe(equation=within) | {"answer": money}, ROWS[:1])
    model = ScriptedModel(lambda request: json.dumps(RIGHT | ({"tax": 9.0} if request.prompt.startswith("A") else {})))
    found = rrf.acquire(data, model, store=tmp_path / "runs.sqlite")
    assert found.items[0].failed == dict.fromkeys(("a.total", "a.net", "a.tax"), "vetoed")
    assert found.verdict.passes  # one more answer was bought in its place


def two_fields(*, question: bool, answers: int = 3) -> rrf.Problem:
    """Fields a and b, and a question on sale that owned relations link with both."""
    nodes = [{"id": f"{field}{i}", "prompt": f"{field}{i}?"} for field in "ab" for i in range(answers)]
    same = [(f"{field}0", f"{field}{i}") for field in "ab" for i in range(1, answers)]
    if question:
        nodes.append({"id": "q", "prompt": "q?", "cost": 1.0})
        same += [("q", "a0"), ("q", "b0")]
    relations = [{"id": f"{tail} is {head}", "tail": tail, "head": head} for tail, head in same]
    return rrf.Problem(k=1, epsilon=0.01, delta=1.0, deliver=["a0", "b0"], nodes=nodes, relations=relations, budget=1.0)


def test_a_question_on_sale_joins_two_fields_only_once_it_is_asked(tmp_path: Path) -> None:
    told = {"a0": 7.0, "a1": 5.0, "a2": 7.0, "b0": 7.0, "b1": 9.0, "b2": 7.0}
    values = []
    for question in (False, True):
        problem = two_fields(question=question)
        run = rrf.acquire(problem, ScriptedModel(lambda r: ""), responses=told, budget=0.0, store=tmp_path / "r.sqlite")
        assert run.verdict.value == "consistent"
        assert run.items[0].assumes.startswith("at most 1 of 3 answers is wrong")
        listed = [{"id": "1", "node": name, "value": value} for name, value in told.items()]
        listed += [{**entry, "id": "2"} for entry in listed]
        more = [{"id": "2", "node": "q", "value": 7.0}] if question else []
        first, second = rrf.repair(rrf.dataset(problem, [{}, {}]), listed + more).rows()
        values.append(first.values)
        assert first.verdict.value == "consistent"
        assert second.verdict.value == ("contradicted" if question else "consistent")  # two wrong answers in one field
    assert values[0] == values[1]


def test_a_question_that_several_fields_lack_is_asked(tmp_path: Path) -> None:
    problem = two_fields(question=True, answers=2)
    model = ScriptedModel(lambda request: "9" if request.prompt == "a1?" else "7")
    run = rrf.acquire(problem, model, store=tmp_path / "r.sqlite")
    assert [bought.name for bought in run.purchases if bought.price] == ["q"]
    assert run.verdict.value == "consistent"
    assert (run.repaired["a0"], run.repaired["b0"]) == ([7.0], [7.0])
    row = next(
        iter(delivery_of(rrf.dataset(problem, [{}]), replace(run, items=(replace(run.items[0], item="1"),))).rows())
    )
    assert row.verdict.value == "consistent"
