"""Arguments that mean the same in every public function: the noise in its long and its short form,
seconds, a data set in the place of a problem, and shares.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from rrf_design.errors import InputError
from rrf_design.noise import Noise

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from rrf_design.checker.noise import NoiseKind
    from rrf_design.questions import Dataset


def noise_of(
    given: Noise | None = None,
    *,
    epsilon: float | None = None,
    sigma: float | None = None,
    confidence: float | None = None,
    kind: NoiseKind | str | None = None,
    amplitude: float | None = None,
) -> Noise:
    """The noise that a function was given, with the short forms that were given beside it."""
    short: dict[str, Any] = {
        "epsilon": epsilon,
        "sigma": sigma,
        "confidence": confidence,
        "kind": kind,
        "amplitude": amplitude,
    }
    return replace(given or Noise(), **{name: value for name, value in short.items() if value is not None})


def seconds_of(time_limit: float | None) -> float | None:
    """A time limit as searches take it: None where there is none, also for an infinite one."""
    if time_limit is not None and not time_limit >= 0:
        raise InputError(f"time_limit: must be a number of seconds, not {time_limit!r}")
    return None if time_limit == float("inf") else time_limit


def is_dataset(given: object) -> TypeIs[Dataset]:
    """Whether a function of a problem was called with a data set, for each of its items."""
    from rrf_design.problem import Problem

    if isinstance(given, Problem):
        return False
    from rrf_design.questions.datasets import Dataset

    return isinstance(given, Dataset)


def share_number(value: float | str, name: str = "a share") -> float:
    """A share as a number or in words of people: 0.05, "0.05" or "5%"; InputError for anything
    else.

    >>> share_number("2.5 %")
    0.025
    """
    text = str(value).strip()
    try:
        if isinstance(value, bool):
            raise ValueError
        found = Fraction(text[:-1].strip()) / 100 if text.endswith("%") else Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise InputError(f"{name} {value!r:.40}: should be a share, as in 0.05 or 5%") from None
    return float(found)
