"""What a forecast says before anything is spent, beside what pilots played afterwards cost:
everything counted, the pilot's answers and labels too.

A panel stands for the items that a table of N is drawn from: pilots are drawn from it with
replacement and tested for the statement 'fresh', as `pilot` does by default, with and without
random checks. The forecast sees the answers of the items that make the order of tests, and no gold.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rrf_design.risk import (
    DISCOUNT,
    FORECAST_ERROR,
    Among,
    Limit,
    Prospect,
    Scope,
    Statement,
    fixed_sequence,
    forecast,
    front,
    passing_count,
    prospects_of,
    staggered,
    trusted_risk,
)
from scenarios.data_set_promises.boards import Board, own_family
from scenarios.data_set_promises.drawn_panels import drawn_panel
from scenarios.data_set_promises.panels import folder_of, read_panel
from scenarios.data_set_promises.splits import CONFIDENCE, SHARES, CountTests, OrderItems, PromiseCell, cheapest
from scenarios.kit import Context, Part, Report, Rows

RISKS = (0.05, 0.02, 0.01)
LABELS = (100, 200, 400, 800)
TABLES = (1_319, 5_000, 20_000)


def forecast_part(context: Context, part: Part) -> list[dict[str, Any]]:
    """The cells of one panel, or of one that was drawn."""
    folder, check = folder_of(context["answers"]), float(context["check"])
    name = part["forecast"]
    panel = drawn_panel(folder, name, part["draw"]) if "draw" in part else read_panel(folder, name)
    assert panel is not None  # parts name sets that have enough nodes
    board = Board.of(panel, own_family(panel), check)
    return compared(board, check, splits=context["forecast_splits"], others=2 * context["others"], seed=context["seed"])


def foretold(page: Report, rows: Rows, *, toss_up: float) -> None:
    """Whether a pilot pays, where that is no toss-up."""
    if page.quick or not rows:
        return page.open(["forecast"], "quick size" if page.quick else "no panel in the folder")
    clear = [row for row in rows if abs(row["played, best"] - 1.0) > toss_up]
    false = [row for row in clear if (row["says that a pilot pays"] > 0.5) != (row["played, best"] < 1.0)]
    gaps = sorted(row["forecast at the same size"] - row["played, best"] for row in rows)
    words = (
        f"{len(clear) - len(false)} of {len(clear)} cells rightly; the forecast of the best size was {-gaps[0]:.2f} too"
        f" low to {gaps[-1]:.2f} too high, {gaps[len(gaps) // 2]:+.2f} in the median"
    )
    missed = [
        f"{row['panel']}, r = {row['risk']:.0%}, {row['items']:,} items: {row['forecast, best']:.2f} forecast,"
        f" {row['played, best']:.2f} played"
        for row in false
    ]
    return page.check("forecast", not false, "; ".join([words, *missed]))


def compared(board: Board, check: float, *, splits: int, others: int, seed: int) -> list[dict[str, Any]]:
    """A row for each risk and size of the table: what the best of four sizes of a pilot cost when
    it was played, and what was forecast.
    """
    panel = board.panel
    items, calls = len(panel.gold), float(panel.prices.sum())
    seeds = np.random.SeedSequence([seed, *map(ord, panel.name)]).spawn(splits)
    played = np.zeros((splits, len(RISKS), len(LABELS), 2))
    told = np.zeros((splits, len(RISKS), len(LABELS), 2))
    for number, child in enumerate(seeds):
        rng = np.random.default_rng(child)
        own = OrderItems.of(board, rng.permutation(items)[: min(others, items)])
        pilots = rng.integers(items, size=max(LABELS))
        orders = _Orders.of(own, check)
        prospects = prospects_of(own.crowd, own.answers, own.away, among=Among.ALL)
        both = (
            prospects,
            [one.diluted(float(q), check=check) if q != "0" else one for q in SHARES for one in prospects],
        )
        for at, risk in enumerate(RISKS):
            for place, labels in enumerate(LABELS):
                played[number, at, place] = orders.costs(risk, pilots[:labels])
            told[number, at] = np.array([_expected(p, risk, check, calls) for p in both]).T
    return [
        _row(panel.name, risk, size, (check, calls), played[:, at], told[:, at])
        for at, risk in enumerate(RISKS)
        for size in TABLES
    ]


def _expected(prospects: Sequence[Prospect], risk: float, check: float, calls: float) -> list[float]:
    """What an item outside the pilot is forecast to cost; for fresh items that does not depend on
    the size of the table.
    """
    size = max(TABLES)
    found = forecast(LABELS, risk, CONFIDENCE, population=size, check=check, panel=calls, prospects=prospects)
    return [((one.expected_cost or 0.0) - one.pilot_cost) / (size - one.labels) for one in found]


def _row(
    panel: str,
    risk: float,
    size: int,
    prices: tuple[float, float],
    played: NDArray[np.float64],
    told: NDArray[np.float64],
) -> dict[str, Any]:
    check, calls = prices
    labels = np.array(LABELS, dtype=np.float64)[None, :, None]
    # (splits, labels, random checks): all of it, relative to checking everything
    whole, before = ((labels * (check + calls) + (size - labels) * each) / (size * check) for each in (played, told))
    mean, said = whole.mean(axis=0), before.mean(axis=0)
    best, advised = np.unravel_index(mean.argmin(), mean.shape), np.unravel_index(said.argmin(), said.shape)
    pays = before.reshape(len(before), -1).min(axis=1) < 1.0 - FORECAST_ERROR
    return {
        "panel": panel,
        "risk": risk,
        "items": size,
        "played, best": float(mean[best]),
        "with labels": LABELS[int(best[0])],
        "random checks": bool(best[1]),
        "forecast, best": float(said[advised]),
        "of labels": LABELS[int(advised[0])],
        "forecast's choice, played": float(mean[advised]),
        "says that a pilot pays": float(pays.mean()),
        "forecast at the same size": float(said[best]),
    }


class _Orders:
    """The orders of tests that one draw of other items gives, with and without random checks; each
    test takes its counts from a pilot.
    """

    def __init__(self, own: OrderItems, check: float, chain: list[str]) -> None:
        self.own, self.check, self.chain = own, check, chain
        self.chains = own.chains()

    @classmethod
    def of(cls, own: OrderItems, check: float) -> _Orders:
        risks = trusted_risk(own.crowd.right(own.answers, discount=DISCOUNT), own.answers, own.away)
        shares = np.array([float(q) for q in SHARES])
        accepted = np.array([1.0 - one.checked.mean() for one in own.away])
        costs = np.array([one.cost.mean() for one in own.away]) + shares[:, None] * check * accepted
        places = front(((1 - shares)[:, None] * risks).ravel(), costs.ravel())
        return cls(own, check, [str(place) for place in places])

    def costs(self, risk: float, pilot: NDArray[np.int64]) -> tuple[float, float]:
        """What an item outside the pilot costs on average under the policy that a pilot of these
        items chooses: plain, and with random checks.
        """
        board, check = self.own.board, self.check
        tests = CountTests(
            PromiseCell(board.panel.name, risk, len(pilot), check), len(board.panel.gold), Statement.FRESH
        )
        counts = board.wrong[pilot].sum(axis=0)
        here, everywhere = board.cost[pilot].mean(axis=0), board.cost.mean(axis=0)
        plain = cheapest(
            tests.proven(counts, staggered(self.chains, tests.limit, tests.scope, confidence=CONFIDENCE)), here, check
        )
        shares = np.array([float(q) for q in SHARES])[:, None]
        usable = [q for q in SHARES if Fraction(str(risk)) < 1 - Fraction(q)]
        here_too = (here + shares * check * (~board.checked[pilot]).mean(axis=0)).ravel()
        all_too = (everywhere + shares * check * (~board.checked).mean(axis=0)).ravel()
        chain = self._likely(risk, len(pilot), usable)
        diluted = cheapest(tests.proven(counts, fixed_sequence(chain), usable), here_too, check) if chain else None
        return (
            check if plain is None else float(everywhere[plain]),
            check if diluted is None else float(all_too[diluted]),
        )

    def _likely(self, risk: float, labels: int, usable: Sequence[str]) -> list[str]:
        """The front from where a proof is possible on: what has too few random checks for so few
        labels would end the sequence before it begins.
        """
        policies = len(self.own.away)
        level = 1 - CONFIDENCE
        able = [
            _provable(Limit.of(risk, among=Among.ALL), Fraction(q), labels, level) if q in usable else False
            for q in SHARES
        ]
        return [name for name in self.chain if able[int(name) // policies]]


def _provable(limit: Limit, q: Fraction, labels: int, level: Fraction) -> bool:
    return passing_count(Limit(limit.share / (1 - q), among=Among.ALL), Scope(Statement.FRESH, labels), level) >= 0
