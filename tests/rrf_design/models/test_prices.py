from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rrf_design import models
from rrf_design.errors import InputError
from rrf_design.models import Attempt, Outcome, Price, PriceTable, Request, Retry, Usage
from rrf_design.models.prices import listed_price, price_of
from rrf_design.models.scripted import ScriptedModel


def test_price_adds_up() -> None:
    assert Price(0.25, 0.5, 2.0).of(Usage(4, 8, 3)) == 11.0


def test_model_without_price_is_refused() -> None:
    table = PriceTable.load({"openai:a": {"input": 1.0}})
    with pytest.raises(InputError, match=r"no price for model 'scripted' \(it has: openai:a\)"):
        table.cost(ScriptedModel(lambda _: "5"), Usage())


def test_sums_are_those_of_the_decimals() -> None:
    assert Price(1e-7, 4e-7).of(Usage(3, 0, 1)) == 3e-7  # 3 * 1e-7 in floats is 3.0000000000000004e-07 or so
    assert Price(0.1).of(Usage(3)) == 0.3


def test_the_list_has_the_highest_price_that_can_apply() -> None:
    """Of a long call where length decides, and of the dearest hour where the hour does."""
    small, large = (listed_price("anthropic:claude-sonnet-4-5", input_tokens=size) for size in (10, 500_000))
    assert small is not None
    assert large is not None
    assert (large.input, large.output) >= (2 * small.input, small.output)
    assert listed_price("deepseek:deepseek-chat") == listed_price("deepseek:deepseek-chat", input_tokens=1000)
    assert listed_price("gemini:gemini-2.5-pro") is not None  # the list calls the provider google
    assert listed_price("nobody:nothing") is None


def test_who_answers_on_this_machine_is_free_and_a_server_of_ones_own_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-nobodys-key-123456")
    monkeypatch.delenv("RRF_OPENAI_BASE_URL", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert price_of(ScriptedModel(lambda _: "5", name="openai:gpt-4.1-mini"), None, Usage()) == Price()
    with models.get("openai:gpt-4.1-mini") as hosted, models.get("openai:x", base_url="http://127.0.0.1:9/v1") as own:
        assert price_of(hosted, None, Usage(10, 10)) == Price(4e-7, 1.6e-6)
        assert price_of(own, None, Usage()) is None
        table = PriceTable.load({"openai:x": {"input": 1.0}, "openai:gpt-4.1-mini": {"call": 2.0}})
        assert (price_of(own, table, Usage()), price_of(hosted, table, Usage())) == (Price(1.0), Price(call=2.0))
    assert PriceTable.load(PriceTable({"a": Price(1.0)}, unknown=("b",)).document()).prices == {"a": Price(1.0)}


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
    """Whatever fails, and however often it is retried, the bill stays below what was reserved
    before the call.
    """
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
