"""A panel with all its policies played on all items, once: what a split needs are sums.

The policies are the product's own family, climbs over the planner's frontier included; beside it
the plain family of leads and explanations over three orders of nodes, on which a single front and
Holm's method are measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rrf_design.problem import Problem
from rrf_design.promises import LastStage, escalations_of, family_of
from rrf_design.risk import Ladder, Last, Replay, lead_family, replay
from scenarios.data_set_promises.baselines import Rules, rules_of
from scenarios.data_set_promises.panels import Panel


@dataclass(frozen=True, slots=True)
class Board:
    """A panel with ladders played on all items: arrays (items, ladders)."""

    panel: Panel
    played: Sequence[Replay]
    cost: NDArray[np.float64]
    checked: NDArray[np.bool_]
    wrong: NDArray[np.bool_]

    @classmethod
    def of(cls, panel: Panel, ladders: Sequence[Ladder], check: float) -> Board:
        played = replay(ladders, panel.answers, prices=panel.prices, check=check, gold=panel.gold)
        return cls(
            panel,
            played,
            np.column_stack([p.cost for p in played]),
            np.column_stack([p.checked for p in played]),
            np.column_stack([p.wrong for p in played]),
        )


@dataclass(frozen=True, slots=True)
class Boards:
    """The product's family and the plain one, and the rules of others."""

    product: Board
    plain: Board
    rules: Rules

    @classmethod
    def of(cls, panel: Panel, check: float) -> Boards:
        nodes = len(panel.prices)
        half = nodes // 2 - 1
        # Cheap nodes first, dear ones first, and the middle first.
        orders = [range(nodes), range(nodes - 1, -1, -1), [*range(half, nodes), *range(half)]]
        plain = lead_family(nodes, orders, last=Last.GOLD)
        return cls(Board.of(panel, own_family(panel), check), Board.of(panel, plain, check), rules_of(panel, check))


def own_family(panel: Panel) -> list[Ladder]:
    """The policies that a pilot would test of a recipe that asks these nodes the same question."""
    names = [str(at) for at in range(len(panel.prices))]
    prices = {name: float(price) for name, price in zip(names, panel.prices, strict=True)}
    problem = Problem(
        name=panel.name,
        deliver=names[:1],
        nodes=[{"id": name} for name in names],
        relations=[{"id": f"{name} like {names[0]}", "tail": names[0], "head": name} for name in names[1:]],
    )
    climbs = escalations_of(problem, prices)
    return [p.ladder(names) for p in family_of(names, prices, voices=names, last=LastStage.PERSON, escalations=climbs)]
