"""Who is right how often, from agreement alone: a fit without any gold (docs/algorithms.md, fact 33).

One-coin Dawid–Skene: node j is right with probability a_j; two wrong answers coincide with probability c. Given the answers, the truth of an item is one
of the values said about it, or none. Expectation and maximisation alternate until they settle. It is a model and it is wrong about dependence: errors of real
models come together. A discount on the evidence (a power of the likelihood) makes agreement worth less; it is for predictions only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rrf_design.errors import InputError
from rrf_design.risk.ladders import UNREADABLE, Codes

Floats = NDArray[np.float64]
Marks = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Crowd:
    """The fit: accuracy (nodes,), and how often two wrong answers are the same."""

    accuracy: Floats
    coincidence: float

    def __post_init__(self) -> None:
        self.accuracy.setflags(write=False)

    def right(self, answers: ArrayLike, *, discount: float = 1.0) -> Floats:
        """The probability (items, nodes) that what node j said is the truth of the item."""
        camps = _Camps.of(_codes(answers))
        return camps.spread(camps.posterior(self.accuracy, self.coincidence, discount))


def fit_crowd(answers: ArrayLike, *, rounds: int = 60, start: float = 0.8) -> Crowd:
    """Fit to codes (items, nodes). `start`: the accuracy to start from; more than one half, so that a majority is believed at first."""
    codes = _codes(answers)
    camps = _Camps.of(codes)
    accuracy = np.full(codes.shape[1], float(start))
    coincidence = 0.3
    asked = camps.said.sum(axis=0)
    for _ in range(rounds):
        posterior = camps.posterior(accuracy, coincidence, 1.0)
        # One right and one wrong answer more than seen: no node is ever called perfect.
        found = np.clip((camps.spread(posterior).sum(axis=0) + 1.0) / (asked + 2.0), 0.02, 0.998)
        coincidence = camps.coincidence(posterior)
        settled = np.abs(found - accuracy).max() < 1e-6
        accuracy = found
        if settled:
            break
    return Crowd(accuracy, coincidence)


def disputed(crowd: Crowd, answers: ArrayLike, gold: ArrayLike, *, sure: float = 0.99) -> list[int]:
    """Places of items where the answers agree on a value that is not gold, with at least this probability under the fit: gold is wrong too."""
    codes, truth = _codes(answers), np.asarray(gold, dtype=np.int64)
    if truth.shape != codes.shape[:1]:
        raise InputError(f"gold has shape {truth.shape} for {len(codes)} items")
    right = crowd.right(codes)
    best = right.argmax(axis=1)
    rows = np.arange(len(codes))
    return [int(p) for p in np.flatnonzero((right[rows, best] >= sure) & (codes[rows, best] != truth))]


@dataclass(frozen=True, slots=True)
class _Camps:
    """same (items, nodes, nodes): these two said the same. A value is a candidate for the truth once, at the `first` node that said it."""

    said: Marks
    same: Marks
    first: Marks

    @classmethod
    def of(cls, codes: Codes) -> _Camps:
        said = codes != UNREADABLE
        same = (codes[:, :, None] == codes[:, None, :]) & said[:, :, None] & said[:, None, :]
        return cls(said, same, said & (same.argmax(axis=2) == np.arange(codes.shape[1])))

    def posterior(self, accuracy: Floats, coincidence: float, discount: float) -> Floats:
        """Of every candidate, (items, nodes); zero elsewhere. What is missing to 1 is the chance that nobody is right."""
        gain = (np.log(accuracy) - np.log1p(-accuracy) - np.log(coincidence)) * discount
        score = np.where(self.first, self.same @ gain, -np.inf)
        peak = np.maximum(score.max(axis=1), 0.0)
        weight = np.exp(score - peak[:, None])
        nobody = np.exp(-peak) * coincidence
        return np.asarray(weight / (weight.sum(axis=1) + nobody)[:, None])

    def spread(self, posterior: Floats) -> Floats:
        """From candidates to all nodes that said them."""
        return np.asarray(np.einsum("iv,ivj->ij", posterior, self.same))

    def coincidence(self, posterior: Floats) -> float:
        """How often two wrong answers are the same, each pair weighed by the probability that both are wrong."""
        sizes = np.where(self.first, self.same.sum(axis=2), 0)
        pairs = sizes * (sizes - 1) / 2
        others = self.said.sum(axis=1, keepdims=True) - sizes
        wrong_pairs = posterior * others * (others - 1) / 2
        agreeing = posterior * (pairs.sum(axis=1, keepdims=True) - pairs)
        return float(np.clip((agreeing.sum() + 1.0) / (wrong_pairs.sum() + 4.0), 0.02, 0.95))


def _codes(answers: ArrayLike) -> Codes:
    codes = np.asarray(answers, dtype=np.int64)
    if codes.ndim != 2 or 0 in codes.shape:
        raise InputError(
            f"answers should be an array (items, nodes) with at least one of each, not of shape {codes.shape}"
        )
    return codes
