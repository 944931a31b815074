"""What verification costs: `verify` of a whole certificate against the margin solve it re-proves,
in turns, on one thread.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import rrf_design as rrf
from scenarios.certificate_ladder import problem
from scenarios.kit import Benchmark, Context, Done, Part, Report, Row, Scenario, seconds, side_by_side, single_threaded
from scenarios.kit.large_supports import reproved
from scenarios.kit.rows import missing, values, where
from scenarios.rigour.judged_fields import cost_of_rigour
from solvers import margin

AT_MOST = 5.0  # verify against the solve
MINUTE = 60.0
RIGOUR = 0.3


def parts(context: Context) -> list[Part]:
    fields = [{"kind": kind, "nodes": nodes, "dim": dim, "k": k} for kind, nodes, dim, k in context["fields"]]
    timed = [{"kind": "rigour", "field": field, "nodes": nodes} for field, nodes in context["timed"]]
    wide = [{"kind": "wide", **field} for field in context["wide"]]
    return [*fields, {"kind": "large", "nodes": context["large"], "dim": 1, "k": context["large_k"]}, *timed, *wide]


def run(context: Context, part: Part) -> Row:
    if part["kind"] == "rigour":
        return single_threaded(cost_of_rigour, part["field"], part["nodes"])
    if part["kind"] == "wide":
        return single_threaded(reproved, part, context["seed"])
    return single_threaded(_large, part) if part["kind"] == "large" else single_threaded(_ratio, context, part)


def _ratio(context: Context, part: Part) -> dict[str, Any]:
    """Verify and solve side by side, on the fields of the ladder of certificates."""
    made = problem(part["kind"], part["nodes"], part["dim"], context["seed"])
    operator = made.operator()
    groups = np.diff(operator.node_offsets).tolist()
    certificate = rrf.certify(made, k=part["k"], budgets=[])
    valid = rrf.verify(certificate).valid  # and compile
    measured = side_by_side(
        lambda: margin(operator.matrix, groups, k=part["k"]),
        lambda: rrf.verify(certificate),
        rounds=context["rounds"],
        at_least=context["at_least"],
    )
    return {
        **part,
        "valid": valid,
        "rung": certificate.document["margin"]["rung"],
        "solve_seconds": measured.work_seconds,
        "verify_seconds": measured.baseline_seconds,
        "ratio": measured.median,
        "lowest": measured.lowest,
        "highest": measured.highest,
    }


def _large(part: Part) -> dict[str, Any]:
    """A large certificate, written and verified from its files."""
    made, alone = (problem("graph", part["nodes"], part["dim"], 0) for _ in range(2))  # nothing of it is known yet
    bare = seconds(lambda: alone.margin(k=part["k"]))
    with tempfile.TemporaryDirectory() as folder:
        began = seconds(lambda: rrf.certify(made, k=part["k"], budgets=[]).save(Path(folder) / "certificate.json"))
        outcome = []
        spent = seconds(lambda: outcome.append(rrf.verify(Path(folder) / "certificate.json")))
    told = {"margin_seconds": bare, "certify_seconds": began, "verify_seconds": spent}
    return {**part, "valid": outcome[-1].valid, **told}


def report(context: Context, done: Sequence[Done]) -> Report:
    fields = [row for kind in ("dense", "graph") for row in values(done, kind=kind)]
    fields = [row for row in values(done) if row in fields]
    (large,), rigour, wide = (values(done, kind=kind) for kind in ("large", "rigour", "wide"))
    figures = []
    for kind in ("dense", "graph"):
        worst = max(where(fields, kind=kind), key=lambda row: row["ratio"])
        figures.append(
            Benchmark(
                kind,
                f"verify, worst of the {kind} fields: n = {worst['nodes']}, d = {worst['dim']}, k = {worst['k']}",
                "the margin solve",
                worst["ratio"],
                at_most=AT_MOST,
                detail=f"{worst['verify_seconds'] * 1e3:.3g} ms against {worst['solve_seconds'] * 1e3:.3g} ms",
            )
        )
    figures.append(
        Benchmark(
            "large",
            f"verify a certificate of {large['nodes']:,} nodes from its files, k = {large['k']}",
            "a minute",
            large["verify_seconds"],
            "s",
            at_most=MINUTE,
            detail=(
                f"{large['certify_seconds']:.3g} s to certify and write; its margin alone"
                f" {large['margin_seconds']:.3g} s"
            ),
        )
    )
    if wide:
        slowest = max(wide, key=lambda row: row["ratio"])
        figures.append(
            Benchmark(
                "supports",
                f"verify with large supports, worst of {len(wide)}: {slowest['field']}, k = {slowest['k']}",
                "the margin solve, processor time",
                slowest["ratio"],
                at_most=AT_MOST,
                detail=f"{slowest['verify_seconds']:.3g} s against {slowest['solve_seconds']:.3g} s",
            )
        )
    dearest = max(rigour, key=lambda row: row["cost"])
    figures.append(
        Benchmark(
            "rigour",
            f"proofs within a solve, worst: {dearest['field']}",
            "the rest of the solve",
            dearest["cost"],
            "of it",
            at_most=RIGOUR,
            detail=f"{dearest['proofs'] * 1e3:.3g} ms of {dearest['seconds'] * 1e3:.3g} ms",
        )
    )
    judged = [*fields, large, *wide]
    refused = missing(judged, "valid")
    page = context.page()
    page.benchmark(figures)
    page.none("valid", refused, f"of {len(judged)} certificates refused")
    page.answer = _answer(fields, large, dearest["cost"], refused) + _wide_answer(wide)
    page.table("fields", fields, shown=None)
    page.table("supports", wide, shown=None)
    page.table("rigour", rigour)
    return page


def _answer(fields: Sequence[dict[str, Any]], large: dict[str, Any], rigour: float, refused: int) -> str:
    ratios = [row["ratio"] for row in fields]
    return (
        f"Checking a proof takes {min(ratios):.2g} to {max(ratios):.2g} times as long as finding it"
        f" ({median(ratios):.2g} times in the median of {len(fields)} fields), a certificate of {large['nodes']:,}"
        f" nodes is checked in {large['verify_seconds']:.2g} s, and {refused or 'none'} of the certificates"
        f" {'are' if refused > 1 else 'is'} refused; proving adds at most {rigour:.1%} to a solve."
    )


def _wide_answer(wide: Sequence[dict[str, Any]]) -> str:
    if not wide:
        return ""
    ratios = [row["ratio"] for row in wide]
    return (
        f" With large supports ({len(wide)} fields, k up to {max(row['k'] for row in wide)}) it takes {min(ratios):.2g}"
        f" to {max(ratios):.2g} times the processor time of the solve."
    )


SCENARIO = Scenario.declared("benchmark-certificates", parts, run, report, serial=True)
