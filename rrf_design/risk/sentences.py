"""A promise in words, with its denominator (docs/algorithms.md, fact 32): a reader takes any promise for the strongest one unless it says which it is."""

from __future__ import annotations

from fractions import Fraction

from rrf_design.risk.statements import Among, Limit, Scope, Statement


def promise(limit: Limit, scope: Scope, *, confidence: Fraction, delivers: int | None = None) -> str:
    """What may be said once the limit is proven. `delivers`: how many of all items the policy delivers, where that is known."""
    rate, sure = percent(limit.share), percent(confidence)
    delivered = limit.among is Among.DELIVERED
    fault = limit.column
    if scope.statement is Statement.FRESH:
        what = "the items delivered" if delivered else "all items"
        return f"Of {what}, at most {rate} are {fault}, with confidence {sure}, for items drawn like the {scope.piloted:,} of the pilot."
    total = delivers if delivered else scope.population
    where = {
        Statement.POLICY: "under this policy, the pilot's counted as the policy left them",
        Statement.FILE: "in the file as it is handed over, with what the pilot found wrong corrected",
        Statement.REST: "outside the pilot",
    }[scope.statement]
    if total is None or (delivered and scope.statement is Statement.REST):
        return f"Of the items delivered, at most {rate} are {fault} {where}, with confidence {sure}."
    if scope.statement is Statement.REST:
        total -= scope.piloted
    what = "items delivered" if delivered else "items"
    return f"Of the {total:,} {what}, at most {int(limit.share * total):,} ({rate}) are {fault} {where}, with confidence {sure}."


def percent(value: Fraction) -> str:
    return f"{float(100 * value):g} %"
