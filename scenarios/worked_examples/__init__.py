"""The paper's worked examples, closed forms and theorems, each computed from operators and compared
with what the text says.

One function per example; each returns cases (what, computed, expected). A case agrees within 1e-9,
or within its own tolerance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from scenarios.kit import Context, Done, Part, Report, Scenario
from scenarios.kit.rows import curve, rows_of
from scenarios.worked_examples import appendix, examples, theorems
from scenarios.worked_examples.cases import Case

ORDER = (
    "three_paraphrases one_outlier scaling affine_shift disconnected_pairs large_component partial_anchor"
    " literal_duplicates convex_failure noisy_stability near_null signature_collision nonlinear_ambiguity anchor_bias"
    " budget_dependence two_node_formula path_bound component_criterion orthogonal_gauge four_node_spectrum"
    " laplacian_formula invertible_transports models_a_and_b curvature blind_risk identifiability monotone minimax"
    " separate_tolerances stable_convex_recovery proximal_rate holonomy weak_and_strong_anchors candidate_centred"
    " nonlinear_relations"
)
"""The functions in the order of the table."""
_MADE = {**vars(examples), **vars(appendix), **vars(theorems)}
EXAMPLES: dict[str, Callable[[], list[Case]]] = {name.replace("_", " "): _MADE[name] for name in ORDER.split()}


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
    rows = rows_of(done)
    wrong = [f"{r['example']}: {r['what']}" for r in rows if not r["agrees"]]
    page = context.page()
    page.answer = (
        f"{len(rows) - len(wrong)} of {len(rows)} calculations from {len(done)} examples, closed forms and theorems"
        " of the paper come out of the machinery as stated."
    )
    page.check("examples", not wrong, "; ".join(wrong) or f"all {len(rows)} cases of {len(done)} examples agree")
    page.table("cases", rows, shown=None)
    stated = [r for r in rows if not isinstance(r["expected"], str)]
    page.points(
        "stated-and-computed",
        {"cases": curve(stated, "expected", "computed")},
        x="as the paper states it",
        y="computed",
        caption=f"The {len(stated)} cases with a stated number; agreement is the diagonal.",
    )
    return page


SCENARIO = Scenario.declared("worked-examples", parts, run, report)
