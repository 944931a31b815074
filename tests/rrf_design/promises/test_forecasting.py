from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest

from rrf_design.promises import PilotSettings, forecast_pilot, plan_pilot
from rrf_design.promises.buying import NOTHING
from rrf_design.promises.forecast import GUESSES, NO_PILOT, least_pilot
from rrf_design.risk import Among, Limit, Scope, Statement, least_labels, passing_count
from rrf_design.risk.forecasts import AGREED_WRONG


def test_a_forecast_reads_no_gold_and_can_say_that_no_pilot_pays(make_world: Any) -> None:
    world = make_world(items=300, wrong=0.05)
    text = (world.folder / "table.jsonl").read_text()
    (world.folder / "table.jsonl").write_text(text.replace('"booked": ', '"booked": "?", "was": '))
    found = forecast_pilot(world.plan(PilotSettings(100, 0.1)))
    assert found["least_labels"] == 29
    assert any(entry["pays"] for entry in found["sizes"])
    assert not forecast_pilot(world.plan(PilotSettings(299, 0.01)))["sizes"][-1]["pays"]


def test_what_agreement_hides_is_a_guess_and_the_forecast_says_how_far_it_carries(make_world: Any) -> None:
    plan = make_world(items=300, wrong=0.05).plan(PilotSettings(100, 0.1))
    costs = [
        [entry["expected_cost"] for entry in forecast_pilot(plan, agreed_wrong=guess)["sizes"]]
        for guess in (0.0, 0.01, 0.05, 0.2)
    ]
    for less, more in pairwise(costs):
        assert all(a <= b + 1e-9 for a, b in zip(less, more, strict=True))
    found = forecast_pilot(plan)
    assert found["agreed_wrong"] == AGREED_WRONG
    limit = found["pays_up_to"]
    assert limit in GUESSES

    def pays(guess: float) -> bool:
        told = forecast_pilot(plan, agreed_wrong=guess)
        return any(entry["pays"] for entry in (*told["sizes"], *(told["with_random_checks"] or ())))

    assert pays(limit)
    assert not any(pays(guess) for guess in GUESSES if guess > limit)


def test_without_answers_there_are_bounds_only_until_somebody_guesses(make_world: Any) -> None:
    world = make_world(items=300, wrong=0.05)
    plan = plan_pilot(world.dataset, NOTHING, PilotSettings(100, 0.1), small=True)
    found = forecast_pilot(plan)
    assert found["expected_from"] == "nothing: bounds only"
    assert all(entry["expected_cost"] is None and not entry["pays"] for entry in found["sizes"])
    assert "could pay" in found["advice"]
    assert "--accuracy" in found["advice"]
    good, bad = (forecast_pilot(plan, accuracy=guess) for guess in (0.97, 0.4))
    assert good["advice"].startswith("a pilot of")
    assert bad["advice"] == f"{NO_PILOT}: check everything"
    for better, worse in zip(good["sizes"], bad["sizes"], strict=True):
        assert better["expected_cost"] <= worse["expected_cost"]


@pytest.mark.parametrize("statement", [Statement.POLICY, Statement.FILE])
def test_the_least_pilot_is_that_of_the_statement(statement: Statement) -> None:
    settings = PilotSettings(100, 0.05, statement=statement)
    least = least_pilot(settings, 300)
    assert least < least_labels(0.05, 0.95)
    limit, level = Limit.of(0.05, among=Among.ALL), Fraction(1, 20)
    assert [passing_count(limit, Scope(statement, n, 300), level) >= 0 for n in (least - 1, least)] == [False, True]


def test_where_nobody_checks_withholding_is_what_a_pilot_saves(make_world: Any) -> None:
    found = forecast_pilot(make_world(items=300, wrong=0.05, person=False).plan(PilotSettings(100, 0.1)))
    assert found["last"] == "withheld"
    assert found["with_random_checks"] is None
    assert any(entry["pays"] for entry in found["sizes"])
    bad = forecast_pilot(make_world(items=300, wrong=0.6, person=False).plan(PilotSettings(100, 0.1)))
    assert bad["advice"] == f"{NO_PILOT}: withhold everything"


def test_a_live_pilot_pays_for_the_checks_of_its_rungs_and_for_what_makes_the_order(make_checked_world: Any) -> None:
    """6 for answers, 2 and 4 for checks, 30 for the truth; and without truth for the items
    aside.
    """
    from rrf_design.promises import PilotSettings, forecast_pilot, plan_pilot
    from rrf_design.promises.buying import NOTHING

    data = make_checked_world(("tests", "judge"), items=40).dataset
    for order, beside in (("front", 10), ("holm", 0)):
        plan = plan_pilot(data, NOTHING, PilotSettings(20, 0.2, order=order, aside=10), small=True)
        found = forecast_pilot(plan)
        assert found["aside"] == beside
        for entry in found["sizes"]:
            assert entry["pilot_cost"] == 42.0 * entry["labels"] + 12.0 * min(beside, 40 - entry["labels"])
