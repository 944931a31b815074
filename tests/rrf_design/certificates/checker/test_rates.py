"""Checks that are wrong at a rate: probabilities against enumeration, and what they do to margins,
repairs and certificates.
"""

from __future__ import annotations

import copy
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design.checker.premises import Premises
from rrf_design.checker.tails import at_most, tolerated
from rrf_design.derive import realised
from rrf_design.errors import Refused


@pytest.mark.parametrize("seed", range(20))
def test_probabilities_are_those_of_every_outcome(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rates = [round(float(rng.uniform(0.01, 0.9)), 2) for _ in range(int(rng.integers(1, 7)))]
    outcomes = list(product([False, True], repeat=len(rates)))
    for most in range(-1, len(rates) + 1):
        slow = sum(
            (prod((Fraction(r) if w else 1 - Fraction(r)) for r, w in zip(rates, wrong, strict=True)))
            for wrong in outcomes
            if sum(wrong) <= most
        )
        assert at_most(rates, most) == slow
    found = tolerated(rates, 0.95)
    assert at_most(rates, found) >= Fraction(0.95)
    assert found == 0 or at_most(rates, found - 1) < Fraction(0.95)
    assert tolerated([], 0.95) == 0


def judged(*rates: float | None, **settings: Any) -> rrf.Problem:
    anchors = [
        {"id": f"j{i}", "node": "x", "value": 7.0, **({} if rate is None else {"rate": rate})}
        for i, rate in enumerate(rates)
    ]
    return rrf.Problem(
        k=1,
        nodes=[{"id": "x"}, {"id": "y"}],
        relations=[{"id": "r", "tail": "x", "head": "y"}],
        anchors=anchors,
        **settings,
    )


def test_the_margin_is_what_as_many_wrong_judges_leave() -> None:
    assert judged(0.1, 0.1, 0.1).margin().value == pytest.approx(judged(None).margin().value)
    assert judged(0.2, 0.2, 0.2).margin().value == 0.0  # two of three may be wrong
    assert judged(0.01, 0.01, 0.01).margin().value == pytest.approx(judged(None, None, None).margin().value)


@pytest.mark.parametrize("rates", [(0.1, 0.1, 0.1), (0.01, 0.01)])
def test_certificates_carry_the_probability(rates: tuple[float, ...]) -> None:
    made = rrf.certify(judged(*rates, epsilon=0.01))
    assert rrf.verify(made).valid
    said = made.document["protection"]["rates"]
    assert made.document["error"]["confidence"] == said["confidence"]
    assert Fraction(said["confidence"]) <= at_most(rates, said["most"])
    for key, value in (("confidence", 0.999), ("most", 3), ("rates", [0.1, 1.5]), ("rates", [])):
        section = copy.deepcopy(made.document["protection"])
        section["rates"][key] = value
        with pytest.raises(Refused, match=r"protection\.rates"):
            Premises.read(section, made.record)


def test_no_false_certificate_beyond_the_stated_probability() -> None:
    """Judges err as declared, and in the worst way: all wrong ones agree.

    A certified value is wrong no more often than allowed.
    """
    rng = np.random.default_rng(5)
    wrong = 0
    for _ in range(300):
        errs = rng.random(4) < 0.15
        problem = judged(*[0.15] * 4)
        anchors = [
            a.model_copy(update={"value": 9.0 if bad else 7.0}) for a, bad in zip(problem.anchors, errs, strict=True)
        ]
        answers = {"x": 9.0, "y": 7.0} if errs.sum() > 1 else {"x": 7.0, "y": 7.0}
        found = rrf.repair(problem.model_copy(update={"anchors": anchors}), answers)
        wrong += found.verdict == "consistent" and found.repaired["x"] != (7.0,)
    assert wrong <= 0.05 * 300  # fmt: skip


def test_as_many_may_be_wrong_when_others_fail() -> None:
    left = realised(judged(0.1, 0.1, 0.1), failed=["j0", "j1"], values={})
    assert left.whole.premise.wrong_checks == 1
    assert left.whole.premise.suspects == {"j2"}


def test_what_is_assumed_is_said() -> None:
    told = rrf.repair(judged(0.01, 0.01), {"x": 7.0, "y": 7.0}).assumes
    assert "no check with a rate (with probability 0.98" in told


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ({"rate": 1.5}, "rate must be less than 1"),
        ({"rate": 0.0}, "rate must be greater than 0"),
        ({"rate": 0.1, "trusted": True}, "trusted = true says that it is never wrong, but it has a rate"),
    ],
)
def test_bad_input(block: dict[str, Any], message: str) -> None:
    with pytest.raises(rrf.InputError, match=message):
        rrf.Problem(nodes=[{"id": "x"}], anchors=[{"id": "a", "node": "x", **block}])
