"""Triage: what an item buys next, once its answers are judged.

What is missing or unread is asked for where that can bring an item to its goal, what is disputed
goes to a check that decides it; money that is left then checks what is only consistent. Of several
fields each is looked at by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from rrf_design.acquisition._candidates import Candidates
from rrf_design.acquisition._concluding import stated
from rrf_design.acquisition._purchases import Buys
from rrf_design.acquisition._selection import Position
from rrf_design.acquisition._state import ItemState
from rrf_design.blocks import Anchor
from rrf_design.checks import (
    cheapest_first,
    decisive_checks,
    delivered_node,
    is_person,
    machine_deciding,
    quorum,
    sole_delivered,
    suspect_statements,
)
from rrf_design.verdict import Verdict, dispute


@dataclass(frozen=True, slots=True)
class NextPurchase:
    """Triage: what an open item buys next, and what settling it costs in all."""

    names: tuple[str, ...]
    settling: Fraction
    person: bool
    trouble: tuple[int, float, int] = (0, 0.0, 0)
    """The kind of trouble and its size, in the order of disputes (`rrf_design.verdict.dispute`)."""
    for_risk: Fraction = Fraction(0)
    """Of a check of what is only consistent: its price for the risk that it takes away."""

    @property
    def urgency(self) -> tuple[Any, ...]:
        """Smaller is more urgent: cost of settling, then the trouble."""
        return self.settling, self.trouble


def _judged(
    design: Candidates, state: ItemState, repair: Mapping[str, Any]
) -> list[tuple[Candidates, Mapping[str, Any]]]:
    """The fields of an item, each with what its answers amount to so far."""
    if "fields" not in repair:
        return [(design, repair)]
    return [(one, repair["fields"][delivered_node(one.problem)]) for one in design.fields(state.held)]


def remedy_of(design: Candidates, state: ItemState, repair: Mapping[str, Any]) -> NextPurchase | None:
    """The next purchase of an open item; None where nothing on sale helps.

    Of several fields that of the one whose settling is most urgent, and all the people who would
    settle one at once.
    """
    if "fields" not in repair:
        return _one_remedy(design, state, repair)
    fields = [entry for entry in _judged(design, state, repair) if not Verdict(entry[1]["verdict"]).passes]
    found = [one for field, document in fields if (one := _one_remedy(field, state, document)) is not None]
    if not found:
        return None
    first = min(found, key=lambda remedy: (remedy.person, remedy.urgency))
    together = found if first.person else [first]
    nodes, held = design.problem.node_by_id, state.held.union(state.pending)
    names = dict.fromkeys(
        design.problem.asked_as(name) if name in nodes else name for remedy in together for name in remedy.names
    )
    settling = design.price(names, held) if first.person else first.settling
    return replace(first, names=tuple(name for name in names if name not in held), settling=settling)


def _one_remedy(design: Candidates, state: ItemState, repair: Mapping[str, Any]) -> NextPurchase | None:
    """The next purchase of an open item; None where nothing on sale helps."""
    verdict = Verdict(repair["verdict"])
    # Where k allows for so many wrong answers that everything fits, those that the explanation
    # found calls wrong still tell a dispute.
    trouble = dispute(verdict, float(repair.get("residual") or 0.0), len(repair.get("support") or ()))
    held, failed = state.held.union(state.pending), state.failed
    people = {anchor.id for anchor in design.problem.anchors if is_person(anchor)} - held
    if verdict is not Verdict.CONTRADICTED:
        there = Position(design, held, failed | people)
        settling = there.cost_of_goal()
        offer = there.next_offer(most=None) if settling else None
        if offer is not None and settling is not None:
            return NextPurchase(offer.names, settling, False, trouble)
    for anchor in decisive_checks(design.problem, without={*held, *failed}):
        return NextPurchase((anchor.id,), design.price([anchor.id], held), is_person(anchor), trouble)
    if state.pending:
        return None
    if chosen := _missing_to_quorum(design, state):
        names = tuple(anchor.id for anchor in chosen)
        return NextPurchase(names, design.price(names, held), any(map(is_person, chosen)), trouble)
    if verdict is Verdict.CONTRADICTED:
        return None
    offer = Position(design, held, failed).next_offer(most=None)  # people whose check is evidence like any other
    return None if offer is None else NextPurchase(offer.names, offer.price, True, trouble)


def _missing_to_quorum(design: Candidates, state: ItemState) -> Sequence[Anchor]:
    """The checks that would decide an item although each may be wrong: as many more as must agree;
    none where too few are left.
    """
    held = state.held.union(state.failed)
    node = sole_delivered(design.problem, held)
    if node is None:
        return ()
    listed = suspect_statements(design.problem, node, held=held)
    said = stated(design, state)
    largest = max(Counter(said[anchor.id] for anchor in listed if anchor.id in said).values(), default=0)
    left = cheapest_first([a for a in listed if a.id not in held.union(said) and not a.owned])
    for missing in range(1, len(left) + 1):  # each of them may raise how many may be wrong
        if largest + missing >= quorum(design.problem, {*held, *(a.id for a in left[:missing])}):
            return left[:missing]
    return ()


def admitted(remedies: Mapping[str, NextPurchase], left: Fraction | None) -> dict[str, NextPurchase]:
    """Who buys in this wave: machines first, and as many as the money settles, the most urgent
    first.
    """
    for person in (False, True):
        found: dict[str, NextPurchase] = {}
        promised = Fraction(0)
        asking = {item: remedy for item, remedy in remedies.items() if remedy.person is person}
        for item, remedy in sorted(asking.items(), key=lambda entry: entry[1].urgency):
            if left is None or promised + remedy.settling <= left:
                promised += remedy.settling
                found[item] = remedy
        if found:
            return found
    return {}


def spare_check(design: Candidates, state: ItemState, repair: Mapping[str, Any], left: Fraction) -> NextPurchase | None:
    """The machine check of an item that is only consistent with the least cost for its risk; None
    where none is affordable.

    The risk is that of one more answer being wrong, by the rule of succession over those of the
    field: an order among items, and no promise.
    """
    found: list[NextPurchase] = []
    answers = {} if state.pending else state.values(Buys.ANSWER)
    for one, document in () if state.pending else _judged(design, state, repair):
        if Verdict(document["verdict"]) is not Verdict.CONSISTENT:
            continue
        there = sum(name in answers for name in one.problem.node_by_id)
        risk = Fraction(len(document.get("support") or ()) + 1, there + 2)
        for anchor in machine_deciding(one.problem, without={*state.held, *state.failed}):
            price = one.price([anchor.id], state.held)
            if price <= left:
                found.append(NextPurchase((anchor.id,), price, False, for_risk=price / risk))
                break
    return min(found, key=lambda check: check.for_risk, default=None)


def spared(checks: Mapping[str, NextPurchase], left: Fraction | None) -> dict[str, NextPurchase]:
    """By item: those of these checks that are bought, the least cost for their risk first, as far
    as the money goes.
    """
    found: dict[str, NextPurchase] = {}
    for item, check in sorted(checks.items(), key=lambda entry: entry[1].for_risk):
        if left is None or check.settling <= left:
            left = None if left is None else left - check.settling
            found[item] = check
    return found
