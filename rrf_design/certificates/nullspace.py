"""The group robust null-space property, on which the convex decoder's guarantee rests; γ_k > 0 alone does not give it.

For all h and |S| ≤ k: ‖h_S‖₂ ≤ (ρ/√k)·‖h_Sᶜ‖₂,₁ + τ‖Bh‖₂. Certified when B is injective on all fields: then
‖h_S‖ ≤ ‖h‖ ≤ ‖Bh‖/σ_min(B), so every ρ will do with τ = 1/σ_min(B), and the factorisation that proves it is verified.
Certified, too, when the kernel is spanned by directions u_c on disjoint node sets (one gauge per component), each with
‖u_S‖ ≤ (ρ₀/√k)·‖u_Sᶜ‖₂,₁: with G + βΣu_c u_cᵀ ⪰ t² and ‖Bu_c‖ ≤ r, h = Σα_c u_c + w, w ⊥ u_c, the triangle inequality gives
κ = r/(t·min‖u_Sᶜ‖₂,₁), ρ = ρ₀ + (√k + ρ₀√n)·κ/(1 − κ√n), τ = (1 + ρ₀√(n/k))/(t·(1 − κ√n)).
Certified, too, for any kernel on a small field, by a dual matrix (`duality`).
Refuted by a direction h (nearly) in the kernel with more weight on k nodes than spread over the others: then no ρ < 1
works with any τ up to the stated one. Where neither is found: not certified, which says nothing about the truth.
"""

from __future__ import annotations

from enum import StrEnum
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rrf_design.certificates.duality import DUAL_COORDINATES, RHO, dual_constants, dual_rows, lightest_direction
from rrf_design.certificates.exact import float_up, sqrt_down, sqrt_up, squared_image, squared_norm
from rrf_design.certificates.record import OperatorRecord
from rrf_design.certificates.relaxations import positive_definite
from rrf_design.errors import Refused

SMALL = 400  # coordinates up to which it is tried
CLEARLY = 0.1  # a unit direction that breaks the property by this much is witness enough
STARTS = 16  # nodes from which a refutation is looked for
LEAST_TAU = 1e3  # a refutation below this would only say that the constants are bad


class NullSpace(StrEnum):
    CERTIFIED = "certified"
    REFUTED = "refuted"
    NOT_CERTIFIED = "not certified"


def nullspace_section(record: OperatorRecord, k: int) -> dict[str, Any]:
    """The `nullspace` section: certified with constants, refuted with a witness, or not certified."""
    nothing = {"rho": None, "tau": None, "c1": None, "c2": None, "witness": None, "kernel": None}
    if record.columns > SMALL:
        return {"status": str(NullSpace.NOT_CERTIFIED), **nothing}
    dense = record.matrix.toarray()
    padded = np.vstack([dense, np.zeros((max(0, record.columns - record.rows), record.columns))])
    _, values, right = np.linalg.svd(padded)
    scale = float(values[0]) if len(values) else 0.0
    if values[-1] > 1e-7 * max(scale, 1e-30):
        tau = float(np.nextafter(1.0 / (values[-1] * (1 - 1e-6)), np.inf))
        section = {"status": str(NullSpace.CERTIFIED), **nothing, "rho": RHO, "tau": tau, **_constants(RHO, tau)}
        return section if _injective(record, tau) else {"status": str(NullSpace.NOT_CERTIFIED), **nothing}
    kernel = right[values <= 1e-7 * max(scale, 1e-30)]
    found = _concentrated(record, kernel, k)
    if found is None and k == 1 and record.columns == len(record.node_ids) <= DUAL_COORDINATES:
        found = lightest_direction(record, kernel)
    if found is None:
        gauges = _disjoint(record, kernel)
        floor = float(values[len(values) - len(kernel) - 1]) if len(kernel) < len(values) else 1.0
        basis: dict[str, Any] | None = None if gauges is None else {"floor": 0.999 * floor, "directions": gauges}
        constants = None if basis is None else _kernel_constants(basis, record, k)
        if constants is None and record.columns <= DUAL_COORDINATES:
            basis = {"dual": dual_rows(record, kernel).tolist()}
            constants = _kernel_constants(basis, record, k)
        if constants is None:
            return {"status": str(NullSpace.NOT_CERTIFIED), **nothing}
        rho, tau = constants
        return {"status": str(NullSpace.CERTIFIED), **nothing, "rho": rho, "tau": tau, "kernel": basis} | _constants(
            rho, tau
        )
    chosen, direction = found
    spread = _spread(_node_norms(record, direction), chosen, k)
    residual = float(np.linalg.norm(dense @ direction))
    tau = min(1e12, 0.5 * spread / max(residual, 1e-300))
    if spread <= 0.0 or tau < LEAST_TAU:
        return {"status": str(NullSpace.NOT_CERTIFIED), **nothing}
    witness = {
        "set": [record.node_ids[i] for i in chosen],
        "direction": [direction[a:b].tolist() for a, b in _spans(record)],
    }
    return {"status": str(NullSpace.REFUTED), **nothing, "tau": tau, "witness": witness}


def check_nullspace(claim: dict[str, Any], record: OperatorRecord, k: int) -> str:
    """Re-prove the section; Refused when it does not hold."""
    status = claim["status"]
    numbers = [claim[key] for key in ("rho", "tau", "c1", "c2")]
    if status == NullSpace.NOT_CERTIFIED:
        if any(value is not None for value in (*numbers, claim["witness"], claim["kernel"])):
            raise Refused("nullspace: what is not certified has no constants and no witness")
        return "not certified"
    if status == NullSpace.CERTIFIED:
        if None in numbers or claim["witness"] is not None or not 0.0 < claim["rho"] < 1.0 or claim["tau"] <= 0.0:
            raise Refused("nullspace: a certificate needs 0 < rho < 1 and tau > 0")
        if any(claim[key] < value for key, value in _constants(claim["rho"], claim["tau"]).items()):
            raise Refused("nullspace: c1 or c2 is smaller than rho and tau imply")
        if claim["kernel"] is not None:
            constants = _kernel_constants(claim["kernel"], record, k)
            if constants is None or claim["rho"] < constants[0] or claim["tau"] < constants[1]:
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


def _kernel_constants(basis: dict[str, Any], record: OperatorRecord, k: int) -> tuple[float, float] | None:
    """ρ and τ, rounded up, from what the certificate says about the kernel; None when it doesn't carry them."""
    return dual_constants(basis["dual"], record, k) if "dual" in basis else _spread_constants(basis, record, k)


def _spread_constants(basis: dict[str, Any], record: OperatorRecord, k: int) -> tuple[float, float] | None:
    """ρ and τ, rounded up, from kernel directions on disjoint node sets and a floor t; None when they don't carry it."""
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
    """Is G + βΣuuᵀ ⪰ floor² certain? Then Bw is at least floor·‖w‖ for every w orthogonal to the gauges."""
    operator = record.matrix.toarray()
    scale = 2.0 ** int(np.ceil(np.log2(max(float(np.abs(operator).max(initial=0.0)), 1.0))))  # a power of two: exact
    stacked = np.vstack([operator, scale * gauges])  # the Gram matrix of the stacked rows is exactly G + scale²·Σuuᵀ
    size = np.abs(stacked)
    blur = 1.1 * 2.0**-53 * (len(stacked) + 3) * (size.T @ size)
    shift = floor * floor * (1 + 1e-12) + float(blur.sum(axis=1).max()) * (1 + 1e-9)
    return positive_definite(stacked.T @ stacked, shift)


def _image2(record: OperatorRecord, vector: NDArray[np.float64]) -> Fraction:
    """‖Bh‖² exactly."""
    return squared_image(record.by_column, vector)


def _constants(rho: float, tau: float) -> dict[str, float]:
    """Admissible constants of the stable convex recovery theorem, rounded up."""
    r, t = Fraction(rho), Fraction(tau)
    return {"c1": float_up(2 * (1 + r) ** 2 / (1 - r)), "c2": float_up(2 * t * (3 + r) / (1 - r))}


def _spans(record: OperatorRecord) -> list[tuple[int, int]]:
    starts = record.node_starts
    return [(a, b) for a, b in pairwise(starts.tolist())]


def _spread(norms: NDArray[np.float64], chosen: list[int], k: int) -> float:
    """‖h_S‖₂ − ‖h_Sᶜ‖₂,₁/√k from the norms of h by node."""
    inside = norms[chosen]
    return float(np.linalg.norm(inside)) - float(norms.sum() - inside.sum()) / float(np.sqrt(k))


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


def _node_norms(record: OperatorRecord, direction: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.sqrt(np.add.reduceat(np.square(direction), record.node_starts[:-1]))
