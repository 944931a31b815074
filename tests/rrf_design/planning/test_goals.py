"""Goals of one field or many: portfolios, frontiers."""

from __future__ import annotations

from contextlib import suppress
from itertools import product
from math import inf
from typing import Any

import numpy as np
import pytest
from small import all_designs, best_within, random_problem

import rrf_design as rrf
from rrf_design.derive import asking
from rrf_design.errors import BudgetError, InputError
from rrf_design.goal import POSITIVE, Goal
from rrf_design.market import exact
from rrf_design.planning import frontier, plan, planner, portfolio, read_plan, write_plan
from rrf_design.planning._optimal import search_for
from rrf_design.planning._portfolios import Aim
from rrf_design.planning.contract import Objective, Order, PlanStatus
from rrf_design.planning.curves import ENUMERATED
from rrf_design.planning.evaluator import Evaluator
from rrf_design.planning.goals import _wanted_between, nominal, planned_margin, reach


def noisy(delta: float, *, sigma: float = 0.5, count: int = 4, **more) -> rrf.Problem:
    """Three answers in a ring, anchors on sale whose noise grows with every one that is bought."""
    names = ["a", "b", "c"]
    return rrf.Problem(
        k=1,
        delta=delta,
        confidence=0.95,
        nodes=[{"id": name, **more} for name in names],
        relations=[
            {"id": f"r{i}", "tail": names[i], "head": names[(i + 1) % 3], "sigma": 0.1} for i in range(3)
        ],
        anchors=[
            {"id": f"x{i}", "node": names[i % 3], "sigma": sigma * (1 + 0.3 * i), "cost": 1.0 + 0.25 * i}
            for i in range(count)
        ],
    )  # fmt: skip


def test_what_margin_computes_is_whitened_where_noise_is_declared():
    assert nominal(noisy(1.0)) is Objective.GAMMA_SIGMA
    assert nominal(rrf.Problem(nodes=[{"id": "a"}], anchors=[{"id": "x", "node": "a"}])) is Objective.GAMMA


def test_more_rows_ask_for_a_larger_margin():
    problem = noisy(20.0)
    low, high = _wanted_between(problem, Goal.of(problem))
    assert POSITIVE < low < high < inf
    assert planned_margin(problem) == high
    everything = problem.design("all").radius(problem)
    assert high == Goal.of(problem).wanted(everything)


def test_without_a_goal_there_is_no_margin_to_plan_for():
    problem = rrf.Problem(nodes=[{"id": "a"}], anchors=[{"id": "x", "node": "a", "cost": 1.0}])
    assert planned_margin(problem) is None
    found = reach(Evaluator(problem), planner("greedy"), Order(budget=1.0), None)
    assert found.target is None
    assert found.selected == ("x",)


@pytest.mark.parametrize("delta", [6.0, 9.0, 14.0])
def test_the_cheapest_design_that_has_the_margin_it_needs_itself(delta):
    problem = noisy(delta)
    found = plan(problem, method="optimal")
    reaching = []
    for cost, margin, names in all_designs(problem):
        wanted = Goal.of(problem).wanted(problem.design(names).radius(problem)) or 0.0
        if margin >= wanted * (1 - 1e-9):
            reaching.append(cost)
    if not reaching:
        assert not found.reached
        return
    assert found.reached
    assert found.cost >= float(min(reaching)) - 1e-12
    if found.status is PlanStatus.OPTIMAL:
        assert found.cost == pytest.approx(float(min(reaching)))
    assert found.cost_bound is not None
    assert found.cost_bound <= float(min(reaching)) + 1e-12


def test_where_nothing_bounds_the_answers_no_error_can_be_promised():
    problem = rrf.Problem(
        k=1,
        delta=1.0,
        epsilon=0.1,
        nodes=[{"id": "a"}, {"id": "b"}],
        relations=[{"id": "r", "tail": "a", "head": "b", "uncertainty": 0.1}],
        anchors=[{"id": "x", "node": "a", "cost": 1.0}, {"id": "y", "node": "b", "cost": 1.0}],
    )
    assert planned_margin(problem) is None
    with pytest.raises(InputError, match=r"give their nodes a range, or .problem. an amplitude"):
        plan(problem)


def field(seed: int) -> rrf.Problem:
    rng = np.random.default_rng(seed)
    nodes = [
        {
            "id": f"n{i}",
            "sigma": round(float(rng.uniform(0.02, 0.2)), 2),
            "again": round(float(rng.uniform(0.05, 0.5)), 2),
        }
        | {"most_repeats": int(rng.integers(2, 5))}
        for i in range(2)
    ]
    anchors = [
        {
            "id": f"a{i}",
            "node": f"n{i % 2}",
            "value": 1.0,
            **({"cost": round(float(rng.uniform(0.2, 1.0)), 2)} if i else {}),
        }
        for i in range(3)
    ]
    relations = [{"id": "r", "tail": "n0", "head": "n1"}]
    delta = round(float(rng.uniform(0.5, 2.5)), 2)
    return rrf.Problem(k=1, delta=delta, nodes=nodes, relations=relations, anchors=anchors)  # fmt: skip


def cheapest(problem: rrf.Problem) -> float | None:
    """Every choice of repeats, every choice of blocks, by the definition of the goal."""
    best = None
    names = [node.id for node in problem.nodes]
    levels = [range(1, node.most_repeats + 1) for node in problem.nodes]
    for times in product(*levels):
        asked = asking(problem, dict(zip(names, times, strict=True)))
        paid = sum((t - 1) * (node.again or 0.0) for t, node in zip(times, problem.nodes, strict=True))
        for chosen in product([False, True], repeat=len(problem.on_sale)):
            select = [name for name, taken in zip(problem.on_sale, chosen, strict=True) if taken]
            design = asked.design(select)
            if design.standing(asked).reached:
                total = paid + float(design.price)
                best = total if best is None else min(best, total)
    return best


@pytest.mark.parametrize("seed", range(6))
def test_the_cheapest_of_all_choices(seed: int) -> None:
    problem = field(seed)
    wanted = cheapest(problem)
    if wanted is None:
        with suppress(rrf.InputError):  # a plan that misses its goal, or one line that says why there is none
            assert not rrf.plan(problem).reached
        return
    found = rrf.plan(problem)
    assert found.cost >= wanted - 1e-9
    assert found.status != "optimal" or found.cost == pytest.approx(wanted)
    asked = asking(problem, found.repeats)
    assert asked.design(found.selected).standing(asked).reached
    made = rrf.certify(asked, found.selected)
    assert made.met
    assert made.error_bound == pytest.approx(found.error_bound)
    assert rrf.verify(made).valid


def pair(**settings: Any) -> rrf.Problem:
    node = {"sigma": 0.1, "again": 0.1, "most_repeats": 20, **settings}
    return rrf.Problem(
        k=1,
        delta=1.0,
        nodes=[{"id": "x", **node}, {"id": "y", **node}],
        relations=[{"id": "r", "tail": "x", "head": "y"}],
        anchors=[{"id": "a", "node": "x", "value": 1.0}, {"id": "b", "node": "y", "value": 1.0, "cost": 0.3}],
    )


def test_the_plan_says_which_way_it_took(tmp_path: Any) -> None:
    found = rrf.plan(pair())
    assert found.repeats
    assert "so that the noise is smaller" in found.notes[-1]
    write_plan(found, tmp_path / "plan.json")
    assert read_plan(tmp_path / "plan.json", pair()).repeats == found.repeats
    precise = rrf.plan(pair(sigma=0.001))
    assert not precise.repeats
    assert "not worth its price" in precise.notes[-1]


def test_repeats_lower_noise_and_not_corruption() -> None:
    often = asking(pair(), {"x": 4, "y": 4})
    assert often.margin("all").value == pair().margin("all").value
    once, four = (p.design("all").radius(p) for p in (pair(), often))
    assert four.tail == pytest.approx(once.tail / 2)
    assert four.epsilon == pytest.approx(once.epsilon / 2)


@pytest.mark.parametrize("seed", range(3))
def test_drawn_answers_stay_within_both_radii(seed: int) -> None:
    problem = pair()
    radius = problem.design("all").radius(problem)
    assert radius.answers is not None
    draws = 0.1 * np.random.default_rng(seed).standard_normal((4000, 2))
    outside = np.linalg.norm(draws @ problem.operator("all").matrix.toarray().T, axis=1) > radius.epsilon
    outside |= np.linalg.norm(draws, axis=1) > radius.tail
    assert outside.mean() <= 0.05


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ({"again": 1.0}, "declare that as sigma"),
        ({"repeats": 2}, "declare that as sigma"),
        ({"sigma": 1.0, "repeats": 0}, "repeats must be greater than or equal to 1"),
        ({"sigma": 1.0, "repeats": 10}, "repeats = 10 is more than most_repeats = 9"),
        ({"sigma": -1.0}, "sigma must be greater than 0"),
        ({"sigma": 1.0, "metric": 2.0}, "give only one of sigma and metric"),
    ],
)
def test_bad_input(node: dict[str, Any], message: str) -> None:
    with pytest.raises(rrf.InputError, match=message):
        rrf.Problem(nodes=[{"id": "x", **node}])


def test_scatter_beyond_delta_is_told() -> None:
    with pytest.raises(rrf.InputError, match=r"answers scatter by up to .* more than delta = 1"):
        rrf.plan(pair(sigma=5.0, again=None))


def test_a_certificate_with_smaller_radii_is_refused() -> None:
    from rrf_design.checker._steps import check_noise

    made = rrf.certify(pair(), "all")
    for key in ("image", "own"):
        document = {**made.document, "noise": {**made.document["noise"]}}
        document["noise"]["answers"] = {
            **made.document["noise"]["answers"],
            key: made.document["noise"]["answers"][key] * 0.999,
        }
        with pytest.raises(rrf.RRFError, match="too small"):
            check_noise(document, made.record)  # fmt: skip


def brute(problems, budget, score):
    """The best score over all ways to choose one undominated design per item."""
    curves = []
    for problem in problems:
        kept, best = [], -1.0
        for cost, value, _ in sorted(all_designs(problem), key=lambda d: (d[0], -d[1])):
            if value > best:
                kept.append((cost, value))
                best = value
        curves.append(kept)
    choices = (c for c in product(*curves) if sum(cost for cost, _ in c) <= exact(budget))
    return max(score([value for _, value in choice]) for choice in choices)


@pytest.mark.parametrize("features", [(), ("nodes",), ("rules", "links"), ("tiers",)], ids="-".join)
def test_smallest_margin_and_count_are_exact(features):
    problems = [random_problem(seed, features=features, nodes=4, blocks=5) for seed in (1, 2, 3)]
    for budget in (6.0, 9.0):
        found = portfolio(problems, budget=budget)
        assert found.value == pytest.approx(brute(problems, budget, min), abs=1e-7)
        assert found.status is PlanStatus.OPTIMAL
        assert found.cost == pytest.approx(sum(s.cost for s in found.shares))
        assert exact(found.cost) <= exact(budget)
        for share, problem in zip(found.shares, problems, strict=True):
            assert share.gamma == problem.margin(share.selected).value
        count = portfolio(problems, budget=budget, aim="count", target=0.4)
        assert count.value == brute(problems, budget, lambda values: sum(v >= 0.4 * (1 - 1e-9) for v in values))
        assert sum(share.reached for share in count.shares) == count.value


def test_processes_change_nothing():
    problems = [random_problem(seed, nodes=4, blocks=5) for seed in range(70)]
    assert portfolio(problems, budget=150.0) == portfolio(problems, budget=150.0, n_jobs=2)


@pytest.mark.parametrize("limit", [None, 0.02])
def test_planted_designs_are_never_denied(limit):
    """Items too large to list, each with a known design, and money for exactly these: no bound may
    say that less is possible.
    """
    problems = [random_problem(seed + 60, nodes=6, blocks=16, k=1 + seed % 2) for seed in range(4)]
    rng = np.random.default_rng(4)
    known = []
    for problem in problems:
        evaluator = Evaluator(problem)
        assert len(evaluator.market.items) > ENUMERATED
        masks = (rng.random(len(evaluator.market.items)) < 0.8 for _ in range(50))
        known.append(
            next((evaluator.market.cost(mask), evaluator.value(mask)) for mask in masks if evaluator.value(mask) > 1e-3)
        )
    money, least = float(sum(cost for cost, _ in known)), min(value for _, value in known)
    found = portfolio(problems, budget=money, time_limit=limit)
    assert found.upper_bound >= least * (1 - 1e-9)
    for target in sorted({value for _, value in known}):
        count = portfolio(problems, budget=money, aim="count", target=target * (1 - 1e-9), time_limit=limit)
        assert count.upper_bound >= sum(value >= target for _, value in known)
        if limit is None:
            assert found.status is PlanStatus.OPTIMAL
            assert found.value >= least * (1 - 1e-6)
            assert count.value >= sum(value >= target for _, value in known)


def test_messages():
    problem = random_problem(1)
    with pytest.raises(InputError, match="there is no item"):
        portfolio([], budget=1.0)
    with pytest.raises(InputError, match="aim: 'sum' is not one of worst, reached, leximin"):
        portfolio([problem], budget=1.0, aim="sum")
    with pytest.raises(InputError, match="aim reached: give the target"):
        portfolio([problem], budget=1.0, aim=Aim.REACHED)
    with pytest.raises(BudgetError, match="demand purchases"):
        portfolio([random_problem(1, features=("rules",))], budget=0.0)


def test_classes_of_equal_items_are_spent_on_like_the_items_themselves() -> None:
    from fractions import Fraction

    from rrf_design.planning._portfolios import spend
    from rrf_design.planning.curves import Curve

    cheap = Curve((Fraction(0), Fraction(2), Fraction(5)), (0.0, 0.5, 0.9), (b"a", b"b", b"c"))
    dear = Curve((Fraction(1), Fraction(4)), (0.1, 0.7), (b"a", b"b"))
    for aim, target in ((Aim.WORST, None), (Aim.REACHED, 0.5), (Aim.REACHED, 0.8)):
        for money in range(2, 30):
            classes = spend([cheap, dear], [4, 2], Fraction(money), aim=aim, target=target)
            items = spend([cheap] * 4 + [dear] * 2, [1] * 6, Fraction(money), aim=aim, target=target)
            assert classes.bound == items.bound
            assert [sum(picked.values()) for picked in classes.picks] == [4, 2]


def test_items_whose_curve_is_not_proven_could_leave_their_money_to_others() -> None:
    from fractions import Fraction

    from rrf_design.planning._portfolios import spend
    from rrf_design.planning.curves import Curve

    open_curve = Curve((Fraction(0), Fraction(3)), (0.0, 0.9), (b"a", b"b"), complete=False)
    proven = Curve((Fraction(0), Fraction(4)), (0.0, 0.9), (b"a", b"b"))
    found = spend([open_curve, proven], [1, 1], Fraction(4), aim=Aim.REACHED, target=0.5)
    assert found.picks == ({1: 1}, {0: 1})
    assert found.bound == 2.0  # the open one might cost nothing


def scattering(delta, label, again=0.05):
    from rrf_design.problem import Problem

    node = {"sigma": 0.1, "again": again, "most_repeats": 3}
    return Problem(
        delta=delta,
        nodes=[{"id": "plain", **node}, {"id": "reworded", **node}],
        relations=[{"id": "same", "tail": "plain", "head": "reworded"}],
        anchors=[
            {"id": "known", "node": "plain", "value": 42.0},
            {"id": "label", "node": "reworded", "value": 42.0, "cost": label},
        ],
    )


def portfolios_cheapest(problem):
    """Of every choice of repeats and blocks that reaches the item's own goal; None where none
    does.
    """
    from rrf_design.derive import asking

    best = None
    for times in product(range(1, 4), repeat=2):
        asked = asking(problem, dict(zip(("plain", "reworded"), times, strict=True)))
        for chosen in ([], ["label"]):
            design = asked.design(chosen)
            if design.standing(asked).reached:
                cost = exact(problem.nodes[0].again) * (sum(times) - 2) + design.price
                best = cost if best is None else min(best, cost)
    return best


@pytest.mark.parametrize("budget", [0.0, 0.2, 0.5, 0.9, 5.0])
def test_own_goals_are_reached_by_purchases_and_repeats(budget):
    items = [scattering(d, label) for d, label in ((1.6, 0.4), (1.3, 0.05), (1.9, 1.0), (0.2, 0.1), (1.6, 0.4))]
    found = portfolio(items, budget=budget, aim="count")
    prices = sorted(price for price in map(portfolios_cheapest, items) if price is not None)
    most, left = 0, exact(budget)
    for price in prices:
        if price <= left:
            most, left = most + 1, left - price
    assert (found.value, found.status) == (most, PlanStatus.OPTIMAL)
    assert found.cost <= budget + 1e-9
    assert sum(share.reached for share in found.shares) == most
    if most == len(prices):
        assert any(share.repeats for share in found.shares)
        assert any("repeats" in item for item in found.to_json()["items"])


def test_own_goals_are_refused_where_there_are_none():
    with pytest.raises(InputError, match="give the target that items should reach, or every item a delta"):
        portfolio([random_problem(1)], budget=1.0, aim="count")
    both = scattering(1.6, 0.4).model_copy(update={"target": 0.1})
    with pytest.raises(InputError, match="give each a delta and no target"):
        portfolio([both], budget=1.0, aim="count")
    with pytest.raises(InputError, match="objective: items' own goals"):
        portfolio([scattering(1.6, 0.4)], budget=1.0, aim="count", objective="gamma")


@pytest.mark.parametrize("features", [(), ("tiers",), ("nodes", "links")], ids="-".join)
def test_every_undominated_design_is_a_point(features):
    problem = random_problem(12, features=features, blocks=6)
    designs = sorted(all_designs(problem), key=lambda d: (d[0], -d[1]))
    steps, best = [], -1.0
    for cost, value, _ in designs:
        if value > best * (1 + 1e-6) + 1e-9 or best < 0:
            steps.append((cost, value))
            best = value
    found = frontier(problem)
    assert found.complete
    assert [exact(p.cost) for p in found.points] == [cost for cost, _ in steps]
    assert [p.gamma for p in found.points] == pytest.approx([value for _, value in steps], abs=1e-7)
    assert all(p.status is PlanStatus.OPTIMAL for p in found.points)
    assert all(problem.margin(p.selected).value == p.gamma for p in found.points)


def test_a_point_is_what_plan_buys():
    problem = random_problem(13, blocks=7)
    curve = frontier(problem, budget=5.0)
    for budget in (0.0, 1.0, 2.5, 5.0):
        point = curve.best_within(budget)
        assert point is not None
        assert point.gamma == pytest.approx(plan(problem, budget=budget, method="optimal").gamma, rel=1e-6)
    assert curve.points[-1].cost <= 5.0
    assert best_within(all_designs(problem), 5.0) == pytest.approx(curve.points[-1].gamma)


def test_stopped_early_says_so():
    curve = frontier(random_problem(13, blocks=7), time_limit=0.0)
    assert not curve.complete
    assert len(curve.points) >= 1
    with pytest.raises(InputError, match="budget: must be a number"):
        frontier(random_problem(13), budget=-1.0)


def test_progress_tells_steps_and_bounds():
    told = []
    problem = random_problem(8, blocks=6)
    found = frontier(problem, progress=lambda fraction, _, words: told.append((fraction, words)))
    fractions = [fraction for fraction, _ in told]
    assert fractions == sorted(fractions)
    assert all(0.0 <= fraction <= 1.0 for fraction in fractions)
    assert any(words.startswith(f"{len(found.points)} steps up to γ = ") for _, words in told)
    assert any("the next costs at least" in words for _, words in told)
    assert any(" between " in words for _, words in told)


def planted(problem, seed):
    """(cost, objective) of a few random designs of a problem with too many to list."""
    evaluator, rng = Evaluator(problem), np.random.default_rng(seed)
    masks = [rng.random(len(evaluator.market.items)) < share for share in (0.3, 0.5, 0.7, 0.9)]
    return [(evaluator.market.cost(mask), evaluator.value(mask)) for mask in masks]


@pytest.mark.parametrize("seed", range(3))
def test_no_point_denies_a_planted_design(seed):
    """Whatever stops the walk: what a known design reaches for its cost, no point's bound
    excludes.
    """
    problem = random_problem(seed + 50, nodes=7, blocks=12, k=1 + seed % 2)
    known = [(cost, value) for cost, value in planted(problem, seed) if value > 1e-3]
    assert known
    for curve in (frontier(problem), frontier(problem, most_points=3), frontier(problem, time_limit=0.05)):
        for cost, value in known:
            point = curve.best_within(float(cost))
            assert point is not None
            last = point is curve.points[-1]
            if not last or curve.complete:
                assert max(point.upper_bound, point.value) >= value * (1 - 1e-6)
            if curve.complete:
                assert point.value >= value * (1 - 1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_costs_asked_up_and_down_never_exclude_a_planted_design(seed):
    """One search for many targets, in an order that moves its rows between them: as a frontier and
    its neighbours ask.
    """
    problem = random_problem(seed + 50, nodes=7, blocks=14, k=1 + seed % 2)
    search = search_for(Evaluator(problem), Order())
    known = [(cost, value) for cost, value in planted(problem, seed) if value > 1e-3]
    assert known
    for share in (1.0, 0.4, 1.0 - 1e-9, 0.7, 0.05, 1.0):
        for cost, value in [*known, *reversed(known)]:
            found = search.minimise(share * value, cost, None)
            assert not found.impossible
            assert found.bound <= cost
            assert found.mask is not None
            assert search.evaluator.value(found.mask) >= share * value * (1 - 1e-8)


@pytest.mark.parametrize("seed", range(12))
def test_a_budget_is_spent_on_the_promised_error_where_that_is_the_goal(seed: int) -> None:
    rng = np.random.default_rng(seed)
    anchors: list[dict[str, Any]] = []
    for j in range(5):
        entry: dict[str, Any] = {"id": f"x{j}", "node": "ab"[int(rng.integers(2))], "cost": float(rng.integers(1, 3))}
        entry |= {"sigma": float(rng.choice([0.05, 0.1, 0.3]))} if rng.random() < 0.7 else {}
        entry |= {"uncertainty": float(rng.choice([0.02, 0.2]))} if rng.random() < 0.4 else {}
        anchors.append({**entry, **({"family": "f"} if rng.random() < 0.4 else {})})
    problem = rrf.Problem(
        delta=0.5,
        nodes=[{"id": name, "range": [-5.0, 5.0]} for name in "ab"],
        relations=[{"id": "same", "tail": "a", "head": "b", "sigma": 0.2}],
        anchors=anchors,
    )
    market = problem.structure.market
    promised = []
    for chosen in product([False, True], repeat=5):
        names = market.names(np.array(chosen))
        if market.cost(np.array(chosen)) <= 4:
            promised.append(problem.design(names).standing(problem).error_bound or inf)
    found = rrf.plan(problem, budget=4.0)
    assert found.status == "optimal"
    assert found.error_bound == pytest.approx(min(promised), rel=1e-5)
    assert "promised error" in found.notes[-1]
