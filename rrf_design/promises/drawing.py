"""Which items a pilot looks at: drawn from a recorded seed and the population's digest, so that anybody can draw them again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rrf_design.errors import InputError
from rrf_design.files import canonical_digest
from rrf_design.questions.datasets import Dataset
from rrf_design.questions.tables import need_column
from rrf_design.risk import Stratum, draw_order, stratified_order


@dataclass(frozen=True, slots=True)
class Population:
    """All items of a table under a recipe: their ids in order, what each asks (a digest), and the digest of it all."""

    ids: tuple[str, ...]
    asked: tuple[str, ...]
    labels: tuple[str, ...] | None
    """The stratum of each item."""
    alike: tuple[str, ...] = ()
    """Of each item, what the recipe's texts show of it but for its id, in one case and spacing; empty where they show nothing else."""

    @classmethod
    def of(cls, dataset: Dataset, *, stratify: str | None = None) -> Population:
        if stratify is not None:
            need_column(dataset.table, stratify, "stratify")
            if stratify == dataset.recipe.data.gold_column:
                raise InputError(f"--stratify {stratify}: the draw must not see the gold column")
        ids, asked, labels, alike, there = [], [], [], [], False
        for item in dataset.items_in_order():
            ids.append(item.id)
            asked.append(item.digest)
            labels.append("" if stratify is None else str(item.cells.get(stratify)))
            there = there or stratify in item.cells
            shown = [(name, _plainly(cell)) for name, cell in item.shown.items() if name != dataset.recipe.data.id]
            alike.append(repr(shown) if shown else "")
        if stratify is not None and not there:
            raise InputError(f"{dataset.table.name}: no row has a column {stratify!r} to stratify by")
        return cls(tuple(ids), tuple(asked), None if stratify is None else tuple(labels), tuple(alike))

    @property
    def digest(self) -> str:
        strata = {} if self.labels is None else {"strata": list(self.labels)}
        return canonical_digest({"ids": list(self.ids), "asked": list(self.asked), **strata})

    def __len__(self) -> int:
        return len(self.ids)

    def order(self, seed: int, *, purpose: str = "") -> list[int]:
        """A random order of all places; its beginning is the pilot. Another purpose draws independently of it."""
        if self.labels is None:
            return draw_order(len(self), seed, digest=self.digest + purpose)
        return stratified_order(self.labels, seed, digest=self.digest + purpose)

    def strata(self, drawn: Sequence[int]) -> list[Stratum]:
        if self.labels is None:
            return [Stratum(len(self), len(drawn))]
        taken = Counter(self.labels[place] for place in drawn)
        return [Stratum(count, taken[label]) for label, count in sorted(Counter(self.labels).items())]

    def twins(self, drawn: Sequence[int]) -> list[dict[str, Any]]:
        """Items outside the pilot that ask what an item of the pilot asks, whatever their id, case and spacing."""
        keys = self.alike or self.asked
        inside = {keys[place]: self.ids[place] for place in drawn}
        chosen = set(drawn)
        return [
            {"item": name, "pilot_item": inside[key]}
            for place, (name, key) in enumerate(zip(self.ids, keys, strict=True))
            if key and place not in chosen and key in inside
        ]


def _plainly(cell: Any) -> Any:
    return " ".join(cell.split()).casefold() if isinstance(cell, str) else cell
