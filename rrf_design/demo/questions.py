"""Sums, products, capitals and a small program, each asked in four wordings, with two more and a check for sale.

Numbers come from a seeded generator, not from what the model happens to know. The truth is used in two places only:
inside an anchor, which the run has to buy, and after the run, to say what it got right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from rrf_design.problem import Problem
from rrf_design.responses import prompts
from rrf_design.responses.prompts import Transformation

K = 2
"""Wrong answers per field that must not be able to hide."""
TARGET = 0.4
WORDING = 2.0
"""Price of one more wording: another call of the model."""
CALCULATOR = 1.0
TESTS = 1.0
ATLAS = 3.0
"""Prices of a check: a calculator is cheaper than another call, a person with an atlas is dearer."""

_SUM = (
    ("plain", "Compute {{ a }} + {{ b }}.", prompts.original()),
    ("swapped", "Compute {{ b }} + {{ a }}.", prompts.paraphrase()),
    ("worded", "Compute the sum {{ a }} + {{ b }}.", prompts.paraphrase()),
    ("one more", "Compute {{ a }} + {{ c }}.", prompts.shift(1)),
    ("plus", "Compute {{ a }} plus {{ b }}.", prompts.paraphrase()),
    ("add", "Add {{ a }} + {{ b }}.", prompts.paraphrase()),
)
_PRODUCT = (
    ("plain", "Compute {{ a }} * {{ b }}.", prompts.original()),
    ("swapped", "Compute {{ b }} * {{ a }}.", prompts.paraphrase()),
    ("worded", "Compute the product {{ a }} * {{ b }}.", prompts.paraphrase()),
    ("times", "Compute {{ a }} times {{ b }}.", prompts.paraphrase()),
    ("question", "What is {{ a }} * {{ b }}?", prompts.paraphrase()),
    ("multiply", "Multiply {{ a }} * {{ b }}.", prompts.paraphrase()),
)
_CAPITAL = (
    ("plain", "What is the capital of {{ x }}?", prompts.original()),
    ("tell", "Tell me the capital of {{ x }}.", prompts.paraphrase()),
    ("name", "Name the capital of {{ x }}.", prompts.paraphrase()),
    ("city", "What is the capital city of {{ x }}?", prompts.paraphrase()),
    ("which", "Which city is the capital of {{ x }}?", prompts.paraphrase()),
    ("seat", "In which city does the government of {{ x }} sit?", prompts.paraphrase()),
)
_PROGRAM = (
    ("plain", "Write a Python function solve(n) that returns {{ x }}.", prompts.original()),
    ("define", "Define solve(n) in Python. It returns {{ x }}.", prompts.paraphrase()),
    ("short", "Python: def solve(n) which returns {{ x }}. Only code.", prompts.paraphrase()),
    ("please", "Please write the Python function solve(n). It should return {{ x }}.", prompts.paraphrase()),
    ("one line", "Write solve(n) in one line of Python; it returns {{ x }}.", prompts.paraphrase()),
    ("code", "Give me the code of a Python function solve(n) returning {{ x }}.", prompts.paraphrase()),
)
_PLACES: Mapping[str, Sequence[str]] = {
    "Spain": ("Madrid", "Barcelona", "Seville", "Valencia"),
    "Egypt": ("Cairo", "Alexandria", "Luxor", "Giza"),
    "Australia": ("Canberra", "Sydney", "Melbourne", "Perth"),
    "Turkey": ("Ankara", "Istanbul", "Izmir", "Bursa"),
    "Switzerland": ("Bern", "Zurich", "Geneva", "Basel"),
}
"""The capital first, then the cities that are often taken for it."""
_INPUTS = ([2], [3], [7])
_PROGRAMS = (("n squared", (4, 9, 49)), ("n plus one", (3, 4, 8)))


@dataclass(frozen=True, slots=True)
class Topic:
    """One field of the demonstration: the problem as the run sees it, and the truth for judging afterwards."""

    problem: Problem
    truth: Mapping[str, tuple[float, ...]]
    options: tuple[str, ...] = ()
    """What the coordinates of a choice mean."""

    def words(self, value: Sequence[float] | None) -> str:
        """A value as a person would say it."""
        if value is None:
            return "?"
        if self.options:
            one = [name for name, x in zip(self.options, value, strict=True) if abs(x - 1) < 1e-6]
            zero = sum(abs(x) < 1e-6 for x in value)
            return one[0] if len(one) == 1 and zero == len(value) - 1 else "mixed"
        return "/".join(f"{x:g}" for x in value)


def topics(
    seed: int = 7, *, sums: int = 4, products: int = 3, capitals: int = 5, programs: int = 1
) -> dict[str, Topic]:
    """The data set; fewer of each kind for a shorter demonstration."""
    rng = np.random.default_rng(seed)
    result: dict[str, Topic] = {}
    for sign, wordings, count in (("+", _SUM, sums), ("×", _PRODUCT, products)):
        pairs = [(a, b) for a, b in combinations(range(2, 10), 2)]
        for i in rng.choice(len(pairs), size=count, replace=False):
            a, b = rng.permutation(pairs[i]).tolist()
            name = f"{a} {sign} {b}"
            value = a + b if sign == "+" else a * b
            result[name] = _topic(
                name,
                wordings,
                {"a": a, "b": b, "c": b + 1},
                parser="integer-last",
                tokens=96,
                truth=[value],
                check={"source": f"expression: a {'+' if sign == '+' else '*'} b", "cost": CALCULATOR},
            )
    for place, options in list(_PLACES.items())[:capitals]:
        order = [int(i) for i in rng.permutation(4)]  # so that no position is the right one
        shown = tuple(options[i] for i in order)
        truth = [float(name == options[0]) for name in shown]
        result[f"capital of {place}"] = _topic(
            f"capital of {place}",
            _CAPITAL,
            {"x": place},
            parser={"name": "choice", "options": list(shown)},
            tokens=48,
            truth=truth,
            check={"value": truth, "cost": ATLAS},
            options=shown,
        )
    for words, outputs in _PROGRAMS[:programs]:
        expected = list(outputs)
        tests = [list(arguments) for arguments in _INPUTS]
        result[f"program: {words}"] = _topic(
            f"program: {words}",
            _PROGRAM,
            {"x": words},
            parser={"name": "code", "tests": tests},
            tokens=160,
            truth=expected,
            check={"source": {"tests": tests, "expected": expected}, "cost": TESTS},
        )
    return result


def _topic(
    name: str,
    wordings: Sequence[tuple[str, str, Transformation]],
    variables: Mapping[str, object],
    *,
    parser: str | Mapping[str, Any],
    tokens: int,
    truth: Sequence[float],
    check: Mapping[str, Any],
    options: tuple[str, ...] = (),
) -> Topic:
    """Four wordings asked at once and two for sale, every pair compared for nothing, one check for sale."""
    variants = tuple(prompts.Variant(*wording) for wording in wordings)
    item = prompts.Item(name, variables, variants, parser=parser, dim=len(truth))
    nodes: list[dict[str, Any]] = [node | {"max_tokens": tokens} for node in item.nodes()]
    for node in nodes[4:]:
        node["cost"] = WORDING
    nodes[0]["variables"] = dict(variables)
    nodes[0]["prompt"] = variants[0].template
    pairs = list(combinations(range(len(variants)), 2))
    problem = Problem(
        name=name,
        k=K,
        target=TARGET,
        nodes=nodes,
        relations=item.relations(pairs),
        anchors=[{"id": "check", "node": nodes[0]["id"], **check}],
    )
    values = {
        variant.name: tuple(float(x) for x in variant.transformation.affine(len(truth)).apply(truth))
        for variant in variants
    }
    return Topic(problem, values, options)
