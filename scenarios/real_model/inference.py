"""The replay rows by design, and the paper's statistics on them (paper, "Statistical validation of
a cross-model, cross-task difficulty measure").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scenarios.kit import Table
from scenarios.kit.association import (
    Permutation,
    Prediction,
    cluster_bootstrap,
    grouped_prediction,
    hierarchical,
    log_slope,
    pearson,
    share,
    spearman,
    within_item_permutation,
)
from scenarios.kit.rows import grouped

Row = Mapping[str, Any]
ENOUGH_QUESTIONS = 20
"""Below this many replayed questions a stratum is reported with a flag."""


def margins(rows: Sequence[Row]) -> NDArray[np.float64]:
    """γ₁ of every row, equal ones tied: the margins of two fibers differ in the last digit by
    rounding, and ranks would tell them apart.
    """
    return np.round([float(r["gamma_1"]) for r in rows], 9)


def question(row: Row) -> tuple[str, str]:
    """What a row's answers are answers to.

    Four code items share one function and hence their prompts and greedy answers: they are one
    question, and intervals and folds that took them for four would find equal answers on both
    sides.
    """
    return row["stratum"], row["family"] if row["task"] == "code" else row["item"]


def cells(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Every task and design: how many fields, the margin, percent exact, mean error."""
    found = grouped(rows, "stratum design", "fields=count gamma_1=first exact=mean error=mean")
    return [{**row, "exact": 100.0 * row["exact"]} for row in found]


def strata(rows: Sequence[Row], *, draws: int, seed: int) -> Table:
    """Rank and linear association by stratum, and pooled, with intervals that resample whole
    questions.
    """
    groups = {name: [r for r in rows if r["stratum"] == name] for name in dict.fromkeys(r["stratum"] for r in rows)}
    table = []
    for name, group in {**groups, "pooled": list(rows)}.items():
        gamma = margins(group)
        better = -np.array([r["error"] for r in group])
        items, questions = [(r["stratum"], r["item"]) for r in group], [question(r) for r in group]
        interval = cluster_bootstrap(
            lambda i, g=gamma, b=better: spearman(g[i], b[i]),  # type: ignore[misc]
            questions,
            [r["stratum"] for r in group],
            draws=draws,
            seed=seed,
        )
        count = len(set(questions))
        table.append(
            {
                "stratum": name,
                "fields": len(group),
                "items": len(set(items)),
                "questions": count,
                "spearman": spearman(gamma, better),
                "low": interval.low,
                "high": interval.high,
                "pearson": pearson(gamma, better),
                "flag": "" if count >= ENOUGH_QUESTIONS else f"fewer than {ENOUGH_QUESTIONS} questions",
            }
        )
    return Table.of("association", table)


@dataclass(frozen=True, slots=True)
class PairedTests:
    """The primary tests; `prediction` is None when there are too few items or only one outcome."""

    permutation: Permutation
    prediction: Prediction | None
    table: Table


def primary_tests(
    rows: Sequence[Row], *, permutations: int, seed: int, folds: int = 5, name: str = "tests", caption: str = ""
) -> PairedTests:
    """Permutation inside each field (fields of one question alike), prediction grouped by question,
    hierarchical and hurdle sensitivity; replayed or natural fields alike.
    """
    gamma = margins(rows)
    error = np.array([r["error"] for r in rows])
    exact = [bool(r["exact"]) for r in rows]
    items = [question(r) for r in rows]
    fields = [(r["stratum"], r["item"], r.get("error_number", 0)) for r in rows]
    shuffle = within_item_permutation(gamma, error, fields, together=items, draws=permutations, seed=seed)
    entries: list[dict[str, Any]] = [
        _entry("pooled Spearman", shuffle.observed),
        _entry("within-item permutation p", shuffle.p, f"resolution {shuffle.resolution:.5f}"),
        _entry("largest permuted Spearman", shuffle.largest_null),
    ]
    prediction = None
    if len(set(items)) >= folds and 0 < sum(exact) < len(exact):
        prediction = grouped_prediction(controls(rows), gamma, exact, items, folds=folds)
        entries += [
            _entry("grouped AUC, controls only", prediction.auc_controls),
            _entry("grouped AUC, controls and γ₁", prediction.auc_full),
            _entry("grouped AUC gain", prediction.gain),
            _entry("standardised γ₁ coefficient", prediction.coefficient, "mean over training folds"),
        ]
        slope = hierarchical(gamma, exact, items, controls(rows))
        entries.append(_entry(slope.name, slope.value, f"posterior deviation {slope.deviation:.3g}"))
    slope = log_slope(gamma, error, items, name="log error on log γ₁, question effects")
    entries.append(_entry(slope.name, slope.value, f"clustered deviation {slope.deviation:.3g}"))
    for label, keep in (("γ₁ = 0", gamma == 0), ("γ₁ > 0", gamma > 0)):
        rate = share(sum(e for e, k in zip(exact, keep, strict=True) if k), int(keep.sum()))
        entries.append(
            _entry(f"hurdle: share repaired at {label}", rate.value, f"95 % interval {rate.low:.3f} to {rate.high:.3f}")
        )
    positive = gamma > 0
    slope = log_slope(
        gamma[positive],
        error[positive],
        [i for i, k in zip(items, positive, strict=True) if k],
        name="hurdle: log slope where γ₁ > 0",
    )
    entries.append(_entry(slope.name, slope.value, f"clustered deviation {slope.deviation:.3g}"))
    return PairedTests(
        shuffle, prediction, Table.of(name, entries, caption=caption or "Primary tests, then sensitivity models.")
    )


def controls(rows: Sequence[Row]) -> Any:
    """Stratum, relation count, anchor count and the observable disagreement; the first stratum is
    the reference. Natural fields also have the raw error of their first answer, as in the paper's
    pooled regression, and the number of answers that could not be read.
    """
    names = list(dict.fromkeys(r["stratum"] for r in rows))[1:]
    return np.array(
        [
            [
                *(r["stratum"] == name for name in names),
                r["relations"],
                r["anchors"],
                r["disagreement"],
                r.get("raw_error", 0.0),
                r.get("unread", 0),
            ]
            for r in rows
        ],
        dtype=np.float64,
    )


def _entry(name: str, value: float, detail: str = "") -> dict[str, Any]:
    return {"statistic": name, "value": value, "detail": detail}
