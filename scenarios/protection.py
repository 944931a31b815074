"""What fails together, what is delivered, which checks may be wrong: margins of each, held to plain
enumeration.

The definition as it is written: every set of 2k units, every choice of 2a suspect blocks, the small
matrix [B_S | E_R] with the columns that count. Both bounds are checked in exact rationals (columns
that do not count are eliminated first, and a zero pivot must have a zero row); nothing is shared
with the solver. Fields of whole numbers with dependent columns are among them: most of their
supports are singular, and floating point alone could decide none of those.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from scipy import sparse

from scenarios.kit.plots import bars
from scenarios.kit.report import Figure, Report
from scenarios.kit.scenario import Context, Done, Part, Scenario
from solvers import delivered_margin, margin, suspect_margin, wrong_check_margin

QUESTIONS = ("units", "delivered", "suspect values", "wrong checks", "wrong checks and values")
FAMILIES = ("gaussian", "graph", "whole numbers", "blind", "near-singular")
BATCH = 100


def field(family: str, seed: int) -> tuple[Any, list[list[int]], list[int], list[list[int]], list[int]]:
    """Matrix, units, delivered columns, row blocks and trusted blocks of one small field."""
    rng = np.random.default_rng([FAMILIES.index(family), seed])
    n = int(rng.integers(3, 6))
    rows = int(rng.integers(n, n + 4))
    if family == "graph":
        eye = np.eye(n)
        ties = [eye[i] - eye[j] for i, j in (rng.choice(n, 2, replace=False) for _ in range(rows))]
        matrix = np.vstack([ties, eye[rng.random(n) < 0.7] * rng.choice([1.0, 0.1])])
    elif family in ("whole numbers", "blind"):
        matrix = (rng.integers(-2, 3, (rows, n)) * (rng.random((rows, n)) < 0.7)).astype(float)
        if family == "blind":
            matrix[:, 1], matrix[:, 2] = matrix[:, 0], matrix[:, 0] - matrix[:, -1] * rng.integers(0, 2)
    else:
        matrix = rng.standard_normal((rows, n))
        if family == "near-singular":
            matrix[:, 1] = matrix[:, 0] + rng.standard_normal(rows) * 2.0 ** -int(rng.integers(10, 56))
    names = rng.permutation(n).tolist()
    units = [names[:2], *([c] for c in names[2:])] if rng.random() < 0.5 else [[c] for c in names]
    deliver = sorted(rng.choice(n, int(rng.integers(1, n + 1)), replace=False).tolist())
    cuts = sorted({0, len(matrix), *rng.integers(1, len(matrix), 4).tolist()})
    blocks = [list(range(a, b)) for a, b in pairwise(cuts)]
    trusted = [b for b in range(1, len(blocks)) if rng.random() < 0.3]
    return matrix, units, deliver, blocks, trusted


def choices(question: str, case: tuple[Any, ...]) -> Iterator[tuple[Any, Any]]:
    """The definition: [B_S | E_R] and which of its columns count, for every S and R; k = a = 1."""
    matrix, units, deliver, blocks, trusted = case
    inside = set(deliver) if question in ("delivered", "suspect values") else set(range(matrix.shape[1]))
    if question == "wrong checks":
        inside = set()
    suspects = [b for b in range(len(blocks)) if b not in trusted] if question not in ("units", "delivered") else []
    for support in combinations(range(len(units)), min(2, len(units))):
        columns = [c for unit in support for c in units[unit]]
        for wrong in combinations(suspects, min(2, len(suspects))):
            rows = [r for b in wrong for r in blocks[b]]
            counts = [c in inside for c in columns] + [question.startswith("wrong")] * len(rows)
            if any(counts):
                yield np.hstack([matrix[:, columns], np.eye(len(matrix))[:, rows]]), np.array(counts)


def holds(columns: Any, counts: Any, level: float, *, strictly: bool) -> bool:
    """‖Ch‖ ≥ level·‖h‖ over the columns that count, for every h (> where that is not 0), in exact
    rationals.
    """
    from flint import fmpq, fmpq_mat

    def number(value: float) -> Any:
        return fmpq(*float(value).as_integer_ratio())

    order = [*np.flatnonzero(~counts), *np.flatnonzero(counts)]
    width, free = len(order), int((~counts).sum())
    exact = fmpq_mat(len(columns), width, [number(x) for x in columns[:, order].ravel()])
    work = (exact.transpose() * exact).tolist()
    for i in range(free, width):
        work[i][i] -= number(level) ** 2
    for p in range(width):
        pivot = work[p][p]
        if pivot < 0 or (strictly and p >= free and pivot == 0):
            return False
        if pivot == 0 and any(work[i][p] != 0 for i in range(p + 1, width)):
            return False
        for i in range(p + 1, width):
            if work[i][p] != 0:
                ratio = work[i][p] / pivot
                for j in range(p + 1, width):
                    work[i][j] -= ratio * work[p][j]
    return True


def solve(question: str, case: tuple[Any, ...]) -> Any:
    matrix, units, deliver, blocks, trusted = case
    if question == "units":
        return margin(matrix, units, k=1)
    if question == "delivered":
        return delivered_margin(matrix, units, deliver, k=1)
    if question == "suspect values":
        return suspect_margin(matrix, units, blocks, k=1, suspects=1, trusted=trusted, deliver=deliver)
    values = question.endswith("values")
    return wrong_check_margin(matrix, units, blocks, k=1, suspects=1, trusted=trusted, with_values=values)


def judge(question: str, case: tuple[Any, ...]) -> dict[str, Any]:
    """Solve one field; both bounds against every choice, exactly.

    The upper one must be reached by some choice.
    """
    found = solve(question, case)
    asked = list(choices(question, case))
    above = found.upper * (1 + 1e-15) + 5e-324
    return {
        "lower_ok": found.lower == 0.0 or all(holds(*one, found.lower, strictly=False) for one in asked),
        "upper_ok": any(not holds(*one, above, strictly=True) for one in asked),
        "exact": str(found.status) == "exact",
        "zero": found.value == 0.0,
    }


def timed(what: str, size: int) -> dict[str, Any]:
    """Seconds of one large question: the delivered value of a huge field, or 64 nodes with checks
    that may be wrong.
    """
    rng = np.random.default_rng(0)
    if what == "one delivered value":
        ends = rng.integers(0, size, (3 * size, 2))
        ends = ends[ends[:, 0] != ends[:, 1]]
        places = (np.repeat(np.arange(len(ends)), 2), ends.ravel())
        ties = sparse.csr_array((np.tile([-1.0, 1.0], len(ends)), places), shape=(len(ends), size))
        matrix = sparse.csr_array(sparse.vstack([ties, 0.3 * sparse.eye_array(size)]))

        def ask() -> Any:
            return delivered_margin(matrix, None, [size // 2], k=3)

    else:
        turned = np.roll(np.eye(size), 1, axis=1), np.roll(np.eye(size), 5, axis=1)
        matrix = np.vstack([np.eye(size) - one for one in turned]) * rng.uniform(0.7, 1.4, (2 * size, 1))

        def ask() -> Any:
            return suspect_margin(matrix, k=1, suspects=1)

    ask()  # compile
    began = time.perf_counter()
    found = ask()
    return {"question": what, "nodes": size, "seconds": time.perf_counter() - began, "status": str(found.status),
            "gamma": found.value}  # fmt: skip


def parts(context: Context) -> list[Part]:
    each = context["fields"] // len(FAMILIES)
    batches: list[Part] = [
        {"question": question, "family": family, "first": first, "count": min(BATCH, each - first)}
        for question in QUESTIONS
        for family in FAMILIES
        for first in range(0, each, BATCH)
    ]
    return [*batches, *({"timed": what, "nodes": nodes} for what, nodes in context["timed"])]


def run(context: Context, part: Part) -> dict[str, Any]:
    if "timed" in part:
        return timed(part["timed"], part["nodes"])
    seeds = range(part["first"], part["first"] + part["count"])
    rows = [judge(part["question"], field(part["family"], seed)) for seed in seeds]
    return {
        "question": part["question"],
        "family": part["family"],
        "fields": len(rows),
        "lower_above": sum(not row["lower_ok"] for row in rows),
        "upper_below": sum(not row["upper_ok"] for row in rows),
        "exact": sum(row["exact"] for row in rows),
        "zero": sum(row["zero"] for row in rows),
    }


def report(context: Context, done: Sequence[Done]) -> Report:
    values = [item.value for item in done if "family" in item.part]
    clocks = [item.value for item in done if "timed" in item.part]
    rows = []
    for question in QUESTIONS:
        for family in FAMILIES:
            mine = [v for v in values if v["question"] == question and v["family"] == family]
            counts = {k: sum(v[k] for v in mine) for k in ("fields", "lower_above", "upper_below", "exact", "zero")}
            rows.append({"question": question, "family": family, **counts})
    total = {key: sum(row[key] for row in rows) for key in ("fields", "lower_above", "upper_below")}
    # Floats can't always tell a nearly singular field from a singular one: it is bounded.
    asked = [row for row in rows if row["question"] != "units" and row["family"] != "near-singular"]
    exact, of = sum(row["exact"] for row in asked), sum(row["fields"] for row in asked)
    rooted = max((c["seconds"] for c in clocks if c["question"] == "one delivered value"), default=0.0)
    suspect = max((c["seconds"] for c in clocks if c["question"] != "one delivered value"), default=0.0)
    quick = f"{rooted:.3f} s and {suspect:.3f} s (quick size)"
    page = Report()
    page.answer = _answer(total, clocks)
    page.check("lower", total["lower_above"] == 0, f"{total['lower_above']} of {total['fields']} above the truth")
    page.check("upper", total["upper_below"] == 0, f"{total['upper_below']} of {total['fields']} below the truth")
    page.check("exact", exact == of, f"{exact} of {of} exact")
    page.check("rooted", rooted <= 0.5, f"{rooted:.3f} s", unless=context.quick and quick)
    page.check("suspects", suspect <= 5, f"{suspect:.3f} s", unless=context.quick and quick)
    page.table("fields", rows)
    page.table("times", clocks)
    page.figures.append(_picture(rows))
    return page


def _picture(rows: Sequence[dict[str, Any]]) -> Figure:
    def share(question: str, key: str) -> float:
        mine = [row for row in rows if row["question"] == question]
        return float(sum(row[key] for row in mine) / max(sum(row["fields"] for row in mine), 1))

    labels = [
        f"{question}: {share(question, 'lower_above') + share(question, 'upper_below'):.1%} wrong"
        for question in QUESTIONS
    ]
    return bars(
        "exact",
        labels,
        [share(question, "exact") for question in QUESTIONS],
        y="share of answers that are exact, not only bounds",
    )


def _answer(total: dict[str, int], clocks: Sequence[dict[str, Any]]) -> str:
    bounds, broken = 2 * total["fields"], total["lower_above"] + total["upper_below"]
    times = [f"{clock['question']} of {clock['nodes']:,} nodes in {clock['seconds']:.2g} s" for clock in clocks]
    return (
        f"{bounds - broken:,} of {bounds:,} bounds on {total['fields']:,} questions about small fields hold in exact"
        " arithmetic" + (f"; timed were {' and '.join(times)}." if times else ".")
    )


SCENARIO = Scenario.declared("protection", parts, run, report)
