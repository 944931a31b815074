"""A live run over a table: triage by default, recorded answers instead of a model where there are
some, and its delivery.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rrf_design.acquisition.classes import class_of
from rrf_design.acquisition.result import Acquisition, ItemResult
from rrf_design.acquisition.stopping import Because
from rrf_design.checks import decisive_checks, delivered_node, is_person, worth_of
from rrf_design.derive import field_problems
from rrf_design.errors import InputError
from rrf_design.files import canonical_digest
from rrf_design.models import Model
from rrf_design.models.cache import FILE, AnswerCache
from rrf_design.models.roster import FIRST, line_up
from rrf_design.models.scripted import ScriptedModel
from rrf_design.problem import Problem
from rrf_design.questions.answers import RecordedAnswers
from rrf_design.questions.datasets import DataItem, Dataset
from rrf_design.responses.open_text import Classes
from rrf_design.responses.parsed import Parser
from rrf_design.tables.delivered import Delivery
from rrf_design.tables.items import Reading, plain, read_answer, without_vetoed
from rrf_design.tables.rows import Row, joined_row, repaired_row, shown_value
from rrf_design.verdict import Verdict


def recorded_run(
    dataset: Dataset,
    model: str | Model | Mapping[str, Any] | None,
    *,
    responses: Any,
    cache: str | os.PathLike[str] | None,
    resume: str | None,
) -> tuple[dict[str, Problem], str | Model | Mapping[str, Any] | None, dict[str, dict[str, Any]] | None]:
    """What `acquire` runs of a data set: the problems of its items, who is asked, and what is known
    of each item already.

    `responses` are recorded answers (rows `id node ... value|text|status`): they are used at no
    price and nobody is asked for what they lack, unless a model is given too. With a `cache`, what
    models and people said in earlier runs about rows that are the same is not asked again. A
    question whose columns are all empty in a row is about nothing: nobody is asked, and the item is
    left to its other questions and to people.
    """
    given: dict[str, dict[str, Any]] = {}
    if responses is not None:
        given = {item.id: known for item, known in _recorded(dataset, responses, complete=model is None)}
    for item, unasked in _silent(dataset):
        given[item] = {node: {"status": "missing"} for node in unasked} | given.get(item, {})
    for item, said in _kept_labels(dataset, cache):
        given.setdefault(item, {}).update(said)
    own: Mapping[str, Any] = dataset.recipe.models
    if model is None and responses is not None:
        silent = _nobody()
        own = dict.fromkeys(own or [FIRST], silent)
    if resume is None or model is not None or responses is not None:
        if model is None and not own:
            raise InputError(
                f"{dataset.recipe.name}: it names no model; say which is asked with --model, or give --responses"
            )
        model = line_up(model, own)
    return dict(dataset.items()), model, given or None


def _silent(dataset: Dataset) -> Iterator[tuple[str, list[str]]]:
    """Items with questions that have nothing to ask about, and those questions."""
    for item in dataset.items_in_order():
        there = dataset.structures[item.structure].example.node_by_id
        together = dataset.structures[item.structure].example.read_together
        asked = sorted(item.silent & there.keys())
        found = [name for one in asked for name in (one, *together.get(one, ()))]
        if found:
            yield item.id, found


def _nobody() -> Model:
    """A model that is never asked: every answer is recorded, or missing."""

    def refuse(request: Any) -> str:
        raise InputError("no model is there to ask; every answer of this run is recorded")

    return ScriptedModel(refuse, name="recorded answers")


def _people(item: DataItem) -> Iterator[tuple[str, str]]:
    """The checks of an item that a person answers, each with the key of what is shown to them: the
    row and the question.
    """
    problem = item.problem
    for anchor in problem.anchors:
        if is_person(anchor):
            parser = problem.node_by_id[anchor.nodes[0]].parser
            seen = {"item": item.id, "row": item.shown, "asked": anchor.source, "parser": parser, "rows": anchor.rows}
            yield anchor.id, canonical_digest({"person": seen})


def _kept_labels(dataset: Dataset, cache: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """What people said in earlier runs, by item; nothing without a folder that has it."""
    if cache is None or not (Path(cache) / FILE).exists():
        return
    with AnswerCache(cache) as kept:
        for item in dataset.items_in_order():
            said = {check: kept.said(key) for check, key in _people(item)}
            found = {check: {"said": text, "text": text} for check, text in said.items() if text is not None}
            if found:
                yield item.id, found


def keep_labels(dataset: Dataset, run: Acquisition, cache: Any) -> None:
    """Keep what people said in this run for later ones."""
    told = {(entry.item, entry.name) for entry in run.purchases if entry.source == "person" and entry.ok}
    if cache is None or not told:
        return
    texts, reviewed = {entry.item: entry.texts for entry in run.items}, {item for item, _ in told}
    with AnswerCache(cache) as kept:
        for item in dataset.items_in_order():
            if item.id in reviewed:
                for check, key in _people(item):
                    if (item.id, check) in told and texts[item.id].get(check):
                        kept.keep_said(key, texts[item.id][check])


def _recorded(dataset: Dataset, responses: Any, *, complete: bool) -> Iterator[tuple[DataItem, dict[str, Any]]]:
    """Each item's values by node, or the status of what could not be read; `complete` names what is
    missing, too.
    """
    with RecordedAnswers(dataset, responses) as recorded:
        for item in dataset.items_in_order():
            problem, parsers = dataset.structures[item.structure].example, item.parsers
            found: dict[str, Any] = {}
            read: dict[str, Reading] = {}
            for name, answer in recorded.of(item.id).items():
                if name not in problem.node_by_id:
                    continue  # a question that this item does not have
                try:
                    read[name] = read_answer(answer, parsers.get(name), problem.node_by_id[name].dim)
                except InputError as error:
                    raise InputError(f"item {item.id!r}, node {name!r}: {error}") from None
            for name, reading in without_vetoed(item.vetoes, read)[0].items():
                found[name] = _said(reading) | ({} if reading.text is None else {"text": reading.text})
                found[name] |= {} if reading.cost is None else {"cost": reading.cost}
            if complete:
                found |= {node.id: {"status": "missing"} for node in problem.nodes if node.id not in found}
            yield item, found


def _said(reading: Reading) -> dict[str, Any]:
    """A reading as the run takes it: numbers, a class, or why there is neither."""
    if reading.parsed is None:
        return {"status": reading.status or "parse failure"}
    if reading.parsed.label is not None:
        return {"label": reading.parsed.label}
    return {"value": list(reading.parsed.value or ())}


def delivery_of(dataset: Dataset, run: Acquisition) -> Delivery:
    """The delivered table of a run over this data set."""
    results = {entry.item: entry for entry in run.items}
    rows = []
    fields: dict[tuple[str, tuple[str, ...]], tuple[Problem, ...]] = {}
    ending = f"the run is {run.stopped_because}" + (f": {run.detail}" if run.detail else "")
    for item in dataset.items_in_order():
        if item.id not in results:
            raise InputError(f"run {run.run}: it has no item {item.id!r}; deliver it with the table it was begun with")
        found = results[item.id]
        key = item.structure, found.selected
        if key not in fields:
            fields[key] = field_problems(dataset.structures[item.structure].example, found.selected)
        parts = fields[key]
        made = (_row(found, problem, item.parsers, item.structure, ending=ending) for problem in parts)
        rows.append(joined_row([(delivered_node(problem), row) for problem, row in zip(parts, made, strict=True)]))
    return Delivery(dataset, rows)


def _classes(found: ItemResult, parsers: Mapping[str, Parser]) -> Classes:
    """The classes of an item by coordinate, from the texts that named them; empty where answers are
    numbers.
    """
    said = {name: class_of(text, parsers.get(name)) for name, text in found.texts.items()}
    values = {**found.answers, **found.anchors}
    named = {values[name].index(1.0): label for name, label in said.items() if label and 1.0 in values.get(name, ())}
    room = max((len(values[name]) for name in said if name in values), default=0)
    return Classes(tuple(named.get(place, "") for place in range(room)))


def _row(
    found: ItemResult, problem: Problem, parsers: Mapping[str, Parser], structure: str, *, ending: str = ""
) -> Row:
    """`ending` is what to say of an item that the run has not come to."""
    node, repair = delivered_node(problem), found.repair or {}
    several = "fields" in repair
    repair = repair["fields"][node] if several else repair
    answered, given = found.answers.get(node), (repair.get("repaired") or {}).get(node)
    value = None if given is None else tuple(float(x) for x in given)
    outcome: Any = SimpleNamespace(
        verdict=Verdict(repair["verdict"]) if several else found.verdict,
        assumes=repair["assumes"] if several else found.assumes,
        repaired={node: value},
        bounds=repair.get("bounds") or {},
        support=tuple(repair.get("support") or ()),
        erased=tuple(name for name in found.unread if name in problem.node_by_id),
        reason=str(repair.get("reason", "")) or found.detail or ("" if repair else ending),
        gamma=found.gamma,
        residual=float(repair.get("residual") or 0.0),
    )
    parser, classes = parsers.get(node), _classes(found, parsers)
    raw = found.texts.get(node, None if answered is None else plain(answered))
    if several and answered is not None:
        raw = shown_value(tuple(answered), parser, classes)
    row = repaired_row(found.item, outcome, node=node, parser=parser, classes=classes, raw=raw)
    if row.answer is not None and value is not None:
        row = row.with_value(changed=answered is None or plain(value) != plain(answered))
    people = [a for a in decisive_checks(problem, without=found.anchors) if is_person(a)] if row.open else []
    waits = found.stopped_because == Because.WAITING.value and bool(people)
    return replace(
        row,
        cost=found.cost,
        structure=structure,
        check=people[0].id if waits else None,
        worth=worth_of(people[0]) if people else 0.0,
    )
