"""Plan what to buy: greedy, optimal, cheapest, frontier, portfolio, and the baselines they are measured against.

`plan` is the call for one problem, `frontier` for the whole curve of cost against margin, `portfolio` for many fields under
one budget. Every planner has one contract (`contract`), one idea of prices and rules (`rrf_design.market`) and one pool of witness
cuts (`cuts`), and reports margins computed by the exact engine.
"""

from __future__ import annotations

from rrf_design.planning.arena import Arena
from rrf_design.planning.contract import Objective, Order, Plan, Planner, PlanStatus, Step
from rrf_design.planning.document import read_plan, write_plan
from rrf_design.planning.frontiers import Frontier, Point, frontier
from rrf_design.planning.portfolios import Aim, Portfolio, Share, portfolio
from rrf_design.planning.registry import PLANNERS, plan, planner
from rrf_design.planning.tracked import Tracked

__all__ = [
    "PLANNERS",
    "Aim",
    "Arena",
    "Frontier",
    "Objective",
    "Order",
    "Plan",
    "PlanStatus",
    "Planner",
    "Point",
    "Portfolio",
    "Share",
    "Step",
    "Tracked",
    "frontier",
    "plan",
    "planner",
    "portfolio",
    "read_plan",
    "write_plan",
]
