"""Sensitivity by doing it again: other readings of the answers, and other weights of the relations,
through the whole protocol.

A parser decides which nodes have a value, so it changes outcomes and the operator that is realised
(relations of an unread node are gone, and with them its margin), not only how many answers are
read. The same for weights: margins, repairs and the association are computed anew under each
(paper, "Parser sensitivity" and "Relation-weight sensitivity").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from rrf_design.problem import Problem
from rrf_design.responses.sandbox import Sandbox
from scenarios.kit import Table, designs
from scenarios.kit.association import spearman
from scenarios.real_model import answers, fields, marks, programs, replay
from scenarios.real_model.audits import reliability
from scenarios.real_model.choices import natural_repair
from scenarios.real_model.inference import margins

Document = Mapping[str, Any]
RULES = ("integer-last", "integer-strict", "integer-first")
"""The first is the declared one."""
FENCE = re.compile(r"^[ \t]*(```|~~~).*$", flags=re.MULTILINE)
WAYS: dict[str, Callable[[str], str]] = {
    "as declared": str,
    "fenced blocks only": lambda text: text if FENCE.search(text) else "",
    "from def solve": lambda text: FENCE.sub("", text),
}
"""How a program is taken out of its answer."""
SHOWN = ("spanning_tree", "typed_complete", "complete_plus_anchor")


def reread(item: answers.Item, log: answers.Log, *, seed: int, box: Sandbox | None) -> list[dict[str, Any]]:
    """One item under every rule: what is read, what is right, repairs at k = 1, realised margins,
    and its replay rows.
    """
    code = isinstance(item, programs.AskedProgram)
    rows = []
    for rule in WAYS if code else RULES:
        found = (
            fields.read(item, log, seed=seed, text=WAYS[rule])
            if code
            else fields.read(item, log, seed=seed, parser=rule)
        )
        judged = marks.mark_candidates(item, found, box)
        rows.append({"rule": rule, **_outcome(item, found, judged, seed=seed, code=code)})
    return rows


def _outcome(
    item: answers.Item, found: Sequence[fields.AnswerCandidate], judged: Sequence[marks.Mark], *, seed: int, code: bool
) -> dict[str, Any]:
    right = fields.truth(item)
    nodes = [(c, m) for c, m in zip(found, judged, strict=True) if c.role == "node"]
    there = tuple(c.number for c, _ in nodes if c.value is not None)
    repaired = {}
    for name in SHOWN:
        design = next(d for d in designs.DESIGNS if d.name == name)
        chosen = natural_repair(design, found, right, k=1, code=code)
        repaired[name] = marks.mark_choice(item, None if chosen is None else chosen.choice, judged).correct
    return {
        "answers": len(found),
        "read": sum(c.value is not None for c in found),
        "raw": nodes[0][1].correct,
        "right": sum(m.correct for _, m in nodes),
        "repaired": repaired,
        "realised": {design.name: realised(design.name, there) for design in designs.DESIGNS},
        "replay": replay.replay_rows(item, replay.wrong_values(item, found, judged), seed=seed),
    }


@cache
def realised(name: str, there: tuple[int, ...]) -> float:
    """γ₁ of a design on the nodes that have a value; 0 where fewer than two do, or none of its rows
    is left.
    """
    design = next(d for d in designs.DESIGNS if d.name == name)
    edges = [(i, j) for i, j in design.edges if i in there and j in there]
    anchors = [i for i in design.anchors if i in there]
    if len(there) < 2 or not (edges or anchors):
        return 0.0
    problem = Problem(
        k=1,
        nodes=[{"id": str(i)} for i in there],
        relations=[{"id": f"r{i}{j}", "tail": str(i), "head": str(j)} for i, j in edges],
        anchors=[{"id": f"a{i}", "node": str(i)} for i in anchors],
    )
    value = float(problem.margin().value)
    return 0.0 if value < 1e-10 else value


def parsers(documents: Sequence[Document]) -> Table:
    """Every rule: readings, outcomes, realised margins and the association, each from the texts."""
    rows = []
    for task in dict.fromkeys(d["task"] for d in documents):
        own = [d for d in documents if d["task"] == task]
        for rule in [row["rule"] for row in own[0]["reread"]]:
            found = [next(row for row in d["reread"] if row["rule"] == rule) for d in own]
            rows.append({"task": task, "rule": rule, "items": len(found), **_summary(found)})
    return Table.of("parser-outcomes", rows)


def _summary(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    replayed = [row for one in found for row in one["replay"]]
    return {
        "read": sum(one["read"] for one in found),
        "of": sum(one["answers"] for one in found),
        "raw_right": 100.0 * float(np.mean([one["raw"] for one in found])),
        **{f"{name}_right": 100.0 * float(np.mean([one["repaired"][name] for one in found])) for name in SHOWN},
        "realised_γ": float(np.mean([one["realised"]["typed_complete"] for one in found])),
        "realised_zero": sum(one["realised"]["typed_complete"] == 0.0 for one in found),
        "replayed_errors": len(replayed) // len(designs.DESIGNS),
        **_association(replayed),
    }


def _association(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Margin against error, and the theorem's promise: no positive margin misses."""
    if not rows:
        return {"spearman": None, "missed": None}
    error = np.array([row["error"] for row in rows])
    missed = sum(not row["exact"] for row in rows if row["gamma_1"] > 0)
    return {"spearman": spearman(margins(rows), -error), "missed": missed}


def _natural_right(
    documents: Sequence[Document], items: Mapping[str, answers.Item], weights: replay.Weighting
) -> dict[str, float]:
    """Natural fields repaired at k = 1 with weighted relations: percent right by design."""
    right: dict[str, list[bool]] = {name: [] for name in SHOWN}
    for document in documents:
        item = items[document["id"]]
        found = [fields.AnswerCandidate.from_document(c) for c in document["candidates"]]
        judged = [marks.Mark(**mark) for mark in document["marks"]]
        for name in SHOWN:
            design = next(d for d in designs.DESIGNS if d.name == name)
            chosen = natural_repair(
                design,
                found,
                document["truth"],
                k=1,
                code=isinstance(item, programs.AskedProgram),
                weights=weights(design),
            )
            right[name].append(marks.mark_choice(item, None if chosen is None else chosen.choice, judged).correct)
    return {f"{name}_right": 100.0 * float(np.mean(own)) for name, own in right.items()}


def weightings(documents: Sequence[Document], items: Mapping[str, answers.Item], *, seed: int) -> Table:
    """Unit weights, fixed total energy, calibrated reliability: margins, replay and association
    under each.
    """
    rows = []
    for task in dict.fromkeys(d["task"] for d in documents):
        own = [d for d in documents if d["task"] == task]
        trusted = reliability(own)
        schemes: dict[str, replay.Weighting] = {
            "unit": lambda design: tuple(1.0 for _ in design.edges),
            "fixed energy": lambda design: tuple(1.0 / len(design.edges) for _ in design.edges),
            "reliability": lambda design, w=trusted: tuple(w[edge] for edge in design.edges),  # type: ignore[misc]
        }
        for name, weights in schemes.items():
            replayed = [
                row
                for d in own
                for row in replay.replay_rows(
                    items[d["id"]], [tuple(value) for value in d["wrong"]], seed=seed, weights=weights
                )
            ]
            by_design = {row["design"]: row["gamma_1"] for row in replayed}
            rows.append(
                {
                    "task": task,
                    "weights": name,
                    "replayed_errors": len(replayed) // len(designs.DESIGNS),
                    "positive_margins": sum(value > 0 for value in by_design.values()),
                    "least_positive_γ": min((v for v in by_design.values() if v > 0), default=None),
                    "mean_error": float(np.mean([row["error"] for row in replayed])) if replayed else None,
                    **_association(replayed),
                    **_natural_right(own, items, weights),
                }
            )
    return Table.of("weight-outcomes", rows)
