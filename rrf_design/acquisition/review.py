"""People as a source: a review queue to fill in (CSV or JSONL), ordered by certified gain per cost, and read back.

The gain is certified: the proven lower bound of the margin with the answer minus the proven upper bound without it. Where it
is zero for all (two reviews can be worth nothing alone and everything together), the witness rule orders.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rrf_design.acquisition.choosing import present_margin
from rrf_design.acquisition.sources.person import Person
from rrf_design.acquisition.state import Buys, Purchase, Settlement, purchase_id
from rrf_design.errors import InputError
from rrf_design.files import write_text
from rrf_design.texts import json_text, showable

if TYPE_CHECKING:
    from rrf_design.acquisition.fetching import Fetcher
    from rrf_design.acquisition.loop import Acquirer

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


@dataclass(frozen=True, slots=True)
class Review:
    """One question for a person. `value` is left empty for them."""

    purchase: Purchase
    node: str
    question: str
    prompt: str
    model_answer: str
    rows: int
    gain_per_cost: float
    sees: float

    def row(self) -> dict[str, Any]:
        return {
            "id": self.purchase.id,
            "item": self.purchase.item,
            "anchor": self.purchase.name,
            "node": self.node,
            "question": self.question,
            "prompt": self.prompt,
            "model_answer": self.model_answer,
            "rows": self.rows,
            "gain_per_cost": self.gain_per_cost,
            "cost": self.purchase.price,
            "value": "",
        }


def queue(acquirer: Acquirer, fetcher: Fetcher) -> list[Review]:
    """Open reviews of the run, the most valuable first, none twice."""
    reviews = []
    for item, state in acquirer.state.items.items():
        if not any(purchase.deferred for purchase in state.pending.values()):
            continue
        design = acquirer.designs[item]
        now = present_margin(design, state.held, state.failed)
        energy = {} if now is None else design.energies(now.witness)
        for name, purchase in state.pending.items():
            source = fetcher.sources.get((item, name))
            if not purchase.deferred or not isinstance(source, Person):
                continue
            node = design.problem.node_by_id[source.anchor.nodes[0]]
            then = present_margin(design, {*state.held, name}, state.failed)
            gain = 0.0 if now is None or then is None else max(0.0, then.lower - now.upper)
            answer = state.settled.get(node.id)
            price = max(purchase.price, 1e-12)
            reviews.append(
                Review(
                    purchase=purchase,
                    node=node.id,
                    question=source.question or f"What is the right answer to the prompt of {node.id!r}?",
                    prompt=node.prompt or "",
                    model_answer="" if answer is None else answer.text,
                    rows=source.rows,
                    gain_per_cost=gain / price,
                    sees=energy.get(name, 0.0) / price,
                )
            )
    return sorted(reviews, key=lambda review: (-review.gain_per_cost, -review.sees, review.purchase.id))


def write_queue(path: str | os.PathLike[str], reviews: list[Review]) -> None:
    """Write the queue; .csv or .jsonl by its ending."""
    rows = [review.row() for review in reviews]
    if _form(path) == ".jsonl":
        write_text(path, "".join(json_text(row) + "\n" for row in rows))
        return
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(row | {key: _plain(row[key]) for key in ("question", "prompt", "model_answer")} for row in rows)
    write_text(path, text.getvalue())


def read_queue(path: str | os.PathLike[str], acquirer: Acquirer, fetcher: Fetcher) -> list[Settlement]:
    """The filled-in reviews that are still open; empty values stay open, a value twice must be the same one."""
    given: dict[str, tuple[float, ...]] = {}
    for number, row in _rows(Path(path)):
        where = f"{path}, entry {number}"
        name, value = row.get("id"), row.get("value")
        if not isinstance(name, str):
            raise InputError(f"{where}: the column id is missing")
        if isinstance(row.get("check"), str):  # a review list, whose id is that of the item
            name = purchase_id(name, row["check"])
        if value in (None, "", []):
            continue
        numbers = _numbers(value, where)
        if given.setdefault(name, numbers) != numbers:
            raise InputError(f"{where}: {name!r} has two different values in this file")
    open_reviews = {p.id: p for s in acquirer.state.items.values() for p in s.pending.values() if p.deferred}
    known = {purchase_id(item, n) for item, s in acquirer.state.items.items() for n in s.settled}
    settlements = []
    for name, numbers in given.items():
        if name not in open_reviews:
            if name in known:
                continue  # read back before; what is settled stays
            raise InputError(f"{path}: {name!r} is not an open review of this run")
        purchase = open_reviews[name]
        rows = fetcher.sources[purchase.item, purchase.name].rows
        if len(numbers) != rows:
            raise InputError(f"{path}: {name!r} needs {rows} numbers, not {len(numbers)}")
        assert purchase.buys is Buys.ANCHOR
        settlements.append(
            Settlement(purchase, "reviewed", numbers, evidence={"file": Path(path).name}, source="person")
        )
    return settlements


def _rows(path: Path) -> list[tuple[int, Mapping[str, Any]]]:
    form = _form(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: can't be read as a review file ({error})") from None
    if form == ".csv":
        return list(enumerate(csv.DictReader(io.StringIO(text)), start=1))
    rows: list[tuple[int, Mapping[str, Any]]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            try:
                row = json.loads(line)
            except ValueError as error:
                raise InputError(f"{path}, line {number}: not JSON ({error})") from None
            if not isinstance(row, dict):
                raise InputError(f"{path}, line {number}: not an object")
            rows.append((number, row))
    return rows


def _numbers(value: Any, where: str) -> tuple[float, ...]:
    parts = value.replace(",", " ").replace(";", " ").split() if isinstance(value, str) else value
    try:
        numbers = tuple(float(part) for part in (parts if isinstance(parts, list | tuple) else [parts]))
    except (TypeError, ValueError):
        raise InputError(f"{where}: value {value!r} is not a number or a list of numbers") from None
    if not all(math.isfinite(number) for number in numbers):
        raise InputError(f"{where}: value {value!r} is not finite")
    return numbers


def _form(path: str | os.PathLike[str]) -> str:
    suffix = Path(path).suffix.lower()
    if suffix not in (".csv", ".jsonl"):
        raise InputError(f"{path}: review files end in .csv or .jsonl")
    return suffix


def _plain(text: str) -> str:
    """A text that a spreadsheet would take for a formula (a model may write one) is shown as text."""
    text = showable(text)
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text
