"""S2: the margin jumps from zero when the last component is anchored (paper, "Experiment S2: anchor
phase transition").
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from scenarios.kit import Context, Done, Part, Report, Scenario
from scenarios.kit.rows import column, curve, groups, missing, rows_of, summary, where
from scenarios.kit.typed_fields import (
    CONVEX_SUCCESS,
    EXACT_SUCCESS,
    calibrate,
    convex,
    corrupt,
    exact,
    generator,
    measure,
    sample_field,
)

EXPERIMENT = "S2"
PAIRS = 6
MOST_ANCHORS = 8
# One node of every pair first, then second anchors: coverage comes before redundancy.
SCHEDULE = (0, 2, 4, 6, 8, 10, 1, 3)


def _instance(master: int, stage: str, seed: int) -> Any:
    field = sample_field(generator(master, EXPERIMENT, f"{stage} graph", seed), [2] * PAIRS)
    return field, corrupt(generator(master, EXPERIMENT, f"{stage} corruption", seed), field, 1)


def _edges() -> list[tuple[int, int]]:
    return [(2 * pair, 2 * pair + 1) for pair in range(PAIRS)]


@cache
def calibrated_penalty(master: int, fields: int) -> float:
    """λ from fields that no test instance shares a seed with, all six pairs anchored."""
    cases = []
    for seed in range(fields):
        field, wrong = _instance(master, "calibration", seed)
        B = field.operator(_edges(), SCHEDULE[:PAIRS])
        cases.append((B, field.groups, B @ wrong.error.ravel(), 1, field.truth, wrong.error))
    return calibrate(cases)


def parts(context: Context) -> list[Part]:
    return [{"master": m, "seed": s} for m in context["masters"] for s in range(context["seeds"])]


def run(context: Context, part: Part) -> list[dict[str, Any]]:
    """One row per number of anchors; field and corruption stay the same while anchors are added."""
    penalty = calibrated_penalty(part["master"], context["calibration"])
    field, wrong = _instance(part["master"], "test", part["seed"])
    rows = []
    for count in range(MOST_ANCHORS + 1):
        B = field.operator(_edges(), SCHEDULE[:count])
        syndrome = B @ wrong.error.ravel()
        known: dict[str, Any] = {"k": 1, "truth": field.truth, "error": wrong.error}
        found = measure(B, field.groups, 1)
        sharp = exact(B, field.groups, syndrome, **known)
        smooth = convex(B, field.groups, syndrome, penalty=penalty, **known)
        rows.append(
            {
                "master": part["master"],
                "seed": part["seed"],
                "anchors": count,
                "gamma_1": found.gamma,
                "witness": " ".join(map(str, found.support)),
                "witness_residual": found.residual,
                "witness_ok": found.witness_ok,
                "corrupted_node": wrong.nodes[0],
                "amplitude": wrong.amplitudes[0],
                "exact_error": sharp.relative_error,
                "exact_localization": sharp.localization,
                "exact_success": sharp.relative_error <= EXACT_SUCCESS,
                "explanations": sharp.explanations,
                "penalty": penalty,
                "convex_error": smooth.relative_error,
                "convex_localization": smooth.localization,
                "convex_converged": smooth.converged,
                "convex_success": smooth.converged and smooth.relative_error <= CONVEX_SUCCESS,
            }
        )
    return rows


def report(context: Context, done: Sequence[Done]) -> Report:
    rows = rows_of(done)
    table = []
    for (anchors,), group in groups(rows, "anchors").items():
        sharp = "fields=count least:gamma_1 median:gamma_1 largest:gamma_1"
        sharp += " exact_success=mean exact_localization=mean exact_error=mean"
        # The convex decoder on the fields where it converged; the others are counted and compared
        # with nothing.
        kept = where(group, convex_converged=True)
        smooth = summary(kept, "convex_success=mean convex_localization=mean convex_error=mean")
        left = {"convex_unconverged": len(group) - len(kept)}
        table.append({"anchors": anchors, **summary(group, sharp), **smooth, **left})
    before = max(r["gamma_1"] for r in rows if r["anchors"] < PAIRS)
    at = column(where(rows, anchors=PAIRS), "gamma_1")
    success_before = max(s["exact_success"] for s in table if s["anchors"] < PAIRS)
    success_after = min(s["exact_success"] for s in table if s["anchors"] >= PAIRS)
    page = context.page()
    page.answer = _answer(at, before, (success_before, success_after))
    page.check(
        "transition",
        before == 0.0 and min(at) > 0.0,
        f"largest γ₁ before the sixth anchor {before:g}, least at it {min(at):.4g}",
    )
    page.check(
        "exact-repair",
        success_after == 1.0 > success_before,
        f"exact success at most {success_before:.3f} before, at least {success_after:.3f} from the sixth anchor",
    )
    page.check("size", 0.4 <= float(np.median(at)) <= 0.618, f"median γ₁ at the sixth anchor {np.median(at):.4f}")
    page.none("witnesses", missing(rows, "witness_ok"), f"of {len(rows)} witnesses fail")
    page.table("summary", table)
    page.table("instances", rows, shown=9)
    page.lines(
        "transition",
        {
            "median γ₁": curve(table, "anchors", "median_gamma_1"),
            "exact success": curve(table, "anchors", "exact_success"),
            "convex success": curve(table, "anchors", "convex_success"),
        },
        x="anchors",
        y="margin, share of fields",
    )
    page.notes.append(
        "Convex repair is diagnostic: a positive margin certifies exact repair only. Its penalty was chosen on"
        f" calibration fields and frozen ({sorted(set(column(rows, 'penalty')))} of the λ that shrinks everything"
        " to zero)."
    )
    return page


def _answer(margins: Sequence[float], before: float, success: tuple[float, float]) -> str:
    """`margins`: those at the anchor that covers the last component."""
    margin, repair = before == 0.0 < min(margins), success[1] == 1.0 > success[0]
    lead = {
        (True, True): "Yes, both do",
        (True, False): "The margin does, exact repair does not",
        (False, True): "Exact repair does, the margin does not",
        (False, False): "No, neither does",
    }[margin, repair]
    zero = "up to " if before else ""
    after = "all" if success[1] == 1.0 else f"at least {success[1]:.1%}"
    return (
        f"{lead}: over {len(margins)} fields the margin γ₁ is {zero}{before:g} while any of the {PAIRS} components has"
        f" no anchor and {min(margins):.3f} to {max(margins):.3f} once all have one, and exact repair is right on at"
        f" most {success[0]:.1%} of fields before and on {after} after."
    )


SCENARIO = Scenario.declared("anchor-transition", parts, run, report)
