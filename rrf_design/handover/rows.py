"""One delivered row: what may be handed over of an item, and why, and who should look at it first.

`answer` is empty unless it may be believed: the verdict is certified, or it is ambiguous and every explanation has the same
value. A person who is trusted and whose check states the delivered value decides the item: what they said is the value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rrf_design.decisive import decided_premise, decided_verdict
from rrf_design.handover.readings import Reading, plain
from rrf_design.problem import Problem
from rrf_design.repairing.contract import Repair
from rrf_design.responses.open_text import Classes
from rrf_design.responses.parsed import Parser
from rrf_design.responses.worded import ChoiceParser, YesNoParser
from rrf_design.verdict import Verdict


@dataclass(frozen=True, slots=True)
class DeliveredRow:
    """What one item came to. `rank` is not here: it compares items."""

    id: str
    verdict: Verdict
    assumes: str = ""
    answer: Any = None
    raw: Any = None
    bound: float | None = None
    changed: bool | None = None
    cost: float = 0.0
    reason: str = ""
    wrong: tuple[str, ...] = ()
    """Nodes whose answers are found wrong."""
    unread: tuple[str, ...] = ()
    """Nodes without an answer that could be read."""
    gamma: float = 0.0
    structure: str = ""
    misfit: float = 0.0
    """How far the answers are from agreeing with any explanation."""
    check: str | None = None
    """The cheapest check by a person that would decide the item; None where there is none."""
    worth: float = 0.0
    """Items that this check decides per cost of it: what the order of the review list is made from."""

    def to_json(self) -> dict[str, Any]:
        found = {name: getattr(self, name) for name in self.__slots__}
        return {**found, "verdict": self.verdict.value, "wrong": list(self.wrong), "unread": list(self.unread)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> DeliveredRow:
        changes = {
            "verdict": Verdict(data["verdict"]),
            "wrong": tuple(data["wrong"]),
            "unread": tuple(data["unread"]),
        }
        return cls(**{**data, **changes})


def shown_value(value: tuple[float, ...], parser: Parser | None, classes: Classes) -> Any:
    """A value in the words of its parser: a class, a choice, yes or no, else numbers."""
    if parser is not None and parser.dim == 0:
        return _only(classes.labels, value)
    inner = getattr(parser, "of", parser)
    if isinstance(inner, ChoiceParser):
        return _only(inner.options, value)
    if isinstance(inner, YesNoParser) and all(min(abs(x), abs(x - 1)) < 0.5 for x in value):
        return " ".join("yes" if x > 0.5 else "no" for x in value)
    return plain(value)


def _only(names: tuple[str, ...], value: tuple[float, ...]) -> Any:
    """The name whose coordinate is the one that is one; the numbers themselves where they are near no name."""
    chosen = [name for name, x in zip(names, value, strict=True) if x > 0.5]
    return chosen[0] if len(chosen) == 1 else plain(value)


def repaired_row(
    name: str,
    repair: Repair,
    *,
    node: str,
    parser: Parser | None,
    classes: Classes,
    readings: Mapping[str, Reading],
) -> DeliveredRow:
    """The row of an item that was repaired."""
    value = repair.repaired.get(node)
    believed = repair.verdict in (Verdict.CERTIFIED, Verdict.AMBIGUOUS) and value is not None
    reading = readings.get(node)
    return DeliveredRow(
        id=name,
        verdict=repair.verdict,
        assumes=repair.assumes,
        answer=shown_value(value, parser, classes) if believed and value is not None else None,
        raw=None if reading is None else reading.raw,
        bound=repair.bounds.get(node) if believed else None,
        changed=(node in repair.support or node in repair.erased) if believed else None,
        reason=repair.reason,
        wrong=repair.support,
        unread=tuple(repair.erased),
        gamma=repair.gamma,
        misfit=repair.residual,
    )


def reviewed_row(
    name: str,
    problem: Problem,
    check: str,
    value: Any,
    *,
    said: Any,
    reading: Reading | None,
) -> DeliveredRow:
    """The row of an item that a trusted check decides: its value is the value, whatever was answered."""
    parsed = None if reading is None else reading.parsed
    same = parsed is not None and value in (parsed.value, parsed.label)
    return DeliveredRow(
        id=name,
        verdict=decided_verdict(problem),
        assumes=decided_premise(check),
        answer=said,
        raw=None if reading is None else reading.raw,
        bound=0.0,
        changed=not same,
        reason=f"{check} states the value.",
        gamma=0.0,
    )


def unusable_row(name: str, reason: str, *, unread: tuple[str, ...] = (), raw: Any = None) -> DeliveredRow:
    """The row of an item that nothing can be said about."""
    return DeliveredRow(id=name, verdict=Verdict.INCOMPLETE, reason=reason, unread=unread, raw=raw)
