"""What may be said of a decoding: verified and unique only where nothing was cut short or left open."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from solvers.decoding import ConvexSolution, SyndromeDecoding, SyndromeExplanation


def explanation(*support: int) -> SyndromeExplanation:
    return SyndromeExplanation(support, 0.0, np.zeros(3))


FOUND = SyndromeDecoding(
    support=(1,),
    error=np.zeros(3),
    residual=0.0,
    explained=True,
    explanations=(explanation(1),),
    complete=True,
    best_smaller=1.0,
    epsilon=0.1,
    tolerance=1e-9,
    k=1,
    tested=3,
)


@pytest.mark.parametrize(
    ("changes", "verified", "unique"),
    [
        ({}, True, True),
        ({"complete": False}, False, False),
        ({"undecided": ((2,),)}, False, False),
        ({"zero_rule": True}, False, True),
        ({"explanations": (explanation(1), explanation(2))}, True, False),
        ({"explanations": (), "explained": False}, True, False),
    ],
)
def test_what_may_be_said(changes: dict[str, object], verified: bool, unique: bool) -> None:
    found = replace(FOUND, **changes)
    assert (found.verified, found.unique) == (verified, unique)


def test_errors_are_read_only() -> None:
    convex = ConvexSolution(np.zeros(2), 1.0, 0.0, 0.0, 0.1, 5, True)
    for found in (FOUND, FOUND.explanations[0], convex):
        with pytest.raises(ValueError, match="read-only"):
            found.error[0] = 1.0  # type: ignore[attr-defined]
