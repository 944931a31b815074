"""Transformations by name: those of the catalogue, then those that other packages offer as entry
points of the group ``rrf_design.transforms``, each a class without arguments or a function that
gives one.

    transform = "cents"                  a unit by its name
    transform = { scale = 3 }            the key names it, others are further settings
    transform = "permute-options"        without settings
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from rrf_design.errors import InputError
from rrf_design.files import suggestion
from rrf_design.transforms._base import Options, Original, Transform, Transformed
from rrf_design.transforms._options import Definitions, Negation, OneAgainstRest, PermuteOptions
from rrf_design.transforms._programs import Decomposed, RenamedArguments, Restated
from rrf_design.transforms._quantities import (
    UNITS,
    ChangedRow,
    Complement,
    DaysSince,
    IsoDay,
    LineItems,
    Plus,
    Rounded,
    Scale,
    SummedParts,
    Unit,
)
from rrf_design.transforms._wording import QuoteFirst, RubricOrder, Wording

_LISTED = (
    *(
        ChangedRow(),
        Wording(),
        QuoteFirst(),
        RubricOrder(),
        Unit(),
        Scale(),
        Plus(),
        Complement(),
        SummedParts(),
        LineItems(),
    ),
    *(Rounded(), PermuteOptions(), Negation(), OneAgainstRest(), Definitions(), DaysSince()),
    *(IsoDay(), RenamedArguments(), Restated(), Decomposed()),
)
_CATALOGUE: dict[str, Transform] = {one.name: one for one in _LISTED}
"""In the order in which a table of settings is read: a unit or a changed row may have a scale."""
_OTHER_KEYS = {"shift": "plus", "swap": "permute-options"}


@cache
def _offered() -> dict[str, EntryPoint]:
    return {one.name: one for one in entry_points(group="rrf_design.transforms") if one.name not in _CATALOGUE}


def names() -> tuple[str, ...]:
    """The transformations there are: the catalogue's, then those of other packages."""
    return (*_CATALOGUE, *_offered())


@cache
def get(name: str) -> Transform:
    """The transformation of this name; InputError with the nearest one."""
    if name in _CATALOGUE:
        return _CATALOGUE[name]
    if name not in _offered():
        known = (*names(), *UNITS)
        raise InputError(f"unknown transform {name!r}{suggestion(name, known)}; known: {', '.join(known)}")
    try:
        made = _offered()[name].load()()
    except Exception as error:  # another package's code: whatever it raises, the caller needs one line
        raise InputError(f"transform {name!r}: its package can't be loaded ({error})") from None
    if not isinstance(made, Transform):
        raise InputError(f"transform {name!r}: its package gives {type(made).__name__}, which is no Transform")
    return made


def transformed(spec: Any, question: Original) -> Transformed:
    """The other question that `spec` asks for; InputError where it does not fit.

    >>> from rrf_design.transforms import Original, transformed
    >>> found = transformed("cents", Original("Total of {{ text }}?"))
    >>> found.prompt.splitlines()[-1], found.change
    ('State the value in cents.', {'scale': 100.0})
    """
    name, options = read_spec(spec)
    return get(name).apply(question, options)


def read_spec(spec: Any) -> tuple[str, Options]:
    """Name and settings, as `transform` of an ask gives them."""
    if isinstance(spec, str):
        return ("unit", {"unit": spec}) if spec in UNITS else (get(spec).name, {})
    if not isinstance(spec, dict) or not spec:
        raise InputError("transform: give scale, shift or both, a unit with its scale, swap, or the name of one")
    for name in names():
        if name in spec:
            return name, spec
    for key, name in _OTHER_KEYS.items():
        if key in spec:
            return name, spec
    key = next(iter(spec))
    raise InputError(f"transform: no transformation is called {key!r}{suggestion(str(key), names())}")


def candidates(question: Original) -> Iterator[tuple[Transform, Any]]:
    """Every transformation that fits a question, with the settings that it proposes."""
    for name in names():
        transform = get(name)
        for spec in transform.proposals(question):
            if not transform.unfit(question, read_spec(spec)[1]):
                yield transform, spec
