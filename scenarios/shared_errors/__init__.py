"""Beyond the paper: whether transformations and free checks break the errors that wordings share.

The embedded model is asked about generated documents with known truth (documents.py), every
question in the words of the catalogue; the published log of the coder model and recorded panels of
judges are read beside it (panels.py). Answers are judged by the product itself: `repair` says what
is handed over, `measure` which errors go together.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from rrf_design import dataset, measure
from rrf_design.errors import InputError
from rrf_design.models import Request, get
from scenarios.kit import Context, Done, Part, Report, Row, Rows, Scenario
from scenarios.kit.report import compressed
from scenarios.kit.rows import where
from scenarios.shared_errors.documents import FIELDS, TABLES, WORDINGS, AskedTable
from scenarios.shared_errors.panels import coder_pairs, handed_over, judge_designs, judge_pairs, pair_rows

NAME = "shared-errors"
AT_ONCE = 10
"""Rows of a part."""
PARAPHRASES, MEASURED = "three paraphrases", "as measured"
RECORDED = "asked.jsonl.gz"


def parts(context: Context) -> list[Part]:
    own = [
        {"table": name, "first": first, "last": min(first + AT_ONCE, count)}
        for name, count in context["rows"].items()
        for first in range(0, count, AT_ONCE)
    ]
    panels = [] if context["answers"] is None else [{"panel": "llmbar"}]
    return [*own, *panels, {"log": "arithmetic"}]


def run(context: Context, part: Part) -> dict[str, Any]:
    """The answers to some rows of a table; counts alone of answers that are not the project's."""
    if "panel" in part:
        folder = Path(str(context["answers"]))
        return {"pairs": judge_pairs(folder), "designs": judge_designs(folder)}
    if "log" in part:
        return {"pairs": coder_pairs(context["coder"], context.directory)}
    table = TABLES[part["table"]]
    rows = table.rows(part["last"], seed=context["seed"])[part["first"] :]
    if context["log"] is not None:
        recorded, identity = _recorded(str(context["log"]))
        found = [recorded[table.name, row["id"]] for row in rows if (table.name, row["id"]) in recorded]
        if len(found) < len(rows):
            raise InputError(f"{NAME}: the log {Path(str(context['log'])).name} has not all rows of {table.name}")
        return {"answers": [answer for answers in found for answer in answers], "identity": identity}
    return _asked(context, table, rows)


def _asked(context: Context, table: AskedTable, rows: Rows) -> dict[str, Any]:
    data = dataset(table.recipe(), rows)
    with get(context["model"]) as model:
        said = [
            {"table": table.name, "id": row["id"], "node": name, "text": _answer(model, table, row, name, prompt)}
            for row in rows
            for name, prompt in questions(table, data[row["id"]])
        ]
        return {"answers": said, "identity": dict(model.identity)}


def questions(table: AskedTable, problem: Any) -> Iterator[tuple[str, str]]:
    """What is asked about a row: the ask and its prompt."""
    for node in problem.nodes:
        if node.prompt is not None:
            yield node.id.partition(".")[0] if table.fields else node.id, str(node.prompt)


def _answer(model: Any, table: AskedTable, row: Mapping[str, Any], name: str, prompt: str) -> str:
    request = Request(prompt, max_tokens=table.most_tokens, grammar=table.grammar(row, name))
    return str(model.ask(request).text)


@lru_cache(4)
def _recorded(path: str) -> tuple[dict[tuple[str, str], list[Row]], dict[str, Any]]:
    """The answers of a log by table and row, and whose they are."""
    lines = [json.loads(line) for line in gzip.decompress(Path(path).read_bytes()).decode().splitlines()]
    found: dict[tuple[str, str], list[Row]] = {}
    for line in lines[1:]:
        found.setdefault((line["table"], line["id"]), []).append(line)
    return found, lines[0]


def report(context: Context, done: Sequence[Done]) -> Report:
    page = context.page()
    pairs: list[Row] = []
    designs: list[Row] = []
    own = [entry for entry in done if "table" in entry.part]
    for name, table in TABLES.items():
        answers = [answer for entry in own if entry.part["table"] == name for answer in entry.value["answers"]]
        beside = [answer for entry in own if entry.part["table"] == "invoices" for answer in entry.value["answers"]]
        found = _of_table(context, table, answers, beside)
        pairs += found["pairs"]
        designs += found["designs"]
    for entry in done:
        if "table" not in entry.part:
            pairs += entry.value["pairs"]
            designs += entry.value.get("designs", [])
    totals = _totals(designs)
    page.answer = _said(totals, designs)
    _judge(page, totals)
    _judge_invoices(page, designs)
    page.table("totals", totals, shown=None)
    page.table("designs", designs, shown=None)
    page.table("pairs", pairs, shown=None)
    shown = {f"{row['design']}{' + checks' if row['free_checks'] else ''}": float(row["wrong"]) for row in totals}
    page.bars("wrong", shown, y="wrong rows handed over")
    page.notes += _notes(designs, pairs)
    lines = [own[0].value["identity"], *(answer for entry in own for answer in entry.value["answers"])]
    text = "".join(json.dumps(line, ensure_ascii=False, sort_keys=True) + "\n" for line in lines)
    page.files[RECORDED] = compressed(text)
    return page


def _of_table(context: Context, table: AskedTable, answers: Sequence[Row], beside: Sequence[Row]) -> dict[str, Any]:
    """Pairs of the original with every other question, and what each design hands over; `beside`:
    the answers about invoices, of which the first are asked by fields, too.
    """
    count = context["rows"][table.name]
    rows = table.rows(count, seed=context["seed"])
    listed = [{key: answer[key] for key in ("id", "node", "text")} for answer in answers]
    kinds = {name: str(spec) for name, spec in table.others.items()}
    pairs: list[Row] = []
    if not table.fields:  # of several fields nothing is measured together
        pairs = pair_rows(measure(dataset(table.recipe(), rows), listed), table.name, "embedded", kinds)
    designs = []
    for name, asks in table.designs.items():
        for checks in (False, True)[: 2 if table.vetoes else 1]:
            recipe = table.recipe(asks, vetoes=checks)
            kept = [answer for answer in listed if answer["node"] in ("first", *asks)]
            figures = handed_over(recipe, rows, kept)
            designs.append({"table": table.name, "design": name, "free_checks": checks, "calls": 4, **figures})
    if table.fields:
        names = {row["id"] for row in rows}
        kept = [
            {key: answer[key] for key in ("id", "node", "text")}
            for answer in beside
            if answer["id"] in names and answer["node"] in ("first", *WORDINGS)
        ]
        figures = handed_over(TABLES["invoices"].recipe(tuple(WORDINGS)), rows, kept)
        head = {"table": table.name, "design": PARAPHRASES, "free_checks": False, "calls": 4}
        designs.append({**head, **figures})
    return {"pairs": pairs, "designs": [*designs, *_as_measured(table, rows, listed)]}


def _as_measured(table: AskedTable, rows: Rows, answers: Sequence[Row]) -> list[Row]:
    """The design that `measure` proposes from every other row, and the paraphrases, on the rest."""
    if len(rows) < 2 or table.fields or set(table.others) == set(table.designs[PARAPHRASES]):
        return []
    seen, rest = {row["id"] for row in rows[::2]}, rows[1::2]
    told = measure(dataset(table.recipe(), rows[::2]), [answer for answer in answers if answer["id"] in seen])
    best = told.content["shared_errors"]["best_three"]
    chosen = table.designs[PARAPHRASES] if best is None else best["nodes"]
    found = []
    for name, asks in ((MEASURED, tuple(chosen)), (f"{PARAPHRASES}, the same rows", table.designs[PARAPHRASES])):
        kept = [answer for answer in answers if answer["id"] not in seen and answer["node"] in ("first", *asks)]
        figures = handed_over(table.recipe(asks), rest, kept)
        found.append({"table": table.name, "design": name, "free_checks": False, "calls": 4, **figures})
    return found


def _totals(designs: Sequence[Row]) -> list[Row]:
    """Over the tables that every design was tried on."""
    names = ("three paraphrases", "three transformations", "one of each", MEASURED, f"{PARAPHRASES}, the same rows")
    tables = {row["table"] for row in designs if row["design"] == "one of each"}
    found = []
    for name in names:
        rows = [row for row in where(designs, design=name, free_checks=False) if row["table"] in tables]
        sums = {key: sum(row[key] for row in rows) for key in ("rows", "handed_over", "wrong", "left_for_people")}
        share = sums["wrong"] / sums["handed_over"] if sums["handed_over"] else 0.0
        found.append({"design": name, "free_checks": False, "calls": 4, **sums, "share_wrong": round(share, 4)})
    return found


def _judge(page: Report, totals: Sequence[Row]) -> None:
    first, *others = totals[:3]
    best = min(others, key=lambda row: row["wrong"])
    seen = f"{best['design']}: {best['wrong']} wrong rows of {best['handed_over']}, {first['design']}: {first['wrong']}"
    page.at_full("half", 2 * best["wrong"] <= first["wrong"], f"{seen} of {first['handed_over']}")
    right = {row["design"]: row["handed_over"] - row["wrong"] for row in (best, first)}
    seen = f"right rows: {right[best['design']]} and {right[first['design']]}"
    page.at_full("not-by-silence", 2 * right[best["design"]] >= right[first["design"]], seen)
    measured, same = totals[3:]
    seen = f"{measured['wrong']} wrong rows of {measured['handed_over']}, paraphrases {same['wrong']}"
    page.at_full("measured", measured["wrong"] <= same["wrong"], f"{seen} of {same['handed_over']}")


def _judge_invoices(page: Report, designs: Sequence[Row]) -> None:
    """Designs that bring the source's own words or sums in, beside the paraphrases of it."""
    by = {(row["table"], row["design"], row["free_checks"]): row for row in designs}
    tried = [by["invoices", "quote first", False], by["invoices by fields", FIELDS, True]]
    firsts = [by[row["table"], PARAPHRASES, False] for row in tried]  # of the same rows
    better = [
        row["handed_over"] > 0
        and _share(row) < _share(first)
        and 2 * (row["handed_over"] - row["wrong"]) >= first["handed_over"] - first["wrong"]
        for row, first in zip(tried, firsts, strict=True)
    ]
    seen = "; ".join(
        f"{row['design']}{' and their equations' if row['free_checks'] else ''}: {row['wrong']} wrong of"
        f" {row['handed_over']}, paraphrases {first['wrong']} of {first['handed_over']}"
        for row, first in zip(tried, firsts, strict=True)
    )
    page.at_full("invoices", any(better), seen)


def _share(row: Row) -> float:
    return float(row["wrong"] / row["handed_over"]) if row["handed_over"] else 0.0


def _said(totals: Sequence[Row], designs: Sequence[Row]) -> str:
    first, *others = totals[:3]
    best = min(others, key=lambda row: row["wrong"])
    word = "Yes" if 2 * best["wrong"] <= first["wrong"] else "No design halved them"
    return (
        f"{word}: at four calls a row, three paraphrases hand over {first['wrong']} wrong rows of {first['rows']}"
        f" ({first['share_wrong']:.0%} of what they hand over), {best['design']} {best['wrong']}"
        f" ({best['share_wrong']:.0%}), and leave {best['left_for_people']} rows for people instead of"
        f" {first['left_for_people']}. {_by_table(designs)}"
    )


def _by_table(designs: Sequence[Row]) -> str:
    """Where a design that keeps half of the right rows has a smaller share of wrong ones; and where
    none has.
    """
    helped, nothing = [], []
    for table in TABLES:
        here = [row for row in designs if row["table"] == table and row["design"] != MEASURED]
        first = where(here, design=PARAPHRASES, free_checks=False)[0]
        least = first["handed_over"] - first["wrong"]
        fair = [row for row in here if 2 * (row["handed_over"] - row["wrong"]) >= least and row["handed_over"]]
        best = min((row for row in fair if "same rows" not in row["design"]), key=_share, default=first)
        if _share(best) < _share(first):
            checks = " with free checks" if best["free_checks"] else ""
            helped.append(f"{table} ({best['design']}{checks} {_share(best):.0%}, paraphrases {_share(first):.0%})")
        else:
            nothing.append(table)
    worse = f" None was better on {', '.join(nothing)}." if nothing else ""
    return f"The smallest share of wrong rows, of designs that keep half of the right ones: {'; '.join(helped)}.{worse}"


def _notes(designs: Sequence[Row], pairs: Sequence[Row]) -> list[str]:
    by = {(row["table"], row["design"], row["free_checks"]): row for row in designs}
    free = [
        f"{table}, {design}: {by[table, design, False]['wrong']} wrong rows without, {row['wrong']} with them"
        for (table, design, checked), row in by.items()
        if checked
    ]
    alike = [
        f"{row['table']}, {row['question']} ({row['model']}): {row['same_wrong']} of {row['both_wrong']}"
        for row in pairs
        if row["both_wrong"] >= 5 and row["same_wrong"] == row["both_wrong"] and row["table"] in TABLES
    ]
    shares: dict[str, list[str]] = {}
    for (table, design, checked), row in by.items():
        if table in TABLES and not design.endswith("the same rows") and design != MEASURED:
            name = f"{design}{' with free checks' if checked else ''}"
            shares.setdefault(table, []).append(f"{name} {row['wrong']} of {row['handed_over']} ({_share(row):.0%})")
    return [
        *(f"Wrong among what is handed over, {table}: {'; '.join(listed)}." for table, listed in shares.items()),
        f"Free checks at the same calls. {'; '.join(free)}.",
        f"Questions whose errors are always the very ones of the original: {'; '.join(alike) or 'none'}.",
    ]


SCENARIO = Scenario.declared(NAME, parts, run, report)
