"""Policies played on recorded answers, by the product's own decisions: `repair` and its verdict, item by item.

A gate "certified at k within T" asks node after node and stops as soon as its outcome is certain. With t of T answers held, u of them unreadable (which count as
wrong), it accepts when the verdict on those t is certified at k − u − (T − t): whatever the others say, no more than k of T are then wrong. It gives up when they are
contradicted at k − u: more answers only add contradictions. A ladder with several rungs (T, k) goes on while one of them is open. A lead is counted over what voices say.

Where every answer is to the same question and nothing is noisy, explanations are camps of equal answers, and `rrf_design.risk.replay` plays all
ladders at once: the fast path. Tests hold both against each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from rrf_design.blocks import Anchor
from rrf_design.decisive import decisive_checks, is_person
from rrf_design.errors import InputError
from rrf_design.known import known_value
from rrf_design.problem import Problem
from rrf_design.promises.family import GateKind, LadderPolicy, LastRung
from rrf_design.promises.sheets import AnswerSheet, SheetRow
from rrf_design.promises.truths import Said, Truth
from rrf_design.repairing.contract import Repair
from rrf_design.risk import UNREADABLE, replay
from rrf_design.verdict import Verdict

Floats = NDArray[np.float64]
Marks = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class PlayedPolicy:
    """What a policy did on each item of a sheet; a policy as `rrf_design.risk` tests it. `delivered`: without a person's help."""

    policy: LadderPolicy
    cost: Floats
    delivered: Marks
    wrong: Marks
    values: tuple[Said | None, ...]
    asked: tuple[int, ...]
    """How many nodes were asked."""
    delivers: int | None = None
    by_check: frozenset[int] = frozenset()
    """Places of the items that the policy's check decided."""

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
    def marks(self) -> str:
        """One letter an item: right, wrong, or - for not delivered."""
        return "".join("-" if not d else "w" if w else "r" for d, w in zip(self.delivered, self.wrong, strict=True))


@dataclass(frozen=True, slots=True)
class LastPrices:
    """What the last rung costs an item: a person's check, or keeping it back."""

    check: float
    withheld: float

    def of(self, last: LastRung) -> float:
        return self.check if last is LastRung.PERSON else self.withheld


def play(
    policies: Sequence[LadderPolicy],
    sheet: AnswerSheet,
    *,
    last: LastPrices,
    truths: Sequence[Truth] | None = None,
    fast: bool | None = None,
) -> list[PlayedPolicy]:
    """Every policy on every item. Without truths nothing is marked wrong. `fast`: camps of equal answers (default: where they decide as verdicts do)."""
    if truths is not None and len(truths) != len(sheet):
        raise InputError(f"{len(truths)} truths for {len(sheet)} items")
    quick = sheet.identity if fast is None else fast
    decisions = _Decisions(sheet)
    done: dict[LadderPolicy, PlayedPolicy] = {}
    for policy in dict.fromkeys(policy.answers_only for policy in policies):
        asked: list[int] = [0] * len(sheet)
        values: list[Said | None] = [None] * len(sheet)
        if not policy.order:
            pass  # a check decides all of it
        elif quick or policy.gate is GateKind.LEAD:
            asked, values = _by_camps(policy, sheet)
        else:
            asked, values = decisions.play(policy)
        done[policy] = _finish(policy, sheet, asked, values, last, truths)
    machines = {name: checked_values(sheet, name) for name in dict.fromkeys(p.check for p in policies if p.check)}
    found = []
    for policy in policies:
        played = done[policy.answers_only]
        if policy.check:
            played = _with_machine(policy.gates, played, sheet, machines[policy.check], last, truths)
        found.append(_with_checks(policy, played, last))
    return found


CheckedValue = tuple[tuple[float, ...], float]
"""What a check says of the delivered value, and its price."""


def machine_checks(sheet: AnswerSheet) -> list[str]:
    """Checks on sale that decide an item, and whose value nobody has to be asked for: of the items that have one, the cheapest in the recipe's own order."""
    found: dict[str, None] = {}
    seen: set[int] = set()
    for row in sheet.rows:
        if id(row.shape) not in seen:
            seen.add(id(row.shape))
            names = [check.id for check in decisive_checks(row.shape.problem) if not is_person(check)]
            found.update(dict.fromkeys(names))
    return [name for name in found if any(value is not None for value in checked_values(sheet, name))][:MOST_CHECKS]


MOST_CHECKS = 2
"""Each doubles the family, and every test costs."""


def checked_values(sheet: AnswerSheet, name: str) -> list[CheckedValue | None]:
    """What this check says of every item, with its price; None where the item has no such check, or it knows nothing."""
    found: list[CheckedValue | None] = []
    for row in sheet.rows:
        own = row.shape.problem.block_by_id.get(name)
        if not isinstance(own, Anchor):
            found.append(None)
            continue
        problem = row.item.problem
        anchor = problem.block_by_id[name]
        assert isinstance(anchor, Anchor)
        value = known_value(problem, anchor)
        found.append(None if value is None else (tuple(float(number) for number in value), float(anchor.cost or 0.0)))
    return found


def _with_machine(
    policy: LadderPolicy,
    played: PlayedPolicy,
    sheet: AnswerSheet,
    checks: Sequence[CheckedValue | None],
    last: LastPrices,
    truths: Sequence[Truth] | None,
) -> PlayedPolicy:
    """What the gate does not accept, decided by the check where it knows the value: its price instead of the last rung's, and its errors counted."""
    values, cost = list(played.values), played.cost.copy()
    delivered, wrong = played.delivered.copy(), played.wrong.copy()
    places = [at for at, said in enumerate(checks) if said is not None and not delivered[at]]
    for at in places:
        said = checks[at]
        assert said is not None
        values[at], delivered[at] = said[0], True
        cost[at] += said[1] - last.of(policy.last)
        wrong[at] = truths is not None and not truths[at].right(said[0])
    return PlayedPolicy(policy, cost, delivered, wrong, tuple(values), played.asked, by_check=frozenset(places))


def _with_checks(policy: LadderPolicy, played: PlayedPolicy, last: LastPrices) -> PlayedPolicy:
    """What random checks add: their expected price. The values that the gate accepts are the same, and so is what is wrong with them."""
    if not policy.random_checks:
        return played
    return replace(played, policy=policy, cost=played.cost + policy.random_checks * last.check * played.delivered)


def _finish(
    policy: LadderPolicy,
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


def _by_camps(policy: LadderPolicy, sheet: AnswerSheet) -> tuple[list[int], list[Said | None]]:
    """A price of 1 for every call and 0 for the last rung makes the cost the number of calls."""
    ones = np.ones(len(sheet.nodes))
    (played,) = replay([policy.ladder(sheet.nodes)], sheet.codes, prices=ones, check=0.0)
    values = [
        None if code == UNREADABLE else row.implied[sheet.nodes[code]]
        for row, code in zip(sheet.rows, played.value.tolist(), strict=True)
    ]
    return [round(calls) for calls in played.cost.tolist()], values


@dataclass(frozen=True, slots=True)
class _Decision:
    certified: bool
    contradicted: bool
    value: Said | None


_OPEN = _Decision(False, False, None)


class _Decisions:
    """Verdicts on the first t answers of an order at k, found once for all items together and remembered."""

    def __init__(self, sheet: AnswerSheet) -> None:
        self._sheet = sheet
        self._known: dict[tuple[int, tuple[str, ...], int], _Decision] = {}
        self._problems: dict[tuple[int, tuple[object, ...]], Problem] = {}

    def play(self, policy: LadderPolicy) -> tuple[list[int], list[Said | None]]:
        asked = [policy.within] * len(self._sheet)
        values: list[Said | None] = [None] * len(self._sheet)
        running = list(range(len(self._sheet)))
        for t in range(1, policy.within + 1):
            held = policy.order[:t]
            rungs = [(most, k) for most, k in policy.rungs if most >= t]
            levels = [(k - (most - t), k) for most, k in rungs]
            unread = {place: self._unread(place, held) for place in running}
            self._find(held, [(place, k - unread[place]) for place in running for pair in levels for k in pair])
            left = []
            for place in running:
                decided = (self._at(place, held, sure - unread[place]) for sure, _ in levels)
                accepts = next((one for one in decided if one.certified), None)
                if accepts is not None:
                    asked[place], values[place] = t, accepts.value
                elif all(self._lost(place, held, k - unread[place]) for _, k in levels):
                    asked[place] = t
                else:
                    left.append(place)
            running = left
        return asked, values

    def verdicts(self, held: Sequence[tuple[str, ...]]) -> list[tuple[Verdict, str]]:
        found: list[tuple[Verdict, str]] = [(Verdict.INCOMPLETE, "No answer could be read.")] * len(self._sheet)
        readable = [at for at, nodes in enumerate(held) if self._unread(at, nodes) < len(nodes)]
        rows = [self._sheet.rows[at] for at in readable]
        for at, repaired in zip(readable, self._repairs(rows, [held[at] for at in readable], None), strict=True):
            found[at] = (repaired.verdict, repaired.reason)
        return found

    def _unread(self, place: int, held: Sequence[str]) -> int:
        said = self._sheet.rows[place].said
        return sum(said.get(node) is None for node in held)

    def _lost(self, place: int, held: tuple[str, ...], k: int) -> bool:
        """Whether a rung that allows k more wrong answers can't accept any more."""
        return k < 0 or self._at(place, held, k).contradicted

    def _at(self, place: int, held: tuple[str, ...], k: int) -> _Decision:
        return self._known.get((place, held, k), _OPEN) if k >= 0 else _OPEN

    def _find(self, held: tuple[str, ...], wanted: Sequence[tuple[int, int]]) -> None:
        """One batch for each k; no answer is wrong (k = 0) when the repair at k = 1 finds none wrong."""
        by_k: dict[int, list[int]] = {}
        for place, k in wanted:
            readable = len(held) - self._unread(place, held)
            if k >= 0 and (place, held, k) not in self._known and readable:
                by_k.setdefault(k, []).append(place)
        for k, found in by_k.items():
            places = list(dict.fromkeys(found))
            for place, decision in zip(places, self._repair(held, places, k), strict=True):
                self._known[place, held, k] = decision

    def _repair(self, held: tuple[str, ...], places: Sequence[int], k: int) -> list[_Decision]:
        rows = [self._sheet.rows[place] for place in places]
        found = self._repairs(rows, [held] * len(rows), max(1, k))
        return [_decision(row, held, repaired, k) for row, repaired in zip(rows, found, strict=True)]

    def _repairs(self, rows: Sequence[SheetRow], held: Sequence[tuple[str, ...]], k: int | None) -> list[Repair]:
        """Each row with what is held of it; queries that are on sale are part of the design, asked or not."""
        from rrf_design.bundles import Given
        from rrf_design.repairing import repair_many

        problems = [self._problem(row) for row in rows]
        groups: dict[tuple[str, ...], list[int]] = {}
        for at, problem in enumerate(problems):
            groups.setdefault(tuple(n.id for n in problem.nodes if n.cost is not None), []).append(at)
        done: dict[int, Repair] = {}
        for select, members in groups.items():
            batch = repair_many(
                [problems[at] for at in members],
                [rows[at].answers(held[at]) for at in members],
                select=select,
                k=k,
                given=Given(anchors=[_checks(rows[at], problems[at]) for at in members]),
            )
            done.update(zip(members, batch.items, strict=True))
        return [done[at] for at in range(len(rows))]

    def _problem(self, row: SheetRow) -> Problem:
        """One problem for all items of a structure whose numbers are the same: the operator is then built once."""
        shape = row.shape
        if any(block.cost is None and getattr(block, "source", None) is not None for block in shape.problem.blocks):
            return row.item.problem  # a check computed from the row's own variables
        key = (id(shape), tuple(sorted(row.offsets.items())))
        if key not in self._problems:
            self._problems[key] = row.item.problem
        return self._problems[key]


def _decision(row: SheetRow, held: Sequence[str], repaired: Repair, k: int) -> _Decision:
    contradicted = repaired.verdict is Verdict.CONTRADICTED
    value: Said | None = repaired.repaired.get(row.shape.node)
    if k == 0:
        clean = not contradicted and not repaired.support
        value = value if value is not None else _first_voice(row, held)
        return _Decision(clean and value is not None, not clean, value if clean else None)
    sure = repaired.verdict is Verdict.CERTIFIED and value is not None
    return _Decision(sure, contradicted, value if sure else None)


def held_verdicts(sheet: AnswerSheet, held: Sequence[tuple[str, ...]]) -> list[tuple[Verdict, str]]:
    """The product's verdict, with its reason, on the answers held of each item, at the recipe's own k."""
    return _Decisions(sheet).verdicts(held)


def _checks(row: SheetRow, problem: Problem) -> Mapping[str, object]:
    """Values of the checks that are there without being bought."""
    found: dict[str, object] = {}
    for block in problem.anchors:
        if block.cost is not None:
            continue
        if block.id in row.values:
            found[block.id] = row.values[block.id]
        elif block.source is not None:
            value = known_value(problem, block)
            if value is not None:
                found[block.id] = [float(number) for number in value]
    return found


def _first_voice(row: SheetRow, held: Sequence[str]) -> Said | None:
    return next((row.implied[node] for node in held if row.implied.get(node) is not None), None)
