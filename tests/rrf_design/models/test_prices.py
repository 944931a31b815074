from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rrf_design.errors import InputError
from rrf_design.models import Attempt, Outcome, Price, PriceTable, Request, Retry, Usage
from rrf_design.models.scripted import ScriptedModel


def test_price_adds_up() -> None:
    assert Price(0.25, 0.5, 2.0).of(Usage(4, 8, 3)) == 11.0


def test_model_without_price_is_refused() -> None:
    table = PriceTable.load({"openai:a": {"input": 1.0}})
    with pytest.raises(InputError, match=r"no price for model 'scripted' \(it has: openai:a\)"):
        table.cost(ScriptedModel(lambda _: "5"), Usage())


@pytest.mark.parametrize("name", ["p.toml", "p.json"])
def test_files(tmp_path: Path, name: str) -> None:
    texts = {
        "p.toml": '[model."openai:m"]\ninput = 1e-6\noutput = 2e-6\n',
        "p.json": '{"model": {"openai:m": {"input": 1e-6, "output": 2e-6}}}',
    }
    (tmp_path / name).write_text(texts[name])
    assert PriceTable.load(tmp_path / name).price("openai:m") == Price(1e-6, 2e-6, 0.0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"m": {"inptu": 1}}, "model 'm': unknown key 'inptu'"),
        ({"m": {"input": -1}}, "input is -1"),
        ({"m": {"input": True}}, "input is True"),
        ({"m": {"input": float("inf")}}, "input is inf"),
        ({"m": 3}, "a price has the keys"),
        ({"model": 3}, "must map model names"),
        ("no/such/prices.toml", "can't read the price table"),
    ],
)
def test_bad_tables(given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        PriceTable.load(given)


def test_bad_file(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text("[model")
    with pytest.raises(InputError, match="not a price table"):
        PriceTable.load(path)


@pytest.mark.parametrize("failures", range(5))
def test_reservation_covers_every_attempt(failures: int) -> None:
    """Whatever fails, and however often it is retried, the bill stays below what was reserved before the call."""
    left = [failures]

    def script(request: Request) -> str | Attempt:
        left[0] -= 1
        return Attempt(Outcome.TIMEOUT) if left[0] >= 0 else "word " * 40

    model = ScriptedModel(script, retry=Retry(attempts=3, sleep=lambda _: None))
    table = PriceTable.load({"scripted": {"input": 0.1, "output": 0.3, "call": 1.0}})
    request = Request("what is the answer?", max_tokens=5)
    reply = model.ask(request)
    assert 0.0 < table.cost(model, reply.usage) <= table.ceiling(model, request)
    assert reply.attempts == min(3, failures + 1)
