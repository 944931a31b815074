"""One cell: a panel, a risk and a pilot size, over many random splits into pilot and rest, with items drawn for the order of tests.

Everything that does not depend on the split (what every ladder costs and gets wrong on every item) is computed once; a split is a few sums and the
product's own tests on counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rrf_design.risk import (
    Among,
    Last,
    Limit,
    Replay,
    Scope,
    Statement,
    Stream,
    fit_crowd,
    fixed_sequence,
    front,
    fronts,
    half_depth,
    holm,
    lead_family,
    replay,
    staggered,
)
from rrf_design.risk.procedures import decide
from rrf_design.risk.statements import ClaimAndGate, evidence
from scenarios.promises.baselines import Rules, rules_of
from scenarios.promises.panels import Panel

CONFIDENCE = Fraction(19, 20)
OTHERS = (Statement.FRESH, Statement.FILE, Statement.REST)
"""Statements measured beside the policy's risk, each judged by itself."""
SHARES = ("0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9")
"""Shares of random checks that the diluted family offers."""


@dataclass(frozen=True, slots=True)
class PromiseCell:
    """What is promised about which panel, with how many labels, at which price of a check (in calls)."""

    panel: str
    risk: float
    labels: int
    check: float

    @property
    def words(self) -> str:
        return f"{self.panel}, r = {self.risk:.0%}, n = {self.labels}"


@dataclass(frozen=True, slots=True)
class Board:
    """A panel with all its ladders played on all items: arrays (items, ladders)."""

    panel: Panel
    played: Sequence[Replay]
    cost: NDArray[np.float64]
    checked: NDArray[np.bool_]
    wrong: NDArray[np.bool_]
    rules: Rules

    @classmethod
    def of(cls, panel: Panel, check: float) -> Board:
        nodes = len(panel.prices)
        half = nodes // 2 - 1
        # Cheap nodes first, dear ones first, and the middle first.
        orders = [range(nodes), range(nodes - 1, -1, -1), [*range(half, nodes), *range(half)]]
        ladders = lead_family(nodes, orders, last=Last.GOLD)
        played = replay(ladders, panel.answers, prices=panel.prices, check=check, gold=panel.gold)
        return cls(
            panel,
            played,
            np.column_stack([p.cost for p in played]),
            np.column_stack([p.checked for p in played]),
            np.column_stack([p.wrong for p in played]),
            rules_of(panel, check),
        )


@dataclass(frozen=True, slots=True)
class Result:
    """One method on one split: shares and costs among the rest, relative to checking everything; was the promise true?"""

    checks: float
    cost: float
    kept: bool
    outside: bool
    everything: bool


def play_cell(
    board: Board, cell: PromiseCell, *, splits: int, others: int, seed: int, diluted: bool
) -> list[dict[str, Any]]:
    """One row a method: means over the splits."""
    seeds = np.random.SeedSequence([seed, *map(ord, cell.words)]).spawn(splits)
    table = _Tests(cell, len(board.panel.gold), Statement.POLICY)
    others_table = [_Tests(cell, len(board.panel.gold), statement) for statement in OTHERS]
    found: dict[str, list[Result]] = {}
    for child in seeds:
        rng = np.random.default_rng(child)
        # The statements speak of this very table, so what makes the order is drawn on its own, as a pilot does it.
        split, aside = rng.permutation(len(board.panel.gold)), rng.permutation(len(board.panel.gold))[:others]
        tests = (table, *others_table)
        for method, result in _play(board, cell, tests, split, aside=aside, diluted=diluted).items():
            found.setdefault(method, []).append(result)
    return [{"cell": cell.words, "method": method, **_summary(results)} for method, results in found.items()]


def _summary(results: Sequence[Result]) -> dict[str, Any]:
    costs = np.array([r.cost for r in results])
    return {
        "splits": len(results),
        "checks": float(np.mean([r.checks for r in results])),
        "cost": float(costs.mean()),
        "cost_error": float(costs.std(ddof=1) / np.sqrt(len(costs))) if len(costs) > 1 else None,
        "kept": float(np.mean([r.kept for r in results])),
        "kept_outside": float(np.mean([r.outside for r in results])),
        "check_everything": float(np.mean([r.everything for r in results])),
    }


class _Tests:
    """The tests of one cell: the evidence for each count, made once."""

    def __init__(self, cell: PromiseCell, population: int, statement: Statement) -> None:
        self.limit = Limit.of(cell.risk, among=Among.ALL)
        scope = Scope(statement, cell.labels, None if statement is Statement.FRESH else population)
        deep = statement in (Statement.FILE, Statement.REST)
        self.scope = half_depth(self.limit, scope, confidence=CONFIDENCE) if deep else scope
        self._known: dict[tuple[int, str], ClaimAndGate] = {}

    def evidence(self, count: int, q: str = "0") -> ClaimAndGate:
        if (count, q) not in self._known:
            eased = Limit(self.limit.share / (1 - Fraction(q)), among=Among.ALL)
            self._known[count, q] = evidence(eased, self.scope, self.scope.piloted, count)
        return self._known[count, q]

    def proven(self, counts: NDArray[np.int64], streams: Sequence[Stream], shares: Sequence[str] = ("0",)) -> list[int]:
        """Places of the proven policies; with several shares a policy and share has the place of policy + share × policies."""
        listed = {
            str(place + index * len(counts)): self.evidence(int(count), q)
            for index, q in enumerate(shares)
            for place, count in enumerate(counts)
        }
        tested = {name: listed[name] for stream in streams for name in stream.names}
        return [int(name) for name, decision in decide(tested, streams, 1 - CONFIDENCE).items() if decision.proven]


def _play(
    board: Board,
    cell: PromiseCell,
    every: Sequence[_Tests],
    split: NDArray[np.int64],
    *,
    aside: NDArray[np.int64],
    diluted: bool,
) -> Mapping[str, Result]:
    tests = every[0]
    pilot, rest = split[: cell.labels], split[cell.labels :]
    counts = board.wrong[pilot].sum(axis=0)
    price = board.cost[pilot].mean(axis=0)
    away = [_slice(p, aside) for p in board.played]
    crowd = fit_crowd(board.panel.answers[aside])
    chains = [
        [str(place) for place in chain]
        for chain in fronts(crowd, board.panel.answers[aside], away, prices=board.panel.prices)
    ]
    totals = board.wrong.sum(axis=0)
    names = [str(place) for place in range(len(board.played))]
    truth = [str(place) for place in front(totals, board.cost.mean(axis=0))]
    streams = {
        "staggered fronts": staggered(chains, tests.limit, tests.scope, confidence=CONFIDENCE),
        "front, discounted": fixed_sequence(chains[0]),
        "front": fixed_sequence(chains[2]),
        "Holm": holm(names),
        "true order (reference)": fixed_sequence(truth),
    }
    found = {}
    for method, order in streams.items():
        found[method] = _result(board, cell, rest, _cheapest(tests.proven(counts, order), price, cell.check))
    for other in every[1:]:
        order = staggered(chains, other.limit, other.scope, confidence=CONFIDENCE)
        chosen = _cheapest(other.proven(counts, order), price, cell.check)
        kept = chosen is None or _holds(other, int(totals[chosen]), int(counts[chosen]), len(board.panel.gold))
        result = _result(board, cell, rest, chosen)
        found[f"staggered fronts, statement '{other.scope.statement}'"] = replace(result, kept=kept)
    if diluted:
        found["front, discounted, random checks"] = _diluted(board, cell, tests, pilot, rest, away)
    untested = np.flatnonzero(counts <= tests.limit.share * cell.labels)
    found["cheapest with pilot risk ≤ r, untested"] = _result(
        board, cell, rest, _cheapest(untested.tolist(), price, cell.check)
    )
    possible = np.flatnonzero(totals <= tests.limit.share * len(board.panel.gold))
    found["best in hindsight"] = _result(
        board, cell, rest, _cheapest(possible.tolist(), board.cost.mean(axis=0), cell.check)
    )
    for method, outcome in board.rules.play(pilot, cell.risk, lambda count: tests.evidence(count).claim).items():
        found[method] = _judged(outcome.checked, outcome.wrong, outcome.cost, rest, cell)
    return found


def _holds(tests: _Tests, wrong: int, seen: int, population: int) -> bool:
    """The statements as they are written down (docs/algorithms.md, fact 32)."""
    rate = tests.limit.share
    if tests.scope.statement is Statement.FILE:
        return wrong - seen <= rate * population
    if tests.scope.statement is Statement.REST:
        return wrong - seen <= rate * (population - tests.scope.piloted)
    return wrong <= rate * population


def _slice(policy: Replay, places: NDArray[np.int64]) -> Replay:
    """The same policy on some of the items. Fancy indexing copies, so freezing the slice leaves the whole as it is."""
    return Replay(
        policy.name,
        policy.cost[places],
        policy.delivered[places],
        policy.wrong[places],
        policy.checked[places],
        policy.value[places],
    )


def _cheapest(places: Sequence[int], price: NDArray[np.float64], check: float) -> int | None:
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
    board: Board,
    cell: PromiseCell,
    tests: _Tests,
    pilot: NDArray[np.int64],
    rest: NDArray[np.int64],
    away: Sequence[Replay],
) -> Result:
    """The same ladders with a random share of their deliveries checked: one front over ladders and shares together."""
    from rrf_design.risk import trusted_risk
    from rrf_design.risk.orders import DISCOUNT

    answers = board.panel.answers[rest[: len(away[0].cost)]]
    risks = trusted_risk(fit_crowd(answers).right(answers, discount=DISCOUNT), answers, away)
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
    chosen = _cheapest(proven, here, cell.check)
    if chosen is None:
        return Result(1.0, 1.0, kept=True, outside=True, everything=True)
    share, ladder = divmod(chosen, len(board.played))
    q = float(shares[share])
    checked, wrong = board.checked[:, ladder], board.wrong[:, ladder]
    base = _judged(checked, wrong, board.cost[:, ladder] + q * cell.check * ~checked, rest, cell, left=1 - q)
    return Result(
        base.checks + q * float((~checked[rest]).mean()), base.cost, base.kept, base.outside, everything=False
    )
