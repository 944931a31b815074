"""The attack on local promises: its fields are admissible, and it breaks promises that are too strong."""

from __future__ import annotations

from fractions import Fraction

import pytest

import rrf_design as rrf
from scenarios.bent_fields import _apart, _attacks, _fits, bent_case, judge_bent, tangent_margin


def test_the_promises_hold_on_some_fields() -> None:
    assert [seed for seed in range(25) if not judge_bent(seed)] == []


def test_the_truth_fits_where_only_one_unit_is_wrong() -> None:
    for seed in range(60):
        case = bent_case(seed)
        assert _fits(case, [Fraction(x) for x in case.truth])


def test_an_attack_finds_fields_that_a_stronger_promise_would_exclude() -> None:
    broken = 0
    for seed in range(40):
        case = bent_case(seed)
        names = [node.id for node in case.problem.nodes]
        fixed = rrf.repair(case.problem, dict(zip(names, case.answers, strict=True)))
        if fixed.error_bound is None:
            continue
        middle = [fixed.nearest[name][0] for name in names]
        strong = Fraction(fixed.error_bound / 4) ** 2
        broken += any(_apart(case, other, middle) > strong for other in _attacks(case, middle))
    assert broken


def test_the_hand_written_tangent_is_that_of_the_repair() -> None:
    case = bent_case(3)
    names = [node.id for node in case.problem.nodes]
    fixed = rrf.repair(case.problem, dict(zip(names, case.answers, strict=True)))
    assert fixed.gamma == pytest.approx(tangent_margin(case, [fixed.nearest[name][0] for name in names]))
