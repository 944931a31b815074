"""Are the proven bounds bounds? Thousands of random and hostile fields against exact rational arithmetic.

The check shares nothing with solver or verifier: entries of B are doubles and so rational numbers; for every node set of
the size in question, connected or not, G_SS − lower²·I is eliminated in exact rationals (a negative pivot would refute the
lower bound), and for the witness's support G_SS − upper²·I must not be positive definite.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scenarios.base import Context, Done, Expectation, Figure, Outcome, Part, Scenario, Table, Verdict

FAMILIES = ("gaussian", "graph", "typed", "integer", "near-singular", "ill-scaled", "last-bit", "rank-deficient")
WELL_CONDITIONED = 1e-2  # γ at least this share of the largest column norm
BATCH = 100


def field(family: str, seed: int) -> tuple[Any, list[int], int]:
    """Matrix, node sizes and k of one small field of a family."""
    import numpy as np

    rng = np.random.default_rng([FAMILIES.index(family), seed])
    k = int(rng.integers(1, 3))
    nodes = int(rng.integers(3, 7))
    sizes = [int(rng.integers(1, 3)) for _ in range(nodes)] if family == "typed" else [1] * nodes
    width = sum(sizes)
    if family in ("graph", "typed"):
        starts = np.cumsum([0, *sizes])
        rows = [np.eye(width)[rng.integers(width)][None, :] * rng.choice([1.0, 0.1, 3.0])]
        for _ in range(2 * nodes):
            a, b = rng.choice(nodes, 2, replace=False)
            part = np.zeros((sizes[b], width))
            part[:, starts[b] : starts[b + 1]] = np.eye(sizes[b])
            transport = rng.standard_normal((sizes[b], sizes[a])) if family == "typed" else -np.eye(1)
            part[:, starts[a] : starts[a + 1]] = transport
            rows.append(part)
        return np.vstack(rows), sizes, k
    if family == "integer":
        return rng.integers(-2, 3, (width + 1, width)).astype(float), sizes, k
    matrix = rng.standard_normal((width + int(rng.integers(0, 3)), width))
    if family == "near-singular":
        matrix[:, 1] = matrix[:, 0] + rng.standard_normal(len(matrix)) * 2.0 ** -int(rng.integers(10, 56))
    elif family == "ill-scaled":
        matrix *= 10.0 ** rng.integers(-9, 10, width)
    elif family == "last-bit":
        matrix = np.repeat(matrix[:, :1], width, axis=1) * (1 + 2.0**-52 * rng.integers(-3, 4, (len(matrix), width)))
    elif family == "rank-deficient":
        matrix[:, -1] = matrix[:, :-1] @ rng.integers(-1, 2, width - 1)
    return matrix, sizes, k


def exactly_above(columns: Any, level: float, *, strictly: bool) -> bool:
    """Is CᵀC − level²·I positive semidefinite (definite with `strictly`), in exact rationals?"""
    from flint import fmpq

    def number(value: float) -> Any:
        return fmpq(*float(value).as_integer_ratio())

    order = columns.shape[1]
    entries = [[number(x) for x in row] for row in columns]
    square = number(level) * number(level)
    work = [
        [sum((row[i] * row[j] for row in entries), fmpq(0)) - (square if i == j else 0) for j in range(order)]
        for i in range(order)
    ]
    for p in range(order):
        pivot = work[p][p]
        if pivot < 0 or (strictly and pivot == 0):
            return False
        if pivot == 0:
            if any(work[i][p] != 0 for i in range(p + 1, order)):
                return False
            continue
        for i in range(p + 1, order):
            ratio = work[i][p] / pivot
            for j in range(p + 1, order):
                work[i][j] -= ratio * work[p][j]
    return True


def judge(matrix: Any, sizes: list[int], k: int) -> dict[str, Any]:
    """Solve one field and check both bounds against every support, exactly."""
    from itertools import combinations

    import numpy as np

    from solvers import margin

    found = margin(matrix, sizes, k=k)
    starts = np.cumsum([0, *sizes])

    def part(support: Sequence[int]) -> Any:
        return matrix[:, np.concatenate([np.arange(starts[i], starts[i + 1]) for i in support])]

    size = min(2 * k, len(sizes))
    low = found.lower == 0.0 or all(
        exactly_above(part(support), found.lower, strictly=False) for support in combinations(range(len(sizes)), size)
    )
    high = not exactly_above(part(found.support), found.upper, strictly=True)
    norm = float(np.sqrt(np.square(matrix).sum(axis=0)).max())
    return {
        "lower_ok": low,
        "upper_ok": high,
        "exact": str(found.status) == "exact",
        "zero": found.value == 0.0,
        "gap": (found.upper - found.lower) / found.upper if found.upper > 0 else 0.0,
        "conditioning": found.value / norm if norm else 0.0,
    }


def reverify(matrix: Any, sizes: list[int], k: int) -> bool:
    """Certify the same field and verify the certificate."""
    import rrf_design as rrf
    from rrf_design.builders import from_matrix

    problem = from_matrix(matrix, sizes, k=k)
    return bool(rrf.verify(rrf.certify(problem, budgets=[])).valid)


def cost_of_rigour(kind: str, nodes: int) -> dict[str, Any]:
    """Share of a solve that is spent on proofs: what floating point alone would not have needed."""
    import cProfile
    import pstats
    import time

    import numpy as np
    from scipy import sparse

    from solvers import margin

    rng = np.random.default_rng(nodes)
    if kind == "graph":
        ends = rng.integers(0, nodes, (3 * nodes, 2))
        ends = ends[ends[:, 0] != ends[:, 1]]
        rows = np.repeat(np.arange(len(ends)), 2)
        relations = sparse.csr_array((np.tile([-1.0, 1.0], len(ends)), (rows, ends.ravel())), shape=(len(ends), nodes))
        matrix = sparse.vstack([relations, 0.3 * sparse.eye_array(nodes)]).tocsr()
    else:
        dense = rng.standard_normal((2 * nodes // 3, nodes))
        matrix = dense / np.linalg.norm(dense, axis=0)
    margin(matrix, k=1)  # compile
    profile = cProfile.Profile()
    began = time.perf_counter()
    profile.enable()
    found = margin(matrix, k=2)
    profile.disable()
    total = time.perf_counter() - began
    proofs, names = 0.0, set()
    for (_, _, name), (_, _, _, cumulative, _) in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
        if name in ("_proves_all", "norm_ratio_above", "sqrt_below"):
            proofs += cumulative
            names.add(name)
    if not {"_proves_all", "norm_ratio_above"} <= names:
        raise RuntimeError("the solver's proofs have other names now; the cost of rigour can't be measured")
    return {"field": f"{kind} {nodes}", "seconds": total, "proofs": proofs, "cost": proofs / max(total - proofs, 1e-9),
            "status": str(found.status)}  # fmt: skip


def parts(context: Context) -> list[Part]:
    per_family = context["fields"] // len(FAMILIES)
    batches: list[Part] = [
        {"family": family, "first": first, "count": min(BATCH, per_family - first)}
        for family in FAMILIES
        for first in range(0, per_family, BATCH)
    ]
    return [*batches, *({"cost": kind, "nodes": nodes} for kind, nodes in context["timed"])]


def run(context: Context, part: Part) -> dict[str, Any]:
    if "cost" in part:
        return cost_of_rigour(part["cost"], part["nodes"])
    rows = []
    verified, asked = 0, 0
    for seed in range(part["first"], part["first"] + part["count"]):
        matrix, sizes, k = field(part["family"], seed)
        rows.append(judge(matrix, sizes, k))
        if seed % context["verify_every"] == 0:
            asked += 1
            verified += reverify(matrix, sizes, k)
    good = [row["gap"] for row in rows if row["conditioning"] >= WELL_CONDITIONED]
    return {
        "family": part["family"],
        "fields": len(rows),
        "lower_above": sum(not row["lower_ok"] for row in rows),
        "upper_below": sum(not row["upper_ok"] for row in rows),
        "exact": sum(row["exact"] for row in rows),
        "zero": sum(row["zero"] for row in rows),
        "well_conditioned": len(good),
        "widest_gap": max(good, default=0.0),
        "certificates": asked,
        "verified": verified,
    }


def report(context: Context, done: Sequence[Done]) -> Outcome:
    values = [item.value for item in done if "family" in item.part]
    costs = [item.value for item in done if "cost" in item.part]
    rows = []
    for family in FAMILIES:
        mine = [value for value in values if value["family"] == family]
        row: dict[str, Any] = {"family": family}
        for key in (
            "fields",
            "lower_above",
            "upper_below",
            "exact",
            "zero",
            "well_conditioned",
            "certificates",
            "verified",
        ):
            row[key] = sum(value[key] for value in mine)
        row["widest_gap"] = max((value["widest_gap"] for value in mine), default=0.0)
        rows.append(row)
    total = {
        key: sum(row[key] for row in rows)
        for key in ("fields", "lower_above", "upper_below", "certificates", "verified")
    }
    gap = max(row["widest_gap"] for row in rows)
    worst = max((cost["cost"] for cost in costs), default=0.0)
    cost = f"proofs take at most {worst:.1%} of the rest of a solve"
    return Outcome(
        verdicts=[
            Verdict.of(
                "lower", total["lower_above"] == 0, f"{total['lower_above']} of {total['fields']} above the truth"
            ),
            Verdict.of(
                "upper", total["upper_below"] == 0, f"{total['upper_below']} of {total['fields']} below the truth"
            ),
            Verdict.of("gap", gap <= 1e-9, f"widest relative gap {gap:.3g}"),
            Verdict.of(
                "verified",
                total["verified"] == total["certificates"],
                f"{total['verified']} of {total['certificates']} certificates verify",
            ),
            Verdict.open("cost", f"{cost} (quick size)") if context.quick else Verdict.of("cost", worst <= 0.3, cost),
        ],
        figures=[_figure(rows)],
        tables=[
            Table.of(
                "families", rows, caption="Every bound checked in exact rational arithmetic, by family of fields."
            ),
            Table.of("cost", costs, caption="What the proofs cost on larger fields, k = 2; the rest of a solve is 1."),
        ],
        notes=[
            f"A field counts as well conditioned when its margin is at least {WELL_CONDITIONED:g} of its largest column norm."
            " Elsewhere the bounds hold just as well, and may lie further apart."
        ],
    )


def _figure(rows: Sequence[dict[str, Any]]) -> Figure:
    """The widest gap between lower and upper in every family; the smallest double stands for none."""
    from scenarios.plots import draw

    def paint(axes: Any) -> None:
        places = list(range(len(rows)))[::-1]
        axes.plot([max(row["widest_gap"], 2.0**-53) for row in rows], places, "o", color="#0072B2")
        axes.axvline(1e-9, color="#000000", linewidth=1)
        axes.set_xscale("log")
        axes.set_yticks(places, [row["family"] for row in rows])
        axes.set_xlabel("widest relative gap, well-conditioned fields (line: what is allowed)")

    return draw("gaps", paint, caption="Lower and upper bound, by family.", size=(6.4, 1.0 + 0.35 * len(rows)))


SCENARIO = Scenario(
    name="rigour",
    title="Are the bounds bounds?",
    question="Does any proven bound, on any field, lie on the wrong side of the exact value?",
    about="""Random and hostile small fields (nearly equal columns, scales 18 powers of ten apart, entries that differ in the
    last bit, exact ties, deficient rank), k = 1 and 2. Both bounds of every solve are checked against every support in exact
    rational arithmetic; a share of the fields is certified and verified as well. The cost of rigour is the time spent on
    proofs against the rest of the solve, on larger fields.""",
    full={"fields": 10000, "verify_every": 10, "timed": [["graph", 20000], ["dense", 96], ["dense", 160]]},
    quick={"fields": 80, "verify_every": 5, "timed": [["graph", 200]]},
    expected=(
        Expectation("lower", "no lower bound above the exact value"),
        Expectation("upper", "no upper bound below the exact value"),
        Expectation("gap", "a relative gap of at most 1e-9 where the field is well conditioned"),
        Expectation("verified", "every certificate of these fields verifies"),
        Expectation("cost", "proofs cost at most 30 % over the unverified solve"),
    ),
    parts=parts,
    run=run,
    report=report,
)
