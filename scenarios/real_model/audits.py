"""Audits of the natural logs: consistency against truth, hidden-only errors, failures by kind,
parsers, weights, tolerances.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from rrf_design.repairing import Failure
from rrf_design.responses import extract, sensitivity
from scenarios.kit import Table, designs
from scenarios.kit.rows import pick
from scenarios.real_model.fields import same
from scenarios.real_model.natural import by_task
from scenarios.real_model.work import Document, nodes_of, recall

LOW_DEFECT = 1e-6
"""Answers are integers (or integer signatures): any disagreement at all exceeds this, so it was not
tuned on anything.
"""


def defect(document: Document) -> float | None:
    """Normalised relation defect over all six pairs; None when an answer has no value."""
    return None if any(c.value is None for c, _ in nodes_of(document)) else disagreement(document)


def disagreement(document: Document) -> float:
    """Normalised relation defect over the pairs of answers that have values; 0 where there is no
    such pair.
    """
    values = {number: c.value for number, (c, _) in enumerate(nodes_of(document)) if c.value is not None}
    size = float(np.linalg.norm(list(values.values())))
    gaps = [np.subtract(values[i], values[j]) for i, j in designs.DESIGNS[5].edges if i in values and j in values]
    return float(np.linalg.norm(gaps)) / max(size, 1e-12) if gaps else 0.0


def consistency(documents: Sequence[Document]) -> Table:
    kinds = (
        "low defect, right",
        "low defect, shared wrong answer",
        "high defect, some right",
        "high defect, all wrong",
        "an answer could not be read",
    )
    rows = []
    for task, group in by_task(documents).items():
        counts = dict.fromkeys(kinds, 0)
        for document in group:
            value, right = defect(document), [ok for _, ok in nodes_of(document)]
            if value is None:
                counts[kinds[4]] += 1
            elif value <= LOW_DEFECT:
                counts[kinds[0] if all(right) else kinds[1]] += 1
            else:
                counts[kinds[2] if any(right) else kinds[3]] += 1
        rows.append({"task": task, "items": len(group), **counts})
    return Table.of("consistency", rows)


def shared_examples(documents: Sequence[Document], limit: int = 8) -> Table:
    """Raw outputs of fields that agree on a wrong answer."""
    columns = ("item", "family", "truth", "agreed on", "first answer")
    rows: list[dict[str, Any]] = []
    for document in documents:
        value, (first, _) = defect(document), nodes_of(document)[0]
        if value is not None and value <= LOW_DEFECT and not any(ok for _, ok in nodes_of(document)):
            truth, agreed = (" ".join(f"{v:g}" for v in told or ()) for told in (document["truth"], first.value))
            cells = (document["id"], document["family"], truth, agreed, first.text[:120])
            rows.append(dict(zip(columns, cells, strict=True)))
    return Table.of("shared-examples", rows, shown=limit, columns=columns)


def hidden_only(documents: Sequence[Document]) -> Table:
    """What is wrong with generated programs, and whether the public signature can see it."""
    counts: Counter[tuple[str, str]] = Counter()
    for document in documents:
        if document["task"] != "code":
            continue
        for candidate, mark in zip(document["candidates"], document["marks"], strict=True):
            if mark["correct"]:
                kind = "right"
            elif candidate["value"] is None:
                kind = f"no signature: {candidate['status']}"
            elif same(candidate["value"], document["truth"]):
                kind = "hidden-only error"
            else:
                kind = "error visible in the public signature"
            counts[candidate["role"], kind] += 1
    rows = [{"role": role, "kind": kind, "programs": count} for (role, kind), count in sorted(counts.items())]
    return Table.of("programs", rows, columns=("role", "kind", "programs"))


def labels(document: Document, row: Any) -> list[Failure]:
    """Nonexclusive reasons for a failed natural repair."""
    nodes = nodes_of(document)
    wrong = sum(not ok for _, ok in nodes)
    values = [c.value for c, _ in nodes if c.value is not None]
    gamma = designs.prepared(row["design"], len(document["truth"]), row["k"]).gamma
    collision = any(v is not None and not ok and same(v, document["truth"]) for (c, ok) in nodes for v in [c.value])
    agree = len(values) > 1 and all(same(value, values[0]) for value in values)
    found = {
        Failure.CANDIDATE_ABSENCE: not recall(document),
        Failure.SHARED_ERROR: agree and not recall(document),
        Failure.BUDGET_VIOLATION: wrong > row["k"],
        Failure.REPRESENTATION_COLLISION: collision,
        Failure.MARGIN: gamma == 0.0,
        Failure.PARSE_FAILURE: len(values) < len(nodes),
    }
    result = [label for label, applies in found.items() if applies]
    if recall(document) and wrong <= row["k"] and gamma > 0 and len(values) == len(nodes) and not collision:
        result.append(Failure.OPTIMISATION)
    return result


def repairs_by_item(documents: Sequence[Document]) -> Table:
    """Every natural repair under all ten designs: its support, residual and edit, whether it is
    right, and why it failed.
    """
    rows = [
        {
            "item": d["id"],
            **pick(r, "design k chosen"),
            "value": _value(r),
            "right": r["correct"],
            **pick(r, "error support residual edit"),
            "labels": "" if r["correct"] else "; ".join(map(str, labels(d, r))),
        }
        for d in documents
        for r in d["repairs"]
    ]
    return Table.of("repairs-by-item", rows, shown=10)


def _value(row: Any) -> str:
    return "" if row["value"] is None else " ".join(f"{v:.12g}" for v in row["value"])


def choices_by_item(documents: Sequence[Document]) -> Table:
    """What each baseline returned for each item: which answer, its value, and how it was marked."""
    rows = [
        {
            "item": d["id"],
            "method": name,
            "chosen": m["chosen"],
            "value": _value(m),
            "right": m["correct"],
            "error": m["error"],
        }
        for d in documents
        for name, m in d["baselines"].items()
    ]
    return Table.of("choices-by-item", rows, shown=10)


def taxonomy(documents: Sequence[Document]) -> Table:
    rows = []
    for task, group in by_task(documents).items():
        found = [(r["design"], r["k"], labels(d, r)) for d in group for r in d["repairs"] if not r["correct"]]
        for design in designs.DESIGNS:
            for k in (1, 2):
                given = [each for name, budget, each in found if (name, budget) == (design.name, k)]
                counts = {str(label): sum(label in each for each in given) for label in Failure}
                rows.append({"task": task, "design": design.name, "k": k, "failed": len(given), **counts})
    return Table.of("failures", rows)


def parsers(documents: Sequence[Document]) -> Table:
    """Arithmetic answers read by three rules, programs extracted in two ways."""
    rules = ("integer-strict", "integer-last", "integer-first")
    rows = []
    for task, group in by_task(documents).items():
        texts = [c["text"] for d in group for c in d["candidates"]]
        if task == "code":
            fenced = [_fenced(text) for text in texts]
            bare = [extract(re.sub(r"^[ \t]*(```|~~~).*$", "", text, flags=re.MULTILINE)) for text in texts]
            both = sum(_stripped(a) == _stripped(b) for a, b in zip(fenced, bare, strict=True))
            rows.append(_row(task, "fenced block", len(texts), sum(s is not None for s in fenced), both))
            rows.append(_row(task, "from def solve", len(texts), sum(s is not None for s in bare), both))
            continue
        found = sensitivity(texts, rules)
        for place, rule in enumerate(rules):
            agree = sum(readings[place].value == readings[1].value for readings in found.parsed)
            rows.append(_row(task, rule, len(texts), sum(readings[place].ok for readings in found.parsed), agree))
    return Table.of("parsers", rows)


def _row(task: str, rule: str, answers: int, read: int, agree: int) -> dict[str, Any]:
    return {"task": task, "rule": rule, "answers": answers, "read": read, "agree": agree}


def _fenced(text: str) -> str | None:
    return extract(text) if re.search(r"^[ \t]*(```|~~~)", text, flags=re.MULTILINE) else None


def _stripped(source: str | None) -> str | None:
    return None if source is None else source.strip()


def reliability(documents: Sequence[Document]) -> dict[tuple[int, int], float]:
    """Weights by inverse residual variance of each pair of query types on a calibration split
    (every fourth item), mean 1.
    """
    weights = {}
    for edge in designs.DESIGNS[5].edges:
        gaps = []
        for document in documents:
            if document["index"] % 4:
                continue
            values = [c.value for c, _ in nodes_of(document)]
            a, b = values[edge[0]], values[edge[1]]
            if a is not None and b is not None:
                scale = max(float(np.abs(document["truth"]).max()), 1.0)
                gaps.append(np.clip(np.subtract(a, b) / scale, -2.0, 2.0))
        weights[edge] = 1.0 / (float(np.mean(np.square(gaps))) + 1e-2) if gaps else 1.0
    mean = float(np.mean(list(weights.values())))
    return {edge: weight / mean for edge, weight in weights.items()}


def weights(documents: Sequence[Document]) -> Table:
    """γ of every design under unit weights, fixed total energy, and calibrated reliability."""
    rows = []
    for task, group in by_task(documents).items():
        trusted = reliability(group)
        dim = len(group[0]["truth"])
        for design in designs.DESIGNS:
            equal = tuple(1.0 / len(design.edges) for _ in design.edges)
            known = tuple(trusted[edge] for edge in design.edges)
            rows.append(
                {
                    "task": task,
                    "design": design.name,
                    "unit": designs.prepared(design.name, dim).gamma,
                    "fixed_energy": designs.prepared(design.name, dim, 1, equal).gamma,
                    "reliability": designs.prepared(design.name, dim, 1, known).gamma,
                }
            )
    return Table.of("weights", rows)


def tolerances() -> Table:
    rows = []
    for design in designs.DESIGNS:
        for dim in (1, 8):
            value = float(designs.prepared(design.name, dim).problem.margin().value)
            rows.append(
                {
                    "design": design.name,
                    "dim": dim,
                    "value": value,
                    **{f"zero_at_{t:g}": value < t for t in (1e-8, 1e-10, 1e-12)},
                }
            )
    return Table.of("tolerances", rows)
