"""What a data set came to: a row for every item, in the order of the table, to be handed over in any form.

Rows are gone through, never gathered, so that a million of them need no more memory than one; only the order of what people
should look at first is kept, a few bytes for each open item.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from html import escape
from typing import Any

from rrf_design.documents import sealed
from rrf_design.errors import InputError, MissingDependency
from rrf_design.files import suggestion
from rrf_design.handover.rows import DeliveredRow
from rrf_design.questions.datasets import DataItem, Dataset
from rrf_design.questions.delivery import DELIVERED
from rrf_design.verdict import Verdict, dispute, worst

SHOWN = 10


class Delivery(Mapping[str, DeliveredRow]):
    """Rows of a data set by id. `rows` can be gone through again and again, and has one row for each item, in order."""

    def __init__(
        self,
        dataset: Dataset,
        rows: Iterable[DeliveredRow],
        *,
        verdicts: Mapping[str, int] | None = None,
        seconds: float = 0.0,
        answers: Any = None,
    ) -> None:
        self.dataset, self._rows, self.seconds = dataset, rows, seconds
        self.answers = answers
        """What it was made from, where that can be read again: recorded answers, for the page."""
        counted = Counter(row.verdict.value for row in rows) if verdicts is None else verdicts
        self.verdicts: dict[str, int] = {verdict.value: counted.get(verdict.value, 0) for verdict in Verdict}
        """How many items have each verdict."""

    @property
    def verdict(self) -> Verdict:
        """That of the worst item."""
        found = worst(Verdict(name) for name, count in self.verdicts.items() if count)
        return Verdict.INCOMPLETE if found is None else found

    @property
    def certified_share(self) -> float:
        """The part of the items that are certified."""
        return self.verdicts[Verdict.CERTIFIED.value] / max(1, len(self))

    @cached_property
    def ranks(self) -> Mapping[int, int]:
        """By position: 1 for the item that people should look at first. Items that are certified have none."""
        urgent = [
            (row.answer is not None, -row.worth, dispute(row.verdict, row.misfit, len(row.wrong)), position)
            for position, row in enumerate(self.rows())
            if row.verdict is not Verdict.CERTIFIED
        ]
        return {entry[-1]: rank for rank, entry in enumerate(sorted(urgent), start=1)}

    def rows(self) -> Iterator[DeliveredRow]:
        """Every row, in the order of the table."""
        return iter(self._rows)

    def ranked(self) -> Iterator[tuple[DataItem, DeliveredRow, int | None]]:
        """Every item with its row and its rank."""
        ranks = self.ranks
        pairs = zip(self.dataset.items_in_order(), self.rows(), strict=True)
        for position, (item, row) in enumerate(pairs):
            yield item, row, ranks.get(position)

    def cells(self) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
        """Each input row with its delivered cells, as `questions.delivery.deliver` takes them."""
        for item, row, rank in self.ranked():
            yield (
                item.cells,
                {**{key: getattr(row, key, None) for key in DELIVERED}, "verdict": row.verdict.value, "rank": rank},
            )

    def __getitem__(self, name: str) -> DeliveredRow:
        for row in self.rows():
            if row.id == name:
                return row
        raise KeyError(name)

    def row(self, name: str) -> DeliveredRow:
        """The row of this id; InputError with the nearest one."""
        if name not in self:
            raise InputError(f"{self.dataset.table.name}: no item {name!r}{suggestion(name, list(self))}")
        return self[name]

    def __iter__(self) -> Iterator[str]:
        return (row.id for row in self.rows())

    def __len__(self) -> int:
        return sum(self.verdicts.values())

    def head(self) -> dict[str, Any]:
        """What there is to say about all of it."""
        return {
            "recipe": self.dataset.recipe.name,
            "table": self.dataset.table.name,
            "verdict": self.verdict.value,
            "verdicts": self.verdicts,
            "certified_share": self.certified_share,
            "structures": len(self.dataset.structures),
            "seconds": self.seconds,
        }

    def documents(self) -> Iterator[dict[str, Any]]:
        """What there is to say about each item."""
        for _, row, rank in self.ranked():
            yield {**row.to_json(), "rank": rank}

    def to_json(self) -> dict[str, Any]:
        return sealed("rrf-delivery", {**self.head(), "items": list(self.documents())})

    def to_frame(self) -> Any:
        """The delivered table as a pandas data frame (polars where only that is installed)."""
        from rrf_design.questions.delivery import delivered_names

        names = delivered_names(self.dataset.columns)
        merged = [{**cells, **{names[key]: row[key] for key in DELIVERED}} for cells, row in self.cells()]
        columns = [*self.dataset.columns, *names.values()]
        return frame_of([{name: row.get(name) for name in columns} for row in merged], columns)

    def sentence(self) -> str:
        """What one may say about all of it."""
        parts = [f"{count} {name}" for name, count in self.verdicts.items() if count]
        return f"{len(self)} items: {', '.join(parts) or 'none'}."

    def __repr__(self) -> str:
        return f"Delivery({self.dataset.table.name!r}, {self.sentence().removesuffix('.')})"

    def _repr_html_(self) -> str:
        """A short table for notebooks: the first items and what they came to."""
        columns = ("id", "answer", "verdict", "bound", "reason")
        heads = "".join(f"<th>{name}</th>" for name in columns)
        body = ""
        for place, row in enumerate(self.rows()):
            if place == SHOWN:
                break
            cells = ("" if getattr(row, name) is None else str(getattr(row, name)) for name in columns)
            body += "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
        more = f"<p>… and {len(self) - SHOWN} more</p>" if len(self) > SHOWN else ""
        return f"<p>{escape(self.sentence())}</p><table><tr>{heads}</tr>{body}</table>{more}"


def frame_of(rows: list[dict[str, Any]], columns: list[str]) -> Any:
    """Rows as a data frame of whatever is installed: pandas, else polars."""
    from importlib import import_module
    from importlib.util import find_spec

    if find_spec("pandas") is not None:
        return import_module("pandas").DataFrame(rows, columns=columns)
    if find_spec("polars") is not None:
        return import_module("polars").DataFrame({name: [row[name] for row in rows] for name in columns}, strict=False)
    raise MissingDependency("a data frame needs pandas or polars: pip install pandas")
