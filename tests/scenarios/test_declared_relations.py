"""The judges know a false claim; a small run meets its conditions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design.derive import joined_problem
from scenarios.declared_relations import QUESTIONS, _covers, declared
from scenarios.declared_relations.bent_fields import _apart, _attacks, _fits, bent_case, judge_bent, tangent_margin
from scenarios.declared_relations.jointly import enumerated, joint_case


def test_the_judge_of_norms_is_exact() -> None:
    assert _covers(np.array([[3.0], [4.0]]), Fraction(5))
    assert not _covers(np.array([[3.0], [4.0]]), Fraction(5) - Fraction(1, 10**30))


@pytest.mark.parametrize("question", QUESTIONS[:3])
def test_hand_written_rows_are_those_of_the_problem(question: str) -> None:
    for seed in range(20):
        problem, matrix, units, deliver = declared(seed, question)
        assert np.array_equal(problem.operator().matrix.toarray(), matrix)
        assert sorted(i for unit in units for i in unit) == list(range(matrix.shape[1]))
        assert deliver


def test_rows_by_hand_give_the_margin_of_everything() -> None:
    for seed in range(15):
        problem, rows, whole, _ = joint_case(seed)
        together, chosen = joined_problem(problem, "all")
        by_hand = enumerated(rows, whole, list(range(len(rows))))
        assert together.margin(chosen).value == pytest.approx(by_hand, rel=1e-7, abs=1e-7)
        assert np.allclose(whole, whole.T)


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
