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

from scenarios.kit import Context, Done, Part, Report, Row, Scenario
from scenarios.kit.exact_elimination import ExactGram
from scenarios.kit.rows import batches, column, count, missing, pick, seeds_of, totals, values, where
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
    return ExactGram(columns).above(range(len(counts)), level, wanted=counts, strictly=strictly)


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
    cells = [{"question": question, "family": family} for question in QUESTIONS for family in FAMILIES]
    timed = ({"timed": what, "nodes": nodes} for what, nodes in context["timed"])
    return [*(batch for cell in cells for batch in batches(each, BATCH, **cell)), *timed]


def run(context: Context, part: Part) -> Row:
    if "timed" in part:
        return timed(part["timed"], part["nodes"])
    rows = [judge(part["question"], field(part["family"], seed)) for seed in seeds_of(part)]
    return {
        **pick(part, "question family"),
        "fields": len(rows),
        "lower_above": missing(rows, "lower_ok"),
        "upper_below": missing(rows, "upper_ok"),
        "exact": count(rows, "exact"),
        "zero": count(rows, "zero"),
    }


def report(context: Context, done: Sequence[Done]) -> Report:
    clocks = values(done, "timed")
    counted = "fields lower_above upper_below exact zero"
    rows = [
        {"question": question, "family": family, **totals(values(done, question=question, family=family), counted)}
        for question in QUESTIONS
        for family in FAMILIES
    ]
    fields, low, high = totals(rows, "fields lower_above upper_below").values()
    # Floats can't always tell a nearly singular field from a singular one: it is bounded.
    asked = [row for row in rows if row["question"] != "units" and row["family"] != "near-singular"]
    exact, of = totals(asked, "exact fields").values()
    rooted = max(column(where(clocks, question="one delivered value"), "seconds"), default=0.0)
    suspect = max((c["seconds"] for c in clocks if c["question"] != "one delivered value"), default=0.0)
    quick = context.quick and f"{rooted:.3f} s and {suspect:.3f} s (quick size)"
    page = context.page()
    times = [f"{clock['question']} of {clock['nodes']:,} nodes in {clock['seconds']:.2g} s" for clock in clocks]
    page.answer = (
        f"{2 * fields - low - high:,} of {2 * fields:,} bounds on {fields:,} questions about small fields hold in exact"
        " arithmetic" + (f"; timed were {' and '.join(times)}." if times else ".")
    )
    page.none("lower", low, f"of {fields} above the truth")
    page.none("upper", high, f"of {fields} below the truth")
    page.check("exact", exact == of, f"{exact} of {of} exact")
    page.check("rooted", rooted <= 0.5, f"{rooted:.3f} s", unless=quick)
    page.check("suspects", suspect <= 5, f"{suspect:.3f} s", unless=quick)
    page.table("fields", rows)
    page.table("times", clocks)
    shares = {}
    for question in QUESTIONS:
        own = totals(where(rows, question=question), counted)
        size = max(own["fields"], 1)
        wrong = own["lower_above"] / size + own["upper_below"] / size
        shares[f"{question}: {wrong:.1%} wrong"] = float(own["exact"] / size)
    page.bars("exact", shares, y="share of answers that are exact, not only bounds")
    return page


SCENARIO = Scenario.declared("protection", parts, run, report)
