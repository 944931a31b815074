"""Tables repaired, from recorded answers or live."""

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
from rrf_design.questions import RecordedAnswers
from rrf_design.repairing._engine import RepairEngine
from rrf_design.responses.open_text import Classes
from rrf_design.tables import _engine as engine
from rrf_design.tables import delivery_of, write_reviews
from rrf_design.tables.rows import shown_value
from rrf_design.verdict import Verdict


def rows_of(answers: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Answers by item and node as the rows of a long table; texts are texts, numbers values."""
    key = {str: "text"}
    return [
        {"id": item, "node": node, key.get(type(said), "value"): said}
        for item, by_node in answers.items()
        for node, said in by_node.items()
    ]


def test_it_is_what_single_repairs_are(folder: Path, items: rrf.Dataset) -> None:
    """The slow and obvious way: one problem, one repair for each item."""
    delivery = rrf.repair(items, folder / "answers.jsonl")
    seen = set()
    with RecordedAnswers(items, folder / "answers.jsonl") as recorded:
        for row in delivery.rows():
            problem = items[row.id]
            responses = {node: answer.response for node, answer in recorded.of(row.id).items()}
            asked = [node for node in responses if problem.node_by_id[node].cost is not None]
            try:
                single = rrf.repair(problem, responses, select=asked)
            except InputError:  # no answer could be read
                assert row.verdict is Verdict.INCOMPLETE
                assert row.answer is None
                continue
            seen.add(row.verdict)
            assert (row.verdict, row.assumes, row.reason) == (single.verdict, single.assumes, single.reason)
            assert (row.wrong, row.unread) == (single.support, tuple(single.erased))
            value = single.repaired["total"]
            if row.answer is not None:
                assert value is not None
                assert row.answer == shown_value(value, None, Classes(()))
                assert row.bound == single.bounds.get("total")
            else:
                assert value is None or single.verdict in (Verdict.INCOMPLETE, Verdict.CONTRADICTED)
    assert {Verdict.CONSISTENT, Verdict.INCOMPLETE, Verdict.CONTRADICTED} <= seen


def test_nothing_that_is_certified_is_wrong_where_the_premise_holds(folder: Path, items: rrf.Dataset) -> None:
    """The attacker: every item with at most one wrong answer that is delivered has the true
    value.
    """
    delivery = rrf.repair(items, folder / "answers.jsonl")
    checked = 0
    with RecordedAnswers(items, folder / "answers.jsonl") as recorded:
        for item, row, _ in delivery.ranked():
            truth, fee = float(item.gold), item.cells["fee"]
            right = {"total": truth, "reworded": truth, "fee": truth + fee, "cents": 100 * truth}
            readable = {
                node: answer.value[0] if answer.value else float((answer.text or "").rpartition(" ")[2])
                for node, answer in recorded.of(item.id).items()
                if answer.value or (answer.text or "").startswith("That is")
            }
            wrong = sum(abs(value - right[node]) > 0.005 for node, value in readable.items())
            if row.verdict is Verdict.CONSISTENT and wrong <= 1:
                assert abs(row.answer - truth) <= 0.005
                checked += 1
    assert checked > 20


@pytest.mark.parametrize("chunk", [7, 500])
def test_cutting_it_up_and_sharing_it_out_changes_nothing(
    folder: Path, items: rrf.Dataset, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr(engine, "CHUNK", chunk)
    one = [row.to_json() for row in rrf.repair(items, folder / "answers.jsonl").rows()]
    two = [row.to_json() for row in rrf.repair(items, folder / "answers.jsonl", n_jobs=2).rows()]
    assert one == two


def test_a_run_that_was_cut_short_goes_on(
    folder: Path, items: rrf.Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "CHUNK", 10)
    whole = [row.to_json() for row in rrf.repair(items, folder / "answers.jsonl").rows()]
    kept = tmp_path / "rows.jsonl"
    done = 0

    def stop(share: float | None, bounds: object, words: str) -> None:
        nonlocal done
        done += 1
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rrf.repair(items, folder / "answers.jsonl", resume=kept, progress=stop)
    with kept.open("a") as stream:
        stream.write('{"id": "half a li')  # as a power cut leaves it
    work = engine.TableEngine.rows
    worked: list[int] = []

    def counted(self: Any, chunk: Any) -> Any:
        worked.append(len(chunk))
        return work(self, chunk)

    monkeypatch.setattr(engine.TableEngine, "rows", counted)
    again = rrf.repair(items, folder / "answers.jsonl", resume=kept)
    assert [row.to_json() for row in again.rows()] == whole
    assert sum(worked) == 30
    assert rrf.repair(items, folder / "answers.jsonl", resume=kept).verdicts == again.verdicts
    with pytest.raises(InputError, match="another recipe, table, set of answers or setting"):
        rrf.repair(items, folder / "answers.jsonl", resume=kept, k=2)


def test_equal_items_of_a_chunk_are_decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same answers and checks are the same task; another check or a missing answer makes
    another one.
    """
    recipe = {
        "data": {"id": "no"},
        "answer": {"of": "a", "k": 1, "tolerance": 0.5},
        "ask": [
            {"id": n, "prompt": "{{ t }}", "parse": "decimal", **({} if n == "a" else {"like": "a"})} for n in "abc"
        ],
        "check": [{"id": "booked", "of": "a", "by": {"value": "{{ booked }}"}, "when": "{{ booked }}"}],
    }
    said = [("1", "1", "1"), ("1", "1", "1"), ("1", "1", "2"), ("1", "1", "nobody"), ("1", "1", ""), ("1", "1", "1")]
    table = [{"no": str(i), "t": f"text {i}", "booked": "1" if i == 5 else ""} for i in range(len(said))]
    answers = rows_of({str(i): dict(zip("abc", texts, strict=True)) for i, texts in enumerate(said)})
    counts = []
    real = RepairEngine.repair
    monkeypatch.setattr(RepairEngine, "repair", lambda own, p: (counts.append(len(p)), real(own, p))[1])
    together = rrf.repair(rrf.dataset(recipe, table), answers)
    assert counts == [4]
    monkeypatch.setattr(engine, "CHUNK", 1)  # each by itself
    apart = rrf.repair(rrf.dataset(recipe, table), answers)
    assert counts == [4, *[1] * 5]  # the second agrees as the first did: known already
    for one, other in zip(together.rows(), apart.rows(), strict=True):
        assert one == other


def test_one_bad_item_is_one_row(items: rrf.Dataset) -> None:
    answers = rows_of({name: {"total": 10.0, "reworded": 10.0, "fee": 10.0} for name in ("001", "002", "003")})
    fees = {item.id: item.cells["fee"] for item in items.items_in_order()}
    for row in answers:
        if row["node"] == "fee":
            row["value"] += fees[row["id"]]
    answers[3] = {"id": "002", "node": "total", "value": [1.0, 2.0]}
    delivery = rrf.repair(items.only(["001", "002", "003", "004"]), answers)
    rows = {row.id: row for row in delivery.rows()}
    assert rows["001"].verdict is rows["003"].verdict is Verdict.CONSISTENT
    assert rows["002"].verdict is Verdict.INCOMPLETE
    assert "has 2 numbers" in rows["002"].reason
    assert rows["004"].verdict is Verdict.INCOMPLETE
    assert "there is no answer" in rows["004"].reason
    assert rows["004"].answer is None


OPEN = {
    "data": {"id": "no"},
    "answer": {"of": "city"},
    "ask": [
        {"id": "city", "prompt": "Capital of {{ land }}?", "parse": "label"},
        {"id": "again", "prompt": "{{ land }}'s capital?", "parse": "label", "like": "city"},
        {"id": "third", "prompt": "Seat of government of {{ land }}?", "parse": "label", "like": "city"},
    ],
    "check": [{"id": "atlas", "of": "city", "by": {"value": "{{ known }}"}, "when": "{{ known }}"}],
}
LANDS = [
    {"no": "a", "land": "France", "known": ""},
    {"no": "b", "land": "Italy", "known": ""},
    {"no": "c", "land": "Spain", "known": "Madrid"},
    {"no": "d", "land": "Malta", "known": ""},
]


def test_open_answers_are_compared_as_classes() -> None:
    said = {
        "a": {"city": "Paris", "again": "paris.", "third": "The answer is Lyon"},
        "b": {"city": "Milan", "again": "Rome", "third": "Rome"},
        "c": {"city": "Madrid", "again": "Madrid", "third": "Seville"},
        "d": {"city": "Valletta", "again": "Mdina", "third": "Sliema"},
    }
    rows = {row.id: row for row in rrf.repair(rrf.dataset(OPEN, LANDS), rows_of(said)).rows()}
    assert (rows["a"].answer, rows["a"].verdict, rows["a"].wrong) == ("paris", Verdict.CONSISTENT, ("third",))
    assert (rows["b"].answer, rows["b"].changed, rows["b"].wrong) == ("rome", True, ("city",))
    assert (rows["c"].answer, rows["c"].verdict) == ("madrid", Verdict.CHECKED)
    assert (rows["d"].answer, rows["d"].verdict) == (None, Verdict.CONTRADICTED)


def test_open_answers_can_only_be_the_same() -> None:
    changed = {
        **OPEN,
        "ask": [*OPEN["ask"], {"id": "x", "prompt": "?", "parse": "label", "like": "city", "change": {"scale": 2}}],
    }
    with pytest.raises(InputError, match="can only be the same"):
        rrf.repair(rrf.dataset(changed, LANDS), rows_of({"a": {"city": "Paris"}}))


def test_choices_are_those_of_their_item() -> None:
    recipe = {
        "data": {"id": "no"},
        "answer": {"of": "one", "choices": "{{ options }}"},
        "ask": [
            {"id": "one", "prompt": "Which? {{ options }}"},
            {"id": "two", "prompt": "Choose: {{ options }}", "like": "one"},
            {"id": "three", "prompt": "Say: {{ options }}", "like": "one"},
        ],
    }
    table = [{"no": "a", "options": ["red", "green"]}, {"no": "b", "options": ["left", "right", "straight"]}]
    said = {
        "a": {"one": "red", "two": "green", "three": "green"},
        "b": {"one": "straight", "two": "straight", "three": "nowhere"},
    }
    rows = {row.id: row for row in rrf.repair(rrf.dataset(recipe, table), rows_of(said)).rows()}
    assert (rows["a"].answer, rows["a"].changed) == ("green", True)
    assert rows["b"].unread == ("three",)
    assert (rows["b"].answer, rows["b"].verdict) == (None, Verdict.INCOMPLETE)


def test_an_expression_is_evaluated_over_the_row_s_own_variables() -> None:
    variables = {"x": "{{ x }}"}
    recipe = {
        "problem": {"k": 1},
        "nodes": [
            {"id": "a", "prompt": "Twice {{ x }}?", "parser": "decimal", "variables": variables},
            {"id": "b", "prompt": "{{ x }} + {{ x }}?", "parser": "decimal"},
        ],
        "relations": [{"id": "same", "tail": "a", "head": "b"}],
        "anchors": [{"id": "twice", "node": "a", "source": "expression: x * 2"}],
    }
    rows = [{"x": n} for n in (1, 5, 7)]
    said = [{"id": str(at), "node": node, "value": 2 * row["x"]} for at, row in enumerate(rows, 1) for node in "ab"]
    found = rrf.repair(rrf.dataset(recipe, rows), said)
    assert [(row.verdict, row.answer) for row in found.values()] == [(Verdict.CONSISTENT, n) for n in (2, 10, 14)]


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
