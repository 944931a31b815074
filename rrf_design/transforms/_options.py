"""Transformations of a choice: the options in another order, the opposite question, one option
against the rest, what the options mean.

Answers are one-hot vectors, so these are permutations and a selection of entries, and exact.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from rrf_design.transforms._base import BRACES, CHOICE, TRUTH, Options, Original, Transform, Transformed


class PermuteOptions(Transform):
    """The same options in another order.

    Lettered lines (`A) …`) change what their letter means, so the answer is permuted; options that
    are listed by words only change places, and the answer stays. What a sentence says of an option
    stays as it is. With `swap` two
    columns are exchanged, and `change` of the ask says what that does.
    """

    name = "permute-options"
    says = "the options in another order"
    breaks = "a preference for a place or a letter"
    options = ("permute-options", "swap")

    def unfit(self, question: Original, options: Options) -> str:
        if "swap" in options:
            return _swap_fault(question.prompt, options["swap"])
        if not question.choices:
            return f"it needs choices that are the same for every row, and the answer is {question.answer}"
        order, count = self._order(question, options), len(question.choices)
        if sorted(order) != list(range(count)) or order == list(range(count)):
            return f"{order} is no other order of 0..{count - 1}"
        if _lettered(question) is None and not _named(question):
            return "the prompt does not list the options one by one, as lines (A) … or as words with commas between"
        return ""

    def _order(self, question: Original, options: Options) -> list[int]:
        """Entry i: which of the old options stands at place i now."""
        count = len(question.choices)
        given = options.get("permute-options")
        return [*range(1, count), 0] if given in (None, True) else list(given)

    def write(self, question: Original, options: Options) -> Transformed:
        if "swap" in options:
            return Transformed(_swapped(question.prompt, options["swap"]))
        order = self._order(question, options)
        lines = _lettered(question)
        if lines is not None:
            return Transformed(_moved(question.prompt, lines, order), {"permute": order})
        prompt = question.prompt
        for places in reversed(_named(question)):  # from the end, so that the places before stay where they are
            prompt = _moved(prompt, places, order)
        return Transformed(prompt)

    def proposals(self, question: Original) -> Iterator[Any]:
        yield self.name


Span = tuple[int, int]


def _lettered(question: Original) -> list[Span] | None:
    """Where the contents of the lettered lines stand; None where they are not all there, once."""
    found = []
    for option in question.choices:
        pattern = re.compile(rf"^[ \t]*\(?{re.escape(option)}[).:][ \t]*(\S.*?)[ \t]*$", re.MULTILINE)
        hits = list(pattern.finditer(question.prompt)) if len(option) == 1 else []
        if len(hits) != 1:
            return None
        found.append(hits[0].span(1))
    return found


_MARKS = r"[\s,;/|:\"'`()\[\]*•-]*"
_BETWEEN = re.compile(
    rf"{_MARKS}(?:\b(?:or|and|oder|und|ou|et|o|y)\b)?{_MARKS}(?:\b(?:an?|the|eine?|une?)\b)?{_MARKS}", re.IGNORECASE
)
"""What may stand between two options of a list; anything else is a sentence about them."""


def _named(question: Original) -> list[list[Span]]:
    """Where the options stand in lists, as words outside of placeholders; for each list their
    places in the order of the choices.
    """
    hidden = BRACES.sub(lambda part: "\0" * len(part[0]), question.prompt)
    words = sorted(question.choices, key=len, reverse=True)
    if any(len(word) < 2 for word in words):
        return []
    either = "|".join(map(re.escape, words))
    hits = list(re.finditer(rf"(?<!\w)(?:{either})(?!\w)", hidden))
    found, at, count = [], 0, len(words)
    while at + count <= len(hits):
        run = hits[at : at + count]
        gaps = (hidden[one.end() : other.start()] for one, other in pairwise(run))
        if len({hit[0] for hit in run}) == count and all(_BETWEEN.fullmatch(gap) for gap in gaps):
            spans = {hit[0]: hit.span() for hit in run}
            found.append([spans[option] for option in question.choices])
            at += count
        else:
            at += 1
    return found


def _moved(text: str, places: Sequence[Span], order: Sequence[int]) -> str:
    """The text with what stood at place order[i] at place i."""
    pieces = {places[i]: text[slice(*places[order[i]])] for i in range(len(places))}
    found, at = [], 0
    for start, end in sorted(pieces):
        found += [text[at:start], pieces[start, end]]
        at = end
    return "".join([*found, text[at:]])


def _swap_fault(prompt: str, columns: Any) -> str:
    if not isinstance(columns, list | tuple) or len(columns) != 2 or not all(isinstance(c, str) for c in columns):
        return "swap names two columns"
    spoken = " ".join(BRACES.findall(prompt))
    gone = [name for name in columns if not re.search(rf"\b{re.escape(name)}\b", spoken)]
    return f"swap: the prompt does not speak of {gone[0]!r}" if gone else ""


def _swapped(prompt: str, columns: Sequence[str]) -> str:
    """The prompt with two columns exchanged, wherever it speaks of them."""
    first, second = columns
    named = re.compile(rf"\b(?:{re.escape(first)}|{re.escape(second)})\b")
    return BRACES.sub(lambda part: named.sub(lambda one: second if one[0] == first else first, part[0]), prompt)


class Negation(Transform):
    """The opposite question: no for yes, the other of two options."""

    name = "negation"
    says = "the opposite question"
    breaks = "a preference for yes, or for an option; words that are matched without their meaning"
    options = ("negation",)

    def unfit(self, question: Original, options: Options) -> str:
        two = question.answer == CHOICE and len(question.choices) == 2
        return "" if two or question.answer == TRUTH else f"it fits yes or no and two options, not {question.answer}"

    def write(self, question: Original, options: Options) -> Transformed:
        if question.answer == TRUTH:
            sentence = "Answer the opposite question: yes where the answer to the above is no, and no where it is yes."
            return Transformed(f"{question.prompt}\n{sentence}", {"scale": -1.0, "shift": 1.0})
        first, second = question.choices
        sentence = (
            f"Write the option that is not the answer: {first} where the answer to the above is {second}, "
            f"and {second} where it is {first}."
        )
        return Transformed(f"{question.prompt}\n{sentence}", {"permute": [1, 0]})

    def proposals(self, question: Original) -> Iterator[Any]:
        yield self.name


class OneAgainstRest(Transform):
    """Is it this option, yes or no: one entry of the answer."""

    name = "one-against-rest"
    says = "one option against all others, yes or no"
    breaks = "options that are taken for each other; the place in the list"
    options = ("one-against-rest",)

    def unfit(self, question: Original, options: Options) -> str:
        if question.answer != CHOICE or not question.choices:
            return f"it needs choices that are the same for every row, and the answer is {question.answer}"
        which = options.get("one-against-rest")
        return "" if which in question.choices else f"one-against-rest = {which!r} is no option"

    def write(self, question: Original, options: Options) -> Transformed:
        which = options["one-against-rest"]
        sentence = f"Answer only this: is the answer to the above {which}? Write yes or no."
        place = question.choices.index(which)
        return Transformed(f"{question.prompt}\n{sentence}", {"select": [place]}, parse="yes-no")

    def proposals(self, question: Original) -> Iterator[Any]:
        yield from ({self.name: one} for one in question.choices if len(question.choices) > 2)


class Definitions(Transform):
    """What is meant by each option, in place of its bare name; the answer stays."""

    name = "definitions"
    says = "the options by what is meant by them"
    breaks = "the name of an option that is matched as a word"
    options = ("definitions",)

    def unfit(self, question: Original, options: Options) -> str:
        given = options.get("definitions")
        if question.answer != CHOICE or not question.choices:
            return f"it needs choices that are the same for every row, and the answer is {question.answer}"
        if not isinstance(given, dict) or set(given) != set(question.choices):
            return 'give definitions = a text for each option, as in { refund = "money back" }'
        return "" if all(isinstance(text, str) and text.strip() for text in given.values()) else "a definition is empty"

    def write(self, question: Original, options: Options) -> Transformed:
        listed = "\n".join(f"{one}: {options['definitions'][one].strip()}" for one in question.choices)
        return Transformed(f"{question.prompt}\nWhat is meant by the options:\n{listed}")
