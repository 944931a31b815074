"""How a document of promises is read, and how what was made again is compared with it.

`compare` is the one place that compares; a `Told` figure may be written in several ways, or be
weaker than what is proven. Readers refuse what is not of the form, in one line.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from rrf_design.errors import InputError, Refused

ANEW = "if another version of rrf-design wrote it, make it anew with this one"


DERIVED = ("because", "sentence", "voided_by", "random_checks", "holds", "wrong_items")
"""What version 1 stored of every document, and version 2 leaves to its reader."""


DERIVED_INSIDE = {
    "choice": ("chosen", "confidence", "statement", "piloted", "population", "limits"),
    "record": ("population", "at_any_stop", "prior", "confidence", "bound"),
}


DERIVED_OF_TESTS = ("counts", "p", "level", "proven")


Arguments = ParamSpec("Arguments")


Result = TypeVar("Result")


Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Told:
    """A figure that may be written in several ways, or be weaker than what is proven."""

    value: Any
    accepts: Callable[[Any], bool]


def total(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Malformed input is a refusal with its reason, never another error."""

    @wraps(function)
    def guarded(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        try:
            return function(*args, **kwargs)
        except Refused:
            raise
        except InputError as error:
            raise Refused(str(error)) from None
        except KeyError as error:
            raise Refused(f"{error} is missing; {ANEW}") from None
        except (TypeError, ValueError, AttributeError, IndexError, ArithmeticError, RecursionError) as error:
            raise Refused(f"the document can't be read: {type(error).__name__}, {error}") from None

    return guarded


def inputs_of(made: Mapping[str, Any]) -> dict[str, Any]:
    """What version 2 stores of a document."""
    found: dict[str, Any] = {key: value for key, value in made.items() if key not in DERIVED}
    for part, derived in DERIVED_INSIDE.items():
        if part in found:
            found[part] = {key: value for key, value in found[part].items() if key not in derived}
    if "choice" in found:
        tests = found["choice"]["policies"]
        found["choice"]["policies"] = [{k: v for k, v in one.items() if k not in DERIVED_OF_TESTS} for one in tests]
    return found


def compare(stored: Any, made: Any, where: str) -> None:
    """Refused unless the stored value is the one that was made: the one place that compares."""
    if isinstance(made, Told):
        if not made.accepts(stored):
            raise Refused(f"{where}: {stored!r:.60} is told; the inputs say {made.value!r:.60}")
    elif isinstance(made, Mapping):
        if not isinstance(stored, Mapping):
            raise Refused(f"{where or 'the document'}: should be an object")
        for key in sorted(set(made) ^ set(stored), key=str):
            fault = "missing" if key in made else "unknown"
            raise Refused(f"{where or 'the document'}: {key!r:.40} is {fault}; {ANEW}")
        for key, value in made.items():
            compare(stored[key], value, f"{where}.{key}" if where else key)
    elif isinstance(made, list):
        if not isinstance(stored, list) or len(stored) != len(made):
            raise Refused(f"{where}: should be a list of {len(made)}")
        for one, value in zip(stored, made, strict=True):
            compare(one, value, f"{where}[]")
    elif stored is not made and (isinstance(stored, bool) != isinstance(made, bool) or stored != made):
        raise Refused(f"{where}: {stored!r:.60} is told; the inputs say {made!r:.60}")


def filled(made: Any, stored: Any) -> Any:
    """What was made, in the words of the document where they may differ."""
    if isinstance(made, Told):
        return made.value if stored is None else stored
    if isinstance(made, Mapping):
        here = stored if isinstance(stored, Mapping) else {}
        extra = {key: value for key, value in here.items() if key not in made}
        return {**{key: filled(value, here.get(key)) for key, value in made.items()}, **extra}
    if isinstance(made, list):
        listed = stored if isinstance(stored, list) and len(stored) == len(made) else [None] * len(made)
        return [filled(value, one) for value, one in zip(made, listed, strict=True)]
    return made


def written(value: Fraction) -> str:
    """A fraction as the decimal it is, or as a quotient where it is none."""
    rest = value.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    text = format(float(value), "f").rstrip("0").rstrip(".") if rest == 1 else ""
    return text if text and Fraction(text) == value else f"{value.numerator}/{value.denominator}"


_NUMBER = re.compile(r"\d{1,40}(\.\d{1,40})?|\d{1,60}/\d{1,60}")


def a_fraction(value: Any, name: str) -> Fraction:
    """Decimals or a quotient, of bounded length: no forged exponent costs the reader's memory."""
    text = str(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else ""
    if not _NUMBER.fullmatch(text):
        raise Refused(f"{name} should be a plain number, not {str(value)[:40]!r}")
    return Fraction(text)


def a_number(value: Any, name: str) -> Fraction:
    """A number of a document as the fraction its decimals say; texts are refused."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise Refused(f"{name} should be a number, not {value!r:.40}")
    return Fraction(str(value))


def equal_to(value: Any, exactly: Fraction) -> Told:
    """A figure that is stored as a number or as a text of one."""
    of_text = isinstance(value, str)
    return Told(value, lambda v: (a_fraction if of_text else a_number)(v, "it") == exactly)


def worded(sentence: str, remedy: str) -> Told:
    """A sentence that version 1 stored."""

    def said(value: Any) -> bool:
        if value != sentence:
            raise Refused(
                "the sentence is not what the inputs prove, in the words of this version; where an earlier one wrote"
                f" it, {remedy}"
            )
        return True

    return Told(sentence, said)


def at_least(value: Any, least: Fraction, most: int) -> Told:
    return Told(value, lambda v: least <= a_number(v, "it") <= most)


def about(value: Any, count: int, items: int) -> bool:
    """Is a share this count of so many items, up to rounding?"""
    return abs(a_number(value, "delivered_share") * items - count) <= Fraction(1, 10**6)


def a_share(value: Fraction, name: str, *, zero: bool = False) -> Fraction:
    if not (0 < value < 1 or (zero and value == 0)):
        raise Refused(f"{name} is {float(value):g}, and should lie between 0 and 1")
    return value


def a_confidence(value: Any) -> Fraction:
    return a_share(a_number(value, "confidence"), "confidence")


def a_whole(value: Any, name: str, *, least: int = 0, most: int | None = None) -> int:
    if type(value) is not int or value < least or (most is not None and value > most):
        raise Refused(f"{name} should be a whole number from {least} to {most}, not {str(value)[:40]}")
    return value


def one_of(value: Any, known: Sequence[str]) -> str:
    if type(value) is not str or value not in known:
        raise Refused(f"{value!r:.40} should be one of {', '.join(known)}")
    return value


def a_flag(value: Any, name: str) -> bool:
    if not isinstance(value, bool):
        raise Refused(f"{name} should be true or false, not {value!r:.40}")
    return value


def a_list(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise Refused(f"{name} should be a list")
    return value


def some_names(value: Any, name: str) -> list[str]:
    names: list[str] = a_list(value, name)
    if any(type(one) is not str for one in names) or len(set(names)) != len(names):
        raise Refused(f"{name}: should be a list of names, no two the same")
    return names


def typed(value: Any, kinds: Any, name: str, words: str) -> Any:
    if not isinstance(value, kinds) or isinstance(value, bool):
        raise Refused(f"{name}: should be {words}, not {value!r:.40}")
    return value
