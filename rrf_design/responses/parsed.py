"""The parser contract: text goes in, a vector of the node's dimension, a class or a named failure comes out.

A parse failure is stored as such. Coercing it to zero would turn a syntax error into a valid zero-valued answer, so a
failed ``Parsed`` carries no value at all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any

# Beyond this an integer has no exact float64, and a relation could not be checked on it.
LARGEST_EXACT = 2**53
SMALLEST = 2.0**-1022
"""Below this float64 loses digits, down to a zero that nobody answered."""


class ParseStatus(StrEnum):
    """``parsed``, or why there is no value. The lower half is for code, and named as the sandbox names it."""

    PARSED = "parsed"
    PARSE_FAILURE = "parse failure"
    AMBIGUOUS = "ambiguous"  # several readings, none preferred: yes and no, two of the choices
    OUT_OF_RANGE = "out of range"  # a number that float64 can't hold
    COMPILE_FAILURE = "compile failure"
    REJECTED = "rejected"
    TIMEOUT = "timeout"
    MEMORY = "memory"
    CRASH = "crash"
    NON_INTEGER = "non-integer"


@dataclass(frozen=True, slots=True)
class Parsed:
    """``value`` has the node's dimension, or is None. ``canonical`` is the exact answer as text ("1/3", "yes no").

    An open answer (a literal, a label, a call) has a ``label`` and no value: its class, to be compared with those of the
    other answers of its item.

    ``strict_ok`` is False when the text broke the requested format and the parser had to look for the answer.
    """

    status: ParseStatus
    value: tuple[float, ...] | None = None
    strict_ok: bool = False
    canonical: str = ""
    detail: str = ""
    label: str | None = None

    def __post_init__(self) -> None:
        if self.value is not None and self.label is not None:
            raise ValueError("an answer is a vector or a class, not both")
        if (self.value is not None or self.label is not None) != (self.status is ParseStatus.PARSED):
            raise ValueError(f"a value comes with status 'parsed' and with no other, not {self.status.value!r}")

    @property
    def ok(self) -> bool:
        return self.status is ParseStatus.PARSED

    def document(self) -> dict[str, Any]:
        document = {
            "status": self.status.value,
            "value": None if self.value is None else list(self.value),
            "strict_ok": self.strict_ok,
            "canonical": self.canonical,
            "detail": self.detail,
        }
        return document if self.label is None else {**document, "label": self.label}


class Parser(ABC):
    """Text to a vector of ``dim`` numbers, or to a class where ``dim`` is 0. Stateless; ``spec`` rebuilds it through ``parsers.get``."""

    name: str
    dim: int = 1

    @abstractmethod
    def parse(self, text: str) -> Parsed:
        """Read one answer; never raises, whatever the text is."""

    def parse_many(self, texts: Sequence[str]) -> tuple[Parsed, ...]:
        return tuple(self.parse(text) for text in texts)

    @property
    def grammar(self) -> str | None:
        """GBNF of the strict format, for adapters that decode under a grammar."""
        return None

    @property
    def schema(self) -> Mapping[str, Any] | None:
        """JSON schema of an answer that it reads, for adapters that can ask for one; None where the answer is no JSON."""
        return None

    @property
    def spec(self) -> Mapping[str, Any]:
        return {"name": self.name}


def failure(detail: str, status: ParseStatus = ParseStatus.PARSE_FAILURE) -> Parsed:
    return Parsed(status, detail=detail)


def labelled(label: str, *, strict: bool) -> Parsed:
    """An open answer: the class ``label``."""
    return Parsed(ParseStatus.PARSED, None, strict, label, label=label)


def numbers(values: Sequence[Fraction | int], *, strict: bool, canonical: str) -> Parsed:
    """A parsed vector, unless float64 would change an integer of it, overflow or underflow."""
    if any(value.denominator == 1 and abs(value.numerator) > LARGEST_EXACT for value in values):
        return failure("an integer beyond 2**53 has no exact float64", ParseStatus.OUT_OF_RANGE)
    try:
        floats = tuple(float(value) for value in values)
    except OverflowError:
        return failure("a number beyond the range of float64", ParseStatus.OUT_OF_RANGE)
    if any(value and abs(near) < SMALLEST for value, near in zip(values, floats, strict=True)):
        return failure("a number too small for float64, which would make another of it", ParseStatus.OUT_OF_RANGE)
    return Parsed(ParseStatus.PARSED, floats, strict, canonical)
