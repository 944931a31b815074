from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from rrf_design.errors import InputError, Refused
from rrf_design.promises import CHECK_EVERYTHING, PilotSettings, forecast_pilot, gold_truths
from rrf_design.promises.piloting import refuse_second_look, settings_of
from rrf_design.promises.playing import play
from rrf_design.risk import Among, Statement


def test_too_small_a_pilot_says_what_it_can_prove_at_best(make_world: Any) -> None:
    world = make_world(items=320)
    with pytest.raises(InputError, match=r"200 labels can prove a risk of 1\.49% at best.*needs at least 299"):
        world.plan(PilotSettings(200, 0.01))
    world.plan(PilotSettings(299, 0.01))


def test_a_pilot_chooses_a_cheap_policy_and_tells_its_denominator(make_world: Any) -> None:
    result = make_world(items=300, wrong=0.02).pilot(PilotSettings(100, 0.1))
    assert result.chosen is not None
    assert result.plan.settings.among is Among.ALL  # a person decides the rest, so all items are delivered
    chosen = result.played[result.chosen.name]
    assert chosen.cost.mean() < 30.0
    (tested,) = [policy for policy in result.choice.policies if policy.name == chosen.name]
    assert tested.proven
    assert tested.counts[0].counted == 100
    assert "without gold" in result.choice.ordered_by


def test_without_a_person_items_are_withheld_and_the_delivered_ones_counted(make_world: Any) -> None:
    result = make_world(items=300, wrong=0.02, person=False).pilot(PilotSettings(150, 0.1))
    assert result.plan.settings.among is Among.DELIVERED
    assert result.chosen is not None
    assert result.chosen.last == "withheld"
    chosen = result.played[result.chosen.name]
    (tested,) = [policy for policy in result.choice.policies if policy.name == chosen.name]
    assert tested.counts[0].counted == int(chosen.delivered.sum())


def test_where_errors_come_together_the_answer_is_to_check_everything(make_world: Any) -> None:
    """Unanimous and wrong: every gate accepts it, and k = 1 would have certified it."""
    world = make_world(items=300, wrong=0.0, together=0.2)
    result = world.pilot(PilotSettings(100, 0.05))
    assert result.chosen is None
    document = world.document(PilotSettings(100, 0.05))
    assert document["policy"] == CHECK_EVERYTHING
    assert document["bound"] == 0.0
    assert document["cost_per_item"] == 30.0
    more = document["wrong_answers"]["more_than"][1]
    assert more["items"] > 10
    assert more["bound"] > more["items"] / 100
    assert document["measured"]["fail_together"]
    assert document["measured"]["disputed_gold"]  # everybody says something else


@pytest.mark.parametrize("order", ["front", "holm"])
def test_the_promise_is_kept(make_world: Any, order: str) -> None:
    """Truth, not luck: over many draws from a world at the edge of the risk, a policy above it is rarely chosen."""
    world = make_world(items=400, wrong=0.12, together=0.04)
    plan = world.plan(PilotSettings(80, 0.06))
    truths, _ = gold_truths(world.plan(PilotSettings(400, 0.06)))
    everywhere = play(plan.policies, plan.sheet, last=plan.last, truths=[truths[name] for name in plan.sheet.ids])
    real = {one.name: float(one.wrong.mean()) for one in everywhere}
    assert min(real.values()) < 0.06 < max(real.values())
    from rrf_design.promises import run_pilot

    broken = chosen = 0
    for seed in range(40):
        settings = replace(plan.settings, seed=seed, order=order)
        drawn = tuple(plan.population.order(seed)[:80])
        here = replace(plan, settings=settings, drawn=drawn)
        result = run_pilot(here, {name: truths[name] for name in here.pilot.ids}, truth_source="")
        if result.chosen is not None:
            chosen += 1
            broken += real[result.chosen.name] > 0.06
    # 5 % of 40 are 2; 7 or more has a probability of less than 1 % (binomial).
    assert broken < 7
    assert chosen >= broken


@pytest.mark.parametrize("statement", [Statement.POLICY, Statement.FILE, Statement.REST])
def test_statements_about_this_table(make_world: Any, statement: Statement) -> None:
    world = make_world(items=300, wrong=0.02)
    for among in Among:
        document = world.document(PilotSettings(100, 0.1, statement=statement, among=among))
        assert document["statement"] == str(statement)
        assert document["choice"]["population"] == 300
        delivers = {entry["name"]: entry["delivers"] for entry in document["choice"]["policies"]}
        assert all((count is None) == (among is Among.ALL) for count in delivers.values())


def test_a_stratified_pilot_tests_what_such_a_draw_can_show(make_world: Any) -> None:
    world = make_world(items=200, wrong=0.02)
    rows = [json.loads(line) for line in (world.folder / "table.jsonl").read_text().splitlines()]
    lines = [json.dumps({**row, "kind": "x" if at % 7 else "y"}) for at, row in enumerate(rows)]
    (world.folder / "table.jsonl").write_text("\n".join(lines))
    result = world.pilot(PilotSettings(80, 0.1, stratify="kind"))
    assert result.choice.limits[0].share <= 0.1
    with pytest.raises(InputError, match="stratified"):
        PilotSettings(80, 0.1, stratify="kind", among=Among.DELIVERED)


def test_few_answers_outside_the_pilot_mean_holm(make_world: Any) -> None:
    result = make_world(items=110, wrong=0.02).pilot(PilotSettings(100, 0.1))
    assert "Holm" in result.choice.ordered_by
    assert all(stream.pooled for stream in result.choice.streams)


def test_the_gold_of_other_items_is_never_read(make_world: Any) -> None:
    """Poisoned gold outside the pilot changes nothing."""
    world = make_world(items=200, wrong=0.05)
    before = world.document(PilotSettings(80, 0.1))
    drawn = set(before["drawn"])
    rows = [json.loads(line) for line in (world.folder / "table.jsonl").read_text().splitlines()]
    poisoned = [row if row["no"] in drawn else {**row, "booked": "poison"} for row in rows]
    (world.folder / "table.jsonl").write_text("\n".join(map(json.dumps, poisoned)))
    assert world.document(PilotSettings(80, 0.1)) == before


def test_a_gold_column_that_a_question_shows_is_refused(make_world: Any) -> None:
    world = make_world(items=80)
    world.recipe.write_text(world.recipe.read_text().replace("{{ text }}", "{{ text }} {{ booked }}"))
    with pytest.raises(InputError, match="gold column"):
        world.plan(PilotSettings(70, 0.1))


def test_a_check_that_shows_the_gold_is_refused(make_world: Any) -> None:
    extra = '\n[[check]]\nid = "leak"\nof = "total"\nby = { value = "{{ booked }}" }\n'
    world = make_world(items=80, extra=extra)
    with pytest.raises(InputError, match="gold column"):
        world.plan(PilotSettings(70, 0.1))


def test_a_second_look_is_refused(make_world: Any) -> None:
    world = make_world(items=200)
    document = world.document(PilotSettings(80, 0.1))
    refuse_second_look(document, world.plan(PilotSettings(80, 0.1)))  # the same once more is no second look
    for other in (
        PilotSettings(120, 0.1),
        PilotSettings(80, 0.12),
        PilotSettings(80, 0.1, seed=7),
        PilotSettings(80, 0.1, order="holm"),
    ):
        with pytest.raises(Refused, match="piloted already"):
            refuse_second_look(document, world.plan(other))


def test_a_sequential_pilot_may_grow(make_world: Any) -> None:
    world = make_world(items=200, wrong=0.01)
    settings = PilotSettings(80, 0.1, sequential=True)
    document = world.document(settings)
    assert document["choice"]["sequential"] is True
    refuse_second_look(document, world.plan(PilotSettings(120, 0.1, sequential=True)))
    with pytest.raises(Refused):
        refuse_second_look(document, world.plan(PilotSettings(120, 0.1)))
    with pytest.raises(Refused):
        refuse_second_look(document, world.plan(PilotSettings(60, 0.1, sequential=True)))


def test_a_pilot_that_grew_keeps_its_order_of_tests(make_world: Any) -> None:
    """Another order for the same items would be another chance; so would other truths."""
    from rrf_design.promises import policy_document, run_pilot

    world = make_world(items=300, wrong=0.03)
    first = world.document(PilotSettings(80, 0.1, sequential=True))
    plan = world.plan(PilotSettings(120, 0.1, sequential=True))
    truths, _ = gold_truths(plan)
    grown = policy_document(run_pilot(plan, truths, truth_source="", before=refuse_second_look(first, plan)))
    assert grown["choice"]["streams"] == first["choice"]["streams"]
    assert grown["choice"]["ordered_by"] == first["choice"]["ordered_by"]
    with pytest.raises(Refused, match="can grow to"):
        refuse_second_look(first, world.plan(PilotSettings(290, 0.1, sequential=True)))
    name = first["drawn"][0]
    truths[name] = replace(truths[name], values=((-1.0,),))
    with pytest.raises(Refused, match="changed after looking"):
        run_pilot(plan, truths, truth_source="", before=first)


def test_the_order_of_tests_owes_nothing_to_the_draw(make_world: Any) -> None:
    """Fresh items: none of the pilot's. A statement about this table: the same items whatever the pilot's size."""
    world = make_world(items=300)
    plan = world.plan(PilotSettings(80, 0.1))
    assert not set(plan.aside.ids) & set(plan.pilot.ids)
    finite = [world.plan(PilotSettings(n, 0.1, statement=Statement.REST)).aside.ids for n in (80, 150)]
    assert finite[0] == finite[1]


def test_a_pilot_too_small_for_its_own_test_is_refused(make_world: Any) -> None:
    world = make_world(items=200)
    with pytest.raises(InputError, match=r"hold at every moment.*needs more than 30"):
        world.plan(PilotSettings(30, 0.1, sequential=True))
    with pytest.raises(InputError, match="the statement 'rest'"):
        world.plan(PilotSettings(10, 0.1, statement=Statement.REST))
    with pytest.raises(InputError, match="without strata"):
        PilotSettings(80, 0.1, stratify="kind", sequential=True)


def test_a_forecast_reads_no_gold_and_can_say_that_no_pilot_pays(make_world: Any) -> None:
    world = make_world(items=300, wrong=0.05)
    text = (world.folder / "table.jsonl").read_text()
    (world.folder / "table.jsonl").write_text(text.replace('"booked": ', '"booked": "?", "was": '))
    found = forecast_pilot(world.plan(PilotSettings(100, 0.1)))
    assert found["least_labels"] == 29
    assert any(entry["pays"] for entry in found["sizes"])
    assert not forecast_pilot(world.plan(PilotSettings(299, 0.01)))["sizes"][-1]["pays"]


def test_what_is_not_said_comes_from_the_promise(make_world: Any) -> None:
    world = make_world(items=100, extra="\n[promise]\nrisk = 0.2\npilot = 30\n")
    assert settings_of(world.dataset, labels=None, risk=None, confidence=None) == (30, 0.2, 0.95)
    assert settings_of(world.dataset, labels=50, risk=0.1, confidence=0.9) == (50, 0.1, 0.9)
    with pytest.raises(InputError, match="no risk to keep"):
        settings_of(make_world(items=20).dataset, labels=None, risk=None, confidence=None)
