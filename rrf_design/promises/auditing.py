"""An audit: delivered items drawn at random without replacement and checked; the bound holds at any stop (docs/algorithms.md, fact 25).

The certificate holds the population's digest, the seed, every draw and every label, so that anybody redoes the draw and the bound. A second audit of the same deliveries
goes on in the same order with the same sequence: its draws accumulate, and looking in between costs nothing. One that began anew after a look, with another seed, prior or
confidence, would be another chance; it is refused.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from rrf_design.decisive import delivered_node
from rrf_design.documents import checked, kind_of, sealed
from rrf_design.errors import InputError, Refused
from rrf_design.files import canonical_digest
from rrf_design.promises.piloting import checked_value
from rrf_design.promises.policy_forms import check_audit_form
from rrf_design.promises.policy_proofs import plain_fraction
from rrf_design.promises.reviews import row_text
from rrf_design.promises.truths import GoldRule, answer_is_right, cannot_tell, read_truth
from rrf_design.questions.datasets import Dataset
from rrf_design.questions.delivery import DELIVERED, delivered_names
from rrf_design.questions.faults import RowFaults
from rrf_design.questions.tables import Cells, open_table
from rrf_design.risk import CLEAN, AuditSequence, audit_record, draw_order, prove_audit
from rrf_design.risk.arguments import share
from rrf_design.risk.records import ProvenAudit
from rrf_design.risk.sentences import percent, percent_above


@dataclass(frozen=True, slots=True)
class DeliveredTable:
    """The rows of a delivered table that have an answer."""

    name: str
    ids: tuple[str, ...]
    answers: tuple[Any, ...]
    rows: tuple[Cells, ...]
    id_column: str | None = None
    """What names the rows; None: their numbers."""
    answer_column: str = "answer"

    @property
    def columns(self) -> dict[str, str | None]:
        return {"id": self.id_column, "answer": self.answer_column}

    @property
    def digest(self) -> str:
        """Of every id and answer, and of the columns they stand in: an audit is of no other column."""
        pairs = [[name, str(answer)] for name, answer in zip(self.ids, self.answers, strict=True)]
        return canonical_digest({"columns": self.columns, "delivered": pairs})

    @property
    def results(self) -> set[str]:
        """The columns that were delivered: they stand behind those of the input, whatever these are called."""
        names = list(self.rows[0]) if self.rows else []
        behind = names[names.index(self.answer_column) :] if self.answer_column in names else []
        return {name for name in behind if _plain_name(name) in DELIVERED}

    def __len__(self) -> int:
        return len(self.ids)

    def shown(self, place: int, *, without: str | None = None) -> str:
        """A row for whoever says what is right: what was asked about, and nothing of what was answered."""
        return row_text(self.rows[place], hidden={*self.results, without})


def read_delivered(
    path: str | os.PathLike[str], *, id_column: str | None = None, answer_column: str | None = None
) -> DeliveredTable:
    """Rows with an answer, by the column of ids or else the number of the row. Without a name, answers are in the last column that a delivery calls so."""
    table = open_table(path)
    faults = RowFaults(table.name)
    rows = [(number, dict(cells)) for number, cells, _ in table.rows(faults)]
    faults.refuse(len(rows) + faults.unread)
    columns = list(table.columns or dict.fromkeys(key for _, cells in rows for key in cells))
    wanted = answer_column or "answer"
    named = [
        name for name in columns if name == answer_column or (answer_column is None and _plain_name(name) == wanted)
    ]
    answer = named[-1] if named else None
    if answer is None:
        raise InputError(
            f"{table.name}: no column {wanted!r}; audit a table that repair or acquire delivered (known: {', '.join(columns[:8])})"
        )
    if id_column is not None and id_column not in columns:
        raise InputError(f"{table.name}: no column {id_column!r} of ids")
    kept = [(number, cells) for number, cells in rows if cells.get(answer) not in (None, "")]
    if not kept:
        raise InputError(f"{table.name}: no row has an answer; there is nothing to audit")
    ids = tuple(str(number if id_column is None else cells[id_column]) for number, cells in kept)
    if len(set(ids)) != len(ids):
        raise InputError(f"{table.name}: ids in column {id_column!r} are not unique")
    answers = tuple(cells[answer] for _, cells in kept)
    return DeliveredTable(table.name, ids, answers, tuple(cells for _, cells in kept), id_column, answer)


def _plain_name(column: str) -> str:
    """What a delivered column is called where the input has no column of that name (`questions.delivery.delivered_names`)."""
    while column.startswith("rrf_"):
        column = column.removeprefix("rrf_")
    return column


def delivered_items(
    name: str, dataset: Dataset, results: Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]]
) -> DeliveredTable:
    """What a run over a data set delivered: each input row beside its result."""
    found = [
        (item.id, result["answer"], dict(cells))
        for item, (cells, result) in zip(dataset.items_in_order(), results, strict=True)
        if result["answer"] not in (None, "")
    ]
    if not found:
        raise InputError(f"{name}: no item has an answer; there is nothing to audit")
    ids, answers, rows = zip(*found, strict=True)
    return DeliveredTable(name, ids, answers, rows, dataset.recipe.data.id, delivered_names(dataset.columns)["answer"])


def read_run_document(document: Any, name: str, dataset: Dataset) -> DeliveredTable:
    """The items of a document that `acquire` or `repair` wrote about this data set."""
    kind = kind_of(document)
    if kind not in ("rrf-policy-run", "rrf-delivery"):
        raise InputError(f"{name}: audit what was delivered, a table or a run of one; this is {kind!r}")
    data = checked(document, kind, what="run")
    listed = data.get("items")
    if not isinstance(listed, list) or not all(
        isinstance(entry, Mapping) and {"id", "answer"} <= set(entry) for entry in listed
    ):
        raise InputError(f"{name}: this run has no items with an id and an answer")
    items = {str(entry["id"]): entry for entry in listed}
    missing = next((item.id for item in dataset.items_in_order() if item.id not in items), None)
    if missing is not None:
        raise InputError(f"{name}: it has no item {missing!r}; audit it with the table it was made from")
    if len(listed) != len(dataset):
        raise InputError(
            f"{name}: it has {len(listed):,} items, and the table {len(dataset):,}; audit it with the table it was made from"
        )
    return delivered_items(name, dataset, ((item.cells, items[item.id]) for item in dataset.items_in_order()))


@dataclass(frozen=True, slots=True)
class AuditState:
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
) -> AuditState:
    """Draw so many items, those of an earlier certificate first, and label what gold, exact checks or people know. `confidence`: must be that of the earlier one.
    `asked`: the items as the recipe has them, whose parsers read answers and truths that are words."""
    if not labels >= 1:
        raise InputError(f"an audit of {labels} items; draw at least 1")
    if rule.column is not None and rule.column in table.results:
        raise InputError(
            f"{table.name}: column {rule.column!r} was delivered, and is no truth to hold the answers against; name the column that has it"
        )
    known = _earlier(table, seed, before, confidence)
    wanted = max(min(labels, len(table)), len(known))
    places = draw_order(len(table), seed, digest=table.digest, count=wanted)
    said = reviews or {}
    found: list[bool | None] = []
    for number, place in enumerate(places):
        label = _label(table, place, rule, said, asked)
        if number < len(known):
            _unchanged(table.ids[place], known[number], label)
            label = known[number]
        found.append(label)
    return AuditState(table, seed, tuple(places), tuple(found))


def _label(
    table: DeliveredTable, place: int, rule: GoldRule, said: Mapping[str, Any], asked: Dataset | None
) -> bool | None:
    """Whether a delivered value is wrong; None while nobody knows. A reviewer who can't tell leaves it wrong."""
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
    """A label that was counted stays. One that says something else now is neither believed nor passed over in silence."""
    if now is not None and now != before:
        was, is_ = ("wrong", "right") if before else ("right", "wrong")
        raise Refused(
            f"item {name!r} was labelled {was} when the earlier audit counted it, and {is_} now; a label that was looked at stays. If it was mistaken, audit into"
            " another file with the same seed, and say why"
        )


def _earlier(
    table: DeliveredTable, seed: int, before: Mapping[str, Any] | None, confidence: float | None
) -> list[bool]:
    if before is None:
        return []
    try:
        proven = prove_audit_document(before)
    except Refused as error:
        raise Refused(f"what is there can't be gone on with: {error}; write to another file to begin anew") from None
    record = before["record"]
    if record["digest"] != table.digest:
        raise Refused(
            f"the earlier audit is of other deliveries ({proven.population} items then, {len(table)} now); write to another file to begin anew"
        )
    if record["seed"] != seed:
        raise Refused(
            f"these deliveries were audited already, with seed {record['seed']} and {proven.drawn} draws; an audit goes on in its own order, and another draw after"
            " looking would void its bound"
        )
    if confidence is not None and plain_fraction(confidence, "confidence") != proven.confidence:
        raise Refused(
            f"the earlier audit has confidence {float(proven.confidence):g}; another one, chosen after looking, would void its bound"
        )
    return [bool(label) for label in record["labels"]]


def audit_document(state: AuditState, *, confidence: float, risk: float | None, truth: str) -> dict[str, Any]:
    """The certificate. Labels are taken in the order of the draw up to the first that still waits: no label can be left out for what it says."""
    ready: list[bool] = []
    for label in state.labels:
        if label is None:
            break
        ready.append(label)
    sequence = AuditSequence(len(state.table), confidence)
    for label in ready:
        sequence.observe(label)
    record = audit_record(sequence, ready, digest=state.table.digest, seed=state.seed)
    content = {
        "population": len(state.table),
        "drawn": len(ready),
        "wrong": sum(ready),
        "bound": sequence.bound,
        "confidence": confidence,
        "risk": risk,
        "holds": None if risk is None else _holds(sequence.bound, len(state.table), risk),
        "sentence": audit_sentence(len(state.table), len(ready), sum(ready), sequence.bound, confidence),
        "table": state.table.name,
        "columns": state.table.columns,
        "truth": truth,
        "items": [state.table.ids[place] for place in state.places[: len(ready)]],
        "wrong_items": [state.table.ids[p] for p, label in zip(state.places, ready, strict=False) if label],
        "record": record,
    }
    return sealed("rrf-audit", content)


def audit_sentence(population: int, drawn: int, wrong: int, bound: int, confidence: float) -> str:
    rate = percent_above(Fraction(bound, population) if population else Fraction(0))
    if not drawn:
        return f"Of the {population:,} values delivered, any number may be wrong: no drawn item has a label that counts yet."
    return (
        f"Of the {population:,} values delivered, at most {bound:,} ({rate}) are wrong, with confidence {percent(Fraction(str(confidence)))}:"
        f" {wrong:,} of {drawn:,} drawn at random {'was' if wrong == 1 else 'were'} wrong."
    )


def _holds(bound: int, population: int, risk: float) -> bool:
    """A risk of 0 can be kept: by drawing everything."""
    return bound <= share(plain_fraction(risk, "risk"), "risk", zero=True) * population


def prove_audit_document(document: Any) -> ProvenAudit:
    """Redo the draw and the bound, and hold every claim of the certificate against them; Refused otherwise, for malformed input too."""
    try:
        data = checked(document, "rrf-audit", what="audit")
        check_audit_form(data)
        proven = prove_audit(data["record"])
        if data["record"]["at_any_stop"] is not True or list(data["record"]["prior"]) != list(CLEAN):
            raise Refused(
                "audits are bounded by one rule, valid at any stop; another rule or prior may have been chosen after looking"
            )
        claims: Sequence[tuple[str, Any]] = (
            ("population", proven.population),
            ("drawn", proven.drawn),
            ("wrong", proven.wrong),
        )
        for key, value in claims:
            if data[key] != value or isinstance(data[key], bool):
                raise Refused(f"{key} is {data[key]!r}, the record says {value}")
        if isinstance(data["bound"], bool) or not isinstance(data["bound"], int) or data["bound"] < proven.bound:
            raise Refused(f"a bound of {data['bound']!r} is claimed; the draws prove {proven.bound}")
        if plain_fraction(data["confidence"], "confidence") != proven.confidence:
            raise Refused(f"confidence {data['confidence']!r} is claimed, the record says {proven.confidence}")
        holds = None if data["risk"] is None else _holds(data["bound"], proven.population, data["risk"])
        if data["holds"] is not holds:
            raise Refused(f"the certificate says holds = {data['holds']!r}; bound and risk say {holds!r}")
        said = audit_sentence(proven.population, proven.drawn, proven.wrong, data["bound"], data["confidence"])
        if data["sentence"] != said:
            raise Refused(
                "the certificate's sentence is not what its record proves, in the words of this version; where an earlier one wrote it, audit into another file with the same"
                " seed: the draw is the same, and so are the labels of gold and reviews"
            )
        _check_items(data, proven)
    except Refused:
        raise
    except InputError as error:
        raise Refused(str(error)) from None
    except KeyError as error:
        raise Refused(f"the certificate has no {error}") from None
    except (TypeError, ValueError, AttributeError, IndexError, ArithmeticError, RecursionError) as error:
        raise Refused(f"the certificate can't be read: {type(error).__name__}, {error}") from None
    return proven


def _check_items(data: Mapping[str, Any], proven: ProvenAudit) -> None:
    """Every draw has a name of its own, and those that were wrong are named as such."""
    names = data["items"]
    if not isinstance(names, list) or len(names) != proven.drawn or any(type(name) is not str for name in names):
        raise Refused("the certificate's items are not those of its record")
    if len(set(names)) != len(names):
        raise Refused("the certificate names an item twice; draws are without replacement")
    wrong = [name for name, label in zip(names, data["record"]["labels"], strict=True) if label]
    if data["wrong_items"] != wrong:
        raise Refused("the certificate's wrong items are not those that its labels mark")


__all__ = [
    "AuditState",
    "DeliveredTable",
    "audit_document",
    "delivered_items",
    "draw_audit",
    "prove_audit_document",
    "read_delivered",
    "read_run_document",
]
