"""Radii that users otherwise guess, measured where every answer is right: how far relations are off
then (η), and all of an item's rows together (ε).

A relation z_head = T z_tail + b that is not quite true leaves a gap between what right answers say;
relative to the tail it is what `uncertainty` of the relation has to cover. The gaps of all
relations of an item and of the checks it holds, each in the units of its row (weight and σ), are
the noise that `epsilon` has to cover. The largest of n bounds the share of further ones beyond it,
with the pilot's confidence and nothing assumed about how they are distributed; it is no bound on
how far those lie.

Relations that break, measured on a pilot: how often, and how often that is the relation's own
fault and not the answers'.

Which errors go together, from a log with truth: for every pair and every three of the ways of
asking, how often they say the same wrong value; and which one more would break that.

Two answers that are wrong in different ways give themselves away; two that say the same wrong value
are the error that nobody sees. So a shared error of a set of nodes is an item in which each of them
was read and all say the same wrong value. Counts have exact one-sided bounds: those of pairs each
for itself, those of candidates for all that were looked at together (Bonferroni), because the best
of many is chosen from the same items.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rrf_design.blocks import Anchor, Relation
from rrf_design.checker.promise_words import number_above, percent_about, percent_above
from rrf_design.checks import rows_of
from rrf_design.problem import Problem
from rrf_design.promises._checks import noisy
from rrf_design.promises._sheets import AnswerSheet, ItemAnswers
from rrf_design.promises._truths import Said, Truth, same
from rrf_design.questions.recipe import Recipe
from rrf_design.risk import best_risk, rate_bound

FEWEST = 10
"""Of fewer right answers nothing is proposed."""


def measured_radii(sheet: AnswerSheet, truths: Sequence[Truth], confidence: float) -> dict[str, Any] | None:
    """η of every relation between numbers, and ε of the items whose answers are all right; None
    where no answer is a number.
    """
    gaps: dict[str, _Gaps] = {}
    norms: list[float] = []
    for row, truth in zip(sheet.rows, truths, strict=True):
        for relation in row.template.problem.relations:
            seen = _gap(row, truth, relation) if relation.pair and relation.cost is None else None
            if seen is not None:
                gaps.setdefault(relation.id, _Gaps()).add(math.hypot(*seen[0]), seen[1])
        norm = _norm(row, truth)
        if norm is not None:
            norms.append(norm)
    if not gaps:
        return None
    return {
        "relations": [gap.document(name, confidence) for name, gap in gaps.items()],
        "epsilon": (
            {"items": len(norms), "largest": max(norms), "share_beyond": best_risk(len(norms), confidence)}
            if norms
            else None
        ),
    }


@dataclass(slots=True)
class _Gaps:
    """What was seen of one relation between right answers."""

    sizes: list[float] = field(default_factory=list)
    relative: list[float] = field(default_factory=list)
    """A gap above a tail of zero is infinite: no factor of nothing covers it."""

    def add(self, size: float, tail: float) -> None:
        self.sizes.append(size)
        self.relative.append(size / tail if tail > 0.0 else math.inf if size > 0.0 else 0.0)

    def document(self, name: str, confidence: float) -> dict[str, Any]:
        most = max(self.relative)
        return {
            "relation": name,
            "pairs": len(self.sizes),
            "largest": max(self.sizes),
            "uncertainty": most if math.isfinite(most) else None,
            "share_beyond": best_risk(len(self.sizes), confidence),
        }


def _gap(row: ItemAnswers, truth: Truth, relation: Relation) -> tuple[tuple[float, ...], float] | None:
    """z_head − T z_tail − b and ‖z_tail‖, of two right answers that are numbers; a gap that
    rounding alone may have made is none.
    """
    tail, head = row.said.get(str(relation.tail)), row.said.get(str(relation.head))
    if not (isinstance(tail, tuple) and isinstance(head, tuple) and len(tail) == len(head)):
        return None
    if not all(truth.right(row.implied.get(str(node))) for node in (relation.tail, relation.head)):
        return None
    expected = relation.carry(tail, row.offsets.get(relation.id))
    if not isinstance(expected, tuple):
        return None
    return _beyond_rounding(head, expected), math.hypot(*tail)


def _beyond_rounding(said: Sequence[float], expected: Sequence[float]) -> tuple[float, ...]:
    gap = tuple(a - b for a, b in zip(said, expected, strict=True))
    reach = max(1.0, *(abs(number) for number in (*said, *expected)))
    return (0.0,) * len(gap) if math.hypot(*gap) <= 1e-12 * reach else gap


def _norm(row: ItemAnswers, truth: Truth) -> float | None:
    """Of what is left in all rows that the item holds, its checks' among them; None where an answer
    or a check is wrong, or a row is of a kind that is not measured.
    """
    problem, squares = row.template.problem, 0.0
    held = [block for block in problem.blocks if block.cost is None]
    for block in held:
        if isinstance(block, Anchor):
            gap = _off(row, truth, block)
        else:
            seen = _gap(row, truth, block) if block.pair else None
            gap = None if seen is None else seen[0]
        if gap is None:
            return None
        squares += _in_rows(problem, block, gap) ** 2
    return math.sqrt(squares) if any(isinstance(block, Relation) for block in held) else None


def _off(row: ItemAnswers, truth: Truth, check: Anchor) -> tuple[float, ...] | None:
    """How far a right answer is from what a check of it says, where that is right too."""
    (node, *others), value = check.nodes, row.values.get(check.id)
    said = row.said.get(node)
    if others or check.rows is not None or value is None or not isinstance(said, tuple):
        return None
    stated = value if isinstance(value, tuple) else (float(value),) * len(said)
    if len(stated) != len(said) or not truth.right(row.implied.get(node)):
        return None
    if not truth.right(row.template.implied(node, stated, row.offsets)):
        return None
    return _beyond_rounding(said, stated)


def _in_rows(problem: Problem, block: Relation | Anchor, gap: Sequence[float]) -> float:
    """What a gap comes to in B's rows: weighed and whitened as those of what is owned are."""
    operator = problem.structure.holding().operator
    return float(np.linalg.norm(operator.side(problem, block, np.array(gap))))


def radius_proposals(found: Mapping[str, Any] | None) -> list[str]:
    """In words, for the recipe's author; nothing where right answers leave no gap."""
    if found is None:
        return []
    words = []
    epsilon = found["epsilon"]
    if epsilon is not None and epsilon["items"] >= FEWEST and epsilon["largest"] > 0.0:
        words.append(
            f"[answer] epsilon = {number_above(epsilon['largest'])}: the rows of {epsilon['items']} items whose answers"
            f" were all right were never further off; at most {percent_above(Fraction(epsilon['share_beyond']))} of"
            " such items are"
        )
    for entry in found["relations"]:
        if entry["pairs"] >= FEWEST and entry["uncertainty"]:
            words.append(
                f"relation {entry['relation']!r}: uncertainty = {number_above(entry['uncertainty'])} covers the"
                f" {entry['pairs']} pairs of right answers; at most {percent_above(Fraction(entry['share_beyond']))} of"
                " such pairs are further off"
            )
        elif entry["pairs"] >= FEWEST and entry["uncertainty"] is None:
            words.append(
                f"relation {entry['relation']!r}: no uncertainty covers the {entry['pairs']} pairs of right answers: it"
                " is relative to the tail, and some are off where that is 0"
            )
    return words


ALIKE = 3
"""A relation that breaks the same way so often, and in most cases, is under suspicion itself."""


def broken_relations(sheet: AnswerSheet, truths: Sequence[Truth], confidence: float) -> list[dict[str, Any]]:
    """How often each relation is broken, and how often that is its own fault.

    A fault is counted where the truth of both ends is known (gold at the delivered one, checks
    whose value the row knows elsewhere) and the relation denies it. Where only answers are there, a
    relation that breaks the same way again and again (`same_way`: always off by 19, always 100
    times as much) is more likely wrong than all those answers are.
    """
    tallies: dict[str, _Tally] = {}
    for row, truth in zip(sheet.rows, truths, strict=True):
        known = _known(row, truth)
        for relation in row.template.problem.relations:
            if relation.pair and relation.cost is None:
                tallies.setdefault(relation.id, _Tally()).count(row, truth, relation, known)
    return [tally.document(name, confidence) for name, tally in tallies.items()]


def relation_proposals(broken: Sequence[Mapping[str, Any]]) -> list[str]:
    """In words, for the recipe's author."""
    found = []
    for entry in broken:
        if entry["faults"]:
            found.append(
                f"relation {entry['relation']!r}: it denies the truth in {entry['faults']} of {entry['known']} items"
                " where both ends are known"
            )
        if entry["same_way"]:
            found.append(
                f"relation {entry['relation']!r}: {entry['same_way']['times']} of {entry['broken']} times it was broken"
                f" the same way ({entry['same_way']['how']}); look at the relation before the answers"
            )
    return found


class _Tally:
    """What was seen of one relation."""

    def __init__(self) -> None:
        self.read = self.broken = self.one_right = self.known = self.faults = 0
        self.ways: Counter[str] = Counter()

    def count(self, row: ItemAnswers, truth: Truth, relation: Relation, known: Mapping[str, tuple[Said, ...]]) -> None:
        tail, head = str(relation.tail), str(relation.head)
        offset = row.offsets.get(relation.id)
        ends = [(relation.carry(a, offset), b) for a in known.get(tail, ()) for b in known.get(head, ())]
        pairs = [(a, b) for a, b in ends if a is not None]  # what nobody can walk was not looked at
        if pairs:
            self.known += 1
            self.faults += not any(_fits(a, b, relation, truth) for a, b in pairs)
        said, expected = row.said.get(head), relation.carry(row.said.get(tail), offset)
        if said is None or expected is None:
            return
        self.read += 1
        first, second = truth.right(row.implied.get(tail)), truth.right(row.implied.get(head))
        if _fits(expected, said, relation, truth) or (first and second):
            return
        self.broken += 1
        self.one_right += first != second
        if isinstance(said, tuple) and isinstance(expected, tuple) and len(said) == len(expected) == 1:
            gap = said[0] - expected[0]
            self.ways[f"off by {gap:+.6g}"] += 1
            if expected[0]:
                self.ways[f"times {said[0] / expected[0]:.6g}"] += 1

    def document(self, name: str, confidence: float) -> dict[str, Any]:
        way, often = self.ways.most_common(1)[0] if self.ways else ("", 0)
        known = self.known or None
        return {
            "relation": name,
            "both_read": self.read,
            "broken": self.broken,
            "one_right": self.one_right,
            "known": self.known,
            "faults": self.faults if known else None,
            "bound": rate_bound(self.known, self.faults, confidence) if known else None,
            "same_way": {"how": way, "times": often} if often >= ALIKE and 2 * often > self.broken else None,
        }


def _fits(expected: Said, said: Said, relation: Relation, truth: Truth) -> bool:
    scale = max(abs(relation.transport.factor), 1e-300)
    return same(expected, said, None if truth.tolerance is None else truth.tolerance * scale)


def _known(row: ItemAnswers, truth: Truth) -> dict[str, tuple[Said, ...]]:
    """Nodes whose truth is known; a check that declares how it errs is no truth."""
    found: dict[str, tuple[Said, ...]] = {}
    for anchor in row.template.problem.anchors:
        exact = anchor.trusted is not False and not noisy(anchor)
        if anchor.id in row.values and anchor.rows is None and len(anchor.nodes) == 1 and exact:
            value = row.values[anchor.id]
            stated = value if isinstance(value, tuple) else (float(value),) * rows_of(row.template.problem, anchor)
            found[anchor.nodes[0]] = (stated,)
    return {**found, row.template.node: truth.values} if truth.values else found


Marks = NDArray[np.bool_]
MOST_NODES = 24
"""Of so many nodes pairs are counted, the first ones of the recipe."""
SETS = 12
"""Of the first so many nodes threes are tried."""
MOST_THREES = 40
MIN_ITEMS = 20
"""Of fewer items nothing is proposed, and no three are counted."""
SURE = 0.95
STEPS = 4
"""So many candidates are proposed one after another."""


def shared_errors(
    sheet: AnswerSheet, recipe: Recipe, confidence: float, *, wrong: Marks, asked: Marks, voices: Sequence[str]
) -> dict[str, Any]:
    """Pairs, threes, failure groups and candidates; `wrong` and `asked` are items beside voices."""
    places = {node: at for at, node in enumerate(sheet.nodes)}
    codes = np.array([sheet.codes[:, places[node]] for node in voices]).T.reshape(len(sheet), len(voices))
    lies = np.where(wrong & asked & (codes >= 0), codes, -1)
    count = min(len(voices), MOST_NODES)
    pairs = []
    for a, b in combinations(range(count), 2):
        both = asked[:, a] & asked[:, b]
        pairs.append(_counted([voices[a], voices[b]], int(both.sum()), _same(lies, (a, b)), confidence))
        pairs[-1]["both_wrong"] = int((wrong[:, a] & wrong[:, b] & both).sum())
    worst = sorted(
        (
            trio
            for trio in combinations(range(min(count, SETS)), 3)
            if int(asked[:, trio].all(axis=1).sum()) >= MIN_ITEMS
        ),
        key=lambda trio: -int(_same(lies, trio).sum()),
    )
    threes = [
        _counted([voices[at] for at in trio], int(asked[:, trio].all(axis=1).sum()), _same(lies, trio), confidence)
        for trio in worst[:MOST_THREES]
    ]
    return {
        "pairs": pairs,
        "threes": threes,
        "groups": _groups(recipe, pairs, voices),
        "next": _next(sheet, confidence, lies=lies, asked=asked, voices=voices[:count]),
        "best_three": _best_three(sheet, confidence, lies=lies, asked=asked, voices=voices[:SETS], wrong=wrong),
    }


def shared_proposals(found: Mapping[str, Any]) -> list[str]:
    """In words, for the recipe's author."""
    words = []
    for group in found["groups"]:
        how = (
            f'[answer] fails_together = "{group["fails_together"]}"' if group["fails_together"] else "one failure group"
        )
        words.append(
            f"{how}: {', '.join(group['nodes'])}; where two of them are wrong they mostly say the same"
            f" ({group['same_wrong']} of {group['both_wrong']} times), so k should count them once"
        )
    for step in found["next"]:
        words.append(
            f"buy next {step['node']!r} (cost {step['cost']:g}): errors that {' and '.join(step['beside'])} share fall"
            f" from {step['before']} to {step['after']} of {step['items']} items"
            f" ({percent_about(step['fall_per_cost'])} less per cost); at most"
            f" {percent_above(Fraction(step['bound']))} of all items keep one"
        )
    best = found["best_three"]
    if best is not None:
        words.append(
            f"beside the delivered question ask {', '.join(best['nodes'])}: with k = 1 a wrong value hides in"
            f" {best['hidden_wrong']} of {best['items']} items, the least share of those with three equal answers; at"
            f" most in {percent_above(Fraction(best['bound']))} of all"
        )
    return words


def _same(lies: NDArray[np.int64], places: Sequence[int]) -> Marks:
    """Items in which all of these say the same wrong value."""
    first = lies[:, places[0]]
    marks: Marks = (first >= 0) & (lies[:, list(places)] == first[:, None]).all(axis=1)
    return marks


def _counted(nodes: list[str], items: int, same: Marks, confidence: float) -> dict[str, Any]:
    shared = int(same.sum())
    bound = rate_bound(items, shared, confidence) if items else 1.0
    least = 1.0 - rate_bound(items, items - shared, confidence) if items else 0.0
    return {"nodes": nodes, "items": items, "same_wrong": shared, "least": max(0.0, least), "bound": bound}


def _groups(recipe: Recipe, pairs: Sequence[Mapping[str, Any]], voices: Sequence[str]) -> list[dict[str, Any]]:
    """Nodes of which surely more than half of the errors that two of them make are one and the
    same; `fails_together` where they are all that one ask or one model says.
    """
    joined = {node: frozenset({node}) for node in voices}
    for pair in pairs:
        both, same = pair["both_wrong"], pair["same_wrong"]
        if pair["items"] >= MIN_ITEMS and both and 1.0 - rate_bound(both, both - same, SURE) > 0.5:
            first, second = pair["nodes"]
            merged = joined[first] | joined[second]
            joined |= dict.fromkeys(merged, merged)
    asks = {node: (ask, model) for (ask, model, _), node in reversed(list(recipe.nodes.items()))}
    found = []
    for group in dict.fromkeys(joined.values()):
        inside = [pair for pair in pairs if group.issuperset(pair["nodes"])]
        kinds = {
            name: {asks[node][at] for node in group if node in asks}
            for at, name in enumerate(("wording", "model"))
            if {
                node
                for node in voices
                if node in asks and asks[node][at] in {asks[one][at] for one in group & set(asks)}
            }
            == group
        }
        kind = next((name for name, values in kinds.items() if len(values) == 1), "")
        if len(group) > 1:
            both, same = (sum(pair[key] for pair in inside) for key in ("both_wrong", "same_wrong"))
            named = [node for node in voices if node in group]
            found.append({"nodes": named, "fails_together": kind, "both_wrong": both, "same_wrong": same})
    return found


def _next(
    sheet: AnswerSheet, confidence: float, *, lies: NDArray[np.int64], asked: Marks, voices: Sequence[str]
) -> list[dict[str, Any]]:
    """One candidate after another: that which breaks most shared errors of those before it, for its
    cost. Nothing where the items are too few or nothing is left to break.
    """
    prices = _prices(sheet, voices)
    first = _delivered(sheet, voices)
    if first is None:
        return []
    held = [first]
    tried = len(voices) * STEPS
    found: list[dict[str, Any]] = []
    while len(found) < STEPS:
        here = asked[:, held].all(axis=1)
        rated = []
        for at in range(len(voices)):
            both = here & asked[:, at]
            if at in held or int(both.sum()) < MIN_ITEMS:
                continue
            before, after = (int((_same(lies, those) & both).sum()) for those in (held, [*held, at]))
            rated.append(((before - after) / int(both.sum()) / prices[voices[at]], -at, before, after, int(both.sum())))
        if not rated or max(rated)[0] <= 0.0:
            return found
        gain, place, before, after, items = max(rated)
        sure = 1.0 - (1.0 - confidence) / tried
        found.append(
            {
                "node": voices[-place],
                "cost": prices[voices[-place]],
                "beside": [voices[at] for at in held],
                "items": items,
                "before": before,
                "after": after,
                "fall_per_cost": gain,
                "bound": rate_bound(items, after, sure),
            }
        )
        held.append(-place)
    return found


def _best_three(
    sheet: AnswerSheet, confidence: float, *, lies: NDArray[np.int64], asked: Marks, voices: Sequence[str], wrong: Marks
) -> dict[str, Any] | None:
    """Which three beside the delivered question hide the smallest share of wrong values, one wrong
    answer allowed: at least three of the four say the same. Of the sets that keep half as many
    right items as the best does.
    """
    first = _delivered(sheet, voices)
    if first is None:
        return None
    rated = []
    for trio in combinations([at for at in range(len(voices)) if at != first], 3):
        four = [first, *trio]
        here = asked[:, four].all(axis=1)
        said = np.sort(lies[:, four], axis=1)
        hidden = (
            here & (said[:, 1] >= 0) & ((said[:, 1] == said[:, 3]) | ((said[:, 0] >= 0) & (said[:, 0] == said[:, 2])))
        )
        kept = here & ((asked & ~wrong)[:, four].sum(axis=1) >= 3)
        rated.append((trio, int(hidden.sum()), int(kept.sum()), int(here.sum())))
    rated = [entry for entry in rated if entry[3] >= MIN_ITEMS]
    if not rated:
        return None
    most = max(entry[2] for entry in rated)
    fair = [entry for entry in rated if 2 * entry[2] >= most]
    trio, hidden, kept, items = min(fair, key=lambda entry: (entry[1] / max(1, entry[1] + entry[2]), entry[0]))
    sure = 1.0 - (1.0 - confidence) / len(rated)
    return {
        "nodes": [voices[at] for at in trio],
        "items": items,
        "hidden_wrong": hidden,
        "kept_right": kept,
        "bound": rate_bound(items, hidden, sure),
    }


def _delivered(sheet: AnswerSheet, voices: Sequence[str]) -> int | None:
    nodes = {row.template.node for row in sheet.rows}
    return next((at for at, node in enumerate(voices) if node in nodes), None)


def _prices(sheet: AnswerSheet, voices: Sequence[str]) -> dict[str, float]:
    """Of each node: what it costs on average where it has a price, else 1."""
    found = {}
    for node in voices:
        paid = [row.cost[node] for row in sheet.rows if row.cost.get(node)]
        found[node] = sum(paid) / len(paid) if paid else 1.0
    return found
