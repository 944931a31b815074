"""What the printed replay statistics can and can't depend on: models, the size of a margin,
controls, and what counts as an item.

A replayed field has one wrong node among three right ones, without noise; whether a design repairs
it depends on the node alone. So the statistics of the replay are functions of where the errors were
put, and can be had without any model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scenarios.kit.association import grouped_prediction, spearman
from scenarios.paper_audit import figures
from scenarios.paper_audit.slips import Rows, Slip
from scenarios.published_replay import PUBLISHED, implied_rows

DRAWS = 4000
STAND_INS = 3
OPEN = 0.015
"""Raw errors are one of the controls and not printed; stand-ins for them move figures by about this
much.
"""
SEED = 0
PRINTED_AUC = (0.860, 0.893)
CODE_ITEMS = 64
SIZE = 4
"""Paper, "Code dataset": 64 items, four instantiations of each of 16 functions."""
GREEDY_CODE = {
    "Phi-3-mini": {"raw": 93.8, "relation majority": 100.0, "reflection": 93.8, "verifier": 100.0},
    "Qwen2.5-0.5B": {"raw": 31.2, "relation majority": 68.8, "reflection": 68.8, "verifier": 75.0},
    "Qwen2.5-7B": {"raw": 96.9, "relation majority": 100.0, "reflection": 96.9, "verifier": 100.0},
    "Qwen2.5-14B": {"raw": 98.4, "relation majority": 100.0, "reflection": 98.4, "verifier": 100.0},
}
"""Paper, "Natural real-model logs": code, the methods that decode greedily."""


def without_a_model() -> list[dict[str, Any]]:
    """ρ when errors of any kind are put at nodes drawn at random: 95 % of draws, beside what is
    printed.
    """
    rng = np.random.default_rng(SEED)
    gammas = figures.margins(apart=False)
    counts = {stratum: (entry[0], entry[-1]) for stratum, entry in PUBLISHED.items()}
    counts["all four"] = (sum(n for n, _ in counts.values()), 0.449)
    rows = []
    for stratum, (fields, printed) in counts.items():
        at = rng.multinomial(fields, [0.25] * 4, size=DRAWS)
        values = figures.count_correlation(fields, 4 * at[:, 3] + at[:, 2], 2 * at[:, 1] + at[:, 3], gammas)
        low, middle, high = np.percentile(values, [2.5, 50, 97.5])
        rows.append(
            {
                "stratum": stratum,
                "errors": fields,
                "printed": printed,
                "without_a_model": float(middle),
                "low": float(low),
                "high": float(high),
                "inside": bool(low <= printed <= high),
            }
        )
    return rows


def _stand_in(items: NDArray[np.int64], seed: int) -> NDArray[np.float64]:
    """Raw errors are not printed: any that belong to items."""
    return np.random.default_rng(seed).exponential(size=int(items.max()) + 1)[items]


def size_of_a_margin() -> list[dict[str, Any]]:
    """The primary statistics with γ₁, and with nothing of it but whether it is positive."""
    rows = implied_rows()
    gamma, error = np.round(rows["gamma"], 9), np.array(rows["error"])
    controls = np.array(rows["controls"], dtype=np.float64)
    positive = error[gamma > 0]
    found = []
    for words, margin in (("γ₁", gamma), ("only whether γ₁ > 0", (gamma > 0).astype(np.float64))):
        fitted = grouped_prediction(controls, margin, rows["success"], rows["item"])
        found.append(
            {
                "what": words,
                "spearman": spearman(margin, -error),
                "auc": fitted.auc_full,
                "auc_gain": fitted.gain,
                "errors_where_positive": len(np.unique(positive)),
            }
        )
    return found


def controls_of_two_models() -> list[dict[str, Any]]:
    """AUCs and the coefficient of both sets of controls that the paper names, over stand-ins for
    the raw errors.
    """
    rows = implied_rows()
    known = np.array(rows["controls"], dtype=np.float64)
    items = np.unique(rows["item"], return_inverse=True)[1]
    found = []
    for words, columns in (
        ("task, model, raw error", (0, 1)),
        ("task, model, raw error, relations, anchors", (0, 1, 2, 3)),
    ):
        fits = [
            grouped_prediction(
                np.column_stack([known[:, columns], _stand_in(items, seed)]),
                rows["gamma"],
                rows["success"],
                rows["item"],
            )
            for seed in range(STAND_INS)
        ]
        whole = figures.coefficient(columns, 1.0, draws=STAND_INS, seed=SEED)
        without, full = [fit.auc_controls for fit in fits], [fit.auc_full for fit in fits]
        found.append(
            {
                "controls": words,
                "auc_without_least": min(without),
                "auc_without_largest": max(without),
                "auc_with_least": min(full),
                "auc_with_largest": max(full),
                "coefficient_least": whole["least"],
                "coefficient_largest": whole["largest"],
            }
        )
    return found


def _has_auc(row: Mapping[str, Any]) -> bool:
    return all(
        row[f"auc_{name}_least"] - OPEN <= printed <= row[f"auc_{name}_largest"] + OPEN
        for name, printed in zip(("without", "with"), PRINTED_AUC, strict=True)
    )


def _has_coefficient(row: Mapping[str, Any]) -> bool:
    return bool(row["coefficient_least"] - OPEN <= figures.COEFFICIENT <= row["coefficient_largest"] + OPEN)


def fields_and_items() -> list[dict[str, Any]]:
    """Replay fields beside the items there are; and items with a right answer among their four,
    which a replay needs.
    """
    recall = {"mathematics, Phi-3-mini": 37.5, "mathematics, Qwen-0.5B": 22.7, "code, Phi-3-mini": 100.0}
    rows = []
    for stratum, (fields, *_) in PUBLISHED.items():
        items = CODE_ITEMS if stratum.startswith("code") else 128
        share = recall.get(stratum, 75.0)
        rows.append(
            {
                "stratum": stratum,
                "replay_fields": fields,
                "items": items,
                "items_with_a_right_answer": round(share * items / 100),
                "more_fields_than_items": fields > items,
                "more_fields_than_items_with_a_right_answer": fields > round(share * items / 100),
            }
        )
    return rows


def questions_behind_items() -> list[dict[str, Any]]:
    """Code results of greedy methods: counts of 64, and whether they can be all or none of every
    four items with one question.
    """
    cells = {
        "Phi-3-mini": figures.FAMILIES["code, Phi-3-mini"][1],
        "Qwen2.5-0.5B": figures.FAMILIES["code, Qwen-0.5B"][1],
    }
    rows = []
    for model, methods in GREEDY_CODE.items():
        counts = {name: round(value * CODE_ITEMS / 100) for name, value in methods.items()}
        greedy = [value for family in cells.get(model, ()) for value in (family[0], family[2], family[3])]
        rows.append(
            {
                "model": model,
                **counts,
                "multiples_of_four": sum(count % SIZE == 0 for count in counts.values()),
                "printed_family_cells": len(greedy),
                "all_or_none": sum(value in (0.0, 100.0) for value in greedy),
            }
        )
    return rows


def _judge_items(rows: Rows) -> tuple[bool, str]:
    over = [row for row in rows if row["more_fields_than_items"]]
    told = "; ".join(f"{row['stratum']}: {row['replay_fields']} fields of {row['items']} items" for row in over)
    return bool(over), told or "no stratum has more fields than items"


def _judge_questions(rows: Rows) -> tuple[bool, str]:
    cells, whole = (sum(row[key] for row in rows) for key in ("printed_family_cells", "all_or_none"))
    odd = [row["model"] for row in rows if row["multiples_of_four"] < len(GREEDY_CODE[row["model"]])]
    return (
        cells == whole and odd == ["Qwen2.5-7B", "Qwen2.5-14B"],
        f"{whole} of {cells} printed cells of greedy methods are 0 or 100 %; not so in sum: {', '.join(odd)}",
    )


def _named(rows: Rows, key: str) -> Mapping[str, Any]:
    return next(row for row in rows if row["stratum"] == key)


def _judge_models(rows: Rows) -> tuple[bool, str]:
    both = [(_has_auc(row), _has_coefficient(row)) for row in rows]
    return (
        both == [(False, True), (True, False)],
        (
            f"controls-only AUC {rows[0]['auc_without_largest']:.3f} at most without the counts,"
            f" {rows[1]['auc_without_least']:.3f} to {rows[1]['auc_without_largest']:.3f} with them; coefficient"
            f" {rows[0]['coefficient_least']:.3f} to {rows[0]['coefficient_largest']:.3f} without,"
            f" {rows[1]['coefficient_largest']:.3f} at most with"
        ),
    )


def _judge_size(rows: Rows) -> tuple[bool, str]:
    whole, sign = rows
    return (
        sign["spearman"] >= whole["spearman"] and sign["auc"] >= whole["auc"] - 0.001,
        (
            f"ρ {whole['spearman']:.3f} with γ₁, {sign['spearman']:.3f} with its sign alone; AUC {whole['auc']:.3f} and"
            f" {sign['auc']:.3f}"
        ),
    )


def _judge_model_free(rows: Rows) -> tuple[bool, str]:
    every, strata = _named(rows, "all four"), [row for row in rows if row["stratum"] != "all four"]
    inside: Sequence[str] = [row["stratum"] for row in strata if row["inside"]]
    return (
        bool(every["inside"]),
        (
            f"errors of no model, put anywhere: {every['low']:.3f} to {every['high']:.3f} over the four strata, printed"
            f" 0.449; {len(inside)} of {len(strata)} strata by themselves"
        ),
    )


SLIPS = (
    Slip(
        "model-free",
        "Spearman's ρ of replays in which any error stands at a node drawn at random: median and 95 % of 4,000 draws.",
        without_a_model,
        _judge_model_free,
        lambda rows: (
            "Models. A replay has one wrong node and no noise, so what it gives depends on where the experimenter put"
            " the error and on nothing that a model did. Errors of no model give ρ ="
            f" {_named(rows, 'all four')['without_a_model']:.3f} for any family of models and any task; that the strata"
            " agree is therefore no evidence across models or tasks. Natural fields could give such evidence"
            " (cross-model, premise-on-real-answers)."
        ),
    ),
    Slip(
        "margin-size",
        "The primary statistics on the implied rows, with γ₁ and with its sign; all fields with a positive margin have"
        " error 0.",
        size_of_a_margin,
        _judge_size,
        lambda rows: (
            "Size of a margin. Every field with a positive margin is repaired without any error, so the replay tells"
            " zero from positive and can't tell a small margin from a large one: the sign alone has ρ ="
            f" {rows[1]['spearman']:.3f} where γ₁ has {rows[0]['spearman']:.3f}. The size matters where there is noise"
            " (spectral-difficulty, robustness-sweeps)."
        ),
    ),
    Slip(
        "two-models",
        "Both sets of controls that the paper names: out-of-fold AUC without and with γ₁, and the coefficient on all"
        " rows with the default penalty; least and largest over stand-ins for the raw errors.",
        controls_of_two_models,
        _judge_models,
        lambda rows: (
            "Two regressions. The main text controls for relation and anchor counts, the caption of the table does"
            " not. Task, model and raw error are the same for all ten designs of an item, so they can't tell its"
            f" designs apart (AUC {rows[0]['auc_without_least']:.2f} to {rows[0]['auc_without_largest']:.2f}): the AUCs"
            " are of the first regression, the coefficient of the second."
        ),
    ),
    Slip(
        "fields-and-items",
        "Replay fields (rows divided by ten designs), items, and items with a right answer among their four transformed"
        " ones.",
        fields_and_items,
        _judge_items,
        lambda rows: (
            "Items. The paper speaks of one field per item and ten rows per item; in"
            f" {sum(row['more_fields_than_items_with_a_right_answer'] for row in rows)} of {len(rows)} strata there are"
            " more fields than items with a right answer among their four. So items gave several fields, which are not"
            " independent; whether its intervals resample items or fields is not said."
        ),
    ),
    Slip(
        "one-question",
        "Code items that greedy methods solve, of 64. Four items share one function and hence one question, so equal"
        " greedy answers are right on all of them or on none, unless a program passes the tests of some only.",
        questions_behind_items,
        _judge_questions,
        lambda rows: (
            "Questions. Four code items differ in their tests and not in what the model is asked; greedy decoding"
            " answers them alike. So 64 items are 16 independent questions, and folds and intervals by item put equal"
            " answers on both sides; our own intervals resample functions there. The sums of the two larger models are"
            " no multiples of four."
        ),
    ),
)
