"""Fields for large supports: those of the benchmark, timed with and without a limit, and small ones
that exact arithmetic can judge.

Graphs are random regular ones with identity relations and an anchor on one node in ten; dense
fields have unit Gaussian columns.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

import rrf_design as rrf
from rrf_design.builders import from_matrix
from scenarios.kit import Report
from solvers import delivered_margin, margin, support_margin

SPOILED = (
    "columns far apart",
    "rows far apart",
    "nearly equal columns",
    "equal columns",
    "entries that cancel",
    "rows without an entry",
    "an isolated node",
    "a node without a row",
    "faint links",
)
"""Thin or dense fields with something in them that is hard on floating point, or on who is
adjacent.
"""
FAMILIES = ("identity", "gaussian", "ternary", "half-empty", "dense", "integer", "disconnected", "cancelling", *SPOILED)
ENOUGH = 3600.0  # seconds for a certificate: nothing here needs them


def gaussian(rows: int, nodes: int, dim: int, seed: int) -> Any:
    """Gaussian columns of unit length."""
    matrix = np.random.default_rng([seed, rows, nodes, dim]).standard_normal((rows, nodes * dim))
    return matrix / np.linalg.norm(matrix, axis=0)


def regular_graph(nodes: int, degree: int, *, dim: int = 1, seed: int = 0) -> Any:
    """Identity relations along a random regular graph, anchors on a tenth of the nodes; in several
    dimensions random rotations.
    """
    import networkx as nx

    ends = np.array(sorted(nx.random_regular_graph(degree, nodes, seed=seed).edges))
    count = len(ends)
    rng = np.random.default_rng([seed, nodes])
    chosen = np.sort(rng.choice(nodes, max(1, nodes // 10), replace=False))
    anchors = sparse.kron(sparse.eye_array(nodes, format="csr")[chosen], sparse.eye_array(dim))
    turns = [np.linalg.qr(rng.standard_normal((dim, dim)))[0] if dim > 1 else np.eye(1) for _ in range(count)]
    blocks = [part for turn in turns for part in (turn, -np.eye(dim))]
    pointer = 2 * np.arange(count + 1)
    relations = sparse.bsr_array((np.array(blocks), ends.ravel(), pointer), shape=(count * dim, nodes * dim))
    return sparse.csr_array(sparse.vstack([relations, anchors]))


def measured(instance: Mapping[str, Any], matrix: Any) -> dict[str, Any]:
    """One instance under its limit, by the engine where asked without a limit, and by the search
    for small supports unless that is hopeless.
    """
    groups = [instance.get("dim", 1)] * instance["nodes"]

    def solve(method: str, limit: float | None) -> dict[str, Any]:
        began = time.perf_counter()
        found = support_margin(
            matrix, groups, size=instance["size"], n_jobs=instance.get("n_jobs"), time_limit=limit, method=method
        )
        return {
            "seconds": time.perf_counter() - began,
            "status": str(found.status),
            "share": found.lower / found.upper if found.upper else 1.0,
            "gamma": found.value,
            "tested": found.tested,
        }

    row = {**instance, "limited": solve("auto", instance["limit"])}
    if instance.get("unlimited"):
        row["unlimited"] = solve("auto", None)
    if instance.get("oracle", True):
        row["before"] = solve("search", instance["limit"])
    return row


def reproved(instance: Mapping[str, Any], seed: int = 0) -> dict[str, Any]:
    """One field solved, certified and verified, in processor time on one core: `deliver` n: every
    n-th value, `unit` n: n nodes in a row fail together.
    """
    nodes, dim, size = instance["nodes"], instance.get("dim", 1), instance["size"]
    if "degree" in instance:
        matrix = regular_graph(nodes, instance["degree"], dim=dim, seed=seed)
    else:
        matrix = gaussian(instance["rows"], nodes, dim, seed)
    problem = from_matrix(matrix, [dim] * nodes, k=size // 2)
    told, names = problem.model_dump(exclude_unset=True, by_alias=True), [node.id for node in problem.nodes]
    if "deliver" in instance:
        told["deliver"] = names[:: instance["deliver"]]
    if "unit" in instance:
        told["nodes"] = [
            {**node, "unit": f"unit {place // instance['unit']}"} for place, node in enumerate(told["nodes"])
        ]
    certificate = rrf.certify(rrf.Problem(**told), budgets=[], time_limit=ENOUGH)
    rrf.verify(certificate, time_limit=0.0)  # compile
    groups = [dim * instance.get("unit", 1)] * (nodes // instance.get("unit", 1))
    began = time.process_time()
    if "deliver" in instance:
        found = delivered_margin(matrix, groups, range(0, nodes * dim, instance["deliver"]), k=size // 2)
    else:
        found = margin(matrix, groups, k=size // 2)
    solved = time.process_time() - began
    began = time.process_time()
    checked = rrf.verify(certificate, time_limit=ENOUGH)
    spent = time.process_time() - began
    return {
        "field": named(instance),
        "dim": dim,
        "k": size // 2,
        "gamma": found.value,
        "status": str(found.status),
        "valid": checked.valid,
        "verify_says": checked.reason,
        "solve_seconds": solved,
        "verify_seconds": spent,
        "ratio": spent / max(solved, 1e-9),
    }


def named(instance: Mapping[str, Any]) -> str:
    """A field in words."""
    nodes = instance["nodes"]
    words = (
        f"graph of {nodes:,} nodes, degree {instance['degree']}"
        if "degree" in instance
        else f"dense, {instance['rows']} rows, {nodes} nodes"
    )
    words += f", one value in {instance['deliver']} delivered" if "deliver" in instance else ""
    return words + (f", units of {instance['unit']}" if "unit" in instance else "")


def large_rows(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """As the report shows them: the engine under its limit and without, and the search for small
    supports under the same limit.
    """
    return [
        {
            "field": named(row),
            "dim": row.get("dim", 1),
            "size": row["size"],
            "limit": row["limit"],
            "gamma": row["limited"]["gamma"],
            "status": _status(row["limited"]),
            "lower_by_upper": row["limited"]["share"],
            "seconds": row["limited"]["seconds"],
            "tree_nodes": row["limited"]["tested"],
            "seconds_without_limit": row["unlimited"]["seconds"] if "unlimited" in row else None,
            "before_status": _status(row["before"]) if "before" in row else None,
            "before_lower_by_upper": row["before"]["share"] if "before" in row else None,
            "before_seconds": row["before"]["seconds"] if "before" in row else None,
        }
        for row in rows
    ]


def _status(solved: Mapping[str, Any]) -> str:
    """ "exact", "bounded", or where the limit left nothing proven "no bound"."""
    return "no bound" if solved["status"] != "exact" and solved["share"] <= 0.0 else str(solved["status"])


def judge_large(page: Report, rows: Sequence[dict[str, Any]]) -> None:
    asked = [row for row in rows if row.get("exact", True)]
    done = [row for row in asked if row["limited"]["status"] == "exact"]
    agree = all(
        "before" not in row
        or row["before"]["status"] != "exact"
        or abs(row["before"]["gamma"] / row["limited"]["gamma"] - 1.0) < 1e-8
        for row in done
    )
    costs = [row["limited"]["seconds"] / row["unlimited"]["seconds"] for row in rows if "unlimited" in row]
    words = (
        f"{len(done)} of {len(asked)} exact within their limits; {'all' if agree else 'not all'} agree with the search"
        " for small supports"
    )
    page.check("large", agree and len(done) == len(asked), words)
    dearest = max(costs, default=1.0)
    page.at_full("limit", dearest <= 1.1, f"a limit costs {dearest:.3g} times the time without")


def small_field(seed: int) -> Any:
    """A field of nine or ten nodes of one of the families, small enough to judge every set of eight
    exactly.
    """
    family = FAMILIES[seed % len(FAMILIES)]
    rng = np.random.default_rng([seed, 8])
    nodes = int(rng.integers(9, 11))
    if family in SPOILED:
        return _spoiled(
            family,
            small_field(int(rng.integers(10**6)) // len(FAMILIES) * len(FAMILIES) + 4 * int(rng.integers(2))),
            rng,
        )
    if family in ("dense", "half-empty"):
        matrix = rng.standard_normal((int(rng.integers(nodes - 1, 2 * nodes)), nodes))
        return matrix if family == "dense" else matrix * (rng.random(matrix.shape) < 0.5)
    rows = []
    for _ in range(int(nodes * rng.choice([1.0, 1.4, 2.0]))):
        pool = np.arange(nodes)
        if family == "disconnected":
            pool = pool[: nodes // 2] if rng.random() < 0.5 else pool[nodes // 2 :]
        chosen = rng.choice(pool, 3 if family == "ternary" else 2, replace=False)
        row = np.zeros(nodes)
        if family in ("identity", "disconnected"):
            row[chosen] = 1.0, -1.0
        else:
            row[chosen] = rng.integers(-2, 3, len(chosen)) if family == "integer" else rng.standard_normal(len(chosen))
        rows.append(row)
        if family == "cancelling":  # adjacent, though their entry of BᵀB is zero
            rows.append(row * np.where(np.arange(nodes) == chosen[0], -1.0, 1.0))
    anchors = [np.eye(nodes)[i] * rng.choice([1.0, 0.1, 2.0]) for i in range(nodes) if rng.random() < 0.6]
    return np.array(rows + anchors)


def _spoiled(family: str, matrix: Any, rng: Any) -> Any:
    nodes = matrix.shape[1]
    a, b = (int(i) for i in rng.choice(nodes, 2, replace=False))
    if family == "columns far apart":
        return matrix * 10.0 ** rng.integers(-14, 15, nodes)
    if family == "rows far apart":
        return matrix * 10.0 ** rng.integers(-12, 13, (len(matrix), 1))
    if family == "faint links":
        return matrix * np.where(rng.random(matrix.shape) < 0.4, 2.0 ** -int(rng.choice([27, 53, 54, 60])), 1.0)
    if family == "entries that cancel":  # adjacent by three rows, whose products add up to 1, or in doubles to nothing
        large = float(rng.choice([1e8, 1e12, 1e16]))
        extra = np.zeros((3, nodes))
        extra[:, [a, b]] = (large, 1.0), (-large, 1.0), (1.0, 1.0)
        return np.vstack([matrix, extra])
    if family == "rows without an entry":
        return matrix * (rng.random((len(matrix), 1)) < 0.7)
    matrix = matrix.copy()
    if family == "equal columns":
        matrix[:, a] = matrix[:, b] * rng.choice([1.0, -1.0, 2.0])
    elif family == "nearly equal columns":
        near = rng.standard_normal(len(matrix)) * (matrix[:, b] != 0.0)
        matrix[:, a] = matrix[:, b] + near * 2.0 ** -int(rng.integers(8, 50))
    else:
        matrix[:, a] = 0.0
        if family == "an isolated node":
            matrix = np.vstack([matrix, 3.0 * np.eye(nodes)[a : a + 1]])
    return matrix
