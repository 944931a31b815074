"""The policies that a pilot tests: ladders over the recipe's nodes (docs/algorithms.md, facts 24 and 31).

Rungs are answers bought one after the other in a fixed order; two gates accept:

    certified k within T    the verdict on all T answers, at most k of them wrong, is `certified`
    lead h within T         the largest camp of equal answers is ahead of the next by h, at the latest after T

A certified gate may climb: k = 0 within few answers, else k = 1 within more, else k = 2 within more still. Its rungs are designs of the planner's exact frontier (`rungs`).

What no gate accepts may climb to a design with checks that machines make (a value of the row, arithmetic, tests in the sandbox, a command, a judge), again one of the frontier's: bought step after step
until the product's verdict on everything that is held is `certified`, or a check decides. What it delivers counts, errors included. The rest goes to the person that the recipe names, or is withheld. A policy may also have a random share q of what its gate accepts checked by the person, which leaves
1 − q of its risk: small risks are proven with few labels that way (fact 34). Orders are cheap first, dear first, and the dear half first; `[ladder]` in a
recipe fixes order, gates or the last rung by hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from fractions import Fraction
from itertools import pairwise
from json import dumps
from typing import Any

from rrf_design.errors import InputError
from rrf_design.files import suggestion
from rrf_design.promises.rungs import CheckRung, Climb
from rrf_design.risk import Gate, Ladder, Last, lead_family
from rrf_design.risk.sentences import plain_percent

LADDER_KEYS = ("order", "gate", "number", "within", "check", "last", "withheld")
MOST_WRONG = 2
"""The largest k of a gate: margins of larger k are dear, and on recorded answers they delivered no more."""
CHECK_EVERYTHING = "check everything"


class GateKind(StrEnum):
    CERTIFIED = "certified"
    LEAD = "lead"


class LastRung(StrEnum):
    PERSON = "person"
    WITHHELD = "withheld"


@dataclass(frozen=True, slots=True)
class LadderPolicy:
    """Nodes in the order they are asked, the gate with its number, and what happens to what it does not accept. With further steps there need be no gate."""

    order: tuple[str, ...]
    gate: GateKind
    number: int
    last: LastRung
    random_checks: float = 0.0
    """The share of what the gate accepts that a person checks, drawn at random."""
    earlier: tuple[tuple[int, int], ...] = ()
    """Of a certified gate: rungs (answers, k) before the last one, each with fewer answers."""
    further: tuple[str, ...] = ()
    """What is bought of items that the gate does not accept: answers that are not there yet, and checks of machines, where the item has them."""
    further_k: int | None = None
    """How many answers may be wrong on that rung; None for all of them."""

    @property
    def gates(self) -> LadderPolicy:
        """The same without random checks: it accepts the same values."""
        return replace(self, random_checks=0.0)

    @property
    def answers_only(self) -> LadderPolicy:
        """The same without any check: what its answers alone decide."""
        return replace(self, random_checks=0.0, further=(), further_k=None)

    @property
    def checked_share(self) -> Fraction:
        return Fraction(str(self.random_checks))

    @property
    def within(self) -> int:
        return len(self.order)

    @property
    def rungs(self) -> tuple[tuple[int, int], ...]:
        """(answers, k) of each rung of a certified gate."""
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
        if self.gate is GateKind.LEAD:
            return f"lead of {self.number} within {_listed(self.order)}; else {end}"
        begun, steps = 0, []
        for answers, k in self.rungs:
            more = _listed(self.order[begun:answers])
            steps.append(f"at k = {k} {'with' if begun else 'within'} {more}")
            begun = answers
        return f"certified {'; else '.join(steps)}; else {end}"

    def to_json(self) -> dict[str, Any]:
        rungs = [list(rung) for rung in self.earlier]
        found = asdict(self)
        further = {"further": list(found.pop("further")), "further_k": found.pop("further_k")}
        return {
            **found,
            **(further if self.further else {}),
            "order": list(self.order),
            "gate": str(self.gate),
            "last": str(self.last),
            "earlier": rungs,
        }

    @classmethod
    def from_json(cls, data: Any) -> LadderPolicy:
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
            found = cls(tuple(order), GateKind(data["gate"]), number, LastRung(data["last"]), part)
            rungs = _earlier(data.get("earlier", []), found)
            return replace(found, earlier=rungs, further=further.steps, further_k=further.k)
        except ValueError as error:
            raise InputError(f"a ladder: {error}") from None

    def ladder(self, nodes: Sequence[str]) -> Ladder:
        """The same as pure data over places of nodes, for camps of equal answers."""
        place = {node: at for at, node in enumerate(nodes)}
        asked = tuple(place[node] for node in self.order)
        last = Last.GOLD if self.last is LastRung.PERSON else Last.ABSTAIN
        # Certified at k = 0 is unanimity, which is a lead of T within T.
        if self.gate is GateKind.CERTIFIED and (self.number or self.earlier):
            return Ladder(asked, Gate.EXPLAINED, self.number, len(asked), last, self.earlier)
        return Ladder(
            asked, Gate.LEAD, len(asked) if self.gate is GateKind.CERTIFIED else self.number, len(asked), last
        )


def _listed(steps: Iterable[str]) -> str:
    """Steps one after the other, each to be told from it: a policy is known by its name. What would read as several, or as quoted, is quoted."""
    return ", ".join(dumps(s, ensure_ascii=False) if ", " in s or "; " in s or s.startswith('"') else s for s in steps)


def _further(data: Mapping[str, Any]) -> CheckRung:
    """The further steps of a document: names, each once, and a whole number or nothing; both or neither."""
    if ("further" in data) != ("further_k" in data):
        raise InputError("a ladder's further steps have a further_k, and nothing else has")
    steps, k = data.get("further", []), data.get("further_k")
    if not isinstance(steps, list) or not all(isinstance(step, str) for step in steps) or len(set(steps)) != len(steps):
        raise InputError("a ladder's further steps should be a list of names, each once")
    if "further" in data and not steps:
        raise InputError("a ladder's further steps should name something")
    if k is not None and (isinstance(k, bool) or not isinstance(k, int) or k < 0):
        raise InputError("a ladder's further_k should be a whole number, or null for all answers")
    return CheckRung(tuple(steps), k)


def _earlier(data: Any, policy: LadderPolicy) -> tuple[tuple[int, int], ...]:
    """Rungs of a document: whole numbers, more answers and a larger k from rung to rung."""
    if not isinstance(data, list) or not all(isinstance(rung, list) and len(rung) == 2 for rung in data):
        raise InputError("a ladder's earlier rungs should be a list of pairs: answers, k")
    numbers = [number for rung in data for number in rung]
    if any(isinstance(number, bool) or not isinstance(number, int) or number < 0 for number in numbers):
        raise InputError("a ladder's earlier rungs should be whole numbers")
    found = tuple((rung[0], rung[1]) for rung in data)
    if not found:
        return ()
    steps = [*found, (policy.within, policy.number)]
    if policy.gate is not GateKind.CERTIFIED or found[0][0] < 1:
        raise InputError("only a certified gate has earlier rungs, each with at least one answer")
    if any(after[0] <= before[0] or after[1] <= before[1] for before, after in pairwise(steps)):
        raise InputError("each rung of a ladder has more answers and a larger k than the one before")
    return found


def family_of(
    nodes: Sequence[str],
    prices: Mapping[str, float],
    *,
    voices: Sequence[str],
    last: LastRung,
    by_hand: Mapping[str, Any] | None = None,
    climbs: Sequence[Climb] = (),
    checks: Sequence[CheckRung] = (),
) -> list[LadderPolicy]:
    """Every policy, each distinct rule once. `voices`: nodes that say the delivered value, which a lead counts. `climbs`: rungs of the planner's frontier;
    an order by hand leaves them out. `checks`: designs with checks of machines, to which items may climb that a gate does not accept; where [ladder] names a check they all do."""
    fixed = _by_hand(by_hand, nodes)
    last = LastRung(fixed.get("last", last))
    orders = [list(fixed["order"])] if "order" in fixed else _orders(nodes, prices)
    found: dict[str, LadderPolicy] = {}
    for order in orders:
        for ladder in lead_family(len(order), [range(len(order))]):
            asked = tuple(order[: ladder.within])
            if ladder.gate is Gate.LEAD:
                kind = GateKind.LEAD
                if ladder.number == ladder.within:  # unanimity, by its better name
                    kind = GateKind.CERTIFIED
                number = 0 if kind is GateKind.CERTIFIED else ladder.number
            else:
                kind, number = GateKind.CERTIFIED, ladder.number
            policy = LadderPolicy(asked, kind, number, last)
            if number > MOST_WRONG and kind is GateKind.CERTIFIED:
                continue
            if kind is GateKind.LEAD and not set(asked) <= set(voices):
                continue
            if _fits(policy, fixed):
                found.setdefault(policy.name, policy)
    for climb in climbs if "order" not in fixed else ():
        *earlier, (within, number) = climb.rungs
        policy = LadderPolicy(climb.order[:within], GateKind.CERTIFIED, number, last, earlier=tuple(earlier))
        # One margin on every rung is a lead, where all say the delivered value.
        known = climb.level and set(policy.order) <= set(voices)
        if not known and _fits(policy, fixed):
            found.setdefault(policy.name, policy)
    if not found:
        raise InputError("[ladder]: no policy of the family has this gate, number and within")
    plain = list(found.values())
    higher = [_climbing(policy, rung) for rung in checks for policy in plain if _climbs(policy, rung)]
    if fixed.get("check"):
        return higher
    alone = [_climbing(LadderPolicy((), GateKind.CERTIFIED, 0, last), rung) for rung in checks if rung.k is None]
    return [*plain, *(policy for policy in alone if _fits(policy, fixed) and "order" not in fixed), *higher]


def _climbing(policy: LadderPolicy, rung: CheckRung) -> LadderPolicy:
    return replace(policy, further=rung.steps, further_k=rung.k)


def _climbs(policy: LadderPolicy, rung: CheckRung) -> bool:
    """Whether a rung comes after this gate: it allows more wrong answers, or does not rest on them at all."""
    return rung.k is None or (policy.gate is GateKind.CERTIFIED and policy.number < rung.k)


SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


def diluted(policies: Sequence[LadderPolicy], risk: float) -> list[LadderPolicy]:
    """Each policy with every share of random checks that leaves something to test."""
    kept = [part for part in SHARES if Fraction(str(risk)) < 1 - Fraction(str(part))]
    return [*policies, *(replace(policy, random_checks=part) for policy in policies for part in kept)]


def _orders(nodes: Sequence[str], prices: Mapping[str, float]) -> list[list[str]]:
    cheap = sorted(nodes, key=lambda node: prices.get(node, 0.0))
    half = max(0, len(cheap) // 2 - 1)
    return [cheap, cheap[::-1], cheap[half:] + cheap[:half]]


def checks_by_hand(section: Mapping[str, Any] | None, known: Sequence[str]) -> tuple[str, ...] | None:
    """The checks that [ladder] names, one or a list; none where it says check = "", None where it leaves them to the planner."""
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
        if key not in LADDER_KEYS:
            raise InputError(f"[ladder]: unknown key {key!r}{suggestion(key, LADDER_KEYS)}")
    for key, kind in (("gate", GateKind), ("last", LastRung)):
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


def _fits(policy: LadderPolicy, fixed: Mapping[str, Any]) -> bool:
    wanted = {"gate": str(policy.gate), "number": policy.number, "within": policy.within}
    return all(fixed[key] == value for key, value in wanted.items() if key in fixed)
