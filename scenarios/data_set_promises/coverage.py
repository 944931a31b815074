"""Promises under simulation: populations made by an adversary, draws by chance, and how often a
promise was false.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from rrf_design.risk import (
    Among,
    AuditSequence,
    Limit,
    Scope,
    Statement,
    bound,
    choose,
    decide,
    evidence,
    fixed_sequence,
    half_depth,
    holm,
    sequential_tail,
)

Generator = np.random.Generator
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class _Drawn:
    name: str
    cost: Any
    delivered: Any
    wrong: Any


def false_bounds(rng: Generator, times: int, *, population: int, wrong: int, drawn: int) -> int:
    seen = rng.hypergeometric(wrong, population - wrong, drawn, size=times)
    bounds = {int(x): bound(population, drawn, int(x), CONFIDENCE) for x in np.unique(seen)}
    return sum(bounds[int(x)] < wrong for x in seen)


def false_sequences(rng: Generator, times: int, *, population: int, wrong: int, drawn: int) -> int:
    """Looked at after every draw: one moment below the truth counts."""
    marks = np.arange(population) < wrong
    misled = 0
    for _ in range(times):
        sequence = AuditSequence(population, CONFIDENCE)
        for mark in rng.permutation(marks)[:drawn].tolist():
            sequence.observe(mark)
            if sequence.bound < wrong:
                misled += 1
                break
    return misled


def false_choices(rng: Generator, times: int, *, policies: int, labels: int, risk: float) -> int:
    """All policies a little too risky, half of their errors in common; Holm.

    Anything proven is false.
    """
    fooled = 0
    cost, delivered = np.ones(labels), np.ones(labels, dtype=bool)
    rate = (risk + 1e-4) / 2
    for _ in range(times):
        common = rng.random(labels) < rate
        own = rng.random((policies, labels)) < rate / (1 - rate)
        family = [_Drawn(str(i), cost, delivered, common | own[i]) for i in range(policies)]
        fooled += choose(family, risk, CONFIDENCE) is not None
    return fooled


def false_statements(
    rng: Generator, times: int, *, statement: str, population: int, labels: int, risk: float, chain: bool, deep: bool
) -> int:
    """Five policies with separate errors: a clean one that every order gets past, then numbers
    around the worst case of the test. A false claim about any counts.
    """
    kind = Statement(statement)
    limit, scope = Limit.of(risk, among=Among.ALL), Scope(kind, labels, population)
    base = int(limit.share * (population - labels if kind is Statement.REST else population))
    flat = [evidence(limit, scope, labels, x) for x in range(labels + 1)]
    passing = sum(tail.claim.at_most(Fraction(1, 20)) for tail in flat)
    worst = base + 1 + (0 if kind is Statement.POLICY else passing - 1)
    counts = [0, worst, base + 1, (base + 1 + worst) // 2, worst + 2]
    if deep:
        scope = half_depth(limit, scope, confidence=CONFIDENCE)
        counts[2:4] = [base + scope.depth, base + 1 + scope.depth]
    tails = [evidence(limit, scope, labels, x) for x in range(labels + 1)]
    edges = np.concatenate([[0], np.cumsum(counts)])
    names = [str(i) for i in range(len(counts))]
    streams = fixed_sequence(names) if chain else holm(names)
    outcomes: dict[tuple[int, ...], bool] = {}
    false = 0
    for _ in range(times):
        places = rng.choice(population, size=labels, replace=False)
        owner = np.searchsorted(edges, places, side="right") - 1
        seen = tuple(np.bincount(owner, minlength=len(counts) + 1)[: len(counts)].tolist())
        if seen not in outcomes:
            found = decide({n: tails[x] for n, x in zip(names, seen, strict=True)}, streams, Fraction(1, 20))
            outcomes[seen] = any(
                found[n].proven and count - (x if kind is not Statement.POLICY else 0) > base
                for n, count, x in zip(names, counts, seen, strict=True)
            )
        false += outcomes[seen]
    return false


def false_rests(rng: Generator, times: int, *, population: int, labels: int, risk: float) -> int:
    """The rate among delivered rows outside the pilot, for policies that deliver one half, the
    other half, and everything, the same wrong rows in each: how many delivered rows the pilot holds
    is drawn too, and comes out small for one half when it comes out large for the other.
    """
    limit, scope = Limit.of(risk), Scope(Statement.REST, labels, population)
    wrong = int(limit.share * (population - labels) / 2) + 4
    half = (population - wrong) // 2
    sizes = {"one half": wrong + half, "the other": population - half, "everything": population}
    level, false = Fraction(1, 20), 0
    outcomes: dict[tuple[int, int], bool] = {}
    for _ in range(times):
        seen = int(rng.hypergeometric(wrong, population - wrong, labels))
        here = int(rng.hypergeometric(half, population - wrong - half, labels - seen))
        if (seen, here) not in outcomes:
            held = {"one half": seen + here, "the other": labels - here, "everything": labels}
            tails = {n: evidence(limit, scope, held[n], seen, sizes[n]) for n in sizes}
            found = decide(tails, fixed_sequence(list(sizes)), level)
            outcomes[seen, here] = any(
                found[n].proven and wrong - seen > limit.share * (sizes[n] - held[n]) for n in sizes
            )
        false += outcomes[seen, here]
    return false


def false_pilots(rng: Generator, times: int, *, labels: int, risk: float) -> int:
    """A policy at the forbidden rate, tested after every label; proven at any moment counts."""
    level = Fraction(1, 20)
    return sum(sequential_tail(rng.random(labels) < risk, risk).at_most(level) for _ in range(times))


SIMULATIONS: dict[str, tuple[Callable[..., int], dict[str, Any]]] = {
    "bound, 100 of 2,000 wrong, 200 drawn": (false_bounds, {"population": 2000, "wrong": 100, "drawn": 200}),
    "bound, 7 of 300 wrong, 150 drawn": (false_bounds, {"population": 300, "wrong": 7, "drawn": 150}),
    "bound, 1 of 1,000 wrong, 950 drawn": (false_bounds, {"population": 1000, "wrong": 1, "drawn": 950}),
    "sequence, 10 of 200 wrong, all drawn": (false_sequences, {"population": 200, "wrong": 10, "drawn": 200}),
    "sequence, 60 of 150 wrong, all drawn": (false_sequences, {"population": 150, "wrong": 60, "drawn": 150}),
    "sequence, 1 of 100 wrong, all drawn": (false_sequences, {"population": 100, "wrong": 1, "drawn": 100}),
    "choose, Holm, 10 policies just above 5 %, 200 labels": (
        false_choices,
        {"policies": 10, "labels": 200, "risk": 0.05},
    ),
    "statement 'rest' among delivered, a chain of overlapping policies": (
        false_rests,
        {"population": 900, "labels": 300, "risk": 0.05},
    ),
    "pilot tested after each of 300 labels": (false_pilots, {"labels": 300, "risk": 0.05}),
    **{
        f"statement '{statement}', {'a chain' if chain else 'Holm'} of five policies{', at a depth' if deep else ''}": (
            false_statements,
            {"statement": statement, "population": 900, "labels": 300, "risk": 0.05, "chain": chain, "deep": deep},
        )
        for statement in ("policy", "file", "rest")
        for chain in (True, False)
        for deep in (False, True)
        if not (deep and statement == "policy")
    },
}


def simulate(name: str, *, times: int, seed: int) -> dict[str, Any]:
    """How often the promise was false, out of `times`."""
    function, settings = SIMULATIONS[name]
    rng = np.random.default_rng([seed, *map(ord, name)])
    false = int(function(rng, times, **settings))
    return {"simulation": name, "times": times, "false": false, "rate": false / times, "allowed": 1 - CONFIDENCE}
