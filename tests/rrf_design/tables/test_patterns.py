"""Rows by the pattern of their answers are the rows that the slow way gives, bit by bit."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.questions.answers import RawItem, RecordedAnswer
from rrf_design.repairing import RepairEngine
from rrf_design.tables._engine import EngineSettings, TableEngine
from rrf_design.tables.rows import Row

ASK = {"prompt": "{{ t }}", "parse": "decimal"}


def recipe(*others: Mapping[str, Any], **answer: Any) -> dict[str, Any]:
    asks = [{"id": "a", **ASK}, *({**ASK, **one} for one in others)]
    return {"data": {"id": "no"}, "answer": {"of": "a", "tolerance": 0.5, **answer}, "ask": asks}


PLAIN = recipe({"id": "b", "like": "a"}, {"id": "c", "like": "a"})
SCALED = recipe(
    {"id": "b", "like": "a", "change": {"scale": 3}},
    {"id": "c", "like": "a", "change": {"shift": "{{ fee }}"}},
    {"id": "d", "like": "a", "change": {"scale": 1.8, "shift": 32}},
    {"id": "e", "like": "b", "cost": 0.5},
    k=1,
)
TWO = recipe(*({"id": name, "like": "a"} for name in "bcdef"), k=2)
NOISY = recipe({"id": "b", "like": "a"}, {"id": "c", "like": "a"}, {"id": "d", "like": "a"}, epsilon=0.01, k=1)
UNITS = {**recipe({"id": "b", "like": "a"}, {"id": "c", "like": "a"}, fails_together="wording"), "models": {}}
UNITS["models"] = {"x": {"use": "embedded"}, "y": {"use": "embedded"}}
UNITS["ask"] = [{**one, "model": ["x", "y"]} for one in UNITS["ask"]]
LABELS = recipe(*({"id": name, "like": "a", "parse": "label"} for name in "bcd"))
LABELS["ask"][0]["parse"] = "label"
LABELS["answer"].pop("tolerance")
CHECKED = {**PLAIN, "check": [{"id": "x", "of": "a", "by": {"value": "{{ fee }}"}, "when": "{{ fee }}"}]}
SPACE = recipe({"id": "b", "like": "a"}, {"id": "c", "like": "a"})
for ask in SPACE["ask"]:
    ask["parse"] = {"json": ["net", "tax"]}


def said(rng: random.Random, text: str) -> str:
    """What a model says: mostly the truth, at times something else, or nothing that can be read."""
    luck = rng.random()
    return text if luck < 0.8 else "no idea" if luck < 0.86 else f"{rng.randrange(1, 40)}"


def items(found: rrf.Dataset, name: str) -> list[RawItem]:
    rng, raw = random.Random(len(name)), []
    for item in found.items_in_order():
        problem, truth = item.problem, rng.randrange(1, 10 ** rng.randrange(1, 9)) / rng.choice((1, 100, 7))
        answers: dict[str, RecordedAnswer] = {}
        for node in problem.nodes:
            slope, shift = {"b": (3, 0), "e": (3, 0), "c": (1, 2), "d": (1.8, 32)}.get(node.id, (1, 0))
            exact = truth if name != "scaled" else slope * truth + shift
            text = (
                f"class {rng.randrange(3) if rng.random() < 0.3 else 0}" if name == "labels" else said(rng, repr(exact))
            )
            if name == "space":
                text = said(rng, f'{{"net": {exact!r}, "tax": {rng.choice((1, 1, 1, 2))}}}')
            if rng.random() < 0.95:
                noise = rng.uniform(-0.02, 0.02) if name == "noisy" else 0.0
                answers[node.id] = RecordedAnswer(text=text if not noise else repr(exact + noise))
        raw.append(RawItem(item.id, item.seen, item.structure, answers))
    return raw


CASES = {
    "plain": PLAIN,
    "scaled": SCALED,
    "two": TWO,
    "noisy": NOISY,
    "units": UNITS,
    "labels": LABELS,
    "checked": CHECKED,
    "space": SPACE,
}


@pytest.mark.parametrize("name", CASES)
def test_the_same_bits_as_item_by_item(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    many = 150
    table = [{"no": str(i), "t": f"text {i}", "fee": "2" if name == "scaled" or i % 3 else ""} for i in range(many)]
    found = rrf.dataset(CASES[name], table)
    raw = items(found, name)
    examples = {key: one.example for key, one in found.structures.items()}
    engine = TableEngine(found.recipe, examples, EngineSettings())
    counts: list[int] = []
    real = RepairEngine.repair
    monkeypatch.setattr(RepairEngine, "repair", lambda own, p: (counts.append(len(p)), real(own, p))[1])
    rows = engine.rows(raw)
    short = sum(counts)
    slow = TableEngine(found.recipe, examples, EngineSettings())
    slow._short = False
    assert list(map(as_bits, rows)) == [as_bits(slow.rows([one])[0]) for one in raw]
    order = list(range(many))
    random.Random(0).shuffle(order)
    again = [row for start in range(0, many, 7) for row in engine.rows([raw[i] for i in order[start : start + 7]])]
    assert list(map(as_bits, again)) == [as_bits(rows[i]) for i in order]
    if name not in ("checked", "units", "noisy"):
        assert short < 0.6 * many  # most went the short way


def as_bits(row: Row) -> str:
    """Every digit of every number that is delivered, and nine of the misfit, which rows are ranked
    by: on some processors its last one depends on where in memory a row stands.
    """
    return repr(replace(row, misfit=float(f"{row.misfit:.9g}")))
