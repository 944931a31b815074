"""source = "person", or { person = "What to look at" }: a review queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from rrf_design.acquisition.sources.base import Asked, Fetched, Place, Source
from rrf_design.errors import InputError

if TYPE_CHECKING:
    from rrf_design.blocks import Anchor


class Person(Source):
    """A person answers through the review queue; the run goes on meanwhile."""

    kind = "person"
    local = False
    deferred = True

    def __init__(self, anchor: Anchor, rows: int, *, question: str) -> None:
        super().__init__(anchor, rows)
        self.question = question

    @classmethod
    def read(cls, place: Place, options: dict[str, Any]) -> Self:
        question = options.pop("person")
        return cls(place.anchor, place.rows, question="" if question is True else str(question))

    def fetch(self, asked: Asked) -> Fetched:
        raise InputError(f"anchor {self.anchor.id!r}: a person answers it; fill in the review file and read it back")
