"""What may be believed: one verdict for everything that speaks about answers, decided here and
nowhere else.

`consistent` needs three things together: a proven error bound that reaches the goal, answers that
were asked and read, and an explanation of what was measured with at most k wrong units. It is right
if that premise holds, and consistency alone never shows that it does. `checked` needs no premise
about answers: a trusted check states the value. `repair` brings the evidence, `acquire` and the
delivered table repeat the verdict, and exit codes follow it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING

from rrf_design.checker.wording import assumption
from rrf_design.goal import Goal

if TYPE_CHECKING:
    from rrf_design.operators import Operator


class Verdict(StrEnum):
    """From what may be relied on to what must not; a data set is as good as the worst of its
    items.
    """

    CHECKED = "checked"
    """A person, an execution or a known value decides the delivered value, whatever was
    answered.
    """
    CONSISTENT = "consistent"
    """At most k wrong answers explain everything, and all such explanations agree within the bound:
    right if that premise holds.
    """
    AMBIGUOUS = "ambiguous"
    """The data fit, but more than one explanation remains; values are given only where all
    explanations agree.
    """
    INCOMPLETE = "incomplete"
    """What was really bought and read does not reach the goal, or a limit ended the search."""
    CONTRADICTED = "contradicted"
    """Nothing within the assumptions explains what was measured. There are no repaired values."""

    @classmethod
    def _missing_(cls, value: object) -> Verdict | None:
        """Documents and journals of 0.2 said `certified` of values."""
        return cls.CONSISTENT if value == "certified" else None

    rank: int
    """Its place in this order."""
    passes: bool
    """Whether `repair` and `acquire` exit with 0: checked, or consistent under what is assumed."""

    def __new__(cls, value: str) -> Verdict:
        made = str.__new__(cls, value)
        made._value_ = value
        made.rank = len(cls.__members__)
        made.passes = value in ("checked", "consistent")
        return made


class Explained(StrEnum):
    """What a decoder established about the data."""

    UNIQUELY = "uniquely"
    """One minimal set of at most k wrong units explains them: proven."""
    OTHERWISE = "otherwise"
    """At most k wrong units explain them; others may too."""
    NOT = "not"
    """Nothing within the assumptions does: proven."""
    OPEN = "open"
    """Not decided: a limit ended the search, rounding hides the answer, or the method promises
    nothing.
    """


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a verdict is decided from."""

    explained: Explained
    goal: Goal
    lower: float
    """Proven margin of what was asked and read; 0 where nothing is proven."""
    robust_lower: float
    """The same with the uncertainty of relations taken off."""
    bound: float | None
    """Proven bound on the error of the values, noise and uncertainty included; None where there is
    none.
    """
    exact: bool = False
    """The bound is no more than rounding: explanations that differ have the same values."""
    blank: tuple[str, ...] = ()
    """Values that are wanted and that nothing determines."""
    broken: bool = False
    """No field within the bound keeps to what is declared of the true one."""


def decide(evidence: Evidence) -> Verdict:
    """The verdict; see the table in docs/concepts.md."""
    if evidence.explained is Explained.NOT or evidence.broken:
        return Verdict.CONTRADICTED
    if evidence.explained is Explained.OPEN:
        return Verdict.INCOMPLETE
    goal = evidence.goal
    if not goal.named:
        sure = evidence.explained is Explained.UNIQUELY or evidence.exact
        certain = evidence.bound is not None and sure and not evidence.blank
        return Verdict.CONSISTENT if certain else Verdict.AMBIGUOUS
    if evidence.bound is None or not goal.met(
        lower=evidence.lower, robust_lower=evidence.robust_lower, bound=evidence.bound
    ):
        return Verdict.INCOMPLETE
    return Verdict.AMBIGUOUS if evidence.blank else Verdict.CONSISTENT


_TROUBLES = (Verdict.CONTRADICTED, Verdict.AMBIGUOUS, Verdict.INCOMPLETE, Verdict.CONSISTENT, Verdict.CHECKED)


def dispute(verdict: Verdict, misfit: float, blamed: int) -> tuple[int, float, int]:
    """The order of disputes among items that cost the same to settle; smaller comes first, for
    money and for people alike.

    Where something is surely wrong, then what is open, then what was hardly asked; among those the
    ones whose answers are furthest from any explanation (to nine digits: rounding is no reason),
    then those of which more answers are found wrong.
    """
    return _TROUBLES.index(verdict), -float(f"{misfit:.9g}") if misfit > 1e-9 else 0.0, -blamed


def worst(verdicts: Iterable[Verdict]) -> Verdict | None:
    """The verdict of a data set: that of its worst item; None where there is no item."""
    return max(verdicts, key=lambda verdict: verdict.rank, default=None)


def counted(verdicts: Iterable[Verdict]) -> dict[str, int]:
    """How many of each, all named."""
    found = Counter(verdicts)
    return {verdict.value: found[verdict] for verdict in Verdict}


def table_sentence(verdicts: Mapping[str, int], *, item: str = "row", assumes: str = "") -> str:
    """What may be said of many rows that nobody has tested by sampling.

    `verdicts` counts them by verdict; `assumes` is the premise that all consistent ones share.

    >>> print(table_sentence({"checked": 1, "incomplete": 2}))
    3 rows: 1 checked, 2 incomplete.
    """
    counts = {verdict: verdicts.get(verdict.value, 0) for verdict in Verdict}
    total, consistent = sum(counts.values()), counts[Verdict.CONSISTENT]
    still = total - consistent - counts[Verdict.CHECKED]
    premise = f"in each {assumes}" if assumes else "what each assumes holds"
    parts = [f"{counts[Verdict.CHECKED]} checked"] if counts[Verdict.CHECKED] else []
    parts += [f"{consistent} consistent (right if {premise})"] if consistent else []
    if still:
        named = [f"{count} {verdict}" for verdict, count in counts.items() if count and not verdict.passes]
        parts.append(f"{still} open ({', '.join(named)})" if len(named) > 1 else named[0])
    found = f"{total} {item}{'s' * (total != 1)}: {', '.join(parts) or 'none'}."
    if consistent:
        found += (
            " Whether it is wrong nobody has tested"
            if consistent == 1
            else (f" How many of the {consistent} are wrong nobody has tested")
        )
        found += _after_looks(consistent, total, still) + "."
    return found


LOOKS = 30
"""So many random checks are spoken of where a table has not been tested."""


def _after_looks(consistent: int, total: int, still: int) -> str:
    """What random checks with none wrong would leave, and how many `deliver` needs, by the bounds
    that they use.
    """
    from rrf_design.risk import LARGEST, bound, boundary

    if not LOOKS < consistent <= LARGEST:
        return ""
    left = bound(consistent, LOOKS, 0, 0.95)
    needed = still + boundary(consistent, total // 20, Fraction(1, 20), most=0).needed(0)
    return (
        f"; {LOOKS} random checks with none wrong would leave at most {left} of them wrong (confidence 95 %);"
        f" `rrf-design deliver --risk 5%` needs {needed} looks or more"
    )


def assumed(operator: Operator, k: int, noise: str = "", *, unread: Collection[str] = ()) -> str:
    """The premise of a design: units are counted over what was asked and read, checks over those
    that may be wrong.
    """
    premise = operator.premise
    read = [name for name in operator.node_ids if name not in unread]
    checks = sum(name in premise.suspects for name in operator.block_ids)
    return assumption(
        k,
        premise.count(read),
        noise,
        called=premise.called,
        wrong_checks=min(premise.wrong_checks, checks),
        checks=checks,
        sure=premise.sure,
    )
