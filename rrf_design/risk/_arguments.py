"""What callers give, checked in one line each: shares as the fractions their decimals say, whole
numbers, members of an enumeration.
"""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Any, TypeVar

from rrf_design.errors import InputError

Number = int | float | Decimal | Fraction
Member = TypeVar("Member", bound=StrEnum)


def share(value: Number, name: str, *, zero: bool = False) -> Fraction:
    """A number strictly between 0 and 1 (or 0 too) as the fraction its decimals say."""
    try:
        if isinstance(value, bool):
            raise TypeError
        found = value if isinstance(value, Fraction) else Fraction(str(value))
    except (TypeError, ValueError, ZeroDivisionError):
        raise InputError(f"{name} should be a number between 0 and 1, not {value!r}") from None
    if not (0 < found < 1 or (zero and found == 0)):
        raise InputError(f"{name} is {value}, and should lie strictly between 0 and 1")
    return found


def choice(kind: type[Member], value: str, name: str) -> Member:
    """A member of an enumeration by its value; InputError names those there are."""
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(repr(str(member)) for member in kind)
        raise InputError(f"{name} should be one of {known}, not {value!r}") from None


def whole(value: Any, name: str, *, least: int = 0, most: int | None = None) -> int:
    """A whole number within its limits."""
    try:
        found = int(value)
        if isinstance(value, (bool, str)) or found != value:
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} should be a whole number, not {value!r}") from None
    if found < least or (most is not None and found > most):
        limits = f"at least {least}" if most is None else f"between {least} and {most}"
        raise InputError(f"{name} is {found}, and should be {limits}")
    return found
