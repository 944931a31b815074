"""Counting that may be looked at after every draw: confidence sequences and tests from mixture
martingales (docs/algorithms.md, fact 25).

Finite population. Give the number of wrong items D a beta-binomial prior. Under a true D the ratio

    (probability of the draws under the prior) / (their probability given D)
        = B(a + x, b + m − x) / B(a, b) · N!/(N − m)! / [ D!/(D − x)! · (N − D)!/(N − D − m + x)! ]

is a martingale that starts at 1 (it falls where D excludes an outcome that the prior allows), so it
ever reaches 1/α with probability at most α (Ville), whatever the stopping rule. What reached it is
refuted for good.

Fresh items. For a wrong rate R ≥ r and any q < r, the likelihood ratio of q against r is a
supermartingale; so is its mixture over a beta distribution of q cut off at r. Its inverse, at its
best moment, is a p-value that holds at every moment.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from rrf_design.errors import InputError
from rrf_design.risk._arguments import Number, share, whole
from rrf_design.risk._counts import guard

UNIFORM = (1.0, 1.0)
CLEAN = (1.0, 20.0)
"""Beta(1, 20): expects some 5 % wrong.

With no wrong item seen it needs 89 draws for "at most 5 %" of 2,000 where the uniform prior needs
149.
"""


def _prior(prior: tuple[float, float]) -> tuple[float, float]:
    try:
        a, b = (float(part) for part in prior)
    except (TypeError, ValueError):
        raise InputError(f"prior should be two positive numbers (a, b) of a beta distribution, not {prior!r}") from None
    if not (0 < a < math.inf and 0 < b < math.inf):
        raise InputError(f"prior should be two positive numbers (a, b) of a beta distribution, not {prior!r}")
    return a, b


class AuditSequence:
    """Draws without replacement, one at a time; `bound` holds at every moment together with the
    given confidence.

    `observe` is the only thing that changes the state. Rounding can only make the bound larger: a
    number of wrong items is dropped when its martingale has passed 1/α by more than the error of
    the floats.
    """

    __slots__ = ("_edge", "_limit", "_log_prior", "_upper", "confidence", "drawn", "population", "prior", "wrong")

    def __init__(self, population: int, confidence: Number, *, prior: tuple[float, float] = CLEAN) -> None:
        self.population = whole(population, "population")
        self.confidence = share(confidence, "confidence")
        self.prior = _prior(prior)
        self.drawn = 0
        self.wrong = 0
        self._upper = self.population
        self._limit = -math.log(1 - self.confidence) + guard(self.population)
        a, b = self.prior
        self._log_prior = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
        self._edge = math.lgamma(self.population + 1)

    def observe(self, wrong: bool) -> None:
        """One more item was drawn and checked."""
        if self.drawn == self.population:
            raise InputError(f"all {self.population} items are drawn; there is nothing left to observe")
        if not isinstance(wrong, (bool, np.bool_)) and wrong not in (0, 1):
            raise InputError(f"observe takes True (wrong) or False (right), not {wrong!r}")
        self.drawn += 1
        self.wrong += bool(wrong)
        self._upper = min(self._upper, self.population - (self.drawn - self.wrong))
        if self._upper <= self.wrong or not self._refuted(self._upper):
            return
        # The likelihood is unimodal in D with its peak near N·x/m, so above the peak what is
        # refuted stays refuted upwards.
        low = min(self._upper, max(self.wrong, self.population * self.wrong // self.drawn))
        high = self._upper
        while low < high:
            middle = (low + high + 1) // 2
            if self._refuted(middle):
                high = middle - 1
            else:
                low = middle
        self._upper = low

    @property
    def bound(self) -> int:
        """The largest number of wrong items not refuted so far; never below the number seen."""
        return max(self._upper, self.wrong)

    def _refuted(self, wrong: int) -> bool:
        return self.log_martingale(wrong) > self._limit

    def log_martingale(self, wrong: int) -> float:
        """log of prior(D) / posterior(D) after the draws so far; infinite for a D that the draws
        exclude.
        """
        x, right = self.wrong, self.drawn - self.wrong
        good = self.population - wrong
        if wrong < x or good < right:
            return math.inf
        lgamma = math.lgamma
        a, b = self.prior
        mixture = self._log_prior + lgamma(a + x) + lgamma(b + right) - lgamma(a + b + self.drawn)
        whole_draw = self._edge - lgamma(self.population - self.drawn + 1)
        return (
            mixture
            + whole_draw
            - (lgamma(wrong + 1) - lgamma(wrong - x + 1))
            - (lgamma(good + 1) - lgamma(good - right + 1))
        )


@dataclass(frozen=True, slots=True)
class _SequenceTail:
    """A p-value that holds at every moment: the inverse of a test martingale at its best moment so
    far.
    """

    value: float
    drawn: int

    def at_most(self, level: Fraction) -> bool:
        # Conservative in the last digits: a martingale has no exact fall-back in integers.
        return self.value * (1 + guard(self.drawn)) <= float(level)


def sequential_tail(wrong: ArrayLike, rate: Number, *, prior: tuple[float, float] = CLEAN) -> _SequenceTail:
    """Tests "the wrong rate of fresh items is at least `rate`" on items in the order of their draw;
    valid at every moment.

    Between two wrong items the martingale only grows, so its best moment is just before a wrong
    item or at the end.
    """
    from scipy.special import betainc, betaln

    r = float(share(rate, "rate"))
    a, b = _prior(prior)
    marks = np.asarray(wrong, dtype=bool)
    if marks.ndim != 1:
        raise InputError(f"wrong should be one array over items, not of shape {marks.shape}")
    places = np.concatenate([np.flatnonzero(marks), [len(marks)]])
    x = np.arange(len(places), dtype=np.float64)
    right = places - x
    with np.errstate(divide="ignore"):
        weight = np.log(betainc(a + x, b + right, r)) + betaln(a + x, b + right)
    start = math.log(float(betainc(a, b, r))) + float(betaln(a, b))
    logs = weight - start - x * math.log(r) - right * math.log1p(-r)
    return _SequenceTail(min(1.0, math.exp(-max(0.0, float(logs.max())))), len(marks))
