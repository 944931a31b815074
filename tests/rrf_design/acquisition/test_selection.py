"""What is bought next, and from what it is chosen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from math import fsum
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fields import at, pairs, priced, ring

import rrf_design as rrf
from rrf_design.acquisition import Acquirer, Buys, Mode, Purchase, Settings, Settlement
from rrf_design.acquisition import _selection as selection
from rrf_design.acquisition._candidates import Candidates, PricedOffer
from rrf_design.acquisition._selection import Position, _in_order, _witness_schedules, fixed_schedules, remade_schedules
from rrf_design.acquisition.result import read_run
from rrf_design.derive import asking, realised
from rrf_design.market import exact
from rrf_design.models.scripted import ScriptedModel
from rrf_design.reporting.documents import read, render
from rrf_design.structure import share


def test_the_bundle_with_most_energy_per_cost_wins() -> None:
    design = Candidates(ring())
    witness = design.margin(()).witness
    energy = design.energies(witness)
    rated = {
        b.names[-1]: sum(energy[n] for n in design.wakes(b.names, ())) / float(b.price)
        for b in design.offers((), (), most=None)
    }
    offer = at(design).best_offer(most=None)
    assert offer is not None
    assert rated[offer.names[-1]] >= max(rated.values()) * (1 - 1e-9)


def test_nothing_is_bought_that_sees_no_witness_or_costs_too_much() -> None:
    problem = rrf.Problem(k=1, nodes=[{"id": "a"}, {"id": "b"}], anchors=[{"id": "A", "node": "a", "value": 1.0}])
    assert at(problem).best_offer(most=None) is None
    design = Candidates(ring())
    assert at(design).best_offer(most=Fraction(1, 2)) is None
    names = _witness_schedules({"": at(design)}, Fraction(3))[""].names
    assert design.price(names) <= 3


def test_residuals_steer_among_equally_bad_supports() -> None:
    design = Candidates(pairs())
    answers = {f"{side}{i}": (7.0,) for i in range(3) for side in "xy"} | {"y2": (9.0,)}
    offer = replace(at(design), answers=answers).best_offer(most=None)
    assert offer is not None
    assert offer.names == ("a2",)


def test_first_questions_reach_the_goal_or_any_margin_at_least_cost() -> None:
    problem = priced(target=0.3)
    offer = at(problem).first_offer(most=None)
    assert offer is not None
    assert problem.margin(offer.names).lower >= 0.3
    assert offer.price == Candidates(problem).price(offer.names)
    problem = priced(target=1.2)
    offer = at(problem).first_offer(most=Fraction(3))
    assert offer is not None
    assert offer.price <= 3
    assert at(problem).first_offer(most=Fraction(1, 2)) is None


def test_what_failed_is_not_asked_again() -> None:
    design = Candidates(priced(target=0.3))
    offer = at(design, ("n0", "n1"), ("n0", "n1")).first_offer(most=None)
    assert offer is not None
    assert not {"n0", "n1"} & set(offer.names)
    assert at(design, (), [f"n{i}" for i in range(5)]).first_offer(most=None) is None


@pytest.mark.parametrize("problem", [ring(), priced(), priced(free=2)])
def test_the_problem_that_is_left_has_the_same_margins(problem: rrf.Problem) -> None:
    """What is held is owned, what failed is gone: any further purchase gives the margin that the
    design has.
    """
    held, failed = {"n0", "n1", "n2", "n3", "a3"}, {"a3"}
    left = at(problem, held, failed).rest
    assert left is not None
    for more in ((), ("a0",), ("a0", "a2")):
        design = Candidates(problem).margin({*held, *more}, failed)
        assert left.margin(more).value == pytest.approx(design.value, abs=1e-9)
        assert set(left.resolve(more)) == set(more)


def test_tiers_and_rules_go_on_where_they_are() -> None:
    problem = rrf.Problem(
        k=1,
        nodes=[{"id": "a"}, {"id": "b"}],
        anchors=[{"id": f"A{i}", "node": "a", "value": 1.0, "cost": 9.0} for i in range(3)],
        tiers=[{"id": "t", "blocks": ["A0", "A1", "A2"], "prices": [5.0, 2.0]}],
        rules=[{"id": "r", "blocks": ["A0", "A1", "A2"], "at_least": 1, "at_most": 2}],
    )
    left = at(problem, {"A0"}, ()).rest
    assert left is not None
    assert (left.tiers[0].prices, left.tiers[0].blocks) == ((2.0,), ("A1", "A2"))
    assert (left.rules[0].at_least, left.rules[0].at_most) == (0, 1)
    assert at(problem, (), {"a", "b"}).rest is None


def test_the_cost_of_a_goal_is_that_of_the_purchases_that_reach_it() -> None:
    design = Candidates(pairs(3, target=0.3))
    assert at(design, (), ()).cost_of_goal() == 3
    assert at(design, ("a0", "a1"), ()).cost_of_goal() == 1
    assert at(design, ("a0", "a1", "a2"), ()).cost_of_goal() == 0
    assert at(design, ("a0",), ("a0",)).cost_of_goal() is None


def test_a_field_without_any_readable_answer_is_decided_by_a_check_of_what_it_delivers() -> None:
    design = Candidates(ring(deliver=["n3"]))
    every = [f"n{i}" for i in range(5)]
    assert at(design, every, every).deciding_check(most=None) == ("a3",)
    assert at(design, every, every).deciding_check(most=Fraction(1)) == ()
    assert at(design, [*every, "a3"], every).deciding_check(most=None) == ()
    assert at(ring(), every, every).deciding_check(most=None) == ()  # one check does not decide five values


def test_where_no_single_purchase_helps_the_cheapest_few_that_do_are_bought_together() -> None:
    """All that was asked is unread; a further question says something only beside a check of one of
    those.
    """
    problem = rrf.Problem(
        k=1,
        target=0.3,
        nodes=[{"id": "lost"}, {"id": "more", "cost": 1.0}],
        relations=[{"id": "same", "tail": "lost", "head": "more"}],
        anchors=[{"id": "clerk", "node": "lost", "value": 7.0, "cost": 2.0}],
    )
    design = Candidates(problem)
    offer = at(design, ("lost",), ("lost",)).next_offer(most=None)
    assert offer is not None
    assert (set(offer.names), offer.price) == ({"more", "clerk"}, 3)
    assert at(design, ("lost", *offer.names), ("lost",)).reached


def unread_market(seed: int) -> tuple[Candidates, list[str], list[str]]:
    """Five wordings, some of which are there and some of those unread; the rest, relations and
    checks at drawn prices.
    """
    rng = np.random.default_rng(seed)
    given = int(rng.integers(2, 5))
    price = [float(p) for p in rng.integers(1, 7, size=16)]
    nodes = [{"id": f"n{i}", **({} if i < given else {"cost": price[i]})} for i in range(5)]
    pairs_of = list(combinations(range(5), 2))
    chosen = [pairs_of[i] for i in rng.choice(len(pairs_of), size=5, replace=False)]
    relations = [{"id": f"r{i}{j}", "tail": f"n{i}", "head": f"n{j}"} for i, j in chosen]
    anchors = [{"id": f"a{i}", "node": f"n{i}", "cost": price[5 + i]} for i in range(5)]
    problem = rrf.Problem(
        k=1, target=float(rng.choice([0.2, 0.4, 0.6])), nodes=nodes, relations=relations, anchors=anchors
    )
    there = [f"n{i}" for i in range(given)]
    return Candidates(problem), there, there[: int(rng.integers(1, given))]


@pytest.mark.parametrize("seed", range(20))
def test_the_way_to_the_goal_is_the_cheapest_of_all(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against every set of things on sale, with the margins of a repair whose answers could not all
    be read.
    """
    monkeypatch.setattr(selection, "LOOKED_AT", 10_000)
    design, held, failed = unread_market(seed)
    wares = [name for b in design.offers(held, failed, most=None) for name in b.names]
    wares = list(dict.fromkeys(wares))
    ways = [
        design.price(names, held)
        for size in range(len(wares) + 1)
        for names in combinations(wares, size)
        if at(design, {*held, *names}, failed).reached
    ]
    found = at(design, held, failed).reaching_offer(most=None)
    if at(design, held, failed).reached:
        assert not min(ways)
    elif found is None:
        assert not ways
    else:
        assert found.price == design.price(found.names, held) == min(ways)
        assert at(design, {*held, *found.names}, failed).reached
        assert at(design, held, failed).next_offer(most=None) == found
        assert at(design, held, failed).reaching_offer(most=found.price - Fraction(1, 2)) is None


def pair(**settings: Any) -> rrf.Problem:
    node = {"sigma": 0.1, "again": 0.05, "most_repeats": 20, "parser": "decimal"}
    return rrf.Problem(
        **{"k": 1, "delta": 0.8, **settings},
        nodes=[{"id": "plain", "prompt": "6 * 7?", **node}, {"id": "reworded", "prompt": "7 * 6?", **node}],
        relations=[{"id": "same", "tail": "plain", "head": "reworded"}],
        anchors=[
            {"id": "known", "node": "plain", "value": 42.0},
            {"id": "label", "node": "reworded", "value": 42.0, "cost": 0.4},
        ],
    )


def answer(purchase: Purchase) -> Settlement:
    return Settlement(purchase, "told", (42.0,), calls=int(purchase.buys is Buys.ANSWER))


def play(acquirer: Acquirer, tell: Callable[[Purchase], Settlement] = answer) -> None:
    while purchases := acquirer.ask(3):
        for purchase in purchases:
            acquirer.tell(tell(purchase))


def test_the_schedule_is_the_plan_with_its_repeats() -> None:
    problem = pair()
    plan = rrf.plan(problem)
    acquirer = Acquirer(problem, settings=Settings(budget=2.0))
    play(acquirer)
    state = acquirer.state.items[""]
    asked = Candidates(problem).repeats(state.held, state.failed)
    assert asked == {"plain": 7, "reworded": 6} == dict(plan.repeats)
    assert float(acquirer.state.spent) == pytest.approx(plan.cost)
    stop = acquirer.stops[""]
    assert stop is not None
    assert (stop.because, stop.detail) == (
        "target reached",
        f"certified error bound {plan.error_bound:.6g} is at most 0.8",
    )


@pytest.mark.parametrize(("mode", "method"), [(Mode.ADAPTIVE, "auto"), (Mode.AGNOSTIC, "witness")])
def test_step_by_step_both_routes_are_weighed(mode: Mode, method: str) -> None:
    problem = pair()
    acquirer = Acquirer(problem, settings=Settings(budget=3.0, mode=mode, method=method))
    play(acquirer)
    state = acquirer.state.items[""]
    assert "label" in state.held
    asked = asking(problem, Candidates(problem).repeats(state.held, state.failed))
    assert asked.design(["label"]).standing(asked).reached
    assert acquirer.state.spent <= 3
    assert acquirer.stops[""].because == "target reached"  # type: ignore[union-attr]


def test_what_could_not_be_read_does_not_count_and_is_asked_again() -> None:
    problem = pair()
    lost = {"plain", "plain ×3", "reworded ×2"}

    def tell(purchase: Purchase) -> Settlement:
        if purchase.name in lost:
            return Settlement(purchase, "refused", ok=False, calls=1)
        return answer(purchase)

    acquirer = Acquirer(problem, settings=Settings(budget=9.0, mode=Mode.ADAPTIVE, batch=2))
    play(acquirer, tell)
    state = acquirer.state.items[""]
    for node in ("plain", "reworded"):
        entries = [e for e in state.settled.values() if node in (e.name, e.again_of)]
        read = sum(entry.ok for entry in entries)
        assert Candidates(problem).repeats(state.held, state.failed)[node] == max(1, read)


def test_a_failed_repeat_is_planned_anew() -> None:
    problem = pair()

    def tell(purchase: Purchase) -> Settlement:
        return Settlement(purchase, "refused", ok=False, calls=1) if purchase.name == "plain ×2" else answer(purchase)

    acquirer = Acquirer(problem, settings=Settings(budget=9.0))
    play(acquirer, tell)
    state = acquirer.state.items[""]
    asked = Candidates(problem).repeats(state.held, state.failed)
    assert sum(asked.values()) == 13
    assert sum(bool(entry.again_of) for entry in state.settled.values()) == 12  # one of them in vain
    assert acquirer.stops[""].because == "target reached"  # type: ignore[union-attr]
    often = asking(problem, asked)
    assert often.design(["label"]).standing(often).reached


@pytest.mark.parametrize("seed", range(3))
def test_a_run_certifies_the_mean_with_the_noise_of_what_was_read(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    model = ScriptedModel(lambda request: f"{42 + rng.normal(0, 0.1):.6f}")
    problem = pair()
    run = rrf.acquire(problem, model, budget=2.0, store=tmp_path / "runs.sqlite")
    (item,) = run.items
    assert dict(item.repeats) == {"plain": 7, "reworded": 6}
    said = [p.value[0] for p in run.purchases if p.name.startswith("plain") and p.value is not None]
    assert item.answers["plain"] == pytest.approx((fsum(said) / len(said),))
    assert item.reached
    asked = asking(problem, item.repeats)
    assert item.repair is not None
    assert item.repair["error_bound"] == pytest.approx(asked.design(["label"]).standing(asked).error_bound, rel=1e-6)
    made = item.certify()
    assert made.met
    assert rrf.verify(made).valid
    back = read_run(run.run, store=tmp_path / "runs.sqlite")
    assert back.to_json()["items"] == run.to_json()["items"]
    page = render(read(run.to_json(), problem=problem))
    assert "plain ×7" in page


def test_declared_repeats_are_asked_at_once_and_given_ones_are_a_mean() -> None:
    problem = asking(pair(), {"plain": 3})
    acquirer = Acquirer(problem, settings=Settings(budget=0.0))
    assert [p.name for p in acquirer.ask(9)] == ["plain", "reworded", "plain ×2", "plain ×3"]
    acquirer = Acquirer(problem, settings=Settings(budget=0.0))
    acquirer.give({"plain": 42.0})
    assert [p.name for p in acquirer.ask(9)] == ["reworded"]
    assert acquirer.state.items[""].values(Buys.ANSWER) == {"plain": (42.0,)}


def test_while_nothing_is_promised_no_repeat_is_bought() -> None:
    field = Candidates(pair())
    offer = PricedOffer(("label",), field.price(["label"]), 1.0)
    held = {"plain", "reworded"}
    best = at(field, held).weighed(offer, most=None)
    assert best is not None
    every = [offer, *field.further(held, (), most=None)]
    now = at(field, held).promised_error
    assert now is not None
    gains = [(now - (at(field, {*held, *b.names}).promised_error or now)) / float(b.price) for b in every]
    assert every[int(np.argmax(gains))].names == best.names
    blind = Candidates(pair().model_copy(update={"anchors": pair().anchors[1:]}))
    assert at(blind, held).promised_error is None
    assert at(blind, held).weighed(offer, most=None) is offer
    assert not Candidates(pair(delta=None)).further(held, (), most=None)


def test_a_name_that_an_ask_has_is_refused() -> None:
    nodes = [{"id": "x", "sigma": 1.0, "again": 1.0}, {"id": "x ×2"}]
    with pytest.raises(rrf.InputError, match="ask 2 of node 'x' is called so"):
        Candidates(rrf.Problem(nodes=nodes)).price(["x ×3"])


def test_triage_asks_again_where_that_brings_an_item_to_its_goal() -> None:
    problem = pair()
    acquirer = Acquirer({"x": problem, "y": problem}, settings=Settings(budget=4.0, mode=Mode.TRIAGE))
    play(acquirer)
    for item in "xy":
        state = acquirer.state.items[item]
        assert max(Candidates(problem).repeats(state.held, state.failed).values()) > 1
        stop = acquirer.stops[item]
        assert stop is not None
        assert stop.because == "target reached"


def test_a_schedule_attacks_witness_after_witness_and_stops_at_the_goal() -> None:
    design = Candidates(ring(budget=None, target=0.5))
    names = _witness_schedules({"": at(design)}, None)[""].names
    assert design.margin(names).lower >= 0.5
    assert design.margin(names[:-1]).lower < 0.5
    names = _witness_schedules({"": at(pairs())}, None)[""].names
    assert sorted(names) == ["a0", "a1", "a2"]
    assert len({_witness_schedules({"": at(ring(6))}, Fraction(5))[""].names for _ in range(3)}) == 1
    assert np.isfinite(Candidates(ring(6)).margin(()).lower)


def test_money_goes_to_the_worst_item_first() -> None:
    whole = ring(4, budget=None)
    owned = [relation.model_copy(update={"cost": None}) for relation in whole.relations]
    good = rrf.Problem(k=1, nodes=whole.nodes, relations=owned, anchors=whole.anchors)
    designs = {"good": Candidates(good), "bad": Candidates(pairs(1))}
    assert designs["good"].margin(()).lower > designs["bad"].margin(()).lower == 0.0
    schedules = fixed_schedules(designs, budget=1.0, method="witness", time_limit=None)
    assert {item: schedule.names for item, schedule in schedules.items()} == {"good": (), "bad": ("a0",)}


def test_a_chosen_set_is_ordered_with_its_needs_first() -> None:
    problem = rrf.Problem(
        k=1,
        nodes=[{"id": "a"}, {"id": "b"}, {"id": "c", "cost": 1.0}],
        relations=[{"id": "ab", "tail": "a", "head": "b"}, {"id": "bc", "tail": "b", "head": "c", "cost": 1.0}],
        anchors=[{"id": "C", "node": "c", "value": 1.0, "cost": 1.0, "requires": ["bc"]}],
    )
    names = _in_order(Candidates(problem), ["C", "bc", "c"])
    assert sorted(names) == ["C", "bc", "c"]
    assert names.index("c") < names.index("bc") < names.index("C")


def test_after_unread_answers_the_cheapest_goals_get_the_money() -> None:
    """Three equal fields, checks at 3, 1 and 2: with 3 to spend the two cheaper ones get there, and
    nothing is spread over the dear one.
    """

    def field(price: float) -> Position:
        nodes = [{"id": "a"}, {"id": "b"}]
        same = [{"id": "same", "tail": "a", "head": "b"}]
        checks = [{"id": "check a", "node": "a", "cost": price}]
        return at(rrf.Problem(k=1, target=0.3, nodes=nodes, relations=same, anchors=checks), ["b"], ["b"])

    fields = {"dear": field(3.0), "cheap": field(1.0), "middle": field(2.0)}
    names = {item: schedule.names for item, schedule in remade_schedules(fields, Fraction(3)).items()}
    assert names == {"dear": (), "cheap": ("check a",), "middle": ("check a",)}


def costly() -> rrf.Problem:
    """A node on sale, an owned relation that waits for it, requirements, exclusions, a rule and a
    tier.
    """
    return rrf.Problem(
        k=1,
        nodes=[{"id": "a"}, {"id": "b"}, {"id": "c", "cost": 0.5}],
        relations=[
            {"id": "ab", "tail": "a", "head": "b", "family": "f"},
            {"id": "bc", "tail": "b", "head": "c", "family": "f"},
            {"id": "ac", "tail": "a", "head": "c", "transport": {"scale": 2.0}, "cost": 0.1},
        ],
        anchors=[
            {"id": "A", "node": "a", "cost": 1.0, "requires": ["ac"]},
            {"id": "B", "node": "b", "cost": 1.0, "excludes": ["A"]},
            {"id": "C", "node": "c", "cost": 1.0},
            {"id": "C2", "node": "c", "cost": 1.0},
        ],
        rules=[{"id": "few", "blocks": ["C", "C2", "B"], "at_most": 2}],
        tiers=[{"id": "bulk", "blocks": ["C", "C2"], "prices": [0.9, 0.3]}],
    )


def test_money_is_what_was_written() -> None:
    assert exact(0.1) * 3 == exact(0.3)
    assert exact(1) == Fraction(1)


@pytest.mark.parametrize("held", [[], ["c"], ["c", "C"], ["c", "ac", "A", "C2"], ["B"]])
def test_slices_equal_the_assembled_operator(held: list[str]) -> None:
    problem = costly()
    mine, theirs = problem.structure.holding(held).slice(problem), problem.operator(held)
    assert (mine.node_ids, mine.block_ids) == (theirs.node_ids, theirs.block_ids)
    np.testing.assert_array_equal(mine.matrix.toarray(), theirs.matrix.toarray())
    np.testing.assert_array_equal(mine.target, theirs.target)
    assert mine.groups[-1].tolist() == theirs.groups[-1].tolist()


def test_closures_come_in_buying_order_with_their_price() -> None:
    design = Candidates(costly())
    assert design.closure("A", ()) == ("c", "ac", "A")
    assert design.price(design.closure("A", ())) == Fraction(16, 10)
    assert design.closure("A", {"c", "ac"}) == ("A",)


def test_tiers_rules_and_exclusions() -> None:
    design = Candidates(costly())
    assert design.price(["C"]) == Fraction(9, 10)
    assert design.price(["C2"], {"C"}) == Fraction(3, 10)
    assert design.price(["C", "C2"]) == Fraction(12, 10)
    assert not design.allowed(["B"], {"A"})
    assert not design.allowed(["A"], {"B"})
    assert not design.allowed(["B"], {"C", "C2"})
    names = {offer.names[-1] for offer in design.offers({"c", "C"}, (), most=Fraction(1, 2))}
    assert names == {"ac", "C2"}


def test_a_node_wakes_the_relations_that_waited_for_it() -> None:
    design = Candidates(costly())
    assert design.wakes(["c"], ()) == ["bc"]
    assert design.wakes(["c", "C"], ()) == ["C", "bc"]
    assert [offer.names for offer in design.offers((), (), most=Fraction(1, 2))] == [("c",)]


def test_energies_add_up_to_the_witness_norm() -> None:
    design = Candidates(ring())
    margin = design.margin(["r1", "a0"])
    energy = design.energies(margin.witness)
    assert sum(energy[name] for name in margin.operator.block_ids) == pytest.approx(margin.value**2, abs=1e-12)


def test_margins_kept_up_to_date_equal_margins_computed_afresh() -> None:
    problem = ring(20)
    design, held = Candidates(problem, incremental=True), list[str]()
    for name in ("r1", "a0", "r5", "a7", "r3", "r7", "a12"):
        held.append(name)
        assert design.margin(held).value == pytest.approx(problem.margin(held).value, abs=1e-9)
    assert design.margin(held[:2]).value == pytest.approx(problem.margin(held[:2]).value, abs=1e-9)
    failed = design.margin(held, ["n4"])
    assert failed.unread == ("n4",)
    assert failed.lower <= design.margin(held).upper  # whoever knows which answer is missing knows less than with it


def test_equal_fields_share_what_was_computed_and_others_do_not() -> None:
    problems = (ring(), ring(name="same"), ring(6))
    structures = share(problems)
    assert structures[0] is structures[1] is not structures[2]
    first, same, other = (Candidates(p, structure=s) for p, s in zip(problems, structures, strict=True))
    assert first.margin(["r1"]).solved is same.margin(["r1"]).solved
    assert other.margin(["r1"]).value == pytest.approx(ring(6).margin(["r1"]).value)


def test_unread_nodes_stay_with_their_rows_and_failed_checks_go() -> None:
    design = Candidates(ring())
    operator = design.margin(["r1", "a2", "a3"], ["n2", "a3"]).operator
    assert "n2" in operator.node_ids
    assert set(operator.block_ids) == {"r0", "r1", "r2", "r4", "a2"}


@pytest.mark.parametrize("seed", range(6))
def test_ceiling_bounds_every_choice(seed: int) -> None:
    rng = np.random.default_rng(seed)
    design = Candidates(ring(4) if seed % 2 else costly())
    held: tuple[str, ...] = ()
    offers = design.offers(held, (), most=Fraction(2))
    ceiling = design.ceiling(held, (), offers)
    for _ in range(20):
        chosen = [b for b in offers if rng.random() < 0.5]
        names = {name for offer in chosen for name in offer.names}
        assert design.margin(names).lower <= ceiling * (1 + 1e-9)


def test_realised_keeps_every_row_that_stays() -> None:
    problem = costly()
    turned_out = realised(problem, failed={"c", "B"}, values={"A": (4.0,)})
    assert [node.id for node in turned_out.nodes] == ["a", "b"]
    assert turned_out.block_by_id["A"].value == (4.0,)  # type: ignore[union-attr]
    assert turned_out.block_by_id["A"].requires == ()
    before = Candidates(problem).margin(["A"], ["c", "B"]).operator
    np.testing.assert_allclose(turned_out.operator(["A"]).matrix.toarray(), before.matrix.toarray(), rtol=1e-15)


@pytest.mark.parametrize("premise", [{"deliver": ["n3"]}, {"wrong_checks": 1}])
@pytest.mark.parametrize("incremental", [True, False])
def test_a_shop_asks_the_question_of_its_problem(premise: dict[str, Any], incremental: bool) -> None:
    """Also on a field so large that plain margins are kept up to date."""
    problem = ring(20, **premise)
    shop = Candidates(problem, incremental=incremental)
    for held in ([], ["a3"], ["a3", "r3", "a4"]):
        assert shop.margin(held).value == problem.margin(held).value
        assert shop.settled_margin(held, ()).value == problem.margin(held).value
    assert shop.supports_below([], (), factor=1.2, most=5) == ()
    offers = shop.offers([], (), most=None)
    assert shop.ceiling([], (), offers) >= problem.margin("all").value * (1 - 1e-9)


def test_a_delivered_answer_that_could_not_be_read_is_determined_by_the_others_or_not_at_all() -> None:
    problem = ring(5, deliver=["n3"])
    held = ["r1", "r3", "a3", "a4"]
    assert Candidates(problem).margin(held).value > 0.5
    assert Candidates(problem).margin(held, ["n3"]).value > 0.0  # its check and its neighbours state it
    assert Candidates(problem).margin([], ["n3"]).value == 0.0
    assert Candidates(problem).margin(held, ["n1"]).value > 0.0
    left = realised(problem, failed=["n3", "a0"], values={})
    assert left.deliver == ("n3",)
    assert left.margin("all").value == 0.0


def test_a_live_run_does_not_take_one_answer_for_a_mean() -> None:
    import rrf_design as rrf
    from rrf_design.acquisition._candidates import Candidates

    shop = Candidates(rrf.Problem(nodes=[{"id": "x", "sigma": 0.1, "repeats": 3}]))
    assert shop.asked({"x"}, ()).node_by_id["x"].repeats == 3
    assert shop.asked({"x"}, {"x ×2", "x ×3"}).node_by_id["x"].repeats == 1  # as many as could be read
