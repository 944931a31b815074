"""Four audits that must come out negative (paper, "Negative controls and falsification checks").

The replay table of the fourth control is the one that `published-replay` deduces from the paper's
own cells: real placements, no model needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from scenarios.anchor_transition import SCHEDULE
from scenarios.duplicate_saturation import duplicated
from scenarios.kit import Context, Done, Part, Report, Scenario
from scenarios.kit.association import grouped_prediction, spearman
from scenarios.kit.designs import DESIGNS
from scenarios.kit.rows import column, totals
from scenarios.kit.typed_fields import EXACT_SUCCESS, complete, corrupt, exact, generator, measure, path, sample_field
from scenarios.published_replay import implied_rows

EXPERIMENT = "controls"
KINDS = {"as they are": "", "shuffled": "shuffled_"}


def parts(context: Context) -> list[Part]:
    seeds = [
        {"control": name, "seed": s}
        for name in ("consistency", "uncovered", "duplicates")
        for s in range(context["seeds"])
    ]
    return [*seeds, {"control": "shuffled", "seed": 0}]


def run(context: Context, part: Part) -> dict[str, Any]:
    control = {"consistency": _consistency, "uncovered": _uncovered, "duplicates": _duplicates, "shuffled": _shuffled}
    return control[part["control"]](context, part["seed"])


def _consistency(context: Context, seed: int) -> dict[str, Any]:
    """A decoder that sees only D must return the transported common error untouched."""
    field = sample_field(generator(seed, EXPERIMENT, "consistency"), [12])
    D = field.operator(complete(range(12)))
    error = field.maps @ np.full(field.dim, 0.8)
    found = exact(D, field.groups, D @ error.ravel(), k=2, truth=field.truth, error=error)
    edited = abs(found.absolute_error - float(np.linalg.norm(error)))
    return {"defect": float(np.linalg.norm(D @ error.ravel())), "error_left": found.relative_error, "edit": edited}


def _uncovered(context: Context, seed: int) -> dict[str, Any]:
    """One pair without an anchor: repair must fail for some corruption inside it, and never
    outside.
    """
    field = sample_field(generator(seed, EXPERIMENT, "uncovered"), [2] * 6)
    B = field.operator([(2 * p, 2 * p + 1) for p in range(6)], SCHEDULE[:5])
    inside: list[bool] = []
    outside: list[bool] = []
    for draw in range(24):
        wrong = corrupt(generator(seed, EXPERIMENT, "uncovered corruption", draw), field, 1)
        found = exact(B, field.groups, B @ wrong.error.ravel(), k=1, truth=field.truth, error=wrong.error)
        (inside if wrong.nodes[0] >= 10 else outside).append(found.relative_error <= EXACT_SUCCESS)
    return {
        "gamma_1": measure(B, field.groups, 1).gamma,
        "inside": len(inside),
        "inside_recovered": sum(inside),
        "outside": len(outside),
        "outside_recovered": sum(outside),
    }


def _duplicates(context: Context, seed: int) -> dict[str, Any]:
    field = sample_field(generator(seed, EXPERIMENT, "duplicates"), [8])
    single, many = (duplicated(field, path(range(8)), copies) for copies in (1, 16))
    one, sixteen = (p.operator().matrix.toarray() for p in (single, many))
    return {
        "rows": one.shape[0],
        "rows_of_copies": sixteen.shape[0],
        "gram_change": float(np.abs(one.T @ one - sixteen.T @ sixteen).max()),
        "margin_change": abs(float(single.margin().value) - float(many.margin().value)),
    }


def _shuffled(context: Context, seed: int) -> dict[str, Any]:
    """The predictive gain of γ on replay rows, and on the same rows with margins shuffled inside
    items.
    """
    replay = implied_rows()
    gamma, error, success, items = (replay[name] for name in ("gamma", "error", "success", "item"))
    table = np.array(replay["controls"], dtype=np.float64)
    rng = np.random.default_rng(seed)
    shuffled = rng.permuted(np.array(gamma).reshape(-1, len(DESIGNS)), axis=1).ravel()
    real = grouped_prediction(table, gamma, success, items)
    null = grouped_prediction(table, shuffled, success, items)
    return {
        "spearman": spearman(gamma, -np.array(error)),
        "shuffled_spearman": spearman(shuffled, -np.array(error)),
        "auc_gain": real.gain,
        "shuffled_auc_gain": null.gain,
        "coefficient": real.coefficient,
        "shuffled_coefficient": null.coefficient,
    }


def report(context: Context, done: Sequence[Done]) -> Report:
    rows = {
        name: [{"seed": d.part["seed"], **d.value} for d in done if d.part["control"] == name]
        for name in ("consistency", "uncovered", "duplicates", "shuffled")
    }
    uncovered, shared, shuffle = rows["uncovered"], len(rows["consistency"]), rows["shuffled"][0]
    fooled = sum(r["edit"] < 1e-9 and r["error_left"] > 0.1 for r in rows["consistency"])
    inside, inner, outside, outer = totals(uncovered, "inside inside_recovered outside outside_recovered").values()
    gram, change = (max(column(rows["duplicates"], name)) for name in ("gram_change", "margin_change"))
    gain, without = shuffle["auc_gain"], shuffle["shuffled_auc_gain"]
    page = context.page()
    page.check("consistency", fooled == shared, f"{fooled} of {shared} errors untouched")
    page.check(
        "uncovered",
        all(r["gamma_1"] == 0 for r in uncovered) and inner < inside and outside == outer,
        f"inside the uncovered pair {inner} of {inside} recovered, outside {outer} of {outside}",
    )
    page.check("duplicates", gram < 1e-10 and change < 1e-10, f"BᵀB changes by {gram:.1g}, the margin by {change:.1g}")
    page.check(
        "shuffled",
        abs(without) < 0.01 < gain and abs(shuffle["shuffled_spearman"]) < 0.1,
        f"AUC gain {gain:.3f}, shuffled {without:.3f}; "
        f"Spearman {shuffle['spearman']:.3f}, shuffled {shuffle['shuffled_spearman']:.3f}",
    )
    page.answer = (
        f"The machinery stays silent as it must in {page.met} of {len(page.verdicts)} controls: relations alone leave"
        f" {fooled} of {shared} shared errors untouched, repair inside a pair without an anchor"
        f" succeeds {inner} of {inside} times (elsewhere {outer} of {outside}), copies of relations"
        f" change the margin by {change:.1g}, and shuffled margins add {without:.3f} to the"
        f" prediction of recovery (AUC) where the real ones add {gain:.3f}."
    )
    for name, group in rows.items():
        page.table(name, group, f"Control: {name}.", shown=10)
    labels = {"spearman": "Spearman", "auc_gain": "gain in AUC"}
    page.bars(
        "shuffled",
        {f"{label}, {kind}": shuffle[prefix + key] for key, label in labels.items() for kind, prefix in KINDS.items()},
        y="association with recovery",
    )
    return page


SCENARIO = Scenario.declared("negative-controls", parts, run, report)
