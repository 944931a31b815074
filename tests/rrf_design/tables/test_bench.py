"""Items repaired a chunk at a time: each as it would be alone, and one that can't be used says so
in its own row.
"""

from __future__ import annotations

from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.questions.answers import RecordedAnswer
from rrf_design.tables._engine import EngineSettings, RawItem, TableEngine
from rrf_design.tables.rows import Row
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
    monkeypatch.setattr("rrf_design.repairing.engine.KEPT", 1)
    items = [item(0, {"total": 7, "reworded": 7, "fee": 7}), item(1, {"reworded": 7, "fee": 8})] * 2
    small = engine()
    assert small.rows(items) == [one(raw) for raw in items]
    assert len(small._engine._shared) == 1
