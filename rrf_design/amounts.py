"""Amounts as people write them: with the digits they have (11879.56), and without those that rounding left behind (0.1 + 0.2).

Answers, delivered values, prices and costs are shown with `digits`. Bounds have no last digit: they are cut to the side on which
what is shown as proven is proven.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal


def digits(value: float) -> str:
    """At least three decimals of anything below a thousand million, and never more digits than a float holds."""
    return f"{value:.12g}" if abs(value) < 1e9 else f"{value:.15g}"


def rounded_down(value: float, digits: int) -> float:
    """So many significant digits of a finite number, cut off: never above it."""
    return _cut(value, digits, ROUND_FLOOR)


def rounded_up(value: float, digits: int) -> float:
    """The same, never below it."""
    return _cut(value, digits, ROUND_CEILING)


def _cut(value: float, digits: int, rounding: str) -> float:
    exact = Decimal(value)
    place = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    return float(exact.quantize(place, rounding=rounding)) if value else 0.0
