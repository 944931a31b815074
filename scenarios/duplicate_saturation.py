"""S3: copies of a relation add nothing, independent relations may (paper, "Experiment S3: duplicate
saturation").
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from rrf_design.problem import Problem
from scenarios.kit.report import Report
from scenarios.kit.scenario import Context, Done, Part, Scenario
from scenarios.kit.typed_fields import SyntheticField, complete, generator, measure, path, sample_field

EXPERIMENT = "S3"
NODES = 12
K = 2
TOLERANCE = 1e-10


def duplicated(field: SyntheticField, edges: Sequence[tuple[int, int]], copies: int) -> Problem:
    """Every relation stated `copies` times in one family: the library divides the family's weight
    among them.
    """
    relations = [
        {
            "id": f"r{number}.{copy}",
            "tail": str(tail),
            "head": str(head),
            "transport": {"matrix": field.transport(tail, head).tolist()},
            "family": f"family {number}",
        }
        for number, (tail, head) in enumerate(edges)
        for copy in range(copies)
    ]
    nodes = [{"id": str(node), "dim": field.dim} for node in range(field.nodes)]
    return Problem(name="duplicates", k=K, nodes=nodes, relations=relations)


def parts(context: Context) -> list[Part]:
    return [{"master": m, "seed": s} for m in context["masters"] for s in range(context["seeds"])]


def run(context: Context, part: Part) -> list[dict[str, Any]]:
    field = sample_field(generator(part["master"], EXPERIMENT, "graph", part["seed"]), [NODES])
    base = path(range(NODES))
    rows = []

    def add(kind: str, amount: int, normalised: Any, raw: Any) -> None:
        found = measure(normalised, field.groups, K)
        rows.append(
            {
                "master": part["master"],
                "seed": part["seed"],
                "kind": kind,
                "amount": amount,
                "relations": raw.shape[0] // field.dim,
                "rank": int(np.linalg.matrix_rank(raw)),
                "gamma_2": found.gamma,
                "raw_gamma_2": measure(raw, field.groups, K).gamma,
                "witness_ok": found.witness_ok,
            }
        )

    once = field.operator(base)
    for copies in context["copies"]:
        normalised = duplicated(field, base, copies).operator().matrix.toarray()
        add("copies", copies, normalised, np.concatenate([once] * copies))
    chords = [edge for edge in complete(range(NODES)) if edge not in base]
    order = generator(part["master"], EXPERIMENT, "chords", part["seed"]).permutation(len(chords))
    for count in context["chords"]:
        B = field.operator([*base, *(chords[int(i)] for i in order[:count])])
        add("independent chords", count, B, B)
    return rows


def report(context: Context, done: Sequence[Done]) -> Report:
    rows = [row for part in done for row in part.value]
    spread, drops = 0.0, 0.0
    for part in done:
        values = [r["gamma_2"] for r in part.value if r["kind"] == "copies"]
        spread = max(spread, max(values) - min(values))
        rising = [r["gamma_2"] for r in part.value if r["kind"] == "independent chords"]
        drops = max(drops, max((a - b for a, b in pairwise(rising)), default=0.0))
    cells = {(r["kind"], r["amount"]) for r in rows}
    summary = []
    for kind, amount in sorted(cells):
        group = [r for r in rows if (r["kind"], r["amount"]) == (kind, amount)]
        summary.append(
            {
                "kind": kind,
                "amount": amount,
                "relations": group[0]["relations"],
                "rank": group[0]["rank"],
                "median_gamma_2": float(np.median([r["gamma_2"] for r in group])),
                "median_raw_gamma_2": float(np.median([r["raw_gamma_2"] for r in group])),
            }
        )
    one = [r["gamma_2"] for r in rows if r["kind"] == "copies" and r["amount"] == 1]
    grown = [s["median_gamma_2"] for s in summary if s["kind"] == "independent chords"]
    bad = sum(not r["witness_ok"] for r in rows)
    page = Report()
    page.answer = _answer(context, spread, float(np.median(one)), grown)
    page.check("copies", spread < TOLERANCE, f"largest change over all copies and seeds {spread:.3g}")
    page.check("chords", drops <= TOLERANCE, f"largest fall when a chord is added {max(drops, 0.0):.3g}")
    page.check("gain", grown[-1] > grown[0], f"median γ₂ from {grown[0]:.3f} to {grown[-1]:.3f}")
    page.check("size", 0.25 <= float(np.median(one)) <= 0.35, f"median γ₂ of one copy {np.median(one):.4f}")
    page.check("witnesses", bad == 0, f"{bad} of {len(rows)} witnesses fail")
    page.table("summary", summary)
    page.table("instances", rows, shown=11)
    page.lines(
        "saturation",
        {
            f"{kind}: {label}": (
                [s["relations"] for s in summary if s["kind"] == kind],
                [s[column] for s in summary if s["kind"] == kind],
            )
            for kind, label, column in (
                ("copies", "normalised", "median_gamma_2"),
                ("copies", "raw", "median_raw_gamma_2"),
                ("independent chords", "normalised", "median_gamma_2"),
            )
        },
        x="relations",
        y="γ₂",
        log_x=True,
    )
    return page


def _answer(context: Context, spread: float, one: float, grown: Sequence[float]) -> str:
    lead = "No" if spread < TOLERANCE else "They do not say the same"
    verb = "raise" if grown[-1] > grown[0] else "do not raise"
    return (
        f"{lead}: up to {max(context['copies'])} copies of every relation change the margin γ₂ (median {one:.3f}) by at"
        f" most {spread:.2g}, while up to {max(context['chords'])} independent relations {verb} its median"
        f" ({grown[0]:.3f} before, {grown[-1]:.3f} after)."
    )


SCENARIO = Scenario.declared("duplicate-saturation", parts, run, report)
