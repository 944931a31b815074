"""The product's own verdicts on what is held of an item, answers and checks, found for all items
together and remembered: what acceptance rules and stages decide by.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rrf_design.checks import agreed, decides, sole_delivered, states
from rrf_design.promises._policies import CascadePolicy
from rrf_design.promises._sheets import AnswerSheet, ItemAnswers
from rrf_design.promises._truths import Said
from rrf_design.repairing import RepairEngine
from rrf_design.repairing.contract import Prepared, Repair
from rrf_design.verdict import Verdict

CHUNK = 500
"""Items that are decoded together."""


@dataclass(frozen=True, slots=True)
class _Decision:
    certified: bool
    contradicted: bool
    value: Said | None


_OPEN = _Decision(False, False, None)


@dataclass(frozen=True, slots=True)
class Escalated:
    """What came of an item beyond its acceptance rule: what was bought, for how much, and the value
    it led to.
    """

    bought: tuple[str, ...]
    price: float
    value: Said | None
    by_check: bool
    """A check decided it, whatever was answered."""


class HeldDecisions:
    """Verdicts on the first t answers of an order at k, found once for all items together and
    remembered.
    """

    def __init__(self, sheet: AnswerSheet) -> None:
        self._sheet = sheet
        self._known: dict[tuple[int, tuple[str, ...], int], _Decision] = {}
        self._engine = RepairEngine()

    def play(self, policy: CascadePolicy) -> tuple[list[int], list[Said | None]]:
        asked = [policy.within] * len(self._sheet)
        values: list[Said | None] = [None] * len(self._sheet)
        running = list(range(len(self._sheet)))
        for t in range(1, policy.within + 1):
            held = policy.order[:t]
            stages = [(most, k) for most, k in policy.stages if most >= t]
            levels = [(k - (most - t), k) for most, k in stages]
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

    def further(self, policy: CascadePolicy, places: Sequence[int], asked: Sequence[int]) -> dict[int, Escalated]:
        """The further steps of a policy, for these places; items that have none of its checks are
        left out.
        """
        steps = {place: self._steps(policy, place, asked[place]) for place in places}
        running = [place for place in places if steps[place]]
        found: dict[int, Escalated] = {}
        for count in range(1, len(policy.further) + 1):
            by_held: dict[tuple[str, ...], list[int]] = {}
            for place in running:
                by_held.setdefault((*policy.order[: asked[place]], *steps[place][:count]), []).append(place)
            left = []
            for held, members in by_held.items():
                levels = {place: self._level(policy, place, held, steps[place][count:]) for place in members}
                undecided = [place for place in members if self._decided(place, held) is None]
                self._find(held, [(place, k) for place in undecided for k in levels[place]])
                for place in members:
                    bought, rest = steps[place][:count], steps[place][count:]
                    row = self._sheet.rows[place]
                    price = row.spent(bought)
                    value = self._decided(place, held)
                    sure, most = levels[place]
                    decision = self._at(place, held, sure)
                    if value is not None:
                        found[place] = Escalated(bought, price, value, by_check=True)
                    elif decision.certified:
                        found[place] = Escalated(bought, price, decision.value, by_check=False)
                    elif not rest or (self._lost(place, held, most) and not self._may_decide(row, rest)):
                        found[place] = Escalated(bought, price, None, by_check=False)
                    else:
                        left.append(place)
            running = left
        return found

    def _steps(self, policy: CascadePolicy, place: int, asked: int) -> tuple[str, ...]:
        """What an item has of the further steps, and does not hold yet; nothing after the last of
        its checks. Stages come from several structures: a check that would be shown answers that
        this item is not asked by then is left out, for the pilot saw it made with them.
        """
        row, held = self._sheet.rows[place], policy.order[:asked]
        there: list[str] = []
        for step in policy.further:
            if step in row.template.checks:
                possible = row.template.shown[step] <= {*held, *there}
            else:
                possible = step in row.said and step not in held
            if possible:
                there.append(step)
        while there and there[-1] not in row.template.checks:
            there.pop()
        return tuple(there)

    def _level(self, policy: CascadePolicy, place: int, held: Sequence[str], rest: Sequence[str]) -> tuple[int, int]:
        """How many of the answers at hand may be wrong, whatever those to come say; and if those
        were all right. Where all may be wrong, nothing is said before a check is there.
        """
        row = self._sheet.rows[place]
        unread, answers = self._unread(place, held), sum(step in row.said for step in held)
        if policy.further_k is None:
            known = any(step in row.checked for step in held)
            return (answers - unread, answers) if known else (-1, answers)
        coming = sum(step in row.said for step in rest)
        return policy.further_k - unread - coming, policy.further_k - unread

    def _decided(self, place: int, held: Sequence[str]) -> Said | None:
        """The value that a check decides, or several that are not all wrong; None where none
        does.
        """
        row = self._sheet.rows[place]
        problem, said = row.template.problem, {step: row.checked[step] for step in held if step in row.checked}
        node = sole_delivered(problem, held)
        if node is None or not said:
            return None
        for name, value in said.items():
            if decides(problem, row.template.checks[name], node, held=said):
                return value
        quorate = agreed(problem, said, node)
        return None if quorate is None else quorate[0]

    def _may_decide(self, row: ItemAnswers, rest: Sequence[str]) -> bool:
        node = sole_delivered(row.template.problem, rest)
        return node is not None and any(states(row.template.checks[s], node) for s in rest if s in row.template.checks)

    def repairs(self, held: Sequence[tuple[str, ...]]) -> list[Repair | None]:
        """What the product's own repair says of the answers held of each item, at the recipe's own
        k; None where none could be read.
        """
        found: list[Repair | None] = [None] * len(self._sheet)
        readable = [at for at, names in enumerate(held) if self._readable(at, names)]
        rows = [self._sheet.rows[at] for at in readable]
        for at, repaired in zip(readable, self._repairs(rows, [held[at] for at in readable], None), strict=True):
            found[at] = repaired
        return found

    def _unread(self, place: int, held: Sequence[str]) -> int:
        """Of the answers; a check that says nothing is as if it were not there."""
        row = self._sheet.rows[place]
        return sum(row.said.get(name) is None for name in held if name not in row.template.checks)

    def _readable(self, place: int, held: Sequence[str]) -> bool:
        return any(self._sheet.rows[place].said.get(name) is not None for name in held)

    def _lost(self, place: int, held: tuple[str, ...], k: int) -> bool:
        """Whether a stage that allows k more wrong answers can't accept any more."""
        return k < 0 or self._at(place, held, k).contradicted

    def _at(self, place: int, held: tuple[str, ...], k: int) -> _Decision:
        return self._known.get((place, held, k), _OPEN) if k >= 0 else _OPEN

    def _find(self, held: tuple[str, ...], wanted: Sequence[tuple[int, int]]) -> None:
        """One batch for each k; no answer is wrong (k = 0) when the repair at k = 1 finds none
        wrong.
        """
        by_k: dict[int, list[int]] = {}
        for place, k in wanted:
            if k >= 0 and (place, held, k) not in self._known and self._readable(place, held):
                by_k.setdefault(k, []).append(place)
        for k, found in by_k.items():
            places = list(dict.fromkeys(found))
            for place, decision in zip(places, self._repair(held, places, k), strict=True):
                self._known[place, held, k] = decision

    def _repair(self, held: tuple[str, ...], places: Sequence[int], k: int) -> list[_Decision]:
        rows = [self._sheet.rows[place] for place in places]
        found = self._repairs(rows, [held] * len(rows), max(1, k))
        return [_decision(row, held, repaired, k) for row, repaired in zip(rows, found, strict=True)]

    def _repairs(self, rows: Sequence[ItemAnswers], held: Sequence[tuple[str, ...]], k: int | None) -> list[Repair]:
        """Each row with what is held of it; queries that are on sale are part of the design, asked
        or not.
        """
        found: list[Repair] = []
        for start in range(0, len(rows), CHUNK):
            chunk = zip(rows[start : start + CHUNK], held[start : start + CHUNK], strict=True)
            found += self._engine.repair([self._prepared(row, names, k) for row, names in chunk])
        return found

    def _prepared(self, row: ItemAnswers, held: Sequence[str], k: int | None) -> Prepared:
        template, bought = row.template, frozenset(name for name in held if name in row.checked)
        design = template.design(self._engine, template.on_sale | bought, classes=template.room or 1)
        return design.prepared(row.answers(held), values=row.stated(bought), k=k)


def _decision(row: ItemAnswers, held: Sequence[str], repaired: Repair, k: int) -> _Decision:
    contradicted = repaired.verdict is Verdict.CONTRADICTED
    value = row.words(repaired.repaired.get(row.template.node))
    if k == 0:
        clean = not contradicted and not repaired.support
        value = value if value is not None else _first_voice(row, held)
        return _Decision(clean and value is not None, not clean, value if clean else None)
    sure = repaired.verdict.passes and value is not None
    return _Decision(sure, contradicted, value if sure else None)


def _first_voice(row: ItemAnswers, held: Sequence[str]) -> Said | None:
    return next((row.implied[node] for node in held if row.implied.get(node) is not None), None)
