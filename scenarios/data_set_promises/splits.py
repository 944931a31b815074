"""One cell: a panel, a risk and a pilot size, over many random splits into pilot and rest, with
items drawn for the order of tests.

Everything that does not depend on the split (what every ladder costs and gets wrong on every item)
is computed once; a split is a few sums and the product's own orders and tests on counts (a test
holds one split to what a pilot of the product chooses).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rrf_design.risk import (
    DISCOUNT,
    Among,
    ClaimAndGate,
    Crowd,
    Limit,
    Replay,
    Scope,
    Statement,
    Stream,
    decide,
    evidence,
    fit_crowd,
    fixed_sequence,
    front,
    fronts,
    holm,
    staggered,
    trusted_risk,
)
from scenarios.data_set_promises.boards import Board, Boards

OURS = "staggered fronts"
CONFIDENCE = Fraction(19, 20)
Streams = Sequence[Stream]
OTHERS = (Statement.FRESH, Statement.FILE, Statement.REST)
"""Statements measured beside the policy's risk, each judged by itself."""
SHARES = ("0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9")
"""Shares of random checks that the diluted family offers."""


@dataclass(frozen=True, slots=True)
class PromiseCell:
    """What is promised about which panel, with how many labels, at which price of a check (in
    calls).
    """

    panel: str
    risk: float
    labels: int
    check: float

    @property
    def words(self) -> str:
        return f"{self.panel}, r = {self.risk:.0%}, n = {self.labels}"


@dataclass(frozen=True, slots=True)
class Result:
    """One method on one split: shares and costs among the rest, relative to checking everything;
    was the promise true?
    """

    checks: float
    cost: float
    kept: bool
    outside: bool
    everything: bool


def play_cell(
    boards: Boards, cell: PromiseCell, *, splits: int, others: int, seed: int, diluted: bool, brief: bool = False
) -> list[dict[str, Any]]:
    """One row a method: means over the splits.

    `brief`: only the orders of tests, for one statement, and hindsight.
    """
    size = len(boards.product.panel.gold)
    seeds = np.random.SeedSequence([seed, *map(ord, cell.words)]).spawn(splits)
    tests = {statement: CountTests(cell, size, statement) for statement in Statement}
    found: dict[str, list[Result]] = {}
    for child in seeds:
        rng = np.random.default_rng(child)
        split, aside = rng.permutation(size), rng.permutation(size)[:others]
        for method, result in _play(boards, cell, tests, split, aside=aside, diluted=diluted, brief=brief).items():
            found.setdefault(method, []).append(result)
    ours = np.array([result.cost for result in found[OURS]])
    return [{"cell": cell.words, "method": method, **_summary(results, ours)} for method, results in found.items()]


def _summary(results: Sequence[Result], ours: NDArray[np.float64]) -> dict[str, Any]:
    costs = np.array([r.cost for r in results])
    more = ours - costs
    return {
        "splits": len(results),
        "checks": float(np.mean([r.checks for r in results])),
        "cost": float(costs.mean()),
        "cost_error": float(costs.std(ddof=1) / np.sqrt(len(costs))) if len(costs) > 1 else None,
        "ours_more": float(more.mean()),
        "ours_more_error": float(more.std(ddof=1) / np.sqrt(len(more))) if len(more) > 1 else None,
        "kept": float(np.mean([r.kept for r in results])),
        "kept_outside": float(np.mean([r.outside for r in results])),
        "check_everything": float(np.mean([r.everything for r in results])),
    }


class CountTests:
    """The tests of one cell: the evidence for each count, made once."""

    def __init__(self, cell: PromiseCell, population: int, statement: Statement) -> None:
        self.limit = Limit.of(cell.risk, among=Among.ALL)
        self.scope = Scope(statement, cell.labels, None if statement is Statement.FRESH else population)
        self._known: dict[tuple[int, str], ClaimAndGate] = {}

    def evidence(self, count: int, q: str = "0") -> ClaimAndGate:
        if (count, q) not in self._known:
            eased = Limit(self.limit.share / (1 - Fraction(q)), among=Among.ALL)
            self._known[count, q] = evidence(eased, self.scope, self.scope.piloted, count)
        return self._known[count, q]

    def proven(self, counts: NDArray[np.int64], streams: Sequence[Stream], shares: Sequence[str] = ("0",)) -> list[int]:
        """Places of the proven policies; with several shares a policy and share has the place of
        policy + share × policies.
        """
        listed = {
            str(place + index * len(counts)): self.evidence(int(count), q)
            for index, q in enumerate(shares)
            for place, count in enumerate(counts)
        }
        tested = {name: listed[name] for stream in streams for name in stream.names}
        return [int(name) for name, decision in decide(tested, streams, 1 - CONFIDENCE).items() if decision.proven]


@dataclass(frozen=True, slots=True)
class OrderItems:
    """Items whose answers make an order of tests: what a board's ladders do on them, and the crowd
    that was fitted to them.
    """

    board: Board
    answers: NDArray[np.int64]
    away: Sequence[Replay]
    crowd: Crowd

    @classmethod
    def of(cls, board: Board, places: NDArray[np.int64], crowd: Crowd | None = None) -> OrderItems:
        answers = board.panel.answers[places]
        return cls(board, answers, [_slice(p, places) for p in board.played], crowd or fit_crowd(answers))

    def chains(self) -> list[list[str]]:
        """The product's fronts over the ladders, named by their places."""
        found = fronts(self.crowd, self.answers, self.away, prices=self.board.panel.prices)
        return [[str(place) for place in chain] for chain in found]

    def single(self, discount: float) -> list[str]:
        """One plain front of predicted risk against cost."""
        risks = trusted_risk(self.crowd.right(self.answers, discount=discount), self.answers, self.away)
        return [str(place) for place in front(risks, [float(p.cost.mean()) for p in self.away])]


def chosen_by(
    board: Board, cell: PromiseCell, tests: CountTests, pilot: NDArray[np.int64], order: Streams
) -> int | None:
    """The cheapest proven ladder of the board; None where everything is to be checked."""
    counts, price = board.wrong[pilot].sum(axis=0), board.cost[pilot].mean(axis=0)
    return cheapest(tests.proven(counts, order), price, cell.check)


def _play(
    boards: Boards,
    cell: PromiseCell,
    every: Mapping[Statement, CountTests],
    split: NDArray[np.int64],
    *,
    aside: NDArray[np.int64],
    diluted: bool,
    brief: bool,
) -> Mapping[str, Result]:
    tests, board, plain = every[Statement.POLICY], boards.product, boards.plain
    pilot, rest = split[: cell.labels], split[cell.labels :]
    own = OrderItems.of(board, aside)
    others = OrderItems.of(plain, aside, own.crowd)
    chains, before = own.chains(), others.chains()
    totals, counts = board.wrong.sum(axis=0), board.wrong[pilot].sum(axis=0)
    truth = [str(place) for place in front(totals, board.cost.mean(axis=0))]
    streams: dict[str, tuple[Board, Streams]] = {
        OURS: (board, staggered(chains, tests.limit, tests.scope, confidence=CONFIDENCE)),
        "staggered fronts, without climbs": (plain, staggered(before, tests.limit, tests.scope, confidence=CONFIDENCE)),
        "front, discounted": (plain, fixed_sequence(others.single(DISCOUNT))),
        "front": (plain, fixed_sequence(others.single(1.0))),
        "Holm": (plain, holm([str(place) for place in range(len(plain.played))])),
        "Holm, climbs too": (board, holm([str(place) for place in range(len(board.played))])),
        "true order (reference)": (board, fixed_sequence(truth)),
    }
    found = {}
    for method, (tried, order) in streams.items():
        found[method] = _result(tried, cell, rest, chosen_by(tried, cell, tests, pilot, order))
    possible = np.flatnonzero(totals <= tests.limit.share * len(board.panel.gold))
    found["best in hindsight"] = _result(
        board, cell, rest, cheapest(possible.tolist(), board.cost.mean(axis=0), cell.check)
    )
    if brief:
        return found
    for statement in OTHERS:
        other = every[statement]
        # For fresh items the order comes from items outside the pilot; else from a draw of their
        # own, as a pilot does it.
        own_chains = OrderItems.of(board, rest[-len(aside) :]).chains() if statement is Statement.FRESH else chains
        order = staggered(own_chains, other.limit, other.scope, confidence=CONFIDENCE)
        chosen = chosen_by(board, cell, other, pilot, order)
        kept = chosen is None or _holds(other, int(totals[chosen]), int(counts[chosen]), len(board.panel.gold))
        result = _result(board, cell, rest, chosen)
        found[f"{OURS}, statement '{statement}'"] = replace(result, kept=kept)
    if diluted:
        found["front, discounted, random checks"] = _diluted(own, cell, tests, pilot, rest)
    price = board.cost[pilot].mean(axis=0)
    untested = np.flatnonzero(counts <= tests.limit.share * cell.labels)
    found["cheapest with pilot risk ≤ r, untested"] = _result(
        board, cell, rest, cheapest(untested.tolist(), price, cell.check)
    )
    for method, outcome in boards.rules.play(pilot, cell.risk, lambda count: tests.evidence(count).claim).items():
        found[method] = _judged(outcome.checked, outcome.wrong, outcome.cost, rest, cell)
    return found


def _holds(tests: CountTests, wrong: int, seen: int, population: int) -> bool:
    """The statements as they are written down (docs/algorithms.md, fact 32)."""
    rate = tests.limit.share
    if tests.scope.statement is Statement.FILE:
        return wrong - seen <= rate * population
    if tests.scope.statement is Statement.REST:
        return wrong - seen <= rate * (population - tests.scope.piloted)
    return wrong <= rate * population


def _slice(policy: Replay, places: NDArray[np.int64]) -> Replay:
    """The same policy on some of the items.

    Fancy indexing copies, so freezing the slice leaves the whole as it is.
    """
    return Replay(
        policy.name,
        policy.cost[places],
        policy.delivered[places],
        policy.wrong[places],
        policy.checked[places],
        policy.value[places],
    )


def cheapest(places: Sequence[int], price: NDArray[np.float64], check: float) -> int | None:
    """The cheapest of these on the pilot; None where checking everything is no dearer."""
    cheaper = [place for place in places if price[place] < check]
    return min(cheaper, key=lambda place: float(price[place])) if cheaper else None


def _result(board: Board, cell: PromiseCell, rest: NDArray[np.int64], chosen: int | None) -> Result:
    if chosen is None:
        return Result(1.0, 1.0, kept=True, outside=True, everything=True)
    return _judged(board.checked[:, chosen], board.wrong[:, chosen], board.cost[:, chosen], rest, cell)


def _judged(
    checked: NDArray[np.bool_],
    wrong: NDArray[np.bool_],
    cost: NDArray[np.float64],
    rest: NDArray[np.int64],
    cell: PromiseCell,
    *,
    left: float = 1.0,
) -> Result:
    """`left`: the share of wrong deliveries that random checks leave, on average."""
    risk = Fraction(str(cell.risk))
    return Result(
        float(checked[rest].mean()),
        float(cost[rest].mean()) / cell.check,
        kept=bool(wrong.sum() * left <= risk * len(wrong)),
        outside=bool(wrong[rest].sum() * left <= risk * len(rest)),
        everything=bool(checked.all()),
    )


def _diluted(
    order_items: OrderItems, cell: PromiseCell, tests: CountTests, pilot: NDArray[np.int64], rest: NDArray[np.int64]
) -> Result:
    """The same ladders with a random share of their deliveries checked: one front over ladders and
    shares together.
    """
    board, away, answers = order_items.board, order_items.away, order_items.answers
    risks = trusted_risk(order_items.crowd.right(answers, discount=DISCOUNT), answers, away)
    shares = np.array([float(q) for q in SHARES])
    unchecked = np.array([1.0 - p.checked.mean() for p in away])
    away_cost = np.array([p.cost.mean() for p in away])
    flat_risk = ((1 - shares)[:, None] * risks).ravel()
    flat_cost = (away_cost + shares[:, None] * cell.check * unchecked).ravel()
    chain = [str(place) for place in front(flat_risk, flat_cost)]
    proven = tests.proven(board.wrong[pilot].sum(axis=0), fixed_sequence(chain), SHARES)
    here = (
        board.cost[pilot].mean(axis=0) + shares[:, None] * cell.check * (~board.checked[pilot]).mean(axis=0)
    ).ravel()
    chosen = cheapest(proven, here, cell.check)
    if chosen is None:
        return Result(1.0, 1.0, kept=True, outside=True, everything=True)
    share, ladder = divmod(chosen, len(board.played))
    q = float(shares[share])
    checked, wrong = board.checked[:, ladder], board.wrong[:, ladder]
    base = _judged(checked, wrong, board.cost[:, ladder] + q * cell.check * ~checked, rest, cell, left=1 - q)
    return Result(
        base.checks + q * float((~checked[rest]).mean()), base.cost, base.kept, base.outside, everything=False
    )
