"""The table of verdicts, line by line."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rrf_design.checker.wording import assumption
from rrf_design.goal import Goal
from rrf_design.verdict import Evidence, Explained, Verdict, counted, decide, dispute, worst

SURE = Evidence(Explained.UNIQUELY, Goal(), lower=0.5, robust_lower=0.5, bound=0.2)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, Verdict.CONSISTENT),
        ({"explained": Explained.NOT}, Verdict.CONTRADICTED),
        ({"explained": Explained.OPEN}, Verdict.INCOMPLETE),
        ({"explained": Explained.OTHERWISE}, Verdict.AMBIGUOUS),
        ({"explained": Explained.OTHERWISE, "exact": True, "bound": 0.0}, Verdict.CONSISTENT),
        ({"bound": None}, Verdict.AMBIGUOUS),
        ({"blank": ("x",)}, Verdict.AMBIGUOUS),
        ({"goal": Goal(delta=0.2)}, Verdict.CONSISTENT),
        ({"goal": Goal(delta=0.2), "explained": Explained.OTHERWISE}, Verdict.CONSISTENT),
        ({"goal": Goal(delta=0.1)}, Verdict.INCOMPLETE),
        ({"goal": Goal(target=0.5)}, Verdict.CONSISTENT),
        ({"goal": Goal(target=0.6)}, Verdict.INCOMPLETE),
        ({"goal": Goal(target=0.4), "robust_lower": 0.2}, Verdict.INCOMPLETE),
        ({"goal": Goal(target=0.4), "bound": None}, Verdict.INCOMPLETE),
        ({"goal": Goal(target=0.0), "lower": 0.0, "robust_lower": 0.0}, Verdict.INCOMPLETE),
        ({"goal": Goal(delta=0.2), "blank": ("x",)}, Verdict.AMBIGUOUS),
        ({"goal": Goal(delta=0.2), "explained": Explained.NOT}, Verdict.CONTRADICTED),
        ({"broken": True}, Verdict.CONTRADICTED),
        ({"goal": Goal(delta=0.1), "broken": True}, Verdict.CONTRADICTED),
    ],
)
def test_each_line(change: dict[str, object], expected: Verdict) -> None:
    assert decide(replace(SURE, **change)) is expected  # type: ignore[arg-type]


def test_a_data_set_is_as_good_as_its_worst_item() -> None:
    assert worst([Verdict.CONSISTENT, Verdict.CONTRADICTED, Verdict.AMBIGUOUS]) is Verdict.CONTRADICTED
    assert worst([]) is None
    assert counted([Verdict.CONSISTENT, Verdict.CONSISTENT]) == {
        "checked": 0,
        "consistent": 2,
        "ambiguous": 0,
        "incomplete": 0,
        "contradicted": 0,
    }


def test_the_premise_in_words() -> None:
    assert assumption(1, 3) == "at most 1 of 3 answers is wrong"
    assert assumption(2, 3, "relations hold exactly") == "at most 2 of 3 answers are wrong, and relations hold exactly"
    assert assumption(0, 3) == "no answer is wrong"


def test_a_premise_that_allows_everything_is_said_so() -> None:
    assert assumption(2, 1) == "the only answer may be wrong"
    assert assumption(1, 1, called="models") == "the only model may be wrong"
    assert assumption(2, 2, "checks hold exactly") == "any of the 2 answers may be wrong, and checks hold exactly"
    assert assumption(1, 2) == "at most 1 of 2 answers is wrong"


def test_the_order_of_disputes() -> None:
    """What is surely wrong, then what is open, then what was hardly asked; among equals what
    disagrees most, then who is blamed most.
    """
    listed = [
        (Verdict.CONTRADICTED, 3.0, 0),
        (Verdict.CONTRADICTED, 1.0, 0),
        (Verdict.AMBIGUOUS, 2.0, 2),
        (Verdict.AMBIGUOUS, 2.0 + 1e-12, 1),
        (Verdict.INCOMPLETE, 9.0, 9),
        (Verdict.CONSISTENT, 9.0, 9),
    ]
    shuffled = [listed[i] for i in (4, 1, 5, 3, 0, 2)]
    assert sorted(shuffled, key=lambda entry: dispute(*entry)) == listed
