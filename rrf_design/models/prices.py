"""What a call costs: a table the user gives, and a ceiling to reserve before the call is made.

A budget that is never exceeded needs an upper bound before the answer is there: tokens of the prompt bounded by its
bytes, the whole output limit, and every retry, because retries are paid for.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Self

from rrf_design.errors import InputError
from rrf_design.models.base import Model, Request, Usage


@dataclass(frozen=True, slots=True)
class Price:
    """Money per input token, per output token and per call."""

    input: float = 0.0
    output: float = 0.0
    call: float = 0.0

    def of(self, usage: Usage) -> float:
        return self.input * usage.input_tokens + self.output * usage.output_tokens + self.call * usage.calls


@dataclass(frozen=True, slots=True)
class PriceTable:
    """Prices by model name, as in ``[model."openai:NAME"] input = 1e-7, output = 4e-7, call = 0``."""

    prices: Mapping[str, Price]
    source: str = "price table"

    @classmethod
    def load(cls, given: str | Path | Mapping[str, Any]) -> Self:
        """Read a TOML or JSON file, or take the mapping itself: model name -> price fields."""
        if isinstance(given, Mapping):
            return cls(_prices(given, "price table"))
        path = Path(given)
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise InputError(f"{path}: can't read the price table ({error.strerror})") from None
        try:
            document = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
        except ValueError as error:
            raise InputError(f"{path}: not a price table: {error}") from None
        return cls(_prices(document, str(path)), str(path))

    def document(self) -> dict[str, dict[str, float]]:
        """The table as `load` reads it back."""
        return {name: asdict(price) for name, price in self.prices.items()}

    def price(self, model: Model | str) -> Price:
        """The model's price; without one, money can't be budgeted and the call is refused."""
        name = model if isinstance(model, str) else model.name
        if name not in self.prices:
            known = ", ".join(sorted(self.prices)) or "none"
            raise InputError(f"{self.source}: no price for model {name!r} (it has: {known}); a money budget needs one")
        return self.prices[name]

    def cost(self, model: Model | str, usage: Usage) -> float:
        return self.price(model).of(usage)

    def ceiling(self, model: Model, request: Request) -> float:
        """What to reserve: no sequence of attempts that ``ask`` can make costs more."""
        return self.price(model).of(request.ceiling()) * model.retry.attempts


LOCAL = ("embedded", "gguf", "transformers", "scripted", "replay")
"""Models on this machine, whose calls cost nothing."""


def listed_price(spec: str, *, input_tokens: int = 1, output_tokens: int = 1) -> Price | None:
    """The price of ``PROVIDER:NAME`` as the package's own list has it; None for a model that is not listed.

    Where prices rise with the length of a call, the one of a call of this size.
    """
    provider, _, name = spec.partition(":")
    if provider in LOCAL or spec.endswith(".gguf"):
        return Price()
    from genai_prices import Usage as Tokens
    from genai_prices import calc_price

    most = {"input_tokens": max(1, input_tokens), "output_tokens": max(1, output_tokens)}
    try:
        found = calc_price(Tokens(**most), name, provider_id=provider)
    except LookupError:
        return None
    return Price(float(found.input_price) / most["input_tokens"], float(found.output_price) / most["output_tokens"])


def _prices(document: Mapping[str, Any], source: str) -> dict[str, Price]:
    table = document.get("model", document)
    if not isinstance(table, Mapping):
        raise InputError(f"{source}: 'model' must map model names to prices")
    return {str(name): _price(entry, f"{source}: model {name!r}") for name, entry in table.items()}


def _price(entry: object, where: str) -> Price:
    known = [f.name for f in fields(Price)]
    if isinstance(entry, Price):
        return entry
    if not isinstance(entry, Mapping):
        raise InputError(f"{where}: a price has the keys {', '.join(known)}")
    for name, value in entry.items():
        if name not in known:
            raise InputError(f"{where}: unknown key {name!r}; a price has {', '.join(known)}")
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not math.isfinite(value) or value < 0:
            raise InputError(f"{where}: {name} is {value!r}; it must be a number, zero or more")
    return Price(**{name: float(value) for name, value in entry.items()})
