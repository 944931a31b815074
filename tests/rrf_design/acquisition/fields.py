"""Small fields, scripted models and failing doubles that the acquisition tests share."""

from __future__ import annotations

from typing import Any

import rrf_design as rrf
from rrf_design.models.scripted import ScriptedModel

TRUTH = 7.0


def ring(n: int = 5, *, k: int = 1, budget: float | None = 4.0, name: str = "ring", **settings: Any) -> rrf.Problem:
    """n questions with one answer in a ring of relations, every second one on sale, and an anchor on sale at each."""
    relations: list[dict[str, Any]] = []
    for i in range(n):
        relation: dict[str, Any] = {"id": f"r{i}", "tail": f"n{i}", "head": f"n{(i + 1) % n}"}
        relations.append(relation | ({"cost": 1.0} if i % 2 else {}))
    more = {} if budget is None else {"budget": budget}
    return rrf.Problem(
        name=name,
        k=k,
        nodes=[{"id": f"n{i}", "prompt": f"{name}: question {i}?"} for i in range(n)],
        relations=relations,
        anchors=[{"id": f"a{i}", "node": f"n{i}", "value": TRUTH, "cost": 1.0 + 0.1 * i} for i in range(n)],
        **more,
        **settings,
    )


def right(_: Any) -> str:
    return "The answer is 7."


def one_wrong(request: Any) -> str:
    return "It is 12." if "question 2" in request.prompt else "7"


def scripted(script: Any = one_wrong, **options: Any) -> ScriptedModel:
    return ScriptedModel(script, **options)
