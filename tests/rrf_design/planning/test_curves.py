"""The curve of an item is the same whether its designs are listed or its frontier is walked.

The curve of promised errors against every design with every choice of repeats, by the
definition.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from small import all_designs, random_problem

import rrf_design as rrf
from rrf_design.derive import asking
from rrf_design.market import exact
from rrf_design.planning import curves
from rrf_design.planning.contract import Order
from rrf_design.planning.curves import _design_values, _enumerate_designs, _walk_frontier
from rrf_design.planning.evaluator import Evaluator


@pytest.mark.parametrize("features", [(), ("nodes", "dims"), ("radii",)], ids="-".join)
def test_enumeration_and_frontier_agree(features):
    problem = random_problem(5, features=features, nodes=4, blocks=5)
    objective = "robust" if "radii" in features else None
    listed = _enumerate_designs(Evaluator(problem, objective=objective), Order(budget=50.0))
    walked = _walk_frontier(Evaluator(problem, objective=objective), Order(budget=50.0))
    assert walked.complete
    assert listed.costs == walked.costs
    assert listed.values == pytest.approx(walked.values, abs=1e-7)


def test_many_designs_at_once_have_the_values_of_each():
    problem = random_problem(3, features=("nodes", "dims"), nodes=4, blocks=5, k=2)
    evaluator = Evaluator(problem)
    designs = [names for _, _, names in all_designs(problem, value=lambda names: 0.0)]
    masks = np.array([evaluator.market.mask(names) for names in designs])
    expected = [problem.margin(names).value for names in designs]
    assert _design_values(evaluator, masks) == pytest.approx(expected, abs=1e-7)


def field(seed: int, **settings: Any) -> rrf.Problem:
    rng = np.random.default_rng(seed)
    nodes = [
        {"id": f"n{i}", "sigma": round(float(rng.uniform(0.02, 0.2)), 2), "most_repeats": int(rng.integers(2, 4))}
        | {"again": round(float(rng.uniform(0.05, 0.5)), 2)}
        for i in range(2)
    ]
    anchors = [
        {"id": f"a{i}", "node": f"n{i % 2}", "value": 1.0, "cost": round(float(rng.uniform(0.2, 1.0)), 2)}
        for i in range(3)
    ]
    relations = [{"id": "r", "tail": "n0", "head": "n1"}]
    return rrf.Problem(k=1, nodes=nodes, relations=relations, anchors=anchors, **settings)


def all_pairs(problem: rrf.Problem) -> list[tuple[Fraction, float]]:
    """Cost and promised error of everything that can be bought and asked."""
    result = []
    names = [node.id for node in problem.nodes]
    for times in product(*[range(1, node.most_repeats + 1) for node in problem.nodes]):
        asked = asking(problem, dict(zip(names, times, strict=True)))
        paid = sum((exact(n.again or 0.0) * (t - 1) for t, n in zip(times, problem.nodes, strict=True)), Fraction(0))
        for chosen in product([False, True], repeat=len(problem.on_sale)):
            design = asked.design([name for name, taken in zip(problem.on_sale, chosen, strict=True) if taken])
            error = design.radius(asked).bound(design.margin().lower)
            if error is not None:
                result.append((paid + design.price, error))
    return sorted(result)


def undominated(pairs: list[tuple[Fraction, float]]) -> list[tuple[Fraction, float]]:
    result: list[tuple[Fraction, float]] = []
    for cost, error in pairs:
        if not result or error < result[-1][1] * (1 - 1e-6):
            result.append((cost, error))
    return result


@pytest.mark.parametrize("seed", range(8))
def test_every_undominated_promise_is_a_point(seed: int) -> None:
    problem = field(seed)
    wanted = undominated(all_pairs(problem))
    found = rrf.frontier(problem)
    assert found.of_error
    assert found.complete
    assert [exact(p.cost) for p in found.points] == [cost for cost, _ in wanted]
    assert [p.error_bound for p in found.points] == pytest.approx([error for _, error in wanted], rel=1e-6)
    assert all(p.status == "optimal" for p in found.points)
    point = found.points[-1]
    made = rrf.certify(asking(problem, point.repeats), point.selected)
    assert made.error_bound == pytest.approx(point.error_bound)
    assert rrf.verify(made).valid


@pytest.mark.parametrize("seed", range(6))
def test_where_not_all_designs_are_tried_a_floor_says_what_nobody_promises(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, wanted = field(seed), undominated(all_pairs(field(seed)))
    monkeypatch.setattr(curves, "LISTED", 0)
    if seed % 2:  # nor all choices of repeats
        monkeypatch.setattr("rrf_design.planning.goals.MOST_CHOICES", 1)
    for point in rrf.frontier(problem).points:
        best = min(error for cost, error in wanted if cost <= exact(point.cost))
        assert point.error_bound is not None
        assert point.error_floor is not None
        assert point.error_floor <= best * (1 + 1e-9) <= point.error_bound * (1 + 2e-9)
        assert point.status != "optimal" or point.error_bound == pytest.approx(best, rel=1e-5)


def test_a_budget_and_a_named_objective() -> None:
    problem = field(1)
    whole, within = rrf.frontier(problem), rrf.frontier(problem, budget=1.0)
    assert [p.cost for p in within.points] == [p.cost for p in whole.points if p.cost <= 1.0] or not within.points[
        0
    ].error_bound
    margins = rrf.frontier(problem, objective="gamma")
    assert not margins.of_error
    assert not any(p.repeats for p in margins.points)


def test_no_promise_without_a_bound_on_the_field() -> None:
    problem = field(1)
    relations = [{"id": "r", "tail": "n0", "head": "n1", "uncertainty": 0.1}]
    with pytest.raises(rrf.InputError, match="no error can be promised beforehand"):
        rrf.frontier(
            problem.model_copy(
                update={"relations": rrf.Problem(nodes=[{"id": "n0"}, {"id": "n1"}], relations=relations).relations}
            )
        )
