"""Camps of equal answers and the product's own verdicts play the same policies alike."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from rrf_design.errors import InputError, Refused
from rrf_design.promises import PilotSettings, gold_truths
from rrf_design.promises._play import play
from rrf_design.promises.policies import GateKind


@pytest.mark.parametrize(("unread", "wrong"), [(0.0, 0.3), (0.25, 0.3), (0.05, 0.05)])
def test_the_fast_path_is_the_products_own_decision(make_world: Any, unread: float, wrong: float) -> None:
    world = make_world(items=40, wrong=wrong, unread=unread, nodes=5)
    plan = world.plan(PilotSettings(20, 0.2))
    assert plan.sheet.identity
    certified = [policy for policy in plan.policies if policy.gate is GateKind.CONSISTENT]
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


def test_a_machine_decides_what_the_gate_does_not_accept(with_ledger: Any, make_world: Any) -> None:
    """Where the row has it; its price is paid instead of the person's, its errors are counted, and
    all else is as without it.
    """
    world = with_ledger(
        make_world, lambda at, truth: "" if at % 3 == 0 else truth + (at % 7 == 0), items=120, wrong=0.2
    )
    plan = world.plan(PilotSettings(60, 0.3))
    truths, _ = gold_truths(plan)
    known = [truths[name] for name in plan.pilot.ids]
    pairs = [(policy, policy.answers_only) for policy in plan.policies if policy.further and policy.order]
    assert len(pairs) * 2 == len(plan.policies) - 1
    assert {(policy.further, policy.further_k) for policy, _ in pairs} == {(("ledger",), None)}
    played = {one.policy: one for one in play(plan.policies, plan.pilot, last=plan.last, truths=known)}
    for policy, plain in pairs:
        with_it, without = played[policy], played[plain]
        assert policy.name == plain.name.replace("; else person", "; else ledger; else person")
        for at, name in enumerate(plan.pilot.ids):
            number = int(name[1:])
            if without.delivered[at] or number % 3 == 0:
                assert with_it.values[at] == without.values[at]
                assert (with_it.cost[at], with_it.wrong[at]) == (without.cost[at], without.wrong[at])
                assert at not in with_it.by_check
            else:
                assert at in with_it.by_check
                assert with_it.delivered[at]
                assert with_it.wrong[at] == (number % 7 == 0)
                assert with_it.cost[at] == pytest.approx(without.cost[at] - 30.0 + 5.0)


def test_a_ladder_with_a_check_is_tested_run_and_proven(with_ledger: Any, make_world: Any) -> None:
    """A ledger that is always right makes scattered answers cheap: the policy that uses it is
    chosen, proven, and delivers its values.
    """
    from rrf_design.promises import prove_policy, run_policy
    from rrf_design.promises.policies import LadderPolicy
    from rrf_design.questions.answers import RecordedAnswers

    world = with_ledger(make_world, lambda at, truth: truth, items=200, wrong=0.1)
    document = json.loads(json.dumps(world.document(PilotSettings(100, 0.05))))
    assert document["ladder"]["further"] == ["ledger"]
    assert LadderPolicy.from_json(document["ladder"]).to_json() == document["ladder"]
    assert "; else ledger; else person" in document["policy"]
    assert document["cost_per_item"] < 20.0
    prove_policy(document)
    data = world.dataset
    with RecordedAnswers(data, world.answers) as answers:
        found = run_policy(data, answers, document)
    truth = {item.id: item.gold for item in data.items_in_order()}
    wrong = sum(row["answer"] != truth[name] for name, row in zip(found.ids, found.rows, strict=True))
    assert found.complete
    assert any(row["reason"].startswith("the check 'ledger' states the value") for row in found.rows)
    assert wrong <= 0.05 * 200
    with pytest.raises(Refused):
        prove_policy({**document, "ladder": {key: v for key, v in document["ladder"].items() if "further" not in key}})


def test_a_ledger_that_errs_is_not_believed(with_ledger: Any, make_world: Any) -> None:
    """Its errors count like those of answers: the policies that rest on it are refuted, whatever
    the recipe calls it.
    """
    world = with_ledger(make_world, lambda at, truth: truth + 1, items=200, wrong=0.25)
    document = world.document(PilotSettings(100, 0.05))
    assert not any(
        entry["proven"] and "ledger" in entry["policy"] for entry in document["policies"] if entry["wrong"] > 1
    )
    assert document["ladder"] is None or "further" not in document["ladder"]


def test_a_check_by_hand(with_ledger: Any, make_world: Any) -> None:
    world = with_ledger(
        make_world, lambda at, truth: truth, items=80, wrong=0.2, extra='\n[ladder]\ncheck = "ledger"\n'
    )
    assert {policy.further for policy in world.plan(PilotSettings(60, 0.3)).policies} == {("ledger",)}
    for name in ("clerk", "nobody"):
        other = with_ledger(
            make_world, lambda at, truth: truth, items=80, wrong=0.2, extra=f'\n[ladder]\ncheck = "{name}"\n'
        )
        with pytest.raises(InputError, match=f"check = '{name}' is no check on sale.*known: ledger"):
            other.plan(PilotSettings(60, 0.3))
    none = make_world(items=80, wrong=0.2)
    assert {policy.further for policy in none.plan(PilotSettings(60, 0.3)).policies} == {()}


def test_a_check_may_decide_everything(with_ledger: Any, make_world: Any) -> None:
    """Answers that are always wrong and a ledger that never is: nobody is asked, the ledger is
    looked up, and a person has the rows without one.
    """
    from rrf_design.promises import prove_policy, run_policy
    from rrf_design.promises.policies import LadderPolicy
    from rrf_design.questions.answers import RecordedAnswers

    world = with_ledger(make_world, lambda at, truth: truth if at % 10 else "", items=200, wrong=0.0, together=1.0)
    document = json.loads(json.dumps(world.document(PilotSettings(100, 0.05))))
    assert document["policy"] == "ledger; else person"
    assert document["ladder"]["order"] == []
    assert LadderPolicy.from_json(document["ladder"]).to_json() == document["ladder"]
    prove_policy(document)
    data = world.dataset
    with RecordedAnswers(data, world.answers) as answers:
        found = run_policy(data, answers, document)
    rows = dict(zip(found.ids, found.rows, strict=True))
    waiting = [name for name, _, _ in found.reviews]
    assert all(int(name[1:]) % 10 == 0 for name in waiting)
    outside = [name for name in rows if name not in document["drawn"]]
    assert found.totals.cost == sum(30.0 if name in waiting else 5.0 for name in outside)
    with pytest.raises(Refused):
        prove_policy({**document, "ladder": {**document["ladder"], "further": []}})
