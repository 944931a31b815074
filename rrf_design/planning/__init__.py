"""Plan what to buy: greedy, optimal, cheapest, frontier and portfolio.

`plan` is the call for one problem, `frontier` for the whole curve of cost against margin,
`portfolio` for many fields under one budget. Every planner has one contract (`contract`), one idea
of prices and rules (`rrf_design.market`) and one pool of witness cuts (`cuts`), and reports margins
computed by the exact engine.
"""

from __future__ import annotations

from rrf_design.planning._frontiers import Frontier, Point, frontier
from rrf_design.planning._greedy import Pick, Tracked, look
from rrf_design.planning._outcome import finish, starting_design
from rrf_design.planning._portfolios import Portfolio, Share, portfolio
from rrf_design.planning._portfolios import spend as spend
from rrf_design.planning.contract import (
    Aim,
    ComponentShare,
    Objective,
    Order,
    Plan,
    Planner,
    PlanStatus,
    Step,
    read_plan,
    write_plan,
)
from rrf_design.planning.evaluator import Evaluator
from rrf_design.planning.registry import PLANNERS, plan, planner

__all__ = [
    "PLANNERS",
    "Aim",
    "ComponentShare",
    "Evaluator",
    "Frontier",
    "Objective",
    "Order",
    "Pick",
    "Plan",
    "PlanStatus",
    "Planner",
    "Point",
    "Portfolio",
    "Share",
    "Step",
    "Tracked",
    "finish",
    "frontier",
    "look",
    "plan",
    "planner",
    "portfolio",
    "read_plan",
    "starting_design",
    "write_plan",
]
