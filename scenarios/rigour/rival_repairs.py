"""Repairs of any data, whether the premise holds or not, against every explanation in exact
rationals.

Small fields with whole numbers; answers lie on the lattice where explanations tie, or nearly. For
each set of at most k units (and each check that may be wrong) the least residual is computed by
elimination in rationals. Nothing may be called contradicted that some set explains, nothing
consistent that none explains, and every explanation must be within its bound. Where
nothing is noisy, a value that is given in spite of ambiguity is that of every unique explanation.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

import rrf_design as rrf
from rrf_design.errors import InputError

METHODS = ("auto", "exact", "convex", "discrete")


class DrawnRepair:
    """One field with its data, drawn by a seed: B, c, the radius and the answers, as plain numbers
    beside the problem.
    """

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng([21, seed])
        count = int(rng.integers(2, 6))
        self.k = 1 if rng.random() < 0.75 else 2
        self.names = [f"n{i}" for i in range(count)]
        self.epsilon = float(rng.choice([0.0, 0.0, 0.125, 0.5, 1.0]))
        own = rng.random() >= 0.3
        units = [name if own else f"u{int(rng.integers(count))}" for name in self.names]
        self.unit = dict(zip(self.names, units, strict=True))
        relations: list[dict[str, Any]] = []
        anchors: list[dict[str, Any]] = []
        self.rows: list[list[float]] = []
        for number in range(int(rng.integers(1, 3 * count))):
            tail, head = (int(i) for i in rng.choice(count, 2, replace=False))
            scale = float(rng.choice([1, 1, 2, -1, 0.5]))
            ends = {"tail": self.names[tail], "head": self.names[head]}
            relations.append(
                {"id": f"r{number}", **ends, "transport": {"scale": scale}, "offset": float(rng.integers(-2, 3))}
            )
            self.rows.append([float(i == head) - scale * (i == tail) for i in range(count)])
        for number in range(int(rng.integers(0, 3 * count))):
            place = int(rng.integers(count))
            anchors.append({"id": f"x{number}", "node": self.names[place], "value": float(rng.integers(-3, 4))})
            self.rows.append([float(i == place) for i in range(count)])
        head_: dict[str, Any] = {"k": self.k} | ({"epsilon": self.epsilon} if self.epsilon else {})
        if rng.random() < 0.4:
            head_["deliver"] = [str(n) for n in rng.choice(self.names, int(rng.integers(1, count + 1)), replace=False)]
        if rng.random() < 0.3:
            head_["delta"] = float(rng.choice([0.5, 2.0, 8.0]))
        self.wrong = int(rng.random() < 0.3)
        if self.wrong:
            head_["wrong_checks"] = 1
        step = self.epsilon / 4 if self.epsilon and rng.random() < 0.7 else 1.0
        self.answers = [float(rng.integers(-3, 4)) + step * float(rng.integers(-2, 3)) for _ in self.names]
        if rng.random() < 0.5:  # a truth, a little noise, and k answers that are off
            truth = rng.integers(-2, 3, count).astype(float)
            for at, row in enumerate(self.rows):
                value = float(np.dot(row, truth)) + (step * 0.5 * float(rng.integers(-1, 2)) if self.epsilon else 0.0)
                block = relations[at] if at < len(relations) else anchors[at - len(relations)]
                block["offset" if at < len(relations) else "value"] = value
            self.answers = [float(value) for value in truth]
            for place in rng.choice(count, min(self.k, count), replace=False):
                self.answers[place] += step * float(rng.integers(-4, 5))
        self.aims = [float(b["offset"]) for b in relations] + [float(b["value"]) for b in anchors]
        self.blocks = [str(block["id"]) for block in (*relations, *anchors)]
        nodes = [{"id": name} | ({} if own else {"unit": self.unit[name]}) for name in self.names]
        self.wanted: list[str] = head_.get("deliver", self.names)
        self.problem = rrf.Problem(**head_, nodes=nodes, relations=relations, anchors=anchors)

    def explanations(self) -> list[tuple[dict[str, Any], bool, bool]]:
        """Field, whether it is the only one of its set, and whether its residual is clearly inside
        the radius; for every set that explains the data.
        """
        whole = [[_exact(x) for x in row] for row in self.rows]
        said = [_exact(x) for x in self.answers]
        syndrome = [
            sum((b * y for b, y in zip(row, said, strict=True)), _exact(0)) - _exact(aim)
            for row, aim in zip(whole, self.aims, strict=True)
        ]
        limit, found = _exact(self.epsilon) ** 2, []
        units = sorted(set(self.unit.values()))
        for chosen in combinations(units, min(self.k, len(units))):
            columns = [i for i, name in enumerate(self.names) if self.unit[name] in chosen]
            for gone in [None, *(self.blocks if self.wrong else [])]:
                kept = [at for at, block in enumerate(self.blocks) if block != gone]
                square, error, unique = least(
                    [[whole[r][c] for c in columns] for r in kept], [syndrome[r] for r in kept], width=len(columns)
                )
                if square <= limit:
                    off = dict(zip(columns, error, strict=True))
                    field = {name: said[i] - off.get(i, 0) for i, name in enumerate(self.names)}
                    found.append((field, unique, not self.epsilon or square < limit * _exact(1 - 2.0**-20)))
        return found


def _exact(value: float) -> Any:
    from flint import fmpq

    return fmpq(*float(value).as_integer_ratio())


def least(matrix: list[list[Any]], aim: list[Any], *, width: int) -> tuple[Any, list[Any], bool]:
    """The least ‖aim − matrix·e‖² in rationals, an e of so many entries that attains it, and
    whether it is the only one; there may be no rows.
    """
    zero = _exact(0)
    normal = [
        [sum((row[i] * row[j] for row in matrix), zero) for j in range(width)]
        + [sum((row[i] * value for row, value in zip(matrix, aim, strict=True)), zero)]
        for i in range(width)
    ]
    pivots: list[int] = []
    for column in range(width):
        found = next((r for r in range(len(pivots), width) if normal[r][column] != 0), None)
        if found is None:
            continue
        top = len(pivots)
        normal[top], normal[found] = normal[found], normal[top]
        normal[top] = [x / normal[top][column] for x in normal[top]]
        for r in range(width):
            if r != top and normal[r][column] != 0:
                factor = normal[r][column]
                normal[r] = [x - factor * y for x, y in zip(normal[r], normal[top], strict=True)]
        pivots.append(column)
    error = [zero] * width
    for at, column in enumerate(pivots):
        error[column] = normal[at][width]
    rest = [
        value - sum((b * e for b, e in zip(row, error, strict=True)), zero)
        for row, value in zip(matrix, aim, strict=True)
    ]
    return sum((x * x for x in rest), zero), error, len(pivots) == width


def rival_case(seed: int) -> dict[str, Any]:
    """One repair, and what is false in it."""
    drawn, method = DrawnRepair(seed), METHODS[seed % len(METHODS)]
    try:
        found = rrf.repair(
            drawn.problem, {n: [y] for n, y in zip(drawn.names, drawn.answers, strict=True)}, method=method
        )
    except InputError:  # a method that knows nothing of units or suspects says so
        return {"method": method, "verdict": "refused", "faults": []}
    return {"method": method, "verdict": str(found.verdict), "faults": faults(drawn, found)}


def faults(drawn: DrawnRepair, found: Any) -> list[str]:
    """What the repair says that some explanation, or none, belies."""
    known, verdict, result = drawn.explanations(), str(found.verdict), []
    slack = 1e-7 * (1 + max(map(abs, drawn.answers)))
    if verdict == "contradicted" and any(clear for _, _, clear in known):
        result.append("contradicted, though something explains the data")
    if verdict == "consistent" and not known:
        result.append("consistent, though nothing explains the data")
    if verdict == "checked":  # decided by what a check says, whatever was answered
        told = drawn.aims[drawn.blocks.index(found.decided_by)]
        if any(found.repaired[name] != (told,) for name in drawn.wanted):
            result.append("checked, and not what the check says")
    for field, unique, _ in known:
        far = {n: abs(float(field[n]) - v[0]) for n, v in found.repaired.items() if v is not None}
        if verdict == "consistent" and sum(far[n] ** 2 for n in drawn.wanted) ** 0.5 > found.error_bound + slack:
            result.append("consistent, though an explanation is beyond the bound")
        if verdict == "ambiguous" and unique and not drawn.epsilon and max(far.values(), default=0.0) > slack:
            result.append("a value is given that an explanation does not have")
    return result
