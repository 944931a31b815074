"""Asking again in a live run: weighed against purchases, counted as read, and promised no better than it was."""

from __future__ import annotations

from collections.abc import Callable
from math import fsum
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design.acquisition import Acquirer, Buys, Mode, Purchase, Settings, Settlement
from rrf_design.acquisition.asking import promised_error, weighed
from rrf_design.acquisition.result import read_run
from rrf_design.acquisition.shop import Bundle, Shop
from rrf_design.derive import asking
from rrf_design.models.scripted import ScriptedModel
from rrf_design.reporting.documents import read, render


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
    asked = Shop(problem).repeats(state.held, state.failed)
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
    asked = asking(problem, Shop(problem).repeats(state.held, state.failed))
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
        assert Shop(problem).repeats(state.held, state.failed)[node] == max(1, read)


def test_a_failed_repeat_is_planned_anew() -> None:
    problem = pair()

    def tell(purchase: Purchase) -> Settlement:
        return Settlement(purchase, "refused", ok=False, calls=1) if purchase.name == "plain ×2" else answer(purchase)

    acquirer = Acquirer(problem, settings=Settings(budget=9.0))
    play(acquirer, tell)
    state = acquirer.state.items[""]
    asked = Shop(problem).repeats(state.held, state.failed)
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
    shop = Shop(pair())
    bundle = Bundle(("label",), shop.price(["label"]), 1.0)
    held = {"plain", "reworded"}
    best = weighed(shop, held, (), bundle, most=None)
    assert best is not None
    every = [bundle, *shop.further(held, (), most=None)]
    now = promised_error(shop, held, ())
    assert now is not None
    gains = [(now - (promised_error(shop, {*held, *b.names}, ()) or now)) / float(b.price) for b in every]
    assert every[int(np.argmax(gains))].names == best.names
    blind = Shop(pair().model_copy(update={"anchors": pair().anchors[1:]}))
    assert promised_error(blind, held, ()) is None
    assert weighed(blind, held, (), bundle, most=None) is bundle
    assert not Shop(pair(delta=None)).further(held, (), most=None)


def test_a_name_that_an_ask_has_is_refused() -> None:
    nodes = [{"id": "x", "sigma": 1.0, "again": 1.0}, {"id": "x ×2"}]
    with pytest.raises(rrf.InputError, match="ask 2 of node 'x' is called so"):
        Shop(rrf.Problem(nodes=nodes)).price(["x ×3"])


def test_triage_asks_again_where_that_brings_an_item_to_its_goal() -> None:
    problem = pair()
    acquirer = Acquirer({"x": problem, "y": problem}, settings=Settings(budget=4.0, mode=Mode.TRIAGE))
    play(acquirer)
    for item in "xy":
        state = acquirer.state.items[item]
        assert max(Shop(problem).repeats(state.held, state.failed).values()) > 1
        stop = acquirer.stops[item]
        assert stop is not None
        assert stop.because == "target reached"
