"""Decoders on matrices: which few node errors e explain a syndrome s = Be + noise.

`SupportDecoder` is exact (support search with a proof), `group_lasso` and `group_bpdn` are convex
with a duality gap, `SupportTable` decodes many syndromes of one small design at once,
`erasure_margin` is γ when some nodes are missing, and `unread_margin` the same for delivered values
and checks that may be wrong.
"""

from __future__ import annotations

from solvers.decoding._erasures import ErasureMargin, WrongChecks, erasure_margin, unread_margin
from solvers.decoding._search import (
    BatchDecoding,
    SupportDecoder,
    SupportTable,
    SyndromeDecoding,
    SyndromeExplanation,
    decode_support,
    table_fits,
)
from solvers.decoding.convex import ConvexSolution, GroupProblem, group_bpdn, group_lasso, lasso_path

__all__ = [
    "BatchDecoding",
    "ConvexSolution",
    "ErasureMargin",
    "GroupProblem",
    "SupportDecoder",
    "SupportTable",
    "SyndromeDecoding",
    "SyndromeExplanation",
    "WrongChecks",
    "decode_support",
    "erasure_margin",
    "group_bpdn",
    "group_lasso",
    "lasso_path",
    "table_fits",
    "unread_margin",
]
