"""An audit: delivered items drawn at random without replacement and checked; the bound holds at any stop (docs/algorithms.md, fact 25).

The certificate holds the population's digest, the seed, every draw and every label, so that anybody redoes the draw and the bound. A second audit of the same deliveries
goes on in the same order with the same sequence: its draws accumulate, and looking in between costs nothing. One that began anew after a look, with another seed, prior or
confidence, would be another chance; it is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from rrf_design.decisive import delivered_node
from rrf_design.documents import checked, sealed
from rrf_design.errors import InputError, Refused
from rrf_design.promises.delivered_tables import DeliveredTable
from rrf_design.promises.piloting import checked_value
from rrf_design.promises.policy_forms import check_audit_form
from rrf_design.promises.policy_proofs import plain_fraction
from rrf_design.promises.truths import GoldRule, answer_is_right, cannot_tell, read_truth
from rrf_design.questions.datasets import Dataset
from rrf_design.risk import CLEAN, AuditSequence, audit_record, draw_order, prove_audit
from rrf_design.risk.arguments import share
from rrf_design.risk.records import ProvenAudit
from rrf_design.risk.sentences import percent, percent_above


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
    "audit_document",
    "draw_audit",
    "prove_audit_document",
]
