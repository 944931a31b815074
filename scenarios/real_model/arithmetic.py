"""Integer expressions in eight families, each asked in four typed ways (paper, "Mathematics
dataset").

The text of the paper says "five-digit addition" and "two- or three-digit multiplication"; its
printed catalogue has three-digit sums and two-digit products. The operand ranges here are those of
the catalogue, because the published results belong to it. The paper's wording of the prompts is not
published; the system instruction is, and is used as it stands.

`ours` are easier items for models that answer none of the paper's: sums below twenty and products
of digits, in four wordings with one answer. They are labelled as ours wherever they appear.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rrf_design.models import Request

SYSTEM = (
    "You are a precise arithmetic solver. Return exactly one signed base-10 integer and no words, commas, equations, "
    "or explanation."
)
SCALES = (2, 3, 4, 5)
SHIFTS = (-37, -23, 19, 31, 47)
OUR_SCALES = (1,)
OUR_SHIFTS = (0,)
Rng = np.random.Generator


@dataclass(frozen=True, slots=True)
class AskedExpression:
    """One item: the expression as asked, its exact value, and the constants of the scaled and
    shifted queries.
    """

    index: int
    family: str
    text: str
    answer: int
    scale: int
    shift: int
    ours: bool = False

    @property
    def id(self) -> str:
        return f"{'ours' if self.ours else 'math'}-{self.index:03d}"


def _draw(rng: Rng, low: int, high: int) -> int:
    return int(rng.integers(low, high + 1))


def _large_add(rng: Rng) -> tuple[str, int]:
    a, b = _draw(rng, 100, 999), _draw(rng, 100, 999)
    return f"{a} + {b}", a + b


def _large_subtract(rng: Rng) -> tuple[str, int]:
    a = _draw(rng, 1000, 9999)
    b = _draw(rng, 100, a - 100)
    return f"{a} - {b}", a - b


def _multiply(rng: Rng) -> tuple[str, int]:
    a, b = _draw(rng, 11, 99), _draw(rng, 11, 99)
    return f"{a} * {b}", a * b


def _affine_product(rng: Rng) -> tuple[str, int]:
    a, b, c = _draw(rng, 20, 99), _draw(rng, 20, 99), _draw(rng, 20, 160)
    return f"({a} + {b}) * 7 - {c}", (a + b) * 7 - c


def _nested_difference(rng: Rng) -> tuple[str, int]:
    a, b, d = _draw(rng, 3, 19), _draw(rng, 40, 99), _draw(rng, 20, 160)
    c = _draw(rng, 3, b - 5)
    return f"{a} * ({b} - {c}) + {d}", a * (b - c) + d


def _exact_quotient(rng: Rng) -> tuple[str, int]:
    a, d, answer = _draw(rng, 10, 99), _draw(rng, 3, 9), _draw(rng, 100, 500)
    return f"({a} + {answer * d - a}) / {d}", answer


def _squares(rng: Rng) -> tuple[str, int]:
    a, b, c = _draw(rng, 5, 29), _draw(rng, 5, 29), _draw(rng, 20, 180)
    return f"({a} * {a}) + ({b} * {b}) - {c}", a * a + b * b - c


def _mixed_products(rng: Rng) -> tuple[str, int]:
    a, b, c, d, e = (_draw(rng, *bounds) for bounds in ((5, 39), (5, 39), (5, 39), (5, 39), (20, 160)))
    return f"{a} * {b} - {c} * {d} + {e}", a * b - c * d + e


FAMILIES: dict[str, Callable[[Rng], tuple[str, int]]] = {
    "large_add": _large_add,
    "large_subtract": _large_subtract,
    "multiply": _multiply,
    "affine_product": _affine_product,
    "nested_difference": _nested_difference,
    "exact_quotient": _exact_quotient,
    "squares": _squares,
    "mixed_products": _mixed_products,
}


def _small_sum(rng: Rng) -> tuple[str, int]:
    a, b = _draw(rng, 2, 10), _draw(rng, 2, 9)
    return f"{a} + {b}", a + b


def _small_product(rng: Rng) -> tuple[str, int]:
    a, b = _draw(rng, 2, 9), _draw(rng, 2, 9)
    return f"{a} * {b}", a * b


OUR_FAMILIES: dict[str, Callable[[Rng], tuple[str, int]]] = {"small_sum": _small_sum, "small_product": _small_product}


def items(count: int = 128, *, seed: int = 0) -> tuple[AskedExpression, ...]:
    """The paper's set: the families take turns, as in its catalogue.

    A shorter set is the beginning of a longer one.
    """
    return tuple(_item(index, list(FAMILIES), FAMILIES, SCALES, SHIFTS, seed, ours=False) for index in range(count))


def our_items(count: int = 64, *, seed: int = 0) -> tuple[AskedExpression, ...]:
    """Easier items of our own, without repetitions; their scale and shift are 1 and 0."""
    found: dict[str, AskedExpression] = {}
    draw = 0
    while len(found) < count:
        item = _item(draw, list(OUR_FAMILIES), OUR_FAMILIES, OUR_SCALES, OUR_SHIFTS, seed, ours=True)
        draw += 1
        if item.text not in found:
            index = len(found)
            found[item.text] = AskedExpression(index, item.family, item.text, item.answer, item.scale, item.shift, True)
    return tuple(found.values())


def _item(
    index: int,
    names: list[str],
    families: dict[str, Callable[[Rng], tuple[str, int]]],
    scales: tuple[int, ...],
    shifts: tuple[int, ...],
    seed: int,
    *,
    ours: bool,
) -> AskedExpression:
    rng = np.random.default_rng([seed, 1 if ours else 0, index])
    family = names[index % len(names)]
    text, answer = families[family](rng)
    factor = scales[int(rng.integers(len(scales)))]
    summand = shifts[int(rng.integers(len(shifts)))]
    return AskedExpression(index, family, text, answer, factor, summand, ours)


@dataclass(frozen=True, slots=True)
class AskedQuery:
    """One way of asking an item: its answer must be scale times that of the item, plus shift."""

    request: Request
    scale: int = 1
    shift: int = 0

    def back(self, value: float) -> float:
        """The item's answer from this query's."""
        return value * (1.0 / self.scale) - (1.0 / self.scale) * self.shift


def query(item: AskedExpression) -> tuple[AskedQuery, ...]:
    """The four typed ways of asking: original, paraphrase, s times the value, the value plus t;
    ours: see `_our_query`.
    """
    if item.ours:
        return _our_query(item)
    change = f"plus {item.shift}" if item.shift >= 0 else f"minus {-item.shift}"
    ways = (
        (f"Compute {item.text}.", 1, 0),
        (f"What is the value of the expression {item.text}?", 1, 0),
        (f"Compute {item.scale} times the value of ({item.text}).", item.scale, 0),
        (f"Compute the value of ({item.text}) {change}.", 1, item.shift),
    )
    return tuple(AskedQuery(Request(text, system=SYSTEM, max_tokens=24), factor, term) for text, factor, term in ways)


def _our_query(item: AskedExpression) -> tuple[AskedQuery, ...]:
    """Four wordings with one answer (the operands swapped in one): small models fail at every
    scaled or shifted query.
    """
    left, sign, right = item.text.split()
    added, product = f"If you add {right} to {left}, what do you get?", f"if you multiply {left} by {right}?"
    story = added if sign == "+" else f"What do you get {product}"
    words = (f"What is {item.text}?", f"Calculate {item.text}.", f"What is {right} {sign} {left}?", story)
    return tuple(AskedQuery(Request(text, max_tokens=48, stop=("\n",))) for text in words)
