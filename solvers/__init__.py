"""Matrices in, bounds and witnesses out. Knows nothing of language models, files or money.

The one quantity: γ(s) = min over node sets S of size at most s of σ_min(B_S), with s = 2k for a
corruption budget of k nodes; always with a rigorous lower and upper bound and the witness that
attains the upper one. Two variants ask only for what is delivered (`delivered_margin`), and allow
checks to be wrong as well (`suspect_margin`, `wrong_check_margin`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from solvers._delivered import delivered_margin, delivered_supports_below, delivered_worst_supports
from solvers._faulty_checks import RivalPair, SuspectMargin, rival_pair, suspect_margin, wrong_check_margin
from solvers._gamma import (
    Gauge,
    Spark,
    SupportsBelow,
    gauge_directions,
    group_spark,
    margin,
    margins,
    support_margin,
    supports_below,
    worst_supports,
)
from solvers._gram import NodeColumns, column_groups
from solvers._minimiser import Interrupted
from solvers.result import LowerFrom, Margin, Status, SupportValue

if TYPE_CHECKING:
    from solvers._tracker import MarginTracker

__all__ = [
    "Gauge",
    "Interrupted",
    "LowerFrom",
    "Margin",
    "MarginTracker",
    "NodeColumns",
    "RivalPair",
    "Spark",
    "Status",
    "SupportValue",
    "SupportsBelow",
    "SuspectMargin",
    "column_groups",
    "delivered_margin",
    "delivered_supports_below",
    "delivered_worst_supports",
    "gauge_directions",
    "group_spark",
    "margin",
    "margins",
    "rival_pair",
    "support_margin",
    "supports_below",
    "suspect_margin",
    "worst_supports",
    "wrong_check_margin",
]


def __getattr__(name: str) -> Any:
    if name == "MarginTracker":  # compiles kernels on import: when used
        from solvers._tracker import MarginTracker

        return MarginTracker
    raise AttributeError(f"module 'solvers' has no attribute {name!r}")
