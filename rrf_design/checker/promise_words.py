"""Promises in words, with their denominator (docs/algorithms.md, fact 32): a reader takes any
promise for the strongest one unless it says which it is.

Sentences are rendered from figures when a document is read; numbers in them are rounded to the side
that claims less.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

from rrf_design.checker._tails import PromiseScope

VOIDED_BY = (
    "another model, prompt, check or price (the recipe's digest), another program of a check (its digest), other items"
    " (the population's digest), or a second look; drift, of a model or of what a check asks outside, is watched by"
    " audits"
)
CHECK_EVERYTHING = "check everything"
PROVEN = "the cheapest policy that is proven to keep the risk"
UNPROVEN = "no policy is proven to keep the risk"
POLICY_INFORMATION = (
    *("measured", "stronger", "leaks", "twins", "order", "aside", "runs", "stopped_because", "truth"),
    *("stratify", "recipe.name", "population.table", "choice.ordered_by"),
)
"""Told beside the promise, and neither proven nor needed for it."""
POLICY_TRUST = (
    *("models", "programs", "recipe.digest", "population.size", "population.digest", "strata", "drawn"),
    *("choice.streams", "check_cost", "choice.policies[].cost", "choice.policies[].delivers", "choice.depth", "looks"),
)
"""What the promise rests on, beside the truths that the marks stand for: nobody can redo it from
the document.
"""
AUDIT_INFORMATION = ("risk", "table", "columns", "truth", "items")
"""Told beside the bound.

Columns are under the digest of the deliveries: they are proven with them, where these are at hand.
"""


def promise(
    risk: Fraction,
    scope: PromiseScope,
    *,
    confidence: Fraction,
    delivers: int | None = None,
    checked_share: Fraction = Fraction(0),
) -> str:
    """What may be said once it is proven that at most this share of the scope's items is wrong.

    `delivers`: how many of all items the policy delivers, where that is known. `checked_share`: of
    what the policy accepts, so much is checked at random; what that leaves of a finite data set is
    proven on average over which items are drawn.
    """
    rate, sure = percent(risk), percent(confidence, rounding=ROUND_FLOOR)
    if scope.statement == "fresh":
        what = "the items delivered" if scope.delivered else "all items"
        return (
            f"Of {what}, at most {rate} are wrong, with confidence {sure}, for items drawn like the {scope.piloted:,}"
            " of the pilot."
        )
    if scope.statement == "rest":
        outside = f"at most {rate} are wrong, with confidence {sure}."
        if scope.delivered:
            return f"Of the items delivered outside the pilot, {outside}"
        total = scope.population - scope.piloted
        return (
            f"Of the {total:,} items outside the pilot, at most {int(risk * total):,} ({rate}) are wrong, with"
            f" confidence {sure}."
        )
    where = {
        "policy": "under this policy, the pilot's counted as the policy left them",
        "file": "in the file as it is handed over, with what the pilot found wrong corrected",
    }[scope.statement]
    size = delivers if scope.delivered else scope.population
    if size is None:
        return f"Of the items delivered, at most {rate} are wrong {where}, with confidence {sure}."
    what, most = "items delivered" if scope.delivered else "items", f"{int(risk * size):,}"
    if checked_share:
        most, where = average_above(risk * size), f"on average over what is checked at random {where}"
    return f"Of the {size:,} {what}, at most {most} ({rate}) are wrong {where}, with confidence {sure}."


def looks_words(document: Mapping[str, Any]) -> str:
    """What the sentence of a policy adds where its table was looked at more than once; empty for
    the only look, and where nothing is promised.
    """
    count = (document.get("looks") or {}).get("count", 1)
    if count == 1 or document["policy"] == CHECK_EVERYTHING:
        return ""
    return (
        f" This table was looked at {count} times: the confidence is that of one look alone, not of the best of them."
    )


def nothing_delivered(why: str) -> str:
    """The sentence of a policy that has everything checked."""
    return f"{CHECK_EVERYTHING.capitalize()}: {why}."


def why_everything(cost: float, check: float) -> str:
    """Why everything is checked though a policy is proven."""
    return f"the cheapest proven policy costs {cost:.4g} an item, a check {check:.4g}"


def audit_sentence(
    population: int, drawn: int, wrong: int, bound: int, confidence: Fraction, *, checked: int = 0
) -> str:
    """What may be said of an audit's bound; `checked` values more were delivered, and are right if
    those who checked them are.
    """
    whole = population + checked
    rate = percent_above(Fraction(bound, whole) if whole else Fraction(0))
    if not drawn:
        return (
            f"Of the {population:,} values delivered, any number may be wrong: no drawn item has a label that counts"
            " yet."
        )
    among = f"drawn at random from the {population:,} that nobody had checked" if checked else "drawn at random"
    return (
        f"Of the {whole:,} values delivered, at most {bound:,} ({rate}) are wrong, with confidence"
        f" {percent(confidence)}: {wrong:,} of {drawn:,} {among} {'was' if wrong == 1 else 'were'} wrong."
    )


def policy_words(seed: int, *, looks: int = 1) -> str:
    """What `verify` leaves to the reader of a policy."""
    other = "no other pilot of it" if looks == 1 else f"no other pilot of it than the {looks} that are told"
    return (
        f"the truths of the pilot, that table, recipe and models are those that are named, and that {_seeded(seed)},"
        f" size and order of tests were fixed before any truth was seen, with {other}"
        f" ({', '.join(POLICY_TRUST)}); information, not proven: {', '.join(POLICY_INFORMATION)}"
    )


def audit_words(seed: int, *, same: bool = False) -> str:
    """What `verify` leaves to the reader of an audit. `same`: the delivered table was compared."""
    table = "" if same else ", that the delivered table is the one whose digest is named,"
    return (
        f"the labels{table} and that {_seeded(seed)}, was fixed before anything was looked at, with no other draw"
        " from these deliveries tried; information, not proven:"
        f" {', '.join(name for name in AUDIT_INFORMATION if not (same and name == 'columns'))}"
    )


def delivery_sentence(
    *,
    rows: int,
    labels: int,
    wrong_found: int,
    remaining: int,
    allowed: int,
    reached: bool,
    confidence: Fraction,
    checked: int = 0,
    known: int = 0,
    withheld: int = 0,
    untold: int = 0,
) -> str:
    """What may be said of a table of which so many rows were looked at.

    `rows`: those handed over, the denominator; `remaining` of them nobody checked; `checked` were
    decided by a check, `known` by labels from before; `withheld` are empty and no part of the
    denominator; of `untold` more that are part of it nobody could tell.
    """
    sure = f"confidence {percent(confidence, rounding=ROUND_FLOOR)}"
    found = f"{labels:,} looked at, {wrong_found:,} wrong found and fixed"
    these = f"these {rows:,} rows" if rows != 1 else "this 1 row"
    is_are = "is" if min(allowed, remaining) == 1 else "are"
    if not reached:
        wrong = f"{allowed:,} of {these} {'is' if allowed == 1 else 'are'} wrong"
        told = f"Not proven yet that at most {wrong} ({sure}): {found}"
    elif remaining == 0:
        told = f"None of {these} is wrong, if what people and checks said is right: {found}"
    elif remaining <= allowed:
        told = f"At most {remaining:,} of {these} {is_are} wrong, because nobody checked only {remaining:,}: {found}"
    else:
        told = f"At most {allowed:,} of {these} {is_are} wrong ({sure}): {rows:,} rows, {found}"
    more = [f"{known:,} known from earlier labels"] * (known > 0) + [f"{checked:,} decided by a check"] * (checked > 0)
    more += [f"{untold:,} of them empty because nobody could tell"] * (untold > 0)
    told = ", ".join([told, *more]) + "."
    if withheld:
        is_are = "row is" if withheld == 1 else "rows are"
        told += f" {withheld:,} more {is_are} handed over empty, and no part of this count."
    return told


def delivery_words(seed: int, *, same: bool) -> str:
    """What `verify` leaves to the reader of a delivery. `same`: the table was compared."""
    table = "" if same else " that the delivered table is the one whose digest is named (--delivered compares it),"
    return (
        f"the labels of people, what checks decided,{table} and that {_seeded(seed)}, and what was to be delivered of"
        " every row were fixed before the first random row was looked at, with no other draw tried; information, not"
        " proven: run, truth, spent, label_cost, recipe.name, population.table"
    )


def _seeded(seed: int) -> str:
    """The seed that nobody chose leaves least to trust."""
    return f"seed {seed}{', the default' if seed == 0 else ', which somebody chose'}"


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
    """All digits that it has: a confidence of 0.9999999 is no 100 %, and a risk is not rounded to a
    smaller one. What has no end is cut after six, upwards or as said.
    """
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
    """A bound in words, with two decimals: rounded upwards, because what is said must not be less
    than what is proven.
    """
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


def number_above(value: float) -> str:
    """An upper limit that is no share, with four digits: rounded upwards, as a number that a
    recipe takes.
    """
    if not math.isfinite(value):
        return f"{value}"
    return f"{float(Context(prec=4, rounding=ROUND_CEILING).create_decimal(Decimal(value))):g}"


def _hundredths(count: int) -> str:
    return f"{count // 100}.{count % 100:02d} %"
