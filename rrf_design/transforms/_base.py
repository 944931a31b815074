"""The contract of a transformation: another question whose true answer follows from that of the
first.

A transformation is written once, into a recipe; it has no state. `fits` says for which answers it
is meant, `write` gives the text and how the answer must change, and `proposals` are the settings
that are worth offering. What it writes is a template over the row, as the original is. It says
`breaks`, which shared errors it is meant to break: a hope that `measure` tests, and no promise.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rrf_design.errors import InputError
from rrf_design.files import suggestion
from rrf_design.texts import digits

Options = Mapping[str, Any]
NUMBER, NUMBERS, CHOICE, TRUTH = "one number", "several numbers", "a choice", "yes or no"
DAY, CLASS, PROGRAM = "a day", "words", "a program"
"""What an answer may be."""
BRACES = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Original:
    """What is changed: a template over the row, what its answer is, and the options it may be."""

    prompt: str
    answer: str = NUMBER
    choices: tuple[str, ...] = ()
    """Empty where the answer is no choice, or the row holds the options."""
    whole: bool = False
    """A number that is always a whole one."""


@dataclass(frozen=True, slots=True)
class Transformed:
    """The other question, and how its answer follows from that of the first."""

    prompt: str
    change: Mapping[str, Any] | None = None
    """As `change` of an ask has it; None: the very same answer."""
    parse: Any = None
    """What reads it, where that is not what reads the original."""
    sums: bool = False
    """Its numbers add up to the answer of the first."""
    radius: float = 0.0
    """How far the true answer may be from what `change` says, as a share of the first one's size;
    0 where it is exact. It becomes the `uncertainty` of the relation.
    """


class Transform(ABC):
    """One way of changing a question; `options` are the keys that it takes."""

    name: str
    says: str
    """What is asked instead, in a few words."""
    breaks: str
    """The errors that it is meant not to share with the original."""
    options: tuple[str, ...] = ()

    @abstractmethod
    def unfit(self, question: Original, options: Options) -> str:
        """Why it can't be used on this question; empty where it can."""

    @abstractmethod
    def write(self, question: Original, options: Options) -> Transformed:
        """The other question; only asked for where it fits."""

    def proposals(self, question: Original) -> Iterator[Any]:
        """Settings worth offering, as `transform` of an ask has them; none by default."""
        yield from ()

    def apply(self, question: Original, options: Options) -> Transformed:
        """`write`, once keys and question are known to fit; InputError says what does not."""
        for key in options:
            if key not in self.options:
                raise InputError(f"transform {self.name!r}: unknown key {key!r}{suggestion(key, self.options)}")
        why = self.unfit(question, options)
        if why:
            raise InputError(f"transform {self.name!r}: {why}")
        return self.write(question, options)


def written(number: float | str) -> str:
    """A number as it stands in a question; a placeholder as it is."""
    return number if isinstance(number, str) else digits(number)


def is_number(value: Any) -> bool:
    """A number, or a text that becomes one row by row."""
    if isinstance(value, str):
        return BRACES.fullmatch(value.strip()) is not None
    return isinstance(value, int | float) and not isinstance(value, bool)
