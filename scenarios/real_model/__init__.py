"""The paper's real-model protocol on any model: natural fields, audits, and authentic errors
replayed under ten designs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rrf_design.models import Request
from scenarios.kit import Context, Done, Part, Report, Rows, Scenario, Table
from scenarios.kit.designs import DESIGNS, prepared
from scenarios.kit.rows import column, curve, groups, missing, values
from scenarios.real_model import audits, catalogue, fields, inference, natural, recomputed, work

PAPER_ITEMS = {"mathematics": 128, "code": 64}
PAPER_MODELS = ("Qwen2.5-0.5B-Instruct", "Phi-3-mini-4k-instruct")


def parts(context: Context) -> list[Part]:
    counts = {task: context[task] for task in ("ours", "code", "mathematics", "printed")}
    return [{"task": task, "index": index} for task, count in counts.items() for index in range(count)]


def run(context: Context, part: Part) -> dict[str, Any]:
    """Ask what is missing, then do everything with one item that needs no other item."""
    item = work.item_of(part["task"], part["index"], seed=context["seed"])
    source = work.asker(context["model"], context["answers"], context.directory)
    work.ask(item, source, seed=context["seed"])
    found = work.process(item, source.log, seed=context["seed"])
    box = work.sandbox() if part["task"] == "code" else None
    return {**found, "reread": recomputed.reread(item, source.log, seed=context["seed"], box=box)}


def report(context: Context, done: Sequence[Done]) -> Report:
    documents = values(done)
    source = work.asker(context["model"], context["answers"], context.directory)
    model = str(source.log.identity.get("model", context["model"]))
    requests: dict[str, list[Request]] = {}
    items = {d["id"]: work.item_of(d["task"], d["index"], seed=context["seed"]) for d in documents}
    for document in documents:
        item = items[document["id"]]
        for role, _, request in fields.requests(item, source.log, seed=context["seed"]):
            requests.setdefault(f"{document['task']}/{role}", []).append(request)
    used = source.log.subset(request for group in requests.values() for request in group)
    again = work.asked_again(used, context["again"], context.directory)
    rows = [{"stratum": f"{row['task']}, {model}", **row} for d in documents for row in d["replay"]]
    page, tests = context.page(), None
    if rows:
        tests = inference.primary_tests(rows, permutations=context["permutations"], seed=context["seed"])
        cells = inference.cells(rows)
        page.tables.append(inference.strata(rows, draws=context["bootstrap"], seed=context["seed"]))
        page.table("replay", cells)
        page.tables.append(tests.table)
        series = {stratum: curve(group, "gamma_1", "error") for (stratum,), group in groups(cells, "stratum").items()}
        page.points("replay-by-design", series, x="γ₁ of the design", y="mean normalised error after repair")
    page.tables += [
        natural.summary(documents, model),
        natural.families(documents),
        natural.variants(documents),
        natural.budgets(used, requests, again),
        natural.repairs(documents),
        audits.consistency(documents),
        audits.shared_examples(documents),
        audits.hidden_only(documents),
        audits.taxonomy(documents),
        audits.parsers(documents),
        recomputed.parsers(documents),
        audits.weights(documents),
        recomputed.weightings(documents, items, seed=context["seed"]),
        audits.tolerances(),
        audits.repairs_by_item(documents),
        audits.choices_by_item(documents),
        _items(documents),
        catalogue.expressions(items.values()),
    ]
    if rows:
        page.table("replay-rows", rows, shown=10)
    page.answer = _answer(documents, rows, model)
    _judge(page, documents, used, model, rows, tests)
    page.notes.extend(_notes(documents, rows, model, used, again))
    page.files |= {work.PUBLISHED: used.dumps(), **catalogue.programs_file(items.values())}
    page.files |= {work.AGAIN: again.dumps()} if len(again) else {}
    return page


def _judge(page: Report, documents: Rows, log: Any, model: str, rows: Rows, tests: Any) -> None:
    asked, tasks = sum(len(d["candidates"]) for d in documents), sorted(set(column(documents, "task")))
    known = {design: [prepared(design.name, dim).gamma for dim in (1, 8)] for design in DESIGNS}
    off = max(abs(gamma - design.published) for design, margins in known.items() for gamma in margins)
    named = any(name.lower() in model.lower() for name in PAPER_MODELS)
    page.check("logs", asked == 9 * len(documents), f"{len(log)} distinct answers behind {asked} candidates")
    other = not named and f"asked: {model}; run again with --model for the paper's"
    page.check("checkpoints", True, model, unless=other)
    # Items that were asked are no evidence from their domain when none of them can be replayed.
    told, empty = ", ".join(tasks), _empty(documents, rows)
    none = f"asked: {told}; no replay from {' and '.join(empty)} ({'; '.join(empty.values())})"
    page.check("domains", set(PAPER_ITEMS) <= set(tasks), told, unless=bool(empty) and none)
    finite = all(math.isfinite(gamma) for margins in known.values() for gamma in margins)
    page.check("margins", finite and off <= 0.00051, f"largest difference to print {off:.2g}")
    if tests is None:
        reason = "the log has no item with both a right and a wrong answer"
        return page.open(("repaired", "association", "coefficient", "permutation"), reason)
    positive, fitted = [row for row in rows if row["gamma_1"] > 0], tests.prediction
    page.none("repaired", missing(positive, "exact"), f"of {len(positive)} positive-margin replays missed")
    seen = tests.permutation.observed
    page.check("association", seen > 0, f"pooled Spearman {seen:.3f}")
    if fitted is None:
        page.open(["coefficient"], "too few replayed items for five folds")
    else:
        value = fitted.coefficient
        page.check("coefficient", value > 0, f"{value:.3f}, AUC gain {fitted.gain:.3f}")
    return page.check("permutation", tests.permutation.p < 0.05, f"p = {tests.permutation.p:.5f}")


def _empty(documents: Sequence[Any], rows: Sequence[Any]) -> dict[str, str]:
    """The paper's domains from which nothing can be replayed, and why."""
    found = {}
    for task in PAPER_ITEMS:
        own = [d for d in documents if d["task"] == task]
        if own and not any(row["task"] == task for row in rows):
            right = sum(any(mark["correct"] for mark in d["marks"]) for d in own)
            found[task] = f"{right} of {len(own)} {task} items have a right answer"
            if right:
                found[task] += ", and none of these a wrong one that can be told from it"
    return found


def _answer(documents: Sequence[Any], rows: Sequence[Any], model: str) -> str:
    if not rows:
        return f"Nothing can be said: no item of {model} has both a right and a wrong answer."
    repaired = {sign: [row["exact"] for row in rows if (row["gamma_1"] > 0) == sign] for sign in (True, False)}
    share = {sign: sum(own) / max(1, len(own)) for sign, own in repaired.items()}
    word = "Yes" if share[True] == 1 > share[False] else "Mostly" if share[True] > share[False] else "No"
    counts = {task: sum(row["task"] == task for row in rows) // 10 for task in dict.fromkeys(r["task"] for r in rows)}
    listed = ", ".join(f"{task} {count}" for task, count in counts.items())
    empty = "".join(f" The {task} stratum is empty: {why}." for task, why in _empty(documents, rows).items())
    told = [f"{sum(repaired[sign])} of {len(repaired[sign])}" for sign in (True, False)]
    return (
        f"{word}: designs with positive margin repair {told[0]} replays of an error of {model}, designs with margin"
        f" zero {told[1]} (errors: {listed})." + empty
    )


def _items(documents: Sequence[Any]) -> Table:
    """The catalogue with every parsed answer, so that each number can be traced to its text."""
    rows = [
        {
            "item": d["id"],
            "family": d["family"],
            "truth": " ".join(f"{v:g}" for v in d["truth"]),
            "role": c["role"],
            "number": c["number"],
            "status": c["status"],
            "strict": c["strict"],
            "value": "" if c["value"] is None else " ".join(f"{v:.12g}" for v in c["value"]),
            "right": m["correct"],
            "error": m["error"],
        }
        for d in documents
        for c, m in zip(d["candidates"], d["marks"], strict=True)
    ]
    return Table.of("candidates", rows, shown=9)


def _notes(documents: Sequence[Any], rows: Sequence[Any], model: str, log: Any, again: Any) -> list[str]:
    replayed = {
        task: len({r["item"] for r in rows if r["task"] == task})
        for task in dict.fromkeys(d["task"] for d in documents)
    }
    listed = ", ".join(f"{task} {count}" for task, count in replayed.items())
    return [
        (
            f"Model: {model}{_weights(log.identity)}; {len(log)} distinct answers. Items with a right and a wrong"
            f" answer, which can be replayed: {listed}."
        ),
        *_part_of_protocol(documents),
        _how_asked(log, again),
        (
            "Items called ours (sums and products of small numbers in four wordings) are not in the paper; they are"
            " there because a small model answers too few of the paper's. Items called printed are the 36 expressions"
            " that the paper prints, with their scales and shifts as printed; the others are drawn like them."
        ),
        (
            "The wording of the paper's prompts and its code specifications are not published; ours follow its"
            " description. Its catalogue, not its text, decides the sizes of the operands (the text says five-digit"
            " sums, the catalogue has three-digit ones)."
        ),
    ]


def _weights(identity: Any) -> str:
    """Whatever the log knows of the weights and of what ran them; a server tells neither."""
    known = [f"SHA-256 {identity['sha256']}"] if "sha256" in identity else []
    known += [str(identity[name]) for name in ("weights", "runtime", "dtype") if identity.get(name)]
    return f" ({', '.join(known)})" if known else ""


def _part_of_protocol(documents: Sequence[Any]) -> list[str]:
    """Said where fewer items were asked than the paper has."""
    counts = {task: sum(d["task"] == task for d in documents) for task in PAPER_ITEMS}
    if counts == PAPER_ITEMS:
        return []
    listed = ", ".join(f"{counts[task]} of {whole} {task} items" for task, whole in PAPER_ITEMS.items())
    return [f"This is a part of the protocol: {listed}, the first of each list; families with few items say little."]


def _how_asked(log: Any, again: Any) -> str:
    """How the answers came about, from the times in the logs."""
    live, rest = _times(log), len(log) - len(_times(log))
    told = [f"{len(live)} answers were asked by this command from {live[0]} to {live[-1]}."] if live else []
    if rest:
        told.append(
            f"{rest} answers were recorded beforehand, by a program that asks the same requests through the same"
            " adapter."
        )
    if len(again):
        when = _times(again)
        told.append(
            f"{len(again)} of the questions were asked once more by this command"
            + (f", from {when[0]} to {when[-1]}" if when else "")
            + f": {again.same_words(log)} answers came back word for word."
        )
    return " ".join(told)


def _times(log: Any) -> list[str]:
    return sorted(str(entry["at"]) for entry in log.entries if entry.get("at"))


SCENARIO = Scenario.declared("real-model", parts, run, report, serial=True)
