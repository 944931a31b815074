"""The same question in other words: the answer must be the very same.

Here the frame changes and the question stays as it is, so nothing it hangs on can be lost; wordings
that change the language itself are written by a model, once, and read by a person
(`rrf_design.questions.rewording`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rrf_design.transforms._base import Options, Original, Transform, Transformed

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
