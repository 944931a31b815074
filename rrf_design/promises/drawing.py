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

    @classmethod
    def of(cls, dataset: Dataset, *, stratify: str | None = None) -> Population:
        if stratify is not None:
            need_column(dataset.table, stratify, "stratify")
            if stratify == dataset.recipe.data.gold_column:
                raise InputError(f"--stratify {stratify}: the draw must not see the gold column")
        ids, asked, labels = [], [], []
        for item in dataset.items_in_order():
            ids.append(item.id)
            asked.append(item.digest)
            labels.append("" if stratify is None else str(item.cells.get(stratify)))
        return cls(tuple(ids), tuple(asked), None if stratify is None else tuple(labels))

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
        """Items outside the pilot that ask exactly what an item of the pilot asks."""
        inside = {self.asked[place]: self.ids[place] for place in drawn}
        chosen = set(drawn)
        return [
            {"item": name, "pilot_item": inside[asked]}
            for place, (name, asked) in enumerate(zip(self.ids, self.asked, strict=True))
            if place not in chosen and asked in inside
        ]
