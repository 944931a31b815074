"""Calls, tokens and money of a run over a table, before the first call.

`most` is a bound: no run under this recipe uses more, retries included (a text has no more tokens
than bytes, an answer no more than its limit). `expected` is a guess and says what it assumes: every
question that is always asked, once, four bytes a token, and answers of half their limit.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from rrf_design._shown import Shown
from rrf_design.documents import checked, sealed
from rrf_design.errors import InputError
from rrf_design.models.base import Request, Retry
from rrf_design.models.prices import (
    ASSUMED,
    REMEDY,
    CallTally,
    Price,
    PriceTable,
    Span,
    Spending,
    listed_price,
    own_judge,
)
from rrf_design.models.registry import adapter
from rrf_design.models.roster import line_up
from rrf_design.problem import Problem
from rrf_design.questions.datasets import Dataset
from rrf_design.questions.filling import Filler
from rrf_design.questions.recipe import Recipe
from rrf_design.questions.tables import Cells
from rrf_design.workers import in_chunks


@dataclass(frozen=True, slots=True, repr=False)
class Estimate(Shown):
    """What a run will take.

    `cost` is in the recipe's own unit: `expected` of what is asked in any case, at `most` with all
    that is on sale.
    """

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

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Estimate:
        """The estimate of a document `rrf-estimate`."""
        found = checked(data, "rrf-estimate", what="estimate")
        spans = {name: Span(**found[name]) for name in ("calls", "tokens", "money", "cost")}
        models = {name: None if price is None else Price(**price) for name, price in found["prices"].items()}
        return cls(
            **spans, items=found["items"], structures=found["structures"], models=models, notes=tuple(found["notes"])
        )

    def _line(self) -> str:
        return f"{self.items} items: {self.sentence()}"

    def sentence(self) -> str:
        return Spending(self.calls, self.tokens, self.money).sentence()


def estimate(
    dataset: Dataset, model: str | Mapping[str, Any] | None = None, *, prices: Any = None, attempts: int | None = None
) -> Estimate:
    """What asking everything about every item takes, before the first call.

    Parameters
    ----------
    dataset
        The items.
    model
        Who answers where nodes name no model: a name, or several as in a recipe's `[models]`.
    prices
        A price table (a path, its content or a `PriceTable`) that replaces listed prices.
    attempts
        How often a failed call is tried again, at most.

    Returns
    -------
    An `Estimate`: `calls`, `tokens` and `money`, each `expected` and at `most`, and how many items
    of how many structures.

    >>> import rrf_design as rrf
    >>> recipe = {
    ...     "answer": {"of": "total", "tolerance": 0.005},
    ...     "ask": [
    ...         {"id": "total", "prompt": "{{ text }} Total?", "parse": "decimal"},
    ...         {"id": "again", "like": "total", "prompt": "Sum {{ text }}?", "parse": "decimal"},
    ...     ],
    ... }
    >>> sums = rrf.dataset(recipe, [{"text": "1 + 2"}, {"text": "2 + 2"}])
    >>> rrf.estimate(sums, "embedded").calls.expected
    4.0
    """
    table = None if prices is None else prices if isinstance(prices, PriceTable) else PriceTable.load(prices)
    tries = Retry().attempts if attempts is None else attempts
    entries = line_up(model, dataset.recipe.models)
    if not entries:
        raise InputError(f"{dataset.recipe.name}: it names no model; say which is asked with --model")
    tallies: dict[str, CallTally] = {}
    elsewhere: set[str] = set()
    asked, on_sale, blank = 0.0, 0.0, 0
    items = dataset.items_in_order()
    chunks = iter(lambda: [(item.seen, item.structure) for item in islice(items, TOGETHER)], [])
    examples = {key: one.example for key, one in dataset.structures.items()}
    for part in in_chunks(_Counted, (dataset.recipe, examples, entries, tries), chunks, n_jobs=None):
        for spec, tally in part.tallies.items():
            tallies.setdefault(spec, CallTally()).join(tally)
        elsewhere |= part.elsewhere
        for always, further, silent in part.costs:
            asked, on_sale, blank = asked + always, on_sale + further, blank + silent
    known = {name: _price(name, tally, table, elsewhere) for name, tally in tallies.items()}
    found = Spending.of(tallies, known)
    return Estimate(
        calls=found.calls,
        tokens=found.tokens,
        money=found.money,
        cost=Span(asked, asked + on_sale),
        items=len(dataset),
        structures=len(dataset.structures),
        models=known,
        notes=_notes(dataset, known, blank, entries),
    )


TOGETHER = 1000
"""Rows that are counted, and travel to another process, together."""


@dataclass(frozen=True, slots=True)
class _Part:
    """What some rows take; `costs` of each: what is asked in any case, what is on sale, and whether
    some question is about nothing.
    """

    tallies: dict[str, CallTally]
    elsewhere: set[str]
    costs: list[tuple[float, float, bool]]


class _Counted:
    """Counts the calls of some rows."""

    def __init__(
        self, recipe: Recipe, examples: Mapping[str, Problem], entries: Mapping[str, Any], attempts: int
    ) -> None:
        self._filler, self._examples, self._entries, self._attempts = Filler(recipe), examples, entries, attempts

    def __call__(self, rows: Sequence[tuple[Cells, str]]) -> _Part:
        part = _Part({}, set(), [])
        for row, structure in rows:
            example, prompts, silent = self._examples[structure], self._filler.prompts(row), self._filler.silent(row)
            further = example.structure.market.asks.values()
            for node in example.nodes:
                if node.id not in prompts or node.id in silent:
                    continue
                entry = _entry(self._entries, node.model, node.id)
                spec = str(entry["use"])
                if "base_url" in entry:
                    part.elsewhere.add(spec)
                limit = node.max_tokens or entry.get("max_tokens") or Request("?").max_tokens
                request = Request(prompts[node.id], system=node.system, max_tokens=limit)
                tally = part.tallies.setdefault(spec, CallTally())
                for included in (True, *(ask.included for ask in further if ask.node == node.id)):
                    tally.add(request, always=node.cost is None and included, attempts=self._attempts)
            always = _cost(example, [n.id for n in example.nodes if n.cost is None and n.id not in silent])
            on_sale = _cost(example, [*example.resolve("all"), *example.structure.market.asks])
            part.costs.append((always, on_sale, bool(silent)))
        return part


def _entry(entries: Mapping[str, Any], name: str | None, node: str) -> Mapping[str, Any]:
    """The entry of [models] that a node asks; the first one by default."""
    if name is not None and name not in entries:
        raise InputError(f"node {node!r}: model {name!r} is not among the run's models ({', '.join(entries)})")
    entry = entries[name] if name is not None else next(iter(entries.values()))
    return entry if isinstance(entry, Mapping) else {"use": entry}


def _price(name: str, tally: CallTally, table: PriceTable | None, elsewhere: Collection[str]) -> Price | None:
    """By the given table, by the list, or nothing where the adapter answers on this machine; a
    server of one's own has no list.
    """
    if table is not None and name in table.prices:
        return table.prices[name]
    made = adapter(name)
    if made is not None and made.local:
        return Price()
    largest = tally.largest
    if name in elsewhere:
        return None
    return listed_price(name, input_tokens=largest.input_tokens, output_tokens=largest.output_tokens)


def _cost(example: Problem, names: Collection[str]) -> float:
    """What asking and buying these costs by the recipe."""
    return float(example.structure.market.spent(names))


def _notes(
    dataset: Dataset, known: Mapping[str, Price | None], blank: int, entries: Mapping[str, Any]
) -> tuple[str, ...]:
    notes = [ASSUMED]
    if blank:
        notes.append(
            f"{blank} row{'s' * (blank > 1)} with empty cells: questions that name no other column are not asked"
        )
    notes += [f"no price is known of {name}; {REMEDY.format(name)}" for name, price in known.items() if price is None]
    judges = {
        anchor.id: str(anchor.source["verifier"])
        for one in dataset.structures.values()
        for anchor in one.example.anchors
        if isinstance(anchor.source, Mapping) and "verifier" in anchor.source
    }
    if judges:
        notes.append("calls of verifiers are not counted: their prompts hold answers that are not there yet")
    asked = {
        check: str(_entry(entries, name, check)["use"]) if name in entries else name for check, name in judges.items()
    }
    notes += [own_judge(check, spec) for check, spec in asked.items() if spec in known]
    return tuple(notes)
