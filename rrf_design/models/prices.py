"""What a call costs: the list that comes with the package, a table of the user's over it, and a
ceiling to reserve before each call; and what all questions of a run will take.

A budget that is never exceeded needs an upper bound before the answer is there: tokens of the
prompt bounded by its bytes, the whole output limit, and every retry, because retries are paid for.
Where a listed price depends on the length of a call or on the hour, the highest that can apply is
taken.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from math import ceil
from pathlib import Path
from typing import Any, Self

from rrf_design.errors import InputError
from rrf_design.models.base import Model, Request, Usage
from rrf_design.texts import whole


@dataclass(frozen=True, slots=True)
class Price:
    """Money per input token, per output token and per call."""

    input: float = 0.0
    output: float = 0.0
    call: float = 0.0

    def times(self, factor: float) -> Price:
        """Each of them a multiple: what a discount leaves."""
        return Price(self.input * factor, self.output * factor, self.call * factor)

    def of(self, usage: Usage) -> float:
        """Exact in the decimals that the prices are written as, and rounded once."""
        from rrf_design.market import exact

        rates = ((self.input, usage.input_tokens), (self.output, usage.output_tokens), (self.call, usage.calls))
        return float(sum(exact(rate) * count for rate, count in rates))


@dataclass(frozen=True, slots=True)
class PriceTable:
    """Prices by model name, as in ``[model."openai:NAME"] input = 1e-7, output = 4e-7, call =
    0``.
    """

    prices: Mapping[str, Price]
    source: str = "price table"
    unknown: tuple[str, ...] = ()
    """Models of the run that nobody has a price of: what they cost is not counted."""

    @classmethod
    def load(cls, given: str | Path | Mapping[str, Any]) -> Self:
        """Read a TOML or JSON file, or take the mapping itself: model name -> price fields."""
        if isinstance(given, Mapping):
            return cls(_prices(given, "price table"))
        path = Path(given)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{path}: can't read the price table ({error})") from None
        try:
            document = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path}: not a price table: {error}") from None
        return cls(_prices(document, str(path)), str(path))

    def document(self) -> dict[str, dict[str, float] | None]:
        """The table as `load` reads it back."""
        return {**{name: asdict(price) for name, price in self.prices.items()}, **dict.fromkeys(self.unknown)}

    def price(self, model: Model | str) -> Price:
        """The model's price; without one, money can't be budgeted and the call is refused."""
        name = model if isinstance(model, str) else model.name
        if name not in self.prices:
            known = ", ".join(sorted(self.prices)) or "none"
            raise InputError(f"{self.source}: no price for model {name!r} (it has: {known}); {REMEDY.format(name)}")
        return self.prices[name]

    def cost(self, model: Model | str, usage: Usage) -> float:
        return self.price(model).of(usage)

    def counted(self, model: Model) -> bool:
        return model.name in self.prices

    def ceiling(self, model: Model, request: Request) -> float:
        """What to reserve: no sequence of attempts that ``ask`` can make costs more."""
        return self.price(model).of(request.ceiling()) * model.retry.attempts


REMEDY = 'write [model."{}"] with input and output (money per token) into a file and give it with --prices'
_LISTED_AS = {
    "azureopenai": "azure",
    "gemini": "google",
    "vertexai": "google",
    "moonshot": "moonshotai",
    "xai": "x-ai",
}
"""Providers that the price list calls otherwise."""


def price_of(model: Model, given: PriceTable | None, largest: Usage) -> Price | None:
    """What a model's calls cost, none of them larger than this: by the given table, by the list, or
    nothing on this machine.
    """
    if given is not None and model.name in given.prices:
        return given.prices[model.name]
    if model.local:
        return Price()
    if model.listed is None:
        return None
    return listed_price(model.listed, input_tokens=largest.input_tokens, output_tokens=largest.output_tokens)


def listed_price(spec: str, *, input_tokens: int = 1, output_tokens: int = 1) -> Price | None:
    """The price of ``PROVIDER:NAME`` as the package's own list has it; None for a model that is not
    listed.

    Where prices depend on the length of a call, or on the hour, the highest that a call up to this
    size can have.
    """
    from genai_prices import Usage as Tokens
    from genai_prices import calc_price

    provider, _, name = spec.partition(":")
    provider = _LISTED_AS.get(provider, provider)
    day = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    rates = []
    try:
        for size in {(1, 1), (max(1, input_tokens), max(1, output_tokens))}:
            for hour in range(24):
                found = calc_price(
                    Tokens(input_tokens=size[0], output_tokens=size[1]),
                    name,
                    provider_id=provider,
                    genai_request_timestamp=day.replace(hour=hour, minute=45),
                )
                rates.append((found.input_price / size[0], found.output_price / size[1]))
    except LookupError:
        return None
    return Price(float(max(rate[0] for rate in rates)), float(max(rate[1] for rate in rates)))


def _prices(document: Mapping[str, Any], source: str) -> dict[str, Price]:
    table = document.get("model", document)
    if not isinstance(table, Mapping):
        raise InputError(f"{source}: 'model' must map model names to prices")
    return {str(name): _price(entry, f"{source}: model {name!r}") for name, entry in table.items() if entry is not None}


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


BYTES_PER_TOKEN = 4
"""Of English prose; other scripts have more tokens."""
USED = 0.5
"""Part of its limit that an answer takes."""
ASSUMED = "expected: every question that is always asked, once; four bytes a token; answers of half their limit"


@dataclass(frozen=True, slots=True)
class Span:
    """What is likely, and what is certainly not exceeded; None where no price is known."""

    expected: float | None
    most: float | None

    def to_json(self) -> dict[str, Any]:
        return {"expected": self.expected, "most": self.most}


@dataclass(slots=True)
class CallTally:
    """Questions to one model: calls and tokens, and the largest call."""

    expected: Usage = field(default_factory=Usage)
    most: Usage = field(default_factory=Usage)
    largest: Usage = field(default_factory=Usage)

    def add(self, request: Request, *, always: bool, attempts: int) -> None:
        bound = request.ceiling()
        size = len(whole(request.prompt).encode()) + len(whole(request.system or "").encode())
        if always:
            self.expected += Usage(ceil(size / BYTES_PER_TOKEN), ceil(USED * request.max_tokens), 1)
        self.most += Usage(attempts * bound.input_tokens, attempts * bound.output_tokens, attempts)
        most_in = max(self.largest.input_tokens, bound.input_tokens)
        self.largest = Usage(most_in, max(self.largest.output_tokens, bound.output_tokens), 1)

    def join(self, other: CallTally) -> None:
        """Questions that were counted elsewhere."""
        self.expected += other.expected
        self.most += other.most
        most_in = max(self.largest.input_tokens, other.largest.input_tokens)
        self.largest = Usage(most_in, max(self.largest.output_tokens, other.largest.output_tokens), 1)


def own_judge(check: str, model: str) -> str:
    """What is said before a run whose judge is asked the questions as well."""
    return (
        f"{check} is judged by {model}, which answers the questions too: errors of one model come together, so its word"
        " is no independent check; let another model judge, or ask people"
    )


@dataclass(frozen=True, slots=True)
class Spending:
    """What all questions together will take.

    `unknown` are models whose price nobody knows; then neither is the money.
    """

    calls: Span
    tokens: Span
    money: Span
    unknown: tuple[str, ...] = ()
    hosted: tuple[str, ...] = ()
    """Of them: those of a provider, which charges something; a server of one's own may not."""
    judges: tuple[str, ...] = ()
    """In words: checks by a model that is asked the questions too."""

    @classmethod
    def of(
        cls, tallies: Mapping[str, CallTally], prices: Mapping[str, Price | None], hosted: Collection[str] = ()
    ) -> Spending:
        unknown = tuple(name for name in tallies if prices.get(name) is None)
        expected = sum((tally.expected for tally in tallies.values()), Usage())
        most = sum((tally.most for tally in tallies.values()), Usage())
        money = [
            sum((prices[name] or Price()).of(getattr(tally, key)) for name, tally in tallies.items())
            for key in (() if unknown else ("expected", "most"))
        ]
        return cls(
            Span(float(expected.calls), float(most.calls)),
            Span(float(expected.input_tokens + expected.output_tokens), float(most.input_tokens + most.output_tokens)),
            Span(None, None) if unknown else Span(money[0], money[1]),
            unknown,
            tuple(name for name in unknown if name in hosted),
        )

    def sentence(self) -> str:
        known = self.money.expected is not None and self.money.most is not None
        money = f"money {self.money.expected:.4g}, at most {self.money.most:.4g}" if known else "money unknown"
        return (
            f"{self.calls.expected:,.15g} calls expected, at most {self.calls.most:,.15g}; {self.tokens.expected:,.0f}"
            f" tokens, at most {self.tokens.most:,.0f}; {money}"
        )
