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

import rrf_design as rrf
from rrf_design.risk import Among, Statement
from scenarios.kit.sealing import Document
from scenarios.rigour.forged_promises import made_audit, made_pilot, made_policies, written_table
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
    data = written_table(folder, kinds="abc")
    kinds: dict[str, dict[str, Any]] = {
        "fresh": {},
        "strata": {"stratify": "kind", "among": Among.ALL},
        "sequential": {"sequential": True},
        "table": {"statement": Statement.POLICY},
        "file": {"statement": Statement.FILE},
        "rest": {"statement": Statement.REST, "among": Among.DELIVERED},
        "delivered": {"among": Among.DELIVERED, "order": "holm"},
        "random checks": {"random_checks": True},
    }
    found = {f"policy: {name}": document for name, (document, _) in made_policies(data, folder, kinds).items()}
    return {
        **found,
        "audit": made_audit(folder),
        "certificate: piloted": made_pilot(data, found["policy: fresh"]),
    }
