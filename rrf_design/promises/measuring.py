"""What users otherwise guess, measured on a pilot: how often more than k answers are wrong, who fails with whom, how far right answers scatter.

Every figure is a count with an exact one-sided bound at the pilot's confidence, each for itself. They are proposals for the recipe, and are never used without being
written there: a pilot's items are no evidence for themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rrf_design.blocks import Relation
from rrf_design.promises.checks import noisy
from rrf_design.promises.judging import Judgement, measure_judges
from rrf_design.promises.positions import both_orders, order_proposals
from rrf_design.promises.radii import measured_radii, radius_proposals
from rrf_design.promises.sheets import AnswerSheet, SheetRow, carried, simple
from rrf_design.promises.truths import Said, Truth, same
from rrf_design.questions.recipe import Recipe
from rrf_design.risk import best_risk, disputed, fit_crowd, rate_bound
from rrf_design.risk.sentences import percent_above

Marks = NDArray[np.bool_]
DEEPEST = 3
ALIKE = 3
"""A relation that breaks the same way so often, and in most cases, is under suspicion itself."""


def measured(sheet: AnswerSheet, truths: Sequence[Truth], recipe: Recipe, confidence: float) -> dict[str, Any]:
    """Everything below, with what it proposes."""
    wrong = wrong_answers(sheet, truths, confidence)
    pairs = together(sheet, truths, confidence)
    repeated = repeats(sheet, recipe, confidence)
    broken = relations(sheet, truths, confidence)
    orders = both_orders(sheet, truths, recipe, confidence)
    judges = judged(sheet, truths, confidence)
    verdicts = checks(sheet, truths, confidence)
    off = measured_radii(sheet, truths, confidence)
    return {
        "wrong_answers": wrong,
        "fail_together": pairs,
        "repeats": repeated,
        "scatter": scatter(sheet, truths, confidence),
        "radii": off,
        "checks": verdicts,
        "judges": judges,
        "relations": broken,
        "orders": orders,
        "proposals": [
            *proposals(wrong, pairs, repeated, broken),
            *radius_proposals(off),
            *check_proposals(verdicts),
            *order_proposals(orders),
            *judges["proposals"],
        ],
    }


def wrong_answers(sheet: AnswerSheet, truths: Sequence[Truth], confidence: float) -> dict[str, Any]:
    """P(more than k wrong) for k = 0, 1, 2, 3 with its bound, every node's own share, and its marks in the order of the items (1: wrong, -: not asked
    of this item). An answer that could not be read counts as wrong."""
    wrong, asked, voices = _wrong(sheet, truths)
    count = wrong.sum(axis=1)
    items = len(sheet)
    deep = [
        {"k": k, "items": int((count > k).sum()), "bound": rate_bound(items, int((count > k).sum()), confidence)}
        for k in range(min(DEEPEST, len(voices) - 1) + 1)
    ]
    each = [
        {
            "node": node,
            "wrong": int(wrong[:, at].sum()),
            "bound": rate_bound(int(asked[:, at].sum()), int(wrong[:, at].sum()), confidence),
        }
        for at, node in enumerate(voices)
    ]
    marks = {
        node: "".join("-" if not a else "1" if w else "0" for w, a in zip(wrong[:, at], asked[:, at], strict=True))
        for at, node in enumerate(voices)
    }
    return {"answers": len(voices), "items": items, "more_than": deep, "nodes": each, "by_node": marks}


def together(sheet: AnswerSheet, truths: Sequence[Truth], confidence: float) -> list[dict[str, Any]]:
    """Pairs of nodes that are wrong together more often than chance allows: exact tests, corrected for their number (Holm's first step for each)."""
    from scipy.stats import hypergeom

    wrong, asked, voices = _wrong(sheet, truths)
    pairs = list(combinations(range(len(voices)), 2))
    found = []
    for a, b in pairs:
        here = asked[:, a] & asked[:, b]
        marks = (wrong[:, a] & wrong[:, b], wrong[:, a] & here, wrong[:, b] & here)
        both, first, second = (int(part.sum()) for part in marks)
        p = float(hypergeom.sf(both - 1, int(here.sum()), first, second)) * len(pairs)
        if both and p <= 1 - confidence:
            expected = first * second / int(here.sum())
            found.append({"nodes": [voices[a], voices[b]], "both_wrong": both, "by_chance": expected, "p": min(1.0, p)})
    return sorted(found, key=lambda pair: -float(pair["both_wrong"]))


def scatter(sheet: AnswerSheet, truths: Sequence[Truth], confidence: float) -> dict[str, Any] | None:
    """How far right answers are from the truth: the largest distance seen, and the share of right answers that may lie beyond it."""
    distances = [
        distance
        for row, truth in zip(sheet.rows, truths, strict=True)
        for said in row.implied.values()
        if truth.right(said) and (distance := _distance(said, truth)) is not None
    ]
    if not distances:
        return None
    return {"answers": len(distances), "largest": max(distances), "share_beyond": best_risk(len(distances), confidence)}


def repeats(sheet: AnswerSheet, recipe: Recipe, confidence: float) -> dict[str, Any] | None:
    """How often two answers to the same question by the same model differ."""
    groups: dict[tuple[str, str | None], list[str]] = {}
    for (ask, model, _), node in recipe.nodes.items():
        group = groups.setdefault((ask, model), [])
        if node not in group:
            group.append(node)
    places = {node: at for at, node in enumerate(sheet.nodes)}
    pairs = {pair for group in groups.values() for pair in combinations(sorted(group), 2) if set(pair) <= set(places)}
    read = differ = 0
    for first, second in sorted(pairs):
        a, b = sheet.codes[:, places[first]], sheet.codes[:, places[second]]
        both = (a >= 0) & (b >= 0)
        read += int(both.sum())
        differ += int((both & (a != b)).sum())
    return {"pairs": read, "differ": differ, "bound": rate_bound(read, differ, confidence)} if read else None


def checks(sheet: AnswerSheet, truths: Sequence[Truth], confidence: float) -> list[dict[str, Any]]:
    """How often checks are wrong whose value is known or was fetched, where they speak of the delivered value alone."""
    counts: dict[str, list[int]] = {}
    for row, truth in zip(sheet.rows, truths, strict=True):
        for anchor in row.shape.problem.anchors:
            value = row.checked.get(anchor.id, row.values.get(anchor.id))
            if value is not None and anchor.nodes == (row.shape.node,) and anchor.rows is None:
                tally = counts.setdefault(anchor.id, [0, 0])
                tally[0] += 1
                tally[1] += not truth.right(value if isinstance(value, tuple | str) else (float(value),))
    return [
        {"check": name, "asked": asked, "wrong": wrong, "bound": rate_bound(asked, wrong, confidence)}
        for name, (asked, wrong) in sorted(counts.items())
    ]


def judged(sheet: AnswerSheet, truths: Sequence[Truth], confidence: float) -> dict[str, Any]:
    """The noisy checks that were fetched, and speak of the delivered value, as judges are measured: how often right, or their σ."""
    said = [
        Judgement(row.id, name, row.checked.get(name), truth.values[0])
        for row, truth in zip(sheet.rows, truths, strict=True)
        for name, check in row.shape.checks.items()
        if truth.values
        and name not in row.absent
        and noisy(check)
        and check.nodes == (row.shape.node,)
        and check.rows is None
    ]
    return measure_judges(said, confidence=confidence) if said else {"judges": [], "agreement": [], "proposals": []}


def check_proposals(verdicts: Sequence[Mapping[str, Any]]) -> list[str]:
    """A check that was wrong is a suspect; one that never was has a bound."""
    return [
        f"check {entry['check']!r}: wrong in {entry['wrong']} of {entry['asked']} items, at most {percent_above(Fraction(entry['bound']))} of all"
        + ("; may_be_wrong = true" if entry["wrong"] else "")
        for entry in verdicts
    ]


def relations(sheet: AnswerSheet, truths: Sequence[Truth], confidence: float) -> list[dict[str, Any]]:
    """How often each relation is broken, and how often that is its own fault.

    A fault is counted where the truth of both ends is known (gold at the delivered one, checks whose value the row knows elsewhere) and the relation
    denies it. Where only answers are there, a relation that breaks the same way again and again (`same_way`: always off by 19, always 100 times as
    much) is more likely wrong than all those answers are.
    """
    tallies: dict[str, _Tally] = {}
    for row, truth in zip(sheet.rows, truths, strict=True):
        known = _known(row, truth)
        for relation in row.shape.problem.relations:
            if relation.pair and relation.cost is None:
                tallies.setdefault(relation.id, _Tally()).count(row, truth, relation, known)
    return [tally.document(name, confidence) for name, tally in tallies.items()]


class _Tally:
    """What was seen of one relation."""

    def __init__(self) -> None:
        self.read = self.broken = self.one_right = self.known = self.faults = 0
        self.ways: Counter[str] = Counter()

    def count(self, row: SheetRow, truth: Truth, relation: Relation, known: Mapping[str, tuple[Said, ...]]) -> None:
        tail, head = str(relation.tail), str(relation.head)
        if tail in known and head in known:
            self.known += 1
            pairs = [(_along(row, relation, a), b) for a in known[tail] for b in known[head]]
            self.faults += not any(_fits(a, b, relation, truth) for a, b in pairs)
        said, expected = row.said.get(head), _along(row, relation, row.said.get(tail))
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


def _along(row: SheetRow, relation: Relation, said: Said | None) -> Said | None:
    """What an answer at the tail means at the head."""
    if said is None or isinstance(said, str):
        return said if relation.transport.kind == "identity" else None
    if not simple(relation):
        return None
    return carried(said, relation, row.offsets.get(relation.id, relation.offset), backwards=False)


def _fits(expected: Said | None, said: Said, relation: Relation, truth: Truth) -> bool:
    if expected is None:
        return True  # nothing is said about it
    scale = abs(relation.transport.scale) if relation.transport.scale is not None else 1.0
    return same(expected, said, None if truth.tolerance is None else truth.tolerance * max(scale, 1e-300))


def _known(row: SheetRow, truth: Truth) -> dict[str, tuple[Said, ...]]:
    """Nodes whose truth is known."""
    found: dict[str, tuple[Said, ...]] = {}
    for anchor in row.shape.problem.anchors:
        if anchor.id in row.values and anchor.rows is None and len(anchor.nodes) == 1 and anchor.trusted is not False:
            value = row.values[anchor.id]
            found[anchor.nodes[0]] = (value if isinstance(value, tuple) else (float(value),),)
    return {**found, row.shape.node: truth.values} if truth.values else found


def disputed_gold(sheet: AnswerSheet, truths: Sequence[Truth], others: AnswerSheet) -> list[str]:
    """Items where answers agree strongly on a value that the truth denies. Gold is wrong too; these are worth a second look."""
    crowd = fit_crowd(others.codes if len(others) >= len(sheet) else sheet.codes)
    gold = [_gold_code(sheet, place, truth) for place, truth in enumerate(truths)]
    return [sheet.rows[place].id for place in disputed(crowd, sheet.codes, gold) if truths[place].values]


def proposals(
    wrong: dict[str, Any],
    pairs: Sequence[dict[str, Any]],
    repeated: dict[str, Any] | None,
    broken: Sequence[dict[str, Any]] = (),
) -> list[str]:
    """In words, for the recipe's author."""
    found = []
    for entry in wrong["more_than"][1:]:
        found.append(
            f"[answer] k = {entry['k']}: more than {entry['k']} of the {wrong['answers']} answers whose truth is known were wrong in {entry['items']:,} of {wrong['items']:,}"
            f" items; at most {percent_above(Fraction(entry['bound']))} of all are like that"
        )
    if pairs:
        worst = pairs[0]
        found.append(
            f"[answer] fails_together: {' and '.join(worst['nodes'])} were wrong together {worst['both_wrong']} times, {worst['by_chance']:.1f} by chance;"
            " nodes that fail together count as one unit"
        )
    if repeated is not None and repeated["differ"] == 0:
        found.append(f"repeat: {repeated['pairs']} pairs of repeats never differed; a second one buys nothing")
    for entry in broken:
        if entry["faults"]:
            found.append(
                f"relation {entry['relation']!r}: it denies the truth in {entry['faults']} of {entry['known']} items where both ends are known"
            )
        if entry["same_way"]:
            found.append(
                f"relation {entry['relation']!r}: {entry['same_way']['times']} of {entry['broken']} times it was broken the same way"
                f" ({entry['same_way']['how']}); look at the relation before the answers"
            )
    return found


def _wrong(sheet: AnswerSheet, truths: Sequence[Truth]) -> tuple[Marks, Marks, list[str]]:
    """Items beside voices: which answers are wrong, and which were asked for in such a way that the truth says so."""
    voices = [node for node in sheet.nodes if any(node in row.shape.ways for row in sheet.rows)]
    asked = [[node in row.shape.ways for node in voices] for row in sheet.rows]
    marks = [
        [there and not truth.right(row.implied.get(node)) for node, there in zip(voices, each, strict=True)]
        for row, truth, each in zip(sheet.rows, truths, asked, strict=True)
    ]
    shape = len(sheet), len(voices)
    return np.array(marks, dtype=bool).reshape(shape), np.array(asked, dtype=bool).reshape(shape), voices


def _distance(said: Said | None, truth: Truth) -> float | None:
    if not isinstance(said, tuple) or truth.tolerance is None:
        return None
    near = [
        max(abs(a - b) for a, b in zip(said, v, strict=True))
        for v in truth.values
        if isinstance(v, tuple) and len(v) == len(said)
    ]
    return min(near, default=None)


def _gold_code(sheet: AnswerSheet, place: int, truth: Truth) -> int:
    """The code of a voice that is right; a number that no code has where none is."""
    row = sheet.rows[place]
    return next(
        (
            int(c)
            for c, n in zip(sheet.codes[place], sheet.nodes, strict=True)
            if c >= 0 and truth.right(row.implied.get(n))
        ),
        -2,
    )
