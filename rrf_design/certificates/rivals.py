"""The pair that nobody can tell apart, for a certificate: from the witness of its margin, at distance min(R, 2ε/γ).

`solvers.rival_pair` makes it in floating point; what is written has been measured in rational arithmetic by the formulas of the
checker, and shortened where rounding would have carried it beyond ε. Where margins are zero and nothing bounds an error, the two are
shown at distance 1: any multiple does as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from rrf_design.certificates.checker.exact import sqrt_down, sqrt_up, squared_norm
from rrf_design.certificates.checker.premises import Premises
from rrf_design.certificates.checker.rivals import measure
from rrf_design.premise import Protected

if TYPE_CHECKING:
    from rrf_design.certificates.checker.noise import NoiseRadius
    from rrf_design.certificates.checker.record import OperatorRecord
    from rrf_design.operators import Operator
    from solvers import RivalPair

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
    protection: dict[str, Any] | None,
) -> dict[str, Any] | None:
    """The section, or None where no pair is admissible: there is no noise to hide in, or rows without noise see the witness."""
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
    premises = None if protection is None else Premises.read(protection, record)
    noisy = None if noise.blocks is None else list(noise.blocks)
    shown = next((x for x in (*pair.first, *pair.first_disturbance) if x), 1.0)
    for share in SHORTER:
        claim = _claim(operator, pair, share if shown > 0 else -share)  # the first error upwards, on every machine
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


def _claim(operator: Operator, pair: RivalPair, share: float) -> dict[str, Any]:
    return {
        "first": _side(operator, share * pair.first, share * pair.first_disturbance),
        "second": _side(operator, share * pair.second, share * pair.second_disturbance),
    }


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
