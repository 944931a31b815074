"""Why is the margin zero, or small?

The witness in words, the blocks that don't see it, and purchases that would mend it.

The witness h is the error pattern on at most 2k nodes that changes the measurements least: ‖B h‖ =
γ_k ‖h‖. Blocks with C_j h = 0 are blind to it; a purchase helps only if it sees h, and helps enough
only if no other pattern is as well hidden afterwards. So every purchase named here has had its
margin computed, not guessed.

The planner is asked for the cheapest purchases that reach the goal, and for its proof; where that
takes too long, buying witness by witness finds a set, and nothing more is claimed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

import numpy as np

from rrf_design._shown import ShownRows, bars_on
from rrf_design.arguments import is_dataset
from rrf_design.derive import owning
from rrf_design.documents import sealed
from rrf_design.goal import CERTAIN, POSITIVE, Goal
from rrf_design.noise import raised_noise, raised_words
from rrf_design.premise import protected

if TYPE_CHECKING:
    from rrf_design._margin import DesignMargin
    from rrf_design.design import Design
    from rrf_design.goal import Standing
    from rrf_design.market import Mask
    from rrf_design.problem import Problem, Selection
    from rrf_design.questions import Dataset
    from rrf_design.tables import ByStructure
    from solvers.result import Progress

BUDGETS = 4
"""Corruption budgets over which a small field's margin is worked out, where that is asked for."""
SMALL = 48
"""Fields of at most so many nodes have that curve: it asks for supports of 2·BUDGETS nodes."""
EACH = "each answer fails on its own"
MODEL = "a model fails as a whole"
UNITS = "units fail as declared"
SAME = 1e-6
"""Margins that differ by less, relatively, are the same: what is assumed does not decide."""
SUGGESTED = 400
"""Up to so many nodes the margin is also computed for other assumptions."""


class Cause(StrEnum):
    """What kind of error the witness is."""

    UNTOUCHED = "untouched"
    """A node that no block of the design touches."""
    SHARED = "shared"
    """A connected part without any anchor, wrong in the same way everywhere: consistent, and
    false.
    """
    CANCELLING = "cancelling"
    """An error that the blocks on these nodes don't separate, though anchors or other nodes are
    connected to them.
    """
    WEAK = "weak"
    """Seen, but weakly: γ is positive."""


@dataclass(frozen=True, repr=False)
class Explanation(ShownRows):
    """The margin of a design, and why it is no larger."""

    problem: Problem
    margin: DesignMargin
    standing: Standing
    """The design held against the problem's goal."""
    cause: Cause
    shares: Mapping[str, float]
    """How much of the witness each node carries."""
    sees: Mapping[str, float]
    """Blocks of the design that see the witness, with ‖C_j h‖², strongest first."""
    blind: tuple[str, ...]
    """Blocks of the design that touch the witness's nodes and don't see it."""
    singles: tuple[Remedy, ...]
    """Single purchases that see the witness, largest margin afterwards first."""
    mend: Remedy | None
    """Purchases that together reach what is wanted (or any positive margin); None when nothing
    found on sale does.
    """
    proven: bool
    """About `mend`: nothing cheaper does it, or (where it is None) nothing on sale does it at
    all.
    """
    by_budget: tuple[Mapping[str, float], ...] = ()
    """`k gamma lower upper` for k = 1, 2, ...; empty where nobody asked for it, or the field is not
    small.
    """
    assumptions: Mapping[str, float] = field(default_factory=dict)
    """The margin under each assumption that the file suggests, in words; empty where it suggests
    one only.
    """
    estimated: str = ""
    """What noise that was only estimated costs, in sentences; empty where none was."""

    def _line(self) -> str:
        seen = ", ".join(self.shares)
        return f"γ_{self.margin.k} = {self.margin.value:.6g}, {self.cause}: the hardest direction is on {seen}"

    def _records(self) -> Iterator[dict[str, Any]]:
        return ({"node": name, "share": share} for name, share in self.shares.items())

    def plot(self, axes: Any = None) -> Any:
        """How much of the error that is hardest to see lies on each node, on matplotlib axes."""
        return bars_on(axes, self.shares, across="share of the hardest error")

    @property
    def wanted(self) -> float | None:
        """The margin asked for; None when the problem has no goal, or none that a margin could
        meet.
        """
        return self.standing.wanted

    @property
    def enough(self) -> bool:
        return self.standing.reached

    @property
    def goal(self) -> str:
        """What is wanted, as the end of "to reach ...": a positive margin, the margin 0.5."""
        return self.standing.goal.words(uncertain=bool(self.margin.operator.uncertain))

    def to_json(self) -> dict[str, Any]:
        """The document `rrf-explanation`: everything that its page shows, besides the field
        itself.
        """
        from rrf_design.files import digest

        margin, operator = self.margin, self.margin.operator
        rows, coordinates = operator.shape
        content = {
            "problem": self.problem.name,
            "digest": digest(self.problem),
            **margin.to_json(),
            **self.standing.to_json(),
            "enough": self.enough,
            "goal": self.goal,
            "cause": str(self.cause),
            "words": words(self),
            "cost": float(self.problem.design(margin.selected).price),
            "size": {
                "nodes": len(operator.node_ids),
                "coordinates": coordinates,
                "blocks": len(operator.block_ids),
                "rows": rows,
            },
            "shares": dict(self.shares),
            "seen_by": dict(self.sees),
            "blind": list(self.blind),
            "purchases": [p.to_json() for p in self.singles],
            "mend": None if self.mend is None else self.mend.to_json(),
            "proven": self.proven,
            "assumptions": dict(self.assumptions),
            "estimated": [one.to_json() for one in raised_noise(self.problem, self.margin.selected)],
            "next_step": None if self.enough or self.mend is not None else nothing_helps(self),
            "by_budget": [dict(entry) for entry in self.by_budget],
        }
        return sealed("rrf-explanation", content)


class _Settings(TypedDict, total=False):
    """The keywords of `explain`, for its overloads."""

    k: int | None
    mend: bool
    by_budget: bool
    method: str
    n_jobs: int | None
    time_limit: float | None
    progress: Progress | None


@overload
def explain(problem: Problem, select: Selection = None, **settings: Unpack[_Settings]) -> Explanation: ...


@overload
def explain(problem: Dataset, select: Selection = None, **settings: Unpack[_Settings]) -> ByStructure[Explanation]: ...


def explain(
    problem: Problem | Dataset,
    select: Selection = None,
    *,
    k: int | None = None,
    mend: bool = True,
    by_budget: bool = False,
    method: str = "auto",
    n_jobs: int | None = None,
    time_limit: float | None = None,
    progress: Progress | None = None,
) -> Explanation | ByStructure[Explanation]:
    """Why the margin of a design is zero, or small, and which purchases would mend it.

    The witness h, with ‖B h‖ = γ_k ‖h‖ on at most 2k nodes, is the error that hides best. A block
    with C_j h = 0 is blind to it; only a purchase that sees it can help.

    Parameters
    ----------
    problem
        A problem, or a data set, for each structure that its items have.
    select
        Ids on sale that are added to what is owned; "all": every one.
    k
        How many answers (or units) may be wrong; None: as the problem says.
    mend
        Look for the cheapest purchases that reach the goal.
    by_budget
        Add the margins of other k, where the field is small.
    method, n_jobs, time_limit, progress
        As for `rrf_design.margin`, each time that one is computed.

    Returns
    -------
    An `Explanation`: the `margin`, whether it is `enough` for the problem's goal, the `cause`, the
    blocks that are `blind`, `singles` (purchases with the margin afterwards) and `mend`, the
    cheapest that reach the goal. Of a data set a `ByStructure` of them.

    >>> import rrf_design as rrf
    >>> problem = rrf.Problem(
    ...     nodes=[{"id": "plain"}, {"id": "reworded"}],
    ...     relations=[{"id": "same", "tail": "plain", "head": "reworded"}],
    ...     anchors=[{"id": "calculator", "node": "plain", "value": 42.0, "cost": 1.0}],
    ... )
    >>> found = rrf.explain(problem)
    >>> found.enough, found.cause.value, found.mend.ids
    (False, 'shared', ('calculator',))
    """
    options: dict[str, Any] = {"n_jobs": n_jobs, "time_limit": time_limit, "progress": progress}
    options |= {} if method == "auto" else {"method": method}
    if not is_dataset(problem):
        return _explained(problem, select, k=k, mend=mend, by_budget=by_budget, options=options)
    from rrf_design.tables import by_structure

    def solve(one: Problem) -> Explanation:
        return _explained(one, select, k=k, mend=mend, by_budget=by_budget, options=options)

    return by_structure(problem, solve, lambda explained: explained.margin.value)


def _explained(
    problem: Problem, select: Selection, *, k: int | None, mend: bool, by_budget: bool, options: Mapping[str, Any]
) -> Explanation:
    design = problem.design(select)
    margin = design.margin(k, **options)
    standing = design.standing(problem, margin=margin)
    shares = design.shares(margin.witness)
    energies = design.energies(margin.witness)
    held = [problem.block_by_id[name] for name in margin.operator.block_ids]
    sees = {b.id: energies[b.id] for b in sorted(held, key=lambda b: -energies[b.id]) if energies[b.id] > 0}
    blind = tuple(b.id for b in held if b.id not in sees and set(shares).intersection(b.nodes))
    singles = single_purchases(problem, design, margin, options)
    found, proven = None, False
    if mend and not standing.reached:
        found, proven = cheapest_mend(problem, design, margin, singles, options)
    cause = _cause(problem, margin, set(shares))
    curve = _by_budget(design, options) if by_budget else ()
    told = suggested_margins(problem, margin)
    guessed = raised_words(problem, select, k=k)
    return Explanation(
        problem, margin, standing, cause, shares, sees, blind, singles, found, proven, curve, told, guessed
    )


def _by_budget(design: Design, options: Mapping[str, Any]) -> tuple[Mapping[str, float], ...]:
    from solvers import margins

    operator = design.operator
    nodes = len(operator.node_ids)
    most = min(BUDGETS, nodes // 2)
    if nodes > SMALL or most < 2:
        return ()
    if operator.premise.plain:
        found = margins(operator.matrix, operator.groups, k=most, **options)
    else:
        found = tuple(protected(operator, k, **options).solved for k in range(1, most + 1))
    return tuple({"k": m.k, "gamma": m.value, "lower": m.lower, "upper": m.upper} for m in found)


def suggested_margins(problem: Problem, margin: DesignMargin) -> dict[str, float]:
    """γ for each way in which the file says that answers could fail together, that values matter,
    or that checks hold.

    Partitions: each answer on its own, the declared units, models where nodes name some, wordings
    where ids say so (`total@other#2` is another ask of `total`). Each with what is delivered and
    suspected as declared.
    """
    premise, names = margin.operator.premise, margin.operator.node_ids
    models = {node.id: node.model for node in problem.nodes if node.model is not None}
    wordings = {name: re.split("[@#]", name, maxsplit=1)[0] for name in names}
    ways = {MODEL: models}
    if any(wording != name for name, wording in wordings.items()):
        ways["a wording fails in all its asks"] = wordings
    if premise.units and premise.called != "models":
        ways[UNITS] = dict(premise.units)
    others = {EACH: replace(premise, units={}, called="answers")}
    for words_, units in ways.items():
        if 1 < len(set(units.values())) < len(units):
            others[words_] = replace(premise, units=units, called="units")
    if premise.deliver is not None:
        others["every value must be right"] = premise.whole
    if premise.wrong_checks:
        others["no check is wrong"] = replace(premise, wrong_checks=0)
    if len(others) < 2 or len(names) > SUGGESTED:
        return {}
    return {words_: protected(margin.operator, margin.k, premise=one).solved.value for words_, one in others.items()}


def _cause(problem: Problem, margin: DesignMargin, inside: set[str]) -> Cause:
    if margin.value > 0:
        return Cause.WEAK
    held = [problem.block_by_id[name] for name in margin.operator.block_ids]
    touching = [block for block in held if inside.intersection(block.nodes)]
    covered = {name for block in touching for name in block.nodes}
    if not inside & covered:
        return Cause.UNTOUCHED
    if covered == inside and not any(_is_anchor(problem, block.id) for block in touching):
        return Cause.SHARED
    return Cause.CANCELLING


def _is_anchor(problem: Problem, name: str) -> bool:
    from rrf_design.blocks import Anchor

    return isinstance(problem.block_by_id[name], Anchor)


def words(explanation: Explanation) -> str:
    """The whole explanation as a few sentences."""
    margin = explanation.margin
    carriers = tuple(explanation.shares)
    nodes = _list(carriers)
    answers = wrong_units(margin)
    if explanation.cause is Cause.UNTOUCHED:
        many = len(carriers) > 1
        text = (
            f"Nothing in this design touches {nodes}: whatever {'they answer' if many else 'it answers'}, no relation"
            " and no anchor notices."
        )
    elif explanation.cause is Cause.SHARED:
        text = (
            f"{nodes} form a connected part of {len(carriers)} node{'s' if len(carriers) > 1 else ''} without an"
            " anchor. If they are wrong together, in the way the relations carry an error along, every relation still"
            " holds: consistent, and false."
        )
    elif explanation.cause is Cause.CANCELLING:
        rest = "everything this design measures"
        if margin.wrong:
            rest = f"everything that is measured but {_list(margin.wrong)}, and these may be wrong"
        text = f"An error on {nodes} along the witness cancels in {rest}."
    else:
        text = (
            f"The error that hides best lies on {nodes}: a unit of it moves all measurements together by only"
            f" γ_{margin.k} = {margin.value:.4g}, so noise of size ε can hide an error of up to 2ε/γ_{margin.k} ="
            f" {2 / margin.value:.4g} ε there."
        )
    if margin.value == 0:
        text += f" So no method can guarantee to find {answers}."
        if margin.operator.premise.deliver is not None:
            text += f" Nor is {_delivered(margin)} right whatever it is."
    text += f" {explanation.estimated}" if explanation.estimated else ""
    values = explanation.assumptions.values()
    if not values or max(values) - min(values) <= SAME * max(values):
        return text
    own = _declared_way(margin)
    told = [
        f"{value:.4g} if {way}{', as this file says' if way == own else ''}"
        for way, value in explanation.assumptions.items()
    ]
    return f"{text} What is assumed decides: γ_{margin.k} is {'; '.join(told)}."


def _declared_way(margin: DesignMargin) -> str:
    """Which of the assumptions about what fails together is the file's own."""
    premise = margin.operator.premise
    if not premise.units:
        return EACH
    return MODEL if premise.called == "models" else UNITS


def _delivered(margin: DesignMargin) -> str:
    return _list(tuple(sorted(margin.operator.premise.deliver or ())))


def wrong_units(margin: DesignMargin) -> str:
    """What is to be found: 2 wrong answers; 1 wrong model."""
    called = margin.operator.premise.called
    return f"{margin.k} wrong {called if margin.k > 1 else called.removesuffix('s')}"


def _list(names: tuple[str, ...], most: int = 6) -> str:
    shown = list(names[:most]) + ([f"{len(names) - most} more"] if len(names) > most else [])
    return shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + " and " + shown[-1]


def nothing_helps(explanation: Explanation) -> str:
    """What to do when no purchase was found that reaches the goal."""
    claim = "Nothing on sale reaches" if explanation.proven else "Nothing was found on sale that reaches"
    nodes = " or ".join(list(explanation.shares)[:3])
    return f"{claim} {explanation.goal}. Put up for sale an anchor on {nodes}, or a relation from there to other nodes."


TRIED = 8
"""Single purchases whose margin is computed."""
PLANNED = 200
"""With at most so many blocks on sale, the planner is asked for the cheapest set,"""
PLAN_SECONDS = 20.0
"""for at most so long."""
STEPS = 20
"""Purchases after which buying witness by witness gives up: so much is a plan's business, not an
explanation's.
"""


@dataclass(frozen=True, slots=True)
class Remedy:
    """Something that can be bought, with everything that it needs, and the margin afterwards."""

    ids: tuple[str, ...]
    cost: float
    gamma: float
    lower: float
    status: str
    enough: bool
    """Whether the problem's goal is then reached."""
    robust_lower: float | None = None
    """What is certain of the margin with declared uncertainty taken off; None where nothing on sale
    or held is uncertain.
    """
    error_bound: float | None = None
    """The error that is then promised; None where none is, or none is asked for."""

    def figures(self) -> str:
        """What the goal is held against, beside the margin itself; as what follows it."""
        certain = "" if self.robust_lower is None else f", {self.robust_lower:.6g} of it {CERTAIN}"
        return certain + ("" if self.error_bound is None else f", promised error {self.error_bound:.6g}")

    def to_json(self) -> dict[str, Any]:
        return {
            "ids": list(self.ids),
            "cost": self.cost,
            "gamma": self.gamma,
            "lower": self.lower,
            "status": self.status,
            "enough": self.enough,
            "robust_lower": self.robust_lower,
            "error_bound": self.error_bound,
        }


def single_purchases(
    problem: Problem, design: Design, margin: DesignMargin, options: Mapping[str, Any]
) -> tuple[Remedy, ...]:
    """The purchases that see the witness best per cost, each with its margin afterwards, largest
    first.
    """
    market = design.structure.market
    base = market.mask(margin.selected)
    offers = []
    for name, energy in design.energies(margin.witness).items():
        if energy <= 0 or name not in market.index or base[market.index[name]]:
            continue
        after = market.add(base, market.index[name])
        cost = market.cost(after) - market.cost(base)
        offers.append((energy / max(float(cost), 1e-9), market.names(after & ~base), cost))
    offers.sort(key=lambda offer: (-offer[0], offer[2]))
    tried = [_purchase(problem, margin, ids, float(cost), options) for _, ids, cost in offers[:TRIED]]
    return tuple(sorted(tried, key=lambda p: (-p.gamma, p.cost)))


def _purchase(
    problem: Problem, margin: DesignMargin, ids: tuple[str, ...], cost: float, options: Mapping[str, Any]
) -> Remedy:
    """What the margin and the standing are after buying `ids` too."""
    design = problem.design([*margin.selected, *ids])
    after = design.margin(margin.k, **options)
    standing = design.standing(problem, margin=after)
    certain = standing.robust_lower if problem.whole.uncertain and problem.target is not None else None
    promised = None if problem.delta is None else standing.radius.bound(standing.lower)
    return Remedy(ids, cost, after.value, after.lower, str(after.status), standing.reached, certain, promised)


def cheapest_mend(
    problem: Problem,
    design: Design,
    margin: DesignMargin,
    singles: tuple[Remedy, ...],
    options: Mapping[str, Any],
) -> tuple[Remedy | None, bool]:
    """The cheapest set that reaches the problem's goal, and whether that is proven; without a proof
    the cheapest found of: the planner's, the single purchases tried, and buying witness by witness.
    """
    if Goal.of(problem).delta is not None and design.radius(problem).total is None:
        return None, True  # no purchase bounds the true answers
    reaching = [offer for offer in singles if offer.enough]
    if len(problem.on_sale) <= PLANNED:
        planned, proven = _cheapest(problem, margin, options)
        if proven:
            return planned, True
        if planned is not None:
            reaching.append(planned)
    stepwise = _witness_by_witness(problem, margin, options)
    if stepwise is not None:
        reaching.append(stepwise)
    return min(reaching, key=lambda offer: (offer.cost, -offer.gamma), default=None), False


def _cheapest(problem: Problem, margin: DesignMargin, options: Mapping[str, Any]) -> tuple[Remedy | None, bool]:
    """What the planner says, with what is selected already counted as owned."""
    from rrf_design.planning import PlanStatus, plan

    rest = owning(problem, margin.selected)
    rest = rest.model_copy(update={"budget": None})
    limit = min(PLAN_SECONDS, options.get("time_limit") or PLAN_SECONDS)
    target = None if Goal.of(problem).named else POSITIVE
    found = plan(rest, target=target, time_limit=limit, k=margin.k)
    if found.status is PlanStatus.INFEASIBLE:
        return None, True
    bought = _purchase(problem, margin, found.selected, found.cost, options)
    return (bought, found.status is PlanStatus.OPTIMAL) if bought.enough else (None, False)


def _witness_by_witness(problem: Problem, margin: DesignMargin, options: Mapping[str, Any]) -> Remedy | None:
    """Buys what sees the current witness best per cost, again and again; then gives back what is
    not needed.
    """
    market = problem.structure.market
    base = mask = market.mask(margin.selected)
    now = _purchase(problem, margin, (), 0.0, options)
    while not now.enough:
        if int((mask & ~base).sum()) >= STEPS:
            return None
        design = problem.design(market.names(mask))
        offers = [
            (energy / max(float(market.cost(after) - market.cost(mask)), 1e-9), after)
            for name, energy in design.energies(design.margin(margin.k, **options).witness).items()
            if energy > 0 and name in market.index and not mask[market.index[name]]
            for after in [market.add(mask, market.index[name])]
            if market.extendable(after)
        ]
        if not offers:
            return None
        mask = max(offers, key=lambda offer: offer[0])[1]
        now = _bought(problem, margin, base, mask, options)
    for item in sorted(np.flatnonzero(mask & ~base), key=lambda i: -market.floor(int(i))):
        fewer = market.drop(mask, int(item)) | base
        after = _bought(problem, margin, base, fewer, options)
        if after.enough:
            mask, now = fewer, after
    return now


def _bought(problem: Problem, margin: DesignMargin, base: Mask, mask: Mask, options: Mapping[str, Any]) -> Remedy:
    market = problem.structure.market
    cost = float(market.cost(mask) - market.cost(base))
    return _purchase(problem, margin, market.names(mask & ~base), cost, options)
