"""Examples and closed forms of the paper that margins, decoders and plain arithmetic decide; each
returns cases (what, computed, expected).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from scenarios.worked_examples.cases import Case, gamma, incidence
from solvers import margin
from solvers.decoding import SupportDecoder, group_bpdn

Array = NDArray[np.float64]


def three_paraphrases() -> list[Case]:
    D = incidence(3, [(0, 1), (1, 2)])
    shared = np.full(3, 19.0)
    anchored = np.vstack([D, [1.0, 0.0, 0.0]])
    return [
        Case("defect of the shared wrong answer", float(np.linalg.norm(D @ shared)), 0.0),
        Case("γ₁ without anchor: one wrong answer can be found", gamma(D), math.sqrt((3 - math.sqrt(5)) / 2)),
        Case("what the anchor sees of the shift", float((anchored @ shared - [0, 0, 17])[-1]), 2.0),
    ]


def one_outlier() -> list[Case]:
    D = incidence(4, [(0, 1), (0, 2), (0, 3)])
    y = np.array([42.0, 42.0, 47.0, 42.0])
    found = SupportDecoder(D).decode(D @ y, k=1)
    return [
        Case("explanations with one wrong answer", float(len(found.explanations)), 1.0),
        Case("its node", float(found.support[0]), 2.0),
        Case("its size", float(found.error[2]), 5.0),
        Case("γ₁ of the star", gamma(D), math.sqrt((4 - math.sqrt(8)) / 2)),
        Case("γ₁ when the third node is isolated", gamma(incidence(4, [(0, 1), (0, 3)])), 0.0),
    ]


def scaling() -> list[Case]:
    raw = np.array([[-3.0, 1.0], [1.0, 0.0]])
    canonical = np.array([[-1.0, 1.0], [1.0, 0.0]])
    # The same problem in canonical coordinates needs the norm of z₂ = 3 u₂ and of the row it came
    # from.
    metric = np.diag([1.0, 1.0 / 3.0])
    weighed = np.diag([3.0, 1.0]) @ canonical @ metric
    return [
        Case("residual of a shared error (c, 3c)", float(np.linalg.norm(np.array([-3.0, 1.0]) @ [2.0, 6.0])), 0.0),
        Case("canonical coordinates with the metric carried along", gamma(weighed), gamma(raw)),
        Case("without it the number changes", gamma(canonical), holds=abs(gamma(canonical) - gamma(raw)) > 1e-3),
    ]


def affine_shift() -> list[Case]:
    t = 5.0
    lifted = np.array([[-1.0, -t, 1.0, 0.0], [0.0, -1.0, 0.0, 1.0]])
    tangent = lifted[:, [0, 2]]
    return [
        Case("residual of a valid lifted pair", float(np.linalg.norm(lifted @ [7.0, 1.0, 7.0 + t, 1.0])), 0.0),
        Case(
            "the tangent restriction is the canonical row",
            float(np.abs(tangent[0] - [-1.0, 1.0]).max() + np.abs(tangent[1]).max()),
            0.0,
        ),
    ]


def disconnected_pairs() -> list[Case]:
    edges = [(0, 1), (2, 3)]
    D = incidence(4, edges)
    pair = margin(D, k=1).indistinguishable_pair()
    same = float(np.linalg.norm(D @ (np.asarray(pair[0]) - np.asarray(pair[1])))) if pair is not None else math.inf
    return [
        Case("γ₁", gamma(D), 0.0),
        Case("two one-node errors with one syndrome: their difference", same, 0.0),
        Case("γ₁ with one component anchored", gamma(incidence(4, edges, [0])), 0.0),
        Case("γ₁ with both anchored", gamma(incidence(4, edges, [0, 2])), math.sqrt((3 - math.sqrt(5)) / 2)),
    ]


def large_component() -> list[Case]:
    D = incidence(10, [(i, i + 1) for i in range(9)])
    value = gamma(D, 2)
    return [
        Case("rank of ten connected nodes", float(np.linalg.matrix_rank(D)), 9.0),
        Case("γ₂ is positive although D is singular", value, holds=value > 0),
        Case("γ₂ of a path: four nodes at its end", value, 2 * math.sin(math.pi / 18)),
    ]


def partial_anchor() -> list[Case]:
    def field(n: int) -> Array:
        D = np.kron(incidence(n, [(i, i + 1) for i in range(n - 1)]), np.eye(2))
        seen = np.zeros((1, 2 * n))
        seen[0, 0] = 1.0
        return np.vstack([D, seen])

    small, large = gamma(field(2), 1, [2, 2]), gamma(field(4), 1, [2] * 4)
    return [
        Case("γ₁ of two nodes with one coordinate anchored", small, 0.0),
        Case("γ₁ of four nodes with one coordinate anchored", large, holds=large > 0),
    ]


def literal_duplicates() -> list[Case]:
    R = np.array([[-1.0, 1.0]])
    raw, normalised = np.vstack([R] * 4), np.vstack([R / 2] * 4)
    return [
        Case("Gram matrix of four normalised copies", float(np.abs(normalised.T @ normalised - R.T @ R).max()), 0.0),
        Case("singular value of four raw copies", float(np.linalg.svd(raw)[1][0] / np.linalg.svd(R)[1][0]), 2.0),
    ]


def convex_failure() -> list[Case]:
    h = np.array([1.0, 0.4, 0.4])
    # B has exactly this null space: an orthonormal basis of its complement as rows.
    B = np.linalg.svd(h[None])[2][1:]
    e = np.array([1.0, 0.0, 0.0])
    exact = SupportDecoder(B).decode(B @ e, k=1)
    convex = group_bpdn(B, syndrome=B @ e, epsilon=0.0)
    return [
        Case("γ₁ is positive", gamma(B), holds=gamma(B) > 0),
        Case(
            "exact repair returns the error",
            float(np.linalg.norm(exact.error - e)),
            holds=float(np.linalg.norm(exact.error - e)) < 1e-9,
        ),
        Case(
            "ℓ₁ norm of what basis pursuit prefers",
            float(np.abs(convex.error).sum()),
            holds=abs(float(np.abs(convex.error).sum()) - 0.8) < 1e-4,
        ),
        Case(
            "its distance to the error",
            float(np.linalg.norm(convex.error - e)),
            holds=float(np.linalg.norm(convex.error - e)) > 0.5,
        ),
    ]


def near_null() -> list[Case]:
    B = np.array([[1.0, -1.0], [1e-3 * math.sqrt(2), 0.0]])
    value = gamma(B)
    h = np.array([1.0, 1.0]) / math.sqrt(2)
    return [
        Case("‖Bh‖ of the unit perturbation", float(np.linalg.norm(B @ h)), 1e-3),
        Case("γ₁ is at most that", value, holds=0 < value <= 1e-3 + 1e-12),
        Case("how much of it noise of norm 0.01 conceals", 1e-2 / float(np.linalg.norm(B @ h)), 10.0),
    ]


def anchor_bias() -> list[Case]:
    B = np.vstack([incidence(4, [(0, 1), (0, 2), (0, 3)]), [[100.0, 0.0, 0.0, 0.0]]])
    y = np.full(4, 42.0)
    found = SupportDecoder(B).decode(B @ y - [0, 0, 0, 4300.0], k=1)
    value = gamma(B)
    return [
        Case("γ₁ with the heavy anchor", value, holds=value >= gamma(incidence(4, [(0, 1), (0, 2), (0, 3)]))),
        Case("the right answer at the anchored node becomes", float(round((y - found.error)[0], 2)), 43.0),
        Case(
            "what no single wrong answer explains: the residual that is left", found.residual, holds=found.residual > 1
        ),
    ]


def budget_dependence() -> list[Case]:
    D = incidence(4, [(i, j) for i in range(4) for j in range(i + 1, 4)])
    return [Case("γ₁ of the complete graph", gamma(D), math.sqrt(2)), Case("γ₂ of the same graph", gamma(D, 2), 0.0)]


def two_node_formula() -> list[Case]:
    return [
        Case(
            f"γ₁ of two nodes, anchor strength {a:g}",
            gamma(np.array([[-1.0, 1.0], [a, 0.0]])),
            math.sqrt((2 + a * a - math.sqrt(a**4 + 4)) / 2),
        )
        for a in (0.0, 0.01, 0.5, 1.0, 2.0, 10.0)
    ]


def path_bound() -> list[Case]:
    cases = []
    for n, a in ((4, 1.0), (10, 0.5), (30, 2.0)):
        B = np.vstack([incidence(n, [(i, i + 1) for i in range(n - 1)]), a * np.eye(n)[:1]])
        least = float(np.linalg.svd(B)[1][-1])
        bound = max(2 * n / a**2, 2 * n**2) ** -0.5
        cases.append(
            Case(f"σ_min of an anchored path of {n} nodes, a = {a:g}, is above its bound", least, holds=least >= bound)
        )
        cases.append(Case("and the restricted margin above it", gamma(B), holds=gamma(B) >= least - 1e-12))
    return cases


def component_criterion() -> list[Case]:
    """γ_k = 0 exactly when an unanchored component has at most 2k nodes, on random graphs."""
    import networkx as nx

    rng = np.random.default_rng(0)
    wrong = 0
    for _ in range(60):
        n = int(rng.integers(3, 10))
        graph = nx.gnp_random_graph(n, 0.25, seed=int(rng.integers(10**6)))
        anchors = [node for node in range(n) if rng.random() < 0.25]
        B = incidence(n, list(graph.edges), anchors)
        for k in (1, 2):
            small = any(len(c) <= 2 * k and not set(anchors) & c for c in nx.connected_components(graph))
            wrong += (gamma(B, k) == 0.0) != small
    return [Case("random graphs where the criterion fails", float(wrong), 0.0)]


def orthogonal_gauge() -> list[Case]:
    """Orthogonal typed transports leave the margin of the identity graph unchanged."""
    rng = np.random.default_rng(1)
    edges = [(0, 1), (1, 2), (2, 3), (0, 3), (1, 3)]
    U = [np.linalg.qr(rng.normal(size=(3, 3)))[0] for _ in range(4)]
    rows = []
    for tail, head in edges:
        block = np.zeros((3, 12))
        block[:, 3 * tail : 3 * tail + 3] = -U[head] @ U[tail].T
        block[:, 3 * head : 3 * head + 3] = np.eye(3)
        rows.append(block)
    return [Case("γ₁ with orthogonal transports", gamma(np.vstack(rows), 1, [3] * 4), gamma(incidence(4, edges)))]
