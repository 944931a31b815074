"""Asking again in a run: a node's next ask, weighed against the purchase that sees the worst witness best.

A purchase raises the margin, a repeat lowers the noise; what both are for is the promised error 2ε'/γ + own (`rrf_design.noise`). So they are
held against each other by how much of it they take away for their price. While nothing is promised, no repeat helps.
"""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction
from math import inf

from rrf_design.acquisition.shop import Bundle, Shop


def weighed(
    design: Shop, held: Collection[str], failed: Collection[str], bundle: Bundle | None, *, most: Fraction | None
) -> Bundle | None:
    """The purchase, or the ask that takes more of the promised error away for its price; the purchase where they are alike."""
    asks = design.further(held, failed, most=most)
    now = promised_error(design, held, failed) if asks else None
    if now is None:
        return bundle

    def worth(one: Bundle) -> float:
        then = promised_error(design, {*held, *one.names}, failed)
        gain = 0.0 if then is None else now - then
        return float(f"{gain / float(one.price):.9g}") if one.price else inf if gain > 0.0 else 0.0

    listed = [*([] if bundle is None else [bundle]), *asks]
    best = max(listed, key=worth)
    return best if best is bundle or worth(best) > 0.0 else bundle


def promised_error(design: Shop, held: Collection[str], failed: Collection[str]) -> float | None:
    """The error that the field promises with what is held and read; None where it promises none."""
    standing = design.standing(held, failed)
    return standing.radius.bound(standing.lower)
