"""certify: the paper's audit recipe on one design, written down as a certificate that anybody can re-prove.

Fix coordinates, norms, weights and k; assemble B; prove the lower bound on the best rung that size and time allow; store
support and witness and check them directly; at zero margin give the indistinguishable pair, at a positive one the
sensitivity along the witness; whiten, and subtract what the operator's own uncertainty may cost.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import comb
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rrf_design.certificates.document import FORMAT, VERSION, content_digest
from rrf_design.certificates.errors import Tail, Tolerances, error_section
from rrf_design.certificates.exact import float_down, sqrt_up, squared_image, squared_norm
from rrf_design.certificates.ladder import Progress, Rung, climb, listed
from rrf_design.certificates.noise import Noise, NoiseKind, joint_confidence, radius
from rrf_design.certificates.nullspace import nullspace_section
from rrf_design.certificates.record import INLINE_ENTRIES, OperatorRecord, record_of
from rrf_design.certificates.regime import CONSEQUENCE, ZERO, Finding, Regime, regime
from rrf_design.certificates.uncertainty import Uncertainty, robust_floor
from rrf_design.errors import InputError
from rrf_design.files import digest, from_document, to_document, write_text
from rrf_design.margins import check_k

if TYPE_CHECKING:
    from rrf_design.problem import Problem, Selection

VERIFY_RATIO, VERIFY_LEAST = (
    2.0,
    0.01,
)  # seconds to verify against seconds to search: the published benchmark's median, about
NEXT_BUDGET_SUPPORTS = (
    5_000_000  # up to this many node sets the next budget k + 1 is certified as well, unless told otherwise
)


@dataclass(frozen=True)
class Certificate:
    """A certificate in memory. `document` is what is written; `record` the operator it speaks of.

    `bare` is the operator without whitening, where there is whitening; `verification_seconds` roughly what checking the
    certificate will take here (about as long as the search took; it does not stand in the document, which is the same
    for the same design).
    """

    document: dict[str, Any]
    record: OperatorRecord
    required: float | None = None
    path: Path | None = None
    bare: OperatorRecord | None = None
    verification_seconds: float | None = None

    @property
    def gamma_lower(self) -> float:
        return float(self.document["margin"]["lower"])

    @property
    def gamma_upper(self) -> float:
        return float(self.document["margin"]["upper"])

    @property
    def robust_lower(self) -> float:
        return float(self.document["uncertainty"]["robust_lower"])

    @property
    def error_bound(self) -> float | None:
        bound = self.document["error"]["bound"]
        return None if bound is None else float(bound)

    @property
    def regime(self) -> Regime:
        return Regime(self.document["regime"]["name"])

    @property
    def certificate(self) -> Path | dict[str, Any]:
        """Where it was written, or the document."""
        return self.document if self.path is None else self.path

    @property
    def met(self) -> bool:
        """Is the required margin proven, uncertainty included? True where nothing is required."""
        return self.required is None or self.robust_lower >= self.required

    def to_json(self) -> dict[str, Any]:
        return {
            "gamma_lower": self.gamma_lower,
            "gamma_upper": self.gamma_upper,
            "robust_lower": self.robust_lower,
            "error_bound": self.error_bound,
            "regime": str(self.regime),
            "certificate": str(self.path) if self.path is not None else self.document,
            "k": self.document["k"],
            "rung": self.document["margin"]["rung"],
            "status": self.document["margin"]["status"],
            "required": self.required,
            "met": self.met,
            "verification_seconds": self.verification_seconds,
        }

    def save(self, path: str | os.PathLike[str]) -> Certificate:
        """Write the document, and a large operator beside it."""
        path = Path(path)
        claims = [(self.document["operator"], self.record)]
        if self.bare is not None:
            claims.append((self.document["unwhitened"]["operator"], self.bare))
        beside = {path.parent / claim["file"]: record for claim, record in claims if claim["storage"] == "file"}
        new = [place for place in beside if not place.exists()]
        try:
            for place, record in beside.items():
                record.save(place)
            write_text(path, json.dumps(self.document, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
        except BaseException:  # Ctrl-C too: no operator without its certificate
            for place in new:
                place.unlink(missing_ok=True)
            raise
        return replace(self, path=path)


def certify(
    problem: Problem,
    select: Selection = None,
    *,
    k: int | None = None,
    rung: Rung | str = Rung.AUTO,
    require: float | None = None,
    epsilon: float | None = None,
    sigma: float | None = None,
    confidence: float | None = None,
    noise: NoiseKind | str | None = None,
    amplitude: float | None = None,
    delta: float | None = None,
    uncertainty: Uncertainty | None = None,
    tolerances: Tolerances | None = None,
    tail: Tail | None = None,
    budgets: Sequence[int] | None = None,
    supports: Sequence[Sequence[str]] | None = None,
    front_end: str = "ortools",
    time_limit: float | None = 60.0,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Certificate:
    """What can be promised about the owned blocks plus `select`.

    `epsilon`, `sigma`, `confidence`, `amplitude` and `delta` replace the problem's. `noise` chooses how sigma becomes a radius
    ("gaussian", "chi", "subgaussian"; default chi). `budgets` are further values of k to certify; `supports` a family of node
    sets for a bound that holds relative to it only. `time_limit` applies to each search. `progress` hears of the share done and the bounds
    proven so far. InputError for what doesn't fit.
    """
    from rrf_design import __version__

    budget = check_k(k, problem.k)
    if rung not in set(Rung):
        raise InputError(f"rung: {rung!r} is not one of {', '.join(Rung)}")
    if front_end not in ("ortools", "pulp"):
        raise InputError(f"front_end: {front_end!r} is not one of ortools, pulp")
    operator = problem.operator(select)
    spread = Uncertainty() if uncertainty is None else uncertainty
    radii = np.array(operator.radii)
    for name, value in spread.radii.items():
        if name not in problem.block_by_id:
            raise InputError(f"uncertainty: {name!r} is not a block of this problem")
        if name in operator.block_index:
            radii[operator.block_index[name]] = value
    record = record_of(operator, radii=radii)
    options: dict[str, Any] = {"time_limit": time_limit, "n_jobs": n_jobs, "front_end": front_end}
    began = time.monotonic()
    standing = climb(record, budget, rung=Rung(rung), progress=progress, **options)
    searched = time.monotonic() - began
    witness, image2, upper = _witness(record, standing.support, standing.direction)
    lower = min(standing.lower, upper)
    exact = lower >= upper * (1 - 1e-6) or upper <= ZERO

    def told(done: float, *_: float) -> None:  # what follows changes nothing about these bounds
        if progress is not None:
            progress(done, lower, upper)

    told(1.0)
    loss = _uncertainty(record, lower, standing, 2 * budget, spread, time_limit, told)
    known = _noise(problem, operator, epsilon=epsilon, sigma=sigma, confidence=confidence, kind=noise)
    joint = joint_confidence(known.confidence, spread.confidence)
    error = error_section(
        lower=lower,
        upper=upper,
        robust_lower=loss["robust_lower"],
        eta=loss["eta"],
        epsilon=known.epsilon,
        sigma=known.sigma if known.kind in (NoiseKind.GAUSSIAN, NoiseKind.CHI) else None,
        amplitude=_positive(problem.amplitude if amplitude is None else amplitude, "amplitude"),
        delta=_positive(problem.delta if delta is None else delta, "delta"),
        confidence=joint,
        tolerances=tolerances,
        tail=tail,
    )
    bare = _bare_record(problem, select)
    verdict = regime(Finding(lower, loss["robust_lower"], error["bound"], error["delta"], error["amplitude"]))
    document: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "problem": {"name": problem.name, "digest": digest(problem), "selected": list(problem.resolve(select))},
        "operator": record.to_document(file=_file_name(record)),
        "k": budget,
        "metrics": _metrics(problem, operator),
        "margin": {
            "lower": lower,
            "upper": upper,
            "status": "exact" if exact else "bounded",
            "rung": standing.rung,
            "proof": standing.proof,
        },
        "witness": witness,
        "conditional": None if supports is None else _conditional(record, supports),
        "uncertainty": loss,
        "noise": _noise_section(known),
        "error": error,
        "regime": {"name": str(verdict), "consequence": CONSEQUENCE[verdict]},
        "budgets": _budgets(record, _further(budgets, budget, record), options, told),
        "nullspace": nullspace_section(record, budget),
        "unwhitened": None if bare is None else _unwhitened(bare, budget, options, told),
        "audit": _audit(witness, image2, upper, budget),
        "assumptions": _assumptions(budget, known, spread, record, tail),
        "provenance": {"package": f"rrf-design {__version__}", "notes": list(standing.notes)},
    }
    document["digest"] = content_digest(document)
    return Certificate(
        document, record, require, bare=bare, verification_seconds=VERIFY_RATIO * searched + VERIFY_LEAST
    )


def _witness(record: OperatorRecord, support: Sequence[int], direction: Any) -> tuple[dict[str, Any], Fraction, float]:
    """The witness by node, ‖Bh‖² exactly, and ‖Bh‖/‖h‖ rounded up."""
    nodes = [int(i) for i in support]
    starts = record.node_starts
    parts = [[float(x) for x in np.asarray(direction)[starts[i] : starts[i + 1]]] for i in nodes]
    vector = [x for part in parts for x in part]
    image2 = squared_image(record.by_column[:, record.columns_of(nodes)], vector)
    length2 = squared_norm(vector)
    named = {"support": [record.node_ids[i] for i in nodes], "direction": parts}
    return named, image2, sqrt_up(image2 / length2)


def _uncertainty(
    record: OperatorRecord,
    lower: float,
    standing: Any,
    size: int,
    spread: Uncertainty,
    time_limit: float | None,
    told: Callable[..., None],
) -> dict[str, Any]:
    eta = sqrt_up(squared_norm(record.radii[record.radii > 0]))
    shrunk = max(0.0, float_down(Fraction(lower) - Fraction(eta)))
    per_support: float | None = None
    if eta == 0.0:
        per_support = lower
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
    from rrf_design.certificates.proofs import support_radii
    from solvers import worst_supports

    found = worst_supports(record.matrix, record.node_sizes.tolist(), size=size, count=64)
    values = [s.value - float(np.sqrt(sum(r * r for r in support_radii(record, s.support)))) for s in found]
    return min([lower, *(value * (1 - 1e-10) for value in values)])


def _noise(
    problem: Problem,
    operator: Any,
    *,
    epsilon: float | None,
    sigma: float | None,
    confidence: float | None,
    kind: NoiseKind | str | None,
) -> Noise:
    """The noise radius: given, declared in the problem, or from the covariances its blocks declare."""
    rows = operator.shape[0]
    if kind is not None and kind not in set(NoiseKind):
        raise InputError(f"noise: {kind!r} is not one of {', '.join(NoiseKind)}")
    if epsilon is None and sigma is None:
        epsilon, sigma = problem.epsilon, problem.sigma
    if epsilon is not None and sigma is not None:
        raise InputError("noise: give epsilon or sigma, not both")
    if epsilon is not None:
        if not 0.0 <= epsilon < float("inf"):
            raise InputError(f"epsilon must be a number of at least 0, not {epsilon!r}")
        return Noise(NoiseKind.DETERMINISTIC, float(epsilon), rows=rows)
    blocks = None
    if sigma is None:
        noisy = [j for j, name in enumerate(operator.block_ids) if _declares_noise(problem, name)]
        if not noisy:
            return Noise(NoiseKind.NONE, None, rows=rows)
        # whitened rows carry unit variance times their family's share w/m
        sigma = max(_share(problem, operator.block_ids[j]) for j in noisy)
        blocks = tuple(operator.block_ids[j] for j in noisy)
        rows = int(sum(operator.block_offsets[j + 1] - operator.block_offsets[j] for j in noisy))
    level = problem.confidence if confidence is None else confidence
    shape = NoiseKind.CHI if kind is None else NoiseKind(kind)
    if not shape.random:
        raise InputError(f"noise: {shape} needs epsilon, not sigma")
    reach = radius(shape, sigma=float(_positive(sigma, "sigma") or 0.0), rows=rows, confidence=level)
    return Noise(shape, reach, sigma=float(sigma), confidence=level, rows=rows, blocks=blocks)


def _declares_noise(problem: Problem, name: str) -> bool:
    block = problem.block_by_id[name]
    return block.sigma is not None or block.covariance is not None


def _share(problem: Problem, name: str) -> float:
    block = problem.block_by_id[name]
    return float(np.sqrt(block.weight / problem.family_size[block.family_name]) * (1 + 1e-15))


def _noise_section(noise: Noise) -> dict[str, Any]:
    return {
        "kind": str(noise.kind),
        "epsilon": noise.epsilon,
        "sigma": noise.sigma,
        "confidence": noise.confidence,
        "blocks": None if noise.blocks is None else list(noise.blocks),
        "rows": noise.rows,
    }


def _further(budgets: Sequence[int] | None, k: int, record: OperatorRecord) -> list[int]:
    if budgets is None:
        nodes = len(record.node_ids)
        return [k + 1] if 2 * k < nodes and comb(nodes, min(2 * k + 2, nodes)) <= NEXT_BUDGET_SUPPORTS else []
    return sorted({check_k(value, k) for value in budgets} - {k})


def _budgets(
    record: OperatorRecord, further: list[int], options: dict[str, Any], told: Callable[..., None]
) -> list[dict[str, Any]]:
    """γ for larger budgets: what is left if more answers are wrong than was thought."""
    from rrf_design.certificates.proofs import prove_floor

    result = []
    for k in further:
        try:
            standing = climb(record, k, rung=Rung.BRANCH_AND_BOUND, progress=told, **options)
        except KeyboardInterrupt:  # the bounds that were reached for this k are not those that were asked for
            raise KeyboardInterrupt from None
        witness, _, upper = _witness(record, standing.support, standing.direction)
        lower = min(standing.lower, upper)
        proof = prove_floor(record, 2 * k, floor=lower, time_limit=options["time_limit"], progress=told)
        result.append(
            {"k": k, "lower": lower if proof.verdict == "proved" else 0.0, "upper": upper, "witness": witness}
        )
    return result


def _conditional(record: OperatorRecord, supports: Sequence[Sequence[str]]) -> dict[str, Any]:
    lower, worst, vector = listed(record, supports)
    direction = np.zeros(record.columns)
    direction[record.columns_of(worst)] = vector
    witness, _, upper = _witness(record, worst, direction)
    return {
        "supports": [list(names) for names in supports],
        "lower": min(lower, upper),
        "upper": upper,
        "witness": witness,
    }


def _audit(witness: dict[str, Any], image2: Fraction, upper: float, k: int) -> dict[str, Any]:
    pair, sensitivity = None, None
    if upper <= ZERO:
        half = (len(witness["support"]) + 1) // 2
        pair = {"first": witness["support"][: min(k, half)], "second": witness["support"][min(k, half) :]}
    else:
        sensitivity = float_down(1 / Fraction(upper))
    return {"residual": sqrt_up(image2), "pair": pair, "sensitivity": sensitivity}


def _metrics(problem: Problem, operator: Any) -> dict[str, Any]:
    whitened = [
        n for n in operator.block_ids if _declares_noise(problem, n) or problem.block_by_id[n].metric is not None
    ]
    return {
        "norm": "Euclidean in whitened coordinates: a field's length is taken in the declared fiber metrics, a residual's"
        " in the declared row metrics or covariances",
        "weights": "the declared members of a family share its weight, w/m each",
        "fibers": list(operator.fiber_factors),
        "whitened": whitened,
    }


def _assumptions(k: int, noise: Noise, spread: Uncertainty, record: OperatorRecord, tail: Tail | None) -> list[str]:
    lines = [
        f"At most {k} of the {len(record.node_ids)} answers are wrong{'' if tail is None else ', up to the stated tail'}.",
        "Relations, transports, anchors and parsers are those of the operator in this certificate.",
        "The error bounds hold for every estimate with at most k wrong answers whose residual is within the noise radius.",
    ]
    if noise.kind.random:
        lines.append(
            f"The noise of {noise.rows} rows is {noise.kind} with standard deviation {noise.sigma!r} in each; the radius holds"
            f" with probability {noise.confidence!r}."
        )
    if record.radii.any():
        held = "for certain" if spread.confidence is None else f"together with probability {spread.confidence!r}"
        lines.append(f"A block's error touches only its own nodes; the radii ({spread.source}) hold {held}.")
    return lines


def _bare_record(problem: Problem, select: Selection) -> OperatorRecord | None:
    """The operator without whitening by declared noise; None where nothing is whitened by it."""
    if not any(block.sigma is not None or block.covariance is not None for block in problem.blocks):
        return None
    document = to_document(problem)
    for block in (*document.get("relations", ()), *document.get("anchors", ())):
        block.pop("sigma", None)
        block.pop("covariance", None)
    return record_of(from_document(document).operator(select))


def _unwhitened(bare: OperatorRecord, k: int, options: dict[str, Any], told: Callable[..., None]) -> dict[str, Any]:
    """The margin in the units of the problem file, to be compared with the covariance-aware one (audit recipe)."""
    bounds = _budgets(bare, [k], options, told)[0]
    return {
        "operator": bare.to_document(file=_file_name(bare)),
        **{key: bounds[key] for key in ("lower", "upper", "witness")},
    }


def _file_name(record: OperatorRecord) -> str | None:
    return None if len(record.data) <= INLINE_ENTRIES else f"operator-{record.digest[:16]}.npz"


def _positive(value: float | None, name: str) -> float | None:
    if value is not None and not 0.0 < value < float("inf"):
        raise InputError(f"{name} must be a positive number, not {value!r}")
    return value
