"""Certificates under a premise: the margin by the solver that the premise asks for, and the `protection` section.

What it claims is re-proved by `checker.protection`, which shares no code with the solvers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rrf_design.certificates.checker.exact import sqrt_up
from rrf_design.certificates.checker.premises import Premises
from rrf_design.certificates.ladder import LEAST, Proven, Rung
from rrf_design.errors import InputError
from rrf_design.premise import Protected, protected

if TYPE_CHECKING:
    from fractions import Fraction

    from rrf_design.certificates.checker.record import OperatorRecord
    from rrf_design.operators import Operator
    from solvers.result import Progress

RUNGS = (Rung.AUTO, Rung.EXACT, Rung.BRANCH_AND_BOUND)


def climb_protected(
    operator: Operator, k: int, *, rung: Rung, time_limit: float | None, n_jobs: int | None, progress: Progress | None
) -> tuple[Proven, Protected]:
    """The margin under the operator's premise, as a rung of the ladder; relaxations know nothing of a premise."""
    if rung not in RUNGS:
        raise InputError(
            f"rung {rung}: relaxations know nothing of units, delivered values and suspect checks; ask for auto"
        )
    found = protected(operator, k, time_limit=time_limit, n_jobs=n_jobs, progress=progress)
    solved = found.solved
    reached = "exact" if solved.status == "exact" else "branch-and-bound"
    if rung is Rung.EXACT and reached != "exact":
        raise InputError(
            f"rung exact: the search did not finish in {time_limit:g} s; raise the time limit or ask for auto"
        )
    lower = float(solved.lower) if solved.lower >= LEAST else 0.0
    proof = {"kind": "enumeration"} if lower else {"kind": "none"}
    notes = (f"search: {solved.method}, {solved.status}",)
    return Proven(lower, reached if lower else "none", proof, found.nodes, solved.direction, notes), found


def protection_section(operator: Operator, found: Protected, k: int, lower: float) -> dict[str, Any]:
    """The premise by names, what is set aside for the witness, and where relations are uncertain the margin of everything."""
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


def protected_witness(
    record: OperatorRecord, section: dict[str, Any], found: Protected
) -> tuple[dict[str, Any], Fraction, float]:
    """The witness by node, ‖Bh‖² exactly, and ‖Bh‖/‖h_D‖ rounded up."""
    nodes = [int(i) for i in found.nodes]
    starts = record.node_starts
    parts = [[float(x) for x in np.asarray(found.solved.direction)[starts[i] : starts[i + 1]]] for i in nodes]
    image2, length2 = Premises.read(section, record).quotient(nodes, [x for part in parts for x in part])
    named = {"support": [record.node_ids[i] for i in nodes], "direction": parts}
    return named, image2, sqrt_up(image2 / length2)


def unwhitened_protected(bare: Operator, k: int, time_limit: float | None) -> dict[str, Any]:
    """The margin in the units of the problem file: told, not certified."""
    found = protected(bare, k, time_limit=time_limit)
    names = [bare.node_ids[i] for i in found.nodes]
    return {"lower": float(found.solved.lower), "upper": float(found.solved.upper), "support": names}
