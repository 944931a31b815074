"""What questions will take, before the first of them is asked: calls, tokens and money, expected
and at most.

`most` is a bound: retries included, a text has no more tokens than bytes, and an answer no more
than its limit. `expected` is a guess and says what it assumes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from rrf_design.models.base import Request, Usage
from rrf_design.models.prices import Price
from rrf_design.texts import whole

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

    @classmethod
    def of(
        cls, tallies: Mapping[str, CallTally], prices: Mapping[str, Price | None], hosted: Collection[str] = ()
    ) -> Spending:
        unknown = tuple(name for name in tallies if prices.get(name) is None)
        expected, most = [sum((use for use in column), Usage()) for column in _columns(tallies.values())]
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


def _columns(tallies: Iterable[CallTally]) -> tuple[list[Usage], list[Usage]]:
    listed = list(tallies)
    return [tally.expected for tally in listed], [tally.most for tally in listed]
