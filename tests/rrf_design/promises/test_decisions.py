"""Ladders with fetched checks: the batch path against one item after the other, and the replay against the live loop."""

from __future__ import annotations

from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.bundles import Given
from rrf_design.decisive import decides, states
from rrf_design.promises import LadderPolicy, PilotSettings, gold_truths, plan_pilot, play
from rrf_design.promises.family import GateKind
from rrf_design.promises.pilot_plans import buy_pilot
from rrf_design.promises.running import _climb
from rrf_design.promises.sheets import SheetRow, read_sheet

WORLDS = [
    ({"kinds": ("tests", "judge"), "seed": 1, "seldom": ("tests",)}),
    ({"kinds": ("command", "judge"), "seed": 2, "judge_wrong": 0.4, "costs": {"command": 1.5, "judge": 9.0}}),
    ({"kinds": ("judge",), "seed": 3, "wrong": 0.6, "seldom": ("judge",)}),
    ({"kinds": ("tests", "command"), "seed": 4, "wrong": 0.1, "extra": '\n[ladder]\ncheck = ["command", "tests"]\n'}),
]


def bought(world: Any) -> Any:
    """Everything about every item."""
    data = world.dataset
    settings = PilotSettings(len(data), 0.4, order="holm")
    return plan_pilot(data, buy_pilot(data, settings, world.live("all.sqlite")), settings)


@pytest.mark.parametrize("given", WORLDS)
def test_a_policy_on_all_items_is_what_one_item_after_the_other_comes_to(make_checked_world: Any, given: Any) -> None:
    world = make_checked_world(given["kinds"], **{key: v for key, v in given.items() if key != "kinds"})
    plan = bought(world)
    certified = [policy for policy in plan.policies if policy.gate is GateKind.CERTIFIED and policy.further]
    rungs = {(policy.further, policy.further_k) for policy in certified}
    assert rungs
    seen: set[str] = set()
    known: Known = {}
    for one in play(_some(certified, 2), plan.sheet, last=plan.last):
        for at, row in enumerate(plan.sheet.rows):
            value, held = walk(one.policy, row, known)
            assert one.held[at] == held, (one.name, row.id)
            assert (one.values[at] is None) == (value is None), (one.name, row.id)
            assert value is None or one.values[at] == pytest.approx(value)
            paid = sum(row.price(step) for step in held) + (30.0 if value is None else 0.0)
            assert one.cost[at] == pytest.approx(paid)
            seen.update(held)
    assert seen >= {step for steps, _ in rungs for step in steps}


def _some(policies: list[LadderPolicy], each: int) -> list[LadderPolicy]:
    """So many of every rung with checks."""
    by_rung: dict[Any, list[LadderPolicy]] = {}
    for policy in policies:
        by_rung.setdefault((policy.further, policy.further_k), []).append(policy)
    return [policy for found in by_rung.values() for policy in found[:: max(1, len(found) // each)][:each]]


Known = dict[tuple[str, tuple[str, ...], int], tuple[str, Any]]


def walk(policy: LadderPolicy, row: SheetRow, known: Known) -> tuple[Any, tuple[str, ...]]:
    """The obvious way: one answer or check after the other, one repair after the other."""
    held: tuple[str, ...] = ()
    for step in policy.order:
        held = (*held, step)
        unread = sum(row.said[name] is None for name in held)
        open_rungs = [(most, k - unread) for most, k in policy.rungs if most >= len(held)]
        for most, k in open_rungs:
            verdict = judged(row, held, k - (most - len(held)), known)
            if verdict[0] == "certified":
                return verdict[1], held
        if all(k < 0 or judged(row, held, k, known)[0] == "contradicted" for _, k in open_rungs):
            break
    checks = row.shape.checks
    last = max((at for at, step in enumerate(policy.further) if step in checks), default=-1)
    steps = [s for s in policy.further[: last + 1] if s in checks or (s in row.said and s not in held)]
    for at, step in enumerate(steps):
        held = (*held, step)
        rest = steps[at + 1 :]
        answers = [name for name in held if name not in checks]
        unread = sum(row.said[name] is None for name in answers)
        node = row.shape.node
        for name in held:
            if name in checks and name in row.checked and decides(row.shape.problem, checks[name], node):
                return row.checked[name], held
        k = len(answers) - unread if policy.further_k is None else policy.further_k - unread
        sure = k if policy.further_k is None else k - sum(name not in checks for name in rest)
        if policy.further_k is None and not any(name in row.checked for name in held):
            continue
        verdict = judged(row, held, sure, known)
        if verdict[0] == "certified":
            return verdict[1], held
        lost = k < 0 or judged(row, held, k, known)[0] == "contradicted"
        if lost and not any(s in checks and states(checks[s], node) for s in rest):
            break
    return None, held


def judged(row: SheetRow, held: tuple[str, ...], k: int, known: Known) -> tuple[str, Any]:
    if (row.id, held, k) not in known:
        known[row.id, held, k] = repaired(row, held, k)
    return known[row.id, held, k]


def repaired(row: SheetRow, held: tuple[str, ...], k: int) -> tuple[str, Any]:
    """The product's word on what is held, at k; where no answer may be wrong, none is."""
    problem = row.item.problem
    if k < 0 or not any(row.said.get(name) is not None for name in held):
        return "open", None
    said: dict[str, Any] = {n.id: {"status": "missing"} for n in problem.nodes}
    said |= {name: list(row.said[name]) for name in held if isinstance(row.said.get(name), tuple)}  # type: ignore[arg-type]
    checks = {name: list(row.checked[name]) for name in held if name in row.checked}
    found = rrf.repair(problem, said, select=list(checks), k=max(1, k), given=Given(anchors=checks))
    value = found.repaired.get("total")
    if k == 0:
        clean = found.verdict.value != "contradicted" and not found.support
        voice = next((row.implied[name] for name in held if row.implied.get(name) is not None), None)
        return ("certified", value if value is not None else voice) if clean else ("contradicted", None)
    return found.verdict.value, value


@pytest.mark.parametrize("given", WORLDS[:3])
def test_the_live_loop_does_what_the_replay_says(make_checked_world: Any, given: Any) -> None:
    """Value, delivered or not, cost, and what was bought of each item: nothing more, nothing less."""
    world = make_checked_world(given["kinds"], **{key: v for key, v in given.items() if key != "kinds"})
    plan, data = bought(world), world.dataset
    truths, _ = gold_truths(plan)
    nodes = tuple(plan.sheet.nodes)
    higher = [policy for policy in plan.policies if policy.further]
    for number, policy in enumerate(_some(higher, 1)):
        live = world.live(f"live{number}.sqlite")
        answers = _climb(data, live, {"policy": policy.name, "ladder": policy.to_json(), "drawn": []}, nodes)
        known = [truths[name] for name in data]
        (replayed,) = play([policy], plan.sheet, last=plan.last, truths=known)
        (ran,) = play([policy], read_sheet(data, answers, nodes), last=plan.last, truths=known)
        assert ran.values == replayed.values
        assert ran.marks == replayed.marks
        assert ran.cost.tolist() == replayed.cost.tolist()
        assert ran.held == replayed.held
        there = [set(answers.of(name)) for name in data]
        assert there == [set(held) for held in replayed.held]
