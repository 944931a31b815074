"""The sections of a certificate, one function each: what `issue` puts together and `verify` takes
apart again.

Everything that is claimed is computed here in rational arithmetic or rounded to the safe side;
whatever is only a number from a solver has been proven before it comes here (`ladder`).

The `nullspace` section says whether the convex decoder's guarantee holds; what is found here is
proved in `checker.nullspace`.

Injective operators are certified by their smallest singular value, others by gauges that spread
over their component or by the rows of a dual matrix; a kernel direction that is concentrated on k
nodes refutes. What is found is asked of the checker before it is written; where nothing is found
the section says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from fractions import Fraction
from itertools import pairwise
from math import comb, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rrf_design._margin import check_k
from rrf_design.certificates._ladder import Rung, climb, listed
from rrf_design.certificates._uncertainty import Uncertainty, robust_floor
from rrf_design.checker.exact import float_down, ratio_up, sqrt_up, squared_image, squared_norm
from rrf_design.checker.noise import NoiseKind
from rrf_design.checker.nullspace import (
    DUAL_COORDINATES,
    MOST_COORDINATES,
    RHO,
    NullSpace,
    check_nullspace,
    constants,
    kernel_constants,
)
from rrf_design.checker.premises import Premises
from rrf_design.checker.proofs import DENSE_ENTRIES
from rrf_design.checker.record import OperatorRecord
from rrf_design.checker.wording import NORM, WEIGHTS, ZERO
from rrf_design.errors import InputError, Refused
from rrf_design.noise import Radius
from rrf_design.premise import PLAIN, Premise
from rrf_design.rows import JointCovariance, estimate_confidence

if TYPE_CHECKING:
    from rrf_design.operators import Operator
    from rrf_design.problem import Problem

NEXT_BUDGET_SUPPORTS = (
    5_000_000  # up to so many node sets the next budget k + 1 is certified too, unless told otherwise
)


def witness_section(
    record: OperatorRecord, support: Sequence[int], direction: Any, premises: Premises | None = None
) -> tuple[dict[str, Any], Fraction, float]:
    """The witness by node, ‖Bh‖² exactly, and ‖Bh‖/‖h‖ rounded up (0 where the columns of the
    support are dependent); under premises ‖Bh‖ without the blocks set aside, and ‖Bh‖/‖h_D‖.
    """
    nodes = [int(i) for i in support]
    starts = record.node_starts
    parts = [[float(x) for x in np.asarray(direction)[starts[i] : starts[i + 1]]] for i in nodes]
    vector = [x for part in parts for x in part]
    named = {"support": [record.node_ids[i] for i in nodes], "direction": parts}
    if premises is not None:
        image2, length2 = premises.quotient(nodes, vector)
        return named, image2, sqrt_up(image2 / length2)
    image2 = squared_image(record.by_column[:, record.columns_of(nodes)], vector)
    return named, image2, ratio_up(record.dense_part(nodes), image2 / squared_norm(vector))


def uncertainty_section(
    record: OperatorRecord,
    lower: float,
    standing: Any,
    size: int,
    spread: Uncertainty,
    time_limit: float | None,
    told: Callable[..., None],
    protection: dict[str, Any] | None = None,
) -> dict[str, Any]:
    eta = sqrt_up(squared_norm(record.radii[record.radii > 0]))
    whole = lower
    if protection is not None and eta and protection["field_lower"] is not None:  # E acts on what is not delivered, too
        whole = protection["field_lower"]
    shrunk = max(0.0, float_down(Fraction(whole) - Fraction(eta)))
    per_support: float | None = None
    if eta == 0.0:
        per_support = lower
    elif protection is not None:
        per_support = None
    elif standing.proof["kind"] == "enumeration" and lower > 0.0:
        start = _start(record, size, lower)
        per_support = robust_floor(record, size, start=start, time_limit=time_limit, progress=told)
    elif lower == 0.0:
        per_support = 0.0
    known = [shrunk] + ([] if per_support is None else [per_support])
    return {
        "source": spread.source,
        "confidence": spread.confidence,
        "eta": eta,
        "global_lower": shrunk,
        "support_lower": per_support,
        "robust_lower": max(known),
    }


def _start(record: OperatorRecord, size: int, lower: float) -> float:
    """min σ − η_S over the worst supports: an upper bound, near the truth, for the search of
    thresholds.
    """
    from rrf_design.checker.proofs import support_radii
    from solvers import worst_supports

    found = worst_supports(record.matrix, record.node_sizes.tolist(), size=size, count=64)
    values = [s.value - float(np.sqrt(sum(r * r for r in support_radii(record, s.support)))) for s in found]
    return min([lower, *(value * (1 - 1e-10) for value in values)])


def noise_section(reach: Radius, problem: Problem, operator: Operator) -> dict[str, Any]:
    noise, answers = reach.rows, reach.answers
    scatter = {} if answers is None else {"answers": {**asdict(answers), "nodes": dict(answers.nodes)}}
    shared = (
        {"shared": _shared_section(problem, operator, noise.blocks or operator.block_ids)}
        if noise.kind is NoiseKind.CORRELATED
        else {}
    )
    return {
        "kind": str(noise.kind),
        "epsilon": noise.epsilon,
        "sigma": noise.sigma,
        "confidence": noise.confidence,
        "blocks": None if noise.blocks is None else list(noise.blocks),
        "rows": noise.rows,
        **shared,
        **scatter,
        **_estimated_section(reach, problem, operator),
    }


def _estimated_section(reach: Radius, problem: Problem, operator: Operator) -> dict[str, Any]:
    """Blocks and nodes whose noise was estimated, from how many repeats, and by what it was raised;
    nothing where none was.
    """
    if reach.estimates is None:
        return {}
    held, blocks, nodes = operator.held, problem.block_by_id, problem.node_by_id
    common = {"confidence": estimate_confidence(problem, held.estimates)}
    entries, scattering = [], []
    for name, inflation in held.inflation.items():
        entry = blocks.get(name) or nodes[name]
        one = {"repeats": entry.estimated_from, "inflation": inflation, **common}
        if name in blocks:
            entries.append({"block": name, "rows": held.together[name], **one})
        else:
            scattering.append({"node": name, "rows": nodes[name].dim, **one})
    told = {"nodes": scattering} if scattering else {}
    return {"estimated": {"blocks": entries, "confidence": reach.estimates} | told}


def _shared_section(problem: Problem, operator: Operator, noisy: Sequence[str]) -> list[dict[str, Any]]:
    """Which blocks of the design share noise, and by what their variances were raised to cover it;
    see the specification.
    """
    held, known, result = operator.held, set(noisy), list[dict[str, Any]]()
    families: dict[str, list[str]] = {}
    for name in operator.block_ids:
        block = problem.block_by_id[name]
        if name in held.sharing and block.correlation is not None:
            families.setdefault(block.family_name, []).append(name)
    for members in families.values():
        rho = problem.block_by_id[members[0]].correlation
        there = [name for name in members if name in known]
        entry = {"members": len(members), "correlation": rho, "covariance": None}
        result += [{"blocks": there, **entry, "dilation": held.dilation.get(there[0], 1.0)}] if there else []
    for noise in problem.noise:
        members = [name for name in noise.blocks if name in held.sharing]
        there = [name for name in members if name in known]
        matrix = None
        if there and noise.covariance is not None:
            joint = JointCovariance.of(problem, noise)
            matrix = joint.whitened([name in held.sharing for name in noise.blocks])[0].tolist()
        entry = {"members": len(members), "correlation": noise.correlation, "covariance": matrix}
        result += [{"blocks": there, **entry, "dilation": held.dilation.get(there[0], 1.0)}] if there else []
    return result


def further_budgets(budgets: Sequence[int] | None, k: int, record: OperatorRecord) -> list[int]:
    if budgets is None:
        nodes = len(record.node_ids)
        return [k + 1] if 2 * k < nodes and comb(nodes, min(2 * k + 2, nodes)) <= NEXT_BUDGET_SUPPORTS else []
    return sorted({check_k(value, k) for value in budgets} - {k})


def budget_sections(
    record: OperatorRecord, further: list[int], options: dict[str, Any], told: Callable[..., None]
) -> list[dict[str, Any]]:
    """γ for larger budgets: what is left if more answers are wrong than was thought."""
    from rrf_design.checker.proofs import prove_floor

    result = []
    for k in further:
        try:
            standing = climb(record, k, rung=Rung.BRANCH_AND_BOUND, progress=told, **options)
        except KeyboardInterrupt:  # the bounds that were reached for this k are not those that were asked for
            raise KeyboardInterrupt from None
        witness, _, upper = witness_section(record, standing.support, standing.direction)
        lower = min(standing.lower, upper)
        proof = prove_floor(record, 2 * k, floor=lower, time_limit=options["time_limit"], progress=told)
        result.append(
            {"k": k, "lower": lower if proof.outcome == "proved" else 0.0, "upper": upper, "witness": witness}
        )
    return result


def conditional_section(record: OperatorRecord, supports: Sequence[Sequence[str]]) -> dict[str, Any]:
    lower, worst, vector = listed(record, supports)
    direction = np.zeros(record.columns)
    direction[record.columns_of(worst)] = vector
    witness, _, upper = witness_section(record, worst, direction)
    return {
        "supports": [list(names) for names in supports],
        "lower": min(lower, upper),
        "upper": upper,
        "witness": witness,
    }


def audit_section(
    witness: dict[str, Any], image2: Fraction, upper: float, k: int, premise: Premise = PLAIN
) -> dict[str, Any]:
    pair, sensitivity = None, None
    if upper <= ZERO:
        parts = list(premise.partition(witness["support"]).values())
        half = min(k, (len(parts) + 1) // 2)
        pair = {
            "first": [n for unit in parts[:half] for n in unit],
            "second": [n for unit in parts[half:] for n in unit],
        }
    else:
        sensitivity = float_down(1 / Fraction(upper))
    return {"residual": sqrt_up(image2), "pair": pair, "sensitivity": sensitivity}


def metrics_section(problem: Problem, operator: Any) -> dict[str, Any]:
    own = problem.noisy.union(block.id for block in problem.blocks if block.metric is not None)
    whitened = [name for name in operator.block_ids if name in own]
    return {
        "norm": NORM,
        "weights": WEIGHTS,
        "fibers": list(operator.fiber_factors),
        "whitened": whitened,
    }


def positive(value: float | None, name: str) -> float | None:
    if value is not None and not 0.0 < value < float("inf"):
        raise InputError(f"{name} must be a positive number, not {value!r}")
    return value


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
    nothing = no_nullspace()
    if record.columns > SMALL or record.rows * record.columns > DENSE_ENTRIES or not record.calm:
        return nothing
    dense = record.matrix.toarray()
    padded = np.vstack([dense, np.zeros((max(0, record.columns - record.rows), record.columns))])
    _, values, right = np.linalg.svd(padded, full_matrices=False)
    scale = float(values[0]) if len(values) else 0.0
    if values[-1] > 1e-7 * max(scale, 1e-30):
        tau = float(np.nextafter(1.0 / (values[-1] * (1 - 1e-6)), np.inf))
        return {**nothing, "status": str(NullSpace.CERTIFIED), "rho": RHO, "tau": tau, **constants(RHO, tau)}
    kernel = right[values <= 1e-7 * max(scale, 1e-30)]
    found = _concentrated(record, kernel, k)
    if found is None and k == 1 and record.columns == len(record.node_ids) <= DUAL_COORDINATES:
        found = _lightest_direction(record, kernel)
    if found is None:
        gauges = _disjoint(record, kernel)
        floor = float(values[len(values) - len(kernel) - 1]) if len(kernel) < len(values) else 1.0
        basis: dict[str, Any] | None = None if gauges is None else {"floor": 0.999 * floor, "directions": gauges}
        carried = None if basis is None else kernel_constants(basis, record, k)
        if carried is None and record.columns <= DUAL_COORDINATES:
            basis = {"dual": _dual_rows(record, kernel).tolist()}
            carried = kernel_constants(basis, record, k)
        if carried is None:
            return nothing
        rho, tau = carried
        return {**nothing, "status": str(NullSpace.CERTIFIED), "rho": rho, "tau": tau, "kernel": basis} | constants(
            rho, tau
        )
    chosen, direction = found
    spread = _spread(_node_norms(record, direction), chosen, k)
    residual = sqrt_up(squared_image(record.by_column, direction))  # where products cancel, floats know nothing of it
    tau = min(1e12, 0.5 * spread / max(residual, 1e-300))
    if spread <= 0.0 or tau < LEAST_TAU:
        return nothing
    witness = {
        "set": [record.node_ids[i] for i in chosen],
        "direction": [direction[a:b].tolist() for a, b in _spans(record)],
    }
    return {**nothing, "status": str(NullSpace.REFUTED), "tau": tau, "witness": witness}


def _disjoint(record: OperatorRecord, kernel: NDArray[np.float64]) -> list[dict[str, Any]] | None:
    """Kernel directions on disjoint node sets, one per component of the field; None when a
    component has more.
    """
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
    """A kernel direction with much weight on k nodes: reweighted least squares from the nodes the
    kernel favours most.

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
            # largest ‖h_S‖² for a given weighted norm: a small generalised eigenproblem in kernel
            # coordinates
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
    return float(np.linalg.norm(inside)) - float(norms.sum() - inside.sum()) / sqrt(k)


def _spans(record: OperatorRecord) -> list[tuple[int, int]]:
    starts = record.node_starts
    return [(a, b) for a, b in pairwise(starts.tolist())]


def _node_norms(record: OperatorRecord, direction: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.sqrt(np.add.reduceat(np.square(direction), record.node_starts[:-1]))


def _dual_rows(record: OperatorRecord, kernel: NDArray[np.float64]) -> NDArray[np.float64]:
    """U with U z = z for every z in the kernel and U_ii = 0, the largest ‖U_ij‖ as small as can be
    had.
    """
    result = np.zeros((record.columns, record.columns))
    scalar = record.columns == len(record.node_ids)
    for node in range(len(record.node_ids)):
        own = record.columns_of([node])
        result[own] = _lightest_row(kernel, node) if scalar else _lightest_rows(record, kernel, own)
    return np.round(result, 9)


def _lightest_row(kernel: NDArray[np.float64], node: int) -> NDArray[np.float64]:
    """Of a scalar node: a linear program.

    Zeros when there is none (a gauge lives on this node alone).
    """
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
    """Of a node with several coordinates: Lawson's reweighting, where weights grow with the
    norms.
    """
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


def _lightest_direction(record: OperatorRecord, kernel: NDArray[np.float64]) -> tuple[list[int], Any] | None:
    """A direction of the kernel whose value on one scalar node outweighs all others together, by
    linear programs.
    """
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
