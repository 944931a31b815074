"""What a pilot or a run buys live, and what it takes from earlier ones."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.acquisition import Journal, read_run
from rrf_design.errors import InputError, Refused
from rrf_design.models.scripted import ScriptedModel
from rrf_design.promises import (
    CascadePolicy,
    LiveModels,
    PilotSettings,
    gold_truths,
    plan_pilot,
    policy_document,
    run_pilot,
    run_policy,
)
from rrf_design.promises._buying import NOTHING, buy_answers
from rrf_design.promises._pilot_design import buy_pilot, checks_to_fetch
from rrf_design.promises._reuse import buy_stages, recalled, recalled_pilot
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
    from rrf_design.promises._buying import LiveModels, buy_answers

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
    from rrf_design.promises._buying import LiveModels
    from rrf_design.promises._pilot_design import buy_pilot
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
    bought = buy_stages(world.dataset, live, document, nodes)
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


RECIPE = """[data]
id = "no"
gold = "booked"

[answer]
of = "a"
k = 1

[[ask]]
id = "a"
prompt = "{{ text }} a?"
cost = 1.0

[[check]]
id = "clerk"
of = "a"
by = { person = "{{ text }}?" }
cost = 30.0
"""


class Reluctant:
    """Every third question is refused when it comes first, and answered wrongly when it comes
    again.
    """

    def __init__(self) -> None:
        self.seen: dict[str, int] = {}

    def __call__(self, request: Any) -> str:
        times = self.seen[request.prompt] = self.seen.get(request.prompt, 0) + 1
        number = int(request.prompt.split()[1])
        if number % 3:
            return str(number)
        return "I'm sorry, but I can't help with that." if times == 1 else str(number + 1)


def test_items_that_made_the_order_keep_the_answers_they_gave(tmp_path: Any) -> None:
    (tmp_path / "rrf.toml").write_text(RECIPE)
    data = rrf.dataset(
        tmp_path / "rrf.toml", [{"no": f"i{n}", "text": f"item {n}", "booked": n} for n in range(10, 100)]
    )
    script = Reluctant()
    model = ScriptedModel(script)
    model.kept = True

    def live(journal: str) -> LiveModels:
        return LiveModels(model, tmp_path / journal, {"cache": tmp_path / "cache"})

    settings = PilotSettings(40, 0.1, aside=40)
    bought = buy_pilot(data, settings, live("journal.sqlite"))
    plan = plan_pilot(data, bought, settings)
    document = policy_document(run_pilot(plan, gold_truths(plan)[0], truth_source="gold column 'booked'"))
    assert CascadePolicy.from_json(document["ladder"]).order == ("a",)
    run = run_policy(data, live("journal.sqlite"), document)
    truth = {item.id: item.gold for item in data.items_in_order()}
    outside = [(name, row) for name, row in zip(run.ids, run.rows, strict=True) if name not in document["drawn"]]
    assert all(row["answer"] in (None, truth[name]) for name, row in outside)
    assert sum(row["answer"] is None for _, row in outside) > 10
    assert max(script.seen.values()) == 1
    names = [name for name, _ in outside]
    known = recalled(data, live("journal.sqlite"), document["runs"], names)
    assert len(known.answers) == 40
    assert all(known.of(name) == bought.of(name) for name in known.answers)
    # another journal, or a run of other questions, says nothing
    assert not recalled(data, live("other.sqlite"), document["runs"], names).answers
    assert not recalled(data, live("journal.sqlite"), ["unknown"], names).answers
    (tmp_path / "rrf.toml").write_text(RECIPE.replace("a?", "now?"))
    changed = rrf.dataset(
        tmp_path / "rrf.toml", [{"no": f"i{n}", "text": f"item {n}", "booked": n} for n in range(10, 100)]
    )
    assert not recalled(changed, live("journal.sqlite"), document["runs"], names).answers


CHECKED = (
    RECIPE
    + """
[[check]]
id = "judge"
of = "a"
by = { verifier = "scripted:judge.json", prompt = "Is {{ text }} {{ a }}?" }
sigma = 1.0
cost = 2.0
"""
)


@pytest.mark.parametrize("recipe", [RECIPE, CHECKED])
def test_a_later_look_takes_what_earlier_ones_bought(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, recipe: str
) -> None:
    """Two looks were bought in two pieces; the next one has them in one, and asks nobody anything
    twice, though there is no cache and some were refused.
    """
    monkeypatch.chdir(tmp_path)
    (tmp_path / "judge.json").write_text('{"rules": [{"pattern": "Is item", "text": "12"}]}')
    (tmp_path / "rrf.toml").write_text(recipe)
    data = rrf.dataset(
        tmp_path / "rrf.toml", [{"no": f"i{n}", "text": f"item {n}", "booked": n} for n in range(10, 70)]
    )
    script = Reluctant()
    live = LiveModels(ScriptedModel(script), tmp_path / "journal.sqlite")
    first = PilotSettings(30, 0.2, sequential=True, aside=10)
    small = buy_pilot(data, first, live)
    both = buy_pilot(data, replace(first, labels=40), live, have=small)
    asked = script.seen.copy()
    checks = checks_to_fetch(data)
    assert bool(checks) == (recipe is CHECKED)
    known = recalled_pilot(data, live, both.runs, models=both.models, checks=checks)
    assert known == replace(both, money=0.0, calls=0)
    assert buy_pilot(data, replace(first, labels=40), live, have=known) == known
    assert script.seen == asked
    with pytest.raises(Refused, match="asked other models"):
        recalled_pilot(data, live, both.runs, models={"model": {"name": "another"}}, checks=checks)


SETTINGS = PilotSettings(60, 0.1)


def run(world: Any, document: Any, **options: Any) -> Any:
    data = world.dataset
    with RecordedAnswers(data, world.answers) as answers:
        return run_policy(data, answers, document, **options)


def rewritten(path: Any, change: Any) -> None:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(row) + "\n" for row in map(change, rows) if row is not None))


@pytest.mark.parametrize("off", [1, 100])
def test_other_answers_of_a_piloted_item_are_noticed(make_world: Any, off: int) -> None:
    """Another model's answers in the file of recorded ones; the answers of one item are enough."""
    world = make_world(items=120, wrong=0.03)
    document = world.document(SETTINGS)
    run(world, document)
    item = document["drawn"][3]
    rewritten(world.answers, lambda row: {**row, "text": str(int(row["text"]) + off)} if row["id"] == item else row)
    with pytest.raises(Refused, match=f"item '{item}' of the pilot was right when .* and is (wrong|not delivered) now"):
        run(world, document)


def test_a_corrected_gold_is_noticed_and_one_outside_the_pilot_is_none_of_it(make_world: Any) -> None:
    world = make_world(items=120, wrong=0.03)
    document = world.document(SETTINGS)
    table = world.folder / "table.jsonl"
    rewritten(table, lambda row: row if row["no"] in document["drawn"] else {**row, "booked": 1})
    run(world, document)
    rewritten(table, lambda row: {**row, "booked": 1} if row["no"] == document["drawn"][0] else row)
    with pytest.raises(Refused, match="was right when the policy was tested, and is wrong now"):
        run(world, document)


def test_a_pilot_that_is_not_recorded_any_more_is_passed_over(make_world: Any) -> None:
    world = make_world(items=120, wrong=0.03)
    document = world.document(SETTINGS)
    whole = run(world, document)
    rewritten(world.answers, lambda row: None if row["id"] in document["drawn"] else row)
    assert run(world, document).sentence == whole.sentence
    with pytest.raises(Refused, match="the pilot asked its models live, and none of its items is among the recorded"):
        run(world, {**document, "models": {"model": {"name": "m"}}})


def test_truths_by_people_are_compared_where_they_are_at_hand(make_world: Any) -> None:
    world = make_world(items=120, wrong=0.03)
    document = world.document(SETTINGS)
    item = document["drawn"][5]
    with pytest.raises(Refused, match=f"item '{item}' of the pilot"):
        run(world, document, reviews={item: "?"})
