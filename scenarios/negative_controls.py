"""Four audits that must come out negative (paper, "Negative controls and falsification checks").

The replay table of the fourth control is the one that `published-replay` deduces from the paper's
own cells: real placements, no model needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from scenarios.anchor_transition import SCHEDULE
from scenarios.duplicate_saturation import duplicated
from scenarios.kit.association import grouped_prediction, spearman
from scenarios.kit.designs import DESIGNS
from scenarios.kit.report import ConditionStatus, ConditionVerdict, Figure, Report, Table
from scenarios.kit.scenario import Context, Done, Part, Scenario
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
    fooled = sum(r["edit"] < 1e-9 and r["error_left"] > 0.1 for r in rows["consistency"])
    uncovered = rows["uncovered"]
    inside = sum(r["inside"] for r in uncovered), sum(r["inside_recovered"] for r in uncovered)
    outside = sum(r["outside"] for r in uncovered), sum(r["outside_recovered"] for r in uncovered)
    gram = max(r["gram_change"] for r in rows["duplicates"])
    change = max(r["margin_change"] for r in rows["duplicates"])
    shuffle = rows["shuffled"][0]
    verdicts = [
        ConditionVerdict.of(
            "consistency",
            fooled == len(rows["consistency"]),
            f"{fooled} of {len(rows['consistency'])} errors untouched",
        ),
        ConditionVerdict.of(
            "uncovered",
            all(r["gamma_1"] == 0 for r in uncovered) and inside[1] < inside[0] and outside[0] == outside[1],
            f"inside the uncovered pair {inside[1]} of {inside[0]} recovered, outside {outside[1]} of {outside[0]}",
        ),
        ConditionVerdict.of(
            "duplicates", gram < 1e-10 and change < 1e-10, f"BᵀB changes by {gram:.1g}, the margin by {change:.1g}"
        ),
        ConditionVerdict.of(
            "shuffled",
            abs(shuffle["shuffled_auc_gain"]) < 0.01 < shuffle["auc_gain"] and abs(shuffle["shuffled_spearman"]) < 0.1,
            f"AUC gain {shuffle['auc_gain']:.3f}, shuffled {shuffle['shuffled_auc_gain']:.3f}; "
            f"Spearman {shuffle['spearman']:.3f}, shuffled {shuffle['shuffled_spearman']:.3f}",
        ),
    ]
    silent = sum(verdict.status is ConditionStatus.MET for verdict in verdicts)
    page = Report()
    page.answer = (
        f"The machinery stays silent as it must in {silent} of {len(verdicts)} controls: relations alone leave"
        f" {fooled} of {len(rows['consistency'])} shared errors untouched, repair inside a pair without an anchor"
        f" succeeds {inside[1]} of {inside[0]} times (elsewhere {outside[1]} of {outside[0]}), copies of relations"
        f" change the margin by {change:.1g}, and shuffled margins add {shuffle['shuffled_auc_gain']:.3f} to the"
        f" prediction of recovery (AUC) where the real ones add {shuffle['auc_gain']:.3f}."
    )
    page.verdicts.extend(verdicts)
    page.tables.extend([Table.of(name, group, caption=f"Control: {name}.", shown=10) for name, group in rows.items()])
    page.figures.append(_figure(shuffle))
    return page


def _figure(shuffle: Mapping[str, Any]) -> Figure:
    from scenarios.kit.plots import bars

    labels = {"spearman": "Spearman", "auc_gain": "gain in AUC"}
    pairs = [(f"{label}, {kind}", prefix + key) for key, label in labels.items() for kind, prefix in KINDS.items()]
    return bars(
        "shuffled", [label for label, _ in pairs], [shuffle[key] for _, key in pairs], y="association with recovery"
    )


SCENARIO = Scenario.declared("negative-controls", parts, run, report)
