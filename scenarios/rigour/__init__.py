"""Are the proven bounds bounds?

Thousands of random and hostile fields against exact rational arithmetic.

The judge shares nothing with solver or verifier: entries of B are doubles and so rational numbers;
for every node set of the size in question, connected or not, G_SS − lower²·I is eliminated in exact
rationals (a negative pivot would refute the lower bound), and for the witness's support G_SS −
upper²·I must not be positive definite. Beside the bounds, `verify` meets sealed forgeries and bytes
without sense (`scenarios.rigour.forgeries`), policies, audits and pilots are forged
(`scenarios.rigour.forged_promises`, `scenarios.rigour.forged_policies`), journals are damaged
(`scenarios.rigour.damaged_journals`), plans with decimal prices meet exhaustive search, plans with
a limit have to end by it, and what nobody bought must change nothing
(`scenarios.rigour.unbought_entries`).
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rrf_design.responses.sandbox import ProgramLimits, Sandbox
from scenarios.kit import Context, Done, Part, Report, Row, Rows, Scenario
from scenarios.kit.hostile_fields import FAMILIES, field, handed_over
from scenarios.kit.large_supports import small_field
from scenarios.kit.rows import batches, column, count, grouped, missing, seeds_of, summary, totals, values, where
from scenarios.rigour.bundled_plans import bundle_case, limited_case
from scenarios.rigour.changed_leaves import leaf_case
from scenarios.rigour.damaged_journals import PlayedRun, journal_case, postgres
from scenarios.rigour.decimal_budgets import budget_case
from scenarios.rigour.forged_policies import policy_case, true_policies
from scenarios.rigour.forged_promises import promise_case, true_promises
from scenarios.rigour.forgeries import attack, counted
from scenarios.rigour.hostile_programs import program_case
from scenarios.rigour.judged_fields import cost_of_rigour, judge, reverify
from scenarios.rigour.leaf_documents import true_documents
from scenarios.rigour.played_repairs import METHODS, repair_case
from scenarios.rigour.protected_fields import protected_case
from scenarios.rigour.rival_repairs import rival_case
from scenarios.rigour.unbought_entries import unbought_case

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
    "limits",
    "repairs",
    "rivals",
    "unbought",
)
BATCH = 100
ATTACK_BATCH = 250
LEAF_BATCH = 2000  # their documents take longer to make than to change


def parts(context: Context) -> list[Part]:
    per_family = context["fields"] // len(FAMILIES)
    listed = [batch for family in FAMILIES for batch in batches(per_family, BATCH, family=family)]
    for kind in ATTACKS:
        listed += batches(context[kind], LEAF_BATCH if kind == "leaves" else ATTACK_BATCH, attack=kind)
    timed = ({"cost": kind, "nodes": nodes} for kind, nodes in context["timed"])
    return [*listed, *batches(context["large"], BATCH, large=True), *timed]


def run(context: Context, part: Part) -> Row:
    if "cost" in part:
        return cost_of_rigour(part["cost"], part["nodes"])
    seeds, kind = seeds_of(part), part.get("attack")
    if "large" in part:
        return _large(context, seeds)
    if "family" in part:
        return _family(context, part["family"], seeds)
    if kind in ("forgeries", "bytes"):
        return attack(kind, seeds)
    if kind in ("budgets", "bundles"):
        cases = [(budget_case if kind == "budgets" else bundle_case)(seed) for seed in seeds]
        return {"attack": kind, "tried": len(cases), **totals(cases, "over illegal worse optimal")}
    if kind == "limits":
        limited_case(0)  # compile
        plans = [limited_case(seed) for seed in seeds]
        late = max(column(plans, "late"))
        return {"attack": kind, "late": late, **totals(plans, "tried ended false optimal refused")}
    if kind == "unbought":
        pairs = [unbought_case(seed) for seed in seeds]
        apart = count(pairs, "apart")
        return {"attack": kind, "tried": len(pairs), "apart": apart, **totals(pairs, "refused different")}
    if kind in ("repairs", "rivals"):
        played = [(repair_case if kind == "repairs" else rival_case)(seed) for seed in seeds]
        verdicts = {method: Counter(c["verdict"] for c in where(played, method=method)) for method in METHODS}
        for case in played:
            verdicts[case["method"]]["false"] += bool(case["faults"])
        return {"attack": kind, "tried": len(played), "verdicts": verdicts}
    with tempfile.TemporaryDirectory() as folder:
        return counted(kind, _tampered(str(kind), seeds, Path(folder)))


def _large(context: Context, seeds: range) -> Row:
    """Fields with supports of eight nodes."""
    judged, guarded = [], []
    for seed, matrix in zip(seeds, map(small_field, seeds), strict=True):
        judged.append(judge(matrix, [1] * matrix.shape[1], 4, method="completion"))
        if seed % context["protect_every"] == 0:
            guarded.append(protected_case(matrix, [1] * matrix.shape[1], 4, seed, method="completion"))
    wrong = sum(not (row["lower_ok"] and row["upper_ok"]) for row in judged)
    wrong += sum(not all(case.values()) for case in guarded)
    return {"large": len(judged), "guarded": len(guarded), "wrong": wrong, "exact": count(judged, "exact")}


def _family(context: Context, family: str, seeds: range) -> Row:
    rows, protected, verified = [], [], []
    for seed in seeds:
        matrix, sizes, k = field(family, seed)
        rows.append(judge(matrix, sizes, k, handed_over(matrix, seed)[1]))
        if seed % context["verify_every"] == 0:
            verified.append(reverify(matrix, sizes, k))
        if seed % context["protect_every"] == 0:
            protected.append(protected_case(matrix, sizes, k, seed))
    good = [row["gap"] for row in rows if row["conditioning"] >= WELL_CONDITIONED]
    return {
        "family": family,
        "fields": len(rows),
        "lower_above": missing(rows, "lower_ok"),
        "upper_below": missing(rows, "upper_ok"),
        **{name: count(rows, name) for name in ("refused", "exact", "zero")},
        "well_conditioned": len(good),
        "widest_gap": max(good, default=0.0),
        "certificates": len(verified),
        "verified": sum(verified),
        "protected": len(protected),
        "protected_wrong": sum(not all(case.values()) for case in protected),
    }


def _tampered(kind: str, seeds: range, folder: Path) -> list[Row]:
    """Forged promises, damaged journals or hostile programs, in a folder of their own."""
    if kind == "stores":
        with postgres() as address:
            served = None if address is None else PlayedRun(folder, address)
            return [] if served is None else [journal_case(served, seed) for seed in seeds]
    if kind == "journals":
        played = PlayedRun(folder)
        return [journal_case(played, seed) for seed in seeds]
    if kind == "programs":
        with Sandbox(workers=1, limits=ProgramLimits(call=0.1, cpu=1, wall=4.0)) as box:
            return [program_case(box, folder, seed) for seed in seeds]
    if kind == "leaves":
        documents = true_documents(folder)
        leaf_case(documents, folder, 0)  # compile
        return [leaf_case(documents, folder, seed) for seed in seeds]
    true, policies = true_promises(folder), true_policies(folder)
    promise_case(true, folder, 0)  # compile
    # Changed anywhere, and every other one changed in one respect with all its tests run again.
    return [
        policy_case(policies, folder, seed // 2) if seed % 2 else promise_case(true, folder, seed) for seed in seeds
    ]


def report(context: Context, done: Sequence[Done]) -> Report:
    attacks = {kind: values(done, attack=kind) for kind in ATTACKS}
    counts = "fields lower_above upper_below refused exact zero well_conditioned certificates verified"
    columns = " ".join(f"{name}=sum" for name in f"{counts} protected protected_wrong".split())
    rows = grouped(values(done, "family"), "family", f"{columns} widest_gap=largest")
    total = summary(rows, columns)
    fields, low, high = (total[name] for name in ("fields", "lower_above", "upper_below"))
    guarded, unguarded = total["protected"], total["protected_wrong"]
    eight = totals(values(done, "large"), "large guarded wrong exact")
    gap = max(column(rows, "widest_gap"))
    costs = values(done, "cost")
    worst = max(column(costs, "cost"), default=0.0)
    page = context.page()
    page.answer = (
        f"{'At least one test fails' if low + high + unguarded + eight['wrong'] else 'None does'}: in exact arithmetic"
        f" {low:,} of {fields:,} random and hostile fields have a lower bound above the exact value and"
        f" {high:,} an upper bound below it; {unguarded:,} of {guarded:,}"
        f" margins of delivered values and {eight['wrong']:,} of {eight['large']:,} fields with supports of eight nodes"
        " fail theirs."
    )
    page.none("lower", low, f"of {fields} above the truth")
    page.none("upper", high, f"of {fields} below the truth")
    page.none("protected", unguarded, f"of {guarded} on the wrong side, refused or wrongly proved")
    page.none(
        "large",
        eight["wrong"],
        f"of {eight['large']} margins and {eight['guarded']} margins of delivered values on the wrong side, refused or"
        f" wrongly proved; {eight['exact']} exact",
    )
    page.check("gap", gap <= 1e-9, f"widest relative gap {gap:.3g}")
    good, asked = total["verified"], total["certificates"]
    page.check("verified", good == asked, f"{good} of {asked} certificates verify")
    for kind, found in attacks.items():
        _judge_attack(page, kind, found)
    page.at_full("cost", worst <= 0.3, f"proofs take at most {worst:.1%} of the rest of a solve")
    page.draw("gaps", partial(_gaps, rows), size=(6.4, 1.0 + 0.35 * len(rows)))
    page.table("families", rows)
    page.table(
        "attacks",
        [
            {"attack": kind, "trick": trick, "tried": sum(v["tricks"].get(trick, 0) for v in attacks[kind])}
            for kind in ATTACKS[:7]
            for trick in sorted({name for value in attacks[kind] for name in value["tricks"]})
        ],
    )
    page.table("repairs", _verdicts(attacks["repairs"]))
    page.table("rivals", _verdicts(attacks["rivals"]))
    page.table("cost", costs)
    page.notes.append(
        f"A field counts as well conditioned when its margin is at least {WELL_CONDITIONED:g} of its largest column"
        " norm. Elsewhere the bounds hold just as well, and may lie further apart. Refused: entries more than 150"
        " orders of magnitude apart, in one line."
    )
    return page


def _judge_attack(page: Report, kind: str, found: Rows) -> None:
    """What was said or believed that is false, and what was not refused in one line."""
    all_of = "tried accepted false believed deceived raised over illegal worse"
    tried, accepted, wrong, believed, deceived, raised, over, illegal, worse = totals(found, all_of).values()
    slowest = max((value.get("slowest", 0.0) for value in found), default=0.0)
    late = slowest >= 1.0 and not page.quick
    told = f"{raised} raised, the slowest took {slowest:.2g} s of computing"
    if kind in ("forgeries", "bytes"):
        page.check(kind, accepted == raised == 0 and not late, f"{accepted} of {tried} accepted, {told}")
    elif kind in ("leaves", "promises"):
        seen = f"{wrong} of {tried} accepted though a claim does not follow ({accepted} accepted in all), {told}"
        page.check(kind, wrong == raised == 0 and not late, seen)
    elif kind in ("journals", "stores"):
        absent = not tried and "there is no PostgreSQL here to damage (pip install pgserver)"
        seen = f"{believed} of {tried} believed, {raised} raised"
        page.check(kind, believed == raised == 0, seen, unless=absent)
    elif kind == "programs":
        page.check(kind, deceived == raised == 0, f"{deceived} of {tried} deceived the judge, {raised} raised")
    elif kind in ("budgets", "bundles"):
        broken = "" if kind == "budgets" else f", {illegal} against a rule"
        page.check(
            kind,
            over == illegal == worse == 0,
            f"{over} of {tried} over the budget{broken}, {worse} below the best margin",
        )
    elif kind == "limits":
        ended, optimal, refused = totals(found, "ended optimal refused").values()
        late = max((value["late"] for value in found), default=0.0)
        page.check(
            kind,
            ended == tried and not wrong and (late <= 1.0 or page.quick),
            f"{ended} of {tried} plans end, at most {max(late, 0.0):.2g} s of computing after their limit;"
            f" {wrong} say something false; {optimal} optimal, {refused} refused",
        )
    elif kind == "unbought":
        refused, different, apart = totals(found, "refused different apart").values()
        seen = f"of {tried} pairs say otherwise of what is held; {apart} with two fields apart, {refused} refused"
        page.none(kind, different, seen)
    else:
        false, sure = totals(_verdicts(found), "false consistent").values()
        page.none(kind, false, f"of {tried} say something false; {sure} consistent")


def _verdicts(found: Rows) -> list[Row]:
    named = "consistent checked ambiguous incomplete contradicted refused false"
    return [{"method": method, **totals([value["verdicts"][method] for value in found], named)} for method in METHODS]


def _gaps(rows: Rows, axes: Any) -> None:
    """The widest gap between lower and upper in every family; the smallest double stands for
    none.
    """
    places = list(range(len(rows)))[::-1]
    axes.plot([max(row["widest_gap"], 2.0**-53) for row in rows], places, "o", color="#0072B2")
    axes.axvline(1e-9, color="#000000", linewidth=1)
    axes.set_xscale("log")
    axes.set_yticks(places, column(rows, "family"))
    axes.set_xlabel("widest relative gap, well-conditioned fields (line: what is allowed)")


SCENARIO = Scenario.declared("rigour", parts, run, report)
