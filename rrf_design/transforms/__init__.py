"""How a question changes and its answer with it; and free checks, which see without asking anybody
that an answer can't be right.
"""

from __future__ import annotations

from rrf_design.transforms.vetoes import KINDS, VETOED, check_rules, not_counted, placed, rules_of, stated, vetoed

__all__ = ["KINDS", "VETOED", "check_rules", "not_counted", "placed", "rules_of", "stated", "vetoed"]
