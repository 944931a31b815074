"""source = "expression: (a + b) * 3": exact arithmetic over the node's variables."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

from rrf_design.acquisition.sources.base import Asked, Fetched, Place, Source
from rrf_design.known import expression_of, known_value

if TYPE_CHECKING:
    from rrf_design.blocks import Anchor


class Expression(Source):
    kind = "expression"
    instant = True

    def __init__(self, anchor: Anchor, rows: int, *, text: str, numbers: tuple[Fraction, ...]) -> None:
        super().__init__(anchor, rows)
        self.text, self.numbers = text, numbers

    @classmethod
    def read(cls, place: Place, options: dict[str, Any]) -> Self:
        options.pop("expression")
        options.pop("variables", None)
        numbers, named = known_value(place.problem, place.anchor), expression_of(place.anchor)
        assert numbers is not None
        assert named is not None
        return cls(place.anchor, place.rows, text=named[0], numbers=numbers)

    def fetch(self, asked: Asked) -> Fetched:
        exact = [str(number) for number in self.numbers]
        return self.fitting(self.numbers, "computed", evidence={"expression": self.text, "exact": exact})
