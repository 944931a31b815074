"""The paper's headline test over several models at once: replay of authentic errors from any number
of answer logs.

Strata are model and task. Every stratum is held against its own shuffles, all of them are pooled,
the sign is looked at domain by domain; and natural fields, which may break the premise, are put to
the same statistic. Logs are read as they are: nothing is asked.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from scenarios.kit import Context, Done, Part, Report, Row, Rows, Scenario
from scenarios.kit.association import cluster_bootstrap, within_item_permutation
from scenarios.kit.designs import DESIGNS, prepared
from scenarios.kit.rows import column, count, groups, where
from scenarios.premise_on_real_answers.prediction import association
from scenarios.real_model import logs, work
from scenarios.real_model.audits import disagreement
from scenarios.real_model.inference import cells, margins, primary_tests, question

NAME = "cross-model"
ENOUGH = 5
"""Below this many replayed questions a stratum is shown and decides nothing."""
NOTHING = {**dict.fromkeys(("spearman", "low", "high"), math.nan), "p": 1.0, "largest_shuffled": math.nan}
NO_REPLAY = "no item of any log has both a right answer and a wrong one that can be told from it"


def parts(context: Context) -> list[Part]:
    files = logs.paths(context["answers"], context.directory, NAME)
    log = {n: logs.read(path) for n, path in enumerate(files)}
    return [
        {"log": n, "model": logs.model(path), "task": task, "index": item.index}
        for n, path in enumerate(files)
        for task in logs.COUNTS
        for item in logs.covered(log[n], task, seed=logs.seed(path), most=context["most"])
    ]


def run(context: Context, part: Part) -> dict[str, Any]:
    """Replay rows of one item, and its natural field under the ten designs."""
    path = logs.paths(context["answers"], context.directory, NAME)[part["log"]]
    log, drawn = logs.read(path), logs.seed(path)
    item = work.item_of(part["task"], part["index"], seed=drawn)
    found = work.process(item, log, seed=drawn, budgets=(1,), replays=context["seed"])
    stratum = f"{part['task']}, {part['model']}"
    dim = len(found["truth"])
    shape = {design.name: design for design in DESIGNS}
    return {
        "stratum": stratum,
        "task": part["task"],
        "wrong_nodes": sum(not right for _, right in work.nodes_of(found)),
        "recall": work.recall(found),
        "replay": [{"stratum": stratum, **row} for row in found["replay"]],
        "natural": [
            {
                "stratum": stratum,
                "task": part["task"],
                "family": found["family"],
                "item": found["id"],
                "design": row["design"],
                "gamma_1": prepared(row["design"], dim).gamma,
                "relations": len(shape[row["design"]].edges),
                "anchors": len(shape[row["design"]].anchors),
                "disagreement": disagreement(found),
                "unread": sum(candidate.value is None for candidate, _ in work.nodes_of(found)),
                "raw_error": found["baselines"]["raw"]["error"],
                "error": row["error"],
                "exact": row["correct"],
            }
            for row in found["repairs"]
        ],
    }


def _tested(context: Context, rows: Rows, name: str) -> Row:
    """One group of rows: association, interval over questions, and its own shuffles."""
    if not rows:
        return {"group": name, **dict.fromkeys(("items", "questions", "fields", "rows"), 0), **NOTHING}
    gamma, error = margins(rows), np.array(column(rows, "error"))
    questions, seed = [question(row) for row in rows], context["seed"]
    fields = [(row["stratum"], row["item"], row.get("error_number", 0)) for row in rows]
    shuffled = within_item_permutation(
        gamma, error, fields, together=questions, draws=context["permutations"], seed=seed
    )
    statistic, strata = partial(association, gamma, error), column(rows, "stratum")
    interval = cluster_bootstrap(statistic, questions, strata, draws=context["bootstrap"], seed=seed)
    return {
        "group": name,
        "items": len(groups(rows, "stratum item")),
        "questions": len(set(questions)),
        "fields": len(set(fields)),
        "rows": len(rows),
        "spearman": shuffled.observed,
        "low": interval.low,
        "high": interval.high,
        "p": shuffled.p,
        "largest_shuffled": shuffled.largest_null,
    }


def _grouped(context: Context, rows: Rows) -> list[Row]:
    """By stratum, by domain over all models, and pooled."""
    found = {name: group for (name,), group in groups(rows, "stratum").items()}
    found |= {f"{name}, all models": group for (name,), group in groups(rows, "task").items()}
    return [_tested(context, group, name) for name, group in {**found, "pooled": list(rows)}.items()]


def report(context: Context, done: Sequence[Done]) -> Report:
    found = [d.value for d in done]
    rows = [row for value in found for row in value["replay"]]
    recalled = [row for value in found if value["recall"] for row in value["natural"]]
    natural = [row for value in found if value["recall"] and value["wrong_nodes"] for row in value["natural"]]
    replayed, open_fields = _grouped(context, rows), _grouped(context, natural)
    known_fields = _grouped(context, recalled)
    limits = {"permutations": context["permutations"], "seed": context["seed"]}
    tests = primary_tests(rows, **limits) if rows else None
    regressions = [
        primary_tests(group, **limits, name=f"{key}-tests", caption=f"The same tests on natural fields: {words}.").table
        for key, words, group in (
            ("opportunity", "at least one right and one wrong answer", natural),
            ("recall", "at least one right answer; the raw error of the first answer is among the controls", recalled),
        )
        if group
    ]
    strata = [_stratum(found, rows, name) for name in dict.fromkeys(value["stratum"] for value in found)]
    models = len({d.part["model"] for d in done})
    page = Report()
    page.answer = _answer(replayed, open_fields, models=models, errors=len(rows) // 10)
    if context.quick or tests is None:
        page.open([e.key for e in SCENARIO.expected], "quick size" if context.quick else NO_REPLAY)
    else:
        _judge(page, replayed, open_fields, tests)
    page.table("replay-association", replayed)
    page.table("strata", strata)
    page.tables.extend([] if tests is None else [tests.table])
    page.table("natural-association", open_fields)
    page.table("recall-association", known_fields)
    page.tables.extend(regressions)
    page.table("replay", cells(rows))
    groups = [*((row["group"], row) for row in replayed), *((f"natural: {row['group']}", row) for row in open_fields)]
    shown = {f"{name} ({row['items']})": row["spearman"] for name, row in groups if not math.isnan(row["spearman"])}
    if rows:
        page.bars("association", shown, y="rank correlation ρ")
    page.notes.append(
        "Natural fields, where more than one answer may be wrong: "
        + ", ".join(f"{row['group']} {_signed(row['spearman'])} ({row['items']} items)" for row in open_fields)
        + ". The theorem speaks of replayed errors only."
    )
    page.notes.append(
        f"Strata with fewer than {ENOUGH} replayed questions decide nothing by themselves: "
        f"{', '.join(row['stratum'] for row in strata if row['replayed_questions'] < ENOUGH) or 'none'}."
    )
    return page


def _stratum(found: Rows, rows: Rows, name: str) -> Row:
    own, replayed = where(found, stratum=name), where(rows, stratum=name)
    return {
        "stratum": name,
        "items": len(own),
        "with_a_right_answer": count(own, "recall"),
        "with_a_wrong_answer": count(own, "wrong_nodes"),
        "exactly_one_wrong": len(where(own, wrong_nodes=1)),
        "replayed_items": len(groups(replayed, "item")),
        "replayed_questions": len({question(row) for row in replayed}),
        "replayed_errors": len(replayed) // 10,
    }


def _signed(value: float) -> str:
    return "not defined (all errors are equal)" if math.isnan(value) else f"{value:+.3f}"


def _answer(
    replayed: Sequence[Mapping[str, Any]], natural: Sequence[Mapping[str, Any]], *, models: int, errors: int
) -> str:
    """Yes or no first, for replayed errors and for natural fields; then the figures."""
    pooled, open_ = replayed[-1], natural[-1]
    if not errors:
        return f"Nothing can be said: {NO_REPLAY}."
    word = "Yes" if pooled["low"] > 0 and pooled["p"] < 0.05 else "No"
    told = (
        f"over {models} models and {errors} errors larger margins go with smaller repair errors (rank correlation"
        f" {pooled['spearman']:.3f}, {pooled['low']:.3f} to {pooled['high']:.3f}, p = {pooled['p']:.4f};"
        f" {_signs(replayed)})"
    )
    if not open_["items"]:
        return f"{word} for replayed errors, one wrong answer in four: {told}."
    rest = "and on natural fields" if open_["low"] > 0 else "and not shown on natural fields"
    return (
        f"{word} for replayed errors, one wrong answer in four, {rest}, where more than one may be wrong: {told}, "
        f"while natural fields have {_signed(open_['spearman'])} ({open_['low']:.3f} to {open_['high']:.3f})."
    )


def _signs(groups: Sequence[Mapping[str, Any]]) -> str:
    own = [row for row in groups if row["group"].endswith(", all models")]
    return "by domain: " + ", ".join(f"{row['group'].split(',')[0]} {row['spearman']:+.3f}" for row in own)


def _judge(page: Report, replayed: Rows, natural: Rows, tests: Any) -> None:
    pooled = replayed[-1]
    domains = [row for row in replayed if row["group"].endswith(", all models")]
    strata = [row for row in replayed[:-1] if row not in domains and row["questions"] >= ENOUGH]
    weak = [row["group"] for row in strata if row["p"] >= 0.05]
    turned = [row["group"] for row in domains if row["spearman"] <= 0]
    own = [row for row in natural[:-1] if row["questions"] >= ENOUGH and not row["group"].endswith(", all models")]
    against = [f"{row['group']} {row['spearman']:.3f}" for row in own if row["spearman"] <= 0]
    met = pooled["p"] < 0.05 and pooled["low"] > 0
    page.check("pooled", met, f"ρ = {pooled['spearman']:.3f}, p = {pooled['p']:.5f}")
    told = "; ".join(weak) or f"p < 0.05 in all {len(strata)} strata with enough questions"
    page.check("shuffles", not weak, told, unless=not strata and f"no stratum has {ENOUGH} replayed questions")
    page.check("signs", not turned, ", ".join(turned) or _signs(replayed))
    told = "; ".join(against) or f"positive in all {len(own)} strata with enough questions"
    empty = not own and f"no stratum has {ENOUGH} questions with a right and a wrong answer"
    page.check("natural", not against, told, unless=empty)
    fitted = tests.prediction
    if fitted is None:
        page.check("prediction", False, "", unless="too few replayed items for five folds")
    else:
        page.check("prediction", fitted.gain > 0 and fitted.coefficient > 0, f"AUC gain {fitted.gain:.3f}")


SCENARIO = Scenario.declared("cross-model", parts, run, report, serial=True)
