"""Small fields, scripted models and failing doubles that the acquisition tests share."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import rrf_design as rrf
from rrf_design.acquisition import acquire
from rrf_design.acquisition._candidates import Candidates
from rrf_design.acquisition._selection import Position
from rrf_design.acquisition.sources.base import Toolbox, build
from rrf_design.models.base import Attempt, Outcome, Usage
from rrf_design.models.scripted import ScriptedModel

TRUTH = 7.0


def ring(n: int = 5, *, k: int = 1, budget: float | None = 4.0, name: str = "ring", **settings: Any) -> rrf.Problem:
    """n questions with one answer in a ring of relations, every second one on sale, and an anchor
    on sale at each.
    """
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


def pairs(count: int = 3, *, name: str = "pairs", cost: float = 1.0, **settings: Any) -> rrf.Problem:
    """Unrelated pairs of questions, each with an anchor on sale: every pair is a null witness of
    its own.
    """
    return rrf.Problem(
        name=name,
        k=1,
        nodes=[{"id": f"{side}{i}", "prompt": f"{name}: {side}{i}?"} for i in range(count) for side in "xy"],
        relations=[{"id": f"r{i}", "tail": f"x{i}", "head": f"y{i}"} for i in range(count)],
        anchors=[{"id": f"a{i}", "node": f"x{i}", "value": TRUTH, "cost": cost} for i in range(count)],
        **settings,
    )


def priced(
    n: int = 5, *, free: int = 0, budget: float | None = 12.0, name: str = "priced", **settings: Any
) -> rrf.Problem:
    """Questions that cost 1 each (all but the first `free` ones), related in a ring and across,
    checks at 2.
    """
    pairs = [(i, j) for i in range(n) for j in range(i)]
    more = {} if budget is None else {"budget": budget}
    return rrf.Problem(
        name=name,
        k=1,
        nodes=[
            {"id": f"n{i}", "prompt": f"{name}: question {i}?"} | ({} if i < free else {"cost": 1.0}) for i in range(n)
        ],
        relations=[{"id": f"r{i}{j}", "tail": f"n{i}", "head": f"n{j}"} for i, j in pairs],
        anchors=[{"id": f"a{i}", "node": f"n{i}", "value": TRUTH, "cost": 2.0} for i in range(n)],
        **more,
        **settings,
    )


def anchored(source: Any, *, dim: int = 1, **anchor: Any) -> rrf.Problem:
    """One node with the variables a = 12 and b = 7, and an anchor A on sale that has this
    source.
    """
    node = {"id": "n", "dim": dim, "prompt": "?", "variables": {"a": 12, "b": 7}}
    return rrf.Problem(k=1, nodes=[node], anchors=[{"id": "A", "node": "n", "cost": 1.0, "source": source, **anchor}])


def source_of(source: Any, tools: Toolbox | None = None, **more: Any) -> Any:
    """The source of that anchor, built as a run builds it."""
    problem = anchored(source, **more)
    return build(problem.anchors[0], problem, tools or Toolbox())


PRICES = {"scripted": {"input": 0.001, "output": 0.002, "call": 0.01}}


def go(problem: Any, tmp_path: Path, model: Any = None, **options: Any) -> Any:
    given: dict[str, Any] = {"store": tmp_path / "runs.sqlite", "method": "witness"} | options
    return acquire(problem, scripted() if model is None else model, **given)


class Flaky:
    """A model server that goes away after some answers and comes back when told."""

    def __init__(self, outcome: Outcome = Outcome.UNREACHABLE, *, after: int = 2) -> None:
        self.outcome, self.left, self.calls = outcome, after, 0

    def __call__(self, request: Any) -> Any:
        if self.left == 0:
            return Attempt(self.outcome, usage=Usage(), detail="connection refused")
        self.left -= 1
        self.calls += 1
        return one_wrong(request)


def at(field: rrf.Problem | Candidates, held: Iterable[str] = (), failed: Iterable[str] = ()) -> Position:
    """A field where so much is held and so much of that failed."""
    design = Candidates(field) if isinstance(field, rrf.Problem) else field
    return Position(design, frozenset(held), frozenset(failed))
