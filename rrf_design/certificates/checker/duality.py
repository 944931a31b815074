"""The group robust null-space property by duality, for a kernel of any dimension on a small field.

Rows U with I − U in the row space of B are the certificate: with I − U = YᵀB every node has h_i = Σ_j U_ij h_j + Y_iᵀBh. When
‖U_ii‖ ≤ b < 1 and a = max_{j≠i}‖U_ij‖/(1 − b) is below 1/(2k − 1), summing over |S| ≤ k gives the property with
ρ = k·a/(1 − (k − 1)a) and τ = √k·max‖Y_i‖/((1 − b)(1 − (k − 1)a)). For k = 1 and scalar nodes the best U is a linear program whose dual
is the direction that refutes: there nothing but fields within a hair of ρ = 1 stays open.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from rrf_design.certificates.checker.exact import float_up, sqrt_up
from rrf_design.certificates.checker.record import OperatorRecord
from rrf_design.certificates.checker.relaxations import block_norms

DUAL_COORDINATES = 48  # coordinates of a field up to which the rows U are written down
RHO = 2.0**-20  # the smallest ρ that is ever claimed


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
