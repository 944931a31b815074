"""Why is the margin zero, or small? The witness in words, the blocks that don't see it, and purchases that would mend it.

The witness h is the error pattern on at most 2k nodes that changes the measurements least: ‖B h‖ = γ_k ‖h‖. Blocks
with C_j h = 0 are blind to it; a purchase helps only if it sees h, and helps enough only if no other pattern is as
well hidden afterwards. So every purchase named here has had its margin computed, not guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from rrf_design.reporting.fieldview import FieldView
from rrf_design.reporting.mending import Purchase, cheapest_mend, reaches, single_purchases

if TYPE_CHECKING:
    from rrf_design.margins import DesignMargin
    from rrf_design.problem import Problem, Selection


class Cause(StrEnum):
    """What kind of error the witness is."""

    UNTOUCHED = "untouched"
    """A node that no block of the design touches."""
    SHARED = "shared"
    """A connected part without any anchor, wrong in the same way everywhere: consistent, and false."""
    CANCELLING = "cancelling"
    """An error that the blocks on these nodes don't separate, though anchors or other nodes are connected to them."""
    WEAK = "weak"
    """Seen, but weakly: γ is positive."""


@dataclass(frozen=True)
class Explanation:
    """The margin of a design, and why it is no larger."""

    margin: DesignMargin
    wanted: float | None
    """The margin asked for: the problem's target, or 2ε/δ; None when the problem names neither."""
    cause: Cause
    view: FieldView
    sees: Mapping[str, float]
    """Blocks of the design that see the witness, with ‖C_j h‖², strongest first."""
    blind: tuple[str, ...]
    """Blocks of the design that touch the witness's nodes and don't see it."""
    singles: tuple[Purchase, ...]
    """Single purchases that see the witness, largest margin afterwards first."""
    mend: Purchase | None
    """Purchases that together reach what is wanted (or any positive margin); None when nothing found on sale does."""
    proven: bool
    """About `mend`: nothing cheaper does it, or (where it is None) nothing on sale does it at all."""

    @property
    def enough(self) -> bool:
        return reaches(self.margin.lower, self.wanted)

    def to_json(self) -> dict[str, Any]:
        result = self.margin.to_json()
        result.update(
            wanted=self.wanted,
            enough=self.enough,
            cause=str(self.cause),
            words=words(self),
            seen_by=dict(self.sees),
            blind=list(self.blind),
            purchases=[p.to_json() for p in self.singles],
            mend=None if self.mend is None else self.mend.to_json(),
            proven=self.proven,
        )
        return result


def explain(
    problem: Problem, select: Selection = None, *, k: int | None = None, mend: bool = True, **options: Any
) -> Explanation:
    """Explain the margin of what is owned plus what is selected; `options` go to the margin solver."""
    margin = problem.margin(select, k=k, **options)
    view = FieldView(problem, margin.selected, margin.witness)
    energies = view.energies
    inside = set(view.shares)
    design = [problem.block_by_id[name] for name in margin.operator.block_ids]
    sees = {b.id: energies[b.id] for b in sorted(design, key=lambda b: -energies[b.id]) if energies[b.id] > 0}
    blind = tuple(b.id for b in design if b.id not in sees and inside.intersection(b.nodes))
    wanted = wanted_margin(problem)
    singles = single_purchases(problem, margin, {name: e for name, e in energies.items() if e > 0}, options)
    found, proven = None, False
    if mend and not reaches(margin.lower, wanted):
        found, proven = cheapest_mend(problem, margin, singles, wanted, options)
    return Explanation(margin, wanted, _cause(problem, margin, view), view, sees, blind, singles, found, proven)


def wanted_margin(problem: Problem) -> float | None:
    """The problem's target, or the margin 2ε/δ at which noise ε can't cause an error beyond δ."""
    if problem.target is not None:
        return problem.target
    if problem.epsilon is not None and problem.delta is not None:
        return 2 * problem.epsilon / problem.delta
    return None


def _cause(problem: Problem, margin: DesignMargin, view: FieldView) -> Cause:
    if margin.value > 0:
        return Cause.WEAK
    inside = set(view.shares)
    touching = [
        b for b in problem.blocks if view.block_status(b) in ("owned", "bought") and inside.intersection(b.nodes)
    ]
    covered = {name for block in touching for name in block.nodes}
    if not inside & covered:
        return Cause.UNTOUCHED
    if covered == inside and not any(
        name in margin.operator.block_ids and _is_anchor(problem, name) for name in (b.id for b in touching)
    ):
        return Cause.SHARED
    return Cause.CANCELLING


def _is_anchor(problem: Problem, name: str) -> bool:
    from rrf_design.blocks import Anchor

    return isinstance(problem.block_by_id[name], Anchor)


def words(explanation: Explanation) -> str:
    """The whole explanation as a few sentences."""
    margin = explanation.margin
    carriers = tuple(explanation.view.shares)
    nodes = _list(carriers)
    answers = f"{margin.k} wrong answer{'s' if margin.k > 1 else ''}"
    if explanation.cause is Cause.UNTOUCHED:
        many = len(carriers) > 1
        text = f"Nothing in this design touches {nodes}: whatever {'they answer' if many else 'it answers'}, no relation and no anchor notices."
    elif explanation.cause is Cause.SHARED:
        text = (
            f"{nodes} form a connected part of {len(carriers)} node{'s' if len(carriers) > 1 else ''} without an anchor. If they are wrong"
            f" together, in the way the relations carry an error along, every relation still holds: consistent, and false."
        )
    elif explanation.cause is Cause.CANCELLING:
        text = f"An error on {nodes} along the witness cancels in everything this design measures."
    else:
        text = (
            f"The error that hides best lies on {nodes}: a unit of it moves all measurements together by only γ_{margin.k} = {margin.value:.4g}, so noise of"
            f" size ε can hide an error of up to 2ε/γ_{margin.k} = {2 / margin.value:.4g} ε there."
        )
    if margin.value == 0:
        text += f" So no method can guarantee to find {answers}."
    return text


def _list(names: tuple[str, ...], most: int = 6) -> str:
    shown = list(names[:most]) + ([f"{len(names) - most} more"] if len(names) > most else [])
    return shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + " and " + shown[-1]
