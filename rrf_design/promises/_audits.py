"""An audit: delivered items drawn at random without replacement and checked; the bound holds at any
stop (docs/algorithms.md, fact 25).

The certificate holds the population's digest, the seed, every draw and every label, so that anybody
redoes the draw and the bound. A second audit of the same deliveries goes on in the same order with
the same sequence: its draws accumulate, and looking in between costs nothing. One that began anew
after a look, with another seed, prior or confidence, would be another chance; it is refused.

What was delivered are the rows of a table, of a run or of a document that have an answer. An audit
speaks of the values it was drawn from, row by row. A file that was changed afterwards, by
a row, an answer or their order, is not proven by it, and its digest shows it. The certificate names
the columns of ids and answers, under that digest, and no other is read.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rrf_design._shown import Shown, axes_of
from rrf_design.checker import written
from rrf_design.checker.promise_words import audit_sentence, percent_above, plain_percent
from rrf_design.checker.promises import audit_order, prove_audit
from rrf_design.checks import delivered_node
from rrf_design.documents import checked, read, sealed
from rrf_design.errors import InputError, Refused
from rrf_design.promises._delivered_tables import DeliveredTable, delivered_items, read_delivered, read_run_document
from rrf_design.promises._pilot_analysis import checked_value
from rrf_design.promises._truths import (
    EXACT_CHECKS,
    GoldRule,
    answer_is_right,
    cannot_tell,
    person_question,
    read_truth,
    refuse_strangers,
)
from rrf_design.questions.datasets import Dataset
from rrf_design.risk import AuditSequence, draw_order, share

if TYPE_CHECKING:
    from rrf_design.questions import Dataset
    from rrf_design.questions.recipe import Recipe

LABELS, CONFIDENCE = 60, 0.95
NO_TRUTH = "whose word is the truth? name a gold column (--gold, or [data] of --recipe), or ask people with --review"


@dataclass(frozen=True, slots=True, repr=False)
class Audit(Shown):
    """What an audit came to, over the labels up to the first that is missing."""

    document: Mapping[str, Any]
    """The certificate, as `verify` takes it."""
    waiting: tuple[str, ...] = ()
    """Drawn items whose truth people have to say."""
    questions: tuple[tuple[str, str, str], ...] = ()
    """For people: item, question and text of its row, those they answered already among them."""
    behind: int = 0
    """Labels that are known but stand behind one that is missing, and don't count yet."""

    @property
    def bound(self) -> int:
        """So many of the delivered values are wrong, at most."""
        return int(self.document["bound"])

    @property
    def sentence(self) -> str:
        """What may be said of what was delivered."""
        return str(prove_audit(self.document).document["sentence"])

    def _line(self) -> str:
        return f"{len(self.waiting)} labels are missing: {self.sentence}" if self.waiting else self.sentence

    def to_json(self) -> dict[str, Any]:
        """The certificate, with how many labels are missing, and of which items."""
        told = {**self.document, "waiting": len(self.waiting)}
        return {**told, "waiting_items": list(self.waiting), "behind": self.behind} if self.waiting else told

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Audit:
        """The audit of what `to_json` gave, or of its certificate; without questions for people."""
        document = dict(checked(data, "rrf-audit", what="audit"))
        document.pop("waiting", None)
        return cls(document, tuple(document.pop("waiting_items", ())), behind=document.pop("behind", 0))

    def plot(self, axes: Any = None) -> Any:
        """After each draw, how many of the delivered values are wrong at most, on matplotlib
        axes.
        """
        population, labels = int(self.document["population"]), self.document["record"]["labels"]
        sequence = AuditSequence(population, float(self.document["confidence"]))
        bounds = [population]
        for label in labels:
            sequence.observe(bool(label))
            bounds.append(sequence.bound)
        drawn = axes_of(axes, across="draws", up="wrong, at most")
        drawn.step(range(len(bounds)), bounds, where="post")
        return drawn


def audit(
    run: DeliveredTable | str | os.PathLike[str],
    dataset: Dataset | None = None,
    *,
    recipe: Recipe | None = None,
    labels: int | None = None,
    risk: float | None = None,
    confidence: float | None = None,
    truths: Mapping[str, Any] | None = None,
    gold: str | None = None,
    tolerance: float | None = None,
    id_column: str | None = None,
    seed: int = 0,
    store: str | None = None,
    before: Mapping[str, Any] | None = None,
) -> Audit:
    """How many of the delivered values are wrong, at most, from items drawn at random.

    The bound holds at any stop: D wrong items of N are refuted once the ratio of the draws'
    probability under a prior to that given D, a martingale, has passed 1/(1 − `confidence`).

    Parameters: `run` is the delivered table, the document of a run, or the name of a run in the
    journal `store`; the last two take the `dataset` they were made from. `recipe`: its `[data]` and
    `[promise]` give what is left out (default: that of the dataset). `labels` items are drawn in
    all with `seed`. `risk`: the share of wrong values that the certificate says is kept or not.
    `gold`: the column of the truth; `tolerance`: a value this close to it is right. `truths`: what
    people said, by item (an empty mapping: they will be asked). `id_column`: what names the rows.
    `before`: an earlier certificate of the same deliveries, whose draws count.

    Returns an `Audit` with its `document`, `bound` and the items that are `waiting` for a truth.

    >>> import pathlib, tempfile
    >>> import rrf_design as rrf
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "delivered.csv"
    >>> _ = path.write_text("no,answer,booked\\n" + "".join(f"{n},5,5\\n" for n in range(200)))
    >>> rrf.audit(path, gold="booked", id_column="no", labels=60).bound
    11
    """
    if dataset is not None:
        dataset.refuse_several("an audit")
    known = recipe if recipe is not None or dataset is None else dataset.recipe
    promise = None if known is None else known.promise
    own = GoldRule() if known is None else GoldRule.of(known.data, tolerance=_delta(known.long))
    rule = GoldRule(gold or own.column, own.tolerance if tolerance is None else tolerance, own.separator)
    if rule.column is None and truths is None and known is None:
        raise InputError(NO_TRUTH)
    if labels is None:
        labels = LABELS if promise is None or promise.audit is None else promise.audit
    sure = confidence if confidence is not None else CONFIDENCE if promise is None else promise.confidence
    wanted = risk if risk is not None or promise is None else promise.risk
    column = id_column or (None if known is None else known.data.id)
    every = before is not None and "checked" not in before
    table = run if isinstance(run, DeliveredTable) else _delivered(run, dataset, store=store, id_column=column)
    table = table if every else table.unchecked()
    if before is None and wanted is not None:
        _refuse_hopeless(table, labels, wanted, sure)
    said = dict(truths or {})
    refuse_strangers(said, set(table.ids))
    state = draw_audit(table, labels, seed=seed, rule=rule, reviews=said, before=before, confidence=sure, asked=dataset)
    waiting = tuple(state.waiting)
    if waiting and truths is None:
        if rule.column is None:
            raise InputError(f"no exact check of the recipe knows the value of {waiting[0]!r}: {NO_TRUTH}")
        raise InputError(
            f"{len(waiting)} drawn items have no truth in column {rule.column!r}, {waiting[0]!r} among them; ask people"
            " with --review"
        )
    source = rule.words(len(said)) or ("" if len(waiting) == len(state.places) else EXACT_CHECKS)
    document = audit_document(state, confidence=sure, risk=wanted, truth=source)
    places = [place for place in state.places if table.ids[place] in {*waiting, *said}] if waiting else []
    questions = tuple(
        (table.ids[at], _question(dataset, table.ids[at]), table.shown(at, without=rule.column)) for at in places
    )
    behind = len(state.places) - len(waiting) - int(document["drawn"])
    return Audit(document, waiting, questions, behind)


def _refuse_hopeless(table: DeliveredTable, labels: int, risk: float, confidence: float) -> None:
    """InputError for a draw that can't show the risk even if nothing in it is wrong."""

    def shown(drawn: int) -> int:
        sequence = AuditSequence(len(table), confidence)
        for _ in range(drawn):
            sequence.observe(False)
        return sequence.bound

    allowed = share(Fraction(str(risk)), "risk", zero=True) * table.delivered
    drawn = max(0, min(labels, len(table)))
    best = shown(drawn)
    if best <= allowed or drawn == 0:
        return
    enough = drawn + bisect_left(range(drawn, len(table)), True, key=lambda count: shown(count) <= allowed)
    raise InputError(
        f"{drawn:,} labels can't show a risk of {plain_percent(risk)} even with none wrong: they show"
        f" {percent_above(Fraction(best, table.delivered))} at best; give {enough:,} (--labels), or a larger risk"
    )


def _delivered(
    run: str | os.PathLike[str], dataset: Dataset | None, *, store: str | None, id_column: str | None
) -> DeliveredTable:
    """The rows that were handed over, from a table, the document of a run, or the journal."""
    path, name = Path(run), os.fspath(run)
    is_file = path.exists() or path.suffix != ""
    if is_file and store is not None:
        raise InputError(f"--store names the journal of a run, and {name} is a file: leave one of them out")
    if is_file and path.suffix.lower() != ".json":
        return read_delivered(path, id_column=id_column)
    if dataset is None:
        raise InputError(f"{name}: a run is audited with the recipe and table it was made from; give --recipe")
    if is_file:
        return read_run_document(read(path, what="run"), path.name, dataset)
    from rrf_design.acquisition import read_run
    from rrf_design.tables import delivery_of

    found = read_run(name, store=store)
    if {entry.item for entry in found.items} != set(dataset):
        raise InputError(
            f"run {found.run}: its items are not those of the table; audit it with the table it was made from. What a"
            " policy delivered is in the table or document of acquire --policy, not in a run of the journal"
        )
    return delivered_items(f"run {found.run}", dataset, delivery_of(dataset, found).cells())


def _question(items: Dataset | None, name: str) -> str:
    """What the recipe has a person asked about an item."""
    own = person_question(items[name]) if items is not None and name in items else None
    return own or f"What is right about {name}?"


def _delta(long: object) -> float | None:
    """The tolerance of the recipe's answer, where it is a number for all rows."""
    problem = long.get("problem") if isinstance(long, dict) else None
    delta = problem.get("delta") if isinstance(problem, dict) else None
    return float(delta) if isinstance(delta, int | float) and not isinstance(delta, bool) else None


@dataclass(frozen=True, slots=True)
class _AuditState:
    """The draws so far, in order; a label is True for wrong, None while it waits for a person."""

    table: DeliveredTable
    seed: int
    places: tuple[int, ...]
    labels: tuple[bool | None, ...]

    @property
    def waiting(self) -> list[str]:
        return [self.table.ids[place] for place, label in zip(self.places, self.labels, strict=True) if label is None]


def draw_audit(
    table: DeliveredTable,
    labels: int,
    *,
    seed: int,
    rule: GoldRule,
    reviews: Mapping[str, Any] | None = None,
    before: Mapping[str, Any] | None = None,
    confidence: float | None = None,
    asked: Dataset | None = None,
) -> _AuditState:
    """Draw so many items, those of an earlier certificate first, and label what gold, exact checks
    or people know. `confidence`: must be that of the earlier one. `asked`: the items as the recipe
    has them, whose parsers read answers and truths that are words.
    """
    if not labels >= 1:
        raise InputError(f"an audit of {labels} items; draw at least 1")
    if rule.column is not None and rule.column in table.results:
        raise InputError(
            f"{table.name}: column {rule.column!r} was delivered, and is no truth to hold the answers against; name the"
            " column that has it"
        )
    known = _earlier(table, seed, before, confidence)
    wanted = max(min(labels, len(table)), len(known))
    places = draw_order(len(table), seed, digest=audit_order(table.digest, table.checked), count=wanted)
    said = reviews or {}
    found: list[bool | None] = []
    for number, place in enumerate(places):
        label = _label(table, place, rule, said, asked)
        if number < len(known):
            _unchanged(table.ids[place], known[number], label)
            label = known[number]
        found.append(label)
    return _AuditState(table, seed, tuple(places), tuple(found))


def _label(
    table: DeliveredTable, place: int, rule: GoldRule, said: Mapping[str, Any], asked: Dataset | None
) -> bool | None:
    """Whether a delivered value is wrong; None while nobody knows.

    A reviewer who can't tell leaves it wrong.
    """
    gold = said.get(table.ids[place])
    if cannot_tell(gold):
        return True
    if gold is None and rule.column is not None:
        if rule.column not in table.rows[place]:
            raise InputError(f"{table.name}: no gold column {rule.column!r}")
        gold = table.rows[place][rule.column]
    item = None if asked is None or table.ids[place] not in asked else asked.item(table.ids[place])
    parser = None if item is None else item.parsers.get(delivered_node(item.problem))
    if gold is None and rule.column is None and item is not None:
        gold = checked_value(item.problem)
        read_truth(gold, parser, rule)  # what is no answer of this kind is refused, as a pilot does
    right = answer_is_right(table.answers[place], gold, parser, rule)
    return None if right is None else not right


def _unchanged(name: str, before: bool, now: bool | None) -> None:
    """A label that was counted stays.

    One that says something else now is neither believed nor passed over in silence.
    """
    if now is not None and now != before:
        was, is_ = ("wrong", "right") if before else ("right", "wrong")
        raise Refused(
            f"item {name!r} was labelled {was} when the earlier audit counted it, and {is_} now; a label that was"
            " looked at stays. If it was mistaken, audit into another file with the same seed, and say why"
        )


def _earlier(
    table: DeliveredTable, seed: int, before: Mapping[str, Any] | None, confidence: float | None
) -> list[bool]:
    if before is None:
        return []
    try:
        proven = prove_audit(before)
    except Refused as error:
        raise Refused(f"what is there can't be gone on with: {error}; write to another file to begin anew") from None
    record = before["record"]
    if record["digest"] != table.digest:
        raise Refused(
            f"the earlier audit is of other deliveries ({proven.population} items then, {len(table)} now); write to"
            " another file to begin anew"
        )
    if record["seed"] != seed:
        raise Refused(
            f"these deliveries were audited already, with seed {record['seed']} and {proven.drawn} draws; an audit goes"
            " on in its own order, and another draw after looking would void its bound"
        )
    if confidence is not None and Fraction(str(confidence)) != proven.confidence:
        raise Refused(
            f"the earlier audit has confidence {float(proven.confidence):g}; another one, chosen after looking, would"
            " void its bound"
        )
    return [bool(label) for label in record["labels"]]


def audit_document(state: _AuditState, *, confidence: float, risk: float | None, truth: str) -> dict[str, Any]:
    """The certificate.

    Labels are taken in the order of the draw up to the first that still waits: no label can be left
    out for what it says.
    """
    ready: list[bool] = []
    for label in state.labels:
        if label is None:
            break
        ready.append(label)
    sequence = AuditSequence(len(state.table), confidence)
    for label in ready:
        sequence.observe(label)
    sure = Fraction(str(confidence))
    record = {
        "population": len(state.table),
        "digest": state.table.digest,
        "seed": state.seed,
        "draws": list(state.places[: len(ready)]),
        "labels": ready,
        "at_any_stop": True,
        "prior": list(sequence.prior),
        "confidence": written(sure),
        "bound": sequence.bound,
    }
    content = {
        "population": len(state.table),
        "drawn": len(ready),
        "wrong": sum(ready),
        "bound": sequence.bound,
        "confidence": confidence,
        "risk": risk,
        "holds": None
        if risk is None
        else sequence.bound <= share(Fraction(str(risk)), "risk", zero=True) * state.table.delivered,
        "sentence": audit_sentence(
            len(state.table), len(ready), sum(ready), sequence.bound, sure, checked=state.table.checked
        ),
        "table": state.table.name,
        "columns": state.table.columns,
        "truth": truth,
        **({"checked": state.table.checked} if state.table.checked else {}),
        "items": [state.table.ids[place] for place in state.places[: len(ready)]],
        "wrong_items": [state.table.ids[p] for p, label in zip(state.places, ready, strict=False) if label],
        "record": record,
    }
    return sealed("rrf-audit", content)
