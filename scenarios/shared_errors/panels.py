"""What designs hand over, by the product's own repair; and recorded answers of others: judges in
both orders, and the published log of a coder model on arithmetic.

Of answers that are not the project's own only counts are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from rrf_design import Measurement, dataset, measure, repair
from rrf_design.responses import parsers
from scenarios.data_set_promises.panels import zipped_rows
from scenarios.kit import Row, Rows
from scenarios.real_model import arithmetic, logs

PASSING = ("checked", "consistent")


def handed_over(recipe: Mapping[str, Any], rows: Rows, answers: Rows) -> dict[str, int]:
    """Rows that a design hands over, how many of them are wrong, and what is left for people."""
    truth = {str(row["id"]): str(row["truth"]) for row in rows}
    handed = wrong = 0
    numeric = "choices" not in recipe["answer"]
    for row in repair(dataset(dict(recipe), rows), answers).rows():
        if row.values[0].verdict.value in PASSING:
            handed += 1
            said = row.values[0].answer
            wrong += abs(float(said) - float(truth[row.id])) > 0.006 if numeric else str(said) != truth[row.id]
    return {"rows": len(rows), "handed_over": handed, "wrong": int(wrong), "left_for_people": len(rows) - handed}


def pair_rows(found: Measurement, table: str, model: str, kinds: Mapping[str, str], first: str = "first") -> list[Row]:
    """The pairs that the original question is in."""
    wrong = {entry["node"]: entry["wrong"] for entry in found.content["wrong_answers"]["nodes"]}
    pairs = [pair for pair in found.content["shared_errors"]["pairs"] if pair["nodes"][0] == first]
    return [
        {
            "table": table,
            "model": model,
            "question": other,
            "change": kinds.get(other, ""),
            "rows": pair["items"],
            "wrong": wrong[first],
            "other_wrong": wrong[other],
            "both_wrong": pair["both_wrong"],
            "same_wrong": pair["same_wrong"],
            "same_wrong_at_most": pair["bound"],
        }
        for pair in pairs
        for other in pair["nodes"][1:]
        if other in kinds
    ]


def _judges(folder: Path) -> tuple[Rows, dict[str, dict[str, str]], list[str], list[str]]:
    """Items with their truth, answers by node and item, judges and prompts in the file's order."""
    rows = [{"id": str(row["id"]), "truth": str(row["gold"])} for row in zipped_rows(folder / "llmbar.table.jsonl.gz")]
    said: dict[str, dict[str, str]] = {}
    for row in zipped_rows(folder / "llmbar.answers.jsonl.gz"):
        if row["node"].count("/") == 2 and row["status"] == "ok":
            said.setdefault(row["node"], {})[str(row["item"])] = str(row["value"])
    parts = [node.split("/") for node in said]
    return rows, said, list(dict.fromkeys(p[0] for p in parts)), list(dict.fromkeys(p[1] for p in parts))


def _judged(rows: Rows, said: Mapping[str, Mapping[str, str]], nodes: Sequence[str]) -> tuple[dict[str, Any], Rows]:
    """A recipe in which these nodes answer one question, and their answers; the order of a pair has
    been carried back by those who recorded them.
    """
    choices = sorted({str(row["truth"]) for row in rows})
    names = ["first", *(f"q{place}" for place in range(1, len(nodes)))]
    asks = [{"id": "first", "prompt": "{{ id }}"}]
    asks += [{"id": name, "like": "first", "prompt": "{{ id }}?"} for name in names[1:]]
    recipe = {"data": {"id": "id", "gold": "truth"}, "answer": {"of": "first", "choices": choices, "k": 1}, "ask": asks}
    answers = [
        {"id": item, "node": name, "text": value}
        for name, node in zip(names, nodes, strict=True)
        for item, value in said[node].items()
    ]
    return recipe, answers


def judge_pairs(folder: Path) -> list[Row]:
    """Each judge's first prompt beside its other prompts, the other order, and the other judges."""
    rows, said, judges, prompts = _judges(folder)
    found = []
    for judge in judges:
        first = f"{judge}/{prompts[0]}/ab"
        others = {f"{judge}/{prompt}/ab": "another prompt" for prompt in prompts[1:]}
        others[f"{judge}/{prompts[0]}/ba"] = "the other order"
        others |= {f"{other}/{prompts[0]}/ab": "another model" for other in judges if other != judge}
        recipe, answers = _judged(rows, said, [first, *others])
        names = {f"q{place}": f"{kind}: {node}" for place, (node, kind) in enumerate(others.items(), start=1)}
        pairs = pair_rows(measure(dataset(recipe, rows), answers), "judges (llmbar)", judge, names)
        found += [
            {**pair, "question": names[pair["question"]].partition(": ")[2], "change": pair["change"].partition(":")[0]}
            for pair in pairs
        ]
    return found


def judge_designs(folder: Path) -> list[Row]:
    """The same number of calls: one judge in several prompts, in fewer prompts and both orders, and
    several judges.
    """
    rows, said, judges, prompts = _judges(folder)
    calls = 4 if min(len(judges), len(prompts)) >= 4 else 2
    several = [f"{judge}/{prompts[0]}/ab" for judge in judges[:calls]]
    found = []
    for judge in judges:
        designs = {
            "paraphrases (other prompts)": [f"{judge}/{prompt}/ab" for prompt in prompts[:calls]],
            "both orders": [f"{judge}/{p}/{order}" for p in prompts[: calls // 2] for order in ("ab", "ba")],
            "other models": [several[judges.index(judge)], *(n for n in several if n.split("/")[0] != judge)]
            if judge in judges[:calls]
            else several,
        }
        for name, nodes in designs.items():
            recipe, answers = _judged(rows, said, nodes)
            figures = handed_over(recipe, rows, answers)
            row = {"table": f"judges (llmbar), {judge}", "design": name, "free_checks": False, "calls": len(nodes)}
            found.append({**row, **figures})
    return found


def coder_pairs(given: Any, directory: Path) -> list[Row]:
    """The published log of the coder model: 128 expressions in four ways; nothing where there is no
    log.
    """
    path = Path(str(given)) if given else directory.parent / "real-model-coder" / "answers.jsonl.gz"
    if not path.is_file():
        return []
    log = logs.read(path)
    items = [item for item in arithmetic.items(seed=logs.seed(path)) if arithmetic.query(item)[0].request in log]
    ways = ("another wording", "so many times as much", "so much more")
    names = {f"q{place}": way for place, way in enumerate(ways, start=1)}
    asks: list[Row] = [{"id": "first", "prompt": "{{ id }}"}]
    changes: tuple[Row, ...] = ({}, {"change": {"scale": "{{ scale }}"}}, {"change": {"shift": "{{ shift }}"}})
    asks += [
        {"id": name, "like": "first", "prompt": "{{ id }}?", **change}
        for name, change in zip(names, changes, strict=True)
    ]
    recipe = {"data": {"id": "id", "gold": "truth"}, "answer": {"of": "first", "tolerance": 0.1}, "ask": asks}
    rows = [{"id": i.id, "truth": i.answer, "scale": i.scale, "shift": i.shift} for i in items]
    answers = list(_said(items, log))
    found = pair_rows(measure(dataset(recipe, rows), answers), "expressions", "qwen2.5-coder-0.5b", names)
    return [{**pair, "question": names[pair["question"]]} for pair in found]


def _said(items: Sequence[arithmetic.AskedExpression], log: Any) -> Iterator[Row]:
    parser = parsers.get("integer")
    for item in items:
        for place, query in enumerate(islice(arithmetic.query(item), 4)):
            read = parser.parse(log.text(query.request))
            node = {"id": item.id, "node": "first" if place == 0 else f"q{place}"}
            yield {**node, "value": read.value[0]} if read.value else {**node, "status": "parse failure"}
