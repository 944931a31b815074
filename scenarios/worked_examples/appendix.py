"""Examples of the appendices that need more than a margin: certificates, the sandbox, the local
theory, simulated models.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np

from rrf_design import Noise, certify
from rrf_design.certificates import curvature_bound, local_certificate
from rrf_design.errors import Refused
from rrf_design.problem import Problem
from rrf_design.repairing import finite_alternatives, repair_many, repair_nonlinear
from rrf_design.responses import parsers
from scenarios.premise_on_real_answers.cells import complete_field
from scenarios.worked_examples.cases import Case, gamma, incidence
from solvers import margin


def as_problem(matrix: Any, k: int = 1) -> Any:
    """A problem whose operator is the matrix."""
    nodes = [str(n) for n in range(len(matrix[0]))]
    block = {
        "id": "rows",
        "nodes": nodes,
        "rows": [list(map(float, row)) for row in matrix],
        "value": [0.0] * len(matrix),
    }
    return Problem(name="example", k=k, nodes=[{"id": n, "dim": 1} for n in nodes], anchors=[block])


def noisy_stability() -> list[Case]:
    """The bound of a certificate, for operators with the stated margins."""
    cases = []
    for words, least, epsilon, expected in (
        ("2ε/γ at γ = 0.5, ε = 0.02", 0.5, 0.02, 0.08),
        ("at γ = 1", 1.0, 0.02, 0.04),
        ("at γ = 0.5 with half the noise", 0.5, 0.01, 0.04),
    ):
        issued = certify(as_problem(least * np.eye(2)), noise=Noise(epsilon), budgets=())
        cases.append(Case(words, math.inf if issued.error_bound is None else issued.error_bound, expected))
    return cases


def signature_collision() -> list[Case]:
    """Two programs, run in the sandbox: the same on eight public inputs, different on a negative
    one.
    """
    intended = "```python\ndef solve(x):\n    return x if x >= 0 else -x\n```"
    other = "```python\ndef solve(x):\n    return x\n```"
    public, longer = [[x] for x in range(8)], [[x] for x in (*range(8), -1)]
    distances = []
    for tests in (public, longer):
        first, second = parsers.get({"name": "code", "tests": tests}).parse_many([intended, other])
        assert first.value is not None
        assert second.value is not None
        distances.append(float(np.linalg.norm(np.subtract(first.value, second.value))))
    return [
        Case("distance of the public signatures", distances[0], 0.0),
        Case("distance with one more test", distances[1], 2.0),
    ]


def nonlinear_ambiguity() -> list[Case]:
    """sin z = 0 at 0 and at π: what the local certificate covers, and what it refuses to say."""
    from flint import arb

    L = curvature_bound(lambda z: [[[-z[0].sin()]]], [0.0], radius=1.0)
    local = local_certificate([[1.0]], k=1, radius=1.0, curvature=L, jacobian_error=0.0)
    fits = finite_alternatives(lambda z: np.sin(z), {"z": [0.0, 1.0, math.pi]})
    try:
        repair_nonlinear(lambda z: z, {"z": 0.0}, k=1, claim="global")
        refused = False
    except Refused:
        refused = True
    return [
        Case("tangent margin at 0", local.gamma_lower, 1.0),
        Case("curvature within 1 of 0", L, holds=float(arb(1).sin()) <= L <= float(arb(1).sin()) + 1e-6),
        Case("the certificate holds in that ball", local.effective, holds=local.holds),
        Case("π lies outside every ball it can cover", local.largest_radius, holds=local.largest_radius < math.pi),
        Case("candidates that fit: 0 and π", float(len(fits)), 2.0),
        Case("a global claim is refused", float(refused), 1.0),
    ]


def curvature() -> list[Case]:
    """z + Lz²/2 takes the value of 0 once more at −2/L: exactly where the certificate 2γ/L ends."""
    cases = []
    for L in (0.5, 1.0, 4.0):
        twin = -2.0 / L
        ends = local_certificate([[1.0]], k=1, radius=0.0, curvature=L, jacobian_error=0.0).largest_radius
        inside, outside = (
            local_certificate([[1.0]], k=1, radius=share * abs(twin), curvature=L, jacobian_error=0.0)
            for share in (0.99, 1.0)
        )
        cases += [
            Case(f"residual at the twin, L = {L:g}", twin + L * twin**2 / 2, 0.0),
            Case(f"radius at which the certificate ends, L = {L:g}", ends, abs(twin)),
            Case(
                f"it holds just inside and not there, L = {L:g}",
                inside.effective,
                holds=inside.holds and not outside.holds,
            ),
        ]
    return cases


def four_node_spectrum() -> list[Case]:
    D = incidence(4, [(0, 1), (1, 2), (2, 3)])
    B = np.vstack([D, [[1.0, 0.0, 0.0, 0.0]]])
    found = margin(B, k=1)
    return [
        Case("norm of an interior column", float(np.linalg.norm(B[:, 1])), math.sqrt(2)),
        Case("norm of the last column", float(np.linalg.norm(B[:, 3])), 1.0),
        Case("γ₁ of the anchored chain", gamma(B), math.sqrt((3 - math.sqrt(5)) / 2)),
        Case("its worst pair is the last two nodes", float(found.value), holds=tuple(found.support) == (2, 3)),
        Case("γ₁ without the anchor stays positive", gamma(D), holds=gamma(D) > 0),
        Case("γ₂ without the anchor", gamma(D, 2), 0.0),
    ]


def laplacian_formula() -> list[Case]:
    """γ_k² is the least eigenvalue of a principal part of L_w + Q, for every fiber dimension."""
    rng = np.random.default_rng(3)
    gaps = {1: 0.0, 2: 0.0}
    for _ in range(12):
        edges = [edge for edge in combinations(range(6), 2) if rng.random() < 0.6]
        weights, strengths = rng.uniform(0.5, 2.0, size=len(edges)), rng.uniform(0, 1, size=6) * (rng.random(6) < 0.4)
        C = np.sqrt(weights)[:, None] * incidence(6, edges)
        G = C.T @ C + np.diag(strengths**2)
        B = np.vstack([C, np.diag(strengths)])
        for k in gaps:
            parts = [S for size in range(1, 2 * k + 1) for S in combinations(range(6), size)]
            least = min(float(np.linalg.eigvalsh(G[np.ix_(S, S)])[0]) for S in parts)
            found = gamma(np.kron(B, np.eye(2)), k, [2] * 6)
            gaps[k] = max(gaps[k], abs(found**2 - max(least, 0.0)))
    return [Case(f"largest difference on random graphs, k = {k}", gap, holds=gap < 1e-9) for k, gap in gaps.items()]


def invertible_transports() -> list[Case]:
    """Flat transports T_ij = U_j U_i⁻¹ with any invertible U: the margin moves by at most κ₊/κ₋,
    and it does move.
    """
    rng = np.random.default_rng(4)
    edges = [(0, 1), (1, 2), (2, 3), (0, 3), (1, 3)]
    plain = gamma(incidence(4, edges))
    ratios, worst = [], 0.0
    for _ in range(30):
        U = [np.eye(2) + 0.4 * rng.normal(size=(2, 2)) for _ in range(4)]
        values = [np.linalg.svd(u, compute_uv=False) for u in U]
        factor = max(v[0] for v in values) / min(v[-1] for v in values)
        rows = []
        for tail, head in edges:
            block = np.zeros((2, 8))
            block[:, 2 * tail : 2 * tail + 2] = -U[head] @ np.linalg.inv(U[tail])
            block[:, 2 * head : 2 * head + 2] = np.eye(2)
            rows.append(block)
        ratio = gamma(np.vstack(rows), 1, [2] * 4) / plain
        ratios.append(ratio)
        worst = max(worst, ratio / factor, 1 / (ratio * factor))
    return [
        Case("largest change of the margin, in units of κ₊/κ₋", worst, holds=worst <= 1 + 1e-9),
        Case("it is a real change: smallest ratio seen", min(ratios), holds=min(ratios) < 0.9),
    ]


def models_a_and_b() -> list[Case]:
    """A is right at 90 % of nodes and errs everywhere alike, B at 60 % and errs here and there;
    both under the complete design of five nodes.
    """
    rng = np.random.default_rng(5)
    fields: dict[str, list[list[float]]] = {"A": [], "B": []}
    for number in range(40):
        fields["A"].append([7.0 + 2.0 * (number % 10 == 0)] * 5)
        answers = np.full(5, 7.0)
        answers[rng.choice(5, size=2, replace=False)] += [1.0, 3.0]
        fields["B"].append(answers.tolist())
    right, repaired = {}, {}
    for model, own in fields.items():
        right[model] = float(np.mean(np.array(own) == 7.0))
        failed = [field for field in own if field != [7.0] * 5]
        done = repair_many(complete_field(5, 2), [{str(n): v for n, v in enumerate(field)} for field in failed]).items
        ok = [
            all(v is not None and abs(float(np.ravel(v)[0]) - 7) < 1e-9 for v in item.repaired.values())
            for item in done
        ]
        repaired[model] = float(np.mean(ok))
    return [
        Case("A: share of right answers", right["A"], 0.9),
        Case("B: share of right answers", right["B"], 0.6),
        Case("A: share of its failed fields that repair recovers", repaired["A"], 0.0),
        Case("B: share of its failed fields that repair recovers", repaired["B"], 1.0),
    ]
