"""Beyond the paper: what it costs to take relations for exact when they are not.

The truth satisfies z_j = T z_i. Some declared transports are T + E with ‖E‖ = η, as a mistaken unit
factor or a loose paraphrase would be. One answer is wrong besides. A certificate that ignores
relation error promises 2ε/γ; the honest one declares η for every relation and a bound R on the true
field, and promises 2ε'/γ with ε' = ε + √w η R, because a wrong transport acts on the field and not
on the error; w is the largest number of relations at a node. Both are held against the error that
repair really leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rrf_design import Noise, certify
from rrf_design.problem import Problem
from scenarios.kit import Context, Done, Part, Report, Scenario
from scenarios.kit.rows import curve, summary, totals, values, where
from scenarios.kit.typed_fields import SyntheticField, complete, corrupt, generator, random_tree, sample_field
from solvers.decoding import SupportDecoder

EXPERIMENT = "relation error"
NODES = 8
DIM = 2
EPSILON = 0.01


def declared(
    field: SyntheticField, edges: Sequence[tuple[int, int]], faults: Sequence[NDArray[Any]], radius: float
) -> Problem:
    """The problem as its author wrote it: faulty transports, exact anchors at nodes 0 and 4."""
    relations = [
        {
            "id": f"r{number}",
            "tail": str(tail),
            "head": str(head),
            "transport": {"matrix": (field.transport(tail, head) + fault).tolist()},
            "uncertainty": radius,
        }
        for number, ((tail, head), fault) in enumerate(zip(edges, faults, strict=True))
    ]
    anchors = [{"id": f"a{node}", "node": str(node), "value": field.truth[node].tolist()} for node in (0, 4)]
    nodes = [{"id": str(node), "dim": field.dim} for node in range(field.nodes)]
    return Problem(name=EXPERIMENT, k=1, nodes=nodes, relations=relations, anchors=anchors)


def parts(context: Context) -> list[Part]:
    return [{"eta": eta, "seed": seed} for eta in context["radii"] for seed in range(context["seeds"])]


def run(context: Context, part: Part) -> dict[str, Any]:
    eta, seed = part["eta"], part["seed"]
    rng = generator(context["seed"], EXPERIMENT, "graph", seed)
    field = sample_field(rng, [NODES], dim=DIM)
    tree = random_tree(rng, list(range(NODES)))
    spare = [edge for edge in complete(range(NODES)) if edge not in tree]
    edges = tree + [spare[int(i)] for i in rng.permutation(len(spare))[:NODES]]
    faults = [np.zeros((DIM, DIM))] * len(edges)
    for number in rng.choice(len(edges), size=round(context["faulty"] * len(edges)), replace=False):
        draw = rng.normal(size=(DIM, DIM))
        faults[int(number)] = eta * draw / np.linalg.norm(draw, 2)
    wrong = corrupt(generator(context["seed"], EXPERIMENT, "corruption", seed), field, 1)
    noise = generator(context["seed"], EXPERIMENT, "noise", seed).normal(size=(len(edges) + 2) * DIM)
    noise *= EPSILON / np.linalg.norm(noise)
    size = float(np.linalg.norm(field.truth))
    naive_problem, honest_problem = (declared(field, edges, faults, radius) for radius in (0.0, eta))
    naive = certify(naive_problem, noise=Noise(EPSILON), budgets=())
    honest = certify(honest_problem, noise=Noise(EPSILON, amplitude=size), budgets=())
    effective = honest.document["error"]["effective_epsilon"]
    # What is promised is about the declared operator, which is the one that repair uses: its
    # margin, and the radius that covers ‖E z*‖.
    bounds = {"naive": naive.error_bound, "honest": honest.error_bound}
    left = {
        "naive": _repair_error(naive_problem, field, wrong.error, noise, EPSILON),
        "honest": _repair_error(honest_problem, field, wrong.error, noise, effective),
    }
    return {
        "eta": eta,
        "seed": seed,
        "relations": len(edges),
        "faulty": sum(bool(np.any(fault)) for fault in faults),
        "gamma_lower": naive.gamma_lower,
        "robust_lower": honest.robust_lower,
        **{f"{kind}_bound": bounds[kind] for kind in bounds},
        **{f"{kind}_error": left[kind][0] for kind in left},
        **{f"{kind}_found": left[kind][1] == wrong.nodes for kind in left},
        **{f"{kind}_broken": bound is not None and left[kind][0] > bound for kind, bound in bounds.items()},
        "honest_promises": bounds["honest"] is not None,
    }


def _repair_error(
    problem: Problem, field: SyntheticField, error: NDArray[Any], noise: NDArray[Any], epsilon: float
) -> tuple[float, tuple[int, ...]]:
    """Exact repair with the declared operator at radius ε: the error it leaves, and the node it
    blames.
    """
    operator = problem.operator()
    y = (field.truth + error).ravel()
    syndrome = operator.matrix @ y - operator.target + noise
    found = SupportDecoder(operator.matrix, [field.dim] * field.nodes).decode(syndrome, k=1, epsilon=epsilon)
    return float(np.linalg.norm(np.asarray(found.error) - error.ravel())), tuple(found.support)


def report(context: Context, done: Sequence[Done]) -> Report:
    rows = values(done)
    table = []
    for eta in context["radii"]:
        group = where(rows, eta=eta)
        kept = where(group, honest_promises=True)
        table.append(
            {
                "eta": eta,
                **summary(group, "fields=count median_gamma=median:gamma_lower median_robust=median:robust_lower"),
                **summary(group, "naive_bound=median naive_broken=sum naive_found=mean honest_promises=sum"),
                **summary(kept, "honest_bound=median"),
                **summary(group, "honest_broken=sum honest_found=mean median_error=median:naive_error"),
                **summary(group, "largest_error=largest:naive_error"),
            }
        )
    exact, faulty = totals(where(table, eta=0.0), "naive_broken"), [row for row in table if row["eta"] > 0.0]
    broken, fields = totals(faulty, "naive_broken fields").values()
    held, promised = totals(table, "honest_broken honest_promises").values()
    page = context.page()
    page.answer = (
        f"A promise that takes faulty relations for exact is broken in {broken} of"
        f" {fields} fields; the promise that declares their error, for a field of known"
        f" size, in {held} of {promised}, and it is up to"
        f" {max((row['honest_bound'] or 0) / row['naive_bound'] for row in table):.0f} times as large."
    )
    page.none("exact", exact["naive_broken"], "broken at η = 0")
    page.check("ignored", broken > 0, f"{broken} of {fields} promises broken")
    page.none("declared", held, f"of {promised} promises broken")
    page.table("summary", table)
    page.table("fields", rows, shown=10)
    page.lines(
        "price",
        {
            "promise that ignores η": curve(table, "eta", "naive_bound"),
            "promise that declares η": curve([row for row in table if row["honest_bound"]], "eta", "honest_bound"),
            "largest error seen": curve(table, "eta", "largest_error"),
        },
        x="relation error η",
        y="‖ẑ − z*‖",
        log_y=True,
    )
    return page


SCENARIO = Scenario.declared("relation-error", parts, run, report)
