"""Money that is left when nothing is open buys machine checks of what is only consistent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.acquisition.result import read_run
from rrf_design.models.scripted import ScriptedModel
from rrf_design.tables import delivery_of

ROWS = [{"no": f"{n:02}", "a": str(n), "b": "7"} for n in range(20)]
FOOLED = {"03", "11", "17"}
"""Rows whose answers are all wrong, and agree."""
DISPUTED = {"08"}
"""A row with one answer that differs."""


def recipe(**more: Any) -> dict[str, Any]:
    asks = [{"id": "sum", "prompt": "{{ no }}: {{ a }} + {{ b }}?", "cost": 0.01}]
    asks += [{"id": name, "like": "sum", "prompt": f"{name} {{{{ no }}}}", "cost": 0.01} for name in ("x", "y")]
    calculator = {"id": "calculator", "of": "sum", "by": {"expression": "a + b"}, "cost": 0.2}
    return {
        "data": {"id": "no"},
        "answer": {"of": "sum", "tolerance": 0.01},
        "ask": asks,
        "check": [calculator],
        **more,
    }


def said(request: Any) -> str:
    first, _, rest = request.prompt.partition(" ")
    no = first.rstrip(":") if first.endswith(":") else rest
    right = int(no) + 7
    if no in FOOLED or (no in DISPUTED and first == "y"):
        return str(right + 1)
    return str(right)


def run(tmp_path: Path, data: Any = None, **options: Any) -> Any:
    return rrf.acquire(data or rrf.dataset(recipe(), ROWS), ScriptedModel(said), store=tmp_path / "s.sqlite", **options)


def test_with_money_to_spare_every_row_is_checked_and_the_fooled_ones_are_found(tmp_path: Path) -> None:
    data = rrf.dataset(recipe(), ROWS)
    found = run(tmp_path, data, budget=100.0)
    assert found.verdicts["checked"] == len(ROWS)
    assert all(row.answer == int(row.id) + 7 for row in delivery_of(data, found).rows())
    assert found.spent == pytest.approx(20 * 0.03 + 20 * 0.2)
    assert found.money_left == "95.4 unspent: nothing on sale decides another row."


def test_the_least_cost_for_a_risk_is_bought_first(tmp_path: Path) -> None:
    found = run(tmp_path, budget=0.6 + 0.2)
    checked = {entry.item for entry in found.purchases if entry.name == "calculator"}
    assert checked == DISPUTED
    again = read_run(found.run, store=tmp_path / "s.sqlite")
    assert again.to_json() == found.to_json()
    assert found.verdicts["checked"] == 1


def test_what_is_left_and_what_it_could_buy_is_said(tmp_path: Path) -> None:
    found = run(tmp_path, budget=0.9)
    assert found.unspent == pytest.approx(0.1)
    assert found.money_left == "0.1 unspent: a machine check would decide 19 rows more, from 0.2 each."
    assert found.to_json()["on_sale"] == {"machine": {"rows": 19.0, "from": 0.2}}


def test_without_a_budget_nothing_is_spent_that_nobody_granted(tmp_path: Path) -> None:
    found = run(tmp_path)
    assert found.verdicts["consistent"] == 20
    assert found.money_left == "Not bought, without a budget: a machine check would decide 20 rows more, from 0.2 each."


def test_open_rows_come_before_rows_that_are_consistent(tmp_path: Path) -> None:
    def split(request: Any) -> str:
        return said(request) if not request.prompt.endswith("05") else str(request.prompt[:1] == "x")

    data = rrf.dataset(recipe(), ROWS)
    found = rrf.acquire(data, ScriptedModel(split), store=tmp_path / "s.sqlite", budget=0.6 + 0.2)
    assert {entry.item for entry in found.purchases if entry.name == "calculator"} == {"05"}


def test_people_and_verifiers_are_not_bought_for_rows_that_are_consistent(tmp_path: Path) -> None:
    person = {"id": "clerk", "of": "sum", "by": {"person": "{{ no }}?"}, "cost": 0.1}
    judge = {
        "id": "judge",
        "of": "sum",
        "by": {"verifier": "model", "prompt": "Is {{ answer }} right?"},
        "cost": 0.1,
        "rate": 0.1,
    }
    data = rrf.dataset(recipe(check=[person, judge], models={"model": {"use": "embedded"}}), ROWS[:4])
    found = rrf.acquire(data, {"model": ScriptedModel(said)}, store=tmp_path / "s.sqlite", budget=100.0)
    assert {entry.name for entry in found.purchases} == {"sum", "x", "y"}
    assert "a person would decide 4 rows more, from 0.1 each" in found.money_left


def test_a_run_that_was_cut_short_buys_the_same_checks(tmp_path: Path) -> None:
    whole = run(tmp_path, budget=2.0)
    data = rrf.dataset(recipe(), ROWS)
    first = rrf.acquire(data, ScriptedModel(said), store=tmp_path / "t.sqlite", budget=2.0, calls=30)
    again = rrf.acquire(data, ScriptedModel(said), store=tmp_path / "t.sqlite", budget=2.0, resume=first.run, calls=100)
    bought = [{(e.item, e.name) for e in one.purchases if e.name == "calculator"} for one in (whole, again)]
    assert bought[0] == bought[1]
