"""A table under a policy, and the checks that machines make in it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from rrf_design.checker.promise_words import nothing_delivered
from rrf_design.errors import InputError, Refused
from rrf_design.promises import CHECK_EVERYTHING, PilotSettings, prove_policy, run_policy
from rrf_design.promises._policies import LastStage
from rrf_design.promises._policy_document import policy_document
from rrf_design.promises._running import _run_sentence, _RunTotals
from rrf_design.questions.answers import RecordedAnswers
from rrf_design.risk import Among, Statement

SETTINGS = PilotSettings(100, 0.1)


def run(world: Any, document: Any, **options: Any) -> Any:
    data = world.dataset
    with RecordedAnswers(data, world.answers) as answers:
        return run_policy(data, answers, document, **options)


def test_every_row_comes_to_something_and_the_promise_holds(make_world: Any) -> None:
    world = make_world(items=300, wrong=0.05)
    document = world.document(SETTINGS)
    found = run(world, document)
    assert len(found.rows) == 300
    truth = {item.id: item.gold for item in world.dataset.items_in_order()}
    drawn = set(document["drawn"])
    outside = [(name, row) for name, row in zip(found.ids, found.rows, strict=True) if name not in drawn]
    delivered = [(name, row) for name, row in outside if row["answer"] is not None]
    assert len(delivered) == found.totals.delivered
    assert len(outside) - len(delivered) == found.totals.to_people == len(found.reviews)
    assert sum(row["answer"] != truth[name] for name, row in delivered) <= 0.1 * len(outside)
    assert sum(row["cost"] for _, row in outside) == pytest.approx(found.totals.cost)
    assert found.totals.check_everything == 200 * 30.0
    for name, row in zip(found.ids, found.rows, strict=True):
        if name in drawn:
            assert row["answer"] == truth[name]
            assert row["assumes"] == "the pilot's truth is right"
    assert "for items drawn like the pilot's 100" in found.sentence


def test_the_gold_of_items_outside_the_pilot_is_not_used(make_world: Any) -> None:
    world = make_world(items=200, wrong=0.05)
    document = world.document(SETTINGS)
    before = run(world, document).rows
    rows = [json.loads(line) for line in (world.folder / "table.jsonl").read_text().splitlines()]
    drawn = set(document["drawn"])
    poisoned = [row if row["no"] in drawn else {**row, "booked": "poison"} for row in rows]
    (world.folder / "table.jsonl").write_text("\n".join(map(json.dumps, poisoned)))
    assert run(world, document).rows == before


def test_a_policy_with_other_names_than_it_drew_is_refused(make_world: Any) -> None:
    """Other items that the run would leave out, or nobody, so that the pilot's own are run as if
    they were new.
    """
    world = make_world(items=200, wrong=0.05)
    document = world.document(SETTINGS)
    inside = set(document["drawn"])
    others = [name for name in world.dataset if name not in inside][:100]
    for drawn in (others, [f"z{n}" for n in range(100)], [*document["drawn"][1:], document["drawn"][0]]):
        with pytest.raises(Refused, match="was drawn, and its draw is of 'i"):
            run(world, {**document, "drawn": drawn})


@pytest.mark.parametrize(("key", "said"), [("models", "x"), ("models", [1]), ("programs", [1]), ("programs", "x")])
def test_models_and_programs_are_objects(make_world: Any, key: str, said: Any) -> None:
    world = make_world(items=200, wrong=0.05)
    with pytest.raises(Refused, match=f"{key}: should be an object"):
        run(world, {**world.document(SETTINGS), key: said})


def test_a_ladder_whose_steps_read_as_one_is_refused(make_world: Any) -> None:
    """The policy has the same name; its order asks for nodes that nobody has."""
    world = make_world(items=200, wrong=0.05)
    document = world.document(SETTINGS)
    ladder = document["ladder"]
    forged = {**document, "ladder": {**ladder, "order": [", ".join(ladder["order"])], "earlier": []}}
    for use in (lambda: prove_policy(forged), lambda: run(world, forged)):
        with pytest.raises(Refused, match="the ladder is '"):
            use()


def test_reviews_settle_what_waits(make_world: Any) -> None:
    world = make_world(items=300, wrong=0.2)
    document = world.document(PilotSettings(100, 0.2))
    open_run = run(world, document)
    assert open_run.reviews
    assert open_run.reviews[0][1].startswith("Total of i")
    closed = run(world, document, reviews={name: 42 for name, _, _ in open_run.reviews})
    assert closed.complete
    assert closed.totals == replace(open_run.totals, waiting=0)
    assert "text: " in open_run.reviews[0][2]  # what was asked about, not what was answered
    assert "booked" not in open_run.reviews[0][2]
    answers = sum(row["cost"] for name, row in zip(closed.ids, closed.rows, strict=True) if name in document["drawn"])
    assert closed.pilot_cost == pytest.approx(answers)  # the truths were in the table
    assert "the pilot's 100 items are delivered with their truth" in closed.about_pilot


@pytest.mark.parametrize(
    ("old", "new"), [("{{ text }}", "{{ text }}!"), ("cost = 30.0", "cost = 31.0"), ("k = 1", "k = 2")]
)
def test_a_changed_recipe_refuses_the_old_policy(make_world: Any, old: str, new: str) -> None:
    world = make_world(items=200)
    document = world.document(SETTINGS)
    world.recipe.write_text(world.recipe.read_text().replace(old, new, 1))
    with pytest.raises(Refused, match="recipe has changed"):
        run(world, document)


def test_a_changed_table_refuses_the_old_policy(make_world: Any) -> None:
    world = make_world(items=200)
    document = world.document(SETTINGS)
    path = world.folder / "table.jsonl"
    path.write_text(path.read_text() + json.dumps({"no": "new", "text": "one more", "booked": 1}) + "\n")
    with pytest.raises(Refused, match="table has changed"):
        run(world, document)


def test_a_forged_policy_is_not_run(make_world: Any) -> None:
    world = make_world(items=200)
    document = world.document(SETTINGS)
    with pytest.raises(Refused):
        run(world, {**document, "risk": 0.001})


def test_a_node_that_nobody_recorded_is_named(make_world: Any) -> None:
    world = make_world(items=200)
    document = world.document(SETTINGS)
    asked = document["ladder"]["order"][0]
    outside = next(f"i{n}" for n in range(200) if f"i{n}" not in document["drawn"])
    lines = [json.loads(line) for line in world.answers.read_text().splitlines()]
    kept = [json.dumps(row) for row in lines if (row["id"], row["node"]) != (outside, asked)]
    world.answers.write_text("\n".join(kept))
    with pytest.raises(InputError, match=f"item '{outside}': the policy asks node '{asked}'"):
        run(world, document)


def test_check_everything_delivers_nothing_unchecked(make_world: Any) -> None:
    world = make_world(items=300, wrong=0.0, together=0.3)
    found = run(world, world.document(PilotSettings(100, 0.05)))
    assert found.totals.delivered == 0
    assert found.sentence == "Nothing is delivered unchecked: 200 values go to a person, for 6,000.00."


def test_random_checks_go_to_a_person(make_world: Any) -> None:
    """Few labels for a small risk: a share of what the gate accepts is drawn to be checked, from
    the recorded seed, and what it proves is verified.
    """
    from rrf_design.promises import prove_policy

    world = make_world(items=300, wrong=0.0)
    settings = PilotSettings(40, 0.05, random_checks=True)
    document = world.document(settings)
    assert document["random_checks"] is True
    part = document["ladder"]["random_checks"]
    assert part == 0.4  # P(none of 40 wrong) at a rate of 0.05 / 0.7 is 5.1 %, at 0.05 / 0.6 3.1 %
    with RecordedAnswers(world.dataset, world.answers) as answers:
        first, again = (run_policy(world.dataset, answers, document) for _ in range(2))
    assert first.rows == again.rows
    outside = len(first.ids) - 40
    assert 0.2 * outside < first.totals.to_people < 0.6 * outside
    assert first.totals.cost == sum(
        row["cost"] for n, row in zip(first.ids, first.rows, strict=True) if n not in document["drawn"]
    )
    prove_policy(document)
    forged = {**document, "ladder": {**document["ladder"], "random_checks": 0.1}}
    forged["policy"] = forged["policy"].replace(f"{part:.0%}", "10%")
    with pytest.raises(Refused):
        prove_policy(forged)


def test_what_is_withheld_waits_for_nobody(make_world: Any) -> None:
    """The recipe has a clerk, the ladder withholds: nobody is asked, and the run is complete."""
    world = make_world(items=200, wrong=0.2, extra='\n[ladder]\nlast = "withheld"\n')
    found = run(world, world.document(PilotSettings(100, 0.12)))
    assert found.totals.to_people > 0
    assert "are withheld" in found.sentence
    assert found.reviews == ()
    assert found.complete


COLOURS = """[data]
table = "table.jsonl"
id = "no"
gold = "colour"

[answer]
of = "a"
k = 1
fails_together = "TOGETHER"

[[ask]]
id = "a"
prompt = "{{ text }} a?"
parse = "label"
cost = 1.0
repeat = 2

[[ask]]
id = "b"
like = "a"
prompt = "{{ text }} b?"
parse = "label"
cost = 2.0

[[check]]
id = "catalogue"
of = "a"
by = { value = "{{ listed }}" }
when = "{{ listed }}"
cost = 4.0

[[check]]
id = "clerk"
of = "a"
by = { person = "Colour of {{ text }}?" }
cost = 30.0
"""


@pytest.mark.parametrize("together", ["ask", "wording"])
def test_answers_that_are_words_are_run_as_they_were_piloted(tmp_path: Any, together: str) -> None:
    """Camps of words, words whose repeats fail together, and a check that knows the word: live,
    with empty answers among them, each row as the replay has it.
    """
    import random

    import rrf_design as rrf
    from rrf_design.models.scripted import ScriptedModel
    from rrf_design.promises import CascadePolicy, LiveModels, gold_truths, plan_pilot, policy_document, run_pilot
    from rrf_design.promises._pilot_design import buy_pilot
    from rrf_design.promises._play import play

    colours = ("red", "green", "blue")
    rows = [{"no": f"i{n}", "text": f"item {n}", "colour": colours[n % 3]} for n in range(40)]
    rows = [{**row, "listed": row["colour"] if at % 2 else ""} for at, row in enumerate(rows)]
    (tmp_path / "table.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "rrf.toml").write_text(COLOURS.replace("TOGETHER", together))
    data = rrf.dataset(tmp_path / "rrf.toml")

    def say(request: Any) -> str:
        draw = random.Random(f"{request.prompt} {request.repeat}")
        right = colours[int(request.prompt.split()[1]) % 3]
        return "" if draw.random() < 0.1 else draw.choice(colours) if draw.random() < 0.2 else right

    model = ScriptedModel(say)
    model.kept = True

    def live(name: str) -> LiveModels:
        return LiveModels(model, tmp_path / name, {"cache": tmp_path / "cache"})

    whole = PilotSettings(40, 0.5, order="holm")
    plan = plan_pilot(data, buy_pilot(data, whole, live("whole.sqlite")), whole)
    assert any("catalogue" in policy.further for policy in plan.policies)
    settings = PilotSettings(16, 0.5, confidence=0.8, order="holm", seed=1)
    piloted = plan_pilot(data, buy_pilot(data, settings, live("pilot.sqlite")), settings)
    document = policy_document(run_pilot(piloted, gold_truths(piloted)[0], truth_source="gold column 'colour'"))
    for number, policy in enumerate(p for p in piloted.policies if p.order and set(p.order) == {"a", "a#2", "b"}):
        if number % 5 == 0:
            (found,) = play([policy], plan.whole, last=plan.last)
            ladder = {**document, "policy": policy.name, "ladder": policy.to_json()}
            done = _run_unproven(data, live(f"run{number}.sqlite"), ladder)
            assert CascadePolicy.from_json(ladder["ladder"]) == policy
            for at, (name, row) in enumerate(zip(done.ids, done.rows, strict=True)):
                if name not in document["drawn"]:
                    assert (row["answer"], row["cost"]) == (found.values[at], found.cost[at]), (policy.name, name)


def _run_unproven(data: Any, live: Any, document: Any) -> Any:
    """A run under any ladder of the family, whether it was chosen or not."""
    from types import SimpleNamespace
    from unittest.mock import patch

    with patch("rrf_design.promises._policy_document.prove_policy", lambda said: SimpleNamespace(document=said)):
        return run_policy(data, live, document)


def test_a_recorded_check_costs_what_was_recorded(make_checked_world: Any, tmp_path: Any) -> None:
    from rrf_design.promises._sheets import read_sheet

    data = make_checked_world(("tests",)).dataset
    rows = [{"id": "i0", "node": "tests", "value": 7.0, "cost": 0.25}, {"id": "i1", "node": "tests", "value": 7.0}]
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with RecordedAnswers(data, tmp_path / "answers.jsonl", checks=True) as answers:
        first, second, *_ = read_sheet(data, answers, ("total",)).rows
    assert (first.price("tests"), second.price("tests")) == (0.25, 4.0)


def test_a_pilot_by_people_is_delivered_with_what_they_said(make_world: Any) -> None:
    """Truths of the pilot come from where the pilot had them; where its review file is not given,
    that is said and the run is not complete.
    """
    from rrf_design.promises import gold_truths, policy_document, run_pilot

    world = make_world(items=150, wrong=0.0)
    world.recipe.write_text(world.recipe.read_text().replace('gold = "booked"\n', ""))
    plan = world.plan(PilotSettings(60, 0.1))
    truth = {item.id: item.cells["booked"] for item in world.dataset.items_in_order()}
    drawn = [plan.whole.rows[place].id for place in plan.drawn]
    said = {name: truth[name] for name in drawn} | {drawn[3]: "?"}
    truths, missing = gold_truths(plan, said)
    assert not missing
    assert not truths[drawn[3]].right((float(truth[drawn[3]]),))  # nobody could tell: wrong, whatever is delivered
    document = policy_document(run_pilot(plan, truths, truth_source="60 reviews"))
    assert all(entry["marks"][3] in "w-" for entry in document["policies"])
    assert document["measured"]["disputed_gold"] == []
    lost = run(world, document)
    assert (lost.unlabelled, lost.complete, lost.to_json()["pilot_without_truth"]) == (60, False, 60)
    found = run(world, document, reviews=said)
    rows = dict(zip(found.ids, found.rows, strict=True))
    assert found.unlabelled == 0
    assert [rows[name]["answer"] for name in drawn if name != drawn[3]] == [truth[n] for n in drawn if n != drawn[3]]
    assert rows[drawn[3]]["answer"] is None
    assert "nobody can tell" in rows[drawn[3]]["reason"]


def test_a_pilot_by_an_exact_check_is_delivered_with_it(make_world: Any) -> None:
    from rrf_design.promises import gold_truths, policy_document, run_pilot

    extra = '\n[[check]]\nid = "ledger"\nof = "total"\nby = { value = "{{ booked }}" }\ncost = 50.0\n'
    world = make_world(items=150, wrong=0.0, extra=extra)
    world.recipe.write_text(world.recipe.read_text().replace('gold = "booked"\n', ""))
    plan = world.plan(PilotSettings(60, 0.1))
    truths, missing = gold_truths(plan)
    assert not missing
    document = policy_document(run_pilot(plan, truths, truth_source="the recipe's exact checks"))
    found = run(world, document)
    rows = dict(zip(found.ids, found.rows, strict=True))
    truth = {item.id: item.cells["booked"] for item in world.dataset.items_in_order()}
    assert found.unlabelled == 0
    assert all(rows[name]["answer"] == truth[name] for name in document["drawn"])


@pytest.mark.parametrize("statement", list(Statement))
def test_what_is_written_is_what_was_counted(make_world: Any, statement: Statement) -> None:
    result = make_world(items=200, wrong=0.03).pilot(PilotSettings(100, 0.15, statement=statement))
    document = policy_document(result)
    assert prove_policy(document).policy == document["policy"] == result.chosen.name
    assert document["cost_per_item"] == pytest.approx(float(result.played[result.chosen.name].cost.mean()))
    for entry in document["policies"]:
        played = result.played[entry["policy"]]
        assert (entry["delivered"], entry["wrong"]) == (int(played.delivered.sum()), int(played.wrong.sum()))


def test_a_table_over_random_checks_is_promised_on_average(make_world: Any) -> None:
    """How many of the wrong ones a draw finds is chance: the number left is bounded on average
    only, and the sentence says so.
    """
    settings = PilotSettings(40, 0.05, statement=Statement.POLICY, random_checks=True)
    document = policy_document(make_world(items=200, wrong=0.1).pilot(settings))
    prove_policy(document)
    assert document["ladder"]["random_checks"] > 0
    assert "are wrong on average over what is checked at random under this policy" in document["sentence"]


def test_checking_everything_says_why(make_world: Any) -> None:
    document = policy_document(make_world(items=120, wrong=0.5).pilot(PilotSettings(60, 0.05)))
    assert document["policy"] == CHECK_EVERYTHING
    assert document["sentence"] == nothing_delivered(document["because"])
    assert document["ladder"] is None


def test_the_sentence_names_its_denominator() -> None:
    base = {"policy": "p", "risk": 0.02, "confidence": 0.95, "drawn": ["x"] * 200, "sentence": "S."}
    totals = _RunTotals(1812, 188, LastStage.PERSON, 311.4, 1600.0, 400.0, "totals")
    delivered = {**base, "among": str(Among.DELIVERED)}
    assert (
        _run_sentence({**delivered, "statement": str(Statement.REST)}, totals)
        == "Of the 1,812 totals delivered outside the pilot, at most 36 (2 %) are wrong, with confidence 95 %; 188 went"
        " to a person; cost 311.40 of 400.00, against 1,600.00 for checking all."
    )
    assert "on average over such tables, with confidence 95 %, for items drawn like the pilot's 200;" in _run_sentence(
        {**delivered, "statement": str(Statement.FRESH)}, totals
    )
    everything = {**base, "among": str(Among.ALL), "statement": str(Statement.REST)}
    said = _run_sentence(everything, totals)
    assert said.startswith("Of the 2,000 totals delivered outside the pilot, at most 40 (2 %) are wrong")
    assert "; 188 of them went to a person; cost 311.40 of 400.00" in said


def test_what_waits_is_not_called_delivered_and_nobody_checks_what_is_withheld() -> None:
    document = {"policy": "p", "risk": 0.02, "confidence": 0.95, "drawn": ["x"] * 200, "sentence": "S."}
    document |= {"among": "all", "statement": "fresh"}
    totals = _RunTotals(90, 10, LastStage.PERSON, 50.0, 100.0, 40.0)
    waiting = _run_sentence(document, replace(totals, waiting=10))
    assert waiting.startswith("Of the 100 values delivered or waiting, ")
    assert "; 10 of them went to a person, and all of them wait for an answer;" in waiting
    assert "who could not tell 1;" in _run_sentence(document, replace(totals, untold=1))
    assert "went to a person, and it waits" in _run_sentence(document, replace(totals, to_people=1, waiting=1))
    assert totals.over_budget == 10.0
    withheld = _run_sentence({**document, "among": "delivered"}, replace(totals, last=LastStage.WITHHELD, to_people=1))
    assert withheld.endswith("; 1 is withheld; cost 50.00 of 40.00.")


@pytest.mark.parametrize(
    ("size", "words"), [(250, "at most 12.5 (5 %)"), (1000, "at most 50 (5 %)"), (33, "at most 1.7 (5 %)")]
)
def test_an_average_is_not_rounded_down(size: int, words: str) -> None:
    """5 % of 250 on average allow 12.5: to say 12 would promise more than was tested."""
    document = {
        "policy": "p",
        "risk": 0.05,
        "confidence": 0.95,
        "among": "delivered",
        "statement": "fresh",
        "drawn": [""] * 60,
    }
    totals = _RunTotals(size, 0, LastStage.PERSON, 1.0, 2.0, None)
    assert f"Of the {size:,} values delivered, {words} are wrong on average" in _run_sentence(document, totals)
