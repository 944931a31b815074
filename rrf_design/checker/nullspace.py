"""The group robust null-space property, on which the convex decoder's guarantee rests; γ_k > 0
alone does not give it.

For all h and |S| ≤ k: ‖h_S‖₂ ≤ (ρ/√k)·‖h_Sᶜ‖₂,₁ + τ‖Bh‖₂. Certified when B is _injective on all
fields: then ‖h_S‖ ≤ ‖h‖ ≤ ‖Bh‖/σ_min(B), so every ρ will do with τ = 1/σ_min(B), and the
factorisation that proves it is verified. Certified, too, when the kernel is spanned by directions
u_c on disjoint node sets (one gauge per component), each with ‖u_S‖ ≤ (ρ₀/√k)·‖u_Sᶜ‖₂,₁: with G +
βΣu_c u_cᵀ ⪰ t² and ‖Bu_c‖ ≤ r, h = Σα_c u_c + w, w ⊥ u_c, the triangle inequality gives κ =
r/(t·min‖u_Sᶜ‖₂,₁), ρ = ρ₀ + (√k + ρ₀√n)·κ/(1 − κ√n), τ = (1 + ρ₀√(n/k))/(t·(1 − κ√n)). Certified,
too, for any kernel on a small field, by a dual matrix (`dual_constants`). Refuted by a direction h
(nearly) in the kernel with more weight on k nodes than spread over the others: then no ρ < 1 works
with any τ up to the stated one. Where neither is found: not certified, which says nothing about the
truth.

For a kernel of any dimension on a small field the property is proved by duality. Rows U with I − U
in the row space of B are the certificate: with I − U = YᵀB every node has h_i = Σ_j U_ij h_j +
Y_iᵀBh. When ‖U_ii‖ ≤ b < 1 and a = max_{j≠i}‖U_ij‖/(1 − b) is below 1/(2k − 1), summing over |S| ≤
k gives the property with ρ = k·a/(1 − (k − 1)a) and τ = √k·max‖Y_i‖/((1 − b)(1 − (k − 1)a)). For k
= 1 and scalar nodes the best U is a linear program whose dual is the direction that refutes: there
nothing but fields within a hair of ρ = 1 stays open.
"""

from __future__ import annotations

from enum import StrEnum
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rrf_design.checker.exact import float_up, sqrt_down, sqrt_up, squared_image, squared_norm
from rrf_design.checker.proofs import DENSE_ENTRIES, block_norms, positive_definite
from rrf_design.checker.record import OperatorRecord
from rrf_design.errors import Refused

MOST_COORDINATES = 400  # of an operator whose property is proved or refuted


class NullSpace(StrEnum):
    CERTIFIED = "certified"
    REFUTED = "refuted"
    NOT_CERTIFIED = "not certified"


def check_nullspace(claim: dict[str, Any], record: OperatorRecord, k: int) -> str:
    """Re-prove the section; Refused when it does not hold."""
    status = claim["status"]
    numbers = [claim[key] for key in ("rho", "tau", "c1", "c2")]
    if status == NullSpace.NOT_CERTIFIED:
        if any(value is not None for value in (*numbers, claim["witness"], claim["kernel"])):
            raise Refused("nullspace: what is not certified has no constants and no witness")
        return "not certified"
    if record.columns > MOST_COORDINATES or record.rows * record.columns > DENSE_ENTRIES or not record.calm:
        raise Refused("nullspace: nothing is proved about operators so large, or of such different entries")
    if status == NullSpace.CERTIFIED:
        if None in numbers or claim["witness"] is not None or not 0.0 < claim["rho"] < 1.0 or claim["tau"] <= 0.0:
            raise Refused("nullspace: a certificate needs 0 < rho < 1 and tau > 0")
        if any(claim[key] < value for key, value in constants(claim["rho"], claim["tau"]).items()):
            raise Refused("nullspace: c1 or c2 is smaller than rho and tau imply")
        if claim["kernel"] is not None:
            carried = kernel_constants(claim["kernel"], record, k)
            if carried is None or claim["rho"] < carried[0] or claim["tau"] < carried[1]:
                raise Refused("nullspace: the kernel does not carry rho and tau")
        elif not _injective(record, claim["tau"]):
            raise Refused("nullspace.tau: σ_min(B) ≥ 1/tau can't be re-proved")
        return f"certified, tau = {claim['tau']!r}"
    if status != NullSpace.REFUTED or claim["witness"] is None or claim["tau"] is None or claim["tau"] <= 0.0:
        raise Refused("nullspace: a refutation needs a witness and the tau up to which it holds")
    if [claim["rho"], claim["c1"], claim["c2"], claim["kernel"]] != [None, None, None, None]:
        raise Refused("nullspace: a refutation has no other constants")
    _check_refutation(claim, record, k)
    return f"refuted for every rho below 1 and tau up to {claim['tau']:.3g}"


def _check_refutation(claim: dict[str, Any], record: OperatorRecord, k: int) -> None:
    chosen = {record.node_index.get(name, -1) for name in claim["witness"]["set"]}
    parts = claim["witness"]["direction"]
    if -1 in chosen or not 0 < len(chosen) <= k:
        raise Refused(f"nullspace.witness.set: must name 1 to {k} nodes of the operator")
    if [len(part) for part in parts] != record.node_sizes.tolist():
        raise Refused("nullspace.witness.direction: does not fit the operator")
    squares = [sum((Fraction(float(x)) ** 2 for x in part), Fraction(0)) for part in parts]
    inside = Fraction(sqrt_down(sum((squares[i] for i in chosen), Fraction(0))))
    outside = sum((Fraction(sqrt_up(square)) for i, square in enumerate(squares) if i not in chosen), Fraction(0))
    image = _image2(record, np.array([float(x) for part in parts for x in part]))
    # 1/√k ≤ sqrt_up(1/k)
    if not inside > Fraction(sqrt_up(Fraction(1, k))) * outside + Fraction(claim["tau"]) * Fraction(sqrt_up(image)):
        raise Refused("nullspace.witness: does not refute the property")


def _injective(record: OperatorRecord, tau: float) -> bool:
    return _above_on_the_rest(record, np.zeros((0, record.columns)), float_up(1 / Fraction(tau)))


def kernel_constants(basis: dict[str, Any], record: OperatorRecord, k: int) -> tuple[float, float] | None:
    """ρ and τ, rounded up, from what the certificate says about the kernel; None when it doesn't
    carry them.
    """
    return _dual_constants(basis["dual"], record, k) if "dual" in basis else _spread_constants(basis, record, k)


def _spread_constants(basis: dict[str, Any], record: OperatorRecord, k: int) -> tuple[float, float] | None:
    """ρ and τ, rounded up, from kernel directions on disjoint node sets and a floor t; None when
    they don't carry it.
    """
    t, nodes = Fraction(float(basis["floor"])), len(record.node_ids)
    dense = np.zeros((len(basis["directions"]), record.columns))
    used: set[int] = set()
    ratio, least, residual = Fraction(0), None, Fraction(0)
    for number, gauge in enumerate(basis["directions"]):
        place = [record.node_index.get(name, -1) for name in gauge["support"]]
        sizes = [len(part) for part in gauge["direction"]]
        if -1 in place or len(set(place)) != len(place) or used & set(place) or not place:
            return None
        if sizes != [int(record.node_sizes[i]) for i in place]:
            return None
        used |= set(place)
        dense[number, record.columns_of(place)] = [x for part in gauge["direction"] for x in part]
        squares = sorted((squared_norm(part) for part in gauge["direction"]), reverse=True)
        inside = Fraction(sqrt_up(sum(squares[:k], Fraction(0)) * k))
        outside = sum((Fraction(sqrt_down(square)) for square in squares[k:]), Fraction(0))
        if outside == 0:
            return None
        ratio, least = max(ratio, inside / outside), outside if least is None else min(least, outside)
        residual = max(residual, Fraction(sqrt_up(_image2(record, dense[number]))))
    if least is None or t <= 0 or not _above_on_the_rest(record, dense, float(basis["floor"])):
        return None
    root_n, root_k = Fraction(sqrt_up(Fraction(nodes))), Fraction(sqrt_up(Fraction(k)))
    kappa = residual / (t * least)
    left = 1 - kappa * root_n
    if left <= 0:
        return None
    rho = float_up(ratio + (root_k + ratio * root_n) * kappa / left)
    tau = float_up((1 + ratio * Fraction(sqrt_up(Fraction(nodes, k)))) / (t * left))
    return (max(rho, RHO), tau) if rho < 1.0 else None


def _above_on_the_rest(record: OperatorRecord, gauges: NDArray[np.float64], floor: float) -> bool:
    """Is G + βΣuuᵀ ⪰ floor² certain?

    Then Bw is at least floor·‖w‖ for every w orthogonal to the gauges.
    """
    operator = record.matrix.toarray()
    scale = 2.0 ** int(np.ceil(np.log2(max(float(np.abs(operator).max(initial=0.0)), 1.0))))  # a power of two: exact
    # The Gram matrix of the stacked rows is exactly G + scale²·Σuuᵀ.
    stacked = np.vstack([operator, scale * gauges]) if len(gauges) else operator
    size = np.abs(stacked)
    blur = 1.1 * 2.0**-53 * (len(stacked) + 3) * (size.T @ size)
    shift = floor * floor * (1 + 1e-12) + float(blur.sum(axis=1).max()) * (1 + 1e-9)
    return positive_definite(stacked.T @ stacked, shift)


def _image2(record: OperatorRecord, vector: NDArray[np.float64]) -> Fraction:
    """‖Bh‖² exactly."""
    return squared_image(record.by_column, vector)


def constants(rho: float, tau: float) -> dict[str, float]:
    """Admissible constants of the stable convex recovery theorem, rounded up."""
    r, t = Fraction(rho), Fraction(tau)
    return {"c1": float_up(2 * (1 + r) ** 2 / (1 - r)), "c2": float_up(2 * t * (3 + r) / (1 - r))}


DUAL_COORDINATES = 48  # coordinates of a field up to which the rows U are written down
RHO = 2.0**-20  # the smallest ρ that is ever claimed


def _dual_constants(rows: list[list[float]], record: OperatorRecord, k: int) -> tuple[float, float] | None:
    """ρ and τ from the rows U of a dual certificate.

    Any Y will do: what counts is V = I − YᵀB, bounded with its rounding.
    """
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
