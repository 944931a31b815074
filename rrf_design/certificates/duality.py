"""The group robust null-space property by duality, for a kernel of any dimension on a small field.

Rows U with I − U in the row space of B are the certificate: with I − U = YᵀB every node has h_i = Σ_j U_ij h_j + Y_iᵀBh. When
‖U_ii‖ ≤ b < 1 and a = max_{j≠i}‖U_ij‖/(1 − b) is below 1/(2k − 1), summing over |S| ≤ k gives the property with
ρ = k·a/(1 − (k − 1)a) and τ = √k·max‖Y_i‖/((1 − b)(1 − (k − 1)a)). For k = 1 and scalar nodes the best U is a linear program whose dual
is the direction that refutes: there nothing but fields within a hair of ρ = 1 stays open.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rrf_design.certificates.exact import float_up, sqrt_up
from rrf_design.certificates.record import OperatorRecord
from rrf_design.certificates.relaxations import block_norms

DUAL_COORDINATES = 48  # coordinates of a field up to which the rows U are written down
RHO = 2.0**-20  # the smallest ρ that is ever claimed


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


def dual_constants(rows: list[list[float]], record: OperatorRecord, k: int) -> tuple[float, float] | None:
    """ρ and τ from the rows U of a dual certificate. Any Y will do: what counts is V = I − YᵀB, bounded with its rounding."""
    width = record.columns
    dual = np.zeros((width, width))
    if width > DUAL_COORDINATES or len(rows) != width or any(len(row) != width for row in rows):
        return None
    dual[:] = rows
    operator = record.matrix.toarray()
    if len(operator) == 0:
        return None
    back = (np.eye(width) - dual) @ np.linalg.pinv(operator, rcond=1e-9)
    left = np.eye(width) - back @ operator
    unit = 1.1 * (record.rows + 6) * 2.0**-53
    blur = unit * (np.abs(back) @ np.abs(operator) + 2.0) * (1 + 1e-9)  # rounding of the product and of the difference
    couplings = block_norms(record, left) + block_norms(record, blur)
    nodes = np.arange(len(record.node_ids))
    own = float(couplings[nodes, nodes].max())
    couplings[nodes, nodes] = 0.0
    heights = [float(np.linalg.norm(back[record.columns_of([i])])) for i in nodes]
    if not (own < 1.0 and np.isfinite(couplings).all() and np.isfinite(heights).all()):
        return None
    a = Fraction(float(couplings.max()) * (1 + 1e-12)) / (1 - Fraction(own))
    room = 1 - (k - 1) * a
    if room <= 0:
        return None
    rho = float_up(k * a / room)
    reach = Fraction(max(heights) * (1 + 1e-9)) / (1 - Fraction(own))
    tau = float_up(Fraction(sqrt_up(Fraction(k))) * reach / room)
    return (max(rho, RHO), tau) if rho < 1.0 and tau > 0.0 else None
