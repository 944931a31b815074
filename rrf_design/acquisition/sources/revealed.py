"""source = "value" (also: no source): the value in the file, revealed on purchase."""

from __future__ import annotations

from typing import Any, Self

from rrf_design.acquisition.sources.base import Asked, Fetched, Place, Source
from rrf_design.errors import InputError


class KnownValue(Source):
    kind = "value"
    instant = True

    @classmethod
    def read(cls, place: Place, options: dict[str, Any]) -> Self:
        if place.anchor.value is None:
            raise InputError("it has no value and no source, so it can't be bought; give one of them")
        options.pop("value", None)
        return cls(place.anchor, place.rows)

    def fetch(self, asked: Asked) -> Fetched:
        value = self.anchor.value
        assert value is not None
        return self.fitting(value if isinstance(value, tuple) else (value,) * self.rows, "revealed")
