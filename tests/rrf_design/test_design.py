"""A design takes rows, margin, price and standing from its structure; slices agree with what is
assembled anew.
"""

from __future__ import annotations

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design.errors import InputError
from rrf_design.goal import Goal


def chain(**more: object) -> rrf.Problem:
    nodes = [{"id": f"n{i}"} for i in range(4)] + [{"id": "late", "cost": 0.5}]
    relations = [{"id": f"r{i}", "tail": f"n{i}", "head": f"n{i + 1}"} for i in range(3)]
    relations += [
        {"id": "to-late", "tail": "n3", "head": "late"},
        {"id": "far", "tail": "n0", "head": "n3", "cost": 1.0},
    ]
    anchors = [{"id": f"a{i}", "node": f"n{i}", "value": 1.0, "cost": 2.0} for i in range(4)]
    tiers = [{"id": "t", "blocks": ["a0", "a1"], "prices": [2.0, 0.5]}]
    return rrf.Problem(nodes=nodes, relations=relations, anchors=anchors, tiers=tiers, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("select", [[], ["far"], ["late"], ["a0", "a1"], ["late", "a3", "far"]])
def test_a_slice_has_the_rows_that_the_problem_has_with_only_those_blocks(select: list[str]) -> None:
    problem = chain()
    design = problem.design(select)
    operator = design.slice(problem)
    kept = [b for b in problem.blocks if b.id in operator.block_ids]
    alone = rrf.Problem(
        nodes=[n.model_copy(update={"cost": None}) for n in problem.nodes if n.id in operator.node_ids],
        relations=[b.model_copy(update={"cost": None}) for b in kept if b in problem.relations],
        anchors=[b.model_copy(update={"cost": None}) for b in kept if b in problem.anchors],
    )
    assert np.array_equal(operator.matrix.toarray(), alone.whole.matrix.toarray())
    assert np.array_equal(operator.target, alone.whole.target)
    assert design.margin().value == alone.margin().value
    assert problem.margin(select).selected == problem.resolve(select)


def test_the_price_is_the_markets_tiers_and_queries_included() -> None:
    problem = chain()
    assert problem.design(["a0", "a1"]).price == 2.5
    assert problem.design(["late"]).price == 0.5
    assert problem.design([]).price == 0


def test_a_margin_is_solved_once_unless_an_option_changes_how(monkeypatch: pytest.MonkeyPatch) -> None:
    import solvers

    calls = []
    real = solvers.margin
    monkeypatch.setattr(solvers, "margin", lambda *a, **k: calls.append(1) or real(*a, **k))  # type: ignore[func-returns-value]
    problem = chain()
    first = problem.design(["a0"]).margin()
    assert problem.design(["a0"]).margin().solved is first.solved
    assert len(calls) == 1
    problem.design(["a0"]).margin(time_limit=5.0)
    assert len(calls) == 2


def test_an_empty_field_has_no_margin() -> None:
    problem = rrf.Problem(nodes=[{"id": "a", "cost": 1.0}], anchors=[{"id": "x", "node": "a", "cost": 1.0}])
    with pytest.raises(InputError, match="empty"):
        problem.structure.holding().margin()
    with pytest.raises(InputError, match="select at least one"):
        problem.margin()


def test_standing_uses_the_problems_goal_or_another() -> None:
    problem = chain(target=0.9)
    design = problem.design(["a0", "a1"])
    assert not design.standing(problem).reached
    assert design.standing(problem, goal=Goal(target=0.1)).reached
    assert design.standing(problem).wanted == 0.9


def test_robust_lower_is_between_the_global_bound_and_the_margin() -> None:
    base = chain()
    relations = [r.model_copy(update={"uncertainty": 0.05}) for r in base.relations]
    doubtful = base.model_copy(update={"relations": tuple(relations)})
    design = doubtful.design(["a0", "a3"])
    margin = design.margin()
    eta = float(np.linalg.norm(design.operator.radii))
    assert margin.lower - eta <= design.robust_lower(margin) < margin.lower


def test_over_keeps_rows_that_reach_beyond() -> None:
    problem = chain()
    wide = problem.design(["late"])
    narrow = wide.over(problem.design().nodes)
    assert "late" not in narrow.operator.node_ids
    assert "to-late" in narrow.operator.block_ids
