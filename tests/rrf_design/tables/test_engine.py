"""The engine of tables: templates of equal items, checkpoints, estimates, plans."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.errors import InputError
from rrf_design.models.prices import listed_price
from rrf_design.models.scripted import ScriptedModel
from rrf_design.planning import Aim, PlanStatus, portfolio
from rrf_design.questions.answers import RecordedAnswer
from rrf_design.tables import _engine as module
from rrf_design.tables import by_structure, plan_dataset, save_certificates
from rrf_design.tables._engine import Checkpoint, EngineSettings, RawItem, TableEngine
from rrf_design.tables.rows import Row, Value
from rrf_design.verdict import Verdict

RECIPE = {
    "data": {"id": "no"},
    "answer": {"of": "total", "tolerance": 0.5},
    "ask": [
        {"id": "total", "prompt": "Total of {{ no }}?", "cost": 0.25},
        {"id": "reworded", "like": "total", "prompt": "To pay?"},
        {"id": "fee", "like": "total", "prompt": "With fee?", "change": {"shift": "{{ fee }}"}},
    ],
    "check": [
        {"id": "clerk", "of": "total", "by": {"person": "Total of {{ no }}"}, "cost": 5.0},
        {"id": "boss", "of": "total", "by": {"person": "Total of {{ no }}"}, "cost": 20.0},
    ],
}
TABLE = [{"no": str(n), "fee": n} for n in range(4)]
DATA = rrf.dataset(RECIPE, TABLE)
KEY = next(iter(DATA.structures))


def engine(**settings: Any) -> TableEngine:
    return TableEngine(DATA.recipe, {KEY: DATA["0"]}, EngineSettings(**settings))


def item(number: int, said: dict[str, Any], **reviews: str) -> RawItem:
    answers = {
        node: RecordedAnswer(text=value) if isinstance(value, str) else RecordedAnswer(value=(float(value),))
        for node, value in said.items()
    }
    return RawItem(str(number), TABLE[number], KEY, answers, reviews)


def one(raw: RawItem, **settings: Any) -> Row:
    (found,) = engine(**settings).rows([raw])
    return found


def test_a_chunk_is_its_items_one_by_one() -> None:
    items = [
        item(0, {"total": 7, "reworded": 7, "fee": 7}),
        item(1, {"total": 9, "reworded": 7, "fee": 8}),
        item(2, {"total": 7, "reworded": "no idea", "fee": 9}),
        item(3, {"total": 1, "reworded": 2, "fee": 9}),
    ]
    together = engine().rows(items)
    assert together == [one(raw) for raw in items]
    assert [row.verdict for row in together[:2]] == [Verdict.CONSISTENT, Verdict.CONSISTENT]
    assert together[1].answer == 7
    assert together[1].wrong == ("total",)
    assert together[3].verdict is Verdict.CONTRADICTED
    assert all(row.structure == KEY for row in together)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({}, "there is no answer; ask, or have a person look at it."),
        ({"total": "no idea"}, "no answer could be read (total: parse failure)"),
        ({"nobody": 5}, "an answer of 'nobody', which this item does not ask"),
        ({"total": float("nan"), "fee": 3}, "node 'total': the answer is not finite"),
    ],
)
def test_what_can_not_be_used_is_one_row_that_says_so(said: dict[str, Any], reason: str) -> None:
    bad, good = engine().rows([item(0, said), item(1, {"total": 7, "reworded": 7, "fee": 8})])
    assert bad.verdict is Verdict.INCOMPLETE
    assert bad.answer is None
    assert reason in bad.reason
    assert good.verdict is Verdict.CONSISTENT


def test_a_check_beyond_the_doubles_is_one_row_that_says_so() -> None:
    recipe = {**RECIPE, "check": [{"id": "sum", "of": "total", "by": {"expression": "10 ** {{ fee }}"}}]}
    table = [{"no": "0", "fee": 1}, {"no": "1", "fee": 400}]
    said = [
        {"id": name, "node": node, "value": 10.0 + (int(name) * 399 + 1) * (node == "fee")}
        for name in "01"
        for node in ("total", "reworded", "fee")
    ]
    fine, large = rrf.repair(rrf.dataset(recipe, table), said).rows()
    assert (fine.verdict, fine.answer) == (Verdict.CHECKED, 10)
    assert large.verdict is Verdict.INCOMPLETE
    assert "a number that no double can hold" in large.reason


def test_a_person_decides_whatever_was_answered() -> None:
    found = one(item(1, {"total": 9, "reworded": 9}, clerk="7.00 EUR"))
    assert (found.verdict, found.answer, found.changed) == (Verdict.CHECKED, 7, True)
    assert found.cost == pytest.approx(0.25 + 5.0)
    wrong = one(item(1, {"total": 9}, nobody="7"))
    assert "there is no check 'nobody' of this item" in wrong.reason
    unreadable = one(item(1, {"total": 9}, clerk="about seven or eight"))
    assert "review 'clerk'" in unreadable.reason


def test_open_items_name_the_cheapest_person_who_has_not_spoken() -> None:
    open_item = one(item(3, {"total": 1, "reworded": 2, "fee": 9}))
    assert (open_item.check, open_item.worth) == ("clerk", pytest.approx(0.2))
    silent = one(item(3, {"total": 1}, clerk="?"))
    assert (silent.check, silent.worth) == ("boss", pytest.approx(0.05))
    certified = one(item(0, {"total": 7, "reworded": 7, "fee": 7}))
    assert (certified.check, certified.worth) == (None, 0.0)


def test_recorded_costs_go_before_declared_ones() -> None:
    answers = {
        "total": RecordedAnswer(value=(7.0,), cost=0.75),
        "reworded": RecordedAnswer(value=(7.0,)),
        "fee": RecordedAnswer(value=(7.0,)),
    }
    assert one(RawItem("0", TABLE[0], KEY, answers)).cost == pytest.approx(0.75)
    assert one(item(0, {"total": 7, "reworded": 7, "fee": 7})).cost == pytest.approx(0.25)


def test_designs_are_forgotten_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rrf_design.repairing._engine.KEPT", 1)
    items = [item(0, {"total": 7, "reworded": 7, "fee": 7}), item(1, {"reworded": 7, "fee": 8})] * 2
    small = engine()
    assert small.rows(items) == [one(raw) for raw in items]
    assert len(small._engine._shared) == 1


def test_the_first_item_speaks_for_those_like_it(items: rrf.Dataset) -> None:
    found = by_structure(items, lambda problem: problem.margin(), lambda margin: margin.value)
    assert sum(speaker.count for speaker in found.speakers) == len(items)
    by_item = {item.id: item.structure for item in items.items_in_order()}
    for speaker in found.speakers:
        like = [name for name, structure in by_item.items() if structure == by_item[speaker.item]]
        assert len(like) == speaker.count
        assert {round(items[name].margin().value, 9) for name in like[:4]} == {round(speaker.result.value, 9)}
    assert found.worst.result.value == min(speaker.result.value for speaker in found.speakers)
    document = found.to_json()
    assert document["gamma"] == found.worst.result.value
    assert [part["items"] for part in document["structures"]] == [speaker.count for speaker in found.speakers]


def test_certificates_of_a_data_set(items: rrf.Dataset, tmp_path: Path) -> None:
    found = rrf.certify(items, budgets=[])
    assert len(found.speakers) == len(items.structures) == 2
    with pytest.raises(InputError, match="name a folder"):
        save_certificates(found, tmp_path / "all.json")
    _, paths = save_certificates(found, tmp_path / "all")
    assert all(rrf.verify(path).valid for path in paths)
    one, paths = save_certificates(rrf.certify(items.only(["001"]), budgets=[]), tmp_path / "one.json")
    assert paths == [tmp_path / "one.json"]
    assert one.worst.result.path == paths[0]


ABOUT = {"recipe": "r", "table": "t"}


def rows(first: int, last: int) -> list[Row]:
    return [Row(f"i{n}", (Value(Verdict.CONSISTENT, answer=n, raw="ü \ud800\n"),)) for n in range(first, last)]


@pytest.mark.parametrize("named", [False, True])
def test_rows_come_back_in_order_to_several_readers(tmp_path: Path, named: bool) -> None:
    checkpoint = Checkpoint(tmp_path / "rows" if named else None, about=ABOUT, chunk=2)
    assert list(checkpoint) == []
    checkpoint.add(rows(0, 2))
    one = iter(checkpoint)
    assert next(one).id == "i0"
    checkpoint.add(rows(2, 4))
    assert [row.id for row in checkpoint] == ["i0", "i1", "i2", "i3"]
    assert next(one).id == "i1"
    assert checkpoint.count == 4
    assert list(checkpoint)[1].answer == 1
    assert list(checkpoint)[1].raw == rows(1, 2)[0].raw


@pytest.mark.parametrize("cut", [0, 1, 40, 10_000])
def test_what_a_crash_left_of_a_chunk_is_dropped(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "rows"
    checkpoint = Checkpoint(path, about=ABOUT, chunk=3)
    for start in (0, 3):
        checkpoint.add(rows(start, start + 3))
    whole = path.read_bytes()
    head = whole.index(b"\n") + 1
    path.write_bytes(whole[: max(head, len(whole) - cut)])
    again = Checkpoint(path, about=ABOUT, chunk=3)
    kept = {0: 6, 1: 3, 40: 3, 10_000: 0}[cut]
    assert again.count == kept
    assert [row.id for row in again] == [f"i{n}" for n in range(kept)]
    again.add(rows(kept, kept + 3))
    assert [row.id for row in again] == [f"i{n}" for n in range(kept + 3)]


def test_the_file_of_another_run_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    Checkpoint(path, about=ABOUT, chunk=2).add(rows(0, 2))
    before = path.read_bytes()
    with pytest.raises(InputError, match="belongs to another recipe, table, set of answers or setting"):
        Checkpoint(path, about={**ABOUT, "table": "other"}, chunk=2)
    assert path.read_bytes() == before


def test_an_empty_file_is_a_new_one_and_a_folder_is_none(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    path.touch()
    assert Checkpoint(path, about=ABOUT, chunk=2).count == 0
    with pytest.raises(InputError, match="can't be used to resume from"):
        Checkpoint(tmp_path, about=ABOUT, chunk=2)


def test_many_rows_leave_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "IN_MEMORY", 100)
    checkpoint = Checkpoint(None, about=ABOUT, chunk=5)
    checkpoint.add(rows(0, 50))
    assert len(list(checkpoint)) == 50


RECIPE_ESTIMATES: dict[str, Any] = {
    "data": {"id": "no"},
    "models": {"mini": {"use": "openai:gpt-4.1-mini", "max_tokens": 20}},
    "answer": {"of": "a", "tolerance": 0.1},
    "ask": [
        {"id": "a", "prompt": "What is {{ text }}?"},
        {"id": "b", "prompt": "Say {{ text }}.", "like": "a", "max_tokens": 10},
        {"id": "c", "prompt": "Again {{ text }}.", "like": "a", "cost": 2.0, "buy": "if needed"},
    ],
    "check": [{"id": "clerk", "of": "a", "by": {"person": "{{ no }}"}, "cost": 3.0}],
}
TABLE_ESTIMATES = [{"no": str(number), "text": "x" * number} for number in range(1, 6)]


def test_by_hand() -> None:
    found = rrf.estimate(rrf.dataset(RECIPE_ESTIMATES, TABLE_ESTIMATES), attempts=2)
    assert (found.items, found.structures) == (5, 1)
    assert (found.calls.expected, found.calls.most) == (10.0, 2 * 15)
    assert found.cost.most == 5 * 5.0
    price = listed_price("openai:gpt-4.1-mini")
    assert price is not None
    size = sum(-(-len(f"What is {row['text']}?") // 4) - (-len(f"Say {row['text']}.") // 4) for row in TABLE_ESTIMATES)
    assert found.tokens.expected == size + 5 * (10 + 5)
    assert found.money.expected == pytest.approx(price.input * size + price.output * 75)
    assert {"calls", "tokens", "money", "items", "structures"} <= found.to_json().keys()


def test_a_run_never_takes_more(tmp_path: Any) -> None:
    items = rrf.dataset(RECIPE_ESTIMATES, TABLE_ESTIMATES)
    most = rrf.estimate(items, attempts=4)
    model = ScriptedModel(lambda request: "7", name="table")
    run = rrf.acquire(items, model, store=tmp_path / "runs.sqlite")
    assert run.calls <= (most.calls.most or 0)
    assert run.spent <= (most.cost.most or 0)


def test_an_unknown_price_is_unknown() -> None:
    recipe = {**RECIPE_ESTIMATES, "models": {"mini": {"use": "openai:nobody-knows-it"}}}
    found = rrf.estimate(rrf.dataset(recipe, TABLE_ESTIMATES))
    assert found.money.expected is found.money.most is None
    assert any("no price is known of openai:nobody-knows-it" in note for note in found.notes)
    prices = {"openai:nobody-knows-it": {"call": 0.5}}
    assert rrf.estimate(rrf.dataset(recipe, TABLE_ESTIMATES), prices=prices).money.expected == 5.0
    assert listed_price("embedded") == listed_price("gguf:x.gguf")


def test_somebody_must_be_asked_and_impossible_plans_are_refused() -> None:
    recipe = {key: value for key, value in RECIPE_ESTIMATES.items() if key != "models"}
    with pytest.raises(InputError, match="names no model"):
        rrf.estimate(rrf.dataset(recipe, TABLE_ESTIMATES))
    assert rrf.estimate(rrf.dataset(recipe, TABLE_ESTIMATES), "embedded").money.most == 0.0
    items = rrf.dataset(RECIPE_PLANS, table(3))
    with pytest.raises(InputError, match="budget: must be a number"):
        plan_dataset(items, budget=-1.0)
    with pytest.raises(InputError, match="method does not go with one budget"):
        plan_dataset(items, budget=1.0, method="greedy")


RECIPE_PLANS = {
    "data": {"id": "no"},
    "answer": {"of": "total", "tolerance": 0.005},
    "ask": [
        {"id": "total", "prompt": "Total?"},
        {"id": "reworded", "prompt": "To pay?", "like": "total", "cost": 1.0, "buy": "if needed"},
        {"id": "again", "prompt": "Again?", "like": "total", "cost": 1.5, "buy": "if needed"},
    ],
    "check": [{"id": "clerk", "of": "total", "by": {"person": "{{ no }}"}, "cost": "{{ minutes }}"}],
}


def table(count: int, seed: int = 1) -> list[dict[str, object]]:
    chance = random.Random(seed)
    return [{"no": str(number), "minutes": chance.choice([1, 2, 3, 4])} for number in range(count)]


@pytest.mark.parametrize("budget", [0.0, 7.5, 20.0, 33.0, 1000.0])
def test_it_is_the_portfolio_of_all_items(budget: float) -> None:
    """The slow and obvious way: every item by itself."""
    items = rrf.dataset(RECIPE_PLANS, table(20))
    found = rrf.plan(items, budget=budget)
    target = 1e-6  # what any positive margin stands for, without noise
    slow = portfolio(list(items.values()), budget=budget, aim=Aim.REACHED, target=target)
    assert found.status is slow.status is PlanStatus.OPTIMAL
    assert (found.value, found.cost) == (slow.value, slow.cost)
    assert found.cost <= budget
    assert sum(share.cost for _, share in found.items()) == pytest.approx(found.cost)
    assert sum(share.reached for _, share in found.items()) == found.value
    for name, share in found.items():
        assert items[name].margin(list(share.selected)).value == pytest.approx(share.gamma, rel=1e-9)


def test_without_a_budget_every_item_reaches_its_goal_at_least_cost() -> None:
    items = rrf.dataset(RECIPE_PLANS, table(12))
    found = plan_dataset(items)
    singles = {name: rrf.plan(problem) for name, problem in items.items()}
    assert found.reached
    assert found.cost == sum(one.cost for one in singles.values())
    assert {name: share.cost for name, share in found.items()} == {name: one.cost for name, one in singles.items()}


def test_its_document() -> None:
    found = rrf.plan(rrf.dataset(RECIPE_PLANS, table(6)), budget=6.0)
    document = json.loads(json.dumps(found.to_json()))
    assert {"items", "cost", "value", "status"} <= document.keys()
    assert set(document["items"]) == {str(number) for number in range(6)}
    assert {"selected", "cost", "gamma"} <= document["items"]["0"].keys()
    assert len(found.to_frame()) == 6
    assert "items reach the goal" in repr(found)
    assert found.sentence() in found._repr_html_()


def test_one_budget_buys_repeats_where_they_are_on_sale() -> None:
    """Equal to the portfolio of the items' own goals, item by item."""
    recipe = {
        "data": {"id": "no"},
        "problem": {"k": 1, "delta": 1.6},
        "nodes": [
            {"id": name, "sigma": 0.1, "again": 0.05, "most_repeats": 3, "prompt": "{{ no }}"} for name in ("a", "b")
        ],
        "relations": [{"id": "same", "tail": "a", "head": "b"}],
        "anchors": [
            {"id": "known", "node": "a", "value": 1.0},
            {"id": "label", "node": "b", "value": 1.0, "cost": "{{ minutes }}"},
        ],
    }
    items = rrf.dataset(recipe, table(8))
    for budget in (0.0, 0.3, 0.9, 50.0):
        found = rrf.plan(items, budget=budget)
        slow = portfolio(list(items.values()), budget=budget, aim=Aim.REACHED)
        assert (found.value, found.status) == (slow.value, slow.status)
        assert found.cost == pytest.approx(slow.cost)
    assert found.value == 8
    assert any(share.repeats for _, share in found.items())
    assert any("repeats" in share.to_json() for _, share in found.items())
    free = rrf.plan(items)
    assert all(share.repeats for _, share in free.items())
    with pytest.raises(InputError, match="jointly speaks of one problem"):
        rrf.plan(items, budget=1.0, jointly=True)
