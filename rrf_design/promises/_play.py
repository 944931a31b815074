"""Policies played on recorded answers, by the product's own decisions: `repair` and its verdict,
item by item.

An acceptance rule "consistent at k within T" asks node after node and stops as soon as its outcome
is certain. With t of T answers held, u of them unreadable (which count as wrong), it accepts when
the verdict on those t is consistent at k − u − (T − t): whatever the others say, no more than k of
T are then wrong. It gives up when they are contradicted at k − u: more answers only add
contradictions. A cascade with several stages (T, k) goes on while one of them is open. A lead is
counted over what voices say.

What an acceptance rule does not accept may escalate on to a design with checks, bought one step
after the other. A check that decides is the value; else the verdict on all that is held, answers
and checks, at that stage's k decides as above, and what is contradicted is given up unless a check
is left that could decide it. An item that has none of the checks does not escalate.

Where every answer is to the same question and nothing is noisy, explanations are camps of equal
answers, and `rrf_design.risk.replay` plays all cascades at once: the fast path. Tests hold both
against each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from rrf_design.errors import InputError
from rrf_design.promises._decisions import HeldDecisions
from rrf_design.promises._policies import CascadePolicy, LastStage, RuleKind
from rrf_design.promises._sheets import AnswerSheet
from rrf_design.promises._truths import Said, Truth
from rrf_design.risk import UNREADABLE, replay

Floats = NDArray[np.float64]
Marks = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class PlayedPolicy:
    """What a policy did on each item of a sheet; a policy as `rrf_design.risk` tests it.

    `delivered`: without a person's help.
    """

    policy: CascadePolicy
    cost: Floats
    delivered: Marks
    wrong: Marks
    values: tuple[Said | None, ...]
    asked: tuple[int, ...]
    """How many nodes were asked."""
    delivers: int | None = None
    more: tuple[tuple[str, ...], ...] = ()
    """What was bought of each item beyond those nodes; empty where the policy has no further
    steps.
    """
    by_check: frozenset[int] = frozenset()
    """Places of the items that a check decided."""

    def __post_init__(self) -> None:
        for array in (self.cost, self.delivered, self.wrong):
            array.setflags(write=False)

    @property
    def name(self) -> str:
        return self.policy.name

    @property
    def checked_share(self) -> Fraction:
        return self.policy.checked_share

    @property
    def held(self) -> list[tuple[str, ...]]:
        """Everything that was bought of each item: nodes, and checks."""
        first = [self.policy.order[:asked] for asked in self.asked]
        return [(*a, *b) for a, b in zip(first, self.more, strict=True)] if self.more else first

    @property
    def marks(self) -> str:
        """One letter an item: right, wrong, or - for not delivered."""
        return "".join("-" if not d else "w" if w else "r" for d, w in zip(self.delivered, self.wrong, strict=True))


@dataclass(frozen=True, slots=True)
class LastPrices:
    """What the last stage costs an item: a person's check, or keeping it back."""

    check: float
    withheld: float

    def of(self, last: LastStage) -> float:
        return self.check if last is LastStage.PERSON else self.withheld


def unrecorded(played: PlayedPolicy, sheet: AnswerSheet) -> Marks:
    """The items of which the policy asks for something that nobody recorded, or that a failed call
    left out: it can't be known what it would do with them.
    """
    rows = zip(sheet.rows, played.held, strict=True)
    return np.array([not (row.absent | row.lost).isdisjoint(held) for row, held in rows], dtype=bool)


def at_worst(played: PlayedPolicy, sheet: AnswerSheet) -> PlayedPolicy:
    """The same with those items delivered and wrong: what is missing in a record may be missing for
    what it would have said, and calls that fail while a pilot is bought need not fail in the run.
    """
    lost = unrecorded(played, sheet)
    return replace(played, delivered=played.delivered | lost, wrong=played.wrong | lost) if lost.any() else played


def play(
    policies: Sequence[CascadePolicy],
    sheet: AnswerSheet,
    *,
    last: LastPrices,
    truths: Sequence[Truth] | None = None,
    fast: bool | None = None,
) -> list[PlayedPolicy]:
    """Every policy on every item.

    Without truths nothing is marked wrong. `fast`: camps of equal answers (default: where they
    decide as verdicts do).
    """
    if truths is not None and len(truths) != len(sheet):
        raise InputError(f"{len(truths)} truths for {len(sheet)} items")
    quick = sheet.identity if fast is None else fast
    decisions = HeldDecisions(sheet)
    done: dict[CascadePolicy, PlayedPolicy] = {}
    for policy in dict.fromkeys(policy.answers_only for policy in policies):
        asked: list[int] = [0] * len(sheet)
        values: list[Said | None] = [None] * len(sheet)
        if not policy.order:
            pass  # a check decides all of it
        elif quick or policy.gate is RuleKind.LEAD:
            asked, values = _by_camps(policy, sheet)
        else:
            asked, values = decisions.play(policy)
        done[policy] = _finish(policy, sheet, asked, values, last, truths)
    found = []
    for policy in policies:
        played = done[policy.answers_only]
        if policy.further:
            played = _escalated(policy.undiluted, played, decisions, last, truths)
        found.append(_with_checks(policy, played, last))
    return found


def _escalated(
    policy: CascadePolicy,
    played: PlayedPolicy,
    decisions: HeldDecisions,
    last: LastPrices,
    truths: Sequence[Truth] | None,
) -> PlayedPolicy:
    """What the acceptance rule does not accept, after the further steps: their prices are paid, and
    what they deliver is delivered, errors included.
    """
    values, cost = list(played.values), played.cost.copy()
    delivered, wrong = played.delivered.copy(), played.wrong.copy()
    rest = [place for place, there in enumerate(delivered.tolist()) if not there]
    more: list[tuple[str, ...]] = [()] * len(values)
    decided: set[int] = set()
    for place, escalated in decisions.further(policy, rest, played.asked).items():
        more[place] = escalated.bought
        cost[place] += escalated.price
        if escalated.value is not None:
            values[place], delivered[place] = escalated.value, True
            cost[place] -= last.of(policy.last)
            wrong[place] = truths is not None and not truths[place].right(escalated.value)
            decided.update([place] if escalated.by_check else ())
    return PlayedPolicy(
        policy,
        cost,
        delivered,
        wrong,
        tuple(values),
        played.asked,
        more=tuple(more),
        by_check=frozenset(decided),
    )


def _with_checks(policy: CascadePolicy, played: PlayedPolicy, last: LastPrices) -> PlayedPolicy:
    """What random checks add: their expected price.

    The values that the acceptance rule accepts are the same, and so is what is wrong with them.
    """
    if not policy.random_checks:
        return played
    return replace(played, policy=policy, cost=played.cost + policy.random_checks * last.check * played.delivered)


def _finish(
    policy: CascadePolicy,
    sheet: AnswerSheet,
    asked: Sequence[int],
    values: Sequence[Said | None],
    last: LastPrices,
    truths: Sequence[Truth] | None,
) -> PlayedPolicy:
    delivered = np.array([value is not None for value in values], dtype=bool)
    wrong = np.zeros(len(sheet), dtype=bool)
    if truths is not None:
        wrong = np.array([v is not None and not t.right(v) for v, t in zip(values, truths, strict=True)], dtype=bool)
    columns = [sheet.nodes.index(node) for node in policy.order]
    paid = np.cumsum(sheet.costs[:, columns], axis=1)
    calls = np.array([paid[i, t - 1] if t else 0.0 for i, t in enumerate(asked)], dtype=np.float64)
    cost = calls + np.where(delivered, 0.0, last.of(policy.last))
    return PlayedPolicy(policy, cost, delivered, wrong, tuple(values), tuple(asked))


def _by_camps(policy: CascadePolicy, sheet: AnswerSheet) -> tuple[list[int], list[Said | None]]:
    """A price of 1 for every call and 0 for the last stage makes the cost the number of calls."""
    ones = np.ones(len(sheet.nodes))
    (played,) = replay([policy.ladder(sheet.nodes)], sheet.codes, prices=ones, check=0.0)
    values = [
        None if code == UNREADABLE else row.implied[sheet.nodes[code]]
        for row, code in zip(sheet.rows, played.value.tolist(), strict=True)
    ]
    return [round(calls) for calls in played.cost.tolist()], values
