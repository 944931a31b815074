"""The `nullspace` section: does the convex decoder's guarantee hold? Found here, proved in `checker.nullspace`.

Injective operators are certified by their smallest singular value, others by gauges that spread over their component or by
the rows of a dual matrix; a kernel direction that is concentrated on k nodes refutes. What is found is asked of the
checker before it is written; where nothing is found the section says so.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rrf_design.certificates.checker.duality import DUAL_COORDINATES, RHO
from rrf_design.certificates.checker.exact import sqrt_up, squared_image
from rrf_design.certificates.checker.nullspace import (
    MOST_COORDINATES,
    NullSpace,
    check_nullspace,
    constants,
    kernel_constants,
)
from rrf_design.certificates.checker.record import OperatorRecord
from rrf_design.certificates.checker.relaxations import DENSE_ENTRIES
from rrf_design.errors import Refused

SMALL = MOST_COORDINATES  # coordinates up to which it is tried
CLEARLY = 0.1  # a unit direction that breaks the property by this much is witness enough
STARTS = 16  # nodes from which a refutation is looked for
LEAST_TAU = 1e3  # a refutation below this would only say that the constants are bad


def no_nullspace() -> dict[str, Any]:
    """The section where nothing is certified."""
    nothing = {"rho": None, "tau": None, "c1": None, "c2": None, "witness": None, "kernel": None}
    return {"status": str(NullSpace.NOT_CERTIFIED), **nothing}


def nullspace_section(record: OperatorRecord, k: int) -> dict[str, Any]:
    """The `nullspace` section: certified with constants, refuted with a witness, or not certified.

    Floats suggest it and the checker has the last word: what it can't re-prove is not claimed.
    """
    section = _suggested(record, k)
    try:
        check_nullspace(section, record, k)
    except Refused:
        return no_nullspace()
    return section


def _suggested(record: OperatorRecord, k: int) -> dict[str, Any]:
    nothing = {"rho": None, "tau": None, "c1": None, "c2": None, "witness": None, "kernel": None}
    if record.columns > SMALL or record.rows * record.columns > DENSE_ENTRIES or not record.calm:
        return {"status": str(NullSpace.NOT_CERTIFIED), **nothing}
    dense = record.matrix.toarray()
    padded = np.vstack([dense, np.zeros((max(0, record.columns - record.rows), record.columns))])
    _, values, right = np.linalg.svd(padded)
    scale = float(values[0]) if len(values) else 0.0
    if values[-1] > 1e-7 * max(scale, 1e-30):
        tau = float(np.nextafter(1.0 / (values[-1] * (1 - 1e-6)), np.inf))
        return {"status": str(NullSpace.CERTIFIED), **nothing, "rho": RHO, "tau": tau, **constants(RHO, tau)}
    kernel = right[values <= 1e-7 * max(scale, 1e-30)]
    found = _concentrated(record, kernel, k)
    if found is None and k == 1 and record.columns == len(record.node_ids) <= DUAL_COORDINATES:
        found = lightest_direction(record, kernel)
    if found is None:
        gauges = _disjoint(record, kernel)
        floor = float(values[len(values) - len(kernel) - 1]) if len(kernel) < len(values) else 1.0
        basis: dict[str, Any] | None = None if gauges is None else {"floor": 0.999 * floor, "directions": gauges}
        carried = None if basis is None else kernel_constants(basis, record, k)
        if carried is None and record.columns <= DUAL_COORDINATES:
            basis = {"dual": dual_rows(record, kernel).tolist()}
            carried = kernel_constants(basis, record, k)
        if carried is None:
            return {"status": str(NullSpace.NOT_CERTIFIED), **nothing}
        rho, tau = carried
        return {"status": str(NullSpace.CERTIFIED), **nothing, "rho": rho, "tau": tau, "kernel": basis} | constants(
            rho, tau
        )
    chosen, direction = found
    spread = _spread(_node_norms(record, direction), chosen, k)
    residual = sqrt_up(squared_image(record.by_column, direction))  # where products cancel, floats know nothing of it
    tau = min(1e12, 0.5 * spread / max(residual, 1e-300))
    if spread <= 0.0 or tau < LEAST_TAU:
        return {"status": str(NullSpace.NOT_CERTIFIED), **nothing}
    witness = {
        "set": [record.node_ids[i] for i in chosen],
        "direction": [direction[a:b].tolist() for a, b in _spans(record)],
    }
    return {"status": str(NullSpace.REFUTED), **nothing, "tau": tau, "witness": witness}


def _disjoint(record: OperatorRecord, kernel: NDArray[np.float64]) -> list[dict[str, Any]] | None:
    """Kernel directions on disjoint node sets, one per component of the field; None when a component has more."""
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    pattern = sparse.csr_array(record.matrix != 0).astype(np.int64)
    owners = sparse.csr_array(
        (np.ones(record.columns, dtype=np.int64), (np.arange(record.columns), record.node_of_column)),
        shape=(record.columns, len(record.node_ids)),
    )
    touch = pattern @ owners
    count, label = connected_components(touch.T @ touch, directed=False)
    result = []
    for component in range(count):
        nodes = np.flatnonzero(label == component)
        columns = record.columns_of(nodes)
        part = kernel[:, columns]  # projections of the kernel on this component span its own kernel
        _, sizes, right = np.linalg.svd(part, full_matrices=False)
        held = int((sizes > 1e-6).sum())
        if held > 1:
            return None
        if held:
            direction = right[0] / np.abs(right[0]).max()
            nice = np.round(direction * 2**20) / 2**20  # gauges of plain relations are exact then
            if np.abs(record.matrix[:, columns] @ nice).max(initial=0.0) == 0.0:
                direction = nice
            ends = np.cumsum(record.node_sizes[nodes])
            parts = [x.tolist() for x in np.split(direction, ends[:-1])]
            result.append({"support": [record.node_ids[i] for i in nodes], "direction": parts})
    return result


def _concentrated(
    record: OperatorRecord, kernel: NDArray[np.float64], k: int
) -> tuple[list[int], NDArray[np.float64]] | None:
    """A kernel direction with much weight on k nodes: reweighted least squares from the nodes the kernel favours most.

    The first that clearly refutes the property will do; else the best of all.
    """
    best: tuple[float, list[int], NDArray[np.float64]] | None = None
    leverage = np.add.reduceat(np.square(kernel).sum(axis=0), record.node_starts[:-1])
    for start in np.argsort(-leverage)[:STARTS].tolist():
        chosen = [start]
        direction = kernel.sum(axis=0)
        for _ in range(30):
            norms = _node_norms(record, direction)
            if np.any(norms[chosen] > 0):
                order = np.argsort(-norms)
                chosen = sorted({start, *(int(i) for i in order[: k - 1])})[:k] if k > 1 else [start]
            weight = 1.0 / np.sqrt(norms + 1e-9 * max(float(norms.max()), 1e-300))
            weight[chosen] = 1e-3
            stretched = kernel * np.repeat(weight, record.node_sizes)
            inside = kernel[:, record.columns_of(chosen)]
            # largest ‖h_S‖² for a given weighted norm: a small generalised eigenproblem in kernel coordinates
            outer = stretched @ stretched.T + 1e-12 * np.eye(len(kernel))
            factor = np.linalg.inv(np.linalg.cholesky(outer))
            _, vectors = np.linalg.eigh(factor @ (inside @ inside.T) @ factor.T)
            direction = (factor.T @ vectors[:, -1]) @ kernel
            direction = direction / np.linalg.norm(direction)
            gain = _spread(_node_norms(record, direction), chosen, k)
            if gain > CLEARLY:
                return chosen, direction
        if best is None or gain > best[0]:
            best = (gain, chosen, direction)
    return None if best is None or best[0] <= 0.0 else (best[1], best[2])


def _spread(norms: NDArray[np.float64], chosen: list[int], k: int) -> float:
    """‖h_S‖₂ − ‖h_Sᶜ‖₂,₁/√k from the norms of h by node."""
    inside = norms[chosen]
    return float(np.linalg.norm(inside)) - float(norms.sum() - inside.sum()) / float(np.sqrt(k))


def _spans(record: OperatorRecord) -> list[tuple[int, int]]:
    starts = record.node_starts
    return [(a, b) for a, b in pairwise(starts.tolist())]


def _node_norms(record: OperatorRecord, direction: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.sqrt(np.add.reduceat(np.square(direction), record.node_starts[:-1]))


def dual_rows(record: OperatorRecord, kernel: NDArray[np.float64]) -> NDArray[np.float64]:
    """U with U z = z for every z in the kernel and U_ii = 0, the largest ‖U_ij‖ as small as can be had."""
    result = np.zeros((record.columns, record.columns))
    scalar = record.columns == len(record.node_ids)
    for node in range(len(record.node_ids)):
        own = record.columns_of([node])
        result[own] = _lightest_row(kernel, node) if scalar else _lightest_rows(record, kernel, own)
    return np.round(result, 9)


def _lightest_row(kernel: NDArray[np.float64], node: int) -> NDArray[np.float64]:
    """Of a scalar node: a linear program. Zeros when there is none (a gauge lives on this node alone)."""
    from scipy.optimize import linprog

    width = kernel.shape[1]
    bounds = np.hstack([np.vstack([np.eye(width), -np.eye(width)]), -np.ones((2 * width, 1))])
    equal = np.hstack([kernel, np.zeros((len(kernel), 1))])
    ranges: list[Any] = [(None, None)] * width + [(0, None)]
    ranges[node] = (0, 0)
    found = linprog(
        np.append(np.zeros(width), 1.0), A_ub=bounds, b_ub=np.zeros(2 * width), A_eq=equal, b_eq=kernel[:, node],
        bounds=ranges,
    )  # fmt: skip
    return np.asarray(found.x[:width]) if found.status == 0 else np.zeros(width)


def _lightest_rows(record: OperatorRecord, kernel: NDArray[np.float64], own: NDArray[np.int64]) -> NDArray[np.float64]:
    """Of a node with several coordinates: Lawson's reweighting, where weights grow with the norms."""
    weight = np.ones(len(record.node_ids))
    best, result = np.inf, np.zeros((len(own), record.columns))
    for _ in range(60):
        spread = np.repeat(1.0 / weight, record.node_sizes)
        spread[own] = 0.0
        pull = kernel * spread
        rows = kernel[:, own].T @ np.linalg.pinv(pull @ kernel.T, rcond=1e-10, hermitian=True) @ pull
        norms = np.sqrt(np.add.reduceat(np.square(rows).sum(axis=0), record.node_starts[:-1]))
        if norms.max() < best:
            best, result = float(norms.max()), rows
        weight *= norms + 1e-3 * norms.max() + 1e-300
        weight = np.maximum(weight / weight.max(), 1e-12)
    return result


def lightest_direction(record: OperatorRecord, kernel: NDArray[np.float64]) -> tuple[list[int], Any] | None:
    """A direction of the kernel whose value on one scalar node outweighs all others together, by linear programs."""
    from scipy.optimize import linprog

    count, width = kernel.shape
    for node in range(width):
        split = np.hstack([kernel.T, -np.eye(width)]), np.hstack([-kernel.T, -np.eye(width)])
        cost = np.append(np.zeros(count), np.ones(width))
        cost[count + node] = 0.0
        equal = np.append(kernel[:, node], np.zeros(width))[None, :]
        ranges = [(None, None)] * count + [(0, None)] * width
        found = linprog(cost, A_ub=np.vstack(split), b_ub=np.zeros(2 * width), A_eq=equal, b_eq=[1.0], bounds=ranges)
        if found.status == 0 and found.fun < 1.0 - 1e-6:
            direction = found.x[:count] @ kernel
            return [node], direction / np.linalg.norm(direction)
    return None
