"""Values that need no model and no program: in the file, computed, a known class, or a person's.

source = "value" (also: no source)          the value in the file, revealed on purchase
source = { label = "sport" }                a check of answers that are classes
source = "expression: (a + b) * 3"          exact arithmetic over the node's variables
source = "person", or { person = "What to look at" }    a review queue
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rrf_design.acquisition.sources.base import Asked, Fetched, Place, Source
from rrf_design.checks import expression_of, known_value
from rrf_design.errors import InputError

if TYPE_CHECKING:
    pass


class KnownValue(Source):
    kind = "value"
    instant = True

    def __init__(self, place: Place, options: dict[str, Any]) -> None:
        super().__init__(place, options)
        if self.anchor.value is None:
            raise InputError("it has no value and no source, so it can't be bought; give one of them")
        options.pop("value", None)

    def fetch(self, asked: Asked) -> Fetched:
        value = self.anchor.value
        assert value is not None
        return self.fitting(value if isinstance(value, tuple) else (value,) * self.rows, "revealed")


class Label(Source):
    """The class itself; which coordinate it is, the run's classes know."""

    kind = "label"
    instant = True

    def __init__(self, place: Place, options: dict[str, Any]) -> None:
        super().__init__(place, options)
        self.label = options.pop("label")
        if not isinstance(self.label, str) or not self.label:
            raise InputError(f"source: label is {self.label!r:.40}; give the class as text")

    def fetch(self, asked: Asked) -> Fetched:
        return Fetched("known", None, evidence={"reply": {"text": self.label}})


class Expression(Source):
    kind = "expression"
    instant = True

    def __init__(self, place: Place, options: dict[str, Any]) -> None:
        super().__init__(place, options)
        options.pop("expression")
        options.pop("variables", None)
        numbers, named = known_value(place.problem, place.anchor), expression_of(place.anchor)
        assert numbers is not None
        assert named is not None
        self.text, self.numbers = named[0], numbers

    def fetch(self, asked: Asked) -> Fetched:
        exact = [str(number) for number in self.numbers]
        return self.fitting(self.numbers, "computed", evidence={"expression": self.text, "exact": exact})


class Person(Source):
    """A person answers through the review queue; the run goes on meanwhile."""

    kind = "person"
    local = False
    deferred = True

    def __init__(self, place: Place, options: dict[str, Any]) -> None:
        super().__init__(place, options)
        question = options.pop("person")
        self.question = "" if question is True else str(question)

    def fetch(self, asked: Asked) -> Fetched:
        raise InputError(f"anchor {self.anchor.id!r}: a person answers it; fill in the review file and read it back")
