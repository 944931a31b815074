"""Products and clauses with units, delivered values and checks that may be wrong: random fields,
and an attack on what local repair promises.

The tangent margin is held to plain enumeration: every set of 2k units, every choice of 2a suspect
blocks taken away, the derivative written down by hand. The promise is attacked with fields: of one
unit every choice of values from a grid (the truth's among them), every choice of checks set aside;
one that fits in exact rationals, lies within the radius and further off than the bound on what is
delivered would break it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np

import rrf_design as rrf

EXACT = Fraction(1, 10**18)


@dataclass(frozen=True)
class BentCase:
    """A problem with its answers; rows as (kind, places): a product's last place is its head, a
    clause's places count as false where 0.
    """

    problem: Any
    answers: tuple[float, ...]
    truth: tuple[float, ...]
    rows: tuple[tuple[str, tuple[int, ...], float], ...]
    units: tuple[tuple[int, ...], ...]
    deliver: tuple[int, ...]
    suspects: tuple[int, ...]
    wrong_checks: int


def bent_case(seed: int) -> BentCase:
    """Two or three factors, products of them, sometimes a clause, anchors; one wrong unit, and
    perhaps a wrong check.
    """
    rng = np.random.default_rng([11, seed])
    factors = int(rng.integers(2, 4))
    truth = rng.choice([-2.0, -1.0, 1.0, 2.0, 3.0], factors).tolist()
    rows: list[tuple[str, tuple[int, ...], float]] = []
    for _ in range(int(rng.integers(1, 3))):
        inner = sorted(rng.choice(factors, 2, replace=False).tolist())
        rows.append(("product", (*inner, len(truth)), 0.0))
        truth.append(truth[inner[0]] * truth[inner[1]])
    if rng.random() < 0.3:
        rows.append(("clause", (len(truth), len(truth) + 1), 0.0))
        truth += [1.0, float(rng.integers(2))]
    count, bent = len(truth), len(rows)
    rows += [("anchor", (i,), truth[i]) for i in range(count) if rng.random() < 0.7]
    rows += [("anchor", (int(i),), truth[int(i)]) for i in rng.choice(count, int(rng.integers(0, 3)))]
    wrong_checks = int(rng.random() < 0.5)
    suspects = [j for j in range(len(rows)) if rng.random() < 0.5] if wrong_checks else []
    names = [f"n{i}" for i in range(count)]
    owner = rng.integers(max(2, count - 1), size=count) if rng.random() < 0.6 else np.arange(count)
    units = tuple(tuple(np.flatnonzero(owner == u).tolist()) for u in sorted(set(owner.tolist())))
    deliver = sorted(rng.choice(count, int(rng.integers(1, count + 1)), replace=False).tolist())
    answers = list(truth)
    for i in units[int(rng.integers(len(units)))]:
        answers[i] += float(rng.choice([-2.0, -0.125, 0.0, 0.5, 3.0]))
    stated = [value for _, _, value in rows]
    if suspects and rng.random() < 0.7:
        bad = suspects[int(rng.integers(len(suspects)))]
        stated[bad] += float(rng.choice([-1.0, 0.25, 2.0])) * (rows[bad][0] == "anchor")
    rows = [(kind, places, value) for (kind, places, _), value in zip(rows, stated, strict=True)]
    trusted = [{"trusted": j not in suspects} if suspects else {} for j in range(len(rows))]
    problem = rrf.Problem(
        k=1,
        epsilon=float(rng.choice([0.0, 0.1])),
        delta=float(rng.choice([0.25, 1.0, 4.0])),
        local_radius=float(rng.choice([0.05, 0.25, 1.0])),
        deliver=[names[i] for i in deliver],
        wrong_checks=wrong_checks if suspects else 0,
        nodes=[{"id": name, "unit": f"u{owner[i]}"} for i, name in enumerate(names)],
        nonlinear=[_bent(j, rows[j], names) | trusted[j] for j in range(bent)],
        anchors=[
            {"id": f"b{j}", "node": names[rows[j][1][0]], "value": rows[j][2], **trusted[j]}
            for j in range(bent, len(rows))
        ],
    )
    return BentCase(
        problem, tuple(answers), tuple(truth), tuple(rows), units, tuple(deliver), tuple(suspects), problem.wrong_checks
    )


def _bent(number: int, row: tuple[str, tuple[int, ...], float], names: list[str]) -> dict[str, Any]:
    kind, places, _ = row
    if kind == "clause":
        return {"id": f"b{number}", "clause": [names[places[0]], f"not {names[places[1]]}"]}
    return {"id": f"b{number}", "product": [names[i] for i in places[:-1]], "head": names[places[-1]]}


def judge_bent(seed: int) -> bool:
    """Whether the tangent margin is the enumerated one, and nothing that fits nearby is further off
    than promised.
    """
    case = bent_case(seed)
    names = [node.id for node in case.problem.nodes]
    fixed = rrf.repair(case.problem, dict(zip(names, case.answers, strict=True)))
    found = fixed.nearest
    middle = [found[name][0] for name in names]
    plain = tangent_margin(case, middle)
    if not abs(fixed.gamma - plain) <= 1e-6 * max(1.0, plain):
        return False
    if fixed.verdict.passes and not fixed.error_bound <= case.problem.delta * (1 + 1e-9):
        return False
    if fixed.error_bound is None:
        return not fixed.verdict.passes
    bound2 = Fraction(fixed.error_bound) ** 2 + EXACT
    return all(_apart(case, other, middle) <= bound2 for other in _attacks(case, middle))


def tangent_margin(case: BentCase, middle: list[float]) -> float:
    """min ‖Jh‖/‖h_D‖ over two units and with 2a suspect blocks taken away, by going through all of
    them.
    """
    tangent = np.zeros((len(case.rows), len(middle)))
    for j, (kind, places, _) in enumerate(case.rows):
        if kind == "anchor":
            tangent[j, places[0]] = 1.0
        elif kind == "clause":
            tangent[j, places[0]], tangent[j, places[1]] = -middle[places[1]], 1.0 - middle[places[0]]
        else:
            tangent[j, list(places)] = -middle[places[1]], -middle[places[0]], 1.0
    best = np.inf
    for pair in combinations(case.units, min(2, len(case.units))):
        columns = [i for unit in pair for i in unit]
        wanted = np.isin(columns, case.deliver)
        if not wanted.any():
            continue
        for gone in combinations(case.suspects, min(2 * case.wrong_checks, len(case.suspects))):
            block = np.delete(tangent, gone, axis=0)[:, columns]
            best = min(best, _least(block[:, wanted], block[:, ~wanted]))
    return float(best)


def _least(own: Any, free: Any) -> float:
    if free.shape[1] and free.any():
        lengths = np.linalg.norm(free, axis=0)
        free = free[:, lengths > 0.0] / lengths[lengths > 0.0]  # however short, a column that is there can be leant on
        left, values, _ = np.linalg.svd(free, full_matrices=False)
        left = left[:, values > 1e-9 * values[0]]
        own = own - left @ (left.T @ own)
    return 0.0 if own.shape[0] < own.shape[1] else float(np.linalg.svd(own, compute_uv=False)[-1])


def _attacks(case: BentCase, middle: list[float]) -> Iterator[list[Fraction]]:
    """Fields that one wrong unit and the wrong checks allow, within the radius."""
    radius2 = Fraction(case.problem.local_radius) ** 2
    steps = [Fraction(case.problem.local_radius) * Fraction(s, 4) for s in range(-4, 5)]
    for unit in case.units:
        choices = [
            sorted({Fraction(case.truth[i]), Fraction(case.answers[i]), *(Fraction(middle[i]) + s for s in steps)})
            for i in unit[:3]
        ]
        for values in product(*choices):
            other = [Fraction(x) for x in case.answers]
            for i, value in zip(unit[:3], values, strict=True):
                other[i] = value
            far2 = sum(((a - Fraction(b)) ** 2 for a, b in zip(other, middle, strict=True)), Fraction(0))
            if far2 <= radius2 and _fits(case, other):
                yield other


def _fits(case: BentCase, field: list[Fraction]) -> bool:
    """With the worst suspect rows set aside, within ε."""
    squares = [_row(row, field) ** 2 for row in case.rows]
    spared = sorted((squares[j] for j in case.suspects), reverse=True)[: case.wrong_checks]
    return sum(squares, Fraction(0)) - sum(spared, Fraction(0)) <= Fraction(case.problem.epsilon) ** 2


def _row(row: tuple[str, tuple[int, ...], float], field: list[Fraction]) -> Fraction:
    kind, places, value = row
    if kind == "anchor":
        return field[places[0]] - Fraction(value)
    if kind == "clause":
        return (1 - field[places[0]]) * field[places[1]]
    return field[places[2]] - field[places[0]] * field[places[1]]


def _apart(case: BentCase, other: list[Fraction], middle: list[float]) -> Fraction:
    return sum(((other[i] - Fraction(middle[i])) ** 2 for i in case.deliver), Fraction(0))
