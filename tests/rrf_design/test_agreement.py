"""One truth in every room: on generated problem files all verbs agree on wanted margin, radius, price, reached and verdict."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design.explain import explain
from rrf_design.files import to_document
from rrf_design.goal import Goal
from rrf_design.models.scripted import ScriptedModel
from rrf_design.reporting import write_report

SIGNS = {"certified": "✓", "ambiguous": "?", "incomplete": "?", "contradicted": "✗"}

CASES = 60


def generated(seed: int) -> rrf.Problem:
    """A small field with a random mix of noise, uncertainty, ranges, goals, tiers, queries on sale, and what is assumed."""
    rng = np.random.default_rng(seed)
    nodes: list[dict[str, Any]] = [{"id": f"n{i}", "range": [0.0, 2.0]} for i in range(int(rng.integers(2, 5)))]
    if rng.random() < 0.3:
        nodes[-1]["cost"] = round(float(rng.uniform(0, 2)), 2)
    if rng.random() < 0.2:
        del nodes[0]["range"]
    relations: list[dict[str, Any]] = [
        {"id": f"r{i}", "tail": f"n{i}", "head": f"n{i + 1}", "transport": {"scale": float(rng.choice([1.0, 2.0]))}}
        for i in range(len(nodes) - 1)
    ]
    if seed % 3 == 0 and len(nodes) > 2:
        first, second = (relation["transport"]["scale"] for relation in relations[:2])
        offset = first * second - first - 1.0  # of the field that begins with 1
        relations.append({"id": "sum", "sum": ["n0", "n1"], "head": "n2", "offset": offset})
    anchors: list[dict[str, Any]] = [
        {"id": f"a{i}", "node": f"n{i}", "value": float(2**i), "cost": 1.5} for i in range(len(nodes))
    ]
    for block in (*relations, *anchors):
        if rng.random() < 0.25:
            block["sigma"] = round(float(rng.uniform(0.05, 0.5)), 2)
        if rng.random() < 0.2:
            block["uncertainty"] = 0.02
    settings: dict[str, Any] = {}
    if rng.random() < 0.4:
        settings["epsilon"] = 0.05
    elif rng.random() < 0.4:
        settings["sigma"] = 0.03
    if rng.random() < 0.5:
        settings["delta"] = round(float(rng.uniform(0.2, 4.0)), 1)
    if rng.random() < 0.4:
        settings["target"] = round(float(rng.uniform(0.1, 0.9)), 1)
    if seed % 2:
        _with_premise(rng, nodes, [*relations, *anchors], settings)
    tiers = [{"id": "t", "blocks": [a["id"] for a in anchors[:2]], "prices": [1.5, 0.5]}] if rng.random() < 0.4 else []
    if seed % 3 == 0:
        _with_shared_noise(rng, relations, anchors, settings)
    return rrf.Problem(k=1, nodes=nodes, relations=relations, anchors=anchors, tiers=tiers, **settings)


def _with_shared_noise(
    rng: np.random.Generator, relations: list[dict[str, Any]], anchors: list[dict[str, Any]], settings: dict[str, Any]
) -> None:
    """Labels of one annotator; relations that are more than copies of one another."""
    noisy = [block["id"] for block in anchors if "sigma" in block]
    if len(noisy) > 1:
        settings["noise"] = [{"id": "annotator", "blocks": noisy, "correlation": round(float(rng.uniform()), 1)}]
    if rng.random() < 0.5:
        rho = round(float(rng.uniform()), 1)
        for relation in relations:
            relation.update(family="wordings", correlation=rho)


def _with_premise(
    rng: np.random.Generator, nodes: list[dict[str, Any]], blocks: list[dict[str, Any]], settings: dict[str, Any]
) -> None:
    """Some of: nodes that fail together, values that are delivered, checks that may be wrong."""
    if rng.random() < 0.5:
        for node in nodes:
            node["unit"] = f"u{rng.integers(2)}"
    if rng.random() < 0.6:
        settings["deliver"] = [f"n{rng.integers(len(nodes))}"]
    if rng.random() < 0.5:
        settings["wrong_checks"] = 1
        for block in blocks:
            if rng.random() < 0.5 and not {"sigma", "uncertainty"} & set(block):
                block["trusted"] = True


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


def true_field(problem: rrf.Problem) -> dict[str, float]:
    truth = {f"n{i}": 1.0 for i in range(len(problem.nodes))}
    for relation in (relation for relation in problem.relations if relation.pair):
        truth[relation.head] = truth[relation.tail] * (relation.transport.scale or 1.0)
    return truth


def live(problem: rrf.Problem) -> rrf.Problem:
    """The same with prompts to ask, and checks that say the truth."""
    document = to_document(problem)
    truth = true_field(problem)
    for node in document["nodes"]:
        node["prompt"] = node["id"]
    for anchor in document["anchors"]:
        anchor["value"] = truth[anchor["node"]]
    return rrf.Problem(**document.pop("problem"), **document)


def page_words(path: Path) -> str:
    text = re.sub(r"<(script|style).*?</\1>", " ", path.read_text(encoding="utf-8"), flags=re.S)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", text)))


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
