"""S1: a field can be perfectly consistent and wrong (paper, "Experiment S1: consistency–truth
separation").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from scenarios.kit.report import Report
from scenarios.kit.scenario import Context, Done, Part, Scenario
from scenarios.kit.typed_fields import complete, generator, sample_field

EXPERIMENT = "S1"
DEFECT_LIMIT = 1e-10
SHIFT = (0.8, 0.8, 0.8, 0.8)
"""The fixed latent shift v of the shared hallucination."""
WRONG_NODES = 3


def parts(context: Context) -> list[Part]:
    return [{"master": master} for master in context["masters"]]


def run(context: Context, part: Part) -> list[dict[str, Any]]:
    """One row per seed and kind of field."""
    rows = []
    for seed in range(context["seeds"]):
        n = context["nodes"][seed % len(context["nodes"])]
        field = sample_field(generator(part["master"], EXPERIMENT, "graph", seed), [n])
        D = field.operator(complete(range(n)))
        shared = field.truth + field.maps @ np.array(SHIFT)
        rng = generator(part["master"], EXPERIMENT, "corruption", seed)
        independent = field.truth.copy()
        for node in rng.choice(n, size=WRONG_NODES, replace=False):
            direction = rng.normal(size=field.dim)
            independent[node] += rng.uniform(0.9, 2.1) * direction / np.linalg.norm(direction)
        for kind, z in (("truth", field.truth), ("shared hallucination", shared), ("independent errors", independent)):
            rows.append(
                {
                    "master": part["master"],
                    "seed": seed,
                    "nodes": n,
                    "field": kind,
                    "defect": float(np.linalg.norm(D @ z.ravel()) / np.linalg.norm(z)),
                    "truth_error": float(np.linalg.norm(z - field.truth) / np.linalg.norm(field.truth)),
                    "rejected_draws": field.rejected,
                }
            )
    return rows


def report(context: Context, done: Sequence[Done]) -> Report:
    rows = [row for part in done for row in part.value]
    of = {kind: [r for r in rows if r["field"] == kind] for kind in dict.fromkeys(r["field"] for r in rows)}
    shared, independent = of["shared hallucination"], of["independent errors"]
    worst_shared = max(r["defect"] for r in shared)
    least_error = min(r["truth_error"] for r in shared)
    least_defect = min(r["defect"] for r in independent)
    summary = [
        {
            "field": kind,
            "fields": len(group),
            "median_defect": float(np.median([r["defect"] for r in group])),
            "largest_defect": max(r["defect"] for r in group),
            "median_truth_error": float(np.median([r["truth_error"] for r in group])),
            "least_truth_error": min(r["truth_error"] for r in group),
        }
        for kind, group in of.items()
    ]
    page = Report()
    page.answer = _answer(shared, independent)
    page.check("blind", worst_shared < DEFECT_LIMIT, f"largest defect {worst_shared:.3g}")
    page.check("wrong", least_error > 0, f"least truth error {least_error:.3g}")
    page.check("visible", least_defect > DEFECT_LIMIT, f"least defect {least_defect:.3g}")
    page.table("summary", summary)
    page.table("fields", rows, shown=12)
    page.points(
        "defect-and-truth",
        {kind: ([max(r["defect"], 1e-17) for r in g], [r["truth_error"] for r in g]) for kind, g in of.items()},
        x="relative relation defect (values below 1e-17 drawn there)",
        y="relative truth error",
        log_x=True,
    )
    return page


def _answer(shared: Sequence[dict[str, Any]], independent: Sequence[dict[str, Any]]) -> str:
    blind = [r for r in shared if r["defect"] < DEFECT_LIMIT and r["truth_error"] > 0]
    seen = sum(r["defect"] > DEFECT_LIMIT for r in independent)
    defect, error = (np.median([r[name] for r in shared]) for name in ("defect", "truth_error"))
    return (
        f"{'Yes' if blind else 'No'}: a hallucination that all nodes share satisfies every relation and is wrong on"
        f" {len(blind)} of {len(shared)} fields (median defect {defect:.2g} at a median error of {error:.0%} of the"
        f" truth's size), while independent errors at {WRONG_NODES} nodes show on {seen} of {len(independent)}."
    )


SCENARIO = Scenario.declared("consistency-truth", parts, run, report)
