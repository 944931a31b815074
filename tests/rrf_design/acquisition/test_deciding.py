"""The loop and repair are of one mind: a run ends where a repair of what was bought and read is certified, and not before money can do more."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design.acquisition.loop import Acquirer, Mode, Purchase, Settings, Settlement
from rrf_design.acquisition.purchases import Buys
from rrf_design.acquisition.stopping import Exhausted, Target
from rrf_design.market import exact
from rrf_design.verdict import Verdict

CASES = 60


def generated(seed: int) -> tuple[rrf.Problem, dict[str, float], frozenset[str]]:
    """A small field with a goal, its truth, and what can't be read: answers, and sometimes checks."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 5))
    nodes: list[dict[str, Any]] = [{"id": f"n{i}", "prompt": "?", "range": [0.0, 20.0]} for i in range(n)]
    for node in nodes[1:]:
        if rng.random() < 0.35:
            node["cost"] = round(float(rng.uniform(0.2, 1.5)), 1)
    pairs = [(i, j) for i in range(n) for j in range(i) if j == i - 1 or rng.random() < 0.4]
    truth = {"n0": 1.0}
    for i in range(1, n):
        truth[f"n{i}"] = truth[f"n{i - 1}"] * float(rng.choice([1.0, 2.0]))
    relations: list[dict[str, Any]] = [
        {
            "id": f"r{i}{j}",
            "tail": f"n{j}",
            "head": f"n{i}",
            "transport": {"scale": truth[f"n{i}"] / truth[f"n{j}"]},
            **({"cost": 0.7} if rng.random() < 0.3 else {}),
        }
        for i, j in pairs
    ]
    anchors: list[dict[str, Any]] = [
        {"id": f"a{i}", "node": f"n{i}", "value": truth[f"n{i}"], "cost": round(float(rng.uniform(0.5, 2.5)), 1)}
        for i in range(n)
        if rng.random() < 0.8
    ]
    settings: dict[str, Any] = {}
    if rng.random() < 0.5:
        settings |= {"target": round(float(rng.uniform(0.1, 0.8)), 1)}
    else:
        settings |= {"epsilon": 0.05, "delta": round(float(rng.uniform(0.2, 1.5)), 1)}
    if rng.random() < 0.4:
        settings["deliver"] = [f"n{rng.integers(n)}"]
    if rng.random() < 0.2:
        for node in nodes:
            node["unit"] = f"u{rng.integers(3)}"
    if rng.random() < 0.15 and anchors:
        settings["wrong_checks"] = 1
    if rng.random() < 0.2 and relations:
        relations[0]["uncertainty"] = 0.01
    silent = {f"n{i}" for i in range(n) if rng.random() < 0.35} | {a["id"] for a in anchors if rng.random() < 0.1}
    if silent.issuperset(truth):
        silent.discard(f"n{rng.integers(n)}")
    return rrf.Problem(k=1, nodes=nodes, relations=relations, anchors=anchors, **settings), truth, frozenset(silent)


def said(problem: rrf.Problem, truth: dict[str, float], held: frozenset[str], silent: frozenset[str]) -> Verdict:
    """What `repair` says of what was bought and read, asked for in the plainest way."""
    lost = {name for name in held & silent if name in problem.block_by_id}
    asked = {node.id for node in problem.nodes if node.cost is None} | {n for n in held if n in problem.node_by_id}
    answers = {name: None if name in silent else truth[name] for name in asked}
    kept = [name for name in held - lost if name not in problem.node_by_id or problem.node_by_id[name].cost is not None]
    read = {name for name in held - silent if name in problem.block_by_id}
    if problem.deliver is not None and not problem.wrong_checks and f"a{problem.deliver[0][1:]}" in read:
        return Verdict.CERTIFIED  # a trusted check of all that is delivered is its value
    if all(value is None for value in answers.values()):
        return Verdict.INCOMPLETE
    return rrf.repair(problem, answers, select=kept).verdict


def further(
    problem: rrf.Problem, held: frozenset[str], silent: frozenset[str], left: Fraction
) -> Iterator[frozenset[str]]:
    """Everything that the money that is left could still buy; what is known not to be read is no help."""
    market = problem.structure.market
    sale = [node.id for node in problem.nodes if node.cost is not None]
    sale += [block.id for block in problem.blocks if block.cost is not None]
    rest = [name for name in sale if name not in held and name not in silent]
    for size in range(1, len(rest) + 1):
        for names in combinations(rest, size):
            there = held.union(names)
            whole = all(
                set(problem.block_by_id[name].nodes) <= there.union(n.id for n in problem.nodes if n.cost is None)
                for name in names
                if name in problem.block_by_id
            )
            if whole and market.extra(names, held) <= left:
                yield there


def played(
    problem: rrf.Problem, truth: dict[str, float], silent: frozenset[str], *, mode: Mode, budget: float
) -> tuple[Acquirer, list[frozenset[str]]]:
    """The run to its end, and what was held whenever it decided to go on buying."""
    rule = Target() | Exhausted()
    acquirer = Acquirer(problem, settings=Settings(budget=budget, mode=mode, stop=rule))
    moments: list[frozenset[str]] = []
    while purchases := acquirer.ask(1):
        (purchase,) = purchases
        acquirer.tell(settled(purchase, truth, silent, problem))
        if not acquirer.state.items[""].round:
            moments.append(acquirer.state.items[""].held)
    return acquirer, moments


def settled(purchase: Purchase, truth: dict[str, float], silent: frozenset[str], problem: rrf.Problem) -> Settlement:
    if purchase.name in silent:
        return Settlement(purchase, "parse failure", ok=False)
    node = purchase.name if purchase.buys is Buys.ANSWER else problem.block_by_id[purchase.name].nodes[0]
    return Settlement(purchase, "ok", (truth[node],))


@pytest.mark.parametrize("mode", [Mode.ADAPTIVE, Mode.AGNOSTIC])
@pytest.mark.parametrize("seed", range(CASES))
def test_a_run_ends_where_repair_certifies_and_not_while_money_can_bring_it_there(seed: int, mode: Mode) -> None:
    problem, truth, silent = generated(seed)
    budget = 4.0
    acquirer, _ = played(problem, truth, silent, mode=mode, budget=budget)
    state = acquirer.state.items[""]
    stop = acquirer.stops[""]
    assert stop is not None
    verdict = said(problem, truth, state.held, silent)
    if mode is Mode.AGNOSTIC and problem.delta is not None and problem.whole.uncertain:
        return  # what answers say may bound it better than anything known before, and a fixed schedule looks at none of that
    assert (stop.because == "target reached") == (verdict is Verdict.CERTIFIED), (stop, verdict)
    if verdict is Verdict.CERTIFIED:
        return
    left = exact(budget) - acquirer.state.committed
    for there in further(problem, state.held, silent, left):
        assert said(problem, truth, there, silent) is not Verdict.CERTIFIED, (stop, sorted(there - state.held))


@pytest.mark.parametrize("seed", range(0, CASES, 2))
def test_nothing_is_bought_once_repair_would_certify(seed: int) -> None:
    problem, truth, silent = generated(seed)
    _, moments = played(problem, truth, silent, mode=Mode.ADAPTIVE, budget=4.0)
    for held in moments[:-1]:
        assert said(problem, truth, held, silent) is not Verdict.CERTIFIED, held


def test_a_check_that_belongs_to_the_field_waits_for_the_answer_it_is_about() -> None:
    """A judge is shown the answer: asked beside it, it may be shown nothing."""
    judged = rrf.Problem(
        k=1,
        nodes=[{"id": "a", "prompt": "?"}, {"id": "b", "prompt": "?"}],
        relations=[{"id": "ab", "tail": "a", "head": "b"}],
        anchors=[{"id": "judge", "node": "a", "sigma": 0.1}],
    )
    loop = Acquirer(judged)
    first = loop.ask(4)
    assert [purchase.name for purchase in first] == ["a", "b"]
    loop.tell(Settlement(first[0], "answered", (7.0,), calls=1))
    assert loop.ask(4) == ()
    loop.tell(Settlement(first[1], "answered", (7.0,), calls=1))
    assert [purchase.name for purchase in loop.ask(4)] == ["judge"]
