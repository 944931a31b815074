"""What may be said about a run under a policy: its promise, with the denominator that was tested, what went to people, and what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from rrf_design.promises.family import CHECK_EVERYTHING, LastRung
from rrf_design.risk import (
    Among,
    Statement,
)
from rrf_design.risk.sentences import average_above, percent


@dataclass(frozen=True, slots=True)
class RunTotals:
    """What a run under a policy came to, for its sentence."""

    delivered: int
    to_people: int
    last: LastRung | None
    cost: float
    check_everything: float
    budget: float | None
    what: str = "values"
    waiting: int = 0
    """Of those that went to a person, how many are not decided yet."""
    untold: int = 0
    """How many of them nobody could decide."""

    @property
    def over_budget(self) -> float:
        """What it costs more than the budget, calls and people together."""
        return 0.0 if self.budget is None else max(0.0, self.cost - self.budget)


def run_sentence(document: Mapping[str, Any], totals: RunTotals) -> str:
    """What may be said about the delivered values, with the denominator that was tested."""
    if document["policy"] == CHECK_EVERYTHING:
        go = "value goes" if totals.to_people == 1 else f"{totals.what} go"
        return f"Nothing is delivered unchecked: {totals.to_people:,} {go} to a person, for {totals.check_everything:,.2f}{_budget(totals)}."
    risk, sure = Fraction(str(document["risk"])), Fraction(str(document["confidence"]))
    among_all = document["among"] == str(Among.ALL)
    size = totals.delivered + totals.to_people if among_all else totals.delivered
    most = int(risk * size)
    person = totals.last is LastRung.PERSON
    done = "delivered" if not (among_all and totals.waiting) else "delivered or waiting"
    noun = f"{size:,} {totals.what} {done if person or not among_all else 'run under the policy'}"
    rate, sure_words = f"at most {most:,} ({percent(risk)}) are wrong", f"with confidence {percent(sure)}"
    statement = document["statement"]
    if statement == str(Statement.FRESH):
        drawn = len(document["drawn"])
        average = f"at most {average_above(risk * size)} ({percent(risk)}) are wrong"
        claim = f"Of the {noun}, {average} on average over such tables, {sure_words}, for items drawn like the pilot's {drawn:,}"
    elif statement == str(Statement.REST):
        claim = f"Of the {noun} outside the pilot, {rate}, {sure_words}"
    else:
        claim = str(document["sentence"]).rstrip(".")
    among = " of them" if person and among_all else ""
    against = f", against {totals.check_everything:,.2f} for checking all" if person else ""
    return f"{claim}; {totals.to_people:,}{among} {_gone(totals)}; cost {totals.cost:,.2f}{_budget(totals)}{against}."


def _gone(totals: RunTotals) -> str:
    """What became of the items that no gate accepted, in words; what is not decided yet is not delivered yet."""
    if totals.last is not LastRung.PERSON:
        return "is withheld" if totals.to_people == 1 else "are withheld"
    if totals.waiting:
        left = "all of them" if totals.waiting == totals.to_people > 1 else f"{totals.waiting:,} of these"
        return f"went to a person, and {'it waits' if totals.to_people == 1 else f'{left} wait'} for an answer"
    return f"went to a person{f', who could not tell {totals.untold:,}' if totals.untold else ''}"


def _budget(totals: RunTotals) -> str:
    return "" if totals.budget is None else f" of {totals.budget:,.2f}"
