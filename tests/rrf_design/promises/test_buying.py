"""Live answers are the recorded ones, bought once: same pilot, same policy, same delivery."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from rrf_design.acquisition import Journal, read_run
from rrf_design.errors import InputError, Refused
from rrf_design.models.scripted import ScriptedModel
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
from rrf_design.promises.buying import NOTHING, buy_answers
from rrf_design.questions.answers import RecordedAnswers


@pytest.fixture
def world(make_world: Any) -> Any:
    return make_world(items=90, wrong=0.04, unread=0.02)


def live_of(world: Any) -> LiveModels:
    return LiveModels(f"scripted:{world.script}", world.folder / "journal.sqlite")


def test_a_live_pilot_proves_what_recorded_answers_prove(world: Any) -> None:
    live = live_of(world)
    settings = PilotSettings(40, 0.2, aside=30)
    recorded = world.document(settings)
    plan = plan_pilot(world.dataset, buy_pilot(world.dataset, settings, live), settings)
    truths, _ = gold_truths(plan)
    bought = policy_document(run_pilot(plan, truths, truth_source="gold column 'booked'"))
    assert bought["choice"] == recorded["choice"]
    assert bought["models"]["model"]["adapter"] == "scripted"
    assert recorded["models"] is None
    with RecordedAnswers(world.dataset, world.answers) as answers:
        there = run_policy(world.dataset, answers, recorded)
    here = run_policy(world.dataset, live, bought)
    outside = [at for at, name in enumerate(there.ids) if name not in bought["drawn"]]
    keys = ("answer", "verdict", "cost")
    assert [[here.rows[at][key] for key in keys] for at in outside] == [
        [there.rows[at][key] for key in keys] for at in outside
    ]
    assert here.totals == there.totals
    with pytest.raises(Refused, match="recorded answers, and nothing says"):
        run_policy(world.dataset, live, recorded)
    with pytest.raises(Refused, match="models have changed"):
        run_policy(world.dataset, live, {**bought, "models": {"model": {"adapter": "other"}}})


def test_nothing_is_bought_twice(world: Any) -> None:
    from rrf_design.acquisition import Journal

    live = live_of(world)
    small, large = PilotSettings(40, 0.2, aside=20, sequential=True), PilotSettings(60, 0.2, aside=10, sequential=True)
    first = buy_pilot(world.dataset, small, live)
    assert len(first.answers) == 60
    assert buy_pilot(world.dataset, small, live) == first  # the same run, read from the journal
    grown = buy_pilot(world.dataset, large, live, have=first)
    assert {name: grown.of(name) for name in first.answers} == first.answers
    with Journal(world.folder / "journal.sqlite") as journal:
        asked = sum(run.purchases for run in journal.summaries())
    assert asked == 4 * len(grown.answers)


def test_one_rung_at_a_time(world: Any) -> None:
    live = live_of(world)
    names = list(world.dataset)[:3]
    found = buy_answers(world.dataset, names, live, nodes=["reworded"])
    assert {name: list(found.of(name)) for name in names} == {name: ["reworded"] for name in names}
    assert buy_answers(world.dataset, names, live, nodes=["nobody"]) is NOTHING


def test_without_a_model_nobody_is_asked(world: Any) -> None:
    with pytest.raises(InputError, match="names no model"):
        buy_answers(world.dataset, list(world.dataset)[:1], LiveModels())
    with pytest.raises(InputError, match="can prove a risk"):  # before anything is bought
        buy_pilot(world.dataset, PilotSettings(20, 0.1), LiveModels())


def test_the_recipes_own_models_are_asked_where_nobody_names_others(tmp_path: Any) -> None:
    import rrf_design as rrf

    for name in ("ten", "eleven"):
        (tmp_path / f"{name}.json").write_text(json.dumps({"default": {"ten": "10", "eleven": "11"}[name]}))
    recipe = {
        "data": {"id": "no"},
        "models": {"mini": f"scripted:{tmp_path / 'ten.json'}", "other": f"scripted:{tmp_path / 'eleven.json'}"},
        "answer": {"of": "total", "tolerance": 0.1},
        "ask": [{"id": "total", "prompt": "{{ no }}?", "model": ["mini", "other"]}],
    }
    items = rrf.dataset(recipe, [{"no": "a"}])
    for _ in range(2):  # bought, and found again
        found = buy_answers(items, ["a"], LiveModels(store=tmp_path / "journal.sqlite"))
        assert {node: answer.text for node, answer in found.of("a").items()} == {"total": "10", "total@other": "11"}
        assert set(found.models) == {"mini", "other"}


def test_limits_hold_for_a_whole_pilot(make_checked_world: Any) -> None:
    """Calls and prices of answers and checks together: what would go beyond the budget is not
    bought, what goes beyond the calls waits.
    """
    from dataclasses import replace

    from rrf_design.errors import RetryLater

    world = make_checked_world(("judge",), items=12)
    settings = PilotSettings(9, 0.3, order="holm")
    live = world.live(cache=None)
    with pytest.raises(InputError, match="of 9 items, cost 54, and 53 of the budget is left; none of them was bought"):
        buy_pilot(world.dataset, settings, replace(live, budget=53.0))
    assert not (world.folder / "journal.sqlite").exists()
    with pytest.raises(InputError, match=r"of 9 items, cost 18, and 17\.5 of the budget is left"):
        buy_pilot(world.dataset, settings, replace(live, budget=71.5))
    with pytest.raises(RetryLater, match=r"at 'judge' among it.*calls"):
        buy_pilot(world.dataset, settings, world.live(calls=30))
    found = buy_pilot(world.dataset, settings, replace(world.live(calls=36), budget=72.0))
    assert (found.calls, found.price) == (36, 72)
    assert all(set(found.of(name)) == {"total", "reworded", "other", "judge"} for name in found.answers)


def test_the_answer_of_a_node_that_is_asked_several_times_is_the_mean(tmp_path: Any) -> None:
    """In a pilot as on a rung: the first answer alone would scatter as if it had been asked
    once.
    """
    import rrf_design as rrf
    from rrf_design.models.scripted import ScriptedModel
    from rrf_design.promises.buying import LiveModels, buy_answers

    nodes = '[[nodes]]\nid = "a"\nprompt = "{{ text }}?"\nparser = "decimal"\nsigma = 0.5\nrepeats = 3\nprice = 1.0\n'
    (tmp_path / "rrf.toml").write_text(f'[data]\nid = "no"\n[problem]\nk = 1\n{nodes}')
    data = rrf.dataset(tmp_path / "rrf.toml", [{"no": "x", "text": "How much"}])
    model = ScriptedModel(lambda request: f"{10 + request.repeat}")
    for wanted in (None, ["a"]):
        found = buy_answers(
            data, ["x"], LiveModels(model, tmp_path / f"{wanted}.sqlite", {"cache": None}), nodes=wanted
        )
        assert found.of("x")["a"].value == (11.0,)


def test_a_limit_on_calls_is_that_of_the_command(make_checked_world: Any) -> None:
    """Repeated without one, or with a larger one, it goes on where it was stopped."""
    from rrf_design.errors import RetryLater

    world = make_checked_world(["judge"])
    settings = PilotSettings(6, 0.6, order="holm")
    for calls in (3, 7):
        with pytest.raises(RetryLater, match=r"calls used up.*repeat the command with a larger --max-calls"):
            buy_pilot(world.dataset, settings, world.live(calls=calls))
    found = buy_pilot(world.dataset, settings, world.live())
    fresh = buy_pilot(world.dataset, settings, world.live("fresh.sqlite"))
    assert found.answers == fresh.answers


@pytest.mark.parametrize("among", [None, "delivered"])
def test_what_can_never_be_proven_live_is_refused_before_anything_is_bought(make_world: Any, among: Any) -> None:
    from rrf_design.errors import InputError
    from rrf_design.models.scripted import ScriptedModel
    from rrf_design.promises import PilotSettings
    from rrf_design.promises._pilot_design import buy_pilot
    from rrf_design.promises.buying import LiveModels
    from rrf_design.risk import Among, Statement

    world = make_world(items=120, person=among is not None)
    asked: list[Any] = []
    model = ScriptedModel(lambda request: asked.append(request) or "1")
    settings = PilotSettings(60, 0.1, statement=Statement.REST, among=None if among is None else Among(among))
    with pytest.raises(InputError, match="is not known while models are asked"):
        buy_pilot(world.dataset, settings, LiveModels(model, world.folder / "journal.sqlite"))
    assert not asked


class CountedModel(ScriptedModel):
    """Counts what it is asked, by prompt; of a version."""

    def __init__(self, folder: Any, version: str = "1") -> None:
        rules = json.loads((folder / "script.json").read_text())["rules"]
        said = {rule["prompt"]: rule["text"] for rule in rules}
        self.asked: list[str] = []

        def answer(request: Any) -> str:
            self.asked.append(request.prompt)
            return str(said[request.prompt])

        super().__init__(answer, name=f"counted {version}")


@pytest.mark.parametrize("order", ["front", "holm"])
def test_all_that_was_paid_is_booked_once(make_checked_world: Any, order: str) -> None:
    """Pilot and run together cost what was asked and fetched: of the pilot's items, of those that
    made the order of its tests, and of the rest.
    """
    world = make_checked_world(["tests", "judge"], items=60, wrong=0.04, costs={"tests": 9.0})
    model = CountedModel(world.folder)
    live = replace(world.live(), model=model)
    settings = PilotSettings(30, 0.4, aside=15, order=order)
    plan = plan_pilot(world.dataset, buy_pilot(world.dataset, settings, live), settings)
    document = policy_document(run_pilot(plan, gold_truths(plan)[0], truth_source="gold column 'booked'"))
    run = run_policy(world.dataset, live, document)
    prices = {"total": 1.0, "reworded": 2.0, "other": 3.0}
    paid = sum(prices[prompt.split()[-1].rstrip("?")] for prompt in model.asked)
    with Journal(live.store) as journal:
        runs = [summary.run for summary in journal.summaries()]
    bought = [entry for name in runs for entry in read_run(name, store=live.store).purchases]
    paid += sum({"tests": 9.0, "judge": 2.0}.get(entry.name, 0.0) for entry in bought)
    people = 30.0 * run.totals.to_people
    assert run.totals.delivered > 0
    assert run.totals.cost + run.pilot_cost == pytest.approx(paid + people)
    with Journal(live.store) as journal:
        titles = {summary.name.split(",")[0] for summary in journal.summaries()}
    assert {"pilot", "checks of a pilot", "run under a policy"} == titles


def test_models_that_changed_are_asked_in_a_new_run(world: Any) -> None:
    """The journal has a run of the same questions to another version; who was told to start a new
    one could not.
    """
    assert world.script.name == "script.json"
    names = list(world.dataset)[:4]
    runs = []
    for version in ("1", "2", "1"):
        model = CountedModel(world.folder, version)
        runs += buy_answers(world.dataset, names, LiveModels(model, world.folder / "journal.sqlite")).runs
        assert len(model.asked) == (16 if len(runs) < 3 else 0)
    assert runs[0] == runs[2] != runs[1]


@pytest.mark.parametrize(("outcome", "wrong"), [("timeout", 6), ("refused", 0)])
def test_items_whose_calls_failed_count_as_wrong_in_a_pilot(make_world: Any, outcome: str, wrong: int) -> None:
    """The run may well get answers to such calls, and deliver them; a refusal is what the model
    says to this item, then as now.
    """
    world = make_world(items=40, wrong=0.0)
    rules = json.loads(world.script.read_text())["rules"]
    for rule in rules[:: len(rules) // 6][:6]:
        del rule["text"]
        rule["outcome"] = outcome
    script = world.folder / "outage.json"
    script.write_text(json.dumps({"rules": rules}))
    live = LiveModels(f"scripted:{script}", world.folder / "journal.sqlite")
    settings = PilotSettings(40, 0.3, order="holm")
    plan = plan_pilot(world.dataset, buy_pilot(world.dataset, settings, live), settings)
    truths, _ = gold_truths(plan)
    found = run_pilot(plan, truths, truth_source="gold column 'booked'")
    assert sum(bool(row.lost) for row in plan.pilot.rows) == wrong
    for one in found.played.values():
        lost = [not row.lost.isdisjoint(held) for row, held in zip(plan.pilot.rows, one.held, strict=True)]
        assert one.wrong.tolist() == lost
    assert max(one.wrong.sum() for one in found.played.values()) == wrong
