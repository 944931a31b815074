"""Beyond the paper: `deliver`'s one pass over a table, measured on recorded answers of real models
and in tables that an adversary made.

How many rows people look at, beside the three steps of a policy on the same rows (looks.py), and
how often the promise is false where errors hide (nasty_tables.py). The data are not the project's
own: they are read from a folder that the caller names, and only figures are published.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from scenarios.data_set_promises.panels import folder_of
from scenarios.kit import Context, Done, Part, Report, Rows, Scenario
from scenarios.kit.rows import rows_of
from scenarios.one_pass.looks import pass_part, pass_parts
from scenarios.one_pass.nasty_tables import ALLOWED, NASTY, simulate_passes

NAME = "one-pass"
STEPS, SEQUENCE = "three steps, best pilot", "one random sequence"


def _folder(context: Context) -> Path:
    return folder_of(context["answers"], NAME)


def parts(context: Context) -> list[Part]:
    return [*pass_parts(context, _folder(context)), *({"table": name} for name in NASTY)]


def run(context: Context, part: Part) -> list[dict[str, Any]]:
    if "table" in part:
        return [simulate_passes(part["table"], times=context["pass_tables"], seed=context["seed"])]
    return pass_part(context, _folder(context), part)


def report(context: Context, done: Sequence[Done]) -> Report:
    page = context.page()
    played, simulated = rows_of(done, "one pass"), rows_of(done, "table")
    page.answer = _answer(played)
    _judge(page, played, simulated)
    page.draw("looks", partial(_picture, played), size=(6.4, 1.6 + 0.16 * len(played)))
    page.table("looks", played, shown=None)
    page.table("kept", simulated, shown=None)
    if played:
        page.notes.extend(_notes(context, played))
    return page


def _share(row: Mapping[str, Any], other: str) -> float:
    return float(row["one pass"] / max(1.0, row[other]))


def _answer(played: Rows) -> str:
    if not played:
        return "No looks were counted, because the folder holds none of the panels."
    steps, whole = (sorted(_share(row, other) for row in played) for other in (STEPS, SEQUENCE))
    of_all = sorted(row["of all rows"] for row in played)
    return (
        f"One pass takes {of_all[0]:.0%} to {of_all[-1]:.0%} of the rows (median {np.median(of_all):.0%}):"
        f" {np.median(steps):.2f} of the looks of a pilot and of people after it in the median ({steps[0]:.2f} to"
        f" {steps[-1]:.2f}), {np.median(whole):.2f} of those of one random sequence."
    )


def _notes(context: Context, played: Rows) -> list[str]:
    proven = [row for row in played if row["prototype"] is not None]
    chance = len(proven) * 0.023
    return [
        (
            f"{context['passes']} draws of rows a cell, and {context['pass_tables']:,} tables a configuration. Of"
            f" {len(proven)} cells {chance:.1f} would have more looks than the prototype beyond two standard errors if"
            " both took the same."
        ),
        (
            "Where a panel is played as a whole, all draws share its rows and differ in their order alone. `kept` is"
            " of so few draws that it shows no more than gross faults: the last table is the evidence."
        ),
    ]


def _judge(page: Report, played: Rows, simulated: Rows) -> None:
    worst = max(simulated, key=lambda row: row["rate"])
    times = worst["times"]
    most = ALLOWED + 4 * (ALLOWED * (1 - ALLOWED) / times) ** 0.5
    words = f"most: {worst['rate']:.2%} of {times:,} ({worst['simulation']})"
    page.check("kept", worst["rate"] <= most, words)
    if page.quick or not played:
        return page.open(["prototype", "three-steps"], "quick size" if page.quick else "no panel in the folder")
    told = [row for row in played if row["prototype"] is not None]
    more = [
        f"{row['cell']}: {row['one pass']:.0f} ± {row['±']:.0f}, prototype {row['prototype']}"
        for row in told
        if row["one pass"] - row["prototype"] > 2 * 2**0.5 * row["±"]
    ]
    ratio = float(np.median([_share(row, "prototype") for row in told]))
    said = f"{len(more)} of {len(told)} cells with more; {ratio:.3f} of its looks in the median"
    page.check("prototype", not more, "; ".join([said, *more]))
    dearer = [
        f"{row['cell']}: {row['one pass']:.0f} ± {row['±']:.0f} against {row[STEPS]:.0f}"
        for row in played
        if row["one pass"] - row[STEPS] > 2 * row["±"]
    ]
    return page.check("three-steps", not dearer, "; ".join([f"more in {len(dearer)} of {len(played)} cells", *dearer]))


def _picture(played: Rows, axes: Any) -> None:
    from scenarios.kit.plots import COLOURS, MARKERS

    places = list(range(len(played)))[::-1]
    for index, method in enumerate(("one pass", STEPS, SEQUENCE)):
        looks = [row[method] / row["rows"] for row in played]
        axes.scatter(looks, places, label=method, s=18, alpha=0.7, color=COLOURS[index], marker=MARKERS[index])
    axes.set_yticks(places, [row["cell"] for row in played], fontsize=7)
    axes.set_xlabel("rows looked at, as a share of all")
    axes.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.4, -0.06), ncols=3)


SCENARIO = Scenario.declared(NAME, parts, run, report)
