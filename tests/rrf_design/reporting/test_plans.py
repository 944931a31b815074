from __future__ import annotations

from typing import Any

import pytest

import rrf_design as rrf
from rrf_design import Problem
from rrf_design.documents import sealed
from rrf_design.reporting.documents import read, render
from rrf_design.reporting.pages import at_least, at_most


@pytest.fixture(scope="module")
def plan(problem: Problem) -> Any:
    return rrf.plan(problem, budget=4.0)


def test_a_plan_says_what_to_buy_and_how_far_from_the_best_it_is(problem: Problem, plan: Any) -> None:
    made = render(read(plan, problem=problem))
    assert "Plan for small field" in made
    for block in plan.selected:
        assert block in made
    assert f"{plan.gamma:.5g}" in made
    assert "best possible" in made
    assert "owned already" in made
    assert 'class="anchor bought"' in made


def test_only_what_the_plan_proves_is_called_proven(problem: Problem, plan: Any) -> None:
    made = render(read(plan, problem=problem))
    last = f"lower bound {at_least(plan.gamma_lower)}, upper bound {at_most(plan.gamma_upper)}"
    assert "at the end with its proven lower and upper bounds" in made
    assert made.count(last) == 1
    for step in plan.trajectory:
        assert f"{step.block} at" in made


def test_a_plan_without_its_problem_has_no_drawing(plan: Any) -> None:
    made = render(read(plan)).partition("<script>")[0]
    assert "data-nodes=" not in made
    assert plan.digest in made


def test_a_plan_for_another_problem_is_refused(plan: Any) -> None:
    other = Problem(nodes=[{"id": "a"}])
    with pytest.raises(rrf.InputError, match="another problem"):
        read(plan, problem=other)


def test_a_plan_says_which_margin_its_goal_is_held_against(problem: Problem) -> None:
    made = render(read(rrf.plan(problem, target=0.3), problem=problem))
    assert "with declared uncertainty taken off" not in made
    unsure = Problem(
        k=1,
        target=0.5,
        nodes=[{"id": "a"}, {"id": "b"}],
        relations=[{"id": "ab", "tail": "a", "head": "b", "uncertainty": 0.1}],
        anchors=[{"id": name, "node": name.lower(), "value": 1.0, "cost": 1.0} for name in "AB"],
    )
    found = rrf.plan(unsure, budget=4.0)
    made = render(read(found, problem=unsure))
    assert found.robust_lower is not None
    certain, plain = at_least(found.robust_lower, 7), at_least(found.gamma_lower, 7)
    assert f"certain are {certain} with declared uncertainty taken off, {plain} without" in made
    assert "with declared uncertainty taken off" in made.partition("best possible")[2][:60]


def test_a_plan_that_misses_its_target_says_so(problem: Problem) -> None:
    missed = rrf.plan(problem, target=50.0)
    assert str(missed.status) == "infeasible"
    assert "out of reach" in render(read(missed, problem=problem))


def test_a_frontier_has_a_point_for_every_step(problem: Problem) -> None:
    found = rrf.frontier(problem)
    made = render(read(found, problem=problem))
    assert made.count('class="hit"') == len(found.points)
    assert "The first positive margin costs" in made
    for point in found.points:
        assert (
            f"lower bound {at_least(problem.margin(point.selected).lower)}, upper bound {at_most(point.upper_bound)}"
            in made
        )


def test_a_frontier_claims_no_lower_bound_that_its_document_lacks(problem: Problem) -> None:
    document = sealed("rrf-frontier", rrf.frontier(problem).to_json())
    assert "lower bound not known" not in render(read(document))
    for point in document["points"]:
        del point["gamma_lower"]
    assert "lower bound not known" in render(read(document))


def test_the_name_of_a_frontier(problem: Problem) -> None:
    made = render(read(rrf.frontier(problem), problem=problem))
    assert "Frontier of small field" in made


def test_nothing_to_buy() -> None:
    alone = Problem(name="alone", nodes=[{"id": "a"}, {"id": "b"}], relations=[{"id": "r", "tail": "a", "head": "b"}])
    made = render(read(rrf.plan(alone, budget=1.0), problem=alone))
    assert "Buy nothing" in made
    made = render(read(rrf.frontier(alone), problem=alone))
    assert "No amount of money" in made


def test_a_frontier_with_repeats_shows_promised_errors() -> None:
    again = Problem(
        nodes=[{"id": "x", "sigma": 0.1, "again": 0.5, "most_repeats": 2}],
        anchors=[{"id": "a", "node": "x", "value": 1.0, "cost": 1.0}],
    )
    made = render(read(rrf.frontier(again), problem=again))
    assert "How the promised error falls with money" in made
    assert "a, x asked 2 times" in made
    assert "The first promise, an error of at most" in made
