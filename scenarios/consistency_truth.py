"""S1: a field can be perfectly consistent and wrong (paper, "Experiment S1: consistency–truth
separation").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from scenarios.kit import Context, Done, Part, Report, Scenario
from scenarios.kit.rows import column, curve, grouped, groups, rows_of, where
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
    rows = rows_of(done)
    shared, independent = where(rows, field="shared hallucination"), where(rows, field="independent errors")
    worst, error, defect = max(column(shared, "defect")), column(shared, "truth_error"), column(independent, "defect")
    blind = [r for r in shared if r["defect"] < DEFECT_LIMIT and r["truth_error"] > 0]
    seen = sum(value > DEFECT_LIMIT for value in defect)
    page = context.page()
    page.answer = (
        f"{'Yes' if blind else 'No'}: a hallucination that all nodes share satisfies every relation and is wrong on"
        f" {len(blind)} of {len(shared)} fields (median defect {np.median(column(shared, 'defect')):.2g} at a median"
        f" error of {np.median(error):.0%} of the truth's size), while independent errors at {WRONG_NODES} nodes show"
        f" on {seen} of {len(independent)}."
    )
    page.check("blind", worst < DEFECT_LIMIT, f"largest defect {worst:.3g}")
    page.check("wrong", min(error) > 0, f"least truth error {min(error):.3g}")
    page.check("visible", min(defect) > DEFECT_LIMIT, f"least defect {min(defect):.3g}")
    spec = "fields=count median:defect largest:defect median:truth_error least:truth_error"
    page.table("summary", grouped(rows, "field", spec))
    page.table("fields", rows, shown=12)
    drawn = [{**row, "defect": max(row["defect"], 1e-17)} for row in rows]
    page.points(
        "defect-and-truth",
        {kind: curve(group, "defect", "truth_error") for (kind,), group in groups(drawn, "field").items()},
        x="relative relation defect (values below 1e-17 drawn there)",
        y="relative truth error",
        log_x=True,
    )
    return page


SCENARIO = Scenario.declared("consistency-truth", parts, run, report)
