"""How many answers of a row are bought: as many as make answers and looks together cheapest, by a
forecast from answers alone (docs/promises.md).

The delivered ask comes first, then the cheapest. A forecast reads no truth, so nothing that is
proven later depends on it: it is about cost only.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rrf_design.errors import InputError
from rrf_design.market import declared
from rrf_design.promises._one_pass import OnePass
from rrf_design.promises._sheets import AnswersByItem
from rrf_design.questions.answers import RecordedAnswer
from rrf_design.risk import draw_order

if TYPE_CHECKING:
    from rrf_design.promises._pass_rows import PassRows
    from rrf_design.questions.datasets import Dataset

AUTO, ALL = "auto", "all"
LEAST = 2
"""One answer a row shows no disagreement: what it would take to look can't be foretold."""
TRIED = 80
"""So many rows are answered in full to forecast from, and no more than a tenth of the table."""
FEWEST = 20
"""A table whose tenth is less has all its questions asked."""


@dataclass(frozen=True, slots=True)
class AskPoint:
    """What is expected if so many answers of each row are bought."""

    answers: int
    node: str
    """The last of them."""
    looks: float
    answers_cost: float
    cost: float
    """Of answers and looks together."""

    def to_json(self) -> dict[str, Any]:
        return {
            "answers": self.answers,
            "node": self.node,
            "looks": round(self.looks, 1),
            "answers_cost": round(self.answers_cost, 6),
            "cost": round(self.cost, 6),
        }


def how_many(asks: int | str | None, nodes: int) -> int | str:
    """A number of answers, or `auto`; InputError for anything else."""
    if asks is None or asks == ALL:
        return nodes
    if asks == AUTO:
        return AUTO
    try:
        found = int(asks)
    except ValueError:
        found = 0
    if isinstance(asks, float | bool) or not 1 <= found <= nodes:
        raise InputError(f"asks is {asks!r:.20}: should be auto, all, or from 1 to the recipe's {nodes} questions")
    return found


def ask_order(dataset: Dataset) -> dict[str, Fraction]:
    """Every question with its price: the delivered one, then the cheapest first."""
    prices: dict[str, Fraction] = {}
    first: set[str] = set()
    for one in dataset.structures.values():
        problem = one.example
        first |= set(problem.deliver or [problem.nodes[0].id])
        for node in problem.nodes:
            prices[node.id] = max(declared(node), prices.get(node.id, Fraction(0)))
    names = [name for name in dict.fromkeys(dataset.recipe.nodes.values()) if name in prices]
    return {name: prices[name] for name in sorted(names, key=lambda name: (name not in first, prices[name]))}


def tried_rows(dataset: Dataset, ids: Sequence[str], seed: int) -> list[str]:
    """The rows that are answered in full first, drawn at random; none where the table is small."""
    count = min(TRIED, len(ids) // 10)
    order = draw_order(len(ids), seed, digest=f"tried {dataset.recipe.digest}") if count >= FEWEST else []
    return [ids[at] for at in sorted(order[:count])]


def ask_curve(
    codes: NDArray[np.int64],
    prices: Mapping[str, Fraction],
    *,
    rows: int,
    risk: Fraction,
    confidence: Fraction,
    label_cost: float,
    settled: Collection[int] = (),
) -> list[AskPoint]:
    """What to expect for each number of answers a row, in the order of `prices`.

    `codes`: answers of this table, or of rows drawn from it, which stand for all `rows` then.
    """
    whole = codes if len(codes) == rows else np.tile(codes, (-(-rows // max(1, len(codes))), 1))[:rows]
    found = []
    for count, node in enumerate(prices, start=1):
        calls = float(rows * sum(list(prices.values())[:count]))
        looks = OnePass(
            whole[:, :count],
            risk=risk,
            confidence=confidence,
            seed=0,
            digest=lambda picks, withheld: "",
            settled=settled,
        ).expected()
        found.append(AskPoint(count, node, looks.looks, calls, calls + looks.looks * label_cost))
    return found


def cheapest(curve: Sequence[AskPoint]) -> AskPoint:
    """The least expected cost, of at least two answers a row where there are so many."""
    return min(curve[min(LEAST, len(curve)) - 1 :], key=lambda point: (point.cost, point.answers))


@dataclass(frozen=True, slots=True)
class AskPlan:
    """How many answers a row, or `auto`, and for which promise."""

    count: int | str
    prices: Mapping[str, Fraction]
    """Of every question, in the order in which they are bought."""
    risk: Fraction
    confidence: Fraction
    seed: int = 0

    @classmethod
    def of(cls, dataset: Dataset, asks: int | str | None, *, risk: float, confidence: float, seed: int = 0) -> AskPlan:
        prices = ask_order(dataset)
        count = how_many(asks, len(prices))
        return cls(count, prices, Fraction(str(risk)), Fraction(str(confidence)), seed)

    def curve(self, table: PassRows, *, rows: int) -> list[AskPoint]:
        """What to expect for each number of answers a row, from all rows of a table or some."""
        at = [table.nodes.index(node) for node in self.prices if node in table.nodes]
        return ask_curve(
            table.codes[:, at],
            self.prices,
            rows=rows,
            risk=self.risk,
            confidence=self.confidence,
            label_cost=table.label_cost,
            settled=table.settled if len(table.codes) == rows else (),
        )


class SomeAnswers:
    """Recorded answers as if only these questions had been asked."""

    def __init__(self, known: AnswersByItem, left_out: Collection[str]) -> None:
        self._known, self._left_out = known, frozenset(left_out)

    def of(self, item: str) -> dict[str, RecordedAnswer]:
        return {name: answer for name, answer in self._known.of(item).items() if name not in self._left_out}
