"""What a stronger promise would take."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

from rrf_design.promises import PilotSettings
from rrf_design.promises.stronger import _labels, in_words
from rrf_design.risk.counts import BinomialTail


@pytest.mark.parametrize(("kept", "risk"), [(Fraction(0), 0.05), (Fraction(1, 100), 0.05), (Fraction(3, 200), 0.025)])
def test_labels_prove_the_risk_when_what_was_seen_goes_on(kept: Fraction, risk: float) -> None:
    labels = _labels(kept, risk, 0.95)
    assert labels is not None
    assert BinomialTail(labels, Fraction(str(risk)), int(kept * labels)).at_most(Fraction(1, 20))


def test_more_labels_do_not_make_wrong_answers_right(make_world: Any) -> None:
    assert _labels(Fraction(1, 20), 0.05, 0.95) is None
    world = make_world(items=200, wrong=0.0, together=0.3)
    document = world.document(PilotSettings(80, 0.05))
    (entry,) = document["stronger"]
    assert entry["labels"] is None
    assert "better answers" in in_words(document["stronger"], document)[-1]
    good = make_world(items=200, wrong=0.0).document(PilotSettings(80, 0.05))
    assert good["stronger"][0]["labels"] == 119
    assert "a pilot of about 119 labels in all, for" in in_words(good["stronger"], good)[-1]
    few = make_world(items=100, wrong=0.0).document(PilotSettings(80, 0.05))  # too few others for an order of tests
    assert "about 59 labels would do for a policy that is tested first" in in_words(few["stronger"], few)[-1]
    small = make_world(items=115, wrong=0.0).document(PilotSettings(80, 0.05))
    assert "about 119 labels in all, where the table has 115 items" in in_words(small["stronger"], small)[-1]
    large = make_world(items=300, wrong=0.0).document(PilotSettings(150, 0.05))
    assert "could have been asked for it before it was looked at" in in_words(large["stronger"], large)[-1]


def test_an_estimate_does_not_round_wrong_items_away() -> None:
    """One wrong of 120 is expected again: 119 labels are too few for 2.5 %, though 119 / 120 of an item is less than one."""
    labels = _labels(Fraction(1, 120), 0.025, 0.95)
    assert labels is not None
    assert labels > 119
    assert BinomialTail(labels, Fraction(1, 40), math.ceil(labels / 120)).at_most(Fraction(1, 20))
