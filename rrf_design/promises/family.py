"""The policies that a pilot tests: ladders over the recipe's nodes (docs/algorithms.md, facts 24 and 31).

Rungs are answers bought one after the other in a fixed order; two gates accept:

    certified k within T    the verdict on all T answers, at most k of them wrong, is `certified`
    lead h within T         the largest camp of equal answers is ahead of the next by h, at the latest after T

A certified gate may climb: k = 0 within few answers, else k = 1 within more, else k = 2 within more still. Its rungs are designs of the planner's exact frontier (`rungs`).

What no gate accepts may be decided by a check on sale that nobody has to be asked for (a value, arithmetic), where the recipe has one that states the delivered value; it is a rung like
any other, and its errors are counted. The rest goes to the person that the recipe names, or is withheld. A policy may also have a random share q of what its gate accepts checked by the person, which leaves
1 − q of its risk: small risks are proven with few labels that way (fact 34). Orders are cheap first, dear first, and the dear half first; `[ladder]` in a
recipe fixes order, gates or the last rung by hand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from fractions import Fraction
from itertools import pairwise
from typing import Any

from rrf_design.errors import InputError
from rrf_design.files import suggestion
from rrf_design.promises.rungs import Climb
from rrf_design.risk import Gate, Ladder, Last, lead_family

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
    """Nodes in the order they are asked, the gate with its number, and what happens to what it does not accept. With a check there need be no node: it decides everything."""

    order: tuple[str, ...]
    gate: GateKind
    number: int
    last: LastRung
    random_checks: float = 0.0
    """The share of what the gate accepts that a person checks, drawn at random."""
    earlier: tuple[tuple[int, int], ...] = ()
    """Of a certified gate: rungs (answers, k) before the last one, each with fewer answers."""
    check: str = ""
    """The machine's check that decides what the gate does not accept, where the item has it; empty for none."""

    @property
    def gates(self) -> LadderPolicy:
        """The same without random checks: it accepts the same values."""
        return replace(self, random_checks=0.0)

    @property
    def answers_only(self) -> LadderPolicy:
        """The same without any check: what its answers alone decide."""
        return replace(self, random_checks=0.0, check="")

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
        checks = f", and for {self.random_checks:.0%} at random" if self.random_checks else ""
        end = f"{f'{self.check}; else ' if self.check else ''}{self.last}{checks}"
        if not self.order:
            return end
        if self.gate is GateKind.LEAD:
            return f"lead of {self.number} within {', '.join(self.order)}; else {end}"
        begun, steps = 0, []
        for answers, k in self.rungs:
            more = ", ".join(self.order[begun:answers])
            steps.append(f"at k = {k} {'with' if begun else 'within'} {more}")
            begun = answers
        return f"certified {'; else '.join(steps)}; else {end}"

    def to_json(self) -> dict[str, Any]:
        rungs = [list(rung) for rung in self.earlier]
        kept = {key: value for key, value in asdict(self).items() if key != "check" or value}
        return {
            **kept,
            "order": list(self.order),
            "gate": str(self.gate),
            "last": str(self.last),
            "earlier": rungs,
        }

    @classmethod
    def from_json(cls, data: Any) -> LadderPolicy:
        """InputError for anything else than what `to_json` wrote."""
        known = {"order", "gate", "number", "last", "random_checks"}
        if not isinstance(data, Mapping) or set(data) - {"earlier", "check"} != known:
            raise InputError(
                "a ladder has order, gate, number, last, random_checks, and perhaps earlier rungs and a check"
            )
        order, number = data["order"], data["number"]
        if (
            not isinstance(order, list)
            or not (order or data.get("check"))
            or not all(isinstance(node, str) for node in order)
        ):
            raise InputError("a ladder's order should be a list of node ids")
        if isinstance(number, bool) or not isinstance(number, int) or number < 0 or len(set(order)) != len(order):
            raise InputError("a ladder asks each node once, and its number is a whole one")
        if not isinstance(data.get("check", ""), str):
            raise InputError("a ladder's check should be the name of one")
        part = data["random_checks"]
        if isinstance(part, bool) or not isinstance(part, int | float) or not 0 <= part < 1:
            raise InputError("a ladder's random_checks should be a share")
        try:
            found = cls(tuple(order), GateKind(data["gate"]), number, LastRung(data["last"]), part)
            return replace(found, earlier=_earlier(data.get("earlier", []), found), check=data.get("check", ""))
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
    checks: Sequence[str] = (),
) -> list[LadderPolicy]:
    """Every policy, each distinct rule once. `voices`: nodes that say the delivered value, which a lead counts. `climbs`: rungs of the planner's frontier;
    an order by hand leaves them out. `checks`: of machines, each of which may decide what a gate does not accept."""
    fixed = _by_hand(by_hand, nodes, checks)
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
    if "check" in fixed:
        return [replace(policy, check=fixed["check"]) for policy in plain]
    alone = [LadderPolicy((), GateKind.CERTIFIED, 0, last, check=name) for name in checks]
    return [
        *plain,
        *(policy for policy in alone if _fits(policy, fixed) and "order" not in fixed),
        *(replace(policy, check=name) for name in checks for policy in plain),
    ]


SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


def diluted(policies: Sequence[LadderPolicy], risk: float) -> list[LadderPolicy]:
    """Each policy with every share of random checks that leaves something to test."""
    kept = [part for part in SHARES if Fraction(str(risk)) < 1 - Fraction(str(part))]
    return [*policies, *(replace(policy, random_checks=part) for policy in policies for part in kept)]


def _orders(nodes: Sequence[str], prices: Mapping[str, float]) -> list[list[str]]:
    cheap = sorted(nodes, key=lambda node: prices.get(node, 0.0))
    half = max(0, len(cheap) // 2 - 1)
    return [cheap, cheap[::-1], cheap[half:] + cheap[:half]]


def _by_hand(section: Mapping[str, Any] | None, nodes: Sequence[str], checks: Sequence[str]) -> Mapping[str, Any]:
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
    for node in section.get("order", ()):
        if node not in nodes:
            raise InputError(f"[ladder]: order names {node!r}, which is no node{suggestion(str(node), nodes)}")
    if "check" in section and section["check"] not in ("", *checks):
        others = f"; known: {', '.join(checks)}" if checks else ""
        raise InputError(
            f"[ladder]: check = {section['check']!r} is no check on sale that states the delivered value and that nobody has to be asked for{others}"
        )
    for key in ("number", "within"):
        if key in section and (isinstance(section[key], bool) or not isinstance(section[key], int)):
            raise InputError(f"[ladder]: {key} = {section[key]!r} should be a whole number")
    return section


def _fits(policy: LadderPolicy, fixed: Mapping[str, Any]) -> bool:
    wanted = {"gate": str(policy.gate), "number": policy.number, "within": policy.within}
    return all(fixed[key] == value for key, value in wanted.items() if key in fixed)
