"""What a person said, as a value: plain numbers, or an answer in the words of the question's parser.

Numbers are read as people write them, or not at all. One reader for every way in which it comes back (review lists of `repair` and of `acquire`, labels kept from an earlier run).
"""

from __future__ import annotations

from rrf_design.errors import InputError
from rrf_design.responses.numeric import DecimalParser
from rrf_design.responses.parsed import Parser

Numbers = tuple[float, ...]


def reviewed_value(name: str, said: str, parser: Parser | None, *, rows: int | None = None) -> str | Numbers:
    """The class that a person named, where the parser reads classes, else numbers: as many as `rows`, or as the parser has."""
    if parser is not None and parser.dim == 0:
        found = parser.parse(said)
        if found.label is None:
            raise InputError(f"review {name!r}: {said!r:.60} is no answer to the parser {parser.name!r}")
        return found.label
    wanted = rows or (1 if parser is None else parser.dim)
    numbers = _plain(said, wanted)
    if numbers is not None:
        return numbers
    for reader in (parser, DecimalParser()):  # people write 67,41 EUR where a model was asked for JSON
        value = reader.parse(said).value if reader is not None and reader.dim == wanted else None
        if value is not None:
            return value
    count = "a number" if wanted == 1 else f"{wanted} numbers"
    raise InputError(f"review {name!r}: {said!r:.60} is neither {count} nor an answer to the question")


def _plain(said: str, wanted: int) -> Numbers | None:
    bare = said.replace(";", " ")
    for text in (bare, bare.replace(",", " ")) if wanted > 1 else (bare,):  # between two numbers a comma may stand, too
        try:
            numbers = tuple(float(part) for part in text.split())
        except ValueError:
            continue
        if len(numbers) == wanted and all(abs(x) < float("inf") for x in numbers):
            return numbers
    return None
