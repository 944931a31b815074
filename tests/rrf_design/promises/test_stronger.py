"""What a stronger promise would take."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

from rrf_design.promises import PilotSettings
from rrf_design.promises.forecast import PromiseTest, in_words
from rrf_design.risk import Among, Limit, Scope, Statement, first_look
from rrf_design.risk.counts import BinomialTail
from rrf_design.risk.statements import evidence

FRESH = PromiseTest(Statement.FRESH, 10_000, 0.95)


@pytest.mark.parametrize(("kept", "risk"), [(Fraction(0), 0.05), (Fraction(1, 100), 0.05), (Fraction(3, 200), 0.025)])
def test_labels_prove_the_risk_when_what_was_seen_goes_on(kept: Fraction, risk: float) -> None:
    labels = FRESH.labels(kept, Fraction(str(risk)))
    assert labels is not None
    assert BinomialTail(labels, Fraction(str(risk)), int(kept * labels)).at_most(Fraction(1, 20))


def test_more_labels_do_not_make_wrong_answers_right(make_world: Any) -> None:
    assert FRESH.labels(Fraction(1, 20), Fraction(1, 20)) is None
    world = make_world(items=200, wrong=0.0, together=0.3)
    document = world.document(PilotSettings(80, 0.05))
    assert document["stronger"][0]["labels"] is None
    assert "better answers" in in_words(document["stronger"], document)[1]
    good = make_world(items=200, wrong=0.0).document(PilotSettings(80, 0.05))
    assert good["stronger"][0]["labels"] == 119
    assert "a pilot of about 119 labels in all, for" in in_words(good["stronger"], good)[1]
    few = make_world(items=100, wrong=0.0).document(PilotSettings(80, 0.05))  # too few others for an order of tests
    assert "about 59 labels would do for a policy that is tested first" in in_words(few["stronger"], few)[1]
    small = make_world(items=115, wrong=0.0).document(PilotSettings(80, 0.05))
    assert "about 119 labels in all, where the table has 115 items" in in_words(small["stronger"], small)[1]
    large = make_world(items=300, wrong=0.0).document(PilotSettings(150, 0.05))
    assert "could have been asked for it before it was looked at" in in_words(large["stronger"], large)[1]


def test_an_estimate_does_not_round_wrong_items_away() -> None:
    """One wrong of 120 is expected again: 119 labels are too few for 2.5 %, though 119 / 120 of an
    item is less than one.
    """
    labels = FRESH.labels(Fraction(1, 120), Fraction(1, 40))
    assert labels is not None
    assert labels > 119
    assert BinomialTail(labels, Fraction(1, 40), math.ceil(labels / 120)).at_most(Fraction(1, 20))


@pytest.mark.parametrize("statement", [Statement.FILE, Statement.REST, Statement.POLICY])
@pytest.mark.parametrize("kept", [Fraction(0), Fraction(1, 60)])
def test_labels_of_a_finite_table_are_those_of_its_own_test(statement: Statement, kept: Fraction) -> None:
    """Against every size: with that many labels and the expected number of wrong ones it is proven,
    and 119 (fresh items) are not needed.
    """
    size, rate = 115, Fraction(1, 40)
    test = PromiseTest(statement, size, 0.95)
    labels = test.labels(kept, rate)
    assert labels is not None
    assert labels <= size
    wrong = math.ceil(kept * labels)
    scope = Scope(statement, labels, size)
    assert evidence(Limit(rate, among=Among.ALL), scope, labels, wrong).claim.at_most(Fraction(1, 20))
    if not kept:
        less = range(1, labels)
        assert not any(
            evidence(Limit(rate, among=Among.ALL), Scope(statement, n, size), n, 0).claim.at_most(Fraction(1, 20))
            for n in less
        )


def test_a_pilot_that_grows_takes_more_labels_than_one_that_does_not() -> None:
    test = PromiseTest(Statement.FRESH, 10_000, 0.95, sequential=True)
    labels = test.labels(Fraction(0), Fraction(1, 20))
    assert labels == first_look(0.05, 0.95) > 59
    assert test.best(labels) <= 0.05 < test.best(labels - 1)
    more, less = (one.labels(Fraction(1, 50), Fraction(1, 20)) for one in (test, FRESH))
    assert more is not None
    assert less is not None
    assert more > less


def test_random_checks_need_the_labels_of_what_is_tested_there(make_world: Any) -> None:
    """Half of 2 % with 60 % checked is 2.5 % of what the gates accept: 119 clean labels, not the
    299 of a plain test of 1 %.
    """
    document = make_world(items=240, wrong=0.0).document(PilotSettings(60, 0.02, random_checks=True))
    (entry,) = document["stronger"]
    checked = next(p for p in document["choice"]["policies"] if p["name"] == document["policy"])["checked_share"]
    rate = Fraction(1, 100) / (1 - Fraction(checked))
    assert (rate, entry["labels"]) == (Fraction(1, 40), 119)
    assert BinomialTail(entry["labels"], rate, 0).at_most(Fraction(1, 20))
    assert not BinomialTail(entry["labels"] - 1, rate, 0).at_most(Fraction(1, 20))
    assert "labels could prove 0.49 % at best with 90.0 % checked at random" in in_words([], document)[0]


def test_a_pilot_that_proves_nothing_says_what_would_have_helped(make_world: Any) -> None:
    """Answers that are wrong together: too many for 5 %, few enough where a part is checked at
    random.
    """
    world = make_world(items=300, wrong=0.0, together=0.03)
    document = world.document(PilotSettings(80, 0.05))
    assert document["policy"] == "check everything"
    words = " ".join(in_words(document["stronger"], document))
    assert "--random-checks from the beginning would have helped" in words
    assert "A stage that decides for less than 30" in words
    (entry,) = [one for one in document["stronger"] if "random_checks" in one]
    assert entry["cost_per_item"] < document["check_cost"]
    tried = world.document(PilotSettings(80, 0.05, random_checks=True))
    assert tried["policy"] != "check everything"  # it does help, and is not advised again
    assert not any("random_checks" in one for one in tried["stronger"])
