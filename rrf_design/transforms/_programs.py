"""Transformations of a program: other names, the task in its own words first, small functions.

An answer is what the program returns on the tests of the row, and tests call by position; so none
of these changes the true answer, and all are exact. Another programming language is not among them:
the sandbox runs Python alone, and what can't be run on the same tests has no answer to compare.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rrf_design.transforms._base import PROGRAM, Options, Original, Transform, Transformed


class _OfPrograms(Transform):
    """The very same function, written in another way: one more sentence says how."""

    sentence: str

    def unfit(self, question: Original, options: Options) -> str:
        fits = question.answer == PROGRAM
        return "" if fits else f'it changes a program (parse = "code"), and the answer is {question.answer}'

    def write(self, question: Original, options: Options) -> Transformed:
        return Transformed(f"{question.prompt}\n{self.sentence}")

    def proposals(self, question: Original) -> Iterator[Any]:
        yield self.name


class RenamedArguments(_OfPrograms):
    """Other names for the arguments: those that are given, in their order, or long ones."""

    name = "renamed-arguments"
    says = "with other names for the arguments"
    breaks = "a program that is recited because its names are well known"
    options = ("renamed-arguments",)

    def unfit(self, question: Original, options: Options) -> str:
        names = options.get("renamed-arguments", ["long"])
        fine = isinstance(names, list | tuple) and names and all(isinstance(n, str) and n.isidentifier() for n in names)
        if not fine or len(set(names)) < len(names):
            return 'give renamed-arguments = the new names in their order, as in ["first", "second"]'
        return super().unfit(question, options)

    def write(self, question: Original, options: Options) -> Transformed:
        names = options.get("renamed-arguments")
        called = "by a long name that says what it is" if names is None else f"in their order {', '.join(names)}"
        sentence = f"In the code call {'each argument' if names is None else 'the arguments'} of the function {called}."
        return Transformed(f"{question.prompt}\n{sentence}")


class Restated(_OfPrograms):
    """An equivalent specification, in the model's own words: what was misread shows twice."""

    name = "restated"
    says = "with the task restated first"
    breaks = "a task that is taken for a well-known one; not a task that is misread each time"
    options = ("restated",)
    sentence = (
        "Begin the code with comments: the task in your own words, and for two inputs, worked out by hand, what must be"
        " returned. Then write the function so that it returns just that."
    )


class Decomposed(_OfPrograms):
    """Several small functions, one for each step."""

    name = "decomposed"
    says = "in small functions, one for each step"
    breaks = "a slip in one long expression"
    options = ("decomposed",)
    sentence = "Write it as several small functions, one for each step of the task, that the function asked for calls."
