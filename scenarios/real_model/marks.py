"""The evaluation: the only place where hidden tests are read, after every choice has been made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rrf_design.responses import extract
from rrf_design.responses.sandbox import Program as Runnable
from rrf_design.responses.sandbox import Sandbox
from scenarios.real_model import programs
from scenarios.real_model.answers import Item
from scenarios.real_model.choices import Choice
from scenarios.real_model.fields import AnswerCandidate, same, truth

WORST = 2.0


@dataclass(frozen=True, slots=True)
class Mark:
    """Whether an answer is right, and the continuous error: capped relative error, or the share of
    hidden tests failed.
    """

    correct: bool
    error: float


def mark_candidates(item: Item, candidates: Sequence[AnswerCandidate], box: Sandbox | None) -> tuple[Mark, ...]:
    """A mark for every candidate.

    Programs run on the hidden inputs in `box`; expected outputs never enter it.
    """
    if not isinstance(item, programs.AskedProgram):
        return tuple(mark_value(item, c.value) for c in candidates)
    from scenarios.real_model.hidden import hidden_tests, hidden_truth

    assert box is not None
    tests, expected = hidden_tests(item), hidden_truth(item)
    sources = [extract(c.text) for c in candidates]
    distinct = [s for s in dict.fromkeys(sources) if s is not None]
    runs = box.run_many([Runnable.build(source, tests, expected=expected) for source in distinct])
    passed = {source: run.passed for source, run in zip(distinct, runs, strict=True)}
    return tuple(
        Mark(False, 1.0) if source is None else Mark(passed[source] == 1.0, 1.0 - passed[source]) for source in sources
    )


def mark_value(item: Item, value: Sequence[float] | None) -> Mark:
    """Exact integer equality, and the paper's capped relative error; no value is the worst
    error.
    """
    right = truth(item)
    if value is None:
        return Mark(False, WORST)
    error = abs(value[0] - right[0]) / max(abs(right[0]), 1.0)
    return Mark(same(value, right), min(WORST, error))


def mark_choice(item: Item, choice: Choice | None, marks: Sequence[Mark]) -> Mark:
    """The mark of what a method returned."""
    if choice is None or (choice.candidate is None and choice.value is None):
        return Mark(False, 1.0 if isinstance(item, programs.AskedProgram) else WORST)
    if choice.candidate is not None:
        return marks[choice.candidate]
    return mark_value(item, choice.value)
