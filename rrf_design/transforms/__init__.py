"""How a question changes and its answer with it; and free checks, which see without asking anybody
that an answer can't be right.

`Transform` is the contract of a transformation, `transformed` applies one to a `Original`,
`candidates` lists those that fit. `vetoed` strikes out answers that break a rule.
"""

from __future__ import annotations

from rrf_design.transforms._base import (
    CHOICE,
    CLASS,
    DAY,
    NUMBER,
    NUMBERS,
    PROGRAM,
    TRUTH,
    Original,
    Transform,
    Transformed,
)
from rrf_design.transforms._registry import candidates, get, names, read_spec, transformed
from rrf_design.transforms._vetoes import (
    KINDS,
    VETOED,
    check_rules,
    not_counted,
    placed,
    rules_of,
    stated,
    vetoed,
    with_tests,
)

__all__ = [
    "CHOICE",
    "CLASS",
    "DAY",
    "KINDS",
    "NUMBER",
    "NUMBERS",
    "PROGRAM",
    "TRUTH",
    "VETOED",
    "Original",
    "Transform",
    "Transformed",
    "candidates",
    "check_rules",
    "get",
    "names",
    "not_counted",
    "placed",
    "read_spec",
    "rules_of",
    "stated",
    "transformed",
    "vetoed",
    "with_tests",
]
