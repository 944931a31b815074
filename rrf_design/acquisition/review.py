"""People as a source: a review queue to fill in (CSV or JSONL), ordered by certified gain per cost,
and read back.

The gain is certified: the proven lower bound of the margin with the answer minus the proven upper
bound without it. Where it is zero for all (two reviews can be worth nothing alone and everything
together), the witness rule orders.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rrf_design.acquisition._purchases import Buys, Settlement, purchase_id
from rrf_design.acquisition._selection import Position
from rrf_design.acquisition.sources.stated import Person
from rrf_design.documents import csv_rows, loads, text_lines, write_rows
from rrf_design.errors import InputError
from rrf_design.responses.parsers import check_review
from rrf_design.verdict import Verdict, dispute

if TYPE_CHECKING:
    from rrf_design.acquisition._fetch import Fetcher
    from rrf_design.acquisition._loop import Acquirer

COLUMNS = (
    "id",
    "item",
    "anchor",
    "node",
    "question",
    "prompt",
    "model_answer",
    "rows",
    "gain_per_cost",
    "cost",
    "value",
)


def queue(acquirer: Acquirer, fetcher: Fetcher) -> list[dict[str, Any]]:
    """Open reviews of the run as rows with an empty `value`, the most valuable first, none
    twice.
    """
    reviews: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
    for item, state in acquirer.state.items.items():
        if not any(purchase.deferred for purchase in state.pending.values()):
            continue
        design = acquirer.designs[item]
        there = Position(design, state.held, state.failed)
        now = there.margin
        energy = {} if now is None else design.energies(now.witness)
        found = acquirer.state.results.get(item) or {}
        verdict = Verdict(found.get("verdict", Verdict.INCOMPLETE))
        order = dispute(verdict, float(found.get("residual") or 0.0), len(found.get("support") or ()))
        for name, purchase in state.pending.items():
            source = fetcher.sources.get((item, name))
            if not purchase.deferred or not isinstance(source, Person):
                continue
            node = design.problem.node_by_id[source.anchor.nodes[0]]
            then = there.after([name]).margin
            price = max(purchase.price, 1e-12)
            gain = 0.0 if now is None or then is None else max(0.0, then.lower - now.upper) / price
            question = source.question or f"What is the right answer to the prompt of {node.id!r}?"
            answer = state.settled[node.id].text if node.id in state.settled else ""
            about = (purchase.id, item, name, node.id, question, node.prompt or "", answer)
            row = dict(zip(COLUMNS, (*about, source.rows, gain, purchase.price, ""), strict=True))
            # Among those that gain the same: the order of disputes, then what the witness shows.
            reviews.append(((-gain, order, -energy.get(name, 0.0) / price, purchase.id), row))
    return [row for _, row in sorted(reviews, key=lambda review: review[0])]


def write_queue(path: str | os.PathLike[str], reviews: list[dict[str, Any]]) -> None:
    """Write the queue; .csv or .jsonl by its ending.

    What was filled in there and is still open stays: nobody has read it back yet.
    """
    _form(path)
    there = {row.get("id"): row.get("value") for _, row in _rows(Path(path))} if Path(path).is_file() else {}
    rows = [row | {"value": there.get(row["id"]) or ""} for row in reviews]
    write_rows(path, rows, COLUMNS, words=("question", "prompt", "model_answer"))


def read_queue(path: str | os.PathLike[str], acquirer: Acquirer, fetcher: Fetcher) -> list[Settlement]:
    """The filled-in reviews that are still open; empty values stay open, a value twice must be the
    same one.
    """
    given: dict[str, Any] = {}
    for number, row in _rows(Path(path)):
        where = f"{path}, entry {number}"
        name, value = row.get("id"), row.get("value")
        if not isinstance(name, str):
            raise InputError(f"{where}: the column id is missing")
        if isinstance(row.get("check"), str):  # a review list, whose id is that of the item
            name = purchase_id(name, row["check"])
        if value in (None, "", []):
            continue
        try:
            check_review(value)
        except InputError as error:
            raise InputError(f"{where}: {name!r}: {error}") from None
        if given.setdefault(name, value) != value:
            raise InputError(f"{where}: {name!r} has two different values in this file")
    open_reviews = {p.id: p for s in acquirer.state.items.values() for p in s.pending.values() if p.deferred}
    known = {purchase_id(item, n) for item, s in acquirer.state.items.items() for n in s.settled}
    settlements = []
    for name, value in given.items():
        if name not in open_reviews:
            if name in known:
                continue  # read back before; what is settled stays
            raise InputError(f"{path}: {name!r} is not an open review of this run")
        purchase = open_reviews[name]
        assert purchase.buys is Buys.ANCHOR
        try:
            numbers, text = fetcher.reviewed(
                purchase.item, purchase.name, _said(value), acquirer.designs[purchase.item].problem
            )
        except InputError as error:
            raise InputError(f"{path}: {name!r}: {error}") from None
        evidence = {"file": Path(path).name, "reply": {"text": text}}
        settlements.append(Settlement(purchase, "reviewed", numbers, evidence=evidence, source="person"))
    return settlements


def _rows(path: Path) -> list[tuple[int, Mapping[str, Any]]]:
    form = _form(path, ".json")
    if form == ".json":
        return list(enumerate(label_studio_rows(path), start=1))
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: can't be read as a review file ({error})") from None
    if form == ".csv":
        try:
            return [(number, row) for number, (_, row) in enumerate(csv_rows(text)[1], start=1)]
        except InputError as error:
            raise InputError(f"{path}, {error}") from None
    rows: list[tuple[int, Mapping[str, Any]]] = []
    for number, line in text_lines(text):
        try:
            row = loads(line)
        except ValueError as error:
            raise InputError(f"{path}, line {number}: not JSON ({error})") from None
        if not isinstance(row, dict):
            raise InputError(f"{path}, line {number}: not an object")
        rows.append((number, row))
    return rows


def _said(value: Any) -> str:
    """What stands in the column `value`, as text: JSON lines may have numbers or a list of them."""
    parts = value if isinstance(value, list | tuple) else [value]
    return "; ".join(str(part) for part in parts)


def label_studio_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The tasks of a Label Studio file, each with the value of its last annotation that was not
    cancelled.
    """
    try:
        tasks = json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: can't be read as JSON ({error})") from None
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        raise InputError(f"{path}: not a list of tasks as Label Studio exports them")
    for task in tasks:
        data = task.get("data")
        if not isinstance(data, dict):
            raise InputError(f"{path}: a task without data; export as JSON, not as JSON-MIN")
        yield {"id": data.get("id"), "check": data.get("check"), "value": _annotated(task) or data.get("value")}


def _annotated(task: Mapping[str, Any]) -> str:
    done = [one for one in task.get("annotations") or () if isinstance(one, dict) and not one.get("was_cancelled")]
    for annotation in reversed(done):
        for result in annotation.get("result") or ():
            value = result.get("value") if isinstance(result, dict) else None
            for key in ("text", "number", "choices", "rating", "taxonomy"):
                given = value.get(key) if isinstance(value, dict) else None
                while isinstance(given, list) and given:
                    given = given[0]
                if given not in (None, "", []):
                    return str(given)
    return ""


def _form(path: str | os.PathLike[str], *more: str) -> str:
    suffix = Path(path).suffix.lower()
    forms = (".csv", ".jsonl", *more)
    if suffix not in forms:
        raise InputError(f"{path}: review files end in {' or '.join(forms)}")
    return suffix
