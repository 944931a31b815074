"""The paper's worked examples, closed forms and theorems, each computed from operators and compared
with what the text says.

One function per example; each returns cases (what, computed, expected). A case agrees within 1e-9,
or within its own tolerance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from scenarios.kit import Context, Done, Figure, Part, Report, Scenario
from scenarios.worked_examples.appendix import (
    curvature,
    four_node_spectrum,
    invertible_transports,
    laplacian_formula,
    models_a_and_b,
    noisy_stability,
    nonlinear_ambiguity,
    signature_collision,
)
from scenarios.worked_examples.cases import Case
from scenarios.worked_examples.examples import (
    affine_shift,
    anchor_bias,
    budget_dependence,
    component_criterion,
    convex_failure,
    disconnected_pairs,
    large_component,
    literal_duplicates,
    near_null,
    one_outlier,
    orthogonal_gauge,
    partial_anchor,
    path_bound,
    scaling,
    three_paraphrases,
    two_node_formula,
)
from scenarios.worked_examples.theorems import (
    blind_risk,
    candidate_centred,
    holonomy,
    identifiability,
    minimax,
    monotone,
    nonlinear_relations,
    proximal_rate,
    separate_tolerances,
    stable_convex_recovery,
    weak_and_strong_anchors,
)

EXAMPLES: dict[str, Callable[[], list[Case]]] = {
    function.__name__.replace("_", " "): function
    for function in (
        three_paraphrases,
        one_outlier,
        scaling,
        affine_shift,
        disconnected_pairs,
        large_component,
        partial_anchor,
        literal_duplicates,
        convex_failure,
        noisy_stability,
        near_null,
        signature_collision,
        nonlinear_ambiguity,
        anchor_bias,
        budget_dependence,
        two_node_formula,
        path_bound,
        component_criterion,
        orthogonal_gauge,
        four_node_spectrum,
        laplacian_formula,
        invertible_transports,
        models_a_and_b,
        curvature,
        blind_risk,
        identifiability,
        monotone,
        minimax,
        separate_tolerances,
        stable_convex_recovery,
        proximal_rate,
        holonomy,
        weak_and_strong_anchors,
        candidate_centred,
        nonlinear_relations,
    )
}


def parts(context: Context) -> list[Part]:
    return [{"example": name} for name in EXAMPLES]


def run(context: Context, part: Part) -> list[dict[str, Any]]:
    return [
        {
            "example": part["example"],
            "what": case.what,
            "computed": case.computed,
            "expected": "as stated" if case.expected is None else case.expected,
            "agrees": case.agrees,
        }
        for case in EXAMPLES[part["example"]]()
    ]


def report(context: Context, done: Sequence[Done]) -> Report:
    rows = [row for part in done for row in part.value]
    wrong = [f"{r['example']}: {r['what']}" for r in rows if not r["agrees"]]
    page = Report()
    page.answer = (
        f"{len(rows) - len(wrong)} of {len(rows)} calculations from {len(done)} examples, closed forms and theorems"
        " of the paper come out of the machinery as stated."
    )
    page.check("examples", not wrong, "; ".join(wrong) or f"all {len(rows)} cases of {len(done)} examples agree")
    page.table("cases", rows, shown=None)
    page.figures.append(_figure(rows))
    return page


def _figure(rows: Sequence[Mapping[str, Any]]) -> Figure:
    from scenarios.kit.plots import points

    stated = [r for r in rows if not isinstance(r["expected"], str)]
    return points(
        "stated-and-computed",
        {"cases": ([r["expected"] for r in stated], [r["computed"] for r in stated])},
        x="as the paper states it",
        y="computed",
        caption=f"The {len(stated)} cases with a stated number; agreement is the diagonal.",
    )


SCENARIO = Scenario.declared("worked-examples", parts, run, report)
