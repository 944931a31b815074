"""One budget over all items of an adaptive run: who buys next, decided for all of them together.

Decisions of one wave are made when everything asked for is back, so neither the order in which answers arrive nor a
resumed session changes them. Fields that money can bring to their goal go first, the cheapest before the dearer: that is the
largest number of goals reached, and money is never spread so thin that nobody gets there. While there are such fields
the others wait; afterwards what is left goes to whatever sees most of its witness per cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from rrf_design.acquisition.choosing import score_of
from rrf_design.acquisition.shop import Bundle


@dataclass(frozen=True, slots=True)
class Proposal:
    """What an item would buy next, and what it would still cost to reach its goal; None if that can't be reached."""

    bundles: tuple[Bundle, ...]
    goal: Fraction | None


def share(proposals: Mapping[str, Proposal], left: Fraction | None) -> dict[str, tuple[Bundle, ...]]:
    """What is bought in this wave, by item; never more than `left` together. Items that are not named wait for the next."""
    wishes = {item: proposal for item, proposal in proposals.items() if proposal.bundles}
    if left is None:
        return {item: proposal.bundles for item, proposal in wishes.items()}
    admitted: list[str] = []
    promised = Fraction(0)
    reachable = [(proposal.goal, item) for item, proposal in wishes.items() if proposal.goal]
    for cost, item in sorted(reachable, key=lambda entry: entry[0]):  # stable: file order among equals
        if promised + cost <= left:
            promised += cost
            admitted.append(item)
    if not admitted:
        admitted = sorted(wishes, key=lambda item: -_worth(wishes[item].bundles[0]))
    chosen: dict[str, tuple[Bundle, ...]] = {}
    for item in admitted:
        fitting = []
        for bundle in wishes[item].bundles:
            if bundle.price > left:
                break
            left -= bundle.price
            fitting.append(bundle)
        if fitting:
            chosen[item] = tuple(fitting)
    return chosen


def _worth(bundle: Bundle) -> float:
    return score_of(bundle.sees, bundle.price)
