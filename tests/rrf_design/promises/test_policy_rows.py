"""What every row of a table delivered under a policy says."""

from __future__ import annotations

from typing import Any

from rrf_design.promises import PilotSettings, run_policy
from rrf_design.questions.answers import RecordedAnswers


def run(world: Any, document: Any, **options: Any) -> Any:
    data = world.dataset
    with RecordedAnswers(data, world.answers) as answers:
        return run_policy(data, answers, document, **options)


def test_a_pilot_by_people_is_delivered_with_what_they_said(make_world: Any) -> None:
    """Truths of the pilot come from where the pilot had them; where its review file is not given,
    that is said and the run is not complete.
    """
    from rrf_design.promises import gold_truths, policy_document, run_pilot

    world = make_world(items=150, wrong=0.0)
    world.recipe.write_text(world.recipe.read_text().replace('gold = "booked"\n', ""))
    plan = world.plan(PilotSettings(60, 0.1))
    truth = {item.id: item.cells["booked"] for item in world.dataset.items_in_order()}
    drawn = [plan.sheet.rows[place].id for place in plan.drawn]
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
