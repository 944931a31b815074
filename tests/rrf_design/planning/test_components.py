"""Aims that look at every component, against brute force over all selections."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design.errors import InputError
from rrf_design.goal import reaches
from rrf_design.planning import read_plan, write_plan
from rrf_design.planning.contract import Aim


def islands(seed: int, *, parts: int = 3, k: int = 1) -> rrf.Problem:
    """Small components, each with relations that are owned and checks and relations on sale."""
    rng = np.random.default_rng(seed)
    nodes, relations, anchors = [], [], []
    for part in range(parts):
        own = [f"p{part}n{i}" for i in range(int(rng.integers(2, 4)))]
        nodes += [{"id": name} for name in own]
        for a, b in combinations(own, 2):
            cost = {} if rng.random() < 0.5 else {"cost": float(rng.integers(1, 4))}
            relations.append(
                {"id": f"{a}-{b}", "tail": a, "head": b, "transport": {"scale": float(rng.choice([1.0, 2.0]))}, **cost}
            )
        for name in own:
            if rng.random() < 0.6:
                anchors.append({"id": f"check {name}", "node": name, "value": 0.0, "cost": float(rng.integers(1, 4))})
    return rrf.Problem(k=k, nodes=nodes, relations=relations, anchors=anchors)


def margins(problem: rrf.Problem, groups: list[list[str]], select: tuple[str, ...]) -> list[float]:
    """The margin of every component by itself, by the exact engine on the part of the file."""
    found = []
    for group in groups:
        inside = [block for block in problem.blocks if set(block.nodes) <= set(group)]
        part = rrf.Problem(
            k=problem.k,
            nodes=[node for node in problem.nodes if node.id in group],
            relations=[one for one in inside if one in problem.relations],
            anchors=[one for one in inside if one in problem.anchors],
        )
        found.append(part.margin([name for name in select if name in part.block_by_id]).value)
    return found


def best(problem: rrf.Problem, groups: list[list[str]], budget: float, aim: Aim, target: float | None) -> Any:
    ranked = []
    prices = {block.id: block.cost for block in problem.blocks if block.cost is not None}
    for size in range(len(prices) + 1):
        for select in combinations(prices, size):
            cost = sum(prices[name] for name in select)
            if cost <= budget:
                values = margins(problem, groups, select)
                count = sum(value > 1e-9 and reaches(value, target) for value in values) if aim is Aim.REACHED else 0
                ranked.append((count, tuple(sorted(float(f"{v:.9g}") if v > 1e-9 else 0.0 for v in values)), -cost))
    return max(ranked)


@pytest.mark.parametrize("aim", ["reached", "leximin"])
@pytest.mark.parametrize("seed", range(8))
def test_the_plan_is_the_best_of_all_selections(seed: int, aim: str) -> None:
    problem, target = islands(seed), (None, 0.7)[seed % 2]
    found = rrf.plan(problem, budget=5.0, target=target, aim=aim)
    groups = [list(one.nodes) for one in found.components]
    assert sorted(name for group in groups for name in group) == sorted(node.id for node in problem.nodes)
    count, values, minus = best(problem, groups, 5.0, Aim(aim), target)
    assert sorted(float(f"{one.gamma:.9g}") if one.gamma > 1e-9 else 0.0 for one in found.components) == list(values)
    assert found.cost == pytest.approx(-minus)
    assert found.status.value == "optimal"
    assert found.reached == all(one.reached for one in found.components)
    if aim == "reached":
        assert found.value == count == sum(one.reached for one in found.components)
    assert found.gamma == pytest.approx(min(one.gamma for one in found.components), abs=1e-9)
    assert found.cost == pytest.approx(sum(one.cost for one in found.components))


def hopeless() -> rrf.Problem:
    """Chains: the first has nothing on sale that helps it, the others can each be mended."""
    nodes = [{"id": f"{chain}{i}"} for chain in "abcd" for i in range(2)]
    relations = [{"id": f"{c}{i}{i + 1}", "tail": f"{c}{i}", "head": f"{c}{i + 1}"} for c in "abcd" for i in range(1)]
    anchors = [{"id": f"{c}{i}!", "node": f"{c}{i}", "value": 0.0, "cost": 1.0} for c in "bcd" for i in range(2)]
    return rrf.Problem(k=1, nodes=nodes, relations=relations, anchors=anchors)


def test_money_that_can_not_raise_the_minimum_still_buys_and_the_plan_says_so() -> None:
    worst = rrf.plan(hopeless(), budget=7.0, aim="worst")
    assert (worst.selected, worst.aim) == ((), Aim.WORST)
    found = rrf.plan(hopeless(), budget=7.0)
    assert found.aim is Aim.REACHED
    assert found.cost > 0
    assert found.value == sum(one.reached for one in found.components) > sum(one.reached for one in worst.components)
    (note,) = [note for note in found.notes if "worst direction" in note]
    assert "nothing on sale sees more of it" in note
    assert all(name.startswith("a") for name in note.split("error on ")[1].split(", and")[0].split(", "))


def test_where_money_raises_the_minimum_the_default_is_as_before() -> None:
    problem = rrf.Problem(nodes=[{"id": "x"}], anchors=[{"id": "c", "node": "x", "value": 0.0, "cost": 1.0}])
    found = rrf.plan(problem, budget=1.0)
    assert (found.aim, found.selected) == (Aim.WORST, ("c",))
    assert [one.nodes for one in found.components] == [("x",)]


def test_a_plan_is_read_back_with_its_aim_and_components(tmp_path: Any) -> None:
    problem = hopeless()
    found = rrf.plan(problem, budget=3.0, aim="leximin")
    write_plan(found, tmp_path / "plan.json")
    again = read_plan(tmp_path / "plan.json", problem)
    assert (again.aim, again.components, again.reached) == (found.aim, found.components, found.reached)


def test_old_names_of_aims_are_read_and_others_refused() -> None:
    assert (Aim("smallest"), Aim("count")) == (Aim.WORST, Aim.REACHED)
    with pytest.raises(InputError, match="'best' is not one of worst, reached, leximin"):
        rrf.plan(hopeless(), budget=1.0, aim="best")
    with pytest.raises(InputError, match="needs a budget"):
        rrf.plan(hopeless(), target=0.5, aim="reached")
    fields = [rrf.Problem(nodes=[{"id": "x"}], anchors=[{"id": "c", "node": "x", "cost": 1.0}])] * 2
    old = rrf.portfolio(fields, budget=1.0, aim="count", target=0.5)
    assert old.to_json() == rrf.portfolio(fields, budget=1.0, aim="reached", target=0.5).to_json()


def test_what_ties_components_is_named() -> None:
    rule = {"id": "few", "blocks": ["b0!", "c0!"], "at_most": 1}
    problem = hopeless().model_copy(update={"rules": (rule,)})
    with pytest.raises(InputError, match="rule 'few' speaks of several components"):
        rrf.plan(problem, budget=2.0, aim="reached")
    assert rrf.plan(problem, budget=2.0).aim is Aim.WORST  # nothing else is promised


def test_leximin_over_items_is_the_best_of_all_spendings() -> None:
    prices = [(1.0, 0.5), (2.0, 2.0), (1.0, 3.0)]
    fields = [
        rrf.Problem(
            name=f"{i}",
            nodes=[{"id": "x"}],
            anchors=[
                {"id": f"c{j}", "node": "x", "value": 0.0, "cost": cost, "weight": float(j + 1 + i)}
                for j, cost in enumerate(own)
            ],
        )
        for i, own in enumerate(prices)
    ]
    found = rrf.portfolio(fields, budget=3.0, aim="leximin")
    ranked = []
    options = [[(), ("c0",), ("c1",), ("c0", "c1")]] * 3
    for a in options[0]:
        for b in options[1]:
            for c in options[2]:
                cost = sum(prices[i][int(n[1])] for i, own in enumerate((a, b, c)) for n in own)
                if cost <= 3.0:
                    values = [f.margin(own).value for f, own in zip(fields, (a, b, c), strict=True)]
                    ranked.append((tuple(sorted(float(f"{v:.9g}") for v in values)), -cost))
    values, minus = max(ranked)
    assert sorted(float(f"{share.gamma:.9g}") for share in found.shares) == list(values)
    assert (found.cost, found.status.value) == (-minus, "optimal")
