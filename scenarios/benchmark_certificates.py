"""What verification costs: `verify` of a whole certificate against the margin solve it re-proves, in turns, on one thread.

The solve is `solvers.margin` on the bare matrix; verification is everything from the form and the digest of the document
to the last support, by code that imports nothing of the solver. A certificate of a hundred thousand nodes is read
from its files. The cost of rigour is the share of a solve that its own proofs take. Fields with large supports, which plain enumeration can't
follow, are solved and verified once each, in processor time: those of the margin's benchmark, and some with units or where half of all values are delivered.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from scenarios.base import ConditionVerdict, Context, Done, Expectation, Part, Scenario, ScenarioOutcome, Table
from scenarios.timing import Benchmark, benchmark_figure, benchmark_table, seconds, side_by_side

AT_MOST = 5.0  # verify against the solve
MINUTE = 60.0
RIGOUR = 0.3


def parts(context: Context) -> list[Part]:
    fields = [{"kind": kind, "nodes": nodes, "dim": dim, "k": k} for kind, nodes, dim, k in context["fields"]]
    timed = [{"kind": "rigour", "field": field, "nodes": nodes} for field, nodes in context["timed"]]
    wide = [{"kind": "wide", **field} for field in context["wide"]]
    return [*fields, {"kind": "large", "nodes": context["large"], "dim": 1, "k": context["large_k"]}, *timed, *wide]


def run(context: Context, part: Part) -> dict[str, Any]:
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        if part["kind"] == "rigour":
            from scenarios.judged_fields import cost_of_rigour

            return cost_of_rigour(part["field"], part["nodes"])
        if part["kind"] == "wide":
            from scenarios.large_supports import reproved

            return reproved(part, seed=context["seed"])
        return _large(part) if part["kind"] == "large" else _ratio(context, part)


def _ratio(context: Context, part: Part) -> dict[str, Any]:
    """Verify and solve side by side, on the fields of the ladder of certificates."""
    import numpy as np

    import rrf_design as rrf
    from scenarios.certificate_ladder import problem
    from solvers import margin

    made = problem(part["kind"], part["nodes"], part["dim"], context["seed"])
    operator = made.operator()
    groups = np.diff(operator.node_offsets).tolist()
    certificate = rrf.certify(made, k=part["k"], claims=rrf.Claims(budgets=[]))
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
    import tempfile
    from pathlib import Path

    import rrf_design as rrf
    from scenarios.certificate_ladder import problem

    made = problem("graph", part["nodes"], part["dim"], 0)
    with tempfile.TemporaryDirectory() as folder:
        began = seconds(
            lambda: rrf.certify(made, k=part["k"], claims=rrf.Claims(budgets=[])).save(
                Path(folder) / "certificate.json"
            )
        )
        outcome = []
        spent = seconds(lambda: outcome.append(rrf.verify(Path(folder) / "certificate.json")))
    return {**part, "valid": outcome[-1].valid, "certify_seconds": began, "verify_seconds": spent}


def report(context: Context, done: Sequence[Done]) -> ScenarioOutcome:
    fields = [item.value for item in done if item.part["kind"] in ("dense", "graph")]
    large = next(item.value for item in done if item.part["kind"] == "large")
    rigour = [item.value for item in done if item.part["kind"] == "rigour"]
    wide = [item.value for item in done if item.part["kind"] == "wide"]
    figures = []
    for kind in ("dense", "graph"):
        worst = max((row for row in fields if row["kind"] == kind), key=lambda row: row["ratio"])
        figures.append(
            Benchmark(
                key=kind,
                work=f"verify, worst of the {kind} fields: n = {worst['nodes']}, d = {worst['dim']}, k = {worst['k']}",
                against="the margin solve",
                value=worst["ratio"],
                required=AT_MOST,
                at_most=True,
                detail=f"{worst['verify_seconds'] * 1e3:.3g} ms against {worst['solve_seconds'] * 1e3:.3g} ms",
            )
        )
    figures.append(
        Benchmark(
            key="large",
            work=f"verify a certificate of {large['nodes']:,} nodes from its files, k = {large['k']}",
            against="a minute",
            value=large["verify_seconds"],
            unit="s",
            required=MINUTE,
            at_most=True,
            detail=f"{large['certify_seconds']:.3g} s to certify and write",
        )
    )
    if wide:
        slowest = max(wide, key=lambda row: row["ratio"])
        figures.append(
            Benchmark(
                key="supports",
                work=f"verify with large supports, worst of {len(wide)}: {slowest['field']}, k = {slowest['k']}",
                against="the margin solve, processor time",
                value=slowest["ratio"],
                required=AT_MOST,
                at_most=True,
                detail=f"{slowest['verify_seconds']:.3g} s against {slowest['solve_seconds']:.3g} s",
            )
        )
    dearest = max(rigour, key=lambda row: row["cost"])
    figures.append(
        Benchmark(
            key="rigour",
            work=f"proofs within a solve, worst: {dearest['field']}",
            against="the rest of the solve",
            value=dearest["cost"],
            unit="of it",
            required=RIGOUR,
            at_most=True,
            detail=f"{dearest['proofs'] * 1e3:.3g} ms of {dearest['seconds'] * 1e3:.3g} ms",
        )
    )
    judged = [*fields, large, *wide]
    refused = sum(not row["valid"] for row in judged)
    return ScenarioOutcome(
        verdicts=[
            *(figure.verdict(quick=context.quick) for figure in figures),
            ConditionVerdict.of("valid", refused == 0, f"{refused} of {len(judged)} certificates refused"),
        ],
        answer=_answer(fields, large, dearest["cost"], refused) + _wide_answer(wide),
        figures=[benchmark_figure(figures)],
        tables=[
            benchmark_table(figures, caption="Verification against the solve; the worst field of each kind."),
            Table.of(
                "fields", fields, caption="verify / solve on every field: median, lowest and highest.", shown=None
            ),
            Table.of(
                "supports",
                wide,
                caption="Large supports, one solve and one verification each, in seconds of processor time; what `verify` said of the certificate.",
                shown=None,
            ),
            Table.of("rigour", rigour, caption="What the proofs inside a solve cost, k = 2; the rest of a solve is 1."),
        ],
        notes=["Compilation is left out: both sides are called once before they are timed."],
    )


def _answer(fields: Sequence[dict[str, Any]], large: dict[str, Any], rigour: float, refused: int) -> str:
    ratios = [row["ratio"] for row in fields]
    return (
        f"Checking a proof takes {min(ratios):.2g} to {max(ratios):.2g} times as long as finding it ({median(ratios):.2g} times in the"
        f" median of {len(fields)} fields), a certificate of {large['nodes']:,} nodes is checked in {large['verify_seconds']:.2g} s,"
        f" and {refused or 'none'} of the certificates {'are' if refused > 1 else 'is'} refused; proving adds at most {rigour:.1%} to a solve."
    )


def _wide_answer(wide: Sequence[dict[str, Any]]) -> str:
    if not wide:
        return ""
    ratios = [row["ratio"] for row in wide]
    return (
        f" With large supports ({len(wide)} fields, k up to {max(row['k'] for row in wide)}) it takes {min(ratios):.2g} to {max(ratios):.2g}"
        " times the processor time of the solve."
    )


SCENARIO = Scenario(
    name="benchmark-certificates",
    title="Benchmark: certificates",
    question="What does it cost to check a proof, against finding it?",
    about=__doc__ or "",
    full={
        "fields": [
            *(["dense", nodes, dim, k] for dim in (1, 2, 3, 4) for nodes in (64, 128) for k in (1, 2)),
            ["dense", 256, 1, 1], ["dense", 256, 1, 2], ["dense", 256, 2, 2], ["dense", 256, 4, 1], ["dense", 256, 4, 2],
            ["dense", 48, 1, 3], ["dense", 64, 1, 3], ["dense", 32, 2, 3],
            ["graph", 64, 1, 2], ["graph", 64, 1, 3], ["graph", 64, 4, 2], ["graph", 1000, 1, 1], ["graph", 1000, 1, 2],
            ["graph", 1000, 1, 3], ["graph", 1000, 4, 2], ["graph", 20000, 1, 2],
        ],
        "large": 100_000,
        "large_k": 2,
        "timed": [["graph", 20000], ["dense", 96], ["dense", 160]],
        "wide": [
            {"rows": 30, "nodes": 40, "size": 10},
            {"nodes": 200, "degree": 3, "size": 16},
            {"nodes": 64, "degree": 4, "size": 14},
            {"rows": 42, "nodes": 64, "size": 10},
            {"rows": 66, "nodes": 100, "size": 8},
            {"nodes": 10_000, "degree": 3, "size": 14},
            {"nodes": 10_000, "degree": 3, "size": 16},
            *(
                {**field, "dim": dim, "size": size}
                for dim in (4, 8)
                for size in (8, 10)
                for field in ({"nodes": 200, "degree": 3}, {"rows": 16 * dim, "nodes": 24})
            ),
            {"nodes": 200, "degree": 3, "size": 16, "deliver": 2},
            {"nodes": 64, "degree": 4, "size": 12, "deliver": 2},
            {"rows": 42, "nodes": 64, "size": 8, "deliver": 2},
            {"nodes": 200, "degree": 3, "size": 6, "unit": 2},
            {"rows": 42, "nodes": 64, "size": 6, "unit": 2},
        ],
        "rounds": 5,
        "at_least": 0.05,
        "seed": 0,
    },
    quick={
        "fields": [["dense", 10, 1, 1], ["dense", 8, 2, 2], ["graph", 12, 1, 1]],
        "large": 60,
        "timed": [["graph", 200]],
        "wide": [
            {"rows": 12, "nodes": 16, "size": 8},
            {"nodes": 20, "degree": 3, "size": 8, "deliver": 2},
            {"nodes": 20, "degree": 3, "size": 4, "unit": 2},
        ],
        "rounds": 1,
        "at_least": 0.0,
    },
    expected=(
        Expectation("dense", "verification takes at most 5 times the solve on dense fields of 32 to 256 nodes, k = 1 to 3"),
        Expectation("graph", "and on sparse fields of 64 to 20,000 nodes, k = 1 to 3"),
        Expectation("large", "a certificate of 100,000 nodes verifies within a minute"),
        Expectation(
            "supports",
            "with large supports (k = 3 to 8; scalars, nodes of 4 and 8 coordinates, units, delivered values) verification takes at most 5 times the processor time of the solve, on every field",
        ),
        Expectation("rigour", "rigour costs at most 30 % over the unverified solve"),
        Expectation("valid", "every certificate verifies"),
    ),
    parts=parts,
    run=run,
    report=report,
    serial=True,
)  # fmt: skip
