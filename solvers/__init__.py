"""Matrices in, bounds and witnesses out. Knows nothing of language models, files or money.

The one quantity: γ(s) = min over node sets S of size at most s of σ_min(B_S), with s = 2k for a corruption
budget of k nodes; always with a rigorous lower and upper bound and the witness that attains the upper one.
"""

from __future__ import annotations

from solvers.groups import NodeColumns, column_groups
from solvers.margin import (
    Interrupted,
    SupportsBelow,
    margin,
    margins,
    support_margin,
    supports_below,
    worst_supports,
)
from solvers.result import Margin, Status, SupportValue

__all__ = [
    "Interrupted",
    "Margin",
    "NodeColumns",
    "Status",
    "SupportValue",
    "SupportsBelow",
    "column_groups",
    "margin",
    "margins",
    "support_margin",
    "supports_below",
    "worst_supports",
]
