"""S3: copies of a relation add nothing, independent relations may (paper, "Experiment S3: duplicate
saturation").
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from rrf_design.problem import Problem
from scenarios.kit import Context, Done, Part, Report, Scenario
from scenarios.kit.rows import column, curve, grouped, missing, rows_of, values, where
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
    rows = rows_of(done)
    spread, drops = 0.0, 0.0
    for value in values(done):
        same = column(where(value, kind="copies"), "gamma_2")
        spread = max(spread, max(same) - min(same))
        rising = column(where(value, kind="independent chords"), "gamma_2")
        drops = max(drops, max((a - b for a, b in pairwise(rising)), default=0.0))
    spec = "relations=first rank=first median:gamma_2 median:raw_gamma_2"
    table = sorted(grouped(rows, "kind amount", spec), key=lambda row: (row["kind"], row["amount"]))
    copied, chorded = where(table, kind="copies"), where(table, kind="independent chords")
    one = float(np.median(column(where(rows, kind="copies", amount=1), "gamma_2")))
    before, after = chorded[0]["median_gamma_2"], chorded[-1]["median_gamma_2"]
    page = context.page()
    lead = "No" if spread < TOLERANCE else "They do not say the same"
    verb = "raise" if after > before else "do not raise"
    page.answer = (
        f"{lead}: up to {max(context['copies'])} copies of every relation change the margin γ₂ (median {one:.3f}) by at"
        f" most {spread:.2g}, while up to {max(context['chords'])} independent relations {verb} its median"
        f" ({before:.3f} before, {after:.3f} after)."
    )
    page.check("copies", spread < TOLERANCE, f"largest change over all copies and seeds {spread:.3g}")
    page.check("chords", drops <= TOLERANCE, f"largest fall when a chord is added {max(drops, 0.0):.3g}")
    page.check("gain", after > before, f"median γ₂ from {before:.3f} to {after:.3f}")
    page.check("size", 0.25 <= one <= 0.35, f"median γ₂ of one copy {one:.4f}")
    page.none("witnesses", missing(rows, "witness_ok"), f"of {len(rows)} witnesses fail")
    page.table("summary", table)
    page.table("instances", rows, shown=11)
    page.lines(
        "saturation",
        {
            "copies: normalised": curve(copied, "relations", "median_gamma_2"),
            "copies: raw": curve(copied, "relations", "median_raw_gamma_2"),
            "independent chords: normalised": curve(chorded, "relations", "median_gamma_2"),
        },
        x="relations",
        y="γ₂",
        log_x=True,
    )
    return page


SCENARIO = Scenario.declared("duplicate-saturation", parts, run, report)
