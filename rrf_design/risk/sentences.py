"""A promise in words, with its denominator (docs/algorithms.md, fact 32): a reader takes any promise for the strongest one unless it says which it is."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction

from rrf_design.risk.statements import Among, Limit, Scope, Statement


def promise(
    limit: Limit,
    scope: Scope,
    *,
    confidence: Fraction,
    delivers: int | None = None,
    checked_share: Fraction = Fraction(0),
) -> str:
    """What may be said once the limit is proven. `delivers`: how many of all items the policy delivers, where that is known. `checked_share`: of what the policy
    accepts, so much is checked at random; what that leaves of a finite data set is proven on average over which items are drawn."""
    rate, sure = percent(limit.share), percent(confidence, rounding=ROUND_FLOOR)
    delivered = limit.among is Among.DELIVERED
    fault = limit.column
    if scope.statement is Statement.FRESH:
        what = "the items delivered" if delivered else "all items"
        return f"Of {what}, at most {rate} are {fault}, with confidence {sure}, for items drawn like the {scope.piloted:,} of the pilot."
    total = delivers if delivered else scope.population
    where = {
        Statement.POLICY: "under this policy, the pilot's counted as the policy left them",
        Statement.FILE: "in the file as it is handed over, with what the pilot found wrong corrected",
    }.get(scope.statement)
    if scope.statement is Statement.REST:
        outside = f"at most {rate} are {fault}, with confidence {sure}."
        if total is None or delivered:
            return f"Of the items delivered outside the pilot, {outside}"
        total -= scope.piloted
        return f"Of the {total:,} items outside the pilot, at most {int(limit.share * total):,} ({rate}) are {fault}, with confidence {sure}."
    if total is None:
        return f"Of the items delivered, at most {rate} are {fault} {where}, with confidence {sure}."
    what, most = "items delivered" if delivered else "items", f"{int(limit.share * total):,}"
    if checked_share:
        most, where = average_above(limit.share * total), f"on average over what is checked at random {where}"
    return f"Of the {total:,} {what}, at most {most} ({rate}) are {fault} {where}, with confidence {sure}."


def audited_risk(risk: float, *, holds: bool, population: int, wrong: int, waiting: bool = False) -> str:
    """Whether an audit keeps a risk, in words: proven, refuted by what was seen, or open."""
    told = plain_percent(risk)
    if holds:
        return f"The risk of {told} holds."
    if wrong > Fraction(str(risk)) * population:
        return f"The risk of {told} does not hold: {wrong:,} of {population:,} are known to be wrong."
    more = "more labels" if waiting else "more draws (--labels)"
    return f"The risk of {told} is not proven yet: it takes {more}, or it is larger."


def percent(value: Fraction, *, rounding: str = ROUND_CEILING) -> str:
    """All digits that it has: a confidence of 0.9999999 is no 100 %, and a risk is not rounded to a smaller one. What has no end is cut after six, upwards or as said."""
    rest = value.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    with localcontext() as context:
        context.prec, context.rounding = (400, ROUND_CEILING) if rest == 1 else (6, rounding)
        digits = Decimal((100 * value).numerator) / Decimal((100 * value).denominator)
    text = f"{digits:f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} %"


def percent_above(value: Fraction) -> str:
    """A bound in words, with two decimals: rounded upwards, because what is said must not be less than what is proven."""
    return _hundredths(math.ceil(10_000 * value))


def percent_below(value: Fraction) -> str:
    """A lower limit in words, with two decimals: rounded downwards."""
    return _hundredths(max(0, math.floor(10_000 * value)))


def average_above(count: Fraction) -> str:
    """An average of counts, to a tenth and never too small."""
    tenths = math.ceil(10 * count)
    return f"{tenths // 10:,}" if tenths % 10 == 0 else f"{tenths / 10:,.1f}"


def percent_about(value: float, *, decimals: int = 1) -> str:
    """A share that is no bound: rounded to the nearest."""
    return f"{100 * value:.{decimals}f} %"


def plain_percent(value: float) -> str:
    """A share as a file or a command says it, in its own decimals: 0.02 is 2 %."""
    return percent(Fraction(str(value)))


def number_above(value: float, *, digits: int = 4) -> str:
    """An upper limit that is no share, with so many digits: rounded upwards, as a number that a recipe takes."""
    if not math.isfinite(value):
        return f"{value}"
    return f"{float(Context(prec=digits, rounding=ROUND_CEILING).create_decimal(Decimal(value))):g}"


def _hundredths(count: int) -> str:
    return f"{count // 100}.{count % 100:02d} %"
