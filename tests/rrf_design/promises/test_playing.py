"""Policies played over answers: the fast path, its sheets, its family."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rrf_design.errors import InputError, Refused
from rrf_design.problem import Problem
from rrf_design.promises import PilotSettings, gold_truths
from rrf_design.promises._play import play
from rrf_design.promises._policies import CascadePolicy, Escalation, LastStage, RuleKind, diluted, family_of
from rrf_design.promises._sheets import PolicyTemplate, read_sheet
from rrf_design.questions import dataset
from rrf_design.questions.answers import RecordedAnswers


@pytest.mark.parametrize(("unread", "wrong"), [(0.0, 0.3), (0.25, 0.3), (0.05, 0.05)])
def test_the_fast_path_is_the_products_own_decision(make_world: Any, unread: float, wrong: float) -> None:
    world = make_world(items=40, wrong=wrong, unread=unread, nodes=5)
    plan = world.plan(PilotSettings(20, 0.2))
    assert plan.whole.identity
    certified = [policy for policy in plan.policies if policy.gate is RuleKind.CONSISTENT]
    assert {policy.number for policy in certified} == {0, 1, 2}
    quick = play(certified, plan.whole, last=plan.last, fast=True)
    slow = play(certified, plan.whole, last=plan.last, fast=False)
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
    known = [truths[name] for name in plan.whole.ids]
    for one in play(plan.policies, plan.whole, last=plan.last, truths=known):
        expected = [v is not None and not t.right(v) for v, t in zip(one.values, known, strict=True)]
        assert one.wrong.tolist() == expected
        assert not (one.wrong & ~one.delivered).any()
        assert one.marks.count("w") == int(one.wrong.sum())


def test_costs_are_of_the_nodes_asked_and_of_the_person(make_world: Any) -> None:
    plan = make_world(items=30, wrong=0.4).plan(PilotSettings(30, 0.2))
    for one in play(plan.policies, plan.whole, last=plan.last):
        prices = {"total": 1.0, "reworded": 2.0, "cents": 3.0, "other": 4.0}
        for at, asked in enumerate(one.asked):
            calls = sum(prices[node] for node in one.policy.order[:asked])
            assert one.cost[at] == pytest.approx(calls + (0.0 if one.delivered[at] else 30.0))


def test_one_item_without_any_readable_answer_is_not_delivered_and_stops_nobody(make_world: Any) -> None:
    plan = make_world(items=30, wrong=0.0, unread=0.7).plan(PilotSettings(30, 0.2))
    silent = [at for at, row in enumerate(plan.whole.rows) if not any(v is not None for v in row.said.values())]
    assert silent
    for fast in (True, False):
        for one in play(plan.policies, plan.whole, last=plan.last, fast=fast):
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
    from rrf_design.promises._policies import CascadePolicy
    from rrf_design.questions.answers import RecordedAnswers

    world = with_ledger(make_world, lambda at, truth: truth, items=200, wrong=0.1)
    document = json.loads(json.dumps(world.document(PilotSettings(100, 0.05))))
    assert document["ladder"]["further"] == ["ledger"]
    assert CascadePolicy.from_json(document["ladder"]).to_json() == document["ladder"]
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
    from rrf_design.promises._policies import CascadePolicy
    from rrf_design.questions.answers import RecordedAnswers

    world = with_ledger(make_world, lambda at, truth: truth if at % 10 else "", items=200, wrong=0.0, together=1.0)
    document = json.loads(json.dumps(world.document(PilotSettings(100, 0.05))))
    assert document["policy"] == "ledger; else person"
    assert document["ladder"]["order"] == []
    assert CascadePolicy.from_json(document["ladder"]).to_json() == document["ladder"]
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


def shape(**changes: object) -> PolicyTemplate:
    parts: dict[str, object] = {
        "name": "field",
        "deliver": ["a"],
        "nodes": [{"id": "a"}, {"id": "b", "cost": 2.0}, {"id": "c"}, {"id": "parts", "dim": 2}],
        "relations": [
            {"id": "ab", "tail": "a", "head": "b", "transport": {"scale": 2.0}, "offset": 1.0},
            {"id": "cb", "tail": "c", "head": "b"},
        ],
        "anchors": [{"id": "sum", "nodes": ["parts", "a"], "rows": [[1.0, 1.0, -1.0]], "value": 0.0}],
        **changes,
    }
    return PolicyTemplate(Problem(**parts))


def test_answers_are_carried_to_the_delivered_value_along_any_path() -> None:
    found = shape()
    assert found.implied("a", (5.0,), {}) == (5.0,)
    assert found.implied("b", (11.0,), {}) == (5.0,)
    assert found.implied("c", (11.0,), {}) == (5.0,)  # through b
    assert found.implied("b", (13.0,), {"ab": 3.0}) == (5.0,)  # the row's own offset
    assert found.implied("parts", (2.0, 3.0), {}) is None  # only its sum says something
    assert found.implied("c", None, {}) is None
    assert found.prices == {"a": 0.0, "b": 2.0, "c": 0.0, "parts": 0.0}


def test_a_permutation_is_undone() -> None:
    found = PolicyTemplate(
        Problem(
            name="order",
            nodes=[{"id": "ab", "dim": 3}, {"id": "ba", "dim": 3}],
            relations=[{"id": "swap", "tail": "ab", "head": "ba", "transport": {"permute": [2, 0, 1]}}],
        )
    )
    # z_ba[i] = z_ab[permute[i]]
    assert found.implied("ba", (30.0, 10.0, 20.0), {}) == (10.0, 20.0, 30.0)


def test_camps_decide_only_where_every_node_is_a_voice_and_nothing_is_noisy() -> None:
    plain = {
        "nodes": [{"id": "a"}, {"id": "b"}],
        "relations": [{"id": "ab", "tail": "a", "head": "b"}],
        "anchors": [],
    }
    assert shape(**plain).identity
    assert not shape().identity
    assert not shape(**plain, epsilon=0.1).identity
    assert not shape(**plain, target=0.4).identity
    assert not shape(**{**plain, "anchors": [{"id": "x", "node": "a", "value": 1.0}]}).identity
    assert not shape(**{**plain, "relations": [{"id": "ab", "tail": "a", "head": "b", "uncertainty": 0.1}]}).identity


def test_a_person_without_a_price_is_refused() -> None:
    with pytest.raises(InputError, match="give the check a cost"):
        shape(anchors=[{"id": "clerk", "node": "a", "source": {"person": "?"}}])


def test_equal_answers_share_a_code(tmp_path: Path) -> None:
    (tmp_path / "rrf.toml").write_text(
        '[data]\nid = "no"\n[answer]\nof = "a"\n[[ask]]\nid = "a"\nprompt = "{{ no }}"\n'
        '[[ask]]\nid = "b"\nprompt = "{{ no }}"\nlike = "a"\nchange = { scale = 3 }\n'
        '[[ask]]\nid = "c"\nprompt = "{{ no }}"\nlike = "a"\n'
    )
    (tmp_path / "t.csv").write_text("no\n1\n2\n")
    rows = [
        ("1", "a", "5"),
        ("1", "b", "15"),
        ("1", "c", "6"),
        ("2", "a", "none"),
        ("2", "c", "0.1"),
        ("2", "b", "0.3"),
    ]
    lines = [json.dumps({"id": i, "node": n, "text": t, "cost": 0.5}) for i, n, t in rows]
    (tmp_path / "long.jsonl").write_text("\n".join(lines))
    data = dataset(tmp_path / "rrf.toml", tmp_path / "t.csv")
    with RecordedAnswers(data, tmp_path / "long.jsonl") as answers:
        sheet = read_sheet(data, answers, ["a", "b", "c"])
    assert sheet.codes.tolist() == [[0, 0, 2], [-1, 1, 1]]  # 0.3 / 3 is 0.1 up to rounding
    assert sheet.costs.tolist() == [[0.5] * 3] * 2
    assert sheet.rows[1].invalid == {"a": "parse failure"}
    assert sheet.rows[0].answers(["a", "c"]).invalid == {"b": "missing"}


def test_answers_are_read_as_a_repair_reads_them(tmp_path: Path) -> None:
    """Any words may be a class, but a refusal is none: three models that refuse in the same words
    agree on nothing.
    """
    asks = "".join(
        f'[[ask]]\nid = "{name}"\nprompt = "{{{{ text }}}} {name}"\nparse = "label"\n' + ('like = "a"\n' if at else "")
        for at, name in enumerate("ab")
    )
    (tmp_path / "rrf.toml").write_text(
        '[data]\ntable = "t.jsonl"\nid = "no"\n[answer]\nof = "a"\nk = 1\n' + asks,
    )
    (tmp_path / "t.jsonl").write_text('{"no": "x", "text": "Which city?"}\n')
    rows = [{"id": "x", "node": name, "text": "I cannot answer that."} for name in "ab"]
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = dataset(tmp_path / "rrf.toml")
    with RecordedAnswers(data, tmp_path / "answers.jsonl") as answers:
        sheet = read_sheet(data, answers, ["a", "b"])
    assert sheet.codes.tolist() == [[-1, -1]]
    assert sheet.rows[0].invalid == {"a": "refusal", "b": "refusal"}


NODES = ("a", "b", "c", "d", "e")
PRICES = {"a": 2.0, "b": 1.0, "c": 8.0, "d": 1.0, "e": 4.0}


def made(**changes: Any) -> list[CascadePolicy]:
    given: dict[str, Any] = {"voices": NODES, "last": LastStage.PERSON, **changes}
    return family_of(NODES, PRICES, **given)


def test_each_rule_stands_once_and_cheap_nodes_come_first() -> None:
    found = made()
    assert len({policy.name for policy in found}) == len(found)
    assert found[0].order == ("b",)
    assert {p.number for p in found if p.gate is RuleKind.CONSISTENT} == {0, 1, 2}
    assert any(policy.order == ("c", "e", "a", "d", "b") for policy in found)
    assert all(policy.within > 2 * policy.number for policy in found if policy.gate is RuleKind.CONSISTENT)


def test_a_lead_counts_voices_only() -> None:
    found = made(voices=("a", "b"))
    assert all(set(p.order) <= {"a", "b"} for p in found if p.gate is RuleKind.LEAD)
    assert any("c" in p.order for p in found if p.gate is RuleKind.CONSISTENT)


def test_climbs_are_policies_and_come_back_from_their_document() -> None:
    climbs = [
        Escalation(NODES, ((2, 0), (4, 1)), level=True),
        Escalation(NODES, ((2, 0), (5, 1)), level=False),
        Escalation(NODES, ((3, 1), (5, 2)), level=False),
    ]
    found = [policy for policy in made(escalations=climbs) if policy.earlier]
    assert [policy.name for policy in found] == [
        "consistent at k = 0 within a, b; else at k = 1 with c, d, e; else person",
        "consistent at k = 1 within a, b, c; else at k = 2 with d, e; else person",
    ]  # a level climb over voices is a lead, which is there already
    assert [CascadePolicy.from_json(policy.to_json()) for policy in found] == found
    assert len([p for p in made(escalations=climbs, voices=("a",)) if p.earlier]) == 3
    assert not [p for p in made(escalations=climbs, by_hand={"order": ["a", "b", "c", "d", "e"]}) if p.earlier]
    for bad in ([[5, 1]], [[2, 1]], [[0, 0]], [[2]], "2", [[2, True]], [[2, 0], [2, 1]]):
        with pytest.raises(InputError, match="rung"):
            CascadePolicy.from_json({**found[0].to_json(), "earlier": bad})


def test_a_recipe_can_fix_the_rungs() -> None:
    found = made(by_hand={"order": ["c", "a"], "gate": "consistent", "last": "withheld"})
    assert [(p.order, p.number, p.last) for p in found] == [
        (("c",), 0, LastStage.WITHHELD),
        (("c", "a"), 0, LastStage.WITHHELD),
    ]


def test_policies_come_back_from_their_documents_old_ones_too() -> None:
    old, new = (made(by_hand={"gate": word}) for word in ("certified", "consistent"))
    assert old == new
    for policy in made():
        assert CascadePolicy.from_json(policy.to_json()) == policy


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ({"rungs": 3}, "unknown key"),
        ({"gate": "consistant"}, "did you mean"),
        ({"last": "nobody"}, "person or withheld"),
        ({"order": ["z"]}, "no node"),
        ({"order": ["a", "a"]}, "each once"),
        ({"order": "a"}, "a list of nodes"),
        ({"order": 5}, "a list of nodes"),
        ({"within": "three"}, "whole number"),
        ({"within": 99}, "no policy of the family"),
    ],
)
def test_a_bad_ladder_is_refused(section: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        made(by_hand=section)


@pytest.mark.parametrize(
    "data",
    [
        None,
        {},
        {"order": [], "gate": "lead", "number": 1, "last": "person"},
        {"order": ["a", "a"], "gate": "lead", "number": 1, "last": "person"},
        {"order": ["a"], "gate": "luck", "number": 1, "last": "person"},
        {"order": ["a"], "gate": "lead", "number": True, "last": "person"},
        {"order": ["a"], "gate": "lead", "number": -1, "last": "person"},
    ],
)
def test_another_document_is_refused(data: Any) -> None:
    with pytest.raises(InputError):
        CascadePolicy.from_json(data)


def test_random_checks_keep_the_gate_and_survive_writing() -> None:
    found = diluted(made(), 0.15)
    assert {policy.random_checks for policy in found} == {
        0.0,
        0.1,
        0.2,
        0.3,
        0.4,
        0.5,
        0.6,
        0.7,
        0.8,
    }  # 0.9 leaves nothing to test
    assert len({policy.name for policy in found}) == len(found) == 9 * len(made())
    last = found[-1]
    assert CascadePolicy.from_json(last.to_json()) == last
    assert last.undiluted in made()
    with pytest.raises(InputError, match="random_checks"):
        CascadePolicy.from_json({**last.to_json(), "random_checks": 1})


def test_ids_that_read_as_several_are_quoted_so_that_no_two_ladders_have_one_name() -> None:
    orders = [("a, b",), ("a", "b"), ('"a', 'b"'), ('"a, b"',), ("a; else person", "b"), ("a", "; b"), ('a"', "b")]
    found = {CascadePolicy(order, RuleKind.LEAD, 1, LastStage.PERSON).name for order in orders}
    found |= {CascadePolicy(("x",), RuleKind.LEAD, 1, LastStage.PERSON, further=order).name for order in orders}
    assert len(found) == 2 * len(orders)
    assert 'lead of 1 within "a, b"; else person' in found
    policy = CascadePolicy(("a, b", "c"), RuleKind.CONSISTENT, 0, LastStage.PERSON)
    assert CascadePolicy.from_json(policy.to_json()) == policy
