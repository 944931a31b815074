"""What users otherwise guess, measured on a pilot: how often more than k answers are wrong, who fails with whom, how far right answers scatter.

Every figure is a count with an exact one-sided bound at the pilot's confidence, each for itself. They are proposals for the recipe, and are never used without being
written there: a pilot's items are no evidence for themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rrf_design.known import rows_of
from rrf_design.promises.checks import noisy
from rrf_design.promises.judging import Judgement, measure_judges
from rrf_design.promises.positions import both_orders, order_proposals
from rrf_design.promises.radii import measured_radii, radius_proposals
from rrf_design.promises.relation_faults import broken_relations, relation_proposals
from rrf_design.promises.sheets import AnswerSheet
from rrf_design.promises.truths import Said, Truth
from rrf_design.questions.recipe import Recipe
from rrf_design.risk import best_risk, disputed, fit_crowd, rate_bound
from rrf_design.risk.sentences import percent_above

Marks = NDArray[np.bool_]
DEEPEST = 3
NO_CODE = -2
"""What no answer has: whether the truth agrees is asked with its tolerance, and codes know none."""


def measured(sheet: AnswerSheet, truths: Sequence[Truth], recipe: Recipe, confidence: float) -> dict[str, Any]:
    """Everything below, with what it proposes."""
    wrong = wrong_answers(sheet, truths, confidence)
    pairs = together(sheet, truths, confidence)
    repeated = repeats(sheet, recipe, confidence)
    broken = broken_relations(sheet, truths, confidence)
    orders = both_orders(sheet, truths, recipe, confidence)
    judges = judged(sheet, truths, confidence)
    verdicts = checks(sheet, truths, confidence)
    off = measured_radii(sheet, truths, confidence)
    erring = {anchor.id for row in sheet.rows for anchor in row.shape.problem.anchors if noisy(anchor)}  # as judges are
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
            *proposals(wrong, pairs, repeated),
            *relation_proposals(broken),
            *radius_proposals(off),
            *check_proposals([entry for entry in verdicts if entry["check"] not in erring]),
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
    """How far right answers are from the truth: the largest distance seen, and the share of items with right answers of which one may lie beyond it.

    Items are drawn, answers are not: those to one item are off together, and count once.
    """
    found = [
        [d for said in row.implied.values() if truth.right(said) and (d := _distance(said, truth)) is not None]
        for row, truth in zip(sheet.rows, truths, strict=True)
    ]
    largest = [max(distances) for distances in found if distances]
    if not largest:
        return None
    return {
        "answers": sum(map(len, found)),
        "items": len(largest),
        "largest": max(largest),
        "share_beyond": best_risk(len(largest), confidence),
    }


def repeats(sheet: AnswerSheet, recipe: Recipe, confidence: float) -> dict[str, Any] | None:
    """How often two answers to the same question by the same model differ; `bound`: of the items with such pairs, at most this share has one that does.

    The share of pairs that differ, item by item, is no larger. Pairs are not counted for it: those of one item differ together.
    """
    groups: dict[tuple[str, str | None], list[str]] = {}
    for (ask, model, _), node in recipe.nodes.items():
        group = groups.setdefault((ask, model), [])
        if node not in group:
            group.append(node)
    places = {node: at for at, node in enumerate(sheet.nodes)}
    pairs = {pair for group in groups.values() for pair in combinations(sorted(group), 2) if set(pair) <= set(places)}
    read, differ = (np.zeros(len(sheet), dtype=np.int64) for _ in range(2))
    for first, second in sorted(pairs):
        a, b = sheet.codes[:, places[first]], sheet.codes[:, places[second]]
        both = (a >= 0) & (b >= 0)
        read += both
        differ += both & (a != b)
    items, differing = int((read > 0).sum()), int((differ > 0).sum())
    if not items:
        return None
    return {
        "pairs": int(read.sum()),
        "differ": int(differ.sum()),
        "items": items,
        "differing_items": differing,
        "bound": rate_bound(items, differing, confidence),
    }


def checks(sheet: AnswerSheet, truths: Sequence[Truth], confidence: float) -> list[dict[str, Any]]:
    """How often checks are wrong whose value is known or was fetched, where they speak of the delivered value alone."""
    counts: dict[str, list[int]] = {}
    for row, truth in zip(sheet.rows, truths, strict=True):
        for anchor in row.shape.problem.anchors:
            value = row.checked.get(anchor.id, row.values.get(anchor.id))
            if value is not None and anchor.nodes == (row.shape.node,) and anchor.rows is None:
                tally = counts.setdefault(anchor.id, [0, 0])
                tally[0] += 1
                tally[1] += not truth.right(
                    value if isinstance(value, tuple | str) else (float(value),) * rows_of(row.shape.problem, anchor)
                )
    return [
        {"check": name, "asked": asked, "wrong": wrong, "bound": rate_bound(asked, wrong, confidence)}
        for name, (asked, wrong) in sorted(counts.items())
    ]


def judged(sheet: AnswerSheet, truths: Sequence[Truth], confidence: float) -> dict[str, Any]:
    """The noisy checks that were fetched, and speak of the delivered value, as judges are measured: how often right, or their σ."""
    said = [
        Judgement.against(truth, row.id, name, row.checked.get(name))
        for row, truth in zip(sheet.rows, truths, strict=True)
        for name, check in row.shape.checks.items()
        if truth.values
        and name not in row.absent | row.lost
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


def disputed_gold(sheet: AnswerSheet, truths: Sequence[Truth], others: AnswerSheet) -> list[str]:
    """Items where answers agree strongly on a value that the truth denies. Gold is wrong too; these are worth a second look."""
    crowd = fit_crowd(others.codes if len(others) >= len(sheet) else sheet.codes)
    best = crowd.right(sheet.codes).argmax(axis=1)
    found = disputed(crowd, sheet.codes, np.full(len(sheet), NO_CODE))
    denied = [at for at in found if not truths[at].right(sheet.rows[at].implied.get(sheet.nodes[best[at]]))]
    return [sheet.rows[at].id for at in denied if truths[at].values]


def proposals(wrong: dict[str, Any], pairs: Sequence[dict[str, Any]], repeated: dict[str, Any] | None) -> list[str]:
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
        found.append(
            f"repeat: {repeated['pairs']} pairs of repeats never differed; in at most {percent_above(Fraction(repeated['bound']))} of items like these"
            f" {repeated['items']:,} would a second one say anything else"
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
