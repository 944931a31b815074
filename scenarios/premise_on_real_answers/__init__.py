"""Beyond the paper: the premise "at most k answers are wrong" on recorded answers of real models
with gold.

Cells by data set, number of nodes and k (cells.py); the paper's statistics on the
same answers (prediction.py); judges, who were asked in several ways (judges.py). The data are not
the project's own: they are read from a folder that the caller names, and only counts and figures
are published.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from scenarios.data_set_promises.panels import folder_of, gold_keys, nodes_of_set, panel_names, read_codes, read_panel
from scenarios.kit import Context, Done, Part, Report, Rows, Scenario
from scenarios.kit.association import share
from scenarios.kit.rows import column, curve, groups, rows_of, totals, values, where
from scenarios.premise_on_real_answers import cells, judges, prediction

NAME = "premise-on-real-answers"
JUDGED = "llmbar"
ALL = "all panels"
GAIN = 0.001
"""An AUC gain below this is none."""
TALKED = (5, 1)
"""Nodes and k of the cell that the opening sentence and two conditions speak of."""


def _folder(context: Context) -> Path:
    return folder_of(context["answers"], NAME)


def parts(context: Context) -> list[Part]:
    names = panel_names(_folder(context))
    cells = [{"panel": name, "nodes": nodes, "k": k} for name in names for nodes, k in context["cells"]]
    return [*cells, *({"panel": name, "what": "prediction"} for name in (*names, ALL)), {"what": "judges"}]


def run(context: Context, part: Part) -> Any:
    if part.get("what") == "judges":
        return _judges(context)
    names = panel_names(_folder(context)) if part["panel"] == ALL else [part["panel"]]
    read = [read_panel(_folder(context), name) for name in names]
    panels = [(panel.answers[: context["most"]], panel.gold[: context["most"]]) for panel in read]
    if part.get("what") == "prediction":
        limits = {name: context[name] for name in ("permutations", "bootstrap", "seed")}
        return [{"panel": part["panel"], **row} for row in prediction.predicted(panels, **limits)]
    return {**part, **cells.cell(*panels[0], nodes=part["nodes"], k=part["k"])}


def _judges(context: Context) -> dict[str, Any]:
    folder = _folder(context)
    nodes = [node for node in nodes_of_set(folder, JUDGED) if judges.Ask.of(node) is not None]
    if not nodes:
        return {"bias": [], "together": [], "units": [], "pairs": []}
    answers, gold = read_codes(folder, JUDGED, nodes)
    said = gold_keys(folder, JUDGED)
    first = np.array([value == min(said) for value in said])
    bench = judges.JudgeBench.of(nodes, answers, gold, first)
    draws, seed = context["draws"], context["seed"]
    return {
        "bias": judges.bias(bench, draws=draws, seed=seed),
        "together": judges.together(bench, draws=draws, seed=seed),
        "units": judges.units(bench, k=1, draws=draws, seed=seed),
        "pairs": judges.together_by_unit(bench, draws=draws, seed=seed),
    }


def report(context: Context, done: Sequence[Done]) -> Report:
    counts = values(done, "k")
    rows = [_cell_row(row) for row in counts]
    predicted = rows_of(done, what="prediction")
    (judged,) = values(done, what="judges")
    talked = where(rows, nodes=TALKED[0], k=TALKED[1])
    page = context.page()
    page.answer = _answer(talked)
    tried = [*counts, *judged["units"]]
    patterns, differ = totals(tried, "patterns disagree_with_counting").values()
    page.none("counting", differ, f"of {patterns} patterns differ")
    page.none(
        "theorem",
        totals(counts, "x wrong_though_premise_true")["wrong_though_premise_true"],
        "values wrong though the premise was true",
    )
    if context.quick:
        page.open(("premise", "wrong", "one-wrong", "natural", "pooled", "position", "together"), "quick size")
    else:
        _judge_premise(page, rows, talked)
        _judge_prediction(page, predicted)
        _judge_judges(page, judged)
    page.table("cells", rows, shown=None)
    page.table("prediction", predicted)
    page.table("judges", judged["bias"])
    page.table("together", judged["together"])
    page.table("together-by-unit", judged["pairs"])
    page.table("units", judged["units"])
    page.table("counts", counts)
    shown = [{**row, **{name: 100 * row[name] for name in ("premise_false", "wrong_if_certified")}} for row in rows]
    page.points(
        "premise-and-error",
        {name: curve(own, "premise_false", "wrong_if_certified") for (name,), own in groups(shown, "panel").items()},
        x="items whose premise 'at most k wrong' is false, percent",
        y="wrong among certified values, percent",
        caption="One point per data set and setting (nodes, k):"
        f" {', '.join(f'({n}, {k})' for n, k in context['cells'])}. The theory promises that nothing certified is wrong"
        " where the premise is true.",
    )
    page.notes.extend(_notes(rows, predicted, judged))
    return page


def _cell_row(row: Mapping[str, Any]) -> dict[str, Any]:
    false = share(row["premise_false"], row["margin_certified"])
    wrong = share(row["value_wrong"], row["value_certified"])
    return {
        "panel": row["panel"],
        "nodes": row["nodes"],
        "k": row["k"],
        "items": row["items"],
        "margin_certified": row["margin_certified"],
        "premise_false": false.value,
        "premise_low": false.low,
        "premise_high": false.high,
        "certified": row["value_certified"] / row["items"],
        "wrong_if_certified": wrong.value,
        "wrong_low": wrong.low,
        "wrong_high": wrong.high,
        "noticed": row["premise_false_and_noticed"] / row["premise_false"] if row["premise_false"] else None,
    }


def _answer(talked: Sequence[Mapping[str, Any]]) -> str:
    nodes, k = TALKED
    false = [row["premise_false"] for row in talked]
    wrong = [row["wrong_if_certified"] for row in talked]
    return (
        f"A certified margin says what follows from 'at most k answers are wrong', not that it is so: with {nodes}"
        f" answers of real models and k = {k} the premise is false for {min(false):.0%} to {max(false):.0%} of items,"
        f" by data set, and a value certified under it is wrong in {min(wrong):.1%} to {max(wrong):.0%} of cases; so"
        " measure both on a pilot before relying on either."
    )


def _judge_premise(page: Report, rows: Rows, talked: Rows) -> None:
    least = min(talked, key=lambda row: row["premise_false"])
    page.check("premise", least["premise_false"] > 0.05, f"least: {least['premise_false']:.1%} ({least['panel']})")
    safe = {cell: max(column(own, "wrong_low")) for cell, own in groups(rows, "nodes k").items()}
    (nodes, k), best = min(safe.items(), key=lambda entry: entry[1])
    told = f"best: k = {k} of {nodes} nodes, {best:.1%} at the lower end of the worst data set's interval"
    page.check("wrong", best > 0.01, told)


def _judge_prediction(page: Report, predicted: Rows) -> None:
    own = [row for row in predicted if row["panel"] != ALL]
    one, more = where(own, subset="one wrong"), where(own, subset="more wrong")
    (pooled,) = where(predicted, panel=ALL, subset="any wrong")
    weak = [row["panel"] for row in one if row["p"] >= 0.05]
    against = [f"{row['panel']} {row['spearman']:.3f}" for row in more if row["low"] <= 0]
    told = f"in all {len(one)} panels, largest p {max(column(one, 'p')):.4f}"
    page.check("one-wrong", not weak, f"not in: {', '.join(weak)}" if weak else told)
    told = "; ".join(against) or ", ".join(f"{row['panel']} {row['spearman']:.3f}" for row in more)
    page.check("natural", not against, told)
    page.check(
        "pooled",
        pooled["low"] > 0 and pooled["p"] < 0.05 and pooled["auc_gain"] >= GAIN,
        f"ρ = {pooled['spearman']:.3f} ({pooled['low']:.3f} to {pooled['high']:.3f}), p = {pooled['p']:.4f}, AUC"
        f" gain {pooled['auc_gain']:.4f}",
    )


def _judge_judges(page: Report, judged: Mapping[str, Any]) -> None:
    bias, pairs = judged["bias"], {row["kind"]: row for row in judged["together"]}
    if not bias:
        return page.open(("position", "together"), f"no set {JUDGED!r} with judges, prompts and orders")
    biased = [row for row in bias if row["low"] > 0.5 or row["high"] < 0.5]
    worst = max(bias, key=lambda row: abs(row["first_shown_wins"] - 0.5))
    most = f"{worst['judge']} with {worst['prompt']}, {worst['first_shown_wins']:.1%}"
    page.check("position", len(biased) > len(bias) / 2, f"{len(biased)} of {len(bias)}; most: {most}")
    same, other = pairs["same judge, other prompt"], pairs["other judge, same prompt"]
    page.check(
        "together",
        same["low"] > other["high"],
        f"{same['together_over_independent']:.2f} against {other['together_over_independent']:.2f} times as often"
        " as if independent",
    )
    return None


def _notes(
    rows: Sequence[Mapping[str, Any]], predicted: Sequence[Mapping[str, Any]], judged: Mapping[str, Any]
) -> list[str]:
    wide = max(rows, key=lambda row: row["wrong_if_certified"] if row["certified"] else 0)
    more = [row for row in predicted if row["subset"] == "more wrong" and row["panel"] != ALL]
    notes = [
        (
            f"Contradiction is a useful alarm, not a certain one: in {wide['panel']} with {wide['nodes']} nodes and k ="
            f" {wide['k']}, repair notices {wide['noticed'] or 0:.0%} of the items whose premise is false, and"
            f" {wide['wrong_if_certified']:.1%} of what it certifies is wrong. A value that is wrong there is one that"
            " enough models share."
        )
    ]
    if more:
        worse = [f"{row['panel']} {row['worse_than_no_repair']:.0%}" for row in more]
        notes.append(
            "Where more than one of four answers is wrong the theorem says nothing, and repair with k = 1 can move the"
            " field away from the truth; share of rows with positive margin where it does: "
            + ", ".join(worse)
            + ". The margin still orders the errors there, and recovers nothing: the mean error falls from"
            f" {max(row['error_at_zero_margin'] for row in more):.2f} at most to"
            f" {min(row['error_at_positive_margin'] for row in more):.2f} at least, where 1 is no repair at all."
        )
    whole = {row["subset"]: row for row in predicted if row["panel"] == ALL}
    if "any wrong" in whole and whole["any wrong"]["auc_gain"] is not None:
        told = ", ".join(f"{name} {row['auc_gain']:.4f}" for name, row in whole.items() if row["auc_gain"] is not None)
        notes.append(
            "Beyond numbers of relations and anchors, disagreement and data set, the margin adds to the held-out"
            f" prediction of exact recovery over all panels (AUC): {told}. Where more than one answer is wrong nothing"
            " is recovered, so that there is nothing to predict; and its sign alone orders errors about as well as its"
            " size (`spearman_of_its_sign`)."
        )
    if judged["pairs"]:
        most = max(judged["pairs"], key=lambda row: row["together_over_independent"])
        notes.append(
            f"Of all pairs of judges and of prompts, {most['first']} and {most['second']} are wrong together most often"
            f" beyond chance: {most['together_over_independent']:.2f} times ({most['low']:.2f} to {most['high']:.2f})."
        )
    if judged["units"]:
        listed = [f"{row['field']}, by {row['unit']}: {row['premise_false']:.0%}" for row in judged["units"]]
        notes.append(
            "How often 'at most one is wrong' is false for judges depends on what one is: " + "; ".join(listed) + "."
        )
    return [*notes, "Readings are the folder's own (`value`); texts and values are not published."]


SCENARIO = Scenario.declared("premise-on-real-answers", parts, run, report)
