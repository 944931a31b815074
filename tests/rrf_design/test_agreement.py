"""One truth in every room: on generated problem files all verbs agree on wanted margin, radius, price, reached and verdict."""

from __future__ import annotations

from pathlib import Path

import pytest
from agreeing import SIGNS, generated, live, page_words, true_field

import rrf_design as rrf
from rrf_design.explaining import explain
from rrf_design.goal import Goal
from rrf_design.models.scripted import ScriptedModel
from rrf_design.reporting import write_report

CASES = 60


def same(first: float | None, second: float | None) -> bool:
    return first == second or (first is not None and second is not None and first == pytest.approx(second, rel=1e-6))


@pytest.mark.parametrize("seed", range(CASES))
def test_plan_explain_certify_and_repair_agree(seed: int) -> None:
    problem = generated(seed)
    wish = Goal.of(problem)
    bought = rrf.plan(problem, budget=3.5)
    told = explain(problem, bought.selected, mend=False)
    written = rrf.certify(problem, bought.selected, budgets=())
    standing = problem.design(bought.selected).standing(problem)
    assert same(bought.wanted, standing.wanted)
    assert same(told.wanted, standing.wanted)
    assert written.standing is not None
    assert same(written.standing.wanted, standing.wanted)
    assert same(bought.epsilon, standing.radius.total)
    assert same(written.document["error"]["effective_epsilon"] or 0.0, standing.radius.total or 0.0)
    assert same(bought.robust_lower, standing.robust_lower)
    assert same(written.robust_lower, standing.robust_lower)
    assert told.enough == standing.reached == written.standing.reached
    assert same(bought.cost, float(problem.design(bought.selected).price))
    assert same(bought.error_bound, standing.error_bound)
    assert same(written.error_bound, standing.error_bound)
    assert written.met == (standing.reached or not wish.named)
    found = problem.margin(bought.selected)
    assert same(written.gamma_lower, found.lower)
    assert told.margin.value == found.value
    if standing.robust_lower > 0:
        assert rrf.verify(written).valid


@pytest.mark.parametrize("seed", range(0, CASES, 4))
def test_a_run_and_its_page_say_what_the_other_verbs_say(seed: int, tmp_path: Path) -> None:
    """One answer in three runs is wrong; what was bought is then held against every other verb, and against the page."""
    problem = live(generated(seed))
    truth = true_field(problem) | ({"n1": 9.0} if seed % 3 == 0 else {})
    model = ScriptedModel(lambda request: f"{truth[request.prompt]}")
    run = rrf.acquire(problem, model, budget=4.5, store=tmp_path / "runs.sqlite")
    (item,) = run.items
    held = tuple(name for name in item.selected if name in {*item.problem.node_by_id, *item.problem.block_by_id})
    standing = problem.design(held).standing(problem)
    told = explain(problem, held, mend=False)
    written = rrf.certify(problem, held, budgets=())
    fixed = rrf.repair(problem, {name: list(value) for name, value in item.answers.items()}, select=held)
    assert item.reached == told.enough == standing.reached
    assert same(item.robust_lower, standing.robust_lower)
    assert same(item.robust_lower, written.robust_lower)
    assert run.spent == pytest.approx(float(problem.design(held).price))
    assert run.spent <= 4.5
    assert item.verdict == fixed.verdict
    assert item.assumes == fixed.assumes
    assert item.repair is not None
    assert same(item.repair["wanted"], fixed.wanted)
    assert same(item.repair["epsilon"], fixed.epsilon)
    assert same(item.repair["error_bound"], fixed.error_bound)
    assert run.certified == (fixed.verdict == "certified")
    page = page_words(write_report(run, tmp_path / "run.html", problem=problem))
    assert f"verdict {SIGNS[item.verdict]} {item.verdict}" in page
    assert f"spent {run.spent:g} " in page
    assert ("The values may be used" in page) == (item.verdict == "certified")
    if item.goal is not None:
        assert (": reached" if standing.reached else ": not reached") in page
    design = page_words(write_report(told, tmp_path / "design.html", problem=problem))
    assert f"{float(problem.design(held).price):g}" in design


@pytest.mark.parametrize("seed", range(CASES))
def test_a_plan_for_the_goal_reaches_it_everywhere(seed: int) -> None:
    problem = generated(seed)
    wish = Goal.of(problem)
    if not wish.named:
        return
    if wish.delta is not None and problem.design("all").radius(problem).total is None:
        with pytest.raises(rrf.InputError, match="range"):
            rrf.plan(problem)
        assert not explain(problem, "all", mend=False).enough
        return
    bought = rrf.plan(problem)
    standing = problem.design(bought.selected).standing(problem)
    if bought.status == "infeasible":
        assert not explain(problem, "all", mend=False).enough or problem.structure.market.node_items
        return
    assert bought.reached == standing.reached
    assert bought.cost == pytest.approx(float(problem.design(bought.selected).price))
    if not standing.reached:
        return
    truth = true_field(problem)
    checks = {a.id: truth[a.nodes[0]] for a in problem.anchors if a.id in bought.selected}
    design = problem.design(bought.selected)
    answers = {name: truth[name] for name in design.operator.node_ids}
    fixed = rrf.repair(problem, answers, select=bought.selected, anchors=checks)
    assert same(fixed.wanted, standing.wanted) or problem.delta is not None
    assert fixed.verdict == "certified", fixed.reason
