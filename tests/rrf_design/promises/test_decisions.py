"""Ladders of answers and checks: which there are, and that all paths through them agree."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from itertools import combinations, pairwise
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.checks import decides, states
from rrf_design.derive import on_sale
from rrf_design.problem import Problem
from rrf_design.promises import CascadePolicy, LiveModels, PilotSettings, gold_truths, plan_pilot
from rrf_design.promises._checks import shown_to
from rrf_design.promises._pilot_design import buy_pilot
from rrf_design.promises._play import play
from rrf_design.promises._policies import (
    MOST_STRUCTURES,
    CheckStage,
    RuleKind,
    check_stages,
    common,
    escalations_of,
    stages_by_hand,
)
from rrf_design.promises._reuse import buy_stages
from rrf_design.promises._sheets import ItemAnswers, read_sheet

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
    certified = [policy for policy in plan.policies if policy.gate is RuleKind.CONSISTENT and policy.further]
    rungs = {(policy.further, policy.further_k) for policy in certified}
    assert rungs
    seen: set[str] = set()
    known: Known = {}
    for one in play(_some(certified, 2), plan.whole, last=plan.last):
        for at, row in enumerate(plan.whole.rows):
            value, held = walk(one.policy, row, known)
            assert one.held[at] == held, (one.name, row.id)
            assert (one.values[at] is None) == (value is None), (one.name, row.id)
            assert value is None or one.values[at] == pytest.approx(value)
            paid = sum(row.price(step) for step in held) + (30.0 if value is None else 0.0)
            assert one.cost[at] == pytest.approx(paid)
            seen.update(held)
    assert seen >= {step for steps, _ in rungs for step in steps}


def _some(policies: list[CascadePolicy], each: int) -> list[CascadePolicy]:
    """So many of every rung with checks."""
    by_rung: dict[Any, list[CascadePolicy]] = {}
    for policy in policies:
        by_rung.setdefault((policy.further, policy.further_k), []).append(policy)
    return [policy for found in by_rung.values() for policy in found[:: max(1, len(found) // each)][:each]]


Known = dict[tuple[str, tuple[str, ...], int], tuple[str, Any]]


def walk(policy: CascadePolicy, row: ItemAnswers, known: Known) -> tuple[Any, tuple[str, ...]]:
    """The obvious way: one answer or check after the other, one repair after the other."""
    held: tuple[str, ...] = ()
    for step in policy.order:
        held = (*held, step)
        unread = sum(row.said[name] is None for name in held)
        open_stages = [(most, k - unread) for most, k in policy.stages if most >= len(held)]
        for most, k in open_stages:
            verdict = judged(row, held, k - (most - len(held)), known)
            if verdict[0] == "consistent":
                return verdict[1], held
        if all(k < 0 or judged(row, held, k, known)[0] == "contradicted" for _, k in open_stages):
            break
    checks = row.template.checks
    last = max((at for at, step in enumerate(policy.further) if step in checks), default=-1)
    steps: list[str] = []
    for step in policy.further[: last + 1]:
        made_from = shown_to(row.template.problem, checks[step]) if step in checks else ()
        shown = step in checks and all(name in held or name in steps for name in made_from)
        if shown or (step in row.said and step not in held):
            steps.append(step)
    while steps and steps[-1] not in checks:
        steps.pop()
    for at, step in enumerate(steps):
        held = (*held, step)
        rest = steps[at + 1 :]
        answers = [name for name in held if name not in checks]
        unread = sum(row.said[name] is None for name in answers)
        node = row.template.node
        for name in held:
            if name in checks and name in row.checked and decides(row.template.problem, checks[name], node):
                return row.checked[name], held
        k = len(answers) - unread if policy.further_k is None else policy.further_k - unread
        sure = k if policy.further_k is None else k - sum(name not in checks for name in rest)
        if policy.further_k is None and not any(name in row.checked for name in held):
            continue
        verdict = judged(row, held, sure, known)
        if verdict[0] == "consistent":
            return verdict[1], held
        lost = k < 0 or judged(row, held, k, known)[0] == "contradicted"
        if lost and not any(s in checks and states(checks[s], node) for s in rest):
            break
    return None, held


def judged(row: ItemAnswers, held: tuple[str, ...], k: int, known: Known) -> tuple[str, Any]:
    if (row.id, held, k) not in known:
        known[row.id, held, k] = repaired(row, held, k)
    return known[row.id, held, k]


def repaired(row: ItemAnswers, held: tuple[str, ...], k: int) -> tuple[str, Any]:
    """The product's word on what is held, at k; where no answer may be wrong, none is."""
    problem = row.item.problem
    if k < 0 or not any(row.said.get(name) is not None for name in held):
        return "open", None
    said: dict[str, Any] = {n.id: {"status": "missing"} for n in problem.nodes}
    said |= {name: list(row.said[name]) for name in held if isinstance(row.said.get(name), tuple)}  # type: ignore[arg-type]
    checks = {name: list(row.checked[name]) for name in held if name in row.checked}
    found = rrf.repair(problem, said, select=list(checks), k=max(1, k), anchors=checks)
    value = found.repaired.get("total")
    if k == 0:
        clean = found.verdict.value != "contradicted" and not found.support
        voice = next((row.implied[name] for name in held if row.implied.get(name) is not None), None)
        return ("consistent", value if value is not None else voice) if clean else ("contradicted", None)
    return found.verdict.value, value


@pytest.mark.parametrize("given", WORLDS[:3])
def test_the_live_loop_does_what_the_replay_says(make_checked_world: Any, given: Any) -> None:
    """Value, delivered or not, cost, and what was bought of each item: nothing more, nothing
    less.
    """
    world = make_checked_world(given["kinds"], **{key: v for key, v in given.items() if key != "kinds"})
    plan = bought(world)
    live_is_replay(world, plan, _some([policy for policy in plan.policies if policy.further], 1))


def live_is_replay(world: Any, plan: Any, policies: list[CascadePolicy]) -> None:
    data, nodes = world.dataset, tuple(plan.whole.nodes)
    truths, _ = gold_truths(plan)
    for number, policy in enumerate(policies):
        live = world.live(f"live{number}.sqlite")
        answers = buy_stages(data, live, {"policy": policy.name, "ladder": policy.to_json(), "drawn": []}, nodes)
        known = [truths[name] for name in data]
        (replayed,) = play([policy], plan.whole, last=plan.last, truths=known)
        (ran,) = play([policy], read_sheet(data, answers, nodes), last=plan.last, truths=known)
        assert ran.values == replayed.values
        assert ran.marks == replayed.marks
        assert ran.cost.tolist() == replayed.cost.tolist()
        assert ran.held == replayed.held
        there = [set(answers.of(name)) for name in data]
        rows = zip(plan.whole.rows, replayed.held, strict=True)
        assert there == [
            {name for name in held if name in row.said or name in row.template.checks} for row, held in rows
        ]


REPEATED = """[data]
id = "no"
gold = "booked"

[answer]
of = "total"
k = 1
tolerance = 0.5

[[ask]]
id = "total"
prompt = "{{ text }} total?"
cost = 1.0
repeat = 3

[[ask]]
id = "hint"
like = "total"
when = "{{ odd }}"
prompt = "{{ text }} hint?"
cost = 3.0

[[check]]
id = "judge"
of = "total"
by = { verifier = "other", prompt = "Is {{ answer }} the double of {{ text }}?", parser = "integer-last" }
sigma = 0.05
cost = 2.0

[[check]]
id = "again"
of = "total"
by = { verifier = "other", prompt = "Is {{ answer }} the double of {{ text }}?" }
sigma = 0.05
cost = 2.0

[[check]]
id = "clerk"
of = "total"
by = { person = "Double of {{ text }}?" }
cost = 30.0
"""
"""Three equal questions, two equal judges (one says what the other leaves to the default)."""
HINTED = REPEATED.replace("{{ answer }}", "{{ answer }} or {{ hint }}").replace("sigma", 'when = "{{ odd }}"\nsigma')
"""Judges are shown an answer that every other item has."""


TWO_NAMES = REPEATED.replace("repeat = 3", 'model = ["mini", "other"]').replace(
    'of = "total"\nby = { verifier = "other", prompt = "Is {{ answer }} the double of {{ text }}?" }',
    'of = "total@other"\nby = { verifier = "mini", prompt = "Is {{ total }} the double of {{ text }}?" }',
)
"""One model under two names, and two judges of two answers, whose prompts turn out to be the
same.
"""


SCATTERED = """[data]
id = "no"
gold = { column = "booked", tolerance = 1.0 }

[ladder]
check = ["judge", "again"]

[problem]
k = 1
delta = 1.0
deliver = ["a"]

[[nodes]]
id = "a"
prompt = "{{ text }} a?"
sigma = 0.2
repeats = 3
price = 1.0
unit = "u"

[[nodes]]
id = "b"
prompt = "{{ text }} b?"
sigma = 0.2
price = 2.0
unit = "u"

[[nodes]]
id = "c"
prompt = "{{ text }} c?"
sigma = 0.2
price = 3.0

[[relations]]
id = "ab"
tail = "a"
head = "b"

[[relations]]
id = "ac"
tail = "a"
head = "c"

[[anchors]]
id = "judge"
nodes = ["a", "b"]
rows = [[0.5, 0.5]]
source = { verifier = "other", prompt = "Is {{ answer }} or {{ b }} the double of {{ text }}?", variables = { text = "{{ text }}" } }
sigma = 0.1
cost = 2.0

[[anchors]]
id = "again"
node = "c"
source = { verifier = "mini", prompt = "Is {{ answer }} or {{ answer }} the double of {{ text }}?", variables = { text = "{{ text }}" } }
rate = 0.1
cost = 1.0

[[anchors]]
id = "clerk"
node = "a"
source = { person = "Double of {{ text }}?" }
cost = 30.0
"""
"""A node whose answer is a mean, units, a judge over two nodes, one with a rate."""


class RepeatedWorld:
    """Every (prompt, repeat) has an answer of its own, wrong or right, and the cache keeps it."""

    def __init__(self, folder: Any, text: str) -> None:
        from rrf_design.models.scripted import ScriptedModel

        self.folder, self.asked = folder, set[tuple[str, int]]()
        rows = [{"no": f"i{no}", "text": f"item {no}", "booked": 2 * no, "odd": "yes" * (no % 2)} for no in range(6)]
        recipe = folder / "rrf.toml"
        recipe.write_text(text)
        self.dataset = rrf.dataset(recipe, rows)
        self.model = ScriptedModel(self._say)
        self.model.kept = True

    def _say(self, request: Any) -> str:
        self.asked.add((request.prompt, request.repeat))
        number = int(re.findall(r"item (\d+)", request.prompt)[0])
        draw = random.Random(f"{request.prompt} {request.repeat}")
        return str(2 * number + (draw.randrange(1, 4) if draw.random() < 0.4 else 0))

    def live(self, journal: str) -> LiveModels:
        models = {"mini": self.model, "other": self.model}
        return LiveModels(models, self.folder / journal, {"cache": self.folder / "cache"})


def test_equal_questions_and_judges_are_asked_under_the_same_numbers_rung_after_rung(tmp_path: Any) -> None:
    """A run that asks them one after the other gets what the pilot got, which asked them together:
    it finds all of it in the cache.
    """
    world = RepeatedWorld(tmp_path, REPEATED)
    plan = bought(world)
    repeats = {repeat for prompt, repeat in world.asked if "total?" in prompt}
    opinions = {repeat for prompt, repeat in world.asked if "Is " in prompt}
    assert (repeats, opinions) == ({0, 1, 2}, {0, 1})
    world.asked.clear()
    plain = [policy for policy in plan.policies if not policy.further and policy.gate is RuleKind.CONSISTENT][-1]
    both = next(policy for policy in plan.policies if {"judge", "again"} <= set(policy.further))
    one = next(policy for policy in plan.policies if len({"judge", "again"}.intersection(policy.further)) == 1)
    live_is_replay(world, plan, [plain, replace(plain, order=plain.order[::-1]), both, one])
    assert not world.asked


def test_one_model_under_two_names_is_asked_under_the_same_numbers_rung_after_rung(tmp_path: Any) -> None:
    """A run that found the answer of one name in the cache would give it twice, where the pilot had
    two.
    """
    world = RepeatedWorld(tmp_path, TWO_NAMES)
    plan = bought(world)
    assert {repeat for prompt, repeat in world.asked if "total?" in prompt} == {0, 1}
    assert {repeat for prompt, repeat in world.asked if "Is " in prompt} == {0, 1}
    world.asked.clear()
    plain = [p for p in plan.policies if not p.further and {"total", "total@other"} <= set(p.order)]
    both = next(policy for policy in plan.policies if {"judge", "again"} <= set(policy.further))
    one = replace(both, further=tuple(step for step in both.further if step != "judge"))
    live_is_replay(world, plan, [plain[-1], replace(plain[-1], order=plain[-1].order[::-1]), both, one])
    assert not world.asked


def test_means_units_and_judges_over_several_nodes_come_out_the_same_rung_after_rung(tmp_path: Any) -> None:
    world = RepeatedWorld(tmp_path, SCATTERED)
    plan = bought(world)
    assert {repeat for prompt, repeat in world.asked if "a?" in prompt} == {0, 1, 2}
    world.asked.clear()
    climbing = _some(list(plan.policies), 2)
    assert all({"judge", "again"} <= set(policy.further) for policy in climbing)
    live_is_replay(world, plan, climbing)
    assert not world.asked


def test_a_check_is_never_shown_less_than_in_the_pilot(tmp_path: Any) -> None:
    """A rung without an answer that the check is made from: the check is left out, in the replay as
    in the run.
    """
    world = RepeatedWorld(tmp_path, HINTED)
    plan = bought(world)
    whole = next(policy for policy in plan.policies if {"hint", "judge", "again"} <= set(policy.further))
    short = replace(whole, further=tuple(step for step in whole.further if step != "hint"))
    late = replace(whole, further=("judge", *(step for step in whole.further if step != "judge")))
    world.asked.clear()
    live_is_replay(world, plan, [whole, short, late])
    assert not world.asked
    complete, without, after = play([whole, short, late], plan.whole, last=plan.last)
    assert any("judge" in held for held in complete.held)
    assert not any({"judge", "again"} & set(held) and "hint" not in held for held in without.held)
    assert not any("judge" in held and "hint" not in held for held in after.held)


def star(prices: dict[str, float], hub: str = "a") -> Problem:
    return Problem(
        name="star",
        deliver=[hub],
        nodes=[{"id": name} for name in prices],
        relations=[{"id": f"{name} like {hub}", "tail": hub, "head": name} for name in prices if name != hub],
    )


def cheapest(problem: Problem, prices: dict[str, float], k: int, wanted: float) -> float:
    """By plain enumeration: what the cheapest set of asks costs that has the wanted margin at k."""
    sold = on_sale(problem, prices)
    sets = (names for size in range(1, len(prices) + 1) for names in combinations(prices, size))
    return min(
        sum(prices[n] for n in names) for names in sets if sold.margin(select=list(names), k=k).lower >= wanted - 1e-9
    )


def test_rungs_are_the_cheapest_designs_of_their_margin() -> None:
    prices = {"a": 2.0, "b": 1.0, "c": 8.0, "d": 1.0, "e": 4.0, "f": 1.0}
    problem = star(prices)
    sold = on_sale(problem, prices)
    found = escalations_of(problem, prices)
    assert found
    for one in found:
        for answers, k in one.stages:
            held = list(one.order[:answers])
            if k:
                margin = sold.margin(select=held, k=k).lower
                assert margin > 0
                assert sum(prices[n] for n in held) == pytest.approx(cheapest(problem, prices, k, margin))


def test_a_climb_asks_more_and_allows_more_from_rung_to_rung_and_its_margin_never_falls() -> None:
    prices = dict.fromkeys("abcdefgh", 1.0)
    found = escalations_of(star(prices), prices)
    for one in found:
        assert all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(one.stages))
        leads = [answers - 2 * k for answers, k in one.stages]  # all answer one question, so the margin is √lead
        assert leads == sorted(leads)
        assert all(b - a <= 1 for a, b in pairwise(leads))
        assert one.level == (len(set(leads)) == 1 and [k for _, k in one.stages] in ([0, 1], [0, 1, 2]))
        assert one.stages[0][0] >= 2
    assert {one.order for one in found} == {tuple("abcdefgh")}  # equals as the recipe has them
    assert len({one.stages for one in found}) == len(found) < 60


def test_climbs_need_a_few_asks_and_the_common_structures_speak() -> None:
    many = dict.fromkeys((f"n{at}" for at in range(13)), 1.0)
    assert escalations_of(star(many, "n0"), many) == []
    assert escalations_of(star({"a": 1.0}), {"a": 1.0}) == []
    shapes = [object() for _ in range(MOST_STRUCTURES + 1)]
    listed = [shape for at, shape in enumerate(shapes) for _ in range(at + 1)]
    assert common(listed) == shapes[:0:-1]


def with_checks(prices: dict[str, float], *checks: dict[str, object], **more: object) -> Problem:
    plain = star(prices)
    return Problem(
        name="checked",
        deliver=["a"],
        nodes=[{"id": node.id} for node in plain.nodes],
        relations=[{"id": r.id, "tail": r.tail, "head": r.head} for r in plain.relations],
        anchors=[{"node": "a", **check} for check in checks],
        **more,
    )


TESTS = {"id": "tests", "source": {"command": ["x"]}, "cost": 5.0}
LEDGER = {"id": "ledger", "value": 1.0, "cost": 7.0}
JUDGE = {"id": "judge", "source": {"verifier": "m", "prompt": "{{ b }} or {{ answer }}?"}, "cost": 2.0, "sigma": 0.05}
CLERK = {"id": "clerk", "source": {"person": "?"}, "cost": 1.0}
PRICES = {"a": 2.0, "b": 1.0, "c": 8.0, "d": 1.0}


def test_where_every_answer_may_be_wrong_the_frontier_names_the_checks_that_decide() -> None:
    """No answer is asked for a value that is known, only those that a check is made from otherwise;
    people are no rung here; the cheapest first.
    """
    found = check_stages(with_checks(PRICES, TESTS, LEDGER, CLERK), PRICES, {"tests", "ledger", "clerk"})
    assert found == [
        CheckStage(("a", "tests"), None),
        CheckStage(("ledger",), None),
        CheckStage(("a", "tests", "ledger"), None),
    ]
    assert check_stages(with_checks(PRICES, TESTS, LEDGER), PRICES, {"ledger"}) == [CheckStage(("ledger",), None)]
    assert check_stages(with_checks(PRICES, CLERK), PRICES, {"clerk"}) == []


def test_designs_with_a_judge_are_the_cheapest_that_reach_the_goal() -> None:
    """Held to plain enumeration over all sets of asks and checks.

    A judge is shown what its prompt names; one that is too noisy for the goal is on no rung of its
    own.
    """
    problem = with_checks(PRICES, TESTS, JUDGE, delta=0.4)
    found = check_stages(problem, PRICES, {"tests", "judge"})
    assert CheckStage(("a", "tests"), None) in found
    cost = {**PRICES, "tests": 5.0, "judge": 2.0}
    sold = on_sale(problem, PRICES)
    sold = sold.model_copy(update={"anchors": problem.anchors})
    for k in (None, 1, 2):
        rung = next(one for one in found if one.k == k and "judge" in one.steps)
        assert rung.steps.index("judge") > max(rung.steps.index("a"), rung.steps.index("b"))
        reaching = []
        for size in range(1, len(cost) + 1):
            for names in combinations(cost, size):
                design = sold.design(list(names))
                asked = [name for name in names if name in PRICES]
                if asked and "a" in asked and {"tests", "judge"} & set(names):
                    margin = design.margin(len(PRICES) if k is None else k)
                    if margin.lower > 1e-9 and design.standing(sold, margin=margin).reached:
                        reaching.append(sum(cost[name] for name in names))
        # Its prompt names b, whose answer is then needed, too.
        assert sum(cost[step] for step in rung.steps) <= min(reaching) + PRICES["b"]
    noisy = with_checks(PRICES, {**JUDGE, "sigma": 5.0}, delta=0.4)
    assert check_stages(noisy, PRICES, {"judge"}) == []


def test_a_quorum_of_checks_that_may_be_wrong_is_a_rung() -> None:
    three = [{"id": f"j{n}", "source": {"command": ["x"]}, "cost": 3.0 - n, "trusted": False} for n in range(3)]
    problem = with_checks(PRICES, *three, wrong_checks=1)
    assert CheckStage(("a", "j2", "j1"), None) in check_stages(problem, PRICES, {"j0", "j1", "j2"})


def test_rungs_by_hand() -> None:
    problem = with_checks(PRICES, TESTS, JUDGE)
    assert stages_by_hand(problem, ["judge", "tests"]) == [CheckStage(("a", "b", "judge", "tests"), None)]
    assert [rung.k for rung in stages_by_hand(problem, ["judge"])] == [None, 1, 2]
    assert stages_by_hand(problem, ["nobody"]) == []


def test_many_asks_leave_the_cheapest_checks_that_decide() -> None:
    many = dict.fromkeys((f"n{at}" for at in range(13)), 1.0)
    problem = with_checks({"a": 1.0, **many}, TESTS, LEDGER, JUDGE | {"source": {"verifier": "m", "prompt": "?"}})
    names = {"tests", "ledger", "judge"}
    assert check_stages(problem, many, names) == [CheckStage(("a", "tests"), None), CheckStage(("ledger",), None)]
