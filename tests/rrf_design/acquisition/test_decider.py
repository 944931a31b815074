"""Who buys, what comes of it, and how an item is concluded."""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from fields import ring, scripted

import rrf_design as rrf
from rrf_design.acquisition import acquire, read_run
from rrf_design.acquisition._candidates import PricedOffer
from rrf_design.acquisition._concluding import conclude, finished_problem, repaired, stated
from rrf_design.acquisition._decider import _Proposal, share
from rrf_design.acquisition._loop import Acquirer, Mode, Purchase, Settings, Settlement
from rrf_design.acquisition._purchases import Buys
from rrf_design.acquisition._triage import NextPurchase, admitted
from rrf_design.acquisition.settings import _revision, _versions, header_of
from rrf_design.acquisition.stopping import Exhausted, Target
from rrf_design.market import exact
from rrf_design.models import Roster
from rrf_design.problem import Problem
from rrf_design.repairing._engine import RepairEngine
from rrf_design.tables import delivery_of, write_reviews
from rrf_design.verdict import Verdict, dispute

CASES = 60


def generated(seed: int) -> tuple[rrf.Problem, dict[str, float], frozenset[str]]:
    """A small field with a goal, its truth, and what can't be read: answers, and sometimes
    checks.
    """
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
        return Verdict.CHECKED  # a trusted check of all that is delivered is its value
    if all(value is None for value in answers.values()):
        return Verdict.INCOMPLETE
    return rrf.repair(problem, answers, select=kept).verdict


def further(
    problem: rrf.Problem, held: frozenset[str], silent: frozenset[str], left: Fraction
) -> Iterator[frozenset[str]]:
    """Everything that the money that is left could still buy; what is known not to be read is no
    help.
    """
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
    assert (stop.because == "target reached") == verdict.passes, (stop, verdict)
    if verdict.passes:
        return
    left = exact(budget) - acquirer.state.committed
    for there in further(problem, state.held, silent, left):
        assert said(problem, truth, there, silent).passes is False, (stop, sorted(there - state.held))


@pytest.mark.parametrize("seed", range(0, CASES, 2))
def test_nothing_is_bought_once_repair_would_certify(seed: int) -> None:
    problem, truth, silent = generated(seed)
    _, moments = played(problem, truth, silent, mode=Mode.ADAPTIVE, budget=4.0)
    for held in moments[:-1]:
        assert said(problem, truth, held, silent).passes is False, held


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


def proposal(price: float, *, goal: float | None = None, sees: float = 1.0, more: int = 0) -> _Proposal:
    offers = tuple(PricedOffer((f"b{i}",), Fraction(str(price)), sees) for i in range(1 + more))
    return _Proposal(offers, None if goal is None else Fraction(str(goal)))


def test_without_a_budget_everybody_buys() -> None:
    assert set(share({"a": proposal(5), "b": _Proposal((), None)}, None)) == {"a"}


def test_money_goes_where_goals_are_reached_first() -> None:
    # Three items need two purchases each; there is money for four purchases, so one item waits.
    found = share({item: proposal(1, goal=2) for item in "abc"}, Fraction(4))
    assert set(found) == {"a", "b"}
    found = share({"a": proposal(2, sees=1.0), "b": proposal(1, sees=1.0), "c": proposal(1, sees=0.2)}, Fraction(3))
    assert list(found) == ["b", "a"]
    assert set(share({"a": proposal(1, sees=9.0), "b": proposal(1, goal=3, sees=0.1)}, Fraction(3))) == {"b"}


def test_somebody_buys_and_nobody_overspends() -> None:
    """Random proposals, each affordable alone as the loop makes them: a wave never stands still and
    never exceeds the money.
    """
    rng = Random(7)
    for _ in range(200):
        left = rng.randint(1, 9)
        goals = [None, *range(1, 12)]
        proposals = {
            str(i): proposal(rng.randint(1, left), goal=rng.choice(goals), sees=rng.random(), more=rng.randint(0, 2))
            for i in range(rng.randint(1, 6))
        }
        found = share(proposals, Fraction(left))
        assert found
        assert sum((b.price for offers in found.values() for b in offers), Fraction(0)) <= left


def test_as_many_goals_as_the_money_allows() -> None:
    """Against every subset: no other choice reaches more goals."""
    rng = Random(11)
    for _ in range(100):
        costs = [rng.randint(1, 6) for _ in range(5)]
        left = rng.randint(1, 15)
        found = share({str(i): proposal(1, goal=cost) for i, cost in enumerate(costs)}, Fraction(left))
        best = max(n for n in range(6) if any(sum(c) <= left for c in combinations(costs, n)))
        assert best == 0 or len(found) == best


RECIPE: dict[str, Any] = {
    "data": {"id": "no"},
    "answer": {"of": "total", "tolerance": 0.005},
    "ask": [
        {"id": "total", "prompt": "Total of {{ no }}?"},
        {"id": "reworded", "prompt": "To pay for {{ no }}?", "like": "total"},
        {"id": "again", "prompt": "Sum of {{ no }}?", "like": "total"},
    ],
    "check": [{"id": "clerk", "of": "total", "by": {"person": "Total of {{ no }}"}, "cost": 5.0}],
}


def invoices(count: int, wrong: float = 0.13) -> tuple[rrf.Dataset, list[dict[str, Any]], dict[str, float]]:
    chance = random.Random(7)
    truth = {str(number): chance.randrange(100, 90000) / 100 for number in range(count)}
    answers = [
        {"id": name, "node": node, "value": value + (chance.random() < wrong) * chance.randrange(1, 99)}
        for name, value in truth.items()
        for node in ("total", "reworded", "again")
    ]
    return rrf.dataset(RECIPE, [{"no": name} for name in truth]), answers, truth


def test_disputed_items_go_to_the_clerk_and_no_others(tmp_path: Path) -> None:
    items, answers, truth = invoices(60, wrong=0.3)
    said: dict[str, list[float]] = {}
    for row in answers:
        said.setdefault(row["id"], []).append(row["value"])
    disputed = {name for name, values in said.items() if len(set(values)) == 3}
    run = rrf.acquire(items, responses=answers, store=tmp_path / "runs.sqlite")
    waiting = {entry.item for entry in run.items if entry.stopped_because == "waiting for review"}
    assert waiting == disputed != set()
    assert run.verdicts["consistent"] == 60 - len(disputed)
    assert run.verdicts["contradicted"] == len(disputed)
    # The review list is what was asked, and what it says is the value.
    table = tmp_path / "review.csv"
    assert write_reviews(table, delivery_of(items, run)) == len(disputed)
    lines = table.read_text().splitlines()
    filled = [lines[0], *(line + f"{truth[line.split(',')[1]]}" for line in lines[1:])]
    table.write_text("\n".join(filled) + "\n")
    after = rrf.acquire(items, resume=run.run, store=tmp_path / "runs.sqlite", responses=answers, reviews=table)
    assert after.verdicts["checked"] + after.verdicts["consistent"] == 60
    assert after.spent == 5.0 * len(disputed)
    delivery = delivery_of(items, after)
    for name in disputed:
        assert (delivery[name].answer, delivery[name].assumes) == (truth[name], "clerk is right")


def test_the_money_goes_to_the_largest_disputes(tmp_path: Path) -> None:
    items, answers, _ = invoices(40, wrong=0.4)
    whole = rrf.acquire(items, responses=answers, store=tmp_path / "all.sqlite")
    misfit = {e.item: (e.repair or {})["residual"] for e in whole.items if e.stopped_because == "waiting for review"}
    assert len(misfit) > 4
    some = rrf.acquire(items, responses=answers, budget=15.0, store=tmp_path / "some.sqlite")
    asked = {entry.item for entry in some.items if entry.stopped_because == "waiting for review"}
    assert len(asked) == 3
    assert min(misfit[name] for name in asked) >= max(size for name, size in misfit.items() if name not in asked)
    assert asked != set(list(misfit)[:3])
    late = next(entry for entry in some.items if entry.item in misfit and entry.item not in asked)
    assert late.stopped_because == "budget used up"
    assert "settling it costs 5" in late.detail


def test_a_dispute_is_one_though_k_would_explain_it_away(tmp_path: Path) -> None:
    """At k = 2 of three answers everything fits and nothing is certified: the clerk is still asked
    about what disagrees.
    """
    _, answers, _ = invoices(40)
    recipe = {**RECIPE, "answer": {**RECIPE["answer"], "k": 2}}
    said: dict[str, set[float]] = {}
    for row in answers:
        said.setdefault(row["id"], set()).add(row["value"])
    disputed = [name for name, values in said.items() if len(values) > 1]
    assert 8 < len(disputed) < 30
    items = rrf.dataset(recipe, [{"no": name} for name in said])
    run = rrf.acquire(items, responses=answers, budget=40.0, store=tmp_path / "runs.sqlite")
    asked = [entry.item for entry in run.items if entry.stopped_because == "waiting for review"]
    assert len(asked) == 8
    assert set(asked) <= set(disputed)
    ranked = sorted(delivery_of(items, run).ranked(), key=lambda entry: entry[2] or 0)
    assert {item.id for item, _, _ in ranked[: len(disputed)]} == set(disputed)


def test_machines_come_before_people(tmp_path: Path) -> None:
    """A question on sale is asked where it can bring an item to its goal; a person only where it
    can't.
    """
    recipe = {
        **RECIPE,
        "ask": [*RECIPE["ask"][:2], {**RECIPE["ask"][2], "cost": 1.0, "buy": "if needed"}],
    }
    items = rrf.dataset(recipe, [{"no": "a"}, {"no": "b"}])
    texts = {"Total of a?": "10", "To pay for a?": "10", "Sum of a?": "10"}
    texts |= {"Total of b?": "10", "To pay for b?": "11", "Sum of b?": "12"}
    from rrf_design.models.scripted import ScriptedModel

    model = ScriptedModel(lambda request: texts[request.prompt], name="table")
    run = rrf.acquire(items, model, budget=20.0, store=tmp_path / "runs.sqlite")
    bought = {entry.item: entry for entry in run.items}
    assert bought["a"].verdict is Verdict.CONSISTENT
    assert "clerk" not in bought["a"].selected
    assert "again" in bought["b"].selected
    assert bought["b"].stopped_because == "waiting for review"


def test_one_item_that_nobody_can_read_does_not_stop_the_others(tmp_path: Path) -> None:
    items, answers, _ = invoices(6, wrong=0.0)
    answers = [row if row["id"] != "3" else {**row, "value": None, "text": "no idea"} for row in answers]
    run = rrf.acquire(items, responses=answers, store=tmp_path / "runs.sqlite")
    verdicts = {entry.item: entry.verdict for entry in run.items}
    assert verdicts.pop("3") is Verdict.INCOMPLETE
    assert set(verdicts.values()) == {Verdict.CONSISTENT}


def remedy(
    settling: int, *, person: bool = False, verdict: Verdict = Verdict.CONTRADICTED, misfit: float = 0.0
) -> NextPurchase:
    return NextPurchase(("x",), Fraction(settling), person, dispute(verdict, misfit, 0))


@pytest.mark.parametrize(
    ("remedies", "left", "expected"),
    [
        ({"a": remedy(5, person=True), "b": remedy(9)}, 20, ["b"]),
        ({"a": remedy(5, person=True), "b": remedy(5, person=True, misfit=2.0)}, 5, ["b"]),
        ({"a": remedy(5, verdict=Verdict.INCOMPLETE), "b": remedy(5)}, 5, ["b"]),
        ({"a": remedy(7), "b": remedy(3)}, 8, ["b"]),
        ({"a": remedy(7)}, 6, []),
        ({"a": remedy(7), "b": remedy(3)}, None, ["b", "a"]),
    ],
)
def test_who_buys(remedies: dict[str, NextPurchase], left: int | None, expected: list[str]) -> None:
    assert list(admitted(remedies, None if left is None else Fraction(left))) == expected


def test_disputed_items_buy_as_many_suspect_checks_as_can_not_all_be_wrong(tmp_path: Path) -> None:
    """Three books of which one may be wrong: two that agree decide; two that don't are followed by
    the third.
    """
    books = [
        {"id": f"book{i}", "of": "total", "by": {"value": f"{{{{ b{i} }}}}"}, "cost": 1.0, "may_be_wrong": True}
        for i in range(3)
    ]
    recipe = {**RECIPE, "check": books}
    rows = [
        {"no": "agreed", "b0": "9", "b1": "9", "b2": "9"},
        {"no": "disputed", "b0": "30", "b1": "30", "b2": "31"},
        {"no": "first book wrong", "b0": "55", "b1": "40", "b2": "40"},
        {"no": "no two books agree", "b0": "1", "b1": "2", "b2": "3"},
    ]
    said = {
        "agreed": (9, 9, 9),
        "disputed": (30, 31, 32),
        "first book wrong": (40, 41, 42),
        "no two books agree": (7, 8, 9),
    }
    answers = [
        {"id": item, "node": node, "value": float(value)}
        for item, values in said.items()
        for node, value in zip(("total", "reworded", "again"), values, strict=True)
    ]
    items = rrf.dataset(recipe, rows)
    run = rrf.acquire(items, responses=answers, store=tmp_path / "runs.sqlite")
    delivery = delivery_of(items, run)
    bought = {item: delivery[item].cost for item in said}
    assert bought == {"agreed": 0.0, "disputed": 2.0, "first book wrong": 3.0, "no two books agree": 3.0}
    assert (delivery["disputed"].answer, delivery["disputed"].assumes) == (30.0, "at most 1 of 2 checks is wrong")
    assert (delivery["first book wrong"].answer, delivery["first book wrong"].verdict) == (40.0, Verdict.CONSISTENT)
    assert delivery["no two books agree"].verdict is Verdict.CONTRADICTED
    assert delivery["no two books agree"].answer is None


def test_two_quorums_that_differ_decide_nothing() -> None:
    from rrf_design.checks import agreed, quorum

    anchors = [{"id": f"a{i}", "node": "x", "trusted": False} for i in range(4)]
    problem = rrf.Problem(nodes=[{"id": "x"}], anchors=anchors, wrong_checks=1)
    assert quorum(problem) == 2
    assert agreed(problem, {"a0": (1.0,), "a1": (1.0,)}, "x") == ((1.0,), 2)
    assert agreed(problem, {"a0": (1.0,), "a1": (2.0,)}, "x") is None
    assert agreed(problem, {"a0": (1.0,), "a1": (1.0,), "a2": (2.0,), "a3": (2.0,)}, "x") is None
    assert agreed(problem.model_copy(update={"wrong_checks": 0}), {"a0": (1.0,), "a1": (1.0,)}, "x") is None


def concluding_settled(answers: dict[str, Any], **settings: Any) -> Acquirer:
    """A ring played to its end: what is named is answered so (None: not to be read), everything
    else with 7.
    """
    acquirer = Acquirer(ring(**settings), settings=Settings(budget=6.0, method="witness"))
    while purchases := acquirer.ask(1):
        for purchase in purchases:
            said = answers.get(purchase.name, 7.0)
            outcome = Settlement(purchase, "refused", ok=False) if said is None else Settlement(purchase, "ok", (said,))
            acquirer.tell(outcome)
    return acquirer


def test_what_could_not_be_read_is_an_erasure_and_nothing_read_repairs_nothing() -> None:
    acquirer = concluding_settled({"n1": None})
    found = repaired(acquirer.designs[""], acquirer.state.items[""], RepairEngine())
    assert found["erased"] == {"n1": "refusal"}
    assert found["verdict"] == "consistent"
    acquirer = concluding_settled({f"n{i}": None for i in range(5)})
    found = repaired(acquirer.designs[""], acquirer.state.items[""], RepairEngine())
    assert (found["repaired"], found["verdict"]) == (None, "incomplete")


@pytest.mark.parametrize(("wrong_checks", "verdict"), [(0, "checked"), (1, "contradicted")])
def test_a_check_of_all_that_is_delivered_decides_unless_checks_may_be_wrong(wrong_checks: int, verdict: str) -> None:
    wild = {"n0": 1.0, "n1": 2.0, "n2": 30.0, "n3": 400.0, "n4": 5000.0}
    acquirer = concluding_settled(wild, deliver=["n0"], wrong_checks=wrong_checks, target=9.0)
    state, design = acquirer.state.items[""], acquirer.designs[""]
    found = repaired(design, state, RepairEngine())
    assert "a0" in state.settled
    assert stated(design, state)["a0"] == (7.0,)
    assert found["verdict"] == verdict
    assert (found["repaired"] or {}).get("n0") == ([7.0] if verdict == "checked" else None)


def test_only_what_is_done_is_concluded_and_failed_checks_are_left_out() -> None:
    acquirer = concluding_settled({"a0": None})
    assert set(conclude(acquirer.designs, acquirer.state)["repairs"]) == {""}
    problem, selected = finished_problem(acquirer.designs[""], acquirer.state.items[""])
    failed = acquirer.state.items[""].failed
    assert not failed & {*problem.block_by_id, *selected}


def go(tmp_path: Path, script: Any, **options: Any) -> Any:
    return acquire(ring(), scripted(script), store=tmp_path / "r.sqlite", method="witness", **options)


def test_erased_answers_are_told_to_the_repair(tmp_path: Path) -> None:
    run = go(tmp_path, lambda request: "silence" if "question 4" in request.prompt else "7")
    repair = run.items[0].repair
    assert repair["erased"] == {"n4": "parse failure"}
    assert repair["repaired"]["n4"] == pytest.approx([7.0])  # its neighbours determine it
    assert "n4" not in run.items[0].problem.node_by_id


def test_a_certified_item_has_the_margin_that_its_verdict_rests_on(tmp_path: Path) -> None:
    """A check of an unread answer protects the others: then the item's own margin must not say that
    nothing is proven.
    """
    wordings = {"plain": "one", "again": "two", "other": "three"}
    problem = Problem(
        k=1,
        target=0.3,
        nodes=[{"id": name, "prompt": words, "parser": "integer-last"} for name, words in wordings.items()],
        relations=[
            {"id": a + b, "tail": a, "head": b} for a, b in (("plain", "again"), ("plain", "other"), ("again", "other"))
        ],
        anchors=[{"id": "calculator", "node": "plain", "value": 42.0, "cost": 1.0}],
    )
    script = scripted(lambda request: "42" if request.prompt == "three" else "no idea")
    run = acquire(problem, script, store=tmp_path / "r.sqlite", budget=1.0)
    (item,) = run.items
    assert item.verdict is Verdict.CONSISTENT
    assert item.reached
    assert item.gamma_lower == item.repair["gamma_lower"] > 0.3


def test_what_a_limit_left_unasked_is_missing_from_the_margin(tmp_path: Path) -> None:
    run = go(tmp_path, lambda request: "7", calls=2)
    (item,) = run.items
    assert len(item.unasked) == 3
    assert (item.gamma_lower, item.reached, item.verdict) == (item.repair["gamma_lower"], False, Verdict.AMBIGUOUS)


def test_a_run_is_certified_only_with_its_goal(tmp_path: Path) -> None:
    assert go(tmp_path, lambda request: "7").passes
    assert not go(tmp_path, lambda request: "7", budget=0.0).passes


def test_an_unfinished_run_reads_back_as_unfinished(tmp_path: Path) -> None:
    def interrupted(request: Any) -> str:
        if "question 3" in request.prompt:
            raise KeyboardInterrupt
        return "7"

    paused = go(tmp_path, interrupted)
    assert (paused.stopped_because, paused.detail) == ("paused", "interrupted")
    found = read_run("last", store=tmp_path / "r.sqlite")
    assert found.stopped_because == "paused"
    assert found.repaired is None
    assert not found.passes


def test_headers_name_versions_and_hide_nothing_that_matters() -> None:
    found = header_of(
        {"": ring()},
        Roster({"mini": scripted()}),
        Settings(budget=2.0),
        5,
        entries={"mini": {"use": "scripted:x", "slots": 2, "f": len, "api_key": "hush"}},
    )
    assert found["seed"] == 5
    assert found["settings"]["budget"] == 2.0
    kept = found["models"]["mini"]
    assert {key: kept[key] for key in ("use", "slots", "name")} == {
        "use": "scripted:x",
        "slots": 2,
        "name": "scripted",
    }
    assert kept["identity"]["adapter"] == "scripted"
    assert "hush" not in str(found)
    assert "numpy" in _versions()
    assert _revision() == "" or len(_revision()) == 40
