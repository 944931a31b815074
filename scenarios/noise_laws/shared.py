"""Noise that blocks share, on small random fields: what `noise` and `correlation` do to B, held to
the definition.

Every block is whitened by itself and its variance raised by c, so that shared noise counts as
independent. What has to be true, whatever part of the blocks is held: the covariance of the noise
in the rows of B is at most the identity. That is checked in exact rationals from the rows of B and
the declared Σ (up to 10⁻⁹, the rounding of the whitening itself); the margin is checked against
plain enumeration, and against the margin of the same blocks as one block with Σ, which loses
nothing and so is never smaller. Some Σ are singular.
"""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import Any

import numpy as np

from rrf_design.certificates import certify
from rrf_design.problem import Problem
from scenarios.kit.exact_elimination import semidefinite
from scenarios.kit.rows import count, totals

ROUNDING = 1e-9


def case(seed: int) -> tuple[Any, list[int], Any, float | None]:
    """Problem with up to four labels of one annotator, the dimension of each, Σ, and the
    correlation where that was declared.
    """
    rng = np.random.default_rng([23, seed])
    count = int(rng.integers(2, 5))
    dims = [int(d) for d in rng.integers(1, 3, count)] if rng.random() < 0.5 else [1] * count
    total = sum(dims)
    rho = round(float(rng.uniform()), 2) if rng.random() < 0.4 else None
    spreads = np.exp(rng.normal(size=count))
    if rho is None:
        half = rng.standard_normal((total, int(rng.integers(1, total + 1))))
        sigma = half @ half.T
        scale = np.repeat(spreads, dims) / np.sqrt(np.diag(sigma))
        sigma = sigma * np.outer(scale, scale)
    else:  # the worst that the correlation allows: every coordinate shared with its namesake
        sigma = np.zeros((total, total))
        ends = np.cumsum([0, *dims])
        for i in range(count):
            for j in range(count):
                part = np.eye(dims[i], dims[j]) * spreads[i] * spreads[j] * (1.0 if i == j else rho)
                sigma[ends[i] : ends[i + 1], ends[j] : ends[j + 1]] = part
    sigma = (sigma + sigma.T) / 2
    ends = np.cumsum([0, *dims])
    own = [sigma[a:b, a:b].tolist() for a, b in pairwise(ends)]
    shared = {"covariance": sigma.tolist()} if rho is None else {"correlation": rho}
    names = [f"n{i}" for i in range(count)]
    problem = Problem(
        k=1,
        nodes=[{"id": name, "dim": dim} for name, dim in zip(names, dims, strict=True)],
        relations=[
            {"id": f"r{i}", "tail": names[i], "head": names[i + 1]} for i in range(count - 1) if dims[i] == dims[i + 1]
        ],
        anchors=[
            {"id": f"a{i}", "node": names[i], "value": [0.0] * dims[i], "covariance": own[i], "cost": 1.0}
            for i in range(count)
        ],
        noise=[{"id": "annotator", "blocks": [f"a{i}" for i in range(count)], **shared}],
    )
    return problem, dims, sigma, rho


def judge(seed: int) -> dict[str, Any]:
    """Every part of the blocks that may be held: is the noise covered, is the margin right, is
    nothing lost only to caution?
    """
    problem, dims, sigma, rho = case(seed)
    ends = np.cumsum([0, *dims])
    together = _as_one_block(problem, dims, sigma)
    uncovered = wrong = held_parts = above = 0
    for size in range(1, len(dims) + 1):
        for held in combinations(range(len(dims)), size):
            held_parts += 1
            operator = problem.operator([f"a{i}" for i in held])
            rows = operator.matrix.toarray()
            first = next((j for j, kind in enumerate(operator.block_kinds) if kind == "anchor"), 0)
            own = rows[int(operator.block_offsets[first]) :]
            columns = [c for i in held for c in range(ends[i], ends[i + 1])]
            left = own[:, columns]
            uncovered += not at_most_identity(left, sigma[np.ix_(columns, columns)])
            found = problem.margin([f"a{i}" for i in held])
            plain = enumerated(rows, dims)
            wrong += not (
                found.lower <= plain * (1 + ROUNDING) + 1e-12 and plain <= found.upper * (1 + ROUNDING) + 1e-12
            )
            if size == len(dims):
                above += found.lower > together * (1 + 1e-5)
    return {
        "held": held_parts,
        "uncovered": uncovered,
        "wrong": wrong,
        "above": above,
        "singular": bool(np.linalg.matrix_rank(sigma) < len(sigma)),
        "declared": "covariance" if rho is None else "correlation",
    }


def at_most_identity(left: Any, sigma: Any) -> bool:
    """(1 + 10⁻⁹)·I − LΣLᵀ is positive semidefinite: exact rationals, by elimination."""
    from flint import fmpq, fmpq_mat

    def exact(matrix: Any) -> Any:
        return fmpq_mat(*matrix.shape, [fmpq(*float(x).as_integer_ratio()) for x in matrix.ravel()])

    noise = exact(left) * exact(sigma) * exact(left).transpose()
    one, size = fmpq(*(1.0 + ROUNDING).as_integer_ratio()), range(left.shape[0])
    return semidefinite([[(one if i == j else fmpq(0)) - noise[i, j] for j in size] for i in size])


def enumerated(rows: Any, dims: list[int]) -> float:
    """γ_1 by its definition."""
    ends = np.cumsum([0, *dims])
    values = []
    for pair in combinations(range(len(dims)), min(2, len(dims))):
        columns = [c for i in pair for c in range(ends[i], ends[i + 1])]
        sizes = np.linalg.svd(rows[:, columns], compute_uv=False)
        values.append(float(sizes[-1]) if len(sizes) == len(columns) <= len(rows) else 0.0)
    return min(values)


def _as_one_block(problem: Any, dims: list[int], sigma: Any) -> float:
    """The margin of everything, with the labels as one block: whitened by Σ itself."""
    whole = {"id": "all", "nodes": [node.id for node in problem.nodes], "rows": np.eye(sum(dims)).tolist()}
    one = Problem(
        k=1,
        nodes=problem.nodes,
        relations=problem.relations,
        anchors=[{**whole, "value": [0.0] * sum(dims), "covariance": sigma.tolist()}],
    )
    return float(one.margin().upper)


def batch(seeds: range) -> dict[str, Any]:
    found = [judge(seed) for seed in seeds]
    return {"fields": len(found), "singular": count(found, "singular"), **totals(found, "held uncovered wrong above")}


def coverage(correlation: float, *, trials: int, seed: int) -> dict[str, Any]:
    """How often shared noise leaves the radius that a certificate states for it, and one for
    independent noise.
    """
    count = 5
    labels = [{"id": f"a{i}", "node": f"n{i}", "sigma": 0.5, "value": 0.0} for i in range(count)]
    nodes = [{"id": f"n{i}"} for i in range(count)]
    blocks = [label["id"] for label in labels]
    aware = Problem(nodes=nodes, anchors=labels, noise=[{"id": "one", "blocks": blocks, "correlation": correlation}])
    issued = certify(aware)
    naive = certify(Problem(nodes=nodes, anchors=labels))
    draws = np.random.default_rng([seed, 29]).multivariate_normal(
        np.zeros(count), 0.25 * (correlation + (1 - correlation) * np.eye(count)), size=trials
    )
    whitened = np.linalg.norm(draws * aware.operator().matrix.toarray().diagonal(), axis=1)
    return {
        "correlation": correlation,
        "draws": trials,
        "outside": float((whitened > issued.document["noise"]["epsilon"]).mean()),
        "outside_if_taken_for_independent": float(
            (np.linalg.norm(draws * 2.0, axis=1) > naive.document["noise"]["epsilon"]).mean()
        ),
        "allowed": 0.05,
        "bound": issued.error_bound,
        "bound_if_independent": naive.error_bound,
    }
