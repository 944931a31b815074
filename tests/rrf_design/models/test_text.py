from __future__ import annotations

import pytest

from rrf_design.models import Outcome
from rrf_design.models.faults import classify


@pytest.mark.parametrize(
    ("text", "finish", "outcome"),
    [
        ("5", "stop", Outcome.ANSWERED),
        ("5 and then", "length", Outcome.TRUNCATED),
        ("", "stop", Outcome.EMPTY),
        (" \n\t", "length", Outcome.EMPTY),
        ("\ufffd\ufffd\ufffd a", "stop", Outcome.GARBAGE),
        ("\x00\x01\x02", "stop", Outcome.GARBAGE),
        ("I'm sorry, but I can't help with that.", "stop", Outcome.REFUSED),
        ("I cannot answer this question.", "stop", Outcome.REFUSED),
        ("As an AI language model, I have no opinion.", "length", Outcome.REFUSED),
        ("I'm sorry for the delay: it is 5.", "stop", Outcome.ANSWERED),
        ("Anything", "content_filter", Outcome.REFUSED),
        ("I can tell you: Paris", "stop", Outcome.ANSWERED),
    ],
)
def test_outcomes(text: str, finish: str, outcome: Outcome) -> None:
    attempt = classify(text, finish, None, {}, {})
    assert attempt.outcome is outcome
    assert attempt.text == text


def test_declared_refusal() -> None:
    attempt = classify("", "stop", None, {}, {}, refusal="policy")
    assert (attempt.outcome, attempt.detail) == (Outcome.REFUSED, "policy")
