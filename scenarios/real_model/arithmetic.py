"""Integer expressions in eight families, each asked in four typed ways (paper, "Mathematics
dataset").

The text of the paper says "five-digit addition" and "two- or three-digit multiplication"; its
printed catalogue has three-digit sums and two-digit products. The operand ranges here are those of
the catalogue, because the published results belong to it. The paper's wording of the prompts is not
published; the system instruction is, and is used as it stands.

`printed_items` are the 36 of its 128 expressions that the paper prints, with their own scales and
shifts. `ours` are easier items for models that answer none of the paper's: sums below twenty and
products of digits, in four wordings with one answer. They are labelled as ours wherever they
appear.
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
    printed: int | None = None
    """Its number in the paper, where it is printed there."""

    @property
    def id(self) -> str:
        if self.printed is not None:
            return f"printed-{self.printed:03d}"
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


PRINTED = """
0 large_add 3 -23 1679 909 + 770
1 large_subtract 5 -37 2139 9897 - 7758
2 multiply 2 -23 3304 59 * 56
3 affine_product 2 47 1100 (80 + 90) * 7 - 90
4 nested_difference 5 31 1554 17 * (91 - 4) + 75
5 exact_quotient 5 47 142 (32 + 678) / 5
6 squares 5 19 1126 (27 * 27) + (24 * 24) - 179
7 mixed_products 4 31 -490 7 * 27 - 39 * 19 + 62
8 large_add 4 19 1862 928 + 934
9 large_subtract 3 47 2694 3746 - 1052
10 multiply 3 -23 781 11 * 71
11 affine_product 2 -37 1173 (97 + 79) * 7 - 59
58 multiply 3 47 7505 79 * 95
59 affine_product 3 -37 298 (21 + 42) * 7 - 143
60 nested_difference 2 -23 238 13 * (92 - 82) + 108
61 exact_quotient 5 47 353 (13 + 1752) / 5
62 squares 4 47 711 (19 * 19) + (23 * 23) - 179
63 mixed_products 2 -37 778 30 * 29 - 18 * 10 + 88
64 large_add 3 19 1076 878 + 198
65 large_subtract 2 -37 531 1090 - 559
66 multiply 2 -37 3060 45 * 68
67 affine_product 4 -37 1022 (74 + 92) * 7 - 140
68 nested_difference 3 19 352 3 * (93 - 20) + 133
69 exact_quotient 5 31 258 (61 + 1487) / 6
116 nested_difference 2 19 623 5 * (98 - 5) + 158
117 exact_quotient 3 19 468 (92 + 2248) / 5
118 squares 3 19 673 (24 * 24) + (13 * 13) - 72
119 mixed_products 5 31 -206 28 * 21 - 31 * 29 + 105
120 large_add 4 19 1413 795 + 618
121 large_subtract 5 -23 161 2735 - 2574
122 multiply 5 31 6480 90 * 72
123 affine_product 5 19 588 (84 + 22) * 7 - 154
124 nested_difference 5 -37 450 11 * (42 - 11) + 109
125 exact_quotient 2 31 287 (93 + 1629) / 6
126 squares 2 -37 235 (19 * 19) + (7 * 7) - 175
127 mixed_products 4 -37 104 34 * 6 - 12 * 13 + 56
"""
"""The items that the paper prints: index, family, scale, shift, answer, expression."""


def printed_items(count: int = 36) -> tuple[AskedExpression, ...]:
    """The items that the paper prints, as they stand there, whatever a seed draws."""
    found = []
    for index, line in enumerate(PRINTED.strip().splitlines()[:count]):
        number, family, scale, shift, answer, text = line.split(maxsplit=5)
        constants = int(answer), int(scale), int(shift)
        found.append(AskedExpression(index, family, text, *constants, printed=int(number)))
    return tuple(found)


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
