"""The paper's open question: do natural errors concentrate where designs are blind?

Fields of four answers to one item, from answer logs (transformed queries, canonical coordinates)
and, where a folder of recorded answers is given, from the first four nodes of its panels. See
directions.py for what is measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rrf_design.repairing import robust_scale
from scenarios.data_set_promises.panels import folder_of, panel_kind, panel_names, read_panel
from scenarios.error_directions.directions import chance, gauge, pattern_error, shares, worst_directions
from scenarios.kit import Context, Done, Part, Report, Scenario
from scenarios.kit.designs import DESIGNS, NODES
from scenarios.kit.rows import column, where
from scenarios.premise_on_real_answers.cells import GOLD, SILENT, patterns, ratio_interval
from scenarios.real_model import answers, fields, logs

NAME = "error-directions"
ENOUGH = 20
"""Below this many fields with an error a stratum is reported and decides nothing."""
OPTIONS = {"choice": 10, "verdict": 2}
"""Values that an answer of a panel's kind can take; others can take any."""


def parts(context: Context) -> list[Part]:
    files = logs.paths(context["logs"], context.directory, NAME)
    tasks: list[Part] = [
        {"log": n, "model": logs.model(path), "task": t} for n, path in enumerate(files) for t in logs.COUNTS
    ]
    if context["answers"] is None:
        return tasks
    return [*tasks, *({"panel": name} for name in panel_names(folder_of(context["answers"], NAME)))]


def run(context: Context, part: Part) -> dict[str, Any]:
    """Shares of every field with an error: [cluster, gauge, [along, alone] per design]."""
    return _panel(context, part["panel"]) if "panel" in part else _log(context, part)


def _measured(error: Any) -> list[Any]:
    return [shares(error, gauge())[0], [shares(error, worst_directions(design.name)) for design in DESIGNS]]


def _panel(context: Context, name: str) -> dict[str, Any]:
    folder = folder_of(context["answers"], NAME)
    panel = read_panel(folder, name)
    answers, gold = panel.answers[: context["most"], :NODES], panel.gold[: context["most"]]
    found = [pattern for pattern in patterns(answers, gold) if SILENT not in pattern]
    known: dict[tuple[int, ...], list[Any]] = {}
    rows = []
    for number, pattern in enumerate(found):
        if any(code > GOLD for code in pattern):
            if pattern not in known:
                known[pattern] = _measured(pattern_error(pattern))
            rows.append([str(number), *known[pattern]])
    rates = (np.array(found) > GOLD).mean(axis=0)
    expected = chance(rates, OPTIONS.get(panel_kind(folder, name)), draws=context["draws"], seed=context["seed"])
    return {"fields": len(found), "rows": rows, "chance": expected}


def _log(context: Context, part: Part) -> dict[str, Any]:
    path = logs.paths(context["logs"], context.directory, NAME)[part["log"]]
    log, drawn = logs.read(path), logs.seed(path)
    rows, whole = [], 0
    for item in logs.covered(log, part["task"], seed=drawn, most=context["most"]):
        said = [c.value for c in fields.read(item, log, seed=drawn) if c.role == "node"]
        if any(value is None for value in said):
            continue
        whole += 1
        truth = np.array(fields.truth(item))
        table = np.array(said, dtype=np.float64)
        scale = robust_scale(np.vstack([truth, table])) if len(truth) > 1 else np.ones(1)
        error = (table - truth) / scale
        if np.abs(error).max() > 1e-9:
            # Items of one family of programs share their prompts, so that they are one cluster.
            cluster = answers.family(item) if part["task"] == "code" else item.id
            rows.append([cluster, *_measured(error)])
    return {"fields": whole, "rows": rows, "chance": None}


def report(context: Context, done: Sequence[Done]) -> Report:
    strata, directions = [], []
    for d in done:
        name, rows = d.part.get("panel") or f"{d.part['task']}, {d.part['model']}", d.value["rows"]
        clusters = [row[0] for row in rows]
        value, low, high = _mean(context, [row[1] for row in rows], clusters) if rows else (None, None, None)
        strata.append(
            {
                "stratum": name,
                "fields": d.value["fields"],
                "with_error": len(rows),
                "clusters": len(set(clusters)),
                "gauge": value,
                "low": low,
                "high": high,
                "uncorrelated": 0.25,
                "by_chance": d.value["chance"],
            }
        )
        for place, design in enumerate(DESIGNS if rows else ()):
            along = [row[2][place][0] for row in rows]
            alone = [row[2][place][1] for row in rows]
            # Equal shares differ by rounding alone: a page shows 0 for them, on every machine.
            more = _mean(context, [round(a - b, 12) for a, b in zip(along, alone, strict=True)], clusters)
            directions.append(
                {
                    "stratum": name,
                    "design": design.name,
                    "gamma_1": design.published,
                    "witness": sum(along) / len(along),
                    "uncorrelated": sum(alone) / len(alone),
                    **dict(zip(("excess", "low", "high"), more, strict=True)),
                }
            )
    judged = [row for row in strata if row["clusters"] >= ENOUGH]
    above = [row for row in judged if row["low"] > max(row["uncorrelated"], row["by_chance"] or 0.0)]
    page = context.page()
    page.answer = "No stratum has enough fields with an error to say anything."
    if judged:
        shown = column(judged, "gauge")
        word = "Yes" if len(above) == len(judged) else "In part"
        page.answer = (
            f"{word}, answers err together: {min(shown):.0%} to {max(shown):.0%} of the error of four answers (by"
            " energy) is an error that all four share, which no comparison among them can see, against 25 % if their"
            f" errors were uncorrelated; in {len(above)} of {len(judged)} data sets with enough errors the interval"
            " lies above that, and above chance agreement where the options are few."
        )
    names, open_ = column(judged, "stratum"), "quick size" if context.quick else "no stratum has enough fields"
    own = [row for row in where(directions, design="typed_complete") if row["stratum"] in names]
    for key, good, of in (
        ("gauge", sum(row["low"] > row["uncorrelated"] for row in judged), len(judged)),
        ("chance", len(above), len(judged)),
        ("witness", sum(row["low"] > 0 for row in own), len(own)),
    ):
        page.check(key, good == of, f"in {good} of {of} strata", unless=(context.quick or not judged) and open_)
    page.table(
        "gauge",
        strata,
        "Mean share of the error's energy in the gauge of a connected field of four answers, 95 % interval"
        " from resampling items (programs: families). `uncorrelated`: errors of different nodes without a"
        " common part; `by_chance`: nodes that are wrong independently and pick any wrong option alike.",
    )
    page.table("witness", directions, shown=None)
    page.bars(
        "gauge",
        {f"{row['stratum']} ({row['with_error']})": 100 * row["gauge"] for row in strata if row["gauge"] is not None},
        y="percent of the error's energy in the gauge",
        caption="In brackets the fields with an error. Uncorrelated errors have 25 percent there, an error that all"
        " four answers share has 100.",
    )
    few = [row["stratum"] for row in strata if row["clusters"] < ENOUGH]
    page.notes.append(
        f"Strata with fewer than {ENOUGH} clusters are shown and decide nothing: {', '.join(few) or 'none'}."
    )
    return page


def _mean(context: Context, values: Sequence[float], clusters: Sequence[str]) -> tuple[float, float, float]:
    names, place = np.unique(clusters, return_inverse=True)
    sums = np.asarray(np.bincount(place, values, minlength=len(names)), dtype=np.float64)
    counts = np.asarray(np.bincount(place, minlength=len(names)), dtype=np.float64)
    return ratio_interval(sums, counts, draws=context["draws"], seed=context["seed"])


SCENARIO = Scenario.declared("error-directions", parts, run, report)
