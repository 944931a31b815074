"""True documents with every optional section somewhere: what `scenarios.rigour.changed_leaves`
changes leaf by leaf.

Certificates: plain, with every bound, under a premise, with answers that scatter, with noise that
is shared or estimated, with checks that are wrong at a rate, with a minimax bracket, of a margin of
zero, proved by dominance and by a dual matrix, and with a pilot. Policies: for fresh items, drawn
inside strata, looked at while it grew, for each statement about a finite table, among the
delivered, with random checks, in Holm's order. An audit.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np

import rrf_design as rrf
from rrf_design.promises import (
    GoldRule,
    PilotSettings,
    audit_document,
    draw_audit,
    gold_truths,
    plan_pilot,
    policy_document,
    read_delivered,
    run_pilot,
)
from rrf_design.promises.premise import with_pilot
from rrf_design.questions import dataset
from rrf_design.questions.answers import RecordedAnswers
from rrf_design.risk import Among, Statement
from scenarios.kit.sealing import Document
from scenarios.rigour.forged_promises import DRAWN, ITEMS, PILOTED, RECIPE
from scenarios.rigour.forgeries import guarded_certificate, true_certificate

PAIR = [{"id": "ab", "tail": "a", "head": "b"}]
TWO = [{"id": "a"}, {"id": "b"}]


def true_documents(folder: Path) -> dict[str, Document]:
    """By name; as they would be read from files."""
    made = {**_certificates(), **_promises(folder)}
    return {name: json.loads(json.dumps(document)) for name, document in made.items()}


def _certificates() -> dict[str, Document]:
    anchors = [{"id": "x", "node": "a", "value": 1.0}, {"id": "y", "node": "b", "value": 1.0}]
    measured = [{**anchor, "sigma": 0.1} for anchor in anchors]
    shared = [{**anchor, "family": "judge", "correlation": 0.5} for anchor in measured]
    guessed = [{**measured[0], "estimated_from": 40}, measured[1]]
    rated = [{"id": f"x{i}", "node": "a", "value": 1.0, "rate": 0.1} for i in range(5)]
    held = [{"id": node["id"], "sigma": 0.1, "repeats": 2} for node in TWO]
    problems: dict[str, tuple[Any, dict[str, Any]]] = {
        "scatter": (rrf.Problem(k=1, nodes=held, relations=PAIR, anchors=anchors), {}),
        "shared": (rrf.Problem(k=1, nodes=TWO, relations=PAIR, anchors=shared), {}),
        "estimated": (rrf.Problem(k=1, nodes=TWO, relations=PAIR, anchors=guessed), {}),
        "rates": (rrf.Problem(k=1, nodes=TWO, relations=PAIR, anchors=[*rated, anchors[1]], epsilon=0.1), {}),
        "minimax": (
            rrf.Problem(k=1, nodes=TWO, relations=PAIR, anchors=measured),
            {"largest_error": 2.0},
        ),
        "zero": (rrf.Problem(k=1, nodes=[*TWO, {"id": "c"}], relations=PAIR, anchors=anchors[:1]), {}),
        "dominance": (rrf.Problem(k=1, nodes=TWO, relations=PAIR, anchors=anchors), {"rung": "dominance"}),
        "dual": (rrf.Problem(k=1, nodes=TWO, relations=PAIR, anchors=anchors), {"rung": "semidefinite"}),
    }
    found = {name: rrf.certify(problem, **options).document for name, (problem, options) in problems.items()}
    whole = {"everything": true_certificate(), "plain": true_certificate(plain=True), "premise": guarded_certificate()}
    return {f"certificate: {name}": copy.deepcopy(dict(document)) for name, document in {**whole, **found}.items()}


def _promises(folder: Path) -> dict[str, Document]:
    rng = np.random.default_rng(5)
    truths = rng.integers(10, 90, ITEMS).tolist()
    rows = [
        {"no": f"i{n}", "text": f"item {n}", "kind": "abc"[n % 3], "booked": truth} for n, truth in enumerate(truths)
    ]
    said = [
        {"id": f"i{n}", "node": node, "text": str(truth + (3 + at if rng.random() < 0.06 else 0))}
        for n, truth in enumerate(truths)
        for at, node in enumerate(("total", "reworded", "other"))
    ]
    (folder / "rrf.toml").write_text(RECIPE)
    tables: tuple[tuple[str, list[Any]], ...] = (("table", list(rows)), ("answers", list(said)))
    for name, lines in tables:
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    cells = ["no,answer,booked", *(f"i{n},{truth + (n % 23 == 0)},{truth}" for n, truth in enumerate(truths))]
    (folder / "delivered.csv").write_text("\n".join(cells) + "\n")
    data = dataset(folder / "rrf.toml")
    with RecordedAnswers(data, folder / "answers.jsonl") as answers:
        found = {f"policy: {name}": _policy(data, answers, options) for name, options in _draws().items()}
    table = read_delivered(folder / "delivered.csv", id_column="no")
    state = draw_audit(table, DRAWN, seed=5, rule=GoldRule("booked"))
    found["audit"] = audit_document(state, confidence=0.95, risk=0.3, truth="gold column 'booked'")
    fresh = found["policy: fresh"]
    outside = next(item for item in data if item not in fresh["drawn"])
    piloted = with_pilot(rrf.certify(data.item(outside).problem), fresh)
    return {**found, "certificate: piloted": copy.deepcopy(dict(piloted.document))}


def _draws() -> dict[str, dict[str, Any]]:
    return {
        "fresh": {},
        "strata": {"stratify": "kind", "among": Among.ALL},
        "sequential": {"sequential": True},
        "table": {"statement": Statement.POLICY},
        "file": {"statement": Statement.FILE},
        "rest": {"statement": Statement.REST, "among": Among.DELIVERED},
        "delivered": {"among": Among.DELIVERED, "order": "holm"},
        "random checks": {"random_checks": True},
    }


def _policy(data: Any, answers: Any, options: dict[str, Any]) -> Document:
    plan = plan_pilot(data, answers, PilotSettings(PILOTED, 0.2, **options))
    known, _ = gold_truths(plan)
    return policy_document(run_pilot(plan, known, truth_source="gold column 'booked'"))
