"""What users otherwise guess, measured on a pilot: how often more than k answers are wrong, who
fails with whom, how far right answers scatter.

Every figure is a count with an exact one-sided bound at the pilot's confidence, each for itself.
They are proposals for the recipe, and are never used without being written there: a pilot's items
are no evidence for themselves.

Position bias, measured from the recipe's own words: questions that are asked in two orders,
declared as such.

An ask whose options are permuted (`change = { permute = [1, 0] }`, or a relation that permutes), or
whose columns are exchanged (`transform = { swap = [...] }`), must have the answer of the other
order, carried over. Where it has not, the order decided. If places did not matter, the two answers
could as well have come the other way round, so of the changed ones as many would lie on what stood
earlier as on what stood later: an exact sign test, without any truth. Where the delivered question
itself is one of the two, the truth says as well how often the right option is found at each place.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rrf_design._shown import Shown
from rrf_design.blocks import Relation
from rrf_design.checker.promise_words import percent_above
from rrf_design.checks import rows_of
from rrf_design.documents import checked, sealed
from rrf_design.errors import InputError
from rrf_design.promises._checks import noisy
from rrf_design.promises._judging import Judgement, interval, judgements_of, measure_judges, read_judgements
from rrf_design.promises._measure_relations import (
    broken_relations,
    measured_radii,
    radius_proposals,
    relation_proposals,
    shared_errors,
    shared_proposals,
)
from rrf_design.promises._sheets import AnswerSheet, ItemAnswers, read_sheet
from rrf_design.promises._truths import GoldRule, Said, Truth, place_of, read_truth, same
from rrf_design.questions.answers import RecordedAnswers
from rrf_design.questions.recipe import Recipe
from rrf_design.risk import best_risk, disputed, fit_crowd, rate_bound

if TYPE_CHECKING:
    from rrf_design.acquisition import Acquisition
    from rrf_design.questions import Dataset

Marks = NDArray[np.bool_]
DEEPEST = 3
NO_CODE = -2
"""What no answer has: whether the truth agrees is asked with its tolerance, and codes know none."""


@dataclass(frozen=True, slots=True, repr=False)
class Measurement(Shown):
    """What labels say about answers, or about judges, and what that proposes for the recipe."""

    content: Mapping[str, Any]
    """By subject: `wrong_answers`, `relations`, `orders`, `repeats`, `judges` ..."""

    @property
    def proposals(self) -> tuple[str, ...]:
        """Changes of the recipe, in sentences; nothing is taken over in silence."""
        return tuple(self.content["proposals"])

    def to_json(self) -> dict[str, Any]:
        """The document `rrf-measurement`."""
        return sealed("rrf-measurement", dict(self.content))

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Measurement:
        """The measurement of a document `rrf-measurement`."""
        found = dict(checked(data, "rrf-measurement", what="measurement"))
        return cls({name: part for name, part in found.items() if name not in ("format", "version")})

    def _line(self) -> str:
        subject = "answers" if "wrong_answers" in self.content else "judges"
        return f"of {subject}: {len(self.proposals)} proposals"

    def _records(self) -> Iterator[dict[str, Any]]:
        return ({"proposal": text} for text in self.proposals)


def measure(
    dataset: Dataset | None = None,
    responses: Any = None,
    *,
    judgements: str | os.PathLike[str] | None = None,
    run: Acquisition | str | None = None,
    store: str | os.PathLike[str] | None = None,
    confidence: float = 0.95,
) -> Measurement:
    """What labels say about answers, relations, repeats and judges: what users otherwise guess.

    Every bound is exact and one-sided: of n items with w wrong, the largest rate p at which
    P(at most w of n) ≥ 1 − confidence. Labels that were looked at here are no evidence for a pilot
    any more: measure on other items.

    Parameters
    ----------
    dataset
        Items whose truth is known: the recipe's [data] names the column as `gold`.
    responses
        Recorded answers to its questions: a path, or rows.
    judgements
        Instead: a table with `id judge value truth`, and perhaps `position`.
    run
        Instead: a run, or its name; the verifiers that it used are measured on the data set.
    store
        The journal that the run is in; default: rrf-runs.sqlite here.
    confidence
        Of every bound and interval, each for itself.

    Returns
    -------
    A `Measurement`: its `content` by subject, and `proposals` for the recipe.

    >>> import rrf_design as rrf
    >>> recipe = {
    ...     "data": {"id": "no", "gold": "sum"},
    ...     "answer": {"of": "total", "tolerance": 0.005},
    ...     "ask": [
    ...         {"id": "total", "prompt": "{{ text }}?", "parse": "decimal"},
    ...         {"id": "again", "like": "total", "prompt": "Add {{ text }}", "parse": "decimal"},
    ...     ],
    ... }
    >>> rows = [{"no": "1", "text": "1 + 2", "sum": 3}, {"no": "2", "text": "2 + 2", "sum": 4}]
    >>> said = [("1", "total", 3), ("1", "again", 3), ("2", "total", 5), ("2", "again", 4)]
    >>> answers = [{"id": no, "node": node, "value": value} for no, node, value in said]
    >>> found = rrf.measure(rrf.dataset(recipe, rows), answers)
    >>> [(node["node"], node["wrong"]) for node in found.content["wrong_answers"]["nodes"]]
    [('total', 1), ('again', 0)]
    """
    if not 0.0 < confidence < 1.0:
        raise InputError(f"confidence {confidence:g}: it lies between 0 and 1")
    if sum(given is not None for given in (responses, judgements, run)) != 1:
        raise InputError("give --responses or --run with a recipe, or --judgements with a table of judgements")
    if judgements is not None:
        return Measurement(measure_judges(read_judgements(judgements), confidence=confidence))
    if dataset is None:
        raise InputError("measure: give the data set whose truth is known")
    dataset.refuse_several("measure")
    if run is None:
        return Measurement(_of_answers(dataset, responses, confidence))
    if isinstance(run, str):
        from rrf_design.acquisition import read_run

        run = read_run(run, store=store)
    return Measurement(measure_judges(judgements_of(run, dataset), confidence=confidence))


def _of_answers(dataset: Dataset, responses: Any, confidence: float) -> dict[str, Any]:
    rule = GoldRule.of(dataset.recipe.data)
    if rule.column is None:
        raise InputError(f"{dataset.recipe.name}: nothing says what is true; name the column with gold in [data]")
    nodes = tuple(dict.fromkeys(dataset.recipe.nodes.values()))
    with RecordedAnswers(dataset, responses, checks=True) as answers:
        sheet = read_sheet(dataset, answers, nodes)
    truths = [read_truth(row.item.gold, row.parser, rule.within(row.template.problem.delta)) for row in sheet.rows]
    labelled = [place for place, truth in enumerate(truths) if truth is not None]
    if not labelled:
        raise InputError(f"{dataset.recipe.name}: the column {rule.column!r} is empty in every row")
    found = measured(sheet.only(labelled), [t for t in truths if t is not None], dataset.recipe, confidence)
    return {"confidence": confidence, "items": len(labelled), **found}


def measured(sheet: AnswerSheet, truths: Sequence[Truth], recipe: Recipe, confidence: float) -> dict[str, Any]:
    """Everything below, with what it proposes."""
    wrong = wrong_answers(sheet, truths, confidence)
    pairs = together(sheet, truths, confidence)
    marks, asked, voices = _wrong(sheet, truths)
    shared = shared_errors(sheet, recipe, confidence, wrong=marks, asked=asked, voices=voices)
    repeated = repeats(sheet, recipe, confidence)
    broken = broken_relations(sheet, truths, confidence)
    orders = both_orders(sheet, truths, recipe, confidence)
    judges = judged(sheet, truths, confidence)
    verdicts = checks(sheet, truths, confidence)
    off = measured_radii(sheet, truths, confidence)
    anchors = [anchor for row in sheet.rows for anchor in row.template.problem.anchors]
    erring = {anchor.id for anchor in anchors if noisy(anchor)}  # as judges are
    return {
        "wrong_answers": wrong,
        "fail_together": pairs,
        "shared_errors": shared,
        "repeats": repeated,
        "scatter": scatter(sheet, truths, confidence),
        "radii": off,
        "checks": verdicts,
        "judges": judges,
        "relations": broken,
        "orders": orders,
        "proposals": [
            *proposals(wrong, pairs, repeated),
            *shared_proposals(shared),
            *relation_proposals(broken),
            *radius_proposals(off),
            *check_proposals([entry for entry in verdicts if entry["check"] not in erring]),
            *order_proposals(orders),
            *judges["proposals"],
        ],
    }


def wrong_answers(sheet: AnswerSheet, truths: Sequence[Truth], confidence: float) -> dict[str, Any]:
    """P(more than k wrong) for k = 0, 1, 2, 3 with its bound, every node's own share, and its marks
    in the order of the items (1: wrong, -: not asked of this item). An answer that could not be
    read counts as wrong.
    """
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
    """Pairs of nodes that are wrong together more often than chance allows: exact tests, corrected
    for their number (Holm's first step for each).
    """
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
    """How far right answers are from the truth: the largest distance seen, and the share of items
    with right answers of which one may lie beyond it.

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
    """How often two answers to the same question by the same model differ; `bound`: of the items
    with such pairs, at most this share has one that does.

    The share of pairs that differ, item by item, is no larger. Pairs are not counted for it: those
    of one item differ together.
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
    """How often checks are wrong whose value is known or was fetched, where they speak of the
    delivered value alone.
    """
    counts: dict[str, list[int]] = {}
    for row, truth in zip(sheet.rows, truths, strict=True):
        for anchor in row.template.problem.anchors:
            value = row.checked.get(anchor.id, row.values.get(anchor.id))
            if value is not None and anchor.nodes == (row.template.node,) and anchor.rows is None:
                tally = counts.setdefault(anchor.id, [0, 0])
                tally[0] += 1
                tally[1] += not truth.right(
                    value if isinstance(value, tuple | str) else (float(value),) * rows_of(row.template.problem, anchor)
                )
    return [
        {"check": name, "asked": asked, "wrong": wrong, "bound": rate_bound(asked, wrong, confidence)}
        for name, (asked, wrong) in sorted(counts.items())
    ]


def judged(sheet: AnswerSheet, truths: Sequence[Truth], confidence: float) -> dict[str, Any]:
    """The noisy checks that were fetched, and speak of the delivered value, as judges are measured:
    how often right, or their σ.
    """
    said = [
        Judgement.against(truth, row.id, name, row.checked.get(name))
        for row, truth in zip(sheet.rows, truths, strict=True)
        for name, check in row.template.checks.items()
        if truth.values
        and name not in row.absent | row.lost
        and noisy(check)
        and check.nodes == (row.template.node,)
        and check.rows is None
    ]
    return measure_judges(said, confidence=confidence) if said else {"judges": [], "agreement": [], "proposals": []}


def check_proposals(verdicts: Sequence[Mapping[str, Any]]) -> list[str]:
    """A check that was wrong is a suspect; one that never was has a bound."""
    return [
        f"check {entry['check']!r}: wrong in {entry['wrong']} of {entry['asked']} items, at most"
        f" {percent_above(Fraction(entry['bound']))} of all" + ("; may_be_wrong = true" if entry["wrong"] else "")
        for entry in verdicts
    ]


def disputed_gold(sheet: AnswerSheet, truths: Sequence[Truth], others: AnswerSheet) -> list[str]:
    """Items where answers agree strongly on a value that the truth denies.

    Gold is wrong too; these are worth a second look.
    """
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
            f"[answer] k = {entry['k']}: more than {entry['k']} of the {wrong['answers']} answers whose truth is known"
            f" were wrong in {entry['items']:,} of {wrong['items']:,} items; at most"
            f" {percent_above(Fraction(entry['bound']))} of all are like that"
        )
    if pairs:
        worst = pairs[0]
        found.append(
            f"[answer] fails_together: {' and '.join(worst['nodes'])} were wrong together {worst['both_wrong']} times,"
            f" {worst['by_chance']:.1f} by chance; nodes that fail together count as one unit"
        )
    if repeated is not None and repeated["differ"] == 0:
        found.append(
            f"repeat: {repeated['pairs']} pairs of repeats never differed; in at most"
            f" {percent_above(Fraction(repeated['bound']))} of items like these {repeated['items']:,} would a second"
            " one say anything else"
        )
    return found


def _wrong(sheet: AnswerSheet, truths: Sequence[Truth]) -> tuple[Marks, Marks, list[str]]:
    """Items beside voices: which answers are wrong, and which were asked for in such a way that the
    truth says so.
    """
    voices = [node for node in sheet.nodes if any(node in row.template.ways for row in sheet.rows)]
    asked = [[node in row.template.ways for node in voices] for row in sheet.rows]
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


_WORDS = {"earlier": "to what stood earlier", "later": "to what stood later", "lower": "downwards", "higher": "upwards"}


def both_orders(sheet: AnswerSheet, truths: Sequence[Truth], recipe: Recipe, confidence: float) -> list[dict[str, Any]]:
    """For every question that is asked in two orders, and every model that is asked both: how often
    the order decided, and which way.
    """
    tallies: dict[tuple[str, str], _Orders] = {}
    for row, truth in zip(sheet.rows, truths, strict=True):
        for relation in row.template.problem.relations:
            for first, second in _pairs(relation, recipe):
                tallies.setdefault((first, second), _Orders(first, second)).count(row, truth, relation)
    return [tally.document(confidence) for tally in tallies.values() if tally.read]


def order_proposals(orders: Sequence[Mapping[str, Any]]) -> list[str]:
    """In words, for the recipe's author."""
    return [
        f"{entry['nodes'][0]!r} and {entry['nodes'][1]!r}: the answer changed with the order in {entry['changed']} of"
        f" {entry['both_read']} items, {max(entry['ways'].values())} times"
        f" {_WORDS[max(entry['ways'], key=entry['ways'].__getitem__)]} (p = {entry['p']:.2g}); ask in both orders, and"
        " believe neither alone"
        for entry in orders
        if entry["biased"]
    ]


def _pairs(relation: Relation, recipe: Recipe) -> Iterator[tuple[str, str]]:
    """The nodes that ask one question in two orders, model by model; nothing for a relation that
    declares no other order.
    """
    if not relation.pair or not relation.transport.entrywise:
        return
    asks = {node: (ask, model, repeat) for (ask, model, repeat), node in recipe.nodes.items()}
    tail, head = asks.get(str(relation.tail)), asks.get(str(relation.head))
    if tail is None or head is None or tail[0] == head[0]:
        return
    if relation.transport.kind != "permute" and not {tail[0], head[0]} & recipe.swapped:
        return
    seen = set()
    for (ask, model, repeat), node in recipe.nodes.items():
        other = recipe.nodes.get((head[0], model, repeat)) if ask == tail[0] else None
        if other is not None and (node, other) not in seen:
            seen.add((node, other))
            yield node, other


@dataclass(slots=True)
class _Orders:
    """What was seen of one question in two orders."""

    first: str
    second: str
    read: int = 0
    changed: int = 0
    ways: dict[str, int] = field(default_factory=dict)
    places: dict[int, list[int]] = field(default_factory=dict)
    """Where the right option stood: how often it was judged there, and found."""

    def count(self, row: ItemAnswers, truth: Truth, relation: Relation) -> None:
        one, other = row.said.get(self.first), row.said.get(self.second)
        order = relation.transport.permute
        if order is not None and one is not None and other is not None:
            self._places(row, truth, order, (place_of(one), place_of(other)))
        if isinstance(one, str) or isinstance(other, str):
            if isinstance(one, str) and isinstance(other, str) and order is None:
                self._note(same(one, other, None), "")
            return
        if one is None or other is None:
            return
        expected = relation.carry(one, row.offsets.get(relation.id))
        assert isinstance(expected, tuple)  # only maps that carry numbers are looked at
        chosen, shown = place_of(one), place_of(other)
        if order is not None and chosen is not None and shown is not None:
            stood = chosen + shown, order.index(chosen) + order[shown]  # when chosen, and when not
            self._note(order[shown] == chosen, _way(stood[0] - stood[1], "earlier", "later"))
        else:
            gap = other[0] - expected[0] if len(other) == len(expected) == 1 else 0.0
            self._note(same(expected, other, truth.tolerance), _way(gap, "lower", "higher"))

    def _note(self, unchanged: bool, way: str) -> None:
        self.read += 1
        if not unchanged:
            self.changed += 1
            if way:
                self.ways[way] = self.ways.get(way, 0) + 1

    def _places(
        self, row: ItemAnswers, truth: Truth, order: Sequence[int], chosen: tuple[int | None, int | None]
    ) -> None:
        """Whether the right option was found where it stood; known where the first order is the
        delivered question's.
        """
        right = {place_of(value) for value in truth.values} - {None}
        if self.first != row.template.node or len(right) != 1:
            return
        at = next(iter(right))
        if at is None or at >= len(order):
            return
        # An option that stands at the same place in both orders counts there once: two answers to
        # one item are no two items.
        for place, found in {order.index(at): chosen[1], at: chosen[0]}.items():
            tally = self.places.setdefault(place, [0, 0])
            tally[0] += 1
            tally[1] += found == place

    def document(self, confidence: float) -> dict[str, Any]:
        from scipy.stats import binomtest

        decided = sum(self.ways.values())
        p = float(binomtest(max(self.ways.values()), decided).pvalue) if decided else 1.0
        return {
            "nodes": [self.first, self.second],
            "both_read": self.read,
            "changed": self.changed,
            "interval": interval(self.read, self.changed, confidence),
            "ways": dict(sorted(self.ways.items())),
            "p": p,
            "biased": p <= 1.0 - confidence,
            "places": [
                {"place": place, "judged": judged, "right": right, "interval": interval(judged, right, confidence)}
                for place, (judged, right) in sorted(self.places.items())
            ],
        }


def _way(difference: float, below: str, above: str) -> str:
    return "" if difference == 0 else below if difference < 0 else above
