"""The parser contract: text goes in, a vector of the node's dimension, a class or a named failure
comes out.

A parse failure is stored as such. Coercing it to zero would turn a syntax error into a valid
zero-valued answer, so a failed ``Parsed`` carries no value at all. `INVALID` and `VALID` are the
words for an answer without and with a value, wherever answers are read from.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from typing import Any

from rrf_design.errors import InputError

# Beyond this an integer has no exact float64, and a relation could not be checked on it.
LARGEST_EXACT = 2**53
SMALLEST = 2.0**-1022
"""Below this float64 loses digits, down to a zero that nobody answered."""

SHORT = 200
"""Texts of up to so many characters are read once where they come again."""


class ParseStatus(StrEnum):
    """``parsed``, or why there is no value.

    The lower half is for code, and named as the sandbox names it.
    """

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
    """``value`` has the node's dimension, or is None.

    ``canonical`` is the exact answer as text ("1/3", "yes no").

    An open answer (a literal, a label, a call) has a ``label`` and no value: its class, to be
    compared with those of the other answers of its item.

    ``strict_ok`` is False when the text broke the requested format and the parser had to look for
    the answer.
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
    """Text to a vector of ``dim`` numbers, or to a class where ``dim`` is 0.

    Stateless; ``spec`` rebuilds it through ``parsers.get``.
    """

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
        """JSON schema of an answer that it reads, for adapters that can ask for one; None where the
        answer is no JSON.
        """
        return None

    @property
    def spec(self) -> Mapping[str, Any]:
        return {"name": self.name}


def parse_stated(parser: Parser, text: str) -> Parsed:
    """What a table or a person states: they write a value alone where a model was asked for it
    inside JSON.
    """
    found = parser.parse(text)
    inner = getattr(parser, "of", None)
    return found if found.ok or not isinstance(inner, Parser) else inner.parse(text)


def failure(detail: str, status: ParseStatus = ParseStatus.PARSE_FAILURE) -> Parsed:
    return Parsed(status, detail=detail)


@lru_cache(1024)
def _short(parser: Parser, text: str) -> Parsed:
    return parser.parse(text)


def parse_each(texts: Sequence[tuple[Parser, str]]) -> list[Parsed]:
    """What many texts say; short ones are read once where they come again, as wordings that agree
    do.
    """
    return [_short(parser, text) if len(text) <= SHORT else parser.parse(text) for parser, text in texts]


def labelled(label: str, *, strict: bool, said: str = "") -> Parsed:
    """An open answer: the class ``label``, and what was ``said`` where that is more than its
    class.
    """
    return Parsed(ParseStatus.PARSED, None, strict, said or label, label=label)


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


INVALID = (
    "parse failure",
    "timeout",
    "refusal",
    "missing",
    "error",
    "ambiguous",
    "out of range",
    "compile failure",
    "rejected",
    "memory",
    "crash",
    "non-integer",
    "vetoed",
)
"""Why a node has no value: the parsers' words, and what can happen before a parser sees
anything.
"""
VALID = ("parsed", "valid", "ok")
"""What a record may say of an answer that is there."""


def unread_status(said: Any) -> str | None:
    """Why there is no answer, as a record says it; None where there may be one; InputError for a
    word that is neither.
    """
    if said is None or said in VALID:
        return None
    if said not in INVALID:
        near = get_close_matches(str(said), INVALID, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise InputError(f"unknown status {said!r:.40}{hint}; known: {', '.join(INVALID)}")
    return str(said)


RECORDED = "rrf-answer"
"""The format of an answer as a run keeps it (`show --answers`)."""
_OUTCOMES = {"answered": None, "timeout": "timeout", "refused": "refusal", "empty": "missing"}
"""What a call that brought no text to read is called where answers are read; others are errors."""


def recorded_response(record: Mapping[str, Any]) -> dict[str, Any] | None:
    """What a run keeps of an answer as a response: its text (and the value that was read of it), or
    the status that says why there is none. None where it was said to a check.
    """
    if record.get("source"):
        return None
    reply, parsed = record.get("reply"), record.get("parsed")
    if not isinstance(reply, Mapping) or not isinstance(record.get("node"), str):
        raise InputError("a recorded answer without its reply or its node; `show RUN --answers FILE` writes both")
    status = _OUTCOMES.get(str(reply.get("outcome")), "error")
    if status is not None or not isinstance(reply.get("text"), str):
        return {"status": status or "missing"}
    value = parsed.get("value") if isinstance(parsed, Mapping) else None
    return {"text": reply["text"]} | ({} if value is None else {"value": value})
