"""source = { label = "sport" }: a check of answers that are classes, whose class is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from rrf_design.acquisition.sources.base import Asked, Fetched, Place, Source
from rrf_design.errors import InputError

if TYPE_CHECKING:
    from rrf_design.blocks import Anchor


class Label(Source):
    """The class itself; which coordinate it is, the run's classes know."""

    kind = "label"
    instant = True

    def __init__(self, anchor: Anchor, rows: int, *, label: str) -> None:
        super().__init__(anchor, rows)
        self.label = label

    @classmethod
    def read(cls, place: Place, options: dict[str, Any]) -> Self:
        label = options.pop("label")
        if not isinstance(label, str) or not label:
            raise InputError(f"source: label is {label!r:.40}; give the class as text")
        return cls(place.anchor, place.rows, label=label)

    def fetch(self, asked: Asked) -> Fetched:
        return Fetched("known", None, evidence={"reply": {"text": self.label}})
