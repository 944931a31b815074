"""Authentic errors replayed under the ten designs (paper, "Real-error replay").

An item with a right and a distinct wrong answer in its log gives one field per distinct wrong
answer: three nodes hold the right value, one node, drawn with a seed of its own, the wrong one. For
code the wrong program must differ on the public signature. The responses are the same for all
designs; only the operator changes.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rrf_design.repairing import robust_scale
from scenarios.kit.designs import DESIGNS, NODES, FieldDesign, prepared
from scenarios.real_model.answers import Item, family, task
from scenarios.real_model.fields import AnswerCandidate, same, truth
from scenarios.real_model.marks import Mark

Weighting = Callable[[FieldDesign], tuple[float, ...]]
"""One weight per relation of a design."""


def wrong_values(item: Item, candidates: Sequence[AnswerCandidate], marks: Sequence[Mark]) -> list[tuple[float, ...]]:
    """Distinct wrong values of an item that also has a right answer; none when the log can't be
    replayed.
    """
    right = truth(item)
    # A program counts as right when it passes the hidden tests; its public signature is then the
    # reference's.
    if not any(mark.correct for mark in marks):
        return []
    found: list[tuple[float, ...]] = []
    for candidate, mark in zip(candidates, marks, strict=True):
        value = candidate.value
        if value is None or mark.correct or same(value, right) or any(same(value, other) for other in found):
            continue
        found.append(value)
    return found


def replay_rows(
    item: Item, wrong: Sequence[tuple[float, ...]], *, seed: int, weights: Weighting | None = None
) -> list[dict[str, Any]]:
    """One row per wrong answer and design; `weights` gives a design's relations weights of their
    own.
    """
    right = np.array(truth(item))
    dim = len(right)
    rows = []
    for number, value in enumerate(wrong):
        rng = np.random.default_rng([seed, zlib.crc32(item.id.encode()), number])
        node = int(rng.integers(NODES))
        scale = robust_scale(np.array([right, right, right, value])) if dim > 1 else np.ones(1)
        anchor = right / scale
        clean = np.tile(anchor, (NODES, 1))
        field = clean.copy()
        field[node] = np.array(value) / scale
        size = float(np.linalg.norm(field - clean))
        disagreement = float(np.sqrt(3.0) * size / max(float(np.linalg.norm(field)), 1e-12))
        for design in DESIGNS:
            ready = prepared(design.name, dim, 1, None if weights is None else weights(design))
            repaired = ready.repair(field, anchor)
            error = float(np.linalg.norm(repaired.field - clean)) / max(size, 1e-12)
            rows.append(
                {
                    "task": task(item),
                    "family": family(item),
                    "item": item.id,
                    "error_number": number,
                    "corrupted_node": node,
                    "design": design.name,
                    "gamma_1": ready.gamma,
                    "relations": len(design.edges),
                    "anchors": len(design.anchors),
                    "disagreement": disagreement,
                    "error": 0.0 if error < 1e-9 else error,
                    "exact": error < 1e-9,
                    "explanations": repaired.explanations,
                }
            )
    return rows
