"""Ladders as pure data: ask node after node until the answers agree enough, else check or abstain
(docs/algorithms.md, facts 24 and 31).

Answers are codes, an array (items, nodes): equal numbers in a row are equal answers, UNREADABLE is
none. After t answers let the largest camp have `top` members and the next `second`. Two gates:

    lead        accept when top − second ≥ h, at the latest after T answers explained   accept when
    all T answers are explained by at most k wrong ones, top ≥ T − k (T > 2k, so by one value only)

An explained gate may have earlier rungs, smaller T each with its own k: what one of them accepts is
delivered, what it does not goes on to the next.

All stop as soon as the outcome is certain, either way: nothing is bought that can't change it. This
is the fast path for complete identity fields, where every answer is to the same question; all
ladders of one order share the counts of its camps.

Who is right how often, from agreement alone: a fit without any gold (docs/algorithms.md, fact
33).

One-coin Dawid–Skene: node j is right with probability a_j; two wrong answers coincide with
probability c. Given the answers, the truth of an item is one of the values said about it, or none.
Expectation and maximisation alternate until they settle. It is a model and it is wrong about
dependence: errors of real models come together. A discount on the evidence (a power of the
likelihood) makes agreement worth less; it is for predictions only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rrf_design.errors import InputError
from rrf_design.risk._arguments import Number, choice, share

UNREADABLE = -1
Codes = NDArray[np.int64]


class Gate(StrEnum):
    LEAD = "lead"
    EXPLAINED = "explained"


class Last(StrEnum):
    """What happens to an item that no rung accepts."""

    GOLD = "gold"
    ABSTAIN = "abstain"


@dataclass(frozen=True, slots=True)
class Ladder:
    """Nodes in the order they are asked (the first `within` of them), the gate with its number, and
    the last action.
    """

    order: tuple[int, ...]
    gate: Gate
    number: int
    within: int
    last: Last = Last.GOLD
    earlier: tuple[tuple[int, int], ...] = ()
    """Rungs (T, k) before the last one, of growing T; only for an explained gate."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "gate", choice(Gate, self.gate, "gate"))
        object.__setattr__(self, "last", choice(Last, self.last, "last"))

    @property
    def rungs(self) -> tuple[tuple[int, int], ...]:
        return (*self.earlier, (self.within, self.number))

    @property
    def name(self) -> str:
        asked = "-".join(str(node) for node in self.order[: self.within])
        first = "".join(f"{k} of {t}, " for t, k in self.earlier)
        return f"{self.gate} {first}{self.number} of {asked} else {self.last}"


@dataclass(frozen=True, slots=True)
class Replay:
    """What a ladder did on every item; a policy as `choose` wants it. Arrays are read-only."""

    name: str
    cost: NDArray[np.float64]
    delivered: NDArray[np.bool_]
    wrong: NDArray[np.bool_]
    checked: NDArray[np.bool_]
    value: Codes = field(repr=False)
    """The accepted code; UNREADABLE where nothing was accepted."""
    checked_share: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        for array in (self.cost, self.delivered, self.wrong, self.checked, self.value):
            array.setflags(write=False)


def lead_family(nodes: int, orders: Iterable[Sequence[int]], *, last: Last = Last.GOLD) -> list[Ladder]:
    """Every lead and every explained-by-k gate within every number of answers, for each order; one
    ladder for each distinct rule.
    """
    found: dict[tuple[object, ...], Ladder] = {}
    for order in orders:
        asked = tuple(int(node) for node in order)
        if sorted(asked) != list(range(nodes)):
            raise InputError(f"order {list(asked)} should name each of the {nodes} nodes once")
        for within in range(1, nodes + 1):
            rules = [(Gate.LEAD, h) for h in range(1, within + 1)]
            # Explained by 0 wrong is unanimity, which is a lead of T within T.
            rules += [(Gate.EXPLAINED, k) for k in range(1, (within - 1) // 2 + 1)]
            for gate, number in rules:
                found.setdefault((asked[:within], gate, number), Ladder(asked, gate, number, within, last))
    return list(found.values())


def replay(
    ladders: Sequence[Ladder],
    answers: ArrayLike,
    *,
    prices: ArrayLike,
    check: float,
    gold: ArrayLike | None = None,
    withheld: float = 0.0,
) -> list[Replay]:
    """Every ladder on every item.

    Without gold nothing is marked wrong: costs and accepted values are known without it.

    answers (items, nodes); prices (nodes,) of one call each; check: the price of the truth of one
    item; gold (items,) in the same codes, any other number where no node says it; withheld: what an
    item costs that is not delivered, without which silence is always cheapest.
    """
    codes = np.asarray(answers, dtype=np.int64)
    price = np.asarray(prices, dtype=np.float64)
    if codes.ndim != 2 or price.shape != codes.shape[1:]:
        raise InputError(
            f"answers of shape {codes.shape} and prices of shape {price.shape}; want (items, nodes), (nodes,)"
        )
    truth = None if gold is None else np.asarray(gold, dtype=np.int64)
    if truth is not None and truth.shape != codes.shape[:1]:
        raise InputError(f"gold has shape {truth.shape} for {len(codes)} items")
    camps: dict[tuple[int, ...], _Clusters] = {}
    found = []
    for ladder in ladders:
        if ladder.order not in camps:
            camps[ladder.order] = _Clusters.of(codes[:, list(ladder.order)])
        found.append(_play(ladder, camps[ladder.order], price[list(ladder.order)], (check, withheld), truth))
    return found


def dilute(policy: Replay, q: Number, *, check: float) -> Replay:
    """The same policy that checks a random share q of what it would deliver unchecked (fact 34);
    costs are expected ones.
    """
    part = share(q, "q")
    unchecked = policy.delivered & ~policy.checked
    cost = policy.cost + float(part) * check * unchecked
    return Replay(
        f"{policy.name}, checking {float(part):g} of it",
        cost,
        policy.delivered,
        policy.wrong,
        policy.checked,
        policy.value,
        part,
    )


@dataclass(frozen=True, slots=True)
class _Clusters:
    """Sizes of the two largest camps and the code of the largest, after 1..T answers; arrays
    (items, T).
    """

    top: NDArray[np.int64]
    second: NDArray[np.int64]
    value: Codes

    @classmethod
    def of(cls, codes: Codes) -> _Clusters:
        items, nodes = codes.shape
        top, second, value = (np.zeros((items, nodes), dtype=np.int64) for _ in range(3))
        sizes = np.zeros((items, nodes), dtype=np.int64)  # of the camp that each asked node is in
        rows = np.arange(items)
        for t in range(nodes):
            same = (codes[:, : t + 1] == codes[:, t : t + 1]) & (codes[:, t : t + 1] != UNREADABLE)
            joined = same.sum(axis=1)
            sizes[:, : t + 1] = np.where(same, joined[:, None], sizes[:, : t + 1])
            head = sizes[:, : t + 1].argmax(axis=1)
            top[:, t] = sizes[rows, head]
            value[:, t] = np.where(top[:, t] > 0, codes[rows, head], UNREADABLE)
            others = np.where(codes[:, : t + 1] == value[:, t : t + 1], 0, sizes[:, : t + 1])
            second[:, t] = others.max(axis=1)
        return cls(top, second, value)


def _play(
    ladder: Ladder, camps: _Clusters, price: NDArray[np.float64], last: tuple[float, float], gold: Codes | None
) -> Replay:
    """`last`: the prices of a check and of withholding an item."""
    most = ladder.within
    top, second = camps.top[:, :most], camps.second[:, :most]
    asked = np.arange(1, most + 1)
    if ladder.gate is Gate.LEAD:
        accept = top - second >= ladder.number
        hopeless = top - second + (most - asked) < ladder.number
    else:
        accept, hopeless = np.zeros(top.shape, dtype=bool), np.ones(top.shape, dtype=bool)
        for within, k in ladder.rungs:
            open_yet = asked <= within
            accept |= open_yet & (top >= within - k)
            hopeless &= ~open_yet | (top + (within - asked) < within - k)
    stop = accept | hopeless
    # The last answer always decides: with none left to ask, what is not accepted is hopeless.
    place = stop.argmax(axis=1)
    rows = np.arange(len(top))
    accepted = accept[rows, place]
    value = np.where(accepted, camps.value[rows, place], UNREADABLE)
    checked = ~accepted if ladder.last is Last.GOLD else np.zeros(len(top), dtype=bool)
    cost = np.cumsum(price)[place] + np.where(accepted, 0.0, last[0] if ladder.last is Last.GOLD else last[1])
    wrong = np.zeros(len(top), dtype=bool) if gold is None else accepted & (value != gold)
    return Replay(ladder.name, cost, accepted | checked, wrong, checked, value)


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
        camps = _AnswerClusters.of(_codes(answers))
        return camps.spread(camps.posterior(self.accuracy, self.coincidence, discount))


def fit_crowd(answers: ArrayLike, *, rounds: int = 60, start: float = 0.8) -> Crowd:
    """Fit to codes (items, nodes).

    `start`: the accuracy to start from; more than one half, so that a majority is believed at
    first.
    """
    codes = _codes(answers)
    camps = _AnswerClusters.of(codes)
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
    """Places of items where the answers agree on a value that is not gold, with at least this
    probability under the fit: gold is wrong too.
    """
    codes, truth = _codes(answers), np.asarray(gold, dtype=np.int64)
    if truth.shape != codes.shape[:1]:
        raise InputError(f"gold has shape {truth.shape} for {len(codes)} items")
    right = crowd.right(codes)
    best = right.argmax(axis=1)
    rows = np.arange(len(codes))
    return [int(p) for p in np.flatnonzero((right[rows, best] >= sure) & (codes[rows, best] != truth))]


@dataclass(frozen=True, slots=True)
class _AnswerClusters:
    """same (items, nodes, nodes): these two said the same.

    A value is a candidate for the truth once, at the `first` node that said it.
    """

    said: Marks
    same: Marks
    first: Marks

    @classmethod
    def of(cls, codes: Codes) -> _AnswerClusters:
        said = codes != UNREADABLE
        same = (codes[:, :, None] == codes[:, None, :]) & said[:, :, None] & said[:, None, :]
        return cls(said, same, said & (same.argmax(axis=2) == np.arange(codes.shape[1])))

    def posterior(self, accuracy: Floats, coincidence: float, discount: float) -> Floats:
        """Of every candidate, (items, nodes); zero elsewhere.

        What is missing to 1 is the chance that nobody is right.
        """
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
        """How often two wrong answers are the same, each pair weighed by the probability that both
        are wrong.
        """
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
