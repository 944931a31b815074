"""Tables of the natural fields: baselines, families, budgets, repairs by design (paper, "Natural
response-field baselines").
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rrf_design.models import Request, Usage
from scenarios.kit import Table, designs
from scenarios.real_model import answers
from scenarios.real_model.choices import BASELINES, CALLS
from scenarios.real_model.work import Document, nodes_of, opportunity, recall


def percent(flags: Sequence[bool]) -> float | None:
    return 100.0 * float(np.mean(flags)) if len(flags) else None


def by_task(documents: Sequence[Document]) -> dict[str, list[Document]]:
    return {task: [d for d in documents if d["task"] == task] for task in dict.fromkeys(d["task"] for d in documents)}


def _methods(group: Sequence[Document]) -> dict[str, float | None]:
    return {name: percent([d["baselines"][name]["correct"] for d in group]) for name in BASELINES}


def summary(documents: Sequence[Document], model: str) -> Table:
    rows = []
    for task, group in by_task(documents).items():
        answered = [c for d in group for c, _ in nodes_of(d)]
        rows.append(
            {
                "task": task,
                "model": model,
                "items": len(group),
                **_methods(group),
                "candidate recall": percent([recall(d) for d in group]),
                "parse rate": percent([c.value is not None for c in answered]),
                "strict format": percent([c.strict for c in answered]),
                "opportunity cases": sum(opportunity(d) for d in group),
            }
        )
    return Table.of("natural", rows)


def families(documents: Sequence[Document]) -> Table:
    rows = []
    for task, group in by_task(documents).items():
        for family in sorted({d["family"] for d in group}):
            own = [d for d in group if d["family"] == family]
            rows.append({"task": task, "family": family, "items": len(own), **_methods(own)})
    return Table.of("families", rows)


def variants(documents: Sequence[Document]) -> Table:
    """Each of the four transformed queries by itself; and the items that it alone gets right or
    wrong.
    """
    rows = []
    for task, group in by_task(documents).items():
        answered = [nodes_of(d) for d in group]
        for number in range(answers.NODES):
            right = [nodes[number][1] for nodes in answered]
            others = [[ok for place, (_, ok) in enumerate(nodes) if place != number] for nodes in answered]
            rows.append(
                {
                    "task": task,
                    "query": number,
                    "items": len(group),
                    "right": percent(right),
                    "readable": percent([nodes[number][0].value is not None for nodes in answered]),
                    "only_right_here": sum(own and not any(rest) for own, rest in zip(right, others, strict=True)),
                    "only_wrong_here": sum(not own and all(rest) for own, rest in zip(right, others, strict=True)),
                }
            )
    return Table.of("variants", rows)


def budgets(log: answers.Log, requests: dict[str, list[Request]], again: answers.Log) -> Table:
    """Calls per item as declared, and the tokens and seconds of the distinct requests, by task and
    role; how many came back the same.
    """
    rows = []
    for name, asked in requests.items():
        task, role = name.split("/")
        own = log.subset(asked).entries
        twice = again.subset(request for request in asked if request in again)
        usage = sum((Usage(**e["usage"]) for e in own), Usage())
        rows.append(
            {
                "task": task,
                "role": role,
                "requests": len(asked),
                "distinct": len(own),
                "input_tokens": usage.input_tokens,
                "output_tokens": usage.output_tokens,
                "seconds": sum(e["seconds"] for e in own),
                "asked_again": len(twice),
                "same_words": twice.same_words(log),
            }
        )
    calls = ", ".join(f"{name} {count}" for name, count in CALLS.items())
    return Table.of(
        "budgets",
        rows,
        caption=(
            "What was asked, and how many answers came back word for word where a question was asked again. Calls per"
            f" item by method: {calls}. Replay makes no call at all."
        ),
    )


def repairs(documents: Sequence[Document]) -> Table:
    """Natural fields under the ten designs: all items, opportunity cases, and those within the
    corruption budget.
    """
    rows = []
    for task, group in by_task(documents).items():
        dim = len(group[0]["truth"])
        for design in designs.DESIGNS:
            for k in (1, 2):
                own = [(d, r) for d in group for r in d["repairs"] if (r["design"], r["k"]) == (design.name, k)]
                within = [r["correct"] for d, r in own if sum(not ok for _, ok in nodes_of(d)) <= k]
                chance = [r["correct"] for d, r in own if opportunity(d)]
                rows.append(
                    {
                        "task": task,
                        "design": design.name,
                        "k": k,
                        "gamma_k": designs.prepared(design.name, dim, k).gamma,
                        "items": len(own),
                        "right": percent([r["correct"] for _, r in own]),
                        "error": float(np.mean([r["error"] for _, r in own])),
                        "opportunity_items": len(chance),
                        "opportunity_right": percent(chance),
                        "within_budget": len(within),
                        "within_budget_right": percent(within),
                    }
                )
    return Table.of("repairs", rows)
