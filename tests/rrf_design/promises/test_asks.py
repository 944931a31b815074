"""How many answers of a row are bought: the forecast, and what is used, asked and paid."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design.checker.delivery import prove_delivery
from rrf_design.errors import InputError
from rrf_design.models.scripted import ScriptedModel
from rrf_design.promises import LiveModels, forecast_delivery
from rrf_design.promises._asks import ask_curve, ask_order, cheapest, how_many
from rrf_design.questions import Dataset

ASKS = {"a": 1.0, "dear": 9.0, "b": 1.0, "c": 2.0}
RECIPE = '[data]\ntable = "t.jsonl"\nid = "no"\ngold = "truth"\n[answer]\nof = "a"\nk = 1\n'
CLERK = '[[check]]\nid = "clerk"\nof = "a"\nby = { person = "How much is {{ text }}?" }\ncost = 10.0\n'


def recipe() -> str:
    asks = ""
    for name, cost in ASKS.items():
        like = "" if name == "a" else 'like = "a"\n'
        asks += f'[[ask]]\nid = "{name}"\n{like}prompt = "{name}: {{{{ text }}}}"\ncost = {cost}\n'
    return RECIPE + asks + CLERK


def said(number: int, node: str) -> int:
    """What a node answers: each is wrong on an eighth of the rows, in its own way."""
    rng = np.random.default_rng([number, list(ASKS).index(node)])
    return number if rng.random() < 0.88 else number + int(rng.integers(1, 9))


def a_table(folder: Path, rows: int = 300) -> Dataset:
    (folder / "r.toml").write_text(recipe())
    table = [{"no": f"r{n:03d}", "text": f"sum {n}", "truth": n} for n in range(rows)]
    (folder / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in table))
    lines = [{"id": f"r{n:03d}", "node": node, "value": said(n, node)} for n in range(rows) for node in ASKS]
    (folder / "said.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return rrf.dataset(folder / "r.toml")


def without(folder: Path, *nodes: str) -> Path:
    """The recorded answers as if these had not been asked."""
    lines = (folder / "said.jsonl").read_text().splitlines()
    kept = [line for line in lines if json.loads(line)["node"] not in nodes]
    (folder / "fewer.jsonl").write_text("".join(f"{line}\n" for line in kept))
    return folder / "fewer.jsonl"


def test_the_delivered_question_comes_first_and_then_the_cheapest(tmp_path: Path) -> None:
    order = ask_order(a_table(tmp_path, 5))
    assert list(order) == ["a", "b", "c", "dear"]
    assert list(order.values()) == [1, 1, 2, 9]


def test_a_number_of_answers_is_auto_all_or_one_that_there_is() -> None:
    assert [how_many(asks, 4) for asks in (None, "all", "auto", "3", 2)] == [4, 4, "auto", 3, 2]
    for wrong in ("0", 5, "many", 1.5, True):
        with pytest.raises(InputError, match="should be auto, all, or from 1 to the recipe's 4 questions"):
            how_many(wrong, 4)  # type: ignore[arg-type]


def test_the_forecast_draws_the_curve_of_answers_and_looks(tmp_path: Path) -> None:
    data = a_table(tmp_path)
    found = forecast_delivery(data, tmp_path / "said.jsonl", risk=0.1)
    curve = found["curve"]
    assert [point["node"] for point in curve] == ["a", "b", "c", "dear"]
    assert [point["answers_cost"] for point in curve] == [300, 600, 1200, 3900]
    for point in curve:
        assert point["cost"] == pytest.approx(point["answers_cost"] + 10 * point["looks"], abs=1)
    assert found["best"] == min(curve[1:], key=lambda point: point["cost"])["answers"] == 2
    of_three = forecast_delivery(data, tmp_path / "said.jsonl", risk=0.1, asks=3)["risks"][3]
    assert of_three["risk"] == 0.1
    assert of_three["cost"] == pytest.approx(curve[2]["cost"], abs=1)
    assert forecast_delivery(data, tmp_path / "said.jsonl", risk=0.1, asks="auto")["asks"] == 2
    assert forecast_delivery(data, None, risk=0.1)["curve"] == []


def test_one_answer_a_row_is_never_advised_where_there_are_more() -> None:
    codes = np.zeros((200, 3), dtype=np.int64)
    prices = dict.fromkeys("abc", Fraction(1))
    sure = {"risk": Fraction(1, 10), "confidence": Fraction(19, 20), "label_cost": 1.0}
    curve = ask_curve(codes, prices, rows=200, **sure)
    assert cheapest(curve).answers == 2
    assert cheapest(curve[:1]).answers == 1
    part = ask_curve(codes[:20], prices, rows=200, **sure)
    assert [point.looks for point in part] == pytest.approx([point.looks for point in curve], rel=0.05)


def test_answers_beyond_the_number_are_as_if_they_were_not_there(tmp_path: Path) -> None:
    data = a_table(tmp_path)
    found = rrf.deliver(data, tmp_path / "said.jsonl", risk=0.1, asks=2)
    bare = rrf.deliver(data, without(tmp_path, "c", "dear"), risk=0.1)
    assert found.document == bare.document
    assert found.reached
    assert found.spent == 600 + 10 * found.labels
    everything = rrf.deliver(data, tmp_path / "said.jsonl", risk=0.1)
    assert everything.document["answers"] != found.document["answers"]
    assert everything.spent == 300 * 13 + 10 * everything.labels


class Counted:
    """A model that says what is recorded, and how often each question was asked."""

    def __init__(self) -> None:
        self.asked: dict[str, set[int]] = {name: set() for name in ASKS}
        self.model = ScriptedModel(self._say)

    def _say(self, request: Any) -> str:
        found = re.match(r"(\w+): sum (\d+)", request.prompt)
        assert found is not None
        self.asked[found[1]].add(int(found[2]))
        return str(said(int(found[2]), found[1]))


def test_models_are_asked_as_much_as_some_rows_show_to_be_cheapest(tmp_path: Path) -> None:
    data, counted = a_table(tmp_path), Counted()
    live = LiveModels(counted.model, tmp_path / "runs.sqlite")
    found = rrf.deliver(data, live, risk=0.1, asks="auto")
    assert found.reached
    assert len(counted.asked["dear"]) == 30
    assert counted.asked["a"] == counted.asked["b"] == set(range(300))
    answers = sum(ASKS[name] * len(rows) for name, rows in counted.asked.items())
    assert found.spent == answers + 10 * found.labels
    assert prove_delivery(json.loads(json.dumps(found.document))).reached
    again = Counted()
    same = rrf.deliver(data, LiveModels(again.model, tmp_path / "runs.sqlite"), risk=0.1, asks="auto")
    assert same.document == found.document
    assert not any(again.asked.values())


def test_a_small_table_is_asked_everything_and_a_number_is_kept(tmp_path: Path) -> None:
    data, counted = a_table(tmp_path, 60), Counted()
    rrf.deliver(data, LiveModels(counted.model, tmp_path / "all.sqlite"), risk=0.2, asks="auto")
    assert [len(rows) for rows in counted.asked.values()] == [60, 60, 60, 60]
    counted = Counted()
    rrf.deliver(data, LiveModels(counted.model, tmp_path / "two.sqlite"), risk=0.2, asks=2)
    assert {name: len(rows) for name, rows in counted.asked.items()} == {"a": 60, "b": 60, "c": 0, "dear": 0}
