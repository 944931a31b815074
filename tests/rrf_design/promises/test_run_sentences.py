"""The sentence about a run: its denominator, what waits, and averages that are not rounded down."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rrf_design.promises.policies import LastRung
from rrf_design.promises.running import RunTotals, run_sentence
from rrf_design.risk import Among, Statement


def test_the_sentence_names_its_denominator() -> None:
    base = {"policy": "p", "risk": 0.02, "confidence": 0.95, "drawn": ["x"] * 200, "sentence": "S."}
    totals = RunTotals(1812, 188, LastRung.PERSON, 311.4, 1600.0, 400.0, "totals")
    delivered = {**base, "among": str(Among.DELIVERED)}
    assert (
        run_sentence({**delivered, "statement": str(Statement.REST)}, totals)
        == "Of the 1,812 totals delivered outside the pilot, at most 36 (2 %) are wrong, with confidence 95 %; 188 went"
        " to a person; cost 311.40 of 400.00, against 1,600.00 for checking all."
    )
    assert "on average over such tables, with confidence 95 %, for items drawn like the pilot's 200;" in run_sentence(
        {**delivered, "statement": str(Statement.FRESH)}, totals
    )
    everything = {**base, "among": str(Among.ALL), "statement": str(Statement.REST)}
    said = run_sentence(everything, totals)
    assert said.startswith("Of the 2,000 totals delivered outside the pilot, at most 40 (2 %) are wrong")
    assert "; 188 of them went to a person; cost 311.40 of 400.00" in said


def test_what_waits_is_not_called_delivered_and_nobody_checks_what_is_withheld() -> None:
    document = {"policy": "p", "risk": 0.02, "confidence": 0.95, "drawn": ["x"] * 200, "sentence": "S."}
    document |= {"among": "all", "statement": "fresh"}
    totals = RunTotals(90, 10, LastRung.PERSON, 50.0, 100.0, 40.0)
    waiting = run_sentence(document, replace(totals, waiting=10))
    assert waiting.startswith("Of the 100 values delivered or waiting, ")
    assert "; 10 of them went to a person, and all of them wait for an answer;" in waiting
    assert "who could not tell 1;" in run_sentence(document, replace(totals, untold=1))
    assert "went to a person, and it waits" in run_sentence(document, replace(totals, to_people=1, waiting=1))
    assert totals.over_budget == 10.0
    withheld = run_sentence({**document, "among": "delivered"}, replace(totals, last=LastRung.WITHHELD, to_people=1))
    assert withheld.endswith("; 1 is withheld; cost 50.00 of 40.00.")


@pytest.mark.parametrize(
    ("size", "words"), [(250, "at most 12.5 (5 %)"), (1000, "at most 50 (5 %)"), (33, "at most 1.7 (5 %)")]
)
def test_an_average_is_not_rounded_down(size: int, words: str) -> None:
    """5 % of 250 on average allow 12.5: to say 12 would promise more than was tested."""
    document = {
        "policy": "p",
        "risk": 0.05,
        "confidence": 0.95,
        "among": "delivered",
        "statement": "fresh",
        "drawn": [""] * 60,
    }
    totals = RunTotals(size, 0, LastRung.PERSON, 1.0, 2.0, None)
    assert f"Of the {size:,} values delivered, {words} are wrong on average" in run_sentence(document, totals)
