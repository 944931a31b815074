"""Triage: after the cheap questions, who gets the money that is left, over all items together.

What is certified is left alone. What is missing or unread is asked for, where that can bring an item to its goal; what is
disputed can't be helped by more questions and goes to a check that decides it, or where checks may be wrong to as many as can't
all be. Machines come before people, and among equals
what costs least to settle comes first, then what is surely wrong, then what disagrees most, as far as answers say so: the order of
the file comes last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from rrf_design.acquisition import opening
from rrf_design.acquisition.concluding import stated
from rrf_design.acquisition.items import ItemState
from rrf_design.acquisition.shop import Shop
from rrf_design.decisive import cheapest_first, decisive_checks, is_person, quorum, sole_delivered, suspect_statements
from rrf_design.verdict import Verdict, dispute


@dataclass(frozen=True, slots=True)
class Wish:
    """What an item would buy next: its names, their price, and what settling the item costs in all."""

    names: tuple[str, ...]
    price: Fraction
    settling: Fraction
    person: bool
    verdict: Verdict
    misfit: float
    """How far the answers are from any explanation."""
    blamed: int = 0
    """Answers that the explanation found calls wrong: where k allows for so many that everything fits, this still tells a dispute."""

    @property
    def urgency(self) -> tuple[Any, ...]:
        """Smaller is more urgent: cost of settling, kind of trouble, and its size."""
        return (self.settling, dispute(self.verdict, self.misfit, self.blamed))


def wish_of(design: Shop, state: ItemState, repair: Mapping[str, Any]) -> Wish | None:
    """The next purchase of an item that is not certified; None where nothing on sale helps."""
    wish = _wish(design, state, repair)
    return None if wish is None else replace(wish, blamed=len(repair.get("support") or ()))


def _wish(design: Shop, state: ItemState, repair: Mapping[str, Any]) -> Wish | None:
    verdict = Verdict(repair["verdict"])
    misfit = float(repair.get("residual") or 0.0)
    held, failed = {*state.held, *state.pending}, state.failed
    people = {anchor.id for anchor in design.problem.anchors if is_person(anchor)} - held
    if verdict is not Verdict.CONTRADICTED:
        settling = opening.cost_of_goal(design, held, failed | people)
        bundle = opening.next_bundle(design, held, failed | people, most=None) if settling else None
        if bundle is not None and settling is not None:
            return Wish(bundle.names, bundle.price, settling, False, verdict, misfit)
    for anchor in decisive_checks(design.problem, without={*held, *failed}):
        price = design.price([anchor.id], held)
        return Wish((anchor.id,), price, price, is_person(anchor), verdict, misfit)
    if (wish := _quorum_wish(design, state, verdict, misfit)) is not None:
        return wish
    if verdict is Verdict.CONTRADICTED or state.pending:
        return None
    bundle = opening.next_bundle(design, held, failed, most=None)  # people whose check is evidence like any other
    return None if bundle is None else Wish(bundle.names, bundle.price, bundle.price, True, verdict, misfit)


def _quorum_wish(design: Shop, state: ItemState, verdict: Verdict, misfit: float) -> Wish | None:
    """The checks that would decide an item although each may be wrong: as many more as must agree; None where too few are left."""
    node = sole_delivered(design.problem)
    if node is None or state.pending:
        return None
    listed = suspect_statements(design.problem, node)
    said = stated(design, state)
    largest = max(Counter(said[anchor.id] for anchor in listed if anchor.id in said).values(), default=0)
    gone = {*said, *state.held, *state.failed}
    left = [anchor for anchor in listed if anchor.id not in gone and not anchor.owned]
    missing = quorum(design.problem) - largest
    if missing <= 0 or missing > len(left):
        return None
    chosen = cheapest_first(left)[:missing]
    names = tuple(anchor.id for anchor in chosen)
    price = design.price(names, {*state.held, *state.pending})
    return Wish(names, price, price, any(map(is_person, chosen)), verdict, misfit)


def admitted(wishes: Mapping[str, Wish], left: Fraction | None) -> dict[str, Wish]:
    """Who buys in this wave: machines first, and as many as the money settles, the most urgent first."""
    for person in (False, True):
        found: dict[str, Wish] = {}
        promised = Fraction(0)
        asking = {item: wish for item, wish in wishes.items() if wish.person is person}
        for item, wish in sorted(asking.items(), key=lambda entry: entry[1].urgency):
            if left is None or promised + wish.settling <= left:
                promised += wish.settling
                found[item] = wish
        if found:
            return found
    return {}
