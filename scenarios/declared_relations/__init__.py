"""What a problem file may say beyond two nodes and sharp errors: sums, pairs that nobody can tell
apart, answers that are all a little off.

Each claim is held to its definition by arithmetic of its own, in exact rationals. Relations among
several nodes: the rows are written down by hand, every set of 2k units is gone through, and both
bounds of the margin are checked. Rivals: both explanations of a certificate are added up again.
Tails: the widening of the radius is compared with BᵀB, and a repair of answers that are as far off
as declared with the truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

import rrf_design as rrf
from scenarios.declared_relations.bent_fields import judge_bent
from scenarios.declared_relations.jointly import judge_joint
from scenarios.kit import Context, Done, Part, Report, Row, Scenario
from scenarios.kit.exact_elimination import semidefinite
from scenarios.kit.rows import batches, grouped, seeds_of, totals, values
from scenarios.protection import choices, holds

QUESTIONS = ("several nodes", "rivals", "tails", "nonlinear", "nonlinear premises", "joint noise")
TOPICS = {
    "several nodes": "relations among several answers",
    "rivals": "pairs of rival explanations",
    "tails": "answers that are all a little off",
    "nonlinear": "products",
    "nonlinear premises": "products and clauses with units, delivered values and wrong checks",
    "joint noise": "plans with joint noise",
}
BATCH = 100
EPSILON, TAIL = 0.125, 0.25


def declared(seed: int, question: str) -> tuple[Any, Any, list[list[int]], list[int]]:
    """A problem with sums, differences and rows, the matrix that it means, its units and what is
    delivered (columns).
    """
    rng = np.random.default_rng([QUESTIONS.index(question), seed])
    count = int(rng.integers(3, 6))
    relations: list[dict[str, Any]] = []
    rows = []
    for number in range(int(rng.integers(2, 5))):
        chosen = rng.permutation(count)[: int(rng.integers(2, min(count, 4) + 1))].tolist()
        row = np.zeros(count)
        kind = int(rng.integers(3))
        names = [f"n{i}" for i in chosen]
        if kind == 0:
            relations.append({"id": f"r{number}", "sum": names[1:], "head": names[0]})
            row[chosen[0]], row[chosen[1:]] = 1.0, -1.0
        elif kind == 1 and len(chosen) > 2:
            relations.append({"id": f"r{number}", "difference": names[1:3], "head": names[0]})
            row[chosen[:3]] = [1.0, -1.0, 1.0]
        else:
            factors = rng.integers(-3, 4, len(chosen)).astype(float)
            relations.append(
                {"id": f"r{number}", "rows": {n: [[f]] for n, f in zip(names, factors.tolist(), strict=True)}}
            )
            row[chosen] = factors
        rows.append(row)
    anchors = []
    for i in range(count):
        if rng.random() < 0.6:
            anchors.append({"id": f"a{i}", "node": f"n{i}", "value": 0.0})
            rows.append(np.eye(count)[i])
    nodes: list[dict[str, Any]] = [{"id": f"n{i}"} for i in range(count)]
    units = [[i] for i in range(count)]
    if rng.random() < 0.4:
        nodes[0]["unit"] = nodes[1]["unit"] = "pair"
        units = [[0, 1], *([i] for i in range(2, count))]
    deliver = list(range(count))
    settings: dict[str, Any] = {"epsilon": EPSILON}
    if rng.random() < 0.5:
        deliver = sorted(rng.choice(count, int(rng.integers(1, count)), replace=False).tolist())
        settings["deliver"] = [f"n{i}" for i in deliver]
    if question == "tails":
        settings["tail"] = TAIL
    problem = rrf.Problem(nodes=nodes, relations=relations, anchors=anchors, **settings)
    return problem, np.array(rows), units, deliver


def judge_several(seed: int) -> bool:
    """Both bounds of the margin against every pair of units, exactly."""
    problem, matrix, units, deliver = declared(seed, "several nodes")
    found = problem.margin()
    case = (matrix, units, deliver, [list(range(len(matrix)))], [0])
    asked = list(choices("delivered", case))
    above = found.upper * (1 + 1e-15) + 5e-324
    sound = found.lower == 0.0 or all(holds(*one, found.lower, strictly=False) for one in asked)
    return sound and any(not holds(*one, above, strictly=True) for one in asked)


def judge_rivals(seed: int) -> bool:
    """Both explanations of a certificate: few enough wrong, within ε, and as far apart as the
    margin allows.
    """
    problem, matrix, units, deliver = declared(seed, "rivals")
    document = rrf.certify(problem, budgets=()).document
    pair, upper = document["rivals"], document["margin"]["upper"]
    if pair is None:
        return False
    apart = [Fraction(0)] * matrix.shape[1]
    for side, sign in (("first", 1), ("second", -1)):
        places = [int(name[1:]) for name in pair[side]["support"]]
        if sum(any(place in unit for place in places) for unit in units) > 1:
            return False
        for place, (value,) in zip(places, pair[side]["direction"], strict=True):
            apart[place] += sign * Fraction(value)
    image = [sum((Fraction(b) * e for b, e in zip(row, apart, strict=True)), Fraction(0)) for row in matrix.tolist()]
    fits = sum(x * x for x in image) <= 4 * Fraction(EPSILON) ** 2
    length2 = sum((apart[c] ** 2 for c in deliver), Fraction(0))
    wanted = 1.0 if upper <= 1e-9 else 2 * EPSILON / upper
    reached = Fraction(wanted) * Fraction(1 - 1e-6)
    return bool(fits and length2 >= max(reached, Fraction(pair["distance"])) ** 2)


def judge_tail(seed: int) -> bool:
    """‖Br‖ is covered for every r, and a repair of answers that are as far off as can be keeps its
    promise.
    """
    problem, matrix, _, deliver = declared(seed, "tails")
    rng = np.random.default_rng(seed)
    document = rrf.certify(problem, budgets=()).document
    image = Fraction(document["error"]["tail"]["image"]) / Fraction(TAIL)
    covered = _covers(matrix, image)
    push = np.linalg.svd(matrix)[2][0] if rng.random() < 0.5 else rng.standard_normal(matrix.shape[1])
    error = 0.999 * TAIL * push / np.linalg.norm(push)
    error[int(rng.integers(len(error)))] += float(rng.choice([0.5, 5.0, -50.0]))
    fixed = rrf.repair(problem, {f"n{i}": float(x) for i, x in enumerate(error)}, method="exact")  # the truth is 0
    if fixed.verdict == "contradicted":
        return False
    if fixed.error_bound is None:
        return covered
    said = fixed.repaired if fixed.verdict == "checked" else fixed.nearest
    off = [said[f"n{i}"] for i in deliver]
    size2 = sum((Fraction(part[0]) ** 2 for part in off if part is not None), Fraction(0))
    return bool(covered and size2 <= Fraction(fixed.error_bound) ** 2)


def _covers(matrix: Any, gain: Fraction) -> bool:
    """gain²·I − BᵀB is positive semidefinite, by elimination in rationals."""
    exact = [[Fraction(float(x)) for x in row] for row in matrix]
    order = range(len(exact[0]))
    squares = [[-sum((row[i] * row[j] for row in exact), Fraction(0)) for j in order] for i in order]
    for i in order:
        squares[i][i] += gain**2
    return semidefinite(squares)


def products(seed: int) -> tuple[Any, dict[str, float], list[tuple[list[int], int]]]:
    """A problem of products with one wrong answer, its answers, and the products (factors, head) by
    place.
    """
    rng = np.random.default_rng([7, seed])
    factors = int(rng.integers(2, 4))
    truth = rng.choice([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0, 4.0], factors).tolist()
    made: list[tuple[list[int], int]] = []
    for _ in range(int(rng.integers(1, 4))):
        inner = sorted(rng.choice(factors, 2, replace=False).tolist())
        made.append((inner, len(truth)))
        truth.append(truth[inner[0]] * truth[inner[1]])
    names = [f"n{i}" for i in range(len(truth))]
    problem = rrf.Problem(
        local_radius=float(rng.choice([0.05, 0.25, 1.0])),
        nodes=[{"id": name} for name in names],
        nonlinear=[
            {"id": f"p{number}", "product": [names[i] for i in inner], "head": names[head]}
            for number, (inner, head) in enumerate(made)
        ],
        anchors=[
            {"id": f"a{i}", "node": name, "value": truth[i]} for i, name in enumerate(names) if rng.random() < 0.7
        ],
    )
    said = dict(zip(names, truth, strict=True))
    said[names[int(rng.integers(len(names)))]] += float(rng.choice([-2.0, -0.125, 0.0, 0.5, 7.0]))
    return problem, said, made


def judge_nonlinear(seed: int) -> bool:
    """Where a local repair is consistent, no other field with one wrong answer fits exactly within
    its radius and beyond its bound.

    Every row is linear in each answer, so all fields with one wrong answer that fit are found in
    rationals.
    """
    problem, said, made = products(seed)
    fixed = rrf.repair(problem, said)
    details = fixed.diagnostics.details
    if details["estimated_curvature"] > details["curvature"] * (1 + 1e-9):
        return False  # a sample beyond the bound
    if not fixed.verdict.passes:
        return True
    answers = [Fraction(value) for value in said.values()]
    repaired = [Fraction(part[0]) if part else Fraction(0) for part in fixed.repaired.values()]
    anchors = {int(anchor.nodes[0][1:]): Fraction(float(anchor.value)) for anchor in problem.anchors}
    bound2 = Fraction(fixed.error_bound or 0.0) ** 2
    for wrong in range(len(answers)):
        for value in _fitting(answers, wrong, made, anchors):
            other = [value if i == wrong else answer for i, answer in enumerate(answers)]
            far2 = sum(((a - b) ** 2 for a, b in zip(other, repaired, strict=True)), Fraction(0))
            if bound2 < far2 <= Fraction(problem.local_radius or 0.0) ** 2:
                return False
    return True


def _fitting(
    answers: list[Fraction], wrong: int, made: list[tuple[list[int], int]], anchors: dict[int, Fraction]
) -> list[Fraction]:
    """The values of one answer with which every product and anchor holds exactly; of a line of
    them, two.
    """
    rows = []
    for inner, head in made:

        def row(v: Fraction, inner: list[int] = inner, head: int = head) -> Fraction:
            at = [v if i == wrong else answer for i, answer in enumerate(answers)]
            return at[head] - at[inner[0]] * at[inner[1]]

        rows.append((row(Fraction(1)) - row(Fraction(0)), row(Fraction(0))))
    rows += [
        (Fraction(i == wrong), (Fraction(0) if i == wrong else answers[i]) - value) for i, value in anchors.items()
    ]
    found = {-constant / slope for slope, constant in rows if slope != 0} or {
        answers[wrong],
        answers[wrong] + Fraction(1, 64),
    }
    return [v for v in found if all(slope * v + constant == 0 for slope, constant in rows)]


JUDGES = {
    "several nodes": judge_several,
    "rivals": judge_rivals,
    "tails": judge_tail,
    "nonlinear": judge_nonlinear,
    "nonlinear premises": judge_bent,
    "joint noise": judge_joint,
}


def parts(context: Context) -> list[Part]:
    return [batch for question in QUESTIONS for batch in batches(context["fields"], BATCH, question=question)]


def run(context: Context, part: Part) -> Row:
    failed = [seed for seed in seeds_of(part) if not JUDGES[part["question"]](seed)]
    return {"question": part["question"], "fields": part["count"], "failed": len(failed)}


def report(context: Context, done: Sequence[Done]) -> Report:
    rows = grouped(values(done), "question", "fields=sum failed=sum")
    fields, failed = totals(rows, "fields failed").values()
    page = context.page()
    for row in rows:
        page.none(row["question"].replace(" ", "-"), row["failed"], f"of {row['fields']} failed")
    pieces = [f"{TOPICS[row['question']]} {row['fields'] - row['failed']:,} of {row['fields']:,}" for row in rows]
    page.answer = (
        f"{fields - failed:,} of {fields:,} random problem files mean what they declare, checked in exact arithmetic:"
        f" {'; '.join(pieces)}."
    )
    page.table("fields", rows)
    held = {f"{TOPICS[row['question']]}: {row['failed']:,} failed": row["fields"] - row["failed"] for row in rows}
    page.bars("held", held, y="files that mean what they declare")
    return page


SCENARIO = Scenario.declared("declared-relations", parts, run, report)
