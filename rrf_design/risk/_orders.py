"""An order of tests that is fixed before any gold is seen (docs/algorithms.md, facts 33 and 34).

A policy's predicted risk comes from a fit on the answers of other items; the Pareto front of
predicted risk against cost, from the safest to the cheapest, is a fixed sequence. A bad prediction
costs money and never the promise.

Counts are whole, so a sequence at level α really uses the size of its largest passing count, often
little more than half of α. That size is known before looking. `staggered` gives the first chain
exactly what it uses and the rest to further chains with other beliefs: never worse than the first
chain alone, test by test, and sometimes better, for example where one model is far ahead of all
others and agreement underrates it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rrf_design.errors import InputError
from rrf_design.risk._arguments import Number, share
from rrf_design.risk._cascades import UNREADABLE, Crowd, Replay
from rrf_design.risk._counts import guard
from rrf_design.risk._policies import Stream
from rrf_design.risk._statements import Among, Limit, Scope, evidence

Floats = NDArray[np.float64]
_BLOCK = 64
DISCOUNT = 0.35
"""How much of the evidence of agreement to believe when predicting.

Chosen on panels of recorded answers, those of the published cells among them, where errors come
together.
"""

STRIDE = 0.98
"""A step of a front costs at most this much of the step before. Chosen on the same panels."""


def trusted_risk(right: ArrayLike, answers: ArrayLike, played: Sequence[Replay], *, among: Among = Among.ALL) -> Floats:
    """The predicted share of wrong and unchecked items, among all or among those delivered, for
    policies replayed on these items.

    right (items, nodes): the probability that what node j said is true. A policy that delivers
    nothing risks nothing.
    """
    codes, trust = np.asarray(answers, dtype=np.int64), np.asarray(right, dtype=np.float64)
    found = np.zeros(len(played))
    for start in range(0, len(played), _BLOCK):
        block = played[start : start + _BLOCK]
        values = np.column_stack([policy.value for policy in block])
        # Who said what was accepted: the first of the nodes that did.
        speaker = (codes[:, None, :] == values[:, :, None]).argmax(axis=2)
        doubt = np.where(values != UNREADABLE, 1.0 - np.take_along_axis(trust, speaker, axis=1), 0.0)
        left = np.array([float(1 - policy.checked_share) for policy in block])
        if among is Among.DELIVERED:
            left = left * len(codes) / np.array([max(1, int(policy.delivered.sum())) for policy in block])
        found[start : start + _BLOCK] = doubt.mean(axis=0) * left
    return found


def front(risks: ArrayLike, costs: ArrayLike) -> list[int]:
    """Places on the Pareto front of predicted risk against cost, from the safest to the
    cheapest.
    """
    risk, cost = np.asarray(risks, dtype=np.float64), np.asarray(costs, dtype=np.float64)
    found: list[int] = []
    best = np.inf
    for place in np.lexsort((cost, risk)):
        if cost[place] < best:
            best = cost[place]
            found.append(int(place))
    return found


def strides(places: Sequence[int], costs: Sequence[float], *, stride: float = STRIDE) -> list[int]:
    """A front without the steps that save almost nothing: each test is a chance to end the
    sequence, and should promise something for it.
    """
    found: list[int] = []
    for place in places:
        if not found or costs[place] <= stride * costs[found[-1]]:
            found.append(place)
    return found


def fronts(crowd: Crowd, answers: ArrayLike, played: Sequence[Replay], *, prices: ArrayLike) -> list[list[int]]:
    """Four fronts over the same policies, as places, made from items outside the pilot: agreement
    at a discount; the dearest node taken for the truth; agreement at its face value; and the first
    again from a third of its way on, for when its beginning is what fails. Each in `strides`.
    """
    codes = np.asarray(answers, dtype=np.int64)
    price = np.asarray(prices, dtype=np.float64)
    costs = [float(policy.cost.mean()) for policy in played]
    dearest = int(np.lexsort((crowd.accuracy, price))[-1])
    beliefs = [
        crowd.right(codes, discount=DISCOUNT),
        ((codes == codes[:, [dearest]]) & (codes != UNREADABLE)).astype(np.float64),
        crowd.right(codes),
    ]
    found = [strides(front(trusted_risk(right, codes, played), costs), costs) for right in beliefs]
    return [*found, found[0][len(found[0]) // 3 :]]


def staggered(chains: Sequence[Sequence[str]], limit: Limit, scope: Scope, *, confidence: Number) -> tuple[Stream, ...]:
    """Chains of names, each with the size that its largest passing count really uses of what the
    chains before it left.
    """
    if limit.among is not Among.ALL:
        raise InputError("staggered chains need a denominator known before looking: a limit among 'all' items")
    if not chains:
        raise InputError("there is no chain of names to test")
    alpha = 1 - share(confidence, "confidence")
    left, found = alpha, []
    for chain in chains:
        used = attained_size(limit, scope, left)
        if used == 0:
            break
        found.append(Stream(used / alpha, tuple(chain)))
        left -= used
    return tuple(found) or (Stream(Fraction(1), tuple(chains[0])),)


def half_depth(limit: Limit, scope: Scope, *, confidence: Number) -> Scope:
    """The same scope with a depth of half the largest number of wrong items that a single claim
    allows: a choice before looking that serves cheap policies well, and passes over those that show
    fewer wrong items than that.
    """
    alpha = 1 - share(confidence, "confidence")
    flat = replace(scope, depth=0)
    most = -1
    while most < scope.piloted and evidence(limit, flat, scope.piloted, most + 1).claim.at_most(alpha):
        most += 1
    return replace(scope, depth=max(0, most) // 2)


def passing_count(limit: Limit, scope: Scope, level: Fraction) -> int:
    """The largest number of wrong items in the pilot that still proves the limit at this level; −1
    where none does. The tail grows with the count.
    """
    low, high = -1, scope.piloted
    while low < high:
        middle = (low + high + 1) // 2
        if evidence(limit, scope, scope.piloted, middle).gate.at_most(level):
            low = middle
        else:
            high = middle - 1
    return low


def attained_size(limit: Limit, scope: Scope, level: Fraction) -> Fraction:
    """What a test at this level really uses: the tail at its largest passing count, rounded up a
    little and never above the level.
    """
    count = passing_count(limit, scope, level)
    if count < 0:
        return Fraction(0)
    used = evidence(limit, scope, scope.piloted, count).gate.value
    return min(level, Fraction(used * (1 + 2 * guard(scope.population or scope.piloted))))
