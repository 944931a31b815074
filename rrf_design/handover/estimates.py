"""Calls, tokens and money of a run over a table, before the first call.

`most` is a bound: no run under this recipe uses more, retries included (a text has no more tokens than bytes, an answer no more
than its limit). `expected` is a guess and says what it assumes: every question that is always asked, once, four bytes a token, and
answers of half their limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from math import ceil
from typing import Any

from rrf_design.documents import sealed
from rrf_design.errors import InputError
from rrf_design.models.base import Request, Retry
from rrf_design.models.prices import Price, PriceTable, listed_price
from rrf_design.problem import Problem
from rrf_design.questions.datasets import Dataset

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


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a run will take. `cost` is what checks and questions on sale could cost, in the recipe's own unit."""

    calls: Span
    tokens: Span
    money: Span
    cost: Span
    items: int
    structures: int
    models: Mapping[str, Price | None]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        content: dict[str, Any] = {name: getattr(self, name).to_json() for name in ("calls", "tokens", "money", "cost")}
        prices = {
            name: None if price is None else {"input": price.input, "output": price.output, "call": price.call}
            for name, price in self.models.items()
        }
        content |= {"items": self.items, "structures": self.structures, "prices": prices, "notes": list(self.notes)}
        return sealed("rrf-estimate", content)

    def __repr__(self) -> str:
        return f"Estimate({self.items} items: {self.sentence()})"

    def sentence(self) -> str:
        money = (
            "money unknown"
            if self.money.most is None
            else f"money {self.money.expected:.4g}, at most {self.money.most:.4g}"
        )
        return (
            f"{self.calls.expected:g} calls expected, at most {self.calls.most:g}; {self.tokens.expected:g} tokens,"
            f" at most {self.tokens.most:g}; {money}"
        )

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>"


@dataclass(slots=True)
class _Tally:
    """Of one model: calls and tokens, and its largest call."""

    expected: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])
    most: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])
    largest: tuple[int, int] = (0, 0)

    def add(self, request: Request, *, always: bool, attempts: int) -> None:
        bound = request.ceiling()
        size = len(request.prompt.encode("utf-8", "replace")) + len((request.system or "").encode("utf-8", "replace"))
        if always:
            guess = (1.0, float(ceil(size / BYTES_PER_TOKEN)), float(ceil(USED * request.max_tokens)))
            self.expected = [have + more for have, more in zip(self.expected, guess, strict=True)]
        whole = (attempts, attempts * bound.input_tokens, attempts * bound.output_tokens)
        self.most = [have + more for have, more in zip(self.most, whole, strict=True)]
        self.largest = (
            max(self.largest[0], bound.input_tokens),
            max(self.largest[1], bound.output_tokens),
        )

    def money(self, price: Price, which: list[float]) -> float:
        return price.call * which[0] + price.input * which[1] + price.output * which[2]


def estimate(
    dataset: Dataset, model: str | None = None, *, prices: Any = None, attempts: int | None = None
) -> Estimate:
    """What asking everything about every item takes. `model` answers for nodes that name none; `prices` replace the listed ones.

    Returns an `Estimate`: `calls`, `tokens` and `money`, each `expected` and at `most`, and how many items of how many structures.

    >>> import rrf_design as rrf
    >>> recipe = {
    ...     "answer": {"of": "total", "tolerance": 0.005},
    ...     "ask": [
    ...         {"id": "total", "prompt": "{{ text }} Total?", "parse": "decimal"},
    ...         {"id": "again", "like": "total", "prompt": "Sum of {{ text }}?", "parse": "decimal"},
    ...     ],
    ... }
    >>> rrf.estimate(rrf.dataset(recipe, [{"text": "1 + 2"}, {"text": "2 + 2"}]), "embedded").calls.expected
    4.0
    """
    table = None if prices is None else prices if isinstance(prices, PriceTable) else PriceTable.load(prices)
    tries = Retry().attempts if attempts is None else attempts
    tallies: dict[str, _Tally] = {}
    cost = 0.0
    for item in dataset.items_in_order():
        example, prompts = dataset.structures[item.structure].example, item.prompts
        for node in example.nodes:
            if node.id not in prompts:
                continue
            spec, limit = _asked(dataset, node.model, model)
            limit = node.max_tokens or limit or Request("?").max_tokens
            request = Request(prompts[node.id], system=node.system, max_tokens=limit)
            tallies.setdefault(spec, _Tally()).add(request, always=node.cost is None, attempts=tries)
        cost += _on_sale(example)
    known = {name: _price(name, tally, table) for name, tally in tallies.items()}
    totals = {
        key: [sum(getattr(t, key)[i] for t in tallies.values()) for i in range(3)] for key in ("expected", "most")
    }
    money = Span(None, None)
    if all(price is not None for price in known.values()):
        sums = [
            sum(t.money(known[name] or Price(), getattr(t, key)) for name, t in tallies.items())
            for key in ("expected", "most")
        ]
        money = Span(sums[0], sums[1])
    return Estimate(
        calls=Span(totals["expected"][0], totals["most"][0]),
        tokens=Span(sum(totals["expected"][1:]), sum(totals["most"][1:])),
        money=money,
        cost=Span(0.0, cost),
        items=len(dataset),
        structures=len(dataset.structures),
        models=known,
        notes=_notes(dataset, known),
    )


def _asked(dataset: Dataset, name: str | None, model: str | None) -> tuple[str, int | None]:
    """The model that a node asks, and the limit of its answers where [models] sets one."""
    named = dataset.recipe.models
    entry = named.get(name) if name is not None else next(iter(named.values()), None) if model is None else None
    if entry is None:
        if model is None:
            raise InputError(f"{dataset.recipe.name}: it names no model; say which is asked with --model")
        return model, None
    limit = entry.get("max_tokens")
    return str(entry["use"]), limit if isinstance(limit, int) else None


def _price(name: str, tally: _Tally, table: PriceTable | None) -> Price | None:
    if table is not None and name in table.prices:
        return table.prices[name]
    return listed_price(name, input_tokens=tally.largest[0], output_tokens=tally.largest[1])


def _on_sale(example: Problem) -> float:
    """What everything on sale of an item costs by the recipe."""
    market = example.structure.market
    return float(market.cost(market.mask(example.resolve("all"))))


def _notes(dataset: Dataset, known: Mapping[str, Price | None]) -> tuple[str, ...]:
    notes = [ASSUMED]
    notes += [f"no price is known of {name}; give one with --prices" for name, price in known.items() if price is None]
    sources = [a.source for one in dataset.structures.values() for a in one.example.anchors]
    if any(isinstance(source, Mapping) and "verifier" in source for source in sources):
        notes.append("calls of verifiers are not counted: their prompts hold answers that are not there yet")
    return tuple(notes)
