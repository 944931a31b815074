"""Theorems and propositions of the paper that print no number: each tried on drawn operators, by
the library's own margins, certificates and decoders.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rrf_design import Noise, certify
from rrf_design.certificates import Tolerances, local_certificate
from rrf_design.problem import Problem
from rrf_design.repairing import finite_alternatives, log_coordinates, repair_nonlinear
from scenarios.kit.designs import DESIGNS, prepared
from scenarios.worked_examples.appendix import as_problem
from scenarios.worked_examples.cases import Case, gamma, incidence
from solvers import gauge_directions, group_spark, margin
from solvers.decoding import SupportDecoder, group_bpdn, group_lasso
from solvers.decoding.convex import GroupProblem

Array = NDArray[np.float64]


def _operators(seed: int, count: int, *, nodes: int = 5) -> list[Array]:
    """Random small operators; some with fewer rows than nodes, some with entries that make columns
    dependent.
    """
    rng = np.random.default_rng(seed)
    return [rng.integers(-2, 3, size=(int(rng.integers(2, nodes + 2)), nodes)).astype(np.float64) for _ in range(count)]


def blind_risk() -> list[Case]:
    """Two fields with one defect: any estimate is off by half their distance on one of them, and
    their middle attains that.
    """
    D = incidence(3, [(0, 1), (1, 2)])
    z, h = np.array([17.0, 17.0, 17.0]), np.full(3, 2.0)
    half = float(np.linalg.norm(h)) / 2

    def worst(estimate: Array) -> float:
        return max(float(np.linalg.norm(estimate - z)), float(np.linalg.norm(estimate - z - h)))

    rng = np.random.default_rng(6)
    least = min(worst(z + rng.normal(scale=2.0, size=3)) for _ in range(500))
    return [
        Case("difference of the two observations", float(np.linalg.norm(D @ h)), 0.0),
        Case("risk of the middle: half the distance", worst(z + h / 2), half),
        Case("no drawn estimate has less", least, holds=least >= half),
    ]


def identifiability() -> list[Case]:
    """γ_k > 0, spark above 2k and unique explanations say the same of every operator (all pairs of
    errors of k nodes, by rank).
    """
    differ = pairs = 0
    for B in _operators(7, 120):
        spark = group_spark(B).value
        assert spark is not None
        for k in (1, 2):
            unique = all(
                np.linalg.matrix_rank(B[:, S]) == len(S)
                for size in range(1, 2 * k + 1)
                for S in map(list, combinations(range(B.shape[1]), size))
            )
            pairs += 1
            differ += not ((gamma(B, k) > 0) == (spark > 2 * k) == unique)
    return [Case(f"of {pairs} operators and budgets, those on which the conditions differ", float(differ), 0.0)]


def monotone() -> list[Case]:
    """More budget never raises the margin, another row never lowers it."""
    rng = np.random.default_rng(8)
    budget = rows = 0
    for B in _operators(9, 80):
        first, second = gamma(B, 1), gamma(B, 2)
        budget += second > first + 1e-9
        rows += any(gamma(np.vstack([B, rng.normal(size=(1, B.shape[1]))]), k) < gamma(B, k) - 1e-9 for k in (1, 2))
    return [
        Case("operators whose margin rises with k", float(budget), 0.0),
        Case("operators whose margin falls with one more row", float(rows), 0.0),
    ]


def minimax() -> list[Case]:
    """The two errors behind the lower bound, for the designs of the replay; and the bracket that
    certificates print.
    """
    epsilon, R = 0.1, 0.2
    apart, seen, brackets = [], [], []
    for design in DESIGNS:
        ready = prepared(design.name, 1)
        found = margin(ready.matrix, k=1)
        h = np.asarray(found.direction, dtype=np.float64)
        size = R if ready.gamma == 0.0 else min(R, 2 * epsilon / ready.gamma)
        first, second = np.zeros(4), np.zeros(4)
        places = np.flatnonzero(np.abs(h) > 1e-12)
        first[places[0]] = size * h[places[0]]
        second[places[1:]] = -size * h[places[1:]]
        apart.append(float(np.linalg.norm(first - second)) / size)
        seen.append(float(np.linalg.norm(ready.matrix @ (first - second))) / (2 * epsilon))
        issued = certify(as_problem(ready.matrix), noise=Noise(epsilon), budgets=(), largest_error=R)
        told = issued.document["error"]["minimax"]
        brackets.append(told["lower"] <= size / 2 * (1 + 1e-9) and told["upper"] >= size * (1 - 1e-9))
    return [
        Case("two one-node errors, their distance over min(R, 2ε/γ): least of ten designs", min(apart), 1.0),
        Case("what tells them apart, over 2ε: at most", max(seen), holds=max(seen) <= 1 + 1e-9),
        Case("designs whose certificate brackets the risk by these", float(sum(brackets)), float(len(DESIGNS))),
    ]


def separate_tolerances() -> list[Case]:
    """Relations and anchors with tolerances of their own, for the truth and for the estimate: the
    corollary's bound, and pairs drawn within them.
    """
    D, A = incidence(4, [(0, 1), (0, 2), (0, 3), (1, 2)]), np.array([[0.0, 0.0, 0.0, 1.0]])
    B = np.vstack([D, A])
    true, own = (0.3, 0.1), (0.2, 0.05)
    expected = math.hypot(true[0] + own[0], true[1] + own[1]) / gamma(B)
    problem = _related(D, A)
    tolerances = Tolerances(true[0], own[0], true[1], own[1])
    issued = certify(problem, noise=Noise(1.0), budgets=(), tolerances=tolerances)
    told = issued.document["error"]["tolerances"]["bound"]
    rng = np.random.default_rng(10)
    largest = 0.0
    for _ in range(400):
        h = np.zeros(4)
        h[rng.choice(4, size=2, replace=False)] = rng.normal(size=2)
        size, related, anchored = (float(np.linalg.norm(seen)) for seen in (h, D @ h, A @ h))
        largest = max(largest, size * min((true[0] + own[0]) / related, (true[1] + own[1]) / max(anchored, 1e-12)))
    return [
        Case("bound of the certificate", told, holds=expected * (1 - 1e-9) <= told <= expected * (1 + 1e-6)),
        Case("largest distance of two errors within the tolerances", largest, holds=largest <= expected * (1 + 1e-9)),
    ]


def _related(D: Array, A: Array) -> Any:
    """A problem with rows of both kinds."""
    nodes = [str(n) for n in range(D.shape[1])]
    return Problem(
        name="tolerances",
        k=1,
        nodes=[{"id": n, "dim": 1} for n in nodes],
        relations=[
            {"id": f"r{row}", "tail": str(int(np.argmin(values))), "head": str(int(np.argmax(values)))}
            for row, values in enumerate(D)
        ],
        anchors=[
            {"id": f"a{row}", "node": str(int(np.argmax(values))), "value": [0.0]} for row, values in enumerate(A)
        ],
    )


def stable_convex_recovery() -> list[Case]:
    """Where the null-space property is certified, basis pursuit keeps to C₁σ_k/√k + C₂ε with the
    certificate's constants; the kernel (1, 0.4, 0.4) is refused.
    """
    B = incidence(5, list(combinations(range(5), 2)), [0])
    epsilon = 0.05
    section = certify(as_problem(B), noise=Noise(epsilon), budgets=()).document["nullspace"]
    rng = np.random.default_rng(11)
    used = 0.0
    for _ in range(60):
        error = rng.normal(scale=0.02, size=5)
        error[int(rng.integers(5))] += 3.0
        noise = rng.normal(size=len(B))
        noise *= epsilon / np.linalg.norm(noise)
        found = group_bpdn(B, syndrome=B @ error + noise, epsilon=epsilon)
        tail = float(np.abs(error).sum() - np.abs(error).max())
        bound = section["c1"] * tail + section["c2"] * epsilon
        used = max(used, float(np.linalg.norm(found.error - error)) / bound)
    bad = np.linalg.svd(np.array([[1.0, 0.4, 0.4]]))[2][1:]
    refused = certify(as_problem(bad), noise=Noise(epsilon), budgets=()).document["nullspace"]
    return [
        Case("the property is certified", float(section["status"] == "certified"), 1.0),
        Case("largest error of basis pursuit, over its bound", used, holds=used <= 1.0),
        Case("the property of the example is refuted", float(refused["status"] == "refuted"), 1.0),
    ]


def proximal_rate() -> list[Case]:
    """Proximal gradient steps: the objective gap after t steps is at most ‖e⁰ − e*‖²/(2ηt)."""
    rng = np.random.default_rng(12)
    B, penalty = rng.normal(size=(8, 12)), 0.5
    s = rng.normal(size=8)
    problem = GroupProblem(B, [3] * 4)
    best = group_lasso(B, [3] * 4, syndrome=s, penalty=penalty).error

    def objective(e: Array) -> float:
        return float(0.5 * np.sum((B @ e - s) ** 2) + penalty * problem.penalty(e))

    step, e, used = 1.0 / problem.lipschitz, np.zeros(12), 0.0
    start = float(np.sum(np.square(best)))
    for t in range(1, 201):
        e = problem.shrink(e - step * (B.T @ (B @ e - s)), step * penalty)
        used = max(used, (objective(e) - objective(best)) * 2 * step * t / start)
    return [Case("largest gap of 200 steps, over its bound", used, holds=used <= 1.0)]


def holonomy() -> list[Case]:
    """Three nodes in a cycle whose transports turn by an angle when composed: the kernel is what
    the turn leaves in place.
    """
    cases = []
    for words, turn, fixed in (
        ("transports that close", np.eye(3), 3.0),
        ("a turn about one axis", np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]]), 1.0),
        ("a reflection in a plane", np.diag([1.0, 1.0, -1.0]), 2.0),
    ):
        D = np.zeros((9, 9))
        for row, (tail, head, transport) in enumerate(((0, 1, np.eye(3)), (1, 2, np.eye(3)), (2, 0, turn))):
            D[3 * row : 3 * row + 3, 3 * tail : 3 * tail + 3] = -transport
            D[3 * row : 3 * row + 3, 3 * head : 3 * head + 3] += np.eye(3)
        found = sum(gauge.dimension for gauge in gauge_directions(D, [3] * 3))
        cases.append(Case(f"gauge directions with {words}", float(found), fixed))
    return cases


def weak_and_strong_anchors() -> list[Case]:
    """Two nodes: γ₁ ≈ a/√2 for a weak anchor and at most 1 for a strong one; with anchors at both
    nodes nothing bounds it.
    """

    def one(a: float) -> float:
        return gamma(np.array([[-1.0, 1.0], [a, 0.0]]))

    both = [gamma(np.array([[-1.0, 1.0], [a, 0.0], [0.0, a]])) for a in (10.0, 1000.0)]
    return [
        Case("γ₁/a at a = 0.001", one(1e-3) / 1e-3, holds=abs(one(1e-3) / 1e-3 - math.sqrt(0.5)) < 1e-6),
        Case("γ₁ at a = 1000 stays below the relation's", one(1e3), holds=0.999 < one(1e3) <= 1.0),
        Case("γ₁ with a = 1000 at both nodes, over a = 10", both[1] / both[0], 100.0),
    ]


def candidate_centred() -> list[Case]:
    """The tangent margin at a candidate, less what the Jacobian may be off by and the curvature: z²
    near 1, seen from a candidate within 0.1.
    """
    candidate, away, r = 1.1, 0.1, 0.5
    slope, L = 2 * candidate, 2.0
    local = local_certificate([[slope]], k=1, radius=r, curvature=L, jacobian_error=L * away)
    worst = min(abs((1 + h) ** 2 - 1) / abs(h) for h in np.linspace(-r, r, 1001) if h)
    return [
        Case("γ(J) − δ_J − Lr/2", local.effective, slope - L * away - L * r / 2),
        Case("least ‖M(z* + h) − M(z*)‖/‖h‖ in the ball is no smaller", worst, holds=worst >= local.effective - 1e-9),
    ]


def nonlinear_relations() -> list[Case]:
    """Powers are linear in logarithms; a clause has other solutions far away, which a finite search
    finds; Gauss–Newton mends a product.
    """
    B = np.array([[-3.0, 1.0, 0.0], [0.0, -2.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    answers = np.ravel(list(log_coordinates({"a": 2.0, "b": 8.0, "c": 100.0}).values()))
    found = SupportDecoder(B).decode(B @ answers - [0.0, 0.0, math.log(2.0), math.log(8.0)], k=1)
    clause = finite_alternatives(lambda z: z[0] * z[1] - z[2], {"a": [0.0, 1.0], "b": [0.0, 1.0], "c": [0.0, 1.0]})
    fixed = repair_nonlinear(
        lambda z: [z[0] * z[1] - z[2], z[0] - 6.0, z[1] - 7.0], {"a": 6.0, "b": 7.0, "c": 44.0}, k=1
    )
    return [
        Case("z₂ = z₁³, z₃ = z₂²: the wrong third answer becomes", float(np.exp(answers - found.error)[2]), 64.0),
        Case("truth values that satisfy z₁z₂ = z₃", float(len(clause)), 4.0),
        Case("6 · 7 with 44 answered: Gauss–Newton gives", float(np.ravel(fixed.repaired["c"])[0]), 42.0),
        Case("and blames the product alone", float(fixed.support == ("c",)), 1.0),
    ]
