"""Camps of equal answers and the product's own verdicts play the same policies alike."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from rrf_design.promises import PilotSettings, gold_truths, play
from rrf_design.promises.family import GateKind


@pytest.mark.parametrize(("unread", "wrong"), [(0.0, 0.3), (0.25, 0.3), (0.05, 0.05)])
def test_the_fast_path_is_the_products_own_decision(make_world: Any, unread: float, wrong: float) -> None:
    world = make_world(items=40, wrong=wrong, unread=unread, nodes=5)
    plan = world.plan(PilotSettings(20, 0.2))
    assert plan.sheet.identity
    certified = [policy for policy in plan.policies if policy.gate is GateKind.CERTIFIED]
    assert {policy.number for policy in certified} == {0, 1, 2}
    quick = play(certified, plan.sheet, last=plan.last, fast=True)
    slow = play(certified, plan.sheet, last=plan.last, fast=False)
    for a, b in zip(quick, slow, strict=True):
        assert a.asked == b.asked, a.name
        assert a.delivered.tolist() == b.delivered.tolist(), a.name
        assert [v is None or pytest.approx(v) == w for v, w in zip(a.values, b.values, strict=True)] == [True] * 40
        assert a.cost.tolist() == pytest.approx(b.cost.tolist())
    kinds = Counter(mark for one in slow for mark in one.delivered.tolist())
    assert kinds[True] > 50
    assert kinds[False] > 50


def test_what_is_wrong_is_what_was_delivered_and_is_not_the_truth(make_world: Any) -> None:
    plan = make_world(items=60, wrong=0.4).plan(PilotSettings(60, 0.2))
    truths, _ = gold_truths(plan)
    known = [truths[name] for name in plan.sheet.ids]
    for one in play(plan.policies, plan.sheet, last=plan.last, truths=known):
        expected = [v is not None and not t.right(v) for v, t in zip(one.values, known, strict=True)]
        assert one.wrong.tolist() == expected
        assert not (one.wrong & ~one.delivered).any()
        assert one.marks.count("w") == int(one.wrong.sum())


def test_costs_are_of_the_nodes_asked_and_of_the_person(make_world: Any) -> None:
    plan = make_world(items=30, wrong=0.4).plan(PilotSettings(30, 0.2))
    for one in play(plan.policies, plan.sheet, last=plan.last):
        prices = {"total": 1.0, "reworded": 2.0, "cents": 3.0, "other": 4.0}
        for at, asked in enumerate(one.asked):
            calls = sum(prices[node] for node in one.policy.order[:asked])
            assert one.cost[at] == pytest.approx(calls + (0.0 if one.delivered[at] else 30.0))


def test_one_item_without_any_readable_answer_is_not_delivered_and_stops_nobody(make_world: Any) -> None:
    plan = make_world(items=30, wrong=0.0, unread=0.7).plan(PilotSettings(30, 0.2))
    silent = [at for at, row in enumerate(plan.sheet.rows) if not any(v is not None for v in row.said.values())]
    assert silent
    for fast in (True, False):
        for one in play(plan.policies, plan.sheet, last=plan.last, fast=fast):
            assert not one.delivered[silent].any()
