"""Stages from the planner: which answers to ask first, and how many of them for which k
(docs/algorithms.md, facts 21 and 24).

The exact frontier of a structure's asks, all of them on sale, names the cheapest design for every
margin that can be had at k = 1 and k = 2. Its designs, in the order of their cost, make one order
of asking; margins never fall when something is bought, so every beginning of that order has at
least the margin of the designs it holds. For a margin g let T_k(g) be the shortest beginning that
has it at k. An escalation certifies at k = 0, else 1, else 2, each stage with the margin of the one
before or the next larger one: what was contested once must be no easier to accept later. At k = 0,
where a margin means nothing, a stage asks two answers fewer than at k = 1, and at least two: in a
field where all answer the same question γ_k is √(T − 2k), and T − 2k is the lead that the stage
asks for.

What escalates further may buy checks that machines make, as a design of the exact frontier over
asks and checks together: at k = 1, at k = 2, and where every answer may be wrong, which is where a
check that decides, or one whose noise is small against what is wanted, has a margin and answers
have none. The cheapest such designs that reach the problem's own goal are stages (`CheckStage`),
those of the two cheapest checks that decide each for itself too, for one may be worse than its
word; and so is the cheapest quorum of checks that may be wrong, but not all.

Each structure is planned once, and nothing here looks at answers.

The policies that a pilot tests: cascades over the recipe's nodes (docs/algorithms.md, facts 24
and 31).

Stages are answers bought one after the other in a fixed order; two acceptance rules accept:

    consistent k within T   the verdict on all T answers, at most k of them wrong, is `consistent`
    lead h within T         the largest camp of equal answers is ahead of the next by h, at the
    latest after T

An acceptance rule of consistent answers may escalate: k = 0 within few answers, else k = 1 within
more, else k = 2 within more still. Its stages are designs of the planner's exact frontier
(`stages`).

What no acceptance rule accepts may escalate to a design with checks that machines make (a value of
the row, arithmetic, tests in the sandbox, a command, a judge), again one of the frontier's: bought
step after step until the product's verdict on everything that is held is `consistent`, or a check
decides. What it delivers counts, errors included. The rest goes to the person that the recipe
names, or is withheld. A policy may also have a random share q of what its acceptance rule accepts
checked by the person, which leaves 1 − q of its risk: small risks are proven with few labels that
way (fact 34). Orders are cheap first, dear first, and the dear half first; `[ladder]` in a recipe
fixes order, acceptance rules or the last stage by hand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from fractions import Fraction
from itertools import accumulate, pairwise
from json import dumps
from typing import Any, TypeVar

from rrf_design.blocks import Anchor
from rrf_design.checker.promise_words import plain_percent
from rrf_design.checks import decides, delivered_node, quorum, sole_delivered, suspect_statements
from rrf_design.errors import InputError
from rrf_design.files import suggestion
from rrf_design.market import exact
from rrf_design.problem import Problem
from rrf_design.promises._checks import machine_checks, shown_to
from rrf_design.risk import Gate, Ladder, Last, lead_family

LARGEST_K = 2
MOST_ASKS = 12
"""Structures with more asks get no escalations: their frontiers take long, and a time limit would
make the family depend on the clock.
"""
MOST_STRUCTURES = 3
"""The most common ones: a family for every oddity would cost more tests than it is worth."""
MOST_MARGINS = 12
MOST_DESIGNS = 2
"""Of the frontier for each k: every design with checks goes with every cascade before it, and every
test costs.
"""
CLOSE = 1e-9
Shared = TypeVar("Shared")


@dataclass(frozen=True, slots=True)
class Escalation:
    """Nodes in the order they are asked, and stages (answers, k), from few answers to many."""

    order: tuple[str, ...]
    stages: tuple[tuple[int, int], ...]
    level: bool
    """Every stage from k = 0 on asks for the same margin: where all answer one question, that is a
    lead.
    """


@dataclass(frozen=True, slots=True)
class CheckStage:
    """A design with checks: answers and checks in the order they are bought, for items that no
    acceptance rule before it accepts. k: how many answers may be wrong; None for all of them.
    """

    steps: tuple[str, ...]
    k: int | None


def common(shapes: Sequence[Shared]) -> list[Shared]:
    """The most common of these objects, the most frequent first."""
    counts = Counter(id(shape) for shape in shapes)
    distinct = {id(shape): shape for shape in shapes}
    return sorted(distinct.values(), key=lambda shape: -counts[id(shape)])[:MOST_STRUCTURES]


def escalations_of(problem: Problem, prices: Mapping[str, float]) -> list[Escalation]:
    """The escalations of one structure, each distinct one once; none where the frontier would be
    too large.
    """
    from rrf_design.derive import on_sale

    if problem.nonlinear or not 2 <= len(problem.nodes) <= MOST_ASKS:
        return []
    sold = on_sale(problem, prices)
    order, margins = _order(sold)
    reach = _reach(sold, order, margins)
    plain = _plainly(sold)
    if _paid(sold, plain, _reach(sold, plain, margins)) == _paid(sold, order, reach):
        order = plain
    found: dict[tuple[tuple[int, int], ...], bool] = {}
    for place in range(len(margins)):
        for steps in ((0, 0, 0), (0, 0, 1), (0, 1, 1), (0, 1, 2)):
            for kept in ((0, 1, 2), (0, 1), (1, 2), (0, 2)):
                chosen = {k: place + steps[k] for k in kept}
                if len(kept) == 2 and abs(chosen[kept[1]] - chosen[kept[0]]) > 1:
                    continue
                stages = tuple((reach[k][at], k) for k, at in chosen.items() if at in reach[k])
                if len(stages) == len(kept) and all(after[0] > before[0] for before, after in pairwise(stages)):
                    found.setdefault(stages, len(set(chosen.values())) == 1 and kept in ((0, 1), (0, 1, 2)))
    return [Escalation(order, stages, level) for stages, level in found.items()]


def _plainly(sold: Problem) -> tuple[str, ...]:
    """What is delivered, then cheap ones first, equals as the recipe has them: which of two nodes
    of one price a frontier takes means nothing.
    """
    delivered = delivered_node(sold)
    place = {node.id: (node.id != delivered, node.cost or 0.0, at) for at, node in enumerate(sold.nodes)}
    return tuple(sorted(place, key=place.__getitem__))


def _paid(sold: Problem, order: Sequence[str], reach: Mapping[int, Mapping[int, int]]) -> object:
    """What each stage costs: two orders with the same bills are equally good."""
    bill = [0, *accumulate(exact(sold.node_by_id[name].cost or 0.0) for name in order)]
    return {k: {place: (answers, bill[answers]) for place, answers in stages.items()} for k, stages in reach.items()}


def _order(sold: Problem) -> tuple[tuple[str, ...], list[float]]:
    """Nodes as the frontier's designs add them, cheap ones first where a design adds several; and
    every margin that can be had.
    """
    from rrf_design.planning import frontier

    price = {node.id: float(node.cost or 0.0) for node in sold.nodes}
    order: dict[str, None] = {}
    margins: list[float] = []
    for k in range(1, LARGEST_K + 1):
        for point in frontier(sold, k=k).points:
            if point.gamma > CLOSE:
                margins.append(point.gamma)
                order.update(dict.fromkeys(sorted((n for n in point.selected if n in price), key=price.__getitem__)))
    order.update(dict.fromkeys(sorted(price, key=price.__getitem__)))
    distinct: list[float] = []
    for margin in sorted(margins):
        if not distinct or margin > distinct[-1] * (1 + 1e-6):
            distinct.append(margin)
    return tuple(order), distinct[:MOST_MARGINS]


def _reach(sold: Problem, order: Sequence[str], margins: Sequence[float]) -> dict[int, dict[int, int]]:
    """T_k: for each k and place of a margin, how many answers reach it."""
    found: dict[int, dict[int, int]] = {k: {} for k in range(LARGEST_K + 1)}
    for k in range(1, LARGEST_K + 1):
        for answers in range(1, len(order) + 1):
            gamma = sold.margin(select=list(order[:answers]), k=k).lower
            for place, wanted in enumerate(margins):
                if gamma >= wanted * (1 - 1e-6):
                    found[k].setdefault(place, answers)
    found[0] = {place: answers - 2 for place, answers in found[1].items() if answers > 3}
    return found


def check_stages(problem: Problem, prices: Mapping[str, float], names: Collection[str]) -> list[CheckStage]:
    """The designs of one structure's frontier that hold some of the named checks, each distinct one
    once. Where the frontier would be too large: the cheapest checks that decide, each for itself.
    """
    checks = [anchor for anchor in machine_checks(problem) if anchor.id in names]
    sure = _deciding(problem, checks)
    if problem.nonlinear or len(problem.nodes) + len(checks) > MOST_ASKS:
        return [_check_stage(problem, [check], None) for check in sure[:MOST_DESIGNS]]
    found = [stage for check in sure[:MOST_DESIGNS] for stage in _designs(problem, prices, [check], None)]
    found += _designs(problem, prices, sure, None)
    if len(sure) < len(checks):
        # What decides needs no k and no judge before it; designs of such checks alone are there
        # already.
        for k in (None, *range(1, LARGEST_K + 1)):
            designs = _designs(problem, prices, checks, k)
            found += [
                stage for stage in designs if any(check.id in stage.steps for check in checks if check not in sure)
            ]
    suspects = {check.id for check in suspect_statements(problem, delivered_node(problem))}
    several = [check for check in checks if check.id in suspects]
    for number in range(2, len(several) + 1):
        if number >= quorum(problem, [check.id for check in several[:number]]):
            found.append(_check_stage(problem, several[:number], None))
            break
    return list(dict.fromkeys(found))


def _designs(
    problem: Problem, prices: Mapping[str, float], checks: Sequence[Anchor], k: int | None
) -> list[CheckStage]:
    """The cheapest designs with checks on the exact frontier over asks and these checks that reach
    the problem's goal at k.
    """
    from rrf_design.derive import on_sale
    from rrf_design.planning import frontier

    if not checks:
        return []
    asks, known = on_sale(problem, prices), {check.id for check in checks}
    plain = [check.model_copy(update={"requires": (), "excludes": ()}) for check in checks]
    sold = asks.model_copy(update={"anchors": (*asks.anchors, *plain)})
    most = len(sold.nodes) if k is None else k
    found: list[CheckStage] = []
    for point in frontier(sold, k=most).points:
        if len(found) == MOST_DESIGNS or known.isdisjoint(point.selected) or point.gamma <= CLOSE:
            continue
        held = [check for check in checks if check.id in point.selected]
        design = sold.design(point.selected)
        if _deciding(problem, held) or design.standing(sold, margin=design.margin(most)).reached:
            found.append(_check_stage(problem, held, k, point.selected))
    return found


def stages_by_hand(problem: Problem, names: Sequence[str]) -> list[CheckStage]:
    """These checks, for every k; one stage where a check decides and k means nothing."""
    checks = [anchor for name in names for anchor in machine_checks(problem) if anchor.id == name]
    if len(checks) < len(names):
        return []
    ks = (None,) if _deciding(problem, checks) else (None, *range(1, LARGEST_K + 1))
    return [_check_stage(problem, checks, k) for k in ks]


def _deciding(problem: Problem, checks: Sequence[Anchor]) -> list[Anchor]:
    """Those that state all that is delivered, and are not suspect."""
    held = [*problem.node_by_id, *(check.id for check in checks)]
    node = sole_delivered(problem, held)
    return [] if node is None else [check for check in checks if decides(problem, check, node, held=held)]


def _check_stage(problem: Problem, checks: Sequence[Anchor], k: int | None, design: Collection[str] = ()) -> CheckStage:
    """The design's answers, and those that its checks are made from; then its checks.

    Where checks decide, no other answer is needed.
    """
    shown = {name for check in checks for name in shown_to(problem, check)}
    needed = shown if len(_deciding(problem, checks)) == len(checks) else shown.union(design)
    asked = [name for name in _plainly(problem) if name in needed]
    return CheckStage((*asked, *(check.id for check in checks)), k)


CASCADE_KEYS = ("order", "gate", "number", "within", "check", "last", "withheld")
MOST_WRONG = 2
"""The largest k of an acceptance rule: margins of larger k are dear, and on recorded answers they
delivered no more.
"""
CHECK_EVERYTHING = "check everything"


class RuleKind(StrEnum):
    CONSISTENT = "consistent"
    LEAD = "lead"

    @classmethod
    def _missing_(cls, value: object) -> RuleKind | None:
        """Recipes and documents of 0.2 said `certified`."""
        return cls.CONSISTENT if value == "certified" else None


class LastStage(StrEnum):
    PERSON = "person"
    WITHHELD = "withheld"


@dataclass(frozen=True, slots=True)
class CascadePolicy:
    """Nodes in the order they are asked, the acceptance rule with its number, and what happens to
    what it does not accept. With further steps there need be no acceptance rule.
    """

    order: tuple[str, ...]
    gate: RuleKind
    number: int
    last: LastStage
    random_checks: float = 0.0
    """The share of what the acceptance rule accepts that a person checks, drawn at random."""
    earlier: tuple[tuple[int, int], ...] = ()
    """Of an acceptance rule of consistent answers: stages (answers, k) before the last, each with
    fewer answers.
    """
    further: tuple[str, ...] = ()
    """What is bought of items that the acceptance rule does not accept: answers that are not there
    yet, and checks of machines, where the item has them.
    """
    further_k: int | None = None
    """How many answers may be wrong on that stage; None for all of them."""

    @property
    def undiluted(self) -> CascadePolicy:
        """The same without random checks: it accepts the same values."""
        return replace(self, random_checks=0.0)

    @property
    def answers_only(self) -> CascadePolicy:
        """The same without any check: what its answers alone decide."""
        return replace(self, random_checks=0.0, further=(), further_k=None)

    @property
    def checked_share(self) -> Fraction:
        return Fraction(str(self.random_checks))

    @property
    def within(self) -> int:
        return len(self.order)

    @property
    def stages(self) -> tuple[tuple[int, int], ...]:
        """(answers, k) of each stage of an acceptance rule of consistent answers."""
        return (*self.earlier, (self.within, self.number))

    @property
    def name(self) -> str:
        checks = f", and for {plain_percent(self.random_checks)} at random" if self.random_checks else ""
        end = f"{self.last}{checks}"
        if self.further:
            how = "" if self.further_k is None else f"at k = {self.further_k} on "
            end = f"{how}{_listed(self.further)}; else {end}"
        if not self.order:
            return end
        if self.gate is RuleKind.LEAD:
            return f"lead of {self.number} within {_listed(self.order)}; else {end}"
        begun, steps = 0, []
        for answers, k in self.stages:
            more = _listed(self.order[begun:answers])
            steps.append(f"at k = {k} {'with' if begun else 'within'} {more}")
            begun = answers
        return f"consistent {'; else '.join(steps)}; else {end}"

    def to_json(self) -> dict[str, Any]:
        stages = [list(stage) for stage in self.earlier]
        found = asdict(self)
        further = {"further": list(found.pop("further")), "further_k": found.pop("further_k")}
        return {
            **found,
            **(further if self.further else {}),
            "order": list(self.order),
            "gate": str(self.gate),
            "last": str(self.last),
            "earlier": stages,
        }

    @classmethod
    def from_json(cls, data: Any) -> CascadePolicy:
        """InputError for anything else than what `to_json` wrote."""
        known = {"order", "gate", "number", "last", "random_checks"}
        if not isinstance(data, Mapping) or set(data) - {"earlier", "further", "further_k"} != known:
            raise InputError(
                "a ladder has order, gate, number, last, random_checks, and perhaps earlier rungs and further steps"
            )
        order, number, further = data["order"], data["number"], _further(data)
        if (
            not isinstance(order, list)
            or not (order or further.steps)
            or not all(isinstance(node, str) for node in order)
        ):
            raise InputError("a ladder's order should be a list of node ids")
        if isinstance(number, bool) or not isinstance(number, int) or number < 0 or len(set(order)) != len(order):
            raise InputError("a ladder asks each node once, and its number is a whole one")
        part = data["random_checks"]
        if isinstance(part, bool) or not isinstance(part, int | float) or not 0 <= part < 1:
            raise InputError("a ladder's random_checks should be a share")
        try:
            found = cls(tuple(order), RuleKind(data["gate"]), number, LastStage(data["last"]), part)
            stages = _earlier(data.get("earlier", []), found)
            return replace(found, earlier=stages, further=further.steps, further_k=further.k)
        except ValueError as error:
            raise InputError(f"a ladder: {error}") from None

    def ladder(self, nodes: Sequence[str]) -> Ladder:
        """The same as pure data over places of nodes, for camps of equal answers."""
        place = {node: at for at, node in enumerate(nodes)}
        asked = tuple(place[node] for node in self.order)
        last = Last.GOLD if self.last is LastStage.PERSON else Last.ABSTAIN
        # Consistent at k = 0 is unanimity, which is a lead of T within T.
        if self.gate is RuleKind.CONSISTENT and (self.number or self.earlier):
            return Ladder(asked, Gate.EXPLAINED, self.number, len(asked), last, self.earlier)
        return Ladder(
            asked, Gate.LEAD, len(asked) if self.gate is RuleKind.CONSISTENT else self.number, len(asked), last
        )


def _listed(steps: Iterable[str]) -> str:
    """Steps one after the other, each to be told from it: a policy is known by its name.

    What would read as several, or as quoted, is quoted.
    """
    return ", ".join(dumps(s, ensure_ascii=False) if ", " in s or "; " in s or s.startswith('"') else s for s in steps)


def _further(data: Mapping[str, Any]) -> CheckStage:
    """The further steps of a document: names, each once, and a whole number or nothing; both or
    neither.
    """
    if ("further" in data) != ("further_k" in data):
        raise InputError("a ladder's further steps have a further_k, and nothing else has")
    steps, k = data.get("further", []), data.get("further_k")
    if not isinstance(steps, list) or not all(isinstance(step, str) for step in steps) or len(set(steps)) != len(steps):
        raise InputError("a ladder's further steps should be a list of names, each once")
    if "further" in data and not steps:
        raise InputError("a ladder's further steps should name something")
    if k is not None and (isinstance(k, bool) or not isinstance(k, int) or k < 0):
        raise InputError("a ladder's further_k should be a whole number, or null for all answers")
    return CheckStage(tuple(steps), k)


def _earlier(data: Any, policy: CascadePolicy) -> tuple[tuple[int, int], ...]:
    """Stages of a document: whole numbers, more answers and a larger k from stage to stage."""
    if not isinstance(data, list) or not all(isinstance(stage, list) and len(stage) == 2 for stage in data):
        raise InputError("a ladder's earlier rungs should be a list of pairs: answers, k")
    numbers = [number for stage in data for number in stage]
    if any(isinstance(number, bool) or not isinstance(number, int) or number < 0 for number in numbers):
        raise InputError("a ladder's earlier rungs should be whole numbers")
    found = tuple((stage[0], stage[1]) for stage in data)
    if not found:
        return ()
    steps = [*found, (policy.within, policy.number)]
    if policy.gate is not RuleKind.CONSISTENT or found[0][0] < 1:
        raise InputError("only a gate of consistent answers has earlier rungs, each with at least one answer")
    if any(after[0] <= before[0] or after[1] <= before[1] for before, after in pairwise(steps)):
        raise InputError("each rung of a ladder has more answers and a larger k than the one before")
    return found


def family_of(
    nodes: Sequence[str],
    prices: Mapping[str, float],
    *,
    voices: Sequence[str],
    last: LastStage,
    by_hand: Mapping[str, Any] | None = None,
    escalations: Sequence[Escalation] = (),
    checks: Sequence[CheckStage] = (),
) -> list[CascadePolicy]:
    """Every policy, each distinct rule once.

    `voices`: nodes that say the delivered value, which a lead counts. `escalations`: stages of the
    planner's frontier; an order by hand leaves them out. `checks`: designs with checks of machines,
    to which items may escalate that an acceptance rule does not accept; where [ladder] names a
    check they all do.
    """
    fixed = _by_hand(by_hand, nodes)
    last = LastStage(fixed.get("last", last))
    orders = [list(fixed["order"])] if "order" in fixed else _orders(nodes, prices)
    found: dict[str, CascadePolicy] = {}
    for order in orders:
        for ladder in lead_family(len(order), [range(len(order))]):
            asked = tuple(order[: ladder.within])
            if ladder.gate is Gate.LEAD:
                kind = RuleKind.LEAD
                if ladder.number == ladder.within:  # unanimity, by its better name
                    kind = RuleKind.CONSISTENT
                number = 0 if kind is RuleKind.CONSISTENT else ladder.number
            else:
                kind, number = RuleKind.CONSISTENT, ladder.number
            policy = CascadePolicy(asked, kind, number, last)
            if number > MOST_WRONG and kind is RuleKind.CONSISTENT:
                continue
            if kind is RuleKind.LEAD and not set(asked) <= set(voices):
                continue
            if _fits(policy, fixed):
                found.setdefault(policy.name, policy)
    for escalation in escalations if "order" not in fixed else ():
        *earlier, (within, number) = escalation.stages
        policy = CascadePolicy(escalation.order[:within], RuleKind.CONSISTENT, number, last, earlier=tuple(earlier))
        # One margin on every stage is a lead, where all say the delivered value.
        known = escalation.level and set(policy.order) <= set(voices)
        if not known and _fits(policy, fixed):
            found.setdefault(policy.name, policy)
    if not found:
        raise InputError("[ladder]: no policy of the family has this gate, number and within")
    plain = list(found.values())
    higher = [_escalating(policy, stage) for stage in checks for policy in plain if _comes_after(policy, stage)]
    if fixed.get("check"):
        return higher
    alone = [_escalating(CascadePolicy((), RuleKind.CONSISTENT, 0, last), stage) for stage in checks if stage.k is None]
    return [*plain, *(policy for policy in alone if _fits(policy, fixed) and "order" not in fixed), *higher]


def _escalating(policy: CascadePolicy, stage: CheckStage) -> CascadePolicy:
    return replace(policy, further=stage.steps, further_k=stage.k)


def _comes_after(policy: CascadePolicy, stage: CheckStage) -> bool:
    """Whether a stage comes after this acceptance rule: it allows more wrong answers, or does not
    rest on them at all.
    """
    return stage.k is None or (policy.gate is RuleKind.CONSISTENT and policy.number < stage.k)


SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


def diluted(policies: Sequence[CascadePolicy], risk: float) -> list[CascadePolicy]:
    """Each policy with every share of random checks that leaves something to test."""
    kept = [part for part in SHARES if Fraction(str(risk)) < 1 - Fraction(str(part))]
    return [*policies, *(replace(policy, random_checks=part) for policy in policies for part in kept)]


def _orders(nodes: Sequence[str], prices: Mapping[str, float]) -> list[list[str]]:
    cheap = sorted(nodes, key=lambda node: prices.get(node, 0.0))
    half = max(0, len(cheap) // 2 - 1)
    return [cheap, cheap[::-1], cheap[half:] + cheap[:half]]


def checks_by_hand(section: Mapping[str, Any] | None, known: Sequence[str]) -> tuple[str, ...] | None:
    """The checks that [ladder] names, one or a list; none where it says check = "", None where it
    leaves them to the planner.
    """
    if section is None or "check" not in section:
        return None
    said = section["check"]
    names = [name for name in (said if isinstance(said, list) else [said]) if name != ""]
    for name in names:
        if name not in known:
            others = f"; known: {', '.join(known)}" if known else ""
            raise InputError(f"[ladder]: check = {name!r} is no check on sale that a machine makes{others}")
    return tuple(names)


def _by_hand(section: Mapping[str, Any] | None, nodes: Sequence[str]) -> Mapping[str, Any]:
    if section is None:
        return {}
    for key in section:
        if key not in CASCADE_KEYS:
            raise InputError(f"[ladder]: unknown key {key!r}{suggestion(key, CASCADE_KEYS)}")
    if section.get("gate") == "certified":
        section = {**section, "gate": str(RuleKind("certified"))}
    for key, kind in (("gate", RuleKind), ("last", LastStage)):
        known = [str(member) for member in kind]
        if key in section and section[key] not in known:
            raise InputError(
                f"[ladder]: {key} = {section[key]!r}{suggestion(str(section[key]), known)}; use {' or '.join(known)}"
            )
    order = section.get("order", [])
    if not isinstance(order, list | tuple) or len({str(node) for node in order}) != len(order):
        raise InputError(f"[ladder]: order = {order!r:.80} should be a list of nodes, each once")
    for node in order:
        if node not in nodes:
            raise InputError(f"[ladder]: order names {node!r}, which is no node{suggestion(str(node), nodes)}")
    for key in ("number", "within"):
        if key in section and (isinstance(section[key], bool) or not isinstance(section[key], int)):
            raise InputError(f"[ladder]: {key} = {section[key]!r} should be a whole number")
    return section


def _fits(policy: CascadePolicy, fixed: Mapping[str, Any]) -> bool:
    wanted = {"gate": str(policy.gate), "number": policy.number, "within": policy.within}
    return all(fixed[key] == value for key, value in wanted.items() if key in fixed)
