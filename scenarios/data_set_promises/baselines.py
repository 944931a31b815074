"""What others do with the same answers, on the same splits.

Plurality and adaptive consistency (ask until the leader is ahead with posterior probability 0.95)
promise nothing; conformal abstention promises an average over pilots; self-consistency with a
tested threshold promises what we promise, and buys every answer of every item.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from rrf_design.risk import UNREADABLE, PValue
from scenarios.data_set_promises.panels import Panel

Marks = NDArray[np.bool_]
ALPHA = Fraction(1, 20)


@dataclass(frozen=True, slots=True)
class Ruling:
    """What a rule did on every item of the data set."""

    checked: Marks
    wrong: Marks
    cost: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules that need only counts of votes; arrays of thresholds 0..nodes along the first axis."""

    fixed: Mapping[str, Ruling]
    tested: tuple[Ruling, ...]
    """Self-consistency: deliver the plurality when it has at least t votes."""
    conformal: tuple[Ruling, ...]
    """Deliver when exactly one value has at least t votes."""
    gold_votes: NDArray[np.int64]

    def play(self, pilot: NDArray[np.int64], risk: float, tail: Callable[[int], PValue]) -> dict[str, Ruling]:
        found = dict(self.fixed)
        found["self-consistency, tested threshold"] = self._threshold(pilot, tail)
        found["conformal abstention"] = self._conformal(pilot, risk)
        return found

    def _threshold(self, pilot: NDArray[np.int64], tail: Callable[[int], PValue]) -> Ruling:
        """From unanimity downwards until a test fails: the errors are nested, so this order loses
        nothing.
        """
        chosen = self.fixed["check everything"]
        for outcome in reversed(self.tested):
            if not tail(int(outcome.wrong[pilot].sum())).at_most(ALPHA):
                break
            chosen = outcome
        return chosen

    def _conformal(self, pilot: NDArray[np.int64], risk: float) -> Ruling:
        """Split conformal: the score of a value is its number of votes; sets contain the truth in 1
        − r of items on average over pilots.
        """
        votes = np.sort(self.gold_votes[pilot])
        # The k-th smallest number of votes for the truth, k = ⌊(n + 1) r⌋: at most that share lies
        # strictly below it.
        rank = math.floor((len(votes) + 1) * Fraction(str(risk)))
        return self.conformal[int(votes[rank - 1]) if rank >= 1 else 0]


def rules_of(panel: Panel, check: float) -> Rules:
    answers, gold = panel.answers, panel.gold
    items, nodes = answers.shape
    said = answers != UNREADABLE
    same = (answers[:, :, None] == answers[:, None, :]) & said[:, :, None] & said[:, None, :]
    votes = same.sum(axis=2)
    first = said & (same.argmax(axis=2) == np.arange(nodes))
    leader = votes.argmax(axis=1)
    rows = np.arange(items)
    top, value = votes[rows, leader], answers[rows, leader]
    right = (value == gold) & (top > 0)
    whole = float(panel.prices.sum())
    nothing, everything = np.zeros(items, dtype=bool), np.ones(items, dtype=bool)

    def bought(delivered: Marks, correct: Marks) -> Ruling:
        return Ruling(~delivered, delivered & ~correct, np.where(delivered, whole, whole + check))

    tested = tuple(bought(top >= max(t, 1), right) for t in range(nodes + 1))
    conformal = []
    for t in range(nodes + 1):
        candidates = first & (votes >= max(t, 1))
        # With t = 0 a value that nobody said is a candidate as well: no set has one member.
        single = (candidates.sum(axis=1) == 1) & (t > 0)
        conformal.append(bought(single, answers[rows, candidates.argmax(axis=1)] == gold))
    fixed = {
        "check everything": Ruling(everything, nothing, np.full(items, check)),
        "plurality of all": Ruling(nothing, ~right, np.full(items, whole)),
        "adaptive consistency": _adaptive(panel),
    }
    return Rules(fixed, tested, tuple(conformal), ((answers == gold[:, None]) & said).sum(axis=1))


def _adaptive(panel: Panel, *, sure: float = 0.95) -> Ruling:
    """Ask in the panel's order; stop when P(the leader is ahead of the second) ≥ 0.95 under a
    uniform prior, or all are asked.
    """
    from scipy.stats import beta

    items, nodes = panel.answers.shape
    cost, wrong = np.zeros(items), np.zeros(items, dtype=bool)
    ahead = {
        (a, b): float(beta.sf(0.5, a + 1, b + 1)) >= sure for a in range(nodes + 1) for b in range(nodes + 1) if b <= a
    }
    for item in range(items):
        votes: dict[int, int] = {}
        for node in range(nodes):
            cost[item] += panel.prices[node]
            said = int(panel.answers[item, node])
            if said != UNREADABLE:
                votes[said] = votes.get(said, 0) + 1
            ranked = sorted(votes.values(), reverse=True)
            if ahead[ranked[0] if ranked else 0, ranked[1] if len(ranked) > 1 else 0]:
                break
        wrong[item] = not votes or max(votes, key=lambda v: votes[v]) != panel.gold[item]
    return Ruling(np.zeros(items, dtype=bool), wrong, cost)
