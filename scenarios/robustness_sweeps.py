"""Noise, operator perturbations, decoder outcomes and zero tolerances (paper, "Robustness sweeps,
decoder comparisons, and validation criteria").

The fields are those of S4 (random components, chords, anchors, budgets), drawn from seeds of their
own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from scenarios.kit import Context, Done, Part, Report, Row, Rows, Scenario
from scenarios.kit.rows import column, curve, grouped, missing, summary, values, where
from scenarios.kit.typed_fields import (
    CONVEX_SUCCESS,
    EXACT_SUCCESS,
    PENALTIES,
    calibrate,
    convex,
    corrupt,
    exact,
    generator,
    measure,
    sample_field,
)
from scenarios.spectral_difficulty import design, draw_edges

EXPERIMENT = "sweeps"
NOISE = (0.0, 1e-4, 1e-3, 1e-2, 1e-1)
PERTURBATION = (1e-4, 1e-3, 1e-2, 1e-1)
TOLERANCES = (1e-8, 1e-10, 1e-12)
ROUNDING = 1e-9
UNCONVERGED = "convex did not converge"


def _instance(context: Context, master: int, stage: str, index: int) -> Any:
    rng = generator(master, EXPERIMENT, f"{stage} graph", index)
    nodes = context["nodes"][index % len(context["nodes"])]
    sizes, chords, anchors = design(rng, nodes)
    field = sample_field(rng, sizes)
    B = field.operator(*draw_edges(rng, field, chords, anchors))
    k = 1 + int(rng.integers(2))
    wrong = corrupt(generator(master, EXPERIMENT, f"{stage} corruption", index), field, k)
    return field, B, k, wrong


def parts(context: Context) -> list[Part]:
    return [{"master": m, "instance": i} for m in context["masters"] for i in range(context["instances"])]


def run(context: Context, part: Part) -> dict[str, list[dict[str, Any]]]:
    master, index = part["master"], part["instance"]
    field, B, k, wrong = _instance(context, master, "test", index)
    head = {"master": master, "instance": index, "nodes": field.nodes, "k": k}
    return {
        "noise": [{**head, **row} for row in _noise(master, index, field, B, k, wrong)],
        "operator": [{**head, **row} for row in _operator(master, index, field, B, k, wrong)],
        "decoders": [{**head, **_decoders(context, master, field, B, k, wrong)}],
        "penalties": [{**head, **row} for row in _penalties(field, B, k, wrong)],
        "tolerances": [{**head, **_tolerances(field, B, k)}],
    }


def _noise(master: int, index: int, field: Any, B: Any, k: int, wrong: Any) -> list[dict[str, Any]]:
    """Exact repair at growing noise radius, the direction of the noise held fixed."""
    direction = generator(master, EXPERIMENT, "noise", index).normal(size=B.shape[0])
    direction /= np.linalg.norm(direction)
    gamma = measure(B, field.groups, k).gamma
    rows = []
    for epsilon in NOISE:
        syndrome = B @ wrong.error.ravel() + epsilon * direction
        found = exact(B, field.groups, syndrome, k=k, truth=field.truth, error=wrong.error, epsilon=epsilon)
        bound = 2 * epsilon / gamma if gamma > 0 else None
        rows.append(
            {
                "epsilon": epsilon,
                "gamma": gamma,
                "error": found.absolute_error,
                "bound": bound,
                "localization": found.localization,
                "within": bound is None or found.absolute_error <= bound + 1e-6,
            }
        )
    return rows


def _operator(master: int, index: int, field: Any, B: Any, k: int, wrong: Any) -> list[dict[str, Any]]:
    """The decoder is given B + E with ‖E‖ = δ while the data come from B: margin and error against
    their bounds.
    """
    E = generator(master, EXPERIMENT, "operator", index).normal(size=B.shape)
    E /= np.linalg.norm(E, 2)
    gamma = measure(B, field.groups, k).gamma
    clean = B @ wrong.error.ravel()
    rows = []
    for delta in PERTURBATION:
        moved = B + delta * E
        seen = measure(moved, field.groups, k).value
        radius = delta * float(np.linalg.norm(wrong.error))
        found = exact(moved, field.groups, clean, k=k, truth=field.truth, error=wrong.error, epsilon=radius)
        certified = max(0.0, seen - delta)
        rows.append(
            {
                "delta": delta,
                "gamma": gamma,
                "perturbed_gamma": seen,
                "change": abs(seen - gamma),
                "certified_gamma": certified,
                "error": found.absolute_error,
                "bound": 2 * radius / seen if seen > 0 else None,
                "stability_ratio": found.absolute_error * seen / radius,
                "change_within": abs(seen - gamma) <= delta + ROUNDING,
                "certificate_holds": certified <= gamma + ROUNDING,
                "error_within": found.absolute_error * seen <= 2 * radius + 1e-6,
            }
        )
    return rows


def _decoders(context: Context, master: int, field: Any, B: Any, k: int, wrong: Any) -> dict[str, Any]:
    """Three outcomes: both succeed, exact alone succeeds, exact fails; a convex run that has not
    converged is none of them.
    """
    penalty = _penalty(context, master)
    syndrome = B @ wrong.error.ravel()
    known: dict[str, Any] = {"k": k, "truth": field.truth, "error": wrong.error}
    sharp = exact(B, field.groups, syndrome, **known)
    smooth = convex(B, field.groups, syndrome, penalty=penalty, **known)
    good, easy = sharp.relative_error <= EXACT_SUCCESS, smooth.relative_error <= CONVEX_SUCCESS
    outcome = "exact fails" if not good else "both succeed" if easy else "exact succeeds, convex fails"
    outcome = outcome if smooth.converged else UNCONVERGED
    return {
        "gamma": measure(B, field.groups, k).gamma,
        "penalty": penalty,
        "exact_error": sharp.relative_error,
        "convex_error": smooth.relative_error,
        "outcome": outcome,
    }


def _penalties(field: Any, B: Any, k: int, wrong: Any) -> list[dict[str, Any]]:
    """The penalised decoder over the whole grid of λ: how much its outcome owes to the choice."""
    gamma = measure(B, field.groups, k).gamma
    rows = []
    for penalty in PENALTIES:
        found = convex(
            B, field.groups, B @ wrong.error.ravel(), k=k, truth=field.truth, error=wrong.error, penalty=penalty
        )
        rows.append(
            {
                "gamma": gamma,
                "penalty": penalty,
                "error": found.relative_error,
                "localization": found.localization,
                "converged": found.converged,
                "succeeds": found.converged and found.relative_error <= CONVEX_SUCCESS,
            }
        )
    return rows


def _grid(rows: Rows) -> list[Row]:
    """By λ and by whether the margin is positive: converged runs only, with how many were left
    out.
    """
    found = []
    for penalty in sorted(set(column(rows, "penalty")), reverse=True):
        for positive in (True, False):
            group = [row for row in where(rows, penalty=penalty) if (row["gamma"] > 0) == positive]
            own = where(group, converged=True)
            found.append(
                {
                    "penalty": penalty,
                    "margin": "positive" if positive else "zero",
                    "converged": len(own),
                    "left_out": len(group) - len(own),
                    **summary(own, "median:error succeeds=sum localization=mean"),
                }
            )
    return found


_PENALTY: dict[tuple[int, int], float] = {}


def _penalty(context: Context, master: int) -> float:
    """λ chosen on calibration fields, once per process; no test field shares a seed with them."""
    key = (master, context["calibration"])
    if key not in _PENALTY:
        cases = []
        for index in range(context["calibration"]):
            field, B, k, wrong = _instance(context, master, "calibration", index)
            if measure(B, field.groups, k).gamma > 0:
                cases.append((B, field.groups, B @ wrong.error.ravel(), k, field.truth, wrong.error))
        _PENALTY[key] = calibrate(cases)
    return _PENALTY[key]


def _tolerances(field: Any, B: Any, k: int) -> dict[str, Any]:
    found = {zero: measure(B, field.groups, k, zero=zero) for zero in TOLERANCES}
    value = found[TOLERANCES[0]]
    return {
        "value": value.value,
        "residual": value.residual,
        "witness_ok": value.witness_ok,
        **{f"zero_at_{zero:g}": found[zero].zero for zero in TOLERANCES},
    }


def report(context: Context, done: Sequence[Done]) -> Report:
    names = ("noise", "operator", "decoders", "tolerances", "penalties")
    rows: dict[str, list[Row]] = {name: [row for value in values(done) for row in value[name]] for name in names}
    noisy = [r for r in rows["noise"] if r["gamma"] > 0]
    sizes, zeroes = len(rows["operator"]), rows["tolerances"]
    outside, far = missing(noisy, "within"), missing(rows["operator"], "error_within")
    moved = sum(not r["change_within"] or not r["certificate_holds"] for r in rows["operator"])
    outcomes = []
    for kind in ("both succeed", "exact succeeds, convex fails", "exact fails", UNCONVERGED):
        own = where(rows["decoders"], outcome=kind)
        zero = len(where(own, gamma=0))
        outcomes.append({"outcome": kind, "zero_margin": zero, "positive_margin": len(own) - zero})
    called = [f"zero_at_{zero:g}" for zero in TOLERANCES]
    differ = sum(len({r[name] for name in called}) > 1 for r in zeroes)
    least = min(r["value"] for r in zeroes if not r[called[0]])
    largest = max((r["residual"] for r in zeroes if r[called[1]]), default=0.0)
    levels = grouped([r for r in noisy if r["epsilon"] > 0], "epsilon", "error=median bound=median")
    trials, broken = len(noisy) + 2 * sizes, outside + moved + far
    page = context.page()
    page.answer = (
        f"{trials - broken:,} of {trials:,} repairs and margins under noise or with a wrong operator stay within"
        f" their bounds ({outside} noisy repairs, {moved} margins and {far} repairs with a wrong operator do not),"
        f" and {differ or 'none'} of {len(zeroes)} classifications of a margin as zero"
        f" depend{'s' * (differ < 2)} on the numerical tolerance."
    )
    page.none("noise", outside, f"of {len(noisy)} repairs outside 2ε/γ")
    page.none("perturbation", moved, f"of {sizes} margins move by more than δ")
    page.none("perturbed-repair", far, f"of {sizes} repairs outside 2δ‖e‖/γ")
    lost = outcomes[2]["positive_margin"]
    page.check("decoders", lost == 0, f"exact repair fails on {lost} positive-margin fields")
    page.none(
        "tolerances",
        differ,
        f"of {len(zeroes)} classifications change; least positive margin {least:.3g}, largest residual of a zero"
        f" {largest:.1g}",
    )
    page.none("witnesses", missing(zeroes, "witness_ok"), f"of {len(zeroes)} witnesses fail")
    page.table("outcomes", outcomes)
    page.table("penalty-grid", _grid(rows["penalties"]))
    for name, group in rows.items():
        page.table(name, group, f"Every row of the {name} sweep.", shown=10)
    page.lines(
        "noise-sweep",
        {
            "median error": curve(levels, "epsilon", "error"),
            "median bound 2ε/γ": curve(levels, "epsilon", "bound"),
        },
        x="noise radius ε",
        y="‖ẑ − z*‖",
        log_x=True,
        log_y=True,
    )
    return page


SCENARIO = Scenario.declared("robustness-sweeps", parts, run, report)
