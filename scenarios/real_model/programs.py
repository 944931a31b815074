"""Sixteen integer-valued functions, four test instantiations each (paper, "Code dataset").

An item is a function family with its own tests: the four instantiations of a family share their
prompts and differ in their tests. Public inputs make the execution signature; hidden inputs live in
`hidden` and are not reachable from here. The paper's specifications are not published; these say
the same things in four ways: original, other argument names, other wording, and a hint to work in
steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from rrf_design.models import Request

SYSTEM = (
    "You are a careful Python programmer. Return one Python function named solve in a fenced code block and nothing"
    " else. Do not import anything."
)
PUBLIC_TESTS = 8
VARIANTS = ("original", "rename", "wording", "decompose")
Rng = np.random.Generator
Arguments = list[Any]


def _digits(n: int) -> list[int]:
    return [int(c) for c in str(abs(n))]


def _divisors(n: int) -> int:
    return sum(n % d == 0 for d in range(1, n + 1))


def _fibonacci(n: int) -> int:
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


def _collatz(n: int) -> int:
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def _digital_root(n: int) -> int:
    while n > 9:
        n = sum(_digits(n))
    return n


def _pair(low: int, high: int) -> Callable[[Rng], Arguments]:
    return lambda rng: [int(rng.integers(low, high + 1)), int(rng.integers(low, high + 1))]


def _single(low: int, high: int) -> Callable[[Rng], Arguments]:
    return lambda rng: [int(rng.integers(low, high + 1))]


def _numbers(rng: Rng, least: int) -> list[int]:
    return [int(x) for x in rng.integers(-20, 40, size=int(rng.integers(least, 9)))]


def _list(least: int) -> Callable[[Rng], Arguments]:
    return lambda rng: [_numbers(rng, least)]


def _distinct_list(rng: Rng) -> Arguments:
    while True:
        numbers = _numbers(rng, 3)
        if len(set(numbers)) > 1:
            return [numbers]


def _list_and_bound(rng: Rng) -> Arguments:
    return [_numbers(rng, 1), int(rng.integers(-10, 30))]


@dataclass(frozen=True, slots=True)
class Family:
    """A function: argument names (original and renamed), what it returns in three wordings, a hint,
    and the truth.
    """

    name: str
    arguments: tuple[str, ...]
    renamed: tuple[str, ...]
    returns: str
    wording: str
    hint: str
    reference: Callable[..., int]
    draw: Callable[[Rng], Arguments]


# fmt: off
FAMILIES: tuple[Family, ...] = (
    Family("absolute_difference", ("x", "y"), ("a", "b"), "the absolute difference of the integers {0} and {1}",
           "how far apart the integers {0} and {1} are, as a non-negative integer",
           "First subtract, then drop the sign.", lambda x, y: abs(x - y), _pair(-50, 50)),
    Family("greatest_common_divisor", ("x", "y"), ("a", "b"),
           "the greatest common divisor of the positive integers {0} and {1}",
           "the largest positive integer that divides both {0} and {1}",
           "Replace the pair by the smaller number and the remainder until the remainder is zero.",
           math.gcd, _pair(1, 120)),
    Family("least_common_multiple", ("x", "y"), ("a", "b"),
           "the least common multiple of the positive integers {0} and {1}",
           "the smallest positive integer that both {0} and {1} divide",
           "First find the greatest common divisor, then divide the product by it.", math.lcm, _pair(1, 40)),
    Family("digit_sum", ("n",), ("number",), "the sum of the decimal digits of the non-negative integer {0}",
           "what the digits of the non-negative integer {0} add up to",
           "Take the last digit, add it, remove it, and repeat.", lambda n: sum(_digits(n)), _single(0, 99999)),
    Family("digital_root", ("n",), ("number",),
           "the digital root of the non-negative integer {0}: add the digits again and again until one digit is "
           "left",
           "the single digit that remains when the digits of the non-negative integer {0} are summed repeatedly",
           "While the number has more than one digit, replace it by the sum of its digits.",
           _digital_root, _single(0, 99999)),
    Family("divisor_count", ("n",), ("number",), "how many positive divisors the positive integer {0} has",
           "the count of integers from 1 to {0} that divide {0} without remainder",
           "Go through all numbers from 1 to the number and count those that leave no remainder.",
           _divisors, _single(1, 200)),
    Family("prime_indicator", ("n",), ("number",), "1 if the integer {0} is a prime number and 0 otherwise",
           "the integer 1 when {0} is prime, and the integer 0 when it is not",
           "Numbers below 2 give 0; then look for a divisor from 2 on.",
           lambda n: int(n > 1 and _divisors(n) == 2), _single(0, 120)),
    Family("fibonacci", ("n",), ("index",),
           "the Fibonacci number with index {0}, where index 0 gives 0 and index 1 gives 1",
           "entry {0} of the sequence 0, 1, 1, 2, 3, 5, ... counted from zero",
           "Keep two consecutive entries and step forward.", _fibonacci, _single(0, 25)),
    Family("triangular_number", ("n",), ("count",),
           "the sum of the integers from 1 to {0} for a non-negative integer {0}",
           "the triangular number of {0}, that is 1 + 2 + ... up to {0}, and 0 for 0",
           "Add one integer after the other, or use the closed formula.", lambda n: n * (n + 1) // 2, _single(0, 200)),
    Family("collatz_steps", ("n",), ("start",),
           "how many Collatz steps lead from the positive integer {0} to 1: an even number is halved, an odd one "
           "is tripled and increased by 1",
           "the number of times one must apply n/2 for even n and 3n+1 for odd n, starting with {0}, until 1 is "
           "reached",
           "Loop until the value is 1 and count the rounds.", _collatz, _single(1, 200)),
    Family("count_even", ("xs",), ("values",), "how many integers in the list {0} are even",
           "the number of entries of the list {0} that are divisible by two",
           "Go through the list and count the entries whose remainder by 2 is zero.",
           lambda xs: sum(x % 2 == 0 for x in xs), _list(1)),
    Family("maximum_adjacent_gap", ("xs",), ("values",),
           "the largest absolute difference between neighbouring entries of the list {0}, which has at least two "
           "entries",
           "the biggest jump, in absolute value, from one entry of the list {0} to the next",
           "First list the absolute differences of neighbours, then take the largest.",
           lambda xs: max(abs(a - b) for a, b in pairwise(xs)), _list(2)),
    Family("second_largest_distinct", ("xs",), ("values",),
           "the second largest distinct value of the list {0}, which has at least two distinct values",
           "the largest entry of the list {0} that is smaller than its maximum",
           "First remove repetitions, then sort, then take the last but one.",
           lambda xs: sorted(set(xs))[-2], _distinct_list),
    Family("weighted_sum", ("xs",), ("values",),
           "the sum of the entries of the list {0}, each multiplied by its position, where positions start at 1",
           "1 times the first entry of the list {0} plus 2 times the second and so on",
           "Walk through the list with a position counter that starts at 1.",
           lambda xs: sum(i * x for i, x in enumerate(xs, start=1)), _list(1)),
    Family("alternating_sum", ("xs",), ("values",),
           "the alternating sum of the list {0}: first entry minus second plus third minus fourth and so on",
           "the sum of the entries of the list {0} at even indices minus the sum of those at odd indices, counted "
           "from zero",
           "Walk through the list and switch the sign after every entry.",
           lambda xs: sum(x if i % 2 == 0 else -x for i, x in enumerate(xs)), _list(1)),
    Family("count_above_threshold", ("xs", "t"), ("values", "limit"),
           "how many integers in the list {0} are strictly greater than {1}",
           "the number of entries of the list {0} that exceed {1}",
           "Go through the list, compare each entry with the bound, and count.",
           lambda xs, t: sum(x > t for x in xs), _list_and_bound),
)
# fmt: on


@dataclass(frozen=True, slots=True)
class AskedProgram:
    """One code item; `public` are the inputs of its eight public tests."""

    index: int
    family: Family
    seed: int
    public: tuple[Arguments, ...]

    @property
    def id(self) -> str:
        return f"code-{self.index:03d}"

    def truth(self) -> tuple[int, ...]:
        """The public reference signature: what an anchor may say."""
        return tuple(self.family.reference(*arguments) for arguments in self.public)


def items(count: int = 64, *, seed: int = 0) -> tuple[AskedProgram, ...]:
    """The families take turns, as in the paper's catalogue; tests come from item-specific seeds."""
    return tuple(_program(index, seed) for index in range(count))


def _program(index: int, seed: int) -> AskedProgram:
    family = FAMILIES[index % len(FAMILIES)]
    return AskedProgram(index, family, seed, draw_tests(family, [seed, 2, index], PUBLIC_TESTS))


def draw_tests(family: Family, seed: list[int], count: int) -> tuple[Arguments, ...]:
    rng = np.random.default_rng(seed)
    return tuple(family.draw(rng) for _ in range(count))


def prompt(family: Family, variant: str) -> str:
    names = family.renamed if variant == "rename" else family.arguments
    what = (family.wording if variant == "wording" else family.returns).format(*names)
    start = f"Write a Python function solve({', '.join(names)}) that returns {what}."
    return f"{start} {family.hint}" if variant == "decompose" else start


def request(family: Family, variant: str) -> Request:
    return Request(prompt(family, variant), system=SYSTEM, max_tokens=192)
