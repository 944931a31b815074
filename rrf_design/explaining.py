"""Why is the margin zero, or small? The witness in words, the blocks that don't see it, and purchases that would mend it.

The witness h is the error pattern on at most 2k nodes that changes the measurements least: ‖B h‖ = γ_k ‖h‖. Blocks
with C_j h = 0 are blind to it; a purchase helps only if it sees h, and helps enough only if no other pattern is as
well hidden afterwards. So every purchase named here has had its margin computed, not guessed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from rrf_design.documents import sealed
from rrf_design.mending import Remedy, cheapest_mend, single_purchases
from rrf_design.premise import protected
from rrf_design.shrinkage import raised_noise, raised_words

if TYPE_CHECKING:
    from rrf_design.design import Design
    from rrf_design.goal import Standing
    from rrf_design.margins import DesignMargin
    from rrf_design.problem import Problem, Selection


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
    """A connected part without any anchor, wrong in the same way everywhere: consistent, and false."""
    CANCELLING = "cancelling"
    """An error that the blocks on these nodes don't separate, though anchors or other nodes are connected to them."""
    WEAK = "weak"
    """Seen, but weakly: γ is positive."""


@dataclass(frozen=True)
class Explanation:
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
    """Purchases that together reach what is wanted (or any positive margin); None when nothing found on sale does."""
    proven: bool
    """About `mend`: nothing cheaper does it, or (where it is None) nothing on sale does it at all."""
    by_budget: tuple[Mapping[str, float], ...] = ()
    """`k gamma lower upper` for k = 1, 2, ...; empty where nobody asked for it, or the field is not small."""
    assumptions: Mapping[str, float] = field(default_factory=dict)
    """The margin under each assumption that the file suggests, in words; empty where it suggests one only."""
    estimated: str = ""
    """What noise that was only estimated costs, in sentences; empty where none was."""

    @property
    def wanted(self) -> float | None:
        """The margin asked for; None when the problem has no goal, or none that a margin could meet."""
        return self.standing.wanted

    @property
    def enough(self) -> bool:
        return self.standing.reached

    @property
    def goal(self) -> str:
        """What is wanted, as the end of "to reach ...": a positive margin, the margin 0.5."""
        return "a positive margin" if self.wanted is None else f"the margin {self.wanted:.6g}"

    def to_json(self) -> dict[str, Any]:
        """The document `rrf-explanation`: everything that its page shows, besides the field itself."""
        from rrf_design.files import digest

        margin, operator = self.margin, self.margin.operator
        rows, coordinates = operator.shape
        content = {
            "problem": self.problem.name,
            "digest": digest(self.problem),
            **margin.to_json(),
            **self.standing.to_json(),
            "enough": self.enough,
            "goal": self.standing.goal.words(),
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


def explain(
    problem: Problem,
    select: Selection = None,
    *,
    k: int | None = None,
    mend: bool = True,
    by_budget: bool = False,
    **options: Any,
) -> Explanation:
    """Explain the margin of what is owned plus what is selected; `options` go to the margin solver.

    `mend` looks for the cheapest purchases that reach the goal; `by_budget` adds the margin for other k, where the field is small.
    """
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
    """γ for each way in which the file says that answers could fail together, that values matter, or that checks hold.

    Partitions: each answer on its own, the declared units, models where nodes name some, wordings where ids say so
    (`total@other#2` is another ask of `total`). Each with what is delivered and suspected as declared.
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
        text = f"Nothing in this design touches {nodes}: whatever {'they answer' if many else 'it answers'}, no relation and no anchor notices."
    elif explanation.cause is Cause.SHARED:
        text = (
            f"{nodes} form a connected part of {len(carriers)} node{'s' if len(carriers) > 1 else ''} without an anchor. If they are wrong"
            f" together, in the way the relations carry an error along, every relation still holds: consistent, and false."
        )
    elif explanation.cause is Cause.CANCELLING:
        rest = "everything this design measures"
        if margin.wrong:
            rest = f"everything that is measured but {_list(margin.wrong)}, and these may be wrong"
        text = f"An error on {nodes} along the witness cancels in {rest}."
    else:
        text = (
            f"The error that hides best lies on {nodes}: a unit of it moves all measurements together by only γ_{margin.k} = {margin.value:.4g}, so noise of"
            f" size ε can hide an error of up to 2ε/γ_{margin.k} = {2 / margin.value:.4g} ε there."
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
