"""The sections of a certificate, one function each: what `issue` puts together and `verify` takes apart again.

Everything that is claimed is computed here in rational arithmetic or rounded to the safe side; whatever is only a number
from a solver has been proven before it comes here (`ladder`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from fractions import Fraction
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np

from rrf_design.certificates.checker.exact import float_down, ratio_up, sqrt_up, squared_image, squared_norm
from rrf_design.certificates.checker.noise import NoiseKind
from rrf_design.certificates.checker.record import INLINE_ENTRIES, OperatorRecord
from rrf_design.certificates.checker.regime import ZERO
from rrf_design.certificates.checker.wording import NORM, WEIGHTS
from rrf_design.certificates.ladder import Rung, climb, listed
from rrf_design.certificates.uncertainty import Uncertainty, robust_floor
from rrf_design.covariance import whitened_covariance
from rrf_design.derive import without_noise
from rrf_design.errors import InputError
from rrf_design.margins import check_k
from rrf_design.noise import Radius, declares_noise
from rrf_design.premise import PLAIN, Premise
from rrf_design.rows import estimate_confidence, estimated_rows, raised, raised_scatter

if TYPE_CHECKING:
    from rrf_design.operators import Operator
    from rrf_design.problem import Problem, Selection

NEXT_BUDGET_SUPPORTS = (
    5_000_000  # up to so many node sets the next budget k + 1 is certified too, unless told otherwise
)


def witness_section(
    record: OperatorRecord, support: Sequence[int], direction: Any
) -> tuple[dict[str, Any], Fraction, float]:
    """The witness by node, ‖Bh‖² exactly, and ‖Bh‖/‖h‖ rounded up (0 where the columns of the support are dependent)."""
    nodes = [int(i) for i in support]
    starts = record.node_starts
    parts = [[float(x) for x in np.asarray(direction)[starts[i] : starts[i + 1]]] for i in nodes]
    vector = [x for part in parts for x in part]
    image2 = squared_image(record.by_column[:, record.columns_of(nodes)], vector)
    length2 = squared_norm(vector)
    named = {"support": [record.node_ids[i] for i in nodes], "direction": parts}
    return named, image2, ratio_up(record.dense_part(nodes), image2 / length2)


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
    """min σ − η_S over the worst supports: an upper bound, near the truth, for the search of thresholds."""
    from rrf_design.certificates.checker.proofs import support_radii
    from solvers import worst_supports

    found = worst_supports(record.matrix, record.node_sizes.tolist(), size=size, count=64)
    values = [s.value - float(np.sqrt(sum(r * r for r in support_radii(record, s.support)))) for s in found]
    return min([lower, *(value * (1 - 1e-10) for value in values)])


def noise_section(reach: Radius, problem: Problem, operator: Operator) -> dict[str, Any]:
    noise, answers = reach.rows, reach.answers
    scatter = {} if answers is None else {"answers": {**asdict(answers), "nodes": dict(answers.nodes)}}
    shared = (
        {"shared": shared_section(problem, noise.blocks or operator.block_ids)}
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
        **estimated_section(reach, problem, operator),
    }


def estimated_section(reach: Radius, problem: Problem, operator: Operator) -> dict[str, Any]:
    """Blocks and nodes whose noise was estimated, from how many repeats, and by what it was raised; nothing where none was."""
    if reach.estimates is None:
        return {}
    entries = []
    scattering = [problem.node_by_id[name] for name in operator.node_ids]
    nodes = [
        {
            "node": node.id,
            "repeats": node.estimated_from,
            "rows": node.dim,
            "inflation": raised_scatter(problem, node),
            "confidence": estimate_confidence(problem),
        }
        for node in scattering
        if node.estimated_from is not None
    ]
    for name, height in zip(operator.block_ids, np.diff(operator.block_offsets).tolist(), strict=True):
        block = problem.block_by_id[name]
        if block.estimated_from is not None:
            together = estimated_rows(problem, block, height)
            one = {"block": name, "repeats": block.estimated_from, "rows": together}
            entries.append(
                {**one, "inflation": raised(problem, block, height), "confidence": estimate_confidence(problem)}
            )
    return {"estimated": {"blocks": entries, "confidence": reach.estimates} | ({"nodes": nodes} if nodes else {})}


def shared_section(problem: Problem, noisy: Sequence[str]) -> list[dict[str, Any]]:
    """Which blocks of the design share noise, and by what their variances were raised to cover it; see the specification."""
    held = set(noisy)
    result: list[dict[str, Any]] = []
    families: dict[str, list[str]] = {}
    for block in problem.blocks:
        if block.correlation is not None and block.id in held and problem.family_size[block.family_name] > 1:
            families.setdefault(block.family_name, []).append(block.id)
    for name, blocks in families.items():
        rho = problem.block_by_id[blocks[0]].correlation
        entry = {"blocks": blocks, "members": problem.family_size[name], "correlation": rho, "covariance": None}
        result.append({**entry, "dilation": problem.dilation[blocks[0]]})
    for noise in problem.noise:
        there = [name for name in noise.blocks if name in held]
        if there:
            matrix = None if noise.covariance is None else whitened_covariance(problem, noise, noise.blocks).tolist()
            entry = {"blocks": there, "members": len(noise.blocks), "correlation": noise.correlation}
            result.append({**entry, "covariance": matrix, "dilation": problem.dilation[there[0]]})
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
    from rrf_design.certificates.checker.proofs import prove_floor

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
            {"k": k, "lower": lower if proof.verdict == "proved" else 0.0, "upper": upper, "witness": witness}
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
    whitened = [
        n for n in operator.block_ids if declares_noise(problem, n) or problem.block_by_id[n].metric is not None
    ]
    return {
        "norm": NORM,
        "weights": WEIGHTS,
        "fibers": list(operator.fiber_factors),
        "whitened": whitened,
    }


def bare_operator(problem: Problem, select: Selection) -> Operator | None:
    """The operator without whitening by declared noise; None where nothing is whitened by it."""
    bare = without_noise(problem)
    return None if bare is problem else bare.operator(select)


def unwhitened_section(
    bare: OperatorRecord, k: int, options: dict[str, Any], told: Callable[..., None]
) -> dict[str, Any]:
    """The margin in the units of the problem file, to be compared with the covariance-aware one (audit recipe).

    It is about another operator than the certificate's, so it is told under `provenance` and not certified.
    """
    bounds = budget_sections(bare, [k], options, told)[0]
    return {"lower": bounds["lower"], "upper": bounds["upper"], "support": bounds["witness"]["support"]}


def file_name(record: OperatorRecord) -> str | None:
    return None if len(record.data) <= INLINE_ENTRIES else f"operator-{record.digest[:16]}.npz"


def positive(value: float | None, name: str) -> float | None:
    if value is not None and not 0.0 < value < float("inf"):
        raise InputError(f"{name} must be a positive number, not {value!r}")
    return value
