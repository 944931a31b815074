"""What a run got right, field by field, against the truth that the run itself never saw.

The theorem promises: where the margin is certified and at most k answers are wrong, the repair is the truth. So every field
is put into one of the boxes below, and `BROKEN` must stay empty: it would be a bug, not bad luck.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from rrf_design.demo.questions import Topic

if TYPE_CHECKING:
    from rrf_design.acquisition import Acquisition, ItemResult


class FieldVerdict(StrEnum):
    CLEAN = "all right"
    REPAIRED = "repaired, as guaranteed"
    BROKEN = "PROMISE BROKEN"
    """Certified, within the corruption budget, and still not the truth. Never to be seen."""
    LUCKY = "repaired, not guaranteed"
    NOTICED = "too many wrong, noticed"
    """More wrong answers than the corruption budget, and no error on so few nodes explains what was measured."""
    FOOLED = "too many wrong, fooled"
    """More wrong answers than the corruption budget, and they agree on something false."""
    UNCERTAIN = "not repaired, nothing promised"


@dataclass(frozen=True, slots=True)
class FieldJudgement:
    """One field: what was asked, what was wrong, and what became of it."""

    item: str
    verdict: FieldVerdict
    asked: int
    wrong: tuple[str, ...]
    unread: tuple[str, ...]
    repaired_wrong: tuple[str, ...]
    """Wrong answers whose repaired value is the truth."""
    certified: bool
    within: bool
    """There are answers, and at most k of them are wrong (those that could not be read are missing, not wrong)."""


@dataclass(frozen=True, slots=True)
class Grade:
    fields: tuple[FieldJudgement, ...]

    def count(self, *verdicts: FieldVerdict) -> int:
        return sum(field.verdict in verdicts for field in self.fields)

    @property
    def within(self) -> int:
        return sum(field.within for field in self.fields)

    @property
    def wrong(self) -> int:
        return sum(len(field.wrong) for field in self.fields)

    @property
    def repaired(self) -> int:
        return sum(len(field.repaired_wrong) for field in self.fields)

    @property
    def unread(self) -> int:
        return sum(len(field.unread) for field in self.fields)

    @property
    def asked(self) -> int:
        return sum(field.asked for field in self.fields)

    @property
    def kept(self) -> bool:
        """No promise was broken."""
        return self.count(FieldVerdict.BROKEN) == 0


def judge(run: Acquisition, topics: Mapping[str, Topic]) -> Grade:
    """Compare every field of a run with the truth."""
    return Grade(tuple(_field(entry, topics[entry.item]) for entry in run.items))


def _field(entry: ItemResult, topic: Topic) -> FieldJudgement:
    nodes = topic.problem.node_by_id
    wrong = tuple(name for name, value in entry.answers.items() if not _same(value, topic.truth[name]))
    unread = tuple(name for name in entry.failed if name in nodes)
    repair: Mapping[str, Any] = entry.repair or {}
    repaired: Mapping[str, Any] = repair.get("repaired") or {}
    # Values that nothing determines are not claimed, so they can't be wrong.
    given = {name: value for name, value in repaired.items() if value is not None}
    right = bool(given) and all(_same(value, topic.truth[name]) for name, value in given.items())
    within = bool(entry.answers) and len(wrong) <= entry.k
    sure = bool(repair.get("guaranteed"))
    return FieldJudgement(
        item=entry.item,
        verdict=_verdict(right=right, sure=sure, within=within, wrong=bool(wrong), repair=repair),
        asked=len(entry.answers) + len(unread),
        wrong=wrong,
        unread=unread,
        repaired_wrong=tuple(n for n in wrong if repaired.get(n) is not None and _same(repaired[n], topic.truth[n])),
        certified=entry.reached,
        within=within,
    )


def _verdict(*, right: bool, sure: bool, within: bool, wrong: bool, repair: Mapping[str, Any]) -> FieldVerdict:
    if right and not wrong:
        return FieldVerdict.CLEAN
    if right:
        return FieldVerdict.REPAIRED if sure and within else FieldVerdict.LUCKY
    if within:
        return FieldVerdict.BROKEN if sure else FieldVerdict.UNCERTAIN
    if not repair.get("repaired"):
        return FieldVerdict.UNCERTAIN
    return FieldVerdict.FOOLED if _quiet(repair) else FieldVerdict.NOTICED


def _quiet(repair: Mapping[str, Any]) -> bool:
    """The repair gives no sign that something is wrong."""
    return repair.get("certainty") not in ("unexplained", "ambiguous", "undecided")


def _same(value: Sequence[float] | None, truth: Sequence[float]) -> bool:
    return value is not None and all(abs(x - y) < 1e-6 for x, y in zip(value, truth, strict=True))
