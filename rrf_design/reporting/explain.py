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

if TYPE_CHECKING:
    from rrf_design.margins import DesignMargin
    from rrf_design.problem import Problem, Selection

TRIED = 8
"""Single purchases whose margin is computed."""


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


@dataclass(frozen=True, slots=True)
class Purchase:
    """Something that can be bought, with everything that it needs, and the margin afterwards."""

    ids: tuple[str, ...]
    cost: float
    gamma: float
    lower: float
    status: str

    def to_json(self) -> dict[str, Any]:
        return {
            "ids": list(self.ids),
            "cost": self.cost,
            "gamma": self.gamma,
            "lower": self.lower,
            "status": self.status,
        }


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
    """Purchases that together reach what is wanted (or any positive margin); None when nothing found on sale does.

    Found step by step, so not proven to be the cheapest: that is the planner's business (`rrf_design.plan`)."""

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
        )
        return result


def explain(
    problem: Problem, select: Selection = None, *, k: int | None = None, mend: bool = True, **options: Any
) -> Explanation:
    """Explain the margin of what is owned plus what is selected; `options` go to the margin solver."""
    margin = problem.margin(select, k=k, **options)
    view = FieldView(problem, margin.selected, margin.witness)
    energies = view.energies
    inside = set(margin.support)
    design = [problem.block_by_id[name] for name in margin.operator.block_ids]
    sees = {b.id: energies[b.id] for b in sorted(design, key=lambda b: -energies[b.id]) if energies[b.id] > 0}
    blind = tuple(b.id for b in design if b.id not in sees and inside.intersection(b.nodes))
    wanted = wanted_margin(problem)
    singles = _singles(problem, margin, {name: e for name, e in energies.items() if e > 0}, options)
    found = None
    if mend and not reaches(margin.lower, wanted):
        found = _mend(problem, margin, singles, wanted, options)
    return Explanation(margin, wanted, _cause(problem, margin, view), view, sees, blind, singles, found)


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
    inside = set(margin.support)
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


def _singles(
    problem: Problem, margin: DesignMargin, visible: Mapping[str, float], options: Mapping[str, Any]
) -> tuple[Purchase, ...]:
    owned = set(margin.selected)
    offers = []
    for name, energy in visible.items():
        block = problem.block_by_id[name]
        if block.owned or name in owned:
            continue
        ids = with_needs(problem, name, owned)
        cost = price(problem, ids)
        offers.append((energy / max(cost, 1e-9), ids, cost))
    offers.sort(key=lambda offer: (-offer[0], offer[2]))
    tried = []
    for _, ids, cost in offers[:TRIED]:
        after = problem.margin([*margin.selected, *ids], k=margin.k, **options)
        tried.append(Purchase(ids, cost, after.value, after.lower, str(after.status)))
    return tuple(sorted(tried, key=lambda p: (-p.gamma, p.cost)))


def with_needs(problem: Problem, name: str, owned: set[str]) -> tuple[str, ...]:
    """A block on sale with what it requires and the nodes it would have to ask, in file order."""
    needed: set[str] = set()
    queue = [name]
    while queue:
        here = queue.pop()
        block = problem.block_by_id.get(here)
        if here in needed or here in owned or (block is not None and block.owned and here != name):
            continue
        needed.add(here)
        if block is not None:
            queue += [*block.requires, *(n for n in block.nodes if problem.node_by_id[n].cost is not None)]
    return problem.resolve(needed)


def price(problem: Problem, ids: tuple[str, ...]) -> float:
    """Sum of the listed prices of blocks and nodes (tiers are the planner's business)."""
    things = (problem.block_by_id.get(name) or problem.node_by_id[name] for name in ids)
    return float(sum(thing.cost or 0.0 for thing in things))


def _mend(
    problem: Problem,
    margin: DesignMargin,
    singles: tuple[Purchase, ...],
    goal: float | None,
    options: Mapping[str, Any],
) -> Purchase | None:
    """The cheapest found of: the single purchases tried, and buying witness by witness until the goal is reached."""
    reaching = [offer for offer in singles if reaches(offer.lower, goal)]
    stepwise = _witness_by_witness(problem, margin, goal, options)
    if stepwise is not None:
        reaching.append(stepwise)
    return min(reaching, key=lambda offer: (offer.cost, -offer.gamma), default=None)


def reaches(lower: float, goal: float | None) -> bool:
    """A proven margin is enough: at least the goal, or positive where none is named."""
    return lower > 0 if goal is None else lower >= goal


def _witness_by_witness(
    problem: Problem, margin: DesignMargin, goal: float | None, options: Mapping[str, Any]
) -> Purchase | None:
    """Buys what sees the current witness best per cost, again and again; then gives back what is not needed."""
    chosen: tuple[str, ...] = ()
    now = margin
    while not reaches(now.lower, goal):
        owned = {*margin.selected, *chosen}
        view = FieldView(problem, now.selected, now.witness)
        offers = [
            (energy, with_needs(problem, name, owned))
            for name, energy in view.energies.items()
            if energy > 0 and name not in owned and not problem.block_by_id[name].owned
        ]
        if not offers:
            return None
        chosen += max(offers, key=lambda offer: offer[0] / max(price(problem, offer[1]), 1e-9))[1]
        now = problem.margin([*margin.selected, *chosen], k=margin.k, **options)
    for name in sorted(chosen, key=lambda n: -price(problem, (n,))):
        fewer = tuple(n for n in chosen if n != name)
        if name in {needed for n in fewer if n in problem.block_by_id for needed in with_needs(problem, n, set())}:
            continue
        after = problem.margin([*margin.selected, *fewer], k=margin.k, **options)
        if reaches(after.lower, goal):
            chosen, now = fewer, after
    return Purchase(problem.resolve(chosen), price(problem, chosen), now.value, now.lower, str(now.status))


def words(explanation: Explanation) -> str:
    """The whole explanation as a few sentences."""
    margin = explanation.margin
    nodes = _list(margin.support)
    answers = f"{margin.k} wrong answer{'s' if margin.k > 1 else ''}"
    if explanation.cause is Cause.UNTOUCHED:
        many = len(margin.support) > 1
        text = f"Nothing in this design touches {nodes}: whatever {'they answer' if many else 'it answers'}, no relation and no anchor notices."
    elif explanation.cause is Cause.SHARED:
        text = (
            f"{nodes} form a connected part of {len(margin.support)} node{'s' if len(margin.support) > 1 else ''} without an anchor. If they are wrong"
            f" together, in the way the relations carry an error along, every relation still holds: consistent, and false."
        )
    elif explanation.cause is Cause.CANCELLING:
        text = f"An error on {nodes} along the witness cancels in everything this design measures."
    else:
        text = (
            f"The error that hides best lies on {nodes}: a unit of it moves all measurements together by only γ = {margin.value:.4g}, so noise of"
            f" size ε can hide an error of up to 2ε/γ = {2 / margin.value:.4g} ε there."
        )
    if margin.value == 0:
        text += f" So no method can guarantee to find {answers}."
    return text


def _list(names: tuple[str, ...], most: int = 6) -> str:
    shown = list(names[:most]) + ([f"{len(names) - most} more"] if len(names) > most else [])
    return shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + " and " + shown[-1]
