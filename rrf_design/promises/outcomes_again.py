"""Do the pilot's items still come out as they did? Recorded answers have no models that a policy could be bound to; but the pilot's own items are among them.

A policy that was tested on other answers, or against other truths, than those that are there now promises nothing about the rest of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rrf_design.errors import Refused
from rrf_design.promises.family import LadderPolicy
from rrf_design.promises.playing import LastPrices, play
from rrf_design.promises.sheets import AnswerSheet
from rrf_design.promises.truths import Said, Truth

WORDS = {"r": "right", "w": "wrong", "-": "not delivered", "d": "delivered"}


def refuse_other_outcomes(
    data: Mapping[str, Any], pilot: AnswerSheet, truths: Sequence[Truth | None], *, last: LastPrices, recorded: bool
) -> None:
    """Refused where an item of the pilot, in the order of the draw, comes out otherwise than its policy says; items that are not recorded, or whose truth is not at hand, are passed over; not all of them may be, where answers are recorded and the pilot's were bought."""
    policy = LadderPolicy.from_json(data["ladder"])
    marks = next(entry["marks"] for entry in data["policies"] if entry["policy"] == policy.name)
    (played,) = play([policy], pilot, last=last)
    compared = 0
    for row, held, before, value, delivered, truth in zip(
        pilot.rows, played.held, marks, played.values, played.delivered, truths, strict=True
    ):
        if not (row.absent | row.lost).isdisjoint(held):
            continue
        compared += 1
        now = "-" if not delivered else _mark(value, truth, unknown="d" if before == "-" else before)
        if before != now:
            raise Refused(
                f"item {row.id!r} of the pilot was {WORDS[before]} when the policy was tested, and is {WORDS[now]} now: its recorded answers or its truth have"
                " changed since, and what was proven with the old ones does not hold for these; pilot it anew"
            )
    if data["models"] is not None and recorded and not compared:
        raise Refused(
            "the pilot asked its models live, and none of its items is among the recorded answers, so nothing says that these are by the same models;"
            " record the pilot's items too, or run it with the models"
        )


def _mark(value: Said | None, truth: Truth | None, *, unknown: str) -> str:
    return unknown if truth is None else "r" if truth.right(value) else "w"
