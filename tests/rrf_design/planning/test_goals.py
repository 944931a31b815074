"""A goal whose margin depends on the design: rising from the least that any design needs.

Repeats as purchases: the cheapest of all choices of repeats and blocks, and which way was
taken.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import product
from math import inf
from typing import Any

import numpy as np
import pytest
from small import all_designs

import rrf_design as rrf
from rrf_design.derive import asking
from rrf_design.errors import InputError
from rrf_design.goal import POSITIVE, Goal
from rrf_design.planning import plan, planner, read_plan, write_plan
from rrf_design.planning.contract import Objective, Order, PlanStatus
from rrf_design.planning.evaluator import Evaluator
from rrf_design.planning.goals import _wanted_between, nominal, planned_margin, reach


def noisy(delta: float, *, sigma: float = 0.5, count: int = 4, **more) -> rrf.Problem:
    """Three answers in a ring, anchors on sale whose noise grows with every one that is bought."""
    names = ["a", "b", "c"]
    return rrf.Problem(
        k=1,
        delta=delta,
        confidence=0.95,
        nodes=[{"id": name, **more} for name in names],
        relations=[
            {"id": f"r{i}", "tail": names[i], "head": names[(i + 1) % 3], "sigma": 0.1} for i in range(3)
        ],
        anchors=[
            {"id": f"x{i}", "node": names[i % 3], "sigma": sigma * (1 + 0.3 * i), "cost": 1.0 + 0.25 * i}
            for i in range(count)
        ],
    )  # fmt: skip


def test_what_margin_computes_is_whitened_where_noise_is_declared():
    assert nominal(noisy(1.0)) is Objective.GAMMA_SIGMA
    assert nominal(rrf.Problem(nodes=[{"id": "a"}], anchors=[{"id": "x", "node": "a"}])) is Objective.GAMMA


def test_more_rows_ask_for_a_larger_margin():
    problem = noisy(20.0)
    low, high = _wanted_between(problem, Goal.of(problem))
    assert POSITIVE < low < high < inf
    assert planned_margin(problem) == high
    everything = problem.design("all").radius(problem)
    assert high == Goal.of(problem).wanted(everything)


def test_without_a_goal_there_is_no_margin_to_plan_for():
    problem = rrf.Problem(nodes=[{"id": "a"}], anchors=[{"id": "x", "node": "a", "cost": 1.0}])
    assert planned_margin(problem) is None
    found = reach(Evaluator(problem), planner("greedy"), Order(budget=1.0), None)
    assert found.target is None
    assert found.selected == ("x",)


@pytest.mark.parametrize("delta", [6.0, 9.0, 14.0])
def test_the_cheapest_design_that_has_the_margin_it_needs_itself(delta):
    problem = noisy(delta)
    found = plan(problem, method="optimal")
    reaching = []
    for cost, margin, names in all_designs(problem):
        wanted = Goal.of(problem).wanted(problem.design(names).radius(problem)) or 0.0
        if margin >= wanted * (1 - 1e-9):
            reaching.append(cost)
    if not reaching:
        assert not found.reached
        return
    assert found.reached
    assert found.cost >= float(min(reaching)) - 1e-12
    if found.status is PlanStatus.OPTIMAL:
        assert found.cost == pytest.approx(float(min(reaching)))
    assert found.cost_bound is not None
    assert found.cost_bound <= float(min(reaching)) + 1e-12


def test_where_nothing_bounds_the_answers_no_error_can_be_promised():
    problem = rrf.Problem(
        k=1,
        delta=1.0,
        epsilon=0.1,
        nodes=[{"id": "a"}, {"id": "b"}],
        relations=[{"id": "r", "tail": "a", "head": "b", "uncertainty": 0.1}],
        anchors=[{"id": "x", "node": "a", "cost": 1.0}, {"id": "y", "node": "b", "cost": 1.0}],
    )
    assert planned_margin(problem) is None
    with pytest.raises(InputError, match=r"give their nodes a range, or .problem. an amplitude"):
        plan(problem)


def field(seed: int) -> rrf.Problem:
    rng = np.random.default_rng(seed)
    nodes = [
        {
            "id": f"n{i}",
            "sigma": round(float(rng.uniform(0.02, 0.2)), 2),
            "again": round(float(rng.uniform(0.05, 0.5)), 2),
        }
        | {"most_repeats": int(rng.integers(2, 5))}
        for i in range(2)
    ]
    anchors = [
        {
            "id": f"a{i}",
            "node": f"n{i % 2}",
            "value": 1.0,
            **({"cost": round(float(rng.uniform(0.2, 1.0)), 2)} if i else {}),
        }
        for i in range(3)
    ]
    relations = [{"id": "r", "tail": "n0", "head": "n1"}]
    delta = round(float(rng.uniform(0.5, 2.5)), 2)
    return rrf.Problem(k=1, delta=delta, nodes=nodes, relations=relations, anchors=anchors)  # fmt: skip


def cheapest(problem: rrf.Problem) -> float | None:
    """Every choice of repeats, every choice of blocks, by the definition of the goal."""
    best = None
    names = [node.id for node in problem.nodes]
    levels = [range(1, node.most_repeats + 1) for node in problem.nodes]
    for times in product(*levels):
        asked = asking(problem, dict(zip(names, times, strict=True)))
        paid = sum((t - 1) * (node.again or 0.0) for t, node in zip(times, problem.nodes, strict=True))
        for chosen in product([False, True], repeat=len(problem.on_sale)):
            select = [name for name, taken in zip(problem.on_sale, chosen, strict=True) if taken]
            design = asked.design(select)
            if design.standing(asked).reached:
                total = paid + float(design.price)
                best = total if best is None else min(best, total)
    return best


@pytest.mark.parametrize("seed", range(6))
def test_the_cheapest_of_all_choices(seed: int) -> None:
    problem = field(seed)
    wanted = cheapest(problem)
    if wanted is None:
        with suppress(rrf.InputError):  # a plan that misses its goal, or one line that says why there is none
            assert not rrf.plan(problem).reached
        return
    found = rrf.plan(problem)
    assert found.cost >= wanted - 1e-9
    assert found.status != "optimal" or found.cost == pytest.approx(wanted)
    asked = asking(problem, found.repeats)
    assert asked.design(found.selected).standing(asked).reached
    made = rrf.certify(asked, found.selected)
    assert made.met
    assert made.error_bound == pytest.approx(found.error_bound)
    assert rrf.verify(made).valid


def pair(**settings: Any) -> rrf.Problem:
    node = {"sigma": 0.1, "again": 0.1, "most_repeats": 20, **settings}
    return rrf.Problem(
        k=1,
        delta=1.0,
        nodes=[{"id": "x", **node}, {"id": "y", **node}],
        relations=[{"id": "r", "tail": "x", "head": "y"}],
        anchors=[{"id": "a", "node": "x", "value": 1.0}, {"id": "b", "node": "y", "value": 1.0, "cost": 0.3}],
    )


def test_the_plan_says_which_way_it_took(tmp_path: Any) -> None:
    found = rrf.plan(pair())
    assert found.repeats
    assert "so that the noise is smaller" in found.notes[-1]
    write_plan(found, tmp_path / "plan.json")
    assert read_plan(tmp_path / "plan.json", pair()).repeats == found.repeats
    precise = rrf.plan(pair(sigma=0.001))
    assert not precise.repeats
    assert "not worth its price" in precise.notes[-1]


def test_repeats_lower_noise_and_not_corruption() -> None:
    often = asking(pair(), {"x": 4, "y": 4})
    assert often.margin("all").value == pair().margin("all").value
    once, four = (p.design("all").radius(p) for p in (pair(), often))
    assert four.tail == pytest.approx(once.tail / 2)
    assert four.epsilon == pytest.approx(once.epsilon / 2)


@pytest.mark.parametrize("seed", range(3))
def test_drawn_answers_stay_within_both_radii(seed: int) -> None:
    problem = pair()
    radius = problem.design("all").radius(problem)
    assert radius.answers is not None
    draws = 0.1 * np.random.default_rng(seed).standard_normal((4000, 2))
    outside = np.linalg.norm(draws @ problem.operator("all").matrix.toarray().T, axis=1) > radius.epsilon
    outside |= np.linalg.norm(draws, axis=1) > radius.tail
    assert outside.mean() <= 0.05


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ({"again": 1.0}, "declare that as sigma"),
        ({"repeats": 2}, "declare that as sigma"),
        ({"sigma": 1.0, "repeats": 0}, "repeats must be greater than or equal to 1"),
        ({"sigma": 1.0, "repeats": 10}, "repeats = 10 is more than most_repeats = 9"),
        ({"sigma": -1.0}, "sigma must be greater than 0"),
        ({"sigma": 1.0, "metric": 2.0}, "give only one of sigma and metric"),
    ],
)
def test_bad_input(node: dict[str, Any], message: str) -> None:
    with pytest.raises(rrf.InputError, match=message):
        rrf.Problem(nodes=[{"id": "x", **node}])


def test_scatter_beyond_delta_is_told() -> None:
    with pytest.raises(rrf.InputError, match=r"answers scatter by up to .* more than delta = 1"):
        rrf.plan(pair(sigma=5.0, again=None))


def test_a_certificate_with_smaller_radii_is_refused() -> None:
    from rrf_design.checker._steps import check_noise

    made = rrf.certify(pair(), "all")
    for key in ("image", "own"):
        document = {**made.document, "noise": {**made.document["noise"]}}
        document["noise"]["answers"] = {
            **made.document["noise"]["answers"],
            key: made.document["noise"]["answers"][key] * 0.999,
        }
        with pytest.raises(rrf.RRFError, match="too small"):
            check_noise(document, made.record)  # fmt: skip
