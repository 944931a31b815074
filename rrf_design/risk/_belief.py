"""Whom to believe when answers differ, from agreement first and then from labels of people: the
answer that is picked for each row, and how doubtful it is.

The equal answers of a row are a camp. A camp's score is the sum of the weights of the nodes in it,
"nobody is right" has a weight of its own, and the chance of each is a softmax of these scores. At
first the weights are the evidence of a fit to agreement (`fit_crowd`), taken at its word to a part
(`TRUST`), because errors of real models come together. Labels refit them: most likely under a
normal prior around where they began, by Newton's method. All of it is for picks and an order of
looks; no promise rests on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rrf_design.risk._cascades import UNREADABLE, fit_crowd

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
TRUST = 0.28
"""The part of the evidence of agreement that is believed."""
SPREAD = 0.6
"""The standard deviation of the prior of each weight."""
SILENT = 20.0
"""The doubt about a row without any answer: more than about any other."""
STEPS = 25


@dataclass(frozen=True, slots=True)
class Picks:
    """Of each row the code that is delivered, UNREADABLE where there is none, and the doubt: the
    log odds against it on the scale of the fit to agreement.
    """

    code: Codes
    doubt: Floats


class Believed:
    """Rows with their camps, and weights of nodes that labels teach."""

    def __init__(self, answers: ArrayLike) -> None:
        codes = np.asarray(answers, dtype=np.int64)
        self._codes = codes
        rows, nodes = codes.shape
        said = codes != UNREADABLE
        same = (codes[:, :, None] == codes[:, None, :]) & said[:, :, None] & said[:, None, :]
        first = said & (same.argmax(axis=2) == np.arange(nodes)) if nodes else said
        # One alternative a row is that nobody is right; its only feature is the last one.
        features = np.zeros((rows, nodes + 1, nodes + 1), dtype=np.float32)
        features[:, :nodes, :nodes] = same
        features[:, nodes, nodes] = 1.0
        self._features = features
        self._there = np.concatenate([first, np.ones((rows, 1), dtype=bool)], axis=1)
        self._start = np.zeros(nodes + 1)
        if rows and nodes and said.any():
            crowd = fit_crowd(codes)
            gain = np.log(crowd.accuracy) - np.log1p(-crowd.accuracy) - np.log(crowd.coincidence)
            self._start = TRUST * np.append(gain, np.log(crowd.coincidence))
        self._weights = self._start
        self.disputed = np.asarray(first.sum(axis=1) > 1)
        """Of each row, whether its answers differ."""

    def picks(self) -> Picks:
        """What would be delivered now."""
        nodes = self._codes.shape[1]
        scores = self._scores(self._features, self._there)
        camps = scores[:, :nodes]
        if not nodes:
            return Picks(np.full(len(scores), UNREADABLE), np.full(len(scores), SILENT))
        best = camps.argmax(axis=1)
        rows = np.arange(len(scores))
        top = camps[rows, best]
        silent = ~np.isfinite(top)
        others = scores.copy()
        others[rows, best] = -np.inf
        against = np.logaddexp.reduce(others, axis=1) - np.where(silent, 0.0, top)
        doubt = np.where(silent, SILENT, np.clip(against / TRUST, -SILENT * 5, SILENT - 1))
        return Picks(np.where(silent, UNREADABLE, self._codes[rows, best]), doubt)

    def teach(self, rows: Sequence[int], truths: Sequence[int]) -> None:
        """Fit the weights to what people said: of each row the code that is right, UNREADABLE where
        none is.
        """
        places = np.asarray(rows, dtype=np.int64)
        if not len(places):
            self._weights = self._start
            return
        features, there = self._features[places].astype(np.float64), self._there[places]
        nodes = self._codes.shape[1]
        first = np.array(
            [
                nodes if truth == UNREADABLE else int(np.flatnonzero(self._codes[place] == truth)[0])
                for place, truth in zip(places, truths, strict=True)
            ]
        )
        right = features[np.arange(len(places)), first]
        weights = self._start.copy()
        for _ in range(STEPS):
            scores = np.where(there, features @ weights, -np.inf)
            chance = np.exp(scores - scores.max(axis=1, keepdims=True))
            chance /= chance.sum(axis=1, keepdims=True)
            mean = np.einsum("ra,raf->rf", chance, features)
            slope = (right - mean).sum(axis=0) - (weights - self._start) / SPREAD**2
            square = np.einsum("ra,raf,rag->fg", chance, features, features) - mean.T @ mean
            step = np.linalg.solve(square + np.eye(nodes + 1) / SPREAD**2, slope)
            weights = weights + step * min(1.0, 1.0 / max(1e-9, float(np.abs(step).max())))
            if float(np.abs(step).max()) < 1e-7:
                break
        self._weights = weights

    def _scores(self, features: NDArray[np.float32], there: NDArray[np.bool_]) -> Floats:
        return np.where(there, features @ self._weights, -np.inf)
