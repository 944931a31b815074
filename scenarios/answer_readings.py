"""Beyond the paper: are recorded answers of real models read as a careful person reads them?

Two standards. The table of written forms was made by hand; every row must be read, or refused, as
it says. Recorded answers come as a folder of long rows (`item node text value`) with another
reading of each text beside it (`value`) and a table with the truth: where that other reading is the
truth and ours is another answer, ours is a misreading, whoever is right elsewhere. Only figures are
published, never a text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rrf_design.responses import parsers
from rrf_design.responses.parsers import written_forms
from scenarios.data_set_promises.panels import zipped_rows
from scenarios.kit import Context, Done, Part, Report, Scenario, Table
from scenarios.kit.rows import totals

_SHARE, _MISREAD = 0.99, 0.001


@dataclass(frozen=True, slots=True)
class Recorded:
    """A set of the folder, the parser it is read with, and the set whose table holds its truth."""

    name: str
    parser: Mapping[str, Any]
    truth: str
    judged: bool = True
    flipped: str = ""
    """Nodes with this ending were shown the options in the other order."""


SETS = {
    entry.name + entry.parser.get("as", ""): entry
    for entry in (
        Recorded("gsm8k", {"name": "json", "field": "answer", "decimal": "."}, "gsm8k"),
        Recorded("gsm8k", {"name": "decimal", "decimal": ".", "as": " as text"}, "gsm8k"),
        Recorded("gsm8k", {"name": "json", "field": "answer", "as": ", decimal mark not declared"}, "gsm8k"),
        Recorded("gsm8k-2021", {"name": "decimal", "decimal": "."}, "gsm8k"),
        Recorded("crux", {"name": "literal", "bare": "string"}, "crux"),
        Recorded("llmbar", {"name": "choice", "options": ["Output (a)", "Output (b)"]}, "llmbar", False, "/ba"),
        Recorded("mmlu-pro", {"name": "choice", "options": list("ABCDEFGHIJ")}, "mmlu-pro", False),
    )
}
COLUMNS = "texts readable read refused ambiguous only_ours differ right other_right misread"


def parts(context: Context) -> list[Part]:
    return [{"set": "forms"}, *({"set": name} for name in SETS if context["answers"])]


def run(context: Context, part: Part) -> dict[str, Any]:
    return (
        _forms() if part["set"] == "forms" else _recorded(SETS[part["set"]], Path(context["answers"]), context["most"])
    )


def _forms() -> dict[str, Any]:
    found = [(form, form.reading()) for form in written_forms()]
    kinds = Counter(form.kind for form, _ in found)
    refused = Counter(form.kind for form, reading in found if not reading[-1:].isdigit())
    wrong = Counter(form.kind for form, reading in found if reading != form.reads)
    return {
        "kinds": [[kind, count, count - refused[kind], refused[kind], wrong[kind]] for kind, count in kinds.items()]
    }


def _recorded(entry: Recorded, folder: Path, most: int | None) -> dict[str, Any]:
    """Counts over the texts of a set; `right` and `other_right` count answers that are the truth,
    by our reading and by the other.
    """
    parser = parsers.get({key: value for key, value in entry.parser.items() if key != "as"})
    truth = {row["id"]: _canonical(row["gold"], entry) for row in zipped_rows(folder / f"{entry.truth}.table.jsonl.gz")}
    counts: Counter[str] = Counter()
    for number, row in enumerate(zipped_rows(folder / f"{entry.name}.answers.jsonl.gz")):
        if most is not None and number >= most:
            break
        if row["text"] is None:  # there was no answer to read
            continue
        parsed = parser.parse(row["text"])
        other = None if row["value"] is None else _canonical(row["value"], entry)
        ours = _ours(parsed, row["node"], entry) if parsed.ok else None
        gold = truth.get(row["item"])
        same = ours is not None and other is not None and _same(ours, other)
        counts["texts"] += 1
        counts["readable"] += other is not None
        counts["read"] += ours is not None
        counts["refused"] += ours is None and other is not None
        counts["ambiguous"] += parsed.status.value == "ambiguous"
        counts["only_ours"] += ours is not None and other is None
        counts["differ"] += ours is not None and other is not None and not same
        counts["right"] += ours is not None and gold is not None and _same(ours, gold)
        right = other is not None and gold is not None and _same(other, gold)
        counts["other_right"] += right
        counts["misread"] += right and ours is not None and not same and not (gold is not None and _same(ours, gold))
    return {"parser": parser.name, **{name: counts[name] for name in COLUMNS.split()}}


def _ours(parsed: Any, node: str, entry: Recorded) -> str | float:
    if entry.name == "llmbar":
        first = (parsed.canonical == "Output (a)") != (bool(entry.flipped) and node.endswith(entry.flipped))
        return "1" if first else "2"
    if parsed.label is not None:
        return str(parsed.label)
    return float(parsed.value[0]) if len(parsed.value) == 1 else str(parsed.canonical)


def _canonical(value: Any, entry: Recorded) -> str | float:
    """The other reading, or the truth, in the form that ours has."""
    if entry.truth == "gsm8k":
        return float(value)
    if entry.name == "crux":
        return parsers.get("literal").parse(str(value)).label or str(value)
    return str(value)


def _same(one: str | float, other: str | float) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= 1e-5 * max(1.0, abs(other))  # the folder has six decimals
    return one == other


def report(context: Context, done: Sequence[Done]) -> Report:
    found = {entry.part["set"]: entry.value for entry in done}
    kinds = [
        dict(zip(("kind", "forms", "read", "refused", "otherwise"), row, strict=True))
        for row in found.pop("forms")["kinds"]
    ]
    forms, wrong = totals(kinds, "forms otherwise").values()
    judged = [value for name, value in found.items() if SETS[name].judged and "declared" not in name]
    share, misread = _extremes(judged)
    page = context.page()
    page.check("forms", wrong == 0 and forms >= 200, f"{forms} forms, {wrong} read otherwise")
    absent = not judged and "no recorded answers were given: --set answers=FOLDER"
    page.check("share", share >= _SHARE, f"least share over the sets: {share:.4f}", unless=absent)
    page.check("misread", misread <= _MISREAD, f"largest share over the sets: {misread:.5f}", unless=absent)
    page.answer = _answer(forms, wrong, judged, [value for name, value in found.items() if not SETS[name].judged])
    page.table("forms", kinds)
    columns = ("set", "parser", *COLUMNS.split())
    rows = tuple((name, *(value[key] for key in columns[1:])) for name, value in found.items())
    page.tables.append(Table("sets", columns, rows))
    missed = {
        f"{name} ({v['readable']})": 100 * (v["refused"] + v["misread"]) / max(1, v["readable"])
        for name, v in found.items()
    }
    page.bars(
        "missed", {f"written forms ({forms})": 100 * wrong / max(1, forms), **missed}, y="percent refused or misread"
    )
    return page


def _answer(forms: int, wrong: int, judged: Sequence[Mapping[str, Any]], choices: Sequence[Mapping[str, Any]]) -> str:
    hand = f"{forms - wrong} of {forms} written forms are read, or refused, as the table made by hand says"
    if not judged:
        return f"{hand}; of recorded answers this run says nothing, as none were given."
    share, misread = _extremes(judged)
    good = wrong == 0 and share >= _SHARE and misread <= _MISREAD
    lead = "almost always" if good else "not often enough"
    lead = "always" if good and share == 1 and misread == 0 else lead
    fewest, most = _extremes(choices)
    rest = f"; of choices (shown without a verdict) at least {fewest:.1%} and at most {100 * most:.2g}%"
    return (
        f"Numbers and literals are {lead} read as a careful person reads them: {hand}, and in every set of recorded"
        f" ones at least {share:.1%} of the texts that another reading could read are read and at most"
        f" {100 * misread:.2g}% of readings miss a truth that it found{rest if choices else ''}."
    )


def _extremes(sets: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """The least share of readable texts that were read, and the largest share of readings that were
    misreadings.
    """
    share = min((1 - value["refused"] / max(1, value["readable"]) for value in sets), default=1.0)
    return share, max((value["misread"] / max(1, value["read"]) for value in sets), default=0.0)


SCENARIO = Scenario.declared("answer-readings", parts, run, report)
