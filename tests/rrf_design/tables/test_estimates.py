"""What a run will take: the bound is one, the guess says what it assumes, and no price is made
up.
"""

from __future__ import annotations

from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.errors import InputError
from rrf_design.models.prices import listed_price
from rrf_design.models.scripted import ScriptedModel

RECIPE: dict[str, Any] = {
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
TABLE = [{"no": str(number), "text": "x" * number} for number in range(1, 6)]


def test_by_hand() -> None:
    found = rrf.estimate(rrf.dataset(RECIPE, TABLE), attempts=2)
    assert (found.items, found.structures) == (5, 1)
    assert (found.calls.expected, found.calls.most) == (10.0, 2 * 15)
    assert found.cost.most == 5 * 5.0
    price = listed_price("openai:gpt-4.1-mini")
    assert price is not None
    size = sum(-(-len(f"What is {row['text']}?") // 4) - (-len(f"Say {row['text']}.") // 4) for row in TABLE)
    assert found.tokens.expected == size + 5 * (10 + 5)
    assert found.money.expected == pytest.approx(price.input * size + price.output * 75)
    assert {"calls", "tokens", "money", "items", "structures"} <= found.to_json().keys()


def test_a_run_never_takes_more(tmp_path: Any) -> None:
    items = rrf.dataset(RECIPE, TABLE)
    most = rrf.estimate(items, attempts=4)
    model = ScriptedModel(lambda request: "7", name="table")
    run = rrf.acquire(items, model, store=tmp_path / "runs.sqlite")
    assert run.calls <= (most.calls.most or 0)
    assert run.spent <= (most.cost.most or 0)


def test_an_unknown_price_is_unknown() -> None:
    recipe = {**RECIPE, "models": {"mini": {"use": "openai:nobody-knows-it"}}}
    found = rrf.estimate(rrf.dataset(recipe, TABLE))
    assert found.money.expected is found.money.most is None
    assert any("no price is known of openai:nobody-knows-it" in note for note in found.notes)
    prices = {"openai:nobody-knows-it": {"call": 0.5}}
    assert rrf.estimate(rrf.dataset(recipe, TABLE), prices=prices).money.expected == 5.0
    assert listed_price("embedded") == listed_price("gguf:x.gguf")


def test_somebody_must_be_asked() -> None:
    recipe = {key: value for key, value in RECIPE.items() if key != "models"}
    with pytest.raises(InputError, match="names no model"):
        rrf.estimate(rrf.dataset(recipe, TABLE))
    assert rrf.estimate(rrf.dataset(recipe, TABLE), "embedded").money.most == 0.0
