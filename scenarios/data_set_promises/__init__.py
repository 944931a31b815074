"""Beyond the paper: what may be promised about a whole data set, measured on recorded answers of
real models.

A pilot of n random items with gold chooses one of many ladders; the promise is that the chosen one
is wrong on at most a share r of all items, with confidence 95 %. Each cell (panel, r, n) is played
over many random splits: share of checks and cost among the items outside the pilot, and whether the
promise was true. The data are not the project's own: they are read from a folder that the caller
names, and only figures are published.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from scenarios.data_set_promises.boards import Boards
from scenarios.data_set_promises.coverage import SIMULATIONS, simulate
from scenarios.data_set_promises.drawn_panels import SIZE, drawn_panel
from scenarios.data_set_promises.forecast_cells import forecast_part, foretold
from scenarios.data_set_promises.panels import folder_of, nodes_of_set, panel_names, read_panel
from scenarios.data_set_promises.splits import PromiseCell, play_cell
from scenarios.kit import Context, Done, Part, Report, Rows, Scenario
from scenarios.kit.rows import groups, pick, rows_of, where

OURS = "staggered fronts"
WITHOUT = f"{OURS}, without climbs"
SINGLE = ("front, discounted", "front", "Holm")
STATEMENTS = tuple(f"{OURS}, statement '{name}'" for name in ("fresh", "file", "rest"))
TESTED = (OURS, *STATEMENTS, WITHOUT, *SINGLE, "Holm, climbs too", "front, discounted, random checks")
TARGETS: dict[tuple[str, float, int], tuple[float, float]] = {
    ("gsm8k", 0.05, 200): (0.12, 0.27),
    ("gsm8k", 0.02, 400): (0.48, 0.65),
    ("gsm8k-small", 0.05, 200): (0.17, 0.32),
    ("crux", 0.05, 200): (0.45, 0.63),
    ("mmlu-pro", 0.1, 400): (0.65, 0.82),
}
"""Largest share of checks and cost relative to checking everything."""
HOPELESS = ("llmbar", 0.05, 400)
CELLS: tuple[tuple[str, float, int], ...] = (
    *TARGETS,
    HOPELESS,
    ("gsm8k", 0.05, 100),
    ("gsm8k", 0.05, 400),
    ("gsm8k", 0.02, 200),
    ("gsm8k", 0.01, 400),
    ("gsm8k-small", 0.02, 400),
    ("crux", 0.1, 200),
    ("crux", 0.02, 400),
    ("mmlu-pro", 0.05, 400),
    ("llmbar", 0.1, 400),
)
DRAWN_SETS = ("gsm8k", "crux", "mmlu-pro", "llmbar")
DRAWN_CELLS: tuple[tuple[float, int], ...] = ((0.05, 200), (0.1, 200), (0.02, 400))
KEPT = 0.92
TOSS_UP = 0.05
"""Of the cost of checking everything: what a forecast wants to be saved."""
FORECAST_PANELS = ("gsm8k", "gsm8k-small", "crux", "mmlu-pro", "llmbar")


def cells(context: Context) -> list[PromiseCell]:
    known = panel_names(folder_of(context["answers"]))
    most, check = int(context["most_labels"]), float(context["check"])
    found = [PromiseCell(panel, risk, min(labels, most), check) for panel, risk, labels in CELLS if panel in known]
    return list(dict.fromkeys(found))


def parts(context: Context) -> list[Part]:
    played = [{"panel": c.panel, "risk": c.risk, "labels": c.labels} for c in cells(context)]
    return [*played, *drawn_parts(context), *forecast_parts(context), *({"simulation": name} for name in SIMULATIONS)]


def forecast_parts(context: Context) -> list[Part]:
    """Panels whose pilots are forecast: those that the forecast's constants were chosen on, and one
    draw of each set that nothing was chosen on.
    """
    known = panel_names(folder_of(context["answers"]))
    drawn = dict.fromkeys(part["drawn"] for part in drawn_parts(context))
    return [
        *({"forecast": name} for name in FORECAST_PANELS if name in known),
        *({"forecast": name, "draw": 0} for name in drawn),
    ]


def drawn_parts(context: Context) -> list[Part]:
    """Cells of panels drawn at random, which nothing was chosen on."""
    folder, most = folder_of(context["answers"]), int(context["most_labels"])
    sets = [name for name in DRAWN_SETS if len(nodes_of_set(folder, name)) >= SIZE]
    cells = list(dict.fromkeys((risk, min(labels, most)) for risk, labels in DRAWN_CELLS))
    return [
        {"drawn": name, "draw": draw, "risk": risk, "labels": labels}
        for name in sets
        for draw in range(int(context["draws"]))
        for risk, labels in cells
    ]


def run(context: Context, part: Part) -> list[dict[str, Any]]:
    if "simulation" in part:
        return [simulate(part["simulation"], times=context["simulations"], seed=context["seed"])]
    folder = folder_of(context["answers"])
    if "forecast" in part:
        return forecast_part(context, part)
    panel = read_panel(folder, part["panel"]) if "panel" in part else drawn_panel(folder, part["drawn"], part["draw"])
    assert panel is not None  # parts name sets that have enough nodes
    cell = PromiseCell(panel.name, part["risk"], part["labels"], float(context["check"]))
    # Random checks help while n r is small (docs/algorithms.md, fact 34).
    diluted = "panel" in part and cell.labels * cell.risk < 8
    boards = Boards.of(panel, cell.check)
    drawn = "drawn" in part
    return play_cell(
        boards,
        cell,
        splits=context["drawn_splits"] if drawn else context["splits"],
        others=context["others"],
        seed=context["seed"],
        diluted=diluted,
        brief=drawn,
    )


def report(context: Context, done: Sequence[Done]) -> Report:
    rows, fresh, told_before, simulated = (rows_of(done, has) for has in ("panel", "drawn", "forecast", "simulation"))
    found = {(row["cell"], row["method"]): row for row in (*rows, *fresh)}
    told, drawn = ([cell for (cell,) in groups(own, "cell")] for own in (rows, fresh))
    page = context.page()
    page.answer = _answer(rows, fresh)
    _judge(page, found, told, simulated)
    _held_out(page, fresh)
    foretold(page, told_before, toss_up=TOSS_UP)
    page.draw("cost", partial(_costs, found, told), size=(6.4, 1.8 + 0.2 * len(told)))
    others = (WITHOUT, *SINGLE, "true order (reference)", "best in hindsight")
    page.table(
        "ours",
        [
            {
                "cell": cell,
                **pick(found[cell, OURS], "checks kept"),
                **{method: found[cell, method]["cost"] for method in (OURS, *others)},
                "random checks": found.get((cell, "front, discounted, random checks"), {}).get("cost"),
            }
            for cell in told
        ],
    )
    named = {"policy": OURS, **dict(zip(("fresh", "file", "rest"), STATEMENTS, strict=True))}
    page.table(
        "statements",
        [
            {
                "cell": cell,
                **{f"{name}, cost": found[cell, method]["cost"] for name, method in named.items()},
                **{f"{name}, kept": found[cell, method]["kept"] for name, method in named.items()},
            }
            for cell in told
        ],
    )
    page.table(
        "drawn",
        [
            {
                "cell": cell,
                "kept": found[cell, OURS]["kept"],
                OURS: found[cell, OURS]["cost"],
                **{f"{name}: ours more": found[cell, name]["ours_more"] for name in SINGLE},
                **{f"{name}: ±": found[cell, name]["ours_more_error"] for name in SINGLE},
                "best in hindsight": found[cell, "best in hindsight"]["cost"],
            }
            for cell in drawn
        ],
    )
    climbs = {"cell": "cell", "without climbs": "cost", "climbs: more": "ours_more", "±": "ours_more_error"}
    plain = where([*rows, *fresh], method=WITHOUT)
    page.table("climbs", [{name: row[key] for name, key in climbs.items()} for row in plain])
    page.table("cells", rows, shown=None)
    page.table("forecasts", told_before)
    page.table("coverage", simulated)
    page.notes.extend(_notes(found, told))
    return page


def _answer(rows: Sequence[Any], fresh: Sequence[Any]) -> str:
    ours = sorted((row for row in rows if row["method"] == OURS), key=lambda row: row["cost"])
    if not ours:
        return "No cost was measured, because the folder holds none of the panels."
    later = sorted(row["cost"] for row in fresh if row["method"] == OURS)
    drawn = f", and {later[0]:.0%} to {later[-1]:.0%} on panels drawn afterwards" if later else ""
    kept = min(row["kept"] for row in (*rows, *fresh) if row["method"] == OURS)
    return (
        f"Beside the pilot's own labels it costs {_price(ours[0])} to {_price(ours[-1])} of what checking every item"
        f" costs{drawn}; the promise was true in at least {kept:.1%} of the splits of every case."
    )


def _price(row: Mapping[str, Any]) -> str:
    return f"{row['cost']:.1%} ({row['cell']})"


def _judge(page: Report, found: Mapping[tuple[str, str], Any], told: Sequence[str], simulated: Rows) -> None:
    for panel, risk, labels in (*TARGETS, HOPELESS):
        key, row = _key(panel, risk, labels), found.get((PromiseCell(panel, risk, labels, 1.0).words, OURS))
        if page.quick or row is None:
            page.open([key], "quick size" if page.quick else f"no panel {panel!r} in the folder")
        elif (panel, risk, labels) == HOPELESS:
            page.check(key, row["check_everything"] >= 0.9, f"in {row['check_everything']:.1%} of splits")
        else:
            checks, cost = TARGETS[panel, risk, labels]
            said = f"checks {row['checks']:.1%}, cost {row['cost']:.3f}"
            page.check(key, row["checks"] <= checks and row["cost"] <= cost, said)
    own = [row for (cell, _), row in found.items() if cell in told]
    least = min(
        ((row["kept"], f"{row['method']} in {row['cell']}") for row in own if row["method"] in TESTED),
        default=(1.0, "no cell"),
    )
    worse = [
        f"{cell}: {found[cell, OURS]['cost']:.3f} against {other} {found[cell, other]['cost']:.3f}"
        for cell in told
        for other in SINGLE
        if found[cell, OURS]["cost"] > found[cell, other]["cost"] + 2 * (found[cell, other]["cost_error"] or 0.0)
    ]
    unknown = "quick size" if page.quick else not told and "no panel in the folder"
    page.check("kept", least[0] >= KEPT, f"least: {least[0]:.1%} ({least[1]})", unless=unknown)
    page.check("never-worse", not worse, "; ".join(worse) or f"in all {len(told)} cells", unless=unknown)
    rate = max(simulated, key=lambda row: row["rate"] - row["allowed"])
    allowed = rate["allowed"] + 4 * (rate["allowed"] * (1 - rate["allowed"]) / rate["times"]) ** 0.5
    seen = f"highest {rate['rate']:.2%} of {rate['times']:,} ({rate['simulation']})"
    page.check("coverage", rate["rate"] <= allowed, seen)


def _worse(rows: Sequence[Any]) -> list[Any]:
    """Where ours is dearer than a single order, beyond two standard errors of the difference on the
    same splits.
    """
    return [r for r in rows if r["method"] in SINGLE and r["ours_more"] > 2 * (r["ours_more_error"] or 0.0) + 1e-12]


def _held_out(page: Report, rows: Rows) -> None:
    if page.quick or not rows:
        return page.open(["held-out"], "quick size" if page.quick else "no set in the folder has enough nodes")
    compared = sum(row["method"] in SINGLE for row in rows)
    worse = [f"{r['cell']}: by {r['ours_more']:.4f} than {r['method']} ({r['cost']:.4f})" for r in _worse(rows)]
    kept = min(row["kept"] for row in rows if row["method"] in TESTED)
    words = f"dearer in {len(worse)} of {compared} comparisons; least kept {kept:.1%}"
    return page.check("held-out", not worse and kept >= KEPT, "; ".join([words, *worse]))


def _costs(found: Mapping[tuple[str, str], Any], told: Sequence[str], axes: Any) -> None:
    from scenarios.kit.plots import COLOURS, MARKERS

    places = list(range(len(told)))[::-1]
    methods = (OURS, "front", "Holm", "self-consistency, tested threshold", "best in hindsight")
    for index, method in enumerate(methods):
        costs = [found[cell, method]["cost"] for cell in told]
        axes.scatter(costs, places, label=method, s=18, alpha=0.7, color=COLOURS[index], marker=MARKERS[index])
    axes.set_yticks(places, told)
    axes.set_xlabel("cost relative to checking everything")
    axes.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.4, -0.12), ncols=2)


def _notes(found: Mapping[tuple[str, str], Any], told: Sequence[str]) -> list[str]:
    if not told:
        return []
    gains = [1 - found[cell, OURS]["cost"] / found[cell, "front"]["cost"] for cell in told]
    against = [1 - found[cell, OURS]["cost"] / found[cell, "Holm"]["cost"] for cell in told]
    untested = [found[cell, "cheapest with pilot risk ≤ r, untested"]["kept"] for cell in told]
    outside = min(found[cell, OURS]["kept_outside"] for cell in told)
    return [
        (
            f"Against a single front at face value the staggered fronts save between {min(gains):.1%} and"
            f" {max(gains):.1%} of the cost, against Holm's method between {min(against):.1%} and {max(against):.1%}."
        ),
        (
            f"The cheapest policy with a pilot risk of at most r, untested, kept the promise in {min(untested):.0%} to"
            f" {max(untested):.0%} of splits: that is what a test is for."
        ),
        (
            "The statement tested is the policy's risk over all items. Among the items outside the pilot alone it was"
            f" at most r in as few as {outside:.1%} of splits; who wants that must ask for that statement."
        ),
        (
            "The discount on agreement, the further chains, the climbs and the smallest step of a front were chosen on"
            " panels of the same sets of answers, the cells of the first tables among them, so their costs are"
            " optimistic; the drawn panels were not looked at before. The promise does not depend on that choice; the"
            " cost does."
        ),
    ]


def _key(panel: str, risk: float, labels: int) -> str:
    return f"{panel}-{round(100 * risk)}-{labels}"


SCENARIO = Scenario.declared("data-set-promises", parts, run, report)
