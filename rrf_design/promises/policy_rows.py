"""Rows of a table that a policy delivers: what it accepts, what it holds back, what the pilot or a person knows, and who should be looked at first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rrf_design.errors import InputError
from rrf_design.promises.family import LastRung
from rrf_design.promises.playing import PlayedPolicy
from rrf_design.promises.sheets import SheetRow
from rrf_design.promises.truths import GoldRule, Truth, cannot_tell, read_truth, shown
from rrf_design.verdict import Verdict


def delivered_row(
    row: SheetRow, played: PlayedPolicy, at: int, verdict: tuple[Verdict, str], data: Mapping[str, Any]
) -> dict[str, Any]:
    value, cost = played.values[at], float(played.cost[at])
    if value is None:
        where = "goes to a person" if played.policy.last is LastRung.PERSON else "is withheld"
        found = held_back(
            row, cost, f"no gate of the policy accepts its answers; it {where}. {_sentence_case(verdict[1])}"
        )
        return {**found, "verdict": str(verdict[0])}
    first = row.implied.get(row.shape.node)
    return {
        "answer": shown(value, row.parser),
        "raw": row.raw or (None if first is None else shown(first, row.parser)),
        "verdict": str(verdict[0]),
        "assumes": f"the policy keeps its risk of {data['risk']} ({data['statement']}, confidence {data['confidence']})",
        "bound": None,
        "changed": first is None or shown(first, row.parser) != shown(value, row.parser),
        "cost": cost,
        "reason": _reason(played, at),
    }


def _sentence_case(words: str) -> str:
    return words[:1].upper() + words[1:]


def _reason(played: PlayedPolicy, at: int) -> str:
    if at not in played.by_check:
        more = f" with {', '.join(played.more[at])}" if played.more and played.more[at] else ""
        return f"delivered under the policy{more}: {played.name}"
    where = ", where no gate of the policy accepts the answers" if played.policy.order else ""
    return f"the check {played.more[at][-1]!r} states the value{where}"


def held_back(row: SheetRow, cost: float, reason: str) -> dict[str, Any]:
    first = row.implied.get(row.shape.node)
    raw = row.raw or (None if first is None else shown(first, row.parser))
    return {
        "answer": None,
        "raw": raw,
        "verdict": str(Verdict.INCOMPLETE),
        "assumes": "",
        "bound": None,
        "changed": None,
        "cost": cost,
        "reason": reason,
    }


def looked_up(row: SheetRow, cell: Any, rule: GoldRule, who: str) -> dict[str, Any]:
    """An item whose truth somebody knows: that is what is delivered."""
    if cannot_tell(cell):
        return held_back(row, 0.0, f"{who} is that nobody can tell")
    truth = truth_of(row, cell, rule)
    if truth is None:
        return held_back(row, 0.0, "an item of the pilot whose truth is not at hand; give the review file of the pilot")
    said = truth.values[0]
    first = row.implied.get(row.shape.node)
    return {
        "answer": shown(said, row.parser),
        "raw": row.raw or (None if first is None else shown(first, row.parser)),
        "verdict": str(Verdict.CERTIFIED),
        "assumes": f"{who} is right",
        "bound": 0.0,
        "changed": not truth.right(first),
        "cost": 0.0,
        "reason": f"{who} states the value",
    }


def ranked(rows: Sequence[dict[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    """Who should be looked at first: what waits for a person, the worst verdict first, then by what was spent on it."""
    waiting = [at for at, row in enumerate(rows) if row["answer"] is None]
    order = sorted(waiting, key=lambda at: (-Verdict(rows[at]["verdict"]).rank, -rows[at]["cost"], at))
    place = {at: number for number, at in enumerate(order, start=1)}
    return tuple({**row, "rank": place.get(at)} for at, row in enumerate(rows))


def truth_of(row: SheetRow, cell: Any, rule: GoldRule) -> Truth | None:
    """What a cell says is right of an item; its name where it can't be read."""
    try:
        return read_truth(cell, row.parser, rule.within(row.shape.problem.delta))
    except InputError as error:
        raise InputError(f"item {row.id!r}: {error}") from None
