"""What to buy next: the witness rule, alone or steered by residuals.

Each purchase attacks the worst witness of the design *with everything already chosen in it*, so a batch never attacks
one witness twice. In model-agnostic mode only the operator decides; in model-adaptive mode, among supports that are
(nearly) equally bad, the one where the answers disagree most comes first, which is more efficient and introduces selection.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from rrf_design.acquisition.shop import Bundle, Shop

if TYPE_CHECKING:
    from rrf_design.margins import DesignMargin

NEARLY = 1.05
"""Supports within this factor of the margin count as equally bad when residuals may steer."""
MOST_SUPPORTS = 64
"""So many of them are compared by their residuals."""
BLIND = 1e-18
"""‖C h‖² below this sees nothing of a unit witness."""


def present_margin(design: Shop, held: Collection[str], failed: Collection[str] = ()) -> DesignMargin | None:
    """γ of the field as it is; None where no question has been asked yet, or none of the answers could be read."""
    return design.margin(held, failed) if design.opened(held).difference(failed) else None


def best_bundle(
    design: Shop,
    held: Collection[str],
    failed: Collection[str],
    *,
    most: Fraction | None,
    answers: Mapping[str, tuple[float, ...]] | None = None,
    values: Mapping[str, tuple[float, ...]] | None = None,
) -> Bundle | None:
    """The affordable bundle with the largest ‖C h‖²/cost; None when none sees the witness (then none can help).

    An empty field has no witness; see `scheduling.beginning`.
    `answers` and `values` let residuals steer; without them the choice depends on the operator alone.
    """
    present = present_margin(design, held, failed)
    if present is None:
        return None
    witness = present.witness
    if answers is not None:
        witness = _steered(design, held, failed, answers, values or {}) or witness
    energy = design.energies(witness)
    rated = []
    for bundle in design.candidates(held, failed, most=most):
        sees = sum(energy[block] for block in design.wakes(bundle.names, held))
        if sees > BLIND:
            rated.append(Bundle(bundle.names, bundle.price, sees))
    rated.sort(key=lambda b: -score_of(b.sees, b.price))
    for bundle in rated:
        # New nodes can lower the margin (it is monotone in blocks only); such a purchase would undo itself.
        opens = any(name in design.problem.node_by_id for name in bundle.names)
        if not opens or design.margin({*held, *bundle.names}, failed).upper >= present.lower:
            return bundle
    return None


def score_of(sees: float, price: Fraction) -> float:
    """‖C h‖² per cost, rounded so that a tie is a tie on every machine and the order in the file decides."""
    return float(f"{sees / float(price):.9g}") if price else np.inf


def _steered(
    design: Shop,
    held: Collection[str],
    failed: Collection[str],
    answers: Mapping[str, tuple[float, ...]],
    values: Mapping[str, tuple[float, ...]],
) -> Mapping[str, tuple[float, ...]] | None:
    """Among nearly worst supports, the witness of the one with the largest observed residual around it."""
    operator = design.margin(held, failed).operator
    if not set(operator.node_ids) <= set(answers) or len(operator.node_ids) < 2:
        return None
    energy = {b: e for b, e in _residual_energy(design, operator.block_ids, answers, values).items() if e > BLIND}
    if not energy:
        return None  # the answers agree wherever they can be compared: nothing to steer by
    equal = design.supports_below(held, failed, factor=NEARLY, most=MOST_SUPPORTS)
    touched = {
        block: {operator.node_index[name] for name in design.problem.block_by_id[block].nodes} for block in energy
    }

    def residual(support: Collection[int]) -> float:
        return sum(energy[block] for block, nodes in touched.items() if nodes.intersection(support))

    if not equal:
        return None
    chosen = max(equal, key=lambda entry: float(f"{residual(entry.support):.9g}"))
    return operator.unstack(np.asarray(chosen.direction), only=chosen.support)


def _residual_energy(
    design: Shop,
    blocks: Collection[str],
    answers: Mapping[str, tuple[float, ...]],
    values: Mapping[str, tuple[float, ...]],
) -> dict[str, float]:
    """‖rows of the block · y − target‖² in whitened coordinates, for blocks whose target is known."""
    full = design.full
    zero = {name: (0.0,) * design.problem.node_by_id[name].dim for name in full.node_ids}
    stacked = full.stack({**zero, **{name: answers[name] for name in full.node_ids if name in answers}})
    result = {}
    known = realised_target(design, values)
    for block in blocks:
        j = full.block_index[block]
        rows = slice(int(full.block_offsets[j]), int(full.block_offsets[j + 1]))
        target = known.get(block, full.target[rows])
        if not np.isnan(target).any():
            part = full.rows_of(block) @ stacked - target
            result[block] = float(part @ part)
    return result


def realised_target(design: Shop, values: Mapping[str, tuple[float, ...]]) -> dict[str, np.ndarray]:
    """Whitened targets of anchors whose value came from a source during the run."""
    from rrf_design.rows import family_scale, whitener

    result = {}
    for name, value in values.items():
        block = design.problem.block_by_id[name]
        target = np.asarray(value, dtype=np.float64)
        white = whitener(design.problem, block, len(target))
        scale = family_scale(design.problem, block)
        result[name] = scale * (target if white is None else white @ target)
    return result
