"""What a pilot could prove and cost, before anything is spent (docs/algorithms.md, fact 34).

An order of tests that is fixed before any gold is seen (docs/algorithms.md, facts 33 and 34).

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

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rrf_design.errors import InputError
from rrf_design.risk._arguments import Number, share, whole
from rrf_design.risk._cascades import UNREADABLE, Crowd, Replay
from rrf_design.risk._counts import BinomialTail, guard, rate_bound
from rrf_design.risk._sequences import sequential_tail
from rrf_design.risk._statements import Among, Limit, Scope, Statement, Stream, evidence

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


def least_labels(risk: Number, confidence: Number, *, wrong: int = 0) -> int:
    """The smallest pilot of fresh items that proves the risk when `wrong` of them are wrong: 59,
    149, 299 for 5, 2, 1 % at 95 % and none wrong.
    """
    rate, level = share(risk, "risk"), 1 - share(confidence, "confidence")
    x = whole(wrong, "wrong")
    low, high = x, max(1, x)
    while not BinomialTail(high, rate, x).at_most(level):
        low, high = high, 2 * high
    while low < high:
        middle = (low + high) // 2
        if BinomialTail(middle, rate, x).at_most(level):
            high = middle
        else:
            low = middle + 1
    return high


def first_look(risk: Number, confidence: Number) -> int:
    """The smallest pilot that proves the risk by tests that hold at every moment, with none wrong:
    where looking at a pilot that grows begins.
    """
    rate, level = share(risk, "risk"), 1 - share(confidence, "confidence")

    def proves(labels: int) -> bool:
        return sequential_tail(np.zeros(labels, dtype=bool), rate).at_most(level)

    low, high = 0, 1
    while not proves(high):
        low, high = high, 2 * high
    while low < high:
        middle = (low + high) // 2
        if proves(middle):
            high = middle
        else:
            low = middle + 1
    return high


def best_risk(labels: int, confidence: Number) -> float:
    """The smallest risk that a pilot of this size can prove, up to rounding upwards: the one it
    proves when nothing is wrong.
    """
    return rate_bound(whole(labels, "labels", least=1), 0, confidence)


def pilot_size(population: int, risk: Number) -> int:
    """A rule of thumb, n ≈ 0.7 √(N / r): larger pilots prove more and cost more.

    It fitted recorded answers by eye; it is no theorem.
    """
    return min(
        whole(population, "population", least=1), round(0.7 * math.sqrt(population / float(share(risk, "risk"))))
    )


FORECAST_DISCOUNT = 0.15
"""How much of the evidence of agreement to believe when forecasting: less than an order of tests
does, which only ranks, where a forecast has to be near the truth. Chosen on five panels of recorded
answers (docs/algorithms.md, fact 34).
"""
AGREED_WRONG = 0.01
"""A guess, where nobody says a better one: so many accepted answers are wrong although nothing
among the answers shows it. Where eight models agreed, 0 to 1 % were wrong of number and code
questions, 7 to 10 % where options are chosen or judged.
"""


FORECAST_ERROR = 0.05
"""Of the cost of checking everything: what is expected to save less is not said to pay.

About how much too low forecasts were on recorded answers; they can be much further too high
(`data-set-promises`).
"""


@dataclass(frozen=True, slots=True)
class Prospect:
    """A policy as it is expected to be, without gold: its cost for an item, and its wrong share
    before random checks.
    """

    cost: float
    risk: float
    counted: float = 1.0
    """The share of a pilot's items that is in the denominator of the promise."""
    checked_share: Fraction = Fraction(0)
    accepted: float = 1.0
    """The share of all items that is delivered without a check, of which random checks take their
    share.
    """

    def diluted(self, part: float, *, check: float) -> Prospect:
        """The same with a random share of what it accepts checked."""
        cost = self.cost + part * check * self.accepted
        return replace(self, cost=cost, checked_share=Fraction(str(part)))


def prospects_of(
    crowd: Crowd, answers: ArrayLike, played: Sequence[Replay], *, among: Among, agreed_wrong: float = AGREED_WRONG
) -> list[Prospect]:
    """What policies replayed on these items, without gold, lead one to expect.

    An accepted answer is right with the probability that the crowd says at a discount, less a share
    `agreed_wrong` of it, which agreement can't show.
    """
    right = (1.0 - agreed_wrong) * crowd.right(answers, discount=FORECAST_DISCOUNT)
    bare = [replace(one, checked_share=Fraction(0)) for one in played]
    risks = trusted_risk(right, answers, bare, among=among)
    return [
        Prospect(
            float(one.cost.mean()),
            min(1.0, max(0.0, float(risk))),
            1.0 if among is Among.ALL else float(one.delivered.mean()),
            one.checked_share,
            float((one.delivered & ~one.checked).mean()),
        )
        for one, risk in zip(played, risks, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class Forecast:
    """A pilot of `labels` items: how many wrong ones it may show, and what everything would cost,
    pilot included.

    `least_cost` is a bound: the cheapest prospect, proven. `expected_cost` is an estimate, as good
    as the prospects, and `chance` that of proving any of them; None where nothing is known about
    the answers. `possible`: cheaper than checking everything can't be excluded (a bound); `pays`:
    it is expected by more than a forecast's own error (an estimate).
    """

    labels: int
    allowed_wrong: int
    pilot_cost: float
    least_cost: float
    expected_cost: float | None
    chance: float | None
    check_everything: float

    @property
    def possible(self) -> bool:
        return self.least_cost < self.check_everything

    @property
    def pays(self) -> bool:
        return self.expected_cost is not None and self.expected_cost < (1.0 - FORECAST_ERROR) * self.check_everything


def forecast(
    sizes: Sequence[int],
    risk: Number,
    confidence: Number,
    *,
    population: int,
    check: float,
    panel: float,
    prospects: Sequence[Prospect] | None,
    statement: Statement = Statement.FRESH,
) -> list[Forecast]:
    """One forecast for each size.

    `check`: the price of one item's truth; `panel`: of all answers about one item, which a pilot
    buys. `prospects`: None where nothing is known.

    Estimate: of the prospects the front of risk against cost is tested, from where a proof is
    likeliest to the cheapest, and with the predicted risks true each passes with the probability of
    at most as many wrong as it may show; errors of neighbours come together, so the chance to get
    as far as a policy is the smallest on the way.
    """
    size = whole(population, "population", least=1)
    if prospects is not None and not prospects:
        raise InputError("a forecast needs at least one prospect: a policy's predicted cost and risk")
    rate, alpha = share(risk, "risk"), 1 - share(confidence, "confidence")
    walk = [] if prospects is None else _walk(prospects)
    eased = max((one.checked_share for one in walk), default=Fraction(0))
    found = []
    for labels in sizes:
        n = whole(labels, "labels", least=1, most=size)
        pilot, rest = n * (check + panel), size - n

        def allowed(counted: int, q: Fraction = Fraction(0), n: int = n) -> int:
            """How many wrong of so many, in a pilot of n, still prove the risk."""
            scope = Scope(statement, counted, None if statement is Statement.FRESH else size - (n - counted))
            return passing_count(Limit(rate / (1 - q), among=Among.ALL), scope, alpha) if counted else -1

        able = allowed(n, eased) >= 0
        cheapest = min(check, *(one.cost for one in walk)) if walk and able else 0.0 if able else check
        expected = chance = None
        if walk:
            expected, chance = _expected(walk, n, allowed, check)
        found.append(
            Forecast(
                n,
                allowed(n),
                pilot,
                pilot + rest * cheapest,
                None if expected is None else pilot + rest * expected,
                chance,
                size * check,
            )
        )
    return found


def _walk(prospects: Sequence[Prospect]) -> list[Prospect]:
    """The front of what is left of the risk, against cost, in strides."""
    costs = [one.cost for one in prospects]
    return [
        prospects[at] for at in strides(front([p.risk * float(1 - p.checked_share) for p in prospects], costs), costs)
    ]


def _expected(
    walk: Sequence[Prospect], n: int, allowed: Callable[[int, Fraction], int], check: float
) -> tuple[float, float]:
    """The mean cost of the cheapest policy reached, checking everything where none is; and the
    chance to reach any that is cheaper.
    """
    passes = []
    for one in walk:
        counted = round(n * one.counted)
        most = allowed(counted, one.checked_share)
        passes.append(BinomialTail(counted, Fraction(str(one.risk)), most).value if most >= 0 else 0.0)
    start = max(range(len(walk)), key=lambda at: passes[at])
    reach, best, total, before, chance = 1.0, check, 0.0, 1.0, 0.0
    for prospect, passed in zip(walk[start:], passes[start:], strict=True):
        reach = min(reach, passed)
        total += (before - reach) * best
        if prospect.cost < check:
            chance = max(chance, reach)
        best, before = min(best, prospect.cost), reach
    return total + before * best, chance
