"""Are the proven bounds bounds?

Thousands of random and hostile fields against exact rational arithmetic.

The judge shares nothing with solver or verifier: entries of B are doubles and so rational numbers;
for every node set of the size in question, connected or not, G_SS − lower²·I is eliminated in exact
rationals (a negative pivot would refute the lower bound), and for the witness's support G_SS −
upper²·I must not be positive definite. Beside the bounds, `verify` meets sealed forgeries and bytes
without sense (`scenarios.rigour.forgeries`), policies, audits and pilots are forged
(`scenarios.rigour.forged_promises`, `scenarios.rigour.forged_policies`), journals are damaged
(`scenarios.rigour.damaged_journals`), and plans with decimal prices meet exhaustive search.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rrf_design.responses.sandbox import ProgramLimits, Sandbox
from scenarios.kit import ConditionVerdict, Context, Done, Figure, Part, Report, Scenario
from scenarios.kit.hostile_fields import FAMILIES, field, handed_over
from scenarios.kit.large_supports import small_field
from scenarios.rigour.bundled_plans import bundle_case
from scenarios.rigour.changed_leaves import leaf_case
from scenarios.rigour.damaged_journals import PlayedRun, journal_case, postgres
from scenarios.rigour.decimal_budgets import budget_case
from scenarios.rigour.forged_policies import policy_case, true_policies
from scenarios.rigour.forged_promises import promise_case, true_promises
from scenarios.rigour.forgeries import attack
from scenarios.rigour.hostile_programs import program_case
from scenarios.rigour.judged_fields import cost_of_rigour, judge, reverify
from scenarios.rigour.leaf_documents import true_documents
from scenarios.rigour.played_repairs import METHODS, repair_case
from scenarios.rigour.protected_fields import protected_case
from scenarios.rigour.rival_repairs import rival_case

WELL_CONDITIONED = 1e-2  # γ at least this share of the largest column norm
ATTACKS = (
    "forgeries",
    "bytes",
    "leaves",
    "promises",
    "journals",
    "stores",
    "programs",
    "budgets",
    "bundles",
    "repairs",
    "rivals",
)
BATCH = 100
ATTACK_BATCH = 250
LEAF_BATCH = 2000  # their documents take longer to make than to change


def parts(context: Context) -> list[Part]:
    per_family = context["fields"] // len(FAMILIES)
    batches: list[Part] = [
        {"family": family, "first": first, "count": min(BATCH, per_family - first)}
        for family in FAMILIES
        for first in range(0, per_family, BATCH)
    ]
    for kind in ATTACKS:
        whole, size = context[kind], LEAF_BATCH if kind == "leaves" else ATTACK_BATCH
        batches += [
            {"attack": kind, "first": first, "count": min(size, whole - first)} for first in range(0, whole, size)
        ]
    batches += [
        {"large": True, "first": first, "count": min(BATCH, context["large"] - first)}
        for first in range(0, context["large"], BATCH)
    ]
    return [*batches, *({"cost": kind, "nodes": nodes} for kind, nodes in context["timed"])]


def run(context: Context, part: Part) -> dict[str, Any]:
    if "cost" in part:
        return cost_of_rigour(part["cost"], part["nodes"])
    seeds = range(part["first"], part["first"] + part["count"])
    if part.get("attack") in ("budgets", "bundles"):
        plan = budget_case if part["attack"] == "budgets" else bundle_case
        cases = [plan(seed) for seed in seeds]
        return {"attack": part["attack"], "tried": len(cases)} | {
            key: sum(case.get(key, 0) for case in cases) for key in ("over", "illegal", "worse", "optimal")
        }
    if part.get("attack") in ("repairs", "rivals"):
        return _played(part["attack"], seeds)
    if part.get("attack") in ("leaves", "promises", "journals", "stores", "programs"):
        return _tampered(part["attack"], seeds)
    if "attack" in part:
        return attack(part["attack"], seeds)
    if "large" in part:
        judged, guarded = [], []
        for seed, matrix in zip(seeds, map(small_field, seeds), strict=True):
            judged.append(judge(matrix, [1] * matrix.shape[1], 4, method="completion"))
            if seed % context["protect_every"] == 0:
                guarded.append(protected_case(matrix, [1] * matrix.shape[1], 4, seed, method="completion"))
        wrong = sum(not (row["lower_ok"] and row["upper_ok"]) for row in judged)
        wrong += sum(not all(case.values()) for case in guarded)
        exact = sum(row["exact"] for row in judged)
        return {"large": len(judged), "guarded": len(guarded), "wrong": wrong, "exact": exact}
    rows, protected = [], []
    verified, asked = 0, 0
    for seed in seeds:
        matrix, sizes, k = field(part["family"], seed)
        rows.append(judge(matrix, sizes, k, handed_over(matrix, seed)[1]))
        if seed % context["verify_every"] == 0:
            asked += 1
            verified += reverify(matrix, sizes, k)
        if seed % context["protect_every"] == 0:
            protected.append(protected_case(matrix, sizes, k, seed))
    good = [row["gap"] for row in rows if row["conditioning"] >= WELL_CONDITIONED]
    return {
        "family": part["family"],
        "fields": len(rows),
        "lower_above": sum(not row["lower_ok"] for row in rows),
        "upper_below": sum(not row["upper_ok"] for row in rows),
        "refused": sum(row["refused"] for row in rows),
        "exact": sum(row["exact"] for row in rows),
        "zero": sum(row["zero"] for row in rows),
        "well_conditioned": len(good),
        "widest_gap": max(good, default=0.0),
        "certificates": asked,
        "verified": verified,
        "protected": len(protected),
        "protected_wrong": sum(not all(case.values()) for case in protected),
    }


def report(context: Context, done: Sequence[Done]) -> Report:
    costs = [item.value for item in done if "cost" in item.part]
    rows = _by_family([item.value for item in done if "family" in item.part])
    attacks = {kind: [item.value for item in done if item.part.get("attack") == kind] for kind in ATTACKS}
    total = {
        key: sum(row[key] for row in rows)
        for key in ("fields", "lower_above", "upper_below", "certificates", "verified", "protected", "protected_wrong")
    }
    gap = max(row["widest_gap"] for row in rows)
    worst = max((cost["cost"] for cost in costs), default=0.0)
    cost = f"proofs take at most {worst:.1%} of the rest of a solve"
    page = Report()
    page.check("lower", total["lower_above"] == 0, f"{total['lower_above']} of {total['fields']} above the truth")
    page.check("upper", total["upper_below"] == 0, f"{total['upper_below']} of {total['fields']} below the truth")
    page.check(
        "protected",
        total["protected_wrong"] == 0,
        f"{total['protected_wrong']} of {total['protected']} on the wrong side, refused or wrongly proved",
    )
    page.verdicts.append(_large([item.value for item in done if "large" in item.part]))
    page.check("gap", gap <= 1e-9, f"widest relative gap {gap:.3g}")
    page.check(
        "verified",
        total["verified"] == total["certificates"],
        f"{total['verified']} of {total['certificates']} certificates verify",
    )
    page.verdicts.append(_attacked("forgeries", attacks["forgeries"], context.quick))
    page.verdicts.append(_attacked("bytes", attacks["bytes"], context.quick))
    page.verdicts.append(_promised("leaves", attacks["leaves"], context.quick))
    page.verdicts.append(_promised("promises", attacks["promises"], context.quick))
    page.verdicts.append(_journalled("journals", attacks["journals"]))
    page.verdicts.append(_journalled("stores", attacks["stores"]))
    page.verdicts.append(_sandboxed(attacks["programs"]))
    page.verdicts.append(_planned("budgets", attacks["budgets"]))
    page.verdicts.append(_planned("bundles", attacks["bundles"]))
    page.verdicts.append(_repaired("repairs", attacks["repairs"]))
    page.verdicts.append(_repaired("rivals", attacks["rivals"]))
    page.check("cost", worst <= 0.3, cost, unless=context.quick and f"{cost} (quick size)")
    page.answer = _answer(total, [item.value for item in done if "large" in item.part])
    page.figures.append(_figure(rows))
    page.table("families", rows)
    page.table("attacks", _tricks(attacks))
    page.table("repairs", _verdicts(attacks["repairs"]))
    page.table("rivals", _verdicts(attacks["rivals"]))
    page.table("cost", costs)
    page.notes.append(
        f"A field counts as well conditioned when its margin is at least {WELL_CONDITIONED:g} of its largest column"
        " norm. Elsewhere the bounds hold just as well, and may lie further apart. Refused: entries more than 150"
        " orders of magnitude apart, in one line."
    )
    return page


def _answer(total: dict[str, int], eights: Sequence[dict[str, Any]]) -> str:
    fields, wrong = (sum(value[key] for value in eights) for key in ("large", "wrong"))
    failed = total["lower_above"] + total["upper_below"] + total["protected_wrong"] + wrong
    return (
        f"{'At least one test fails' if failed else 'None does'}: in exact arithmetic {total['lower_above']:,} of"
        f" {total['fields']:,} random and hostile fields have a lower bound above the exact value and"
        f" {total['upper_below']:,} an upper bound below it; {total['protected_wrong']:,} of {total['protected']:,}"
        f" margins of delivered values and {wrong:,} of {fields:,} fields with supports of eight nodes fail theirs."
    )


def _by_family(values: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    counted = (
        "fields",
        "lower_above",
        "upper_below",
        "refused",
        "exact",
        "zero",
        "well_conditioned",
        "certificates",
        "verified",
        "protected",
        "protected_wrong",
    )
    rows = []
    for family in FAMILIES:
        mine = [value for value in values if value["family"] == family]
        row: dict[str, Any] = {"family": family, **{key: sum(value[key] for value in mine) for key in counted}}
        rows.append({**row, "widest_gap": max((value["widest_gap"] for value in mine), default=0.0)})
    return rows


def _attacked(kind: str, values: Sequence[dict[str, Any]], quick: bool) -> ConditionVerdict:
    tried, accepted, raised = (sum(value[key] for value in values) for key in ("tried", "accepted", "raised"))
    slowest = max((value["slowest"] for value in values), default=0.0)
    words = f"{accepted} of {tried} accepted, {raised} raised, the slowest took {slowest:.2g} s of computing"
    return ConditionVerdict.of(kind, accepted == raised == 0 and (quick or slowest < 1.0), words)


def _tampered(kind: str, seeds: range) -> dict[str, Any]:
    """Forged promises, damaged journals or hostile programs, in a folder of their own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if kind == "stores":
            with postgres() as address:
                served = None if address is None else PlayedRun(folder, address)
                cases = [] if served is None else [journal_case(served, seed) for seed in seeds]
        elif kind == "journals":
            played = PlayedRun(folder)
            cases = [journal_case(played, seed) for seed in seeds]
        elif kind == "programs":
            with Sandbox(workers=1, limits=ProgramLimits(call=0.1, cpu=1, wall=4.0)) as box:
                cases = [program_case(box, folder, seed) for seed in seeds]
        elif kind == "leaves":
            documents = true_documents(folder)
            leaf_case(documents, folder, 0)  # compile
            cases = [leaf_case(documents, folder, seed) for seed in seeds]
        else:
            true, policies = true_promises(folder), true_policies(folder)
            promise_case(true, folder, 0)  # compile
            # Changed anywhere, and every other one changed in one respect with all its tests run
            # again.
            cases = [
                policy_case(policies, folder, seed // 2) if seed % 2 else promise_case(true, folder, seed)
                for seed in seeds
            ]
    counted = ("accepted", "false", "believed", "deceived", "raised", "refused")
    return {
        "attack": kind,
        "tried": len(cases),
        **{key: sum(case.get(key, 0) for case in cases) for key in counted},
        "slowest": max((case.get("seconds", 0.0) for case in cases), default=0.0),
        "tricks": {
            trick: sum(case["trick"] == trick for case in cases) for trick in sorted({c["trick"] for c in cases})
        },
    }


def _promised(kind: str, values: Sequence[dict[str, Any]], quick: bool) -> ConditionVerdict:
    tried, accepted, wrong, raised = (sum(v[key] for v in values) for key in ("tried", "accepted", "false", "raised"))
    slowest = max((value["slowest"] for value in values), default=0.0)
    words = (
        f"{wrong} of {tried} accepted though a claim does not follow ({accepted} accepted in all), {raised} raised,"
        f" the slowest took {slowest:.2g} s of computing"
    )
    return ConditionVerdict.of(kind, wrong == raised == 0 and (quick or slowest < 1.0), words)


def _journalled(kind: str, values: Sequence[dict[str, Any]]) -> ConditionVerdict:
    tried, believed, raised = (sum(value[key] for value in values) for key in ("tried", "believed", "raised"))
    if not tried:
        return ConditionVerdict.open(kind, "there is no PostgreSQL here to damage (pip install pgserver)")
    return ConditionVerdict.of(kind, believed == raised == 0, f"{believed} of {tried} believed, {raised} raised")


def _sandboxed(values: Sequence[dict[str, Any]]) -> ConditionVerdict:
    tried, deceived, raised = (sum(value[key] for value in values) for key in ("tried", "deceived", "raised"))
    return ConditionVerdict.of(
        "programs", deceived == raised == 0, f"{deceived} of {tried} deceived the judge, {raised} raised"
    )


def _large(values: Sequence[dict[str, Any]]) -> ConditionVerdict:
    fields, guarded, wrong, exact = (
        sum(value[key] for value in values) for key in ("large", "guarded", "wrong", "exact")
    )
    words = (
        f"{wrong} of {fields} margins and {guarded} margins of delivered values on the wrong side, refused or wrongly"
        f" proved; {exact} exact"
    )
    return ConditionVerdict.of("large", wrong == 0, words)


def _planned(kind: str, values: Sequence[dict[str, Any]]) -> ConditionVerdict:
    tried, over, illegal, worse = (sum(v[key] for v in values) for key in ("tried", "over", "illegal", "worse"))
    broken = "" if kind == "budgets" else f", {illegal} against a rule"
    words = f"{over} of {tried} over the budget{broken}, {worse} below the best margin"
    return ConditionVerdict.of(kind, over == illegal == worse == 0, words)


def _played(kind: str, seeds: range) -> dict[str, Any]:
    cases = [(repair_case if kind == "repairs" else rival_case)(seed) for seed in seeds]
    verdicts: dict[str, dict[str, int]] = {method: {} for method in METHODS}
    for case in cases:
        own = verdicts[case["method"]]
        own[case["verdict"]] = own.get(case["verdict"], 0) + 1
        own["false"] = own.get("false", 0) + bool(case["faults"])
    return {"attack": kind, "tried": len(cases), "verdicts": verdicts}


def _verdicts(values: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    named = ("certified", "ambiguous", "incomplete", "contradicted", "refused", "false")
    return [
        {"method": method} | {name: sum(v["verdicts"][method].get(name, 0) for v in values) for name in named}
        for method in METHODS
    ]


def _repaired(kind: str, values: Sequence[dict[str, Any]]) -> ConditionVerdict:
    rows, tried = _verdicts(values), sum(value["tried"] for value in values)
    wrong, sure = sum(row["false"] for row in rows), sum(row["certified"] for row in rows)
    return ConditionVerdict.of(kind, wrong == 0, f"{wrong} of {tried} say something false; {sure} certified")


def _tricks(attacks: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    rows = []
    for kind in ("forgeries", "bytes", "leaves", "promises", "journals", "stores", "programs"):
        for trick in sorted({name for value in attacks[kind] for name in value["tricks"]}):
            rows.append(
                {"attack": kind, "trick": trick, "tried": sum(v["tricks"].get(trick, 0) for v in attacks[kind])}
            )
    return rows


def _figure(rows: Sequence[dict[str, Any]]) -> Figure:
    """The widest gap between lower and upper in every family; the smallest double stands for
    none.
    """
    from scenarios.kit.plots import draw

    def paint(axes: Any) -> None:
        places = list(range(len(rows)))[::-1]
        axes.plot([max(row["widest_gap"], 2.0**-53) for row in rows], places, "o", color="#0072B2")
        axes.axvline(1e-9, color="#000000", linewidth=1)
        axes.set_xscale("log")
        axes.set_yticks(places, [row["family"] for row in rows])
        axes.set_xlabel("widest relative gap, well-conditioned fields (line: what is allowed)")

    return draw("gaps", paint, size=(6.4, 1.0 + 0.35 * len(rows)))


SCENARIO = Scenario.declared("rigour", parts, run, report)
