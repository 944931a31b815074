"""The same question in other words, with the source quoted first, with its rules in another order:
the answer must be the very same.

Here the frame changes and the question stays as it is, so nothing it hangs on can be lost; wordings
that change the language itself are written by a model, once, and read by a person
(`rrf_design.questions.rewording`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from rrf_design.transforms._base import NUMBERS, PROGRAM, Options, Original, Transform, Transformed

FRAMES = (
    "Read the following twice before you answer.\n\n{prompt}",
    "{prompt}\n\nFirst find the words that your answer rests on; then answer in the form that is asked for.",
    "Somebody will check your answer against what stands below.\n\n{prompt}",
)


class Wording(Transform):
    """Another frame around the question, by its number: 1 to 3."""

    name = "wording"
    says = "in other words"
    breaks = "slips of attention; what the text itself suggests stays shared"
    options = ("wording",)

    def unfit(self, question: Original, options: Options) -> str:
        which = options.get("wording", 1)
        fits = isinstance(which, int) and 1 <= which <= len(FRAMES)
        return "" if fits else f"wording = {which!r} is not 1 to {len(FRAMES)}; write other words as a prompt"

    def write(self, question: Original, options: Options) -> Transformed:
        return Transformed(FRAMES[options.get("wording", 1) - 1].replace("{prompt}", question.prompt))

    def proposals(self, question: Original) -> Iterator[Any]:
        for number in range(1, len(FRAMES) + 1):
            yield {"wording": number}


class QuoteFirst(Transform):
    """The words of the source before the value: what was invented can't be quoted."""

    name = "quote-first"
    says = "the words of the source first, then the value"
    breaks = "an answer that is made up without looking; a wrong place that is quoted stays wrong"
    options = ("quote-first",)

    def unfit(self, question: Original, options: Options) -> str:
        fits = question.answer not in (NUMBERS, PROGRAM)
        return "" if fits else f"it is for one answer that stands in a text, not {question.answer}"

    def write(self, question: Original, options: Options) -> Transformed:
        sentence = (
            "First copy, in quotation marks, the words above on which the answer rests. Then write the answer itself"
            " alone on a last line that begins with Answer:"
        )
        return Transformed(f"{question.prompt}\n{sentence}")

    def proposals(self, question: Original) -> Iterator[Any]:
        yield self.name


_RULES = re.compile(r"(?:^[ \t]*[-*•] .*(?:\n|\Z)){2,}", re.MULTILINE)


class RubricOrder(Transform):
    """The listed rules of a judge (lines that begin with a dash) from the last to the first."""

    name = "rubric-order"
    says = "the rules of a judge in another order"
    breaks = "a judge that goes by the first rule alone"
    options = ("rubric-order",)

    def unfit(self, question: Original, options: Options) -> str:
        lists = _RULES.findall(question.prompt)
        if len(lists) != 1:
            return f"the prompt has {len(lists) or 'no'} lists of lines that begin with a dash; it needs one"
        return "a line of the list holds a command of the template" if "{%" in lists[0] else ""

    def write(self, question: Original, options: Options) -> Transformed:
        def turned(match: re.Match[str]) -> str:
            end = "\n" if match[0].endswith("\n") else ""
            return "\n".join(reversed(match[0].removesuffix("\n").split("\n"))) + end

        return Transformed(_RULES.sub(turned, question.prompt))

    def proposals(self, question: Original) -> Iterator[Any]:
        yield self.name
