"""What a run under a policy buys: each rung for the items that are not decided yet, and nothing
beyond its budget.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rrf_design.acquisition import Journal
from rrf_design.errors import InputError
from rrf_design.promises import (
    LiveModels,
    PilotSettings,
    gold_truths,
    plan_pilot,
    policy_document,
    run_pilot,
    run_policy,
)
from rrf_design.promises._pilot_design import buy_pilot
from rrf_design.promises._reuse import climb


def live_of(world: Any) -> LiveModels:
    return LiveModels(f"scripted:{world.script}", world.folder / "journal.sqlite")


def piloted(world: Any, live: LiveModels) -> dict[str, Any]:
    settings = PilotSettings(40, 0.2, order="holm")
    plan = plan_pilot(world.dataset, buy_pilot(world.dataset, settings, live), settings)
    return policy_document(run_pilot(plan, gold_truths(plan)[0], truth_source="gold column 'booked'"))


def test_an_item_that_a_gate_accepts_is_asked_no_further(make_world: Any) -> None:
    world = make_world(items=90, wrong=0.1)
    live = live_of(world)
    document = piloted(world, live)
    order = document["ladder"]["order"]
    nodes = tuple(dict.fromkeys(world.dataset.recipe.nodes.values()))
    bought = climb(world.dataset, live, document, nodes)
    assert len(bought.answers) == 50
    asked = {name: set(bought.of(name)) for name in bought.answers}
    assert all(names == set(order[: len(names)]) for names in asked.values())
    run = run_policy(world.dataset, live, document)
    spent = dict(zip(run.ids, run.rows, strict=True))
    accepted = [name for name in asked if spent[name]["answer"] is not None]
    assert accepted
    assert all(len(asked[name]) == len(order) for name in asked if name not in accepted)


def test_the_budget_of_the_promise_holds_while_answers_are_bought(make_world: Any) -> None:
    """Unless the call says another: the recipe can't be changed any more without another pilot."""
    world = make_world(items=90, wrong=0.04, extra="\n[promise]\nrisk = 0.2\nbudget = 10.0\n")
    live = live_of(world)
    document = piloted(world, live)
    with pytest.raises(
        InputError, match=r"of 50 items, cost \d+, and 10 of the budget is left; none of them was bought"
    ):
        run_policy(world.dataset, live, document)
    with Journal(live.store) as journal:
        assert len(journal.summaries()) == 1
    run = run_policy(world.dataset, replace(live, budget=1000.0), document)
    assert run.totals.over_budget > 0
