"""The ladder of lower certificates: which rung carries the bound, chosen by size and time, and said
out loud.

A bound of branch and bound or of a relaxation is one that the verifier's own proof has confirmed,
or zero; that of a finished exact search is rigorous as it stands, and `verify` re-proves it. A
relaxation's floating-point value is lowered until its proof goes through; a mixed-integer bound is
re-proved by enumeration at its value. What can't be proven is an estimate, and an estimate is never
a certificate.

Under a premise the margin comes from the solver that the premise asks for, and the `protection`
section says what was proved; `checker.protection` re-proves it and shares no code with the
solvers.

`rivals_section` writes the pair of explanations that nobody can tell apart, made from the witness
of the margin at distance min(R, 2ε/γ). `solvers.rival_pair` makes it in floating point; what is
written has been measured in rational arithmetic by the formulas of the checker, and shortened where
rounding would have carried it beyond ε. Where margins are zero and nothing bounds an error, the two
are shown at distance 1: any multiple does as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from rrf_design.checker.exact import ProofOutcome, sqrt_down, sqrt_up, squared_norm
from rrf_design.checker.premises import Premises, measure
from rrf_design.checker.proofs import Proof, prove_dominance, prove_dual, prove_floor, prove_listed
from rrf_design.checker.record import OperatorRecord
from rrf_design.errors import InputError, Refused
from rrf_design.premise import Protected, protected

if TYPE_CHECKING:
    from rrf_design.checker.noise import NoiseRadius
    from rrf_design.operators import Operator
    from solvers.result import Progress

SLACKS = (1e-9, 1e-7, 1e-5, 1e-3, 1e-2, 0.1)  # by how much a float bound is lowered, in turn, until its proof holds
SEMIDEFINITE_ORDER = 300  # coordinates up to which `auto` tries the dual; the proof itself takes more
SECOND_OPINION = (
    "mixed-integer: a second opinion from general solvers, never chosen by auto; "
    "wherever both were measured, the search proved as much or more in a fraction of the time"
)
LEAST = 1e-100  # smaller lower bounds are reported as zero: nothing that is derived from them is a finite number


class Rung(StrEnum):
    AUTO = "auto"
    EXACT = "exact"
    BRANCH_AND_BOUND = "branch-and-bound"
    MIXED_INTEGER = "mixed-integer"
    SEMIDEFINITE = "semidefinite"
    DOMINANCE = "dominance"


PROOFS: dict[Rung, tuple[str, str, Callable[..., Proof]]] = {
    Rung.MIXED_INTEGER: ("enumeration", "", prove_floor),
    Rung.SEMIDEFINITE: ("dual", "triangle", prove_dual),
    Rung.DOMINANCE: ("dominance", "weights", prove_dominance),
}
"""Of each relaxation the kind of its proof, what its data are called there, and who proves it."""


@dataclass(frozen=True, slots=True)
class Proven:
    """A proven lower bound, the rung it stands on and the data of its proof; the best witness and
    its value.
    """

    lower: float
    rung: str
    proof: dict[str, Any]
    support: tuple[int, ...]
    direction: Any
    notes: tuple[str, ...] = field(default=())


def climb(
    record: OperatorRecord,
    k: int,
    *,
    rung: Rung,
    time_limit: float | None,
    n_jobs: int | None,
    front_end: str = "ortools",
    progress: Progress | None = None,
) -> Proven:
    """Lower bound by the asked rung, or by the best that size and time allow; the upper side always
    from the search.
    """
    from solvers import margin

    groups = record.node_sizes.tolist()
    # a relaxation needs no complete search, only a witness for the upper side
    share = 0.0 if rung in PROOFS else time_limit
    try:
        found = margin(record.matrix, groups, k=k, n_jobs=n_jobs, time_limit=share, progress=progress)
    except ValueError as error:  # entries that can't be taken exactly
        raise InputError(str(error)) from None
    notes = [f"search: {found.method}, {found.status}"]
    if rung in PROOFS:
        asked = {"upper": found.upper, "n_jobs": n_jobs, "front_end": front_end}
        best = _relaxation(record, 2 * k, rung, time_limit, notes, **asked)
    else:
        lower, reached = _searched(found, rung, time_limit)
        best = (lower, reached, {"kind": "enumeration"})
        if reached != "exact" and lower > 0.0 and not _confirmed(record, 2 * k, lower, time_limit):
            notes.append(
                f"search: {lower!r} is proven, but re-proving it takes longer than the search had, so it is not claimed"
            )
            best = (0.0, reached, {"kind": "none"})
        if rung is Rung.AUTO and reached != "exact":
            for other in (Rung.DOMINANCE, Rung.SEMIDEFINITE):
                if other is Rung.SEMIDEFINITE and record.columns > SEMIDEFINITE_ORDER:
                    continue
                spare = None if time_limit is None else max(1.0, time_limit)
                tried = _relaxation(record, 2 * k, other, spare, notes)
                best = max(best, tried, key=lambda item: item[0])
    if best[0] == 0.0:
        best = (0.0, "none", {"kind": "none"})
    return Proven(best[0], best[1], best[2], found.support, found.direction, tuple(notes))


def _searched(found: Any, rung: Rung, time_limit: float | None) -> tuple[float, str]:
    """What a search proved, and which rung that is."""
    if rung is Rung.EXACT and found.status != "exact":
        raise InputError(
            f"rung exact: the search did not finish in {time_limit:g} s; raise the time limit or ask for auto"
        )
    reached = Rung.EXACT if found.status == "exact" else Rung.BRANCH_AND_BOUND
    return (float(found.lower) if found.lower >= LEAST else 0.0), str(reached)


def _confirmed(record: OperatorRecord, size: int, lower: float, time_limit: float | None) -> bool:
    """Does the verifier's own search reach this bound in the same time?"""
    try:
        return prove_floor(record, size, floor=lower, time_limit=time_limit).outcome is ProofOutcome.PROVED
    except Refused:
        return False


def _relaxation(
    record: OperatorRecord, size: int, rung: Rung, time_limit: float | None, notes: list[str], **asked: Any
) -> tuple[float, str, dict[str, Any]]:
    """The relaxation's value, lowered until the verifier's proof accepts it; `asked` is what the
    mixed-integer programs want to know.
    """
    from solvers import ball_programs, bounds

    groups = record.node_sizes.tolist()
    if not record.calm:
        notes.append(f"{rung}: entries too large, too small or too different for it")
        return 0.0, str(rung), {"kind": "none"}
    try:
        if rung is Rung.DOMINANCE:
            found = bounds.dominance(record.matrix, groups, size=size)
        elif rung is Rung.SEMIDEFINITE:
            found = bounds.semidefinite(record.matrix, groups, size=size, time_limit=time_limit)
        else:
            seconds = 30.0 if time_limit is None else time_limit
            found = ball_programs.mixed_integer(record.matrix, groups, size=size, time_limit=seconds, **asked)
            notes += [SECOND_OPINION, f"{found.method}: {found.told}"]
    except ValueError as error:
        raise InputError(f"rung {rung}: {error}; ask for another rung") from None
    notes.append(f"{found.method}: floating point suggests {found.estimate!r}")
    if found.estimate <= 0.0:
        notes.append(
            f"{found.method}: useless here, {'the relaxation' if found.finished else 'what time allowed of it'} says"
            " nothing"
        )
        return 0.0, str(rung), {"kind": "none"}
    (kind, entry, prove), data = PROOFS[rung], found.data
    for slack in SLACKS:
        floor = found.estimate * (1.0 - slack)
        if floor < LEAST:
            break
        try:
            proof = prove(record, size, floor=floor, **({"time_limit": time_limit} if data is None else {entry: data}))
        except Refused as refusal:  # beyond the checker's limits
            notes.append(f"{found.method}: {refusal}")
            break
        if proof.outcome is ProofOutcome.PROVED:
            return floor, str(rung), {"kind": kind} | ({} if data is None else {entry: data.tolist()})
    notes.append(f"{found.method}: not proven, so an estimate only")
    return 0.0, str(rung), {"kind": "none"}


def listed(record: OperatorRecord, supports: Sequence[Sequence[str]]) -> tuple[float, tuple[int, ...], Any]:
    """Exact relative to a family of supports: proven lower bound over it, the worst of them and its
    direction.
    """
    chosen = []
    for names in supports:
        for name in names:
            if name not in record.node_index:
                raise InputError(f"supports: {name!r} is not a node of this design")
        if not names or len(set(names)) != len(names):
            raise InputError("supports: every support must name at least one node, and none twice")
        chosen.append(tuple(record.node_index[name] for name in names))
    if not chosen:
        raise InputError("supports: give at least one support")
    worst, value, vector = chosen[0], float("inf"), np.zeros(0)
    for support in chosen:
        part = record.dense_part(support)
        padded = np.vstack([part, np.zeros((max(0, part.shape[1] - part.shape[0]), part.shape[1]))])
        _, sigma, right = np.linalg.svd(padded, full_matrices=False)
        if sigma[-1] < value:
            worst, value, vector = support, float(sigma[-1]), right[-1]
    for slack in (1e-14, 1e-12, *SLACKS):
        floor = value * (1 - slack)
        if floor >= LEAST and prove_listed(record, chosen, floor=floor).outcome is ProofOutcome.PROVED:
            return floor, worst, vector
    return 0.0, worst, vector


def climb_protected(
    operator: Operator, k: int, *, rung: Rung, time_limit: float | None, n_jobs: int | None, progress: Progress | None
) -> tuple[Proven, Protected]:
    """The margin under the operator's premise, as a rung of the ladder; relaxations know nothing of
    a premise.
    """
    if rung in PROOFS:
        raise InputError(
            f"rung {rung}: relaxations know nothing of units, delivered values and suspect checks; ask for auto"
        )
    found = protected(operator, k, time_limit=time_limit, n_jobs=n_jobs, progress=progress)
    solved = found.solved
    lower, reached = _searched(solved, rung, time_limit)
    proof = {"kind": "enumeration"} if lower else {"kind": "none"}
    notes = (f"search: {solved.method}, {solved.status}",)
    return Proven(lower, reached if lower else "none", proof, found.nodes, solved.direction, notes), found


def protection_section(operator: Operator, found: Protected, k: int, lower: float) -> dict[str, Any]:
    """The premise by names, what is set aside for the witness, and where relations are uncertain
    the margin of everything.
    """
    premise = operator.premise
    field_lower: float | None = None
    if premise.deliver is not None and operator.uncertain:
        field_lower = min(lower, float(protected(operator, k, premise=premise.whole).solved.lower))
    rates = {}
    if premise.sure is not None:
        rates["rates"] = {"rates": list(premise.rates), "most": premise.rated, "confidence": premise.sure}
    return {
        **rates,
        "units": list(premise.partition(operator.node_ids).values()),
        "deliver": list(premise.wanted(operator.node_ids)),
        "wrong_checks": premise.wrong_checks,
        "suspects": [name for name in operator.block_ids if name in premise.suspects],
        "wrong": list(found.wrong),
        "field_lower": field_lower,
    }


FARTHEST = 1e100
"""Errors beyond this are no answers to anything."""
SHORTER = (1.0, 1.0 - 1e-9, 1.0 - 1e-6)
"""Rounding may carry a pair beyond ε: then it is drawn a little closer."""


def rivals_section(
    operator: Operator,
    record: OperatorRecord,
    found: Protected,
    *,
    noise: NoiseRadius,
    largest_error: float | None,
    premises: Premises | None,
) -> dict[str, Any] | None:
    """The section, or None where no pair is admissible: there is no noise to hide in, or rows
    without noise see the witness.
    """
    from solvers import rival_pair

    margin = found.solved if found.suspected is None else found.suspected
    epsilon = noise.epsilon or 0.0
    if not epsilon and margin.value > 0.0:
        return None
    reach = FARTHEST if margin.value > 0.0 else 1.0
    heights = np.diff(operator.block_offsets).tolist()
    pair = rival_pair(
        operator.matrix, margin, epsilon=epsilon, radius=largest_error or reach, blocks=heights if found.wrong else None
    )
    noisy = None if noise.blocks is None else list(noise.blocks)
    shown = next((x for x in (*pair.first, *pair.first_disturbance) if x), 1.0)
    for share in SHORTER:
        way = share if shown > 0 else -share  # the first error upwards, on every machine
        claim: dict[str, Any] = {
            "first": _side(operator, way * pair.first, way * pair.first_disturbance),
            "second": _side(operator, way * pair.second, way * pair.second_disturbance),
        }
        apart = measure(claim, record, premises, noisy)
        claim["residual"] = sqrt_up(apart.image2 / 4)
        claim["distance"] = sqrt_down(apart.delivered2)
        sizes = [squared_norm([x for part in claim[side]["direction"] for x in part]) for side in ("first", "second")]
        small = largest_error is None or max(sizes) <= Fraction(largest_error) ** 2
        if claim["residual"] <= epsilon and apart.quiet2 == 0 and claim["distance"] > 0.0 and small:
            return claim
    return None


def plain_witness(operator: Operator, support: Sequence[int], direction: Any, *, value: float, k: int) -> Protected:
    """The witness of a margin that any rung of the ladder found, as a margin under no premise."""
    from solvers import Margin, Status

    solved = Margin(
        value=value,
        lower=0.0,
        upper=value,
        support=tuple(int(i) for i in support),
        direction=np.array(direction, dtype=np.float64),
        status=Status.BOUNDED,
        method="witness",
        support_size=2 * k,
        groups=operator.groups,
    )
    return Protected(solved, solved.support, tuple(operator.node_ids[i] for i in solved.support))


def _side(operator: Operator, error: Any, disturbance: Any) -> dict[str, Any]:
    parts = {name: error[operator.groups[i]].tolist() for i, name in enumerate(operator.node_ids)}
    cuts = operator.block_offsets
    rows = {name: disturbance[cuts[j] : cuts[j + 1]].tolist() for j, name in enumerate(operator.block_ids)}
    wrong, checks = _nonzero(parts), _nonzero(rows)
    return {
        "support": list(wrong),
        "direction": list(wrong.values()),
        "checks": list(checks),
        "disturbance": list(checks.values()),
    }


def _nonzero(parts: dict[str, list[float]]) -> dict[str, list[float]]:
    return {name: part for name, part in parts.items() if any(part)}
