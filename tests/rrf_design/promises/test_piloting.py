"""Pilots: planned, drawn, ordered, looked at again, and what more labels would do."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from rrf_design.errors import InputError, Refused
from rrf_design.files import canonical_digest
from rrf_design.promises import CHECK_EVERYTHING, PilotSettings, gold_truths
from rrf_design.promises._forecast import _PromiseTest, in_words
from rrf_design.promises._pilot_analysis import refuse_second_look, stages, why_stop
from rrf_design.promises._pilot_design import Population, settings_of
from rrf_design.promises._pilot_order import Heard
from rrf_design.promises._play import play
from rrf_design.questions import dataset
from rrf_design.risk import Among, Limit, Scope, Statement, first_look
from rrf_design.risk._counts import BinomialTail
from rrf_design.risk._statements import evidence


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
    """Truth, not luck: over many draws from a world at the edge of the risk, a policy above it is
    rarely chosen.
    """
    world = make_world(items=400, wrong=0.12, together=0.04)
    plan = world.plan(PilotSettings(80, 0.06))
    truths, _ = gold_truths(world.plan(PilotSettings(400, 0.06)))
    everywhere = play(plan.policies, plan.whole, last=plan.last, truths=[truths[name] for name in plan.whole.ids])
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
    with pytest.raises(InputError, match="does not prove so large a risk as 99\\.50% at a confidence of 60%"):
        world.pilot(PilotSettings(80, 0.995, confidence=0.6, stratify="kind"))


def test_the_gold_of_other_items_is_never_read(make_world: Any) -> None:
    """Poisoned gold outside the pilot changes nothing."""
    world = make_world(items=200, wrong=0.05)
    before = world.document(PilotSettings(80, 0.1))
    drawn = set(before["drawn"])
    rows = [json.loads(line) for line in (world.folder / "table.jsonl").read_text().splitlines()]
    poisoned = [row if row["no"] in drawn else {**row, "booked": "poison"} for row in rows]
    (world.folder / "table.jsonl").write_text("\n".join(map(json.dumps, poisoned)))
    assert world.document(PilotSettings(80, 0.1)) == before


def without(world: Any, gone: Any) -> None:
    """The recorded answers but for some."""
    rows = [json.loads(line) for line in world.answers.read_text().splitlines()]
    world.answers.write_text("".join(json.dumps(row) + "\n" for row in rows if not gone(row)))


def test_what_nobody_recorded_is_no_clean_item(make_world: Any) -> None:
    """Answers that are wrong too often, and a record that lacks most of them: items without answers
    would have passed for right ones that a person decides.
    """
    world = make_world(items=300, wrong=0.0, together=0.15)
    settings = PilotSettings(100, 0.05)
    assert world.pilot(settings).chosen is None
    drawn = [f"i{place}" for place in world.plan(settings).drawn]
    without(world, lambda row: row["id"] in drawn[:80])
    result = world.pilot(settings)
    assert result.chosen is None
    assert all(policy.counts[0].marked >= 80 for policy in result.choice.policies)


def test_a_record_that_asked_only_when_answers_differed_proves_what_it_can(make_world: Any) -> None:
    """The third answer is there where the first two differ: policies that ask it later are tested,
    those that ask it first are not proven.
    """
    world = make_world(items=300, wrong=0.03, scale=None, nodes=3)
    said: dict[str, dict[str, str]] = {}
    for row in map(json.loads, world.answers.read_text().splitlines()):
        said.setdefault(row["id"], {})[row["node"]] = row["text"]
    without(world, lambda row: row["node"] == "cents" and said[row["id"]]["total"] == said[row["id"]]["reworded"])
    result = world.pilot(PilotSettings(100, 0.1))
    assert result.chosen is not None
    assert any(policy.proven for policy in result.choice.policies if " within total, reworded, cents" in policy.name)
    assert not any(policy.proven for policy in result.choice.policies if " within cents" in policy.name)


def test_how_many_rows_are_delivered_is_not_known_where_answers_are_missing(make_world: Any) -> None:
    """A record of the pilot alone says nothing about the other rows: taking them for withheld would
    prove anything about "this file".
    """
    world = make_world(items=300, wrong=0.3, scale=None, person=False)
    settings = PilotSettings(100, 0.25, statement=Statement.FILE, among=Among.DELIVERED, order="holm")
    everything = world.pilot(settings)
    assert all(policy.delivers is not None for policy in everything.choice.policies)
    drawn = {f"i{place}" for place in everything.plan.drawn}
    without(world, lambda row: row["id"] not in drawn)
    result = world.pilot(settings)
    assert all(policy.delivers is None for policy in result.choice.policies)


def test_every_row_is_right_within_its_own_tolerance(make_world: Any) -> None:
    """The tolerance of the first row said what is right about all of them."""
    world = make_world(items=200, wrong=0.0, together=0.3, scale=None)
    path = world.folder / "table.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    tolerances = [1000.0, *[0.5] * (len(rows) - 1)]
    lines = [json.dumps({**row, "tol": tol}) + "\n" for row, tol in zip(rows, tolerances, strict=True)]
    path.write_text("".join(lines))
    world.recipe.write_text(world.recipe.read_text().replace("k = 1\n", 'k = 1\ntolerance = "{{ tol }}"\n', 1))
    result = world.pilot(PilotSettings(100, 0.1))
    assert result.chosen is None
    truths, _ = gold_truths(result.plan)
    assert {truth.tolerance for name, truth in truths.items() if name != "i0"} == {0.5}


def test_too_small_a_pilot_says_what_it_can_prove_at_best(make_world: Any) -> None:
    world = make_world(items=320)
    with pytest.raises(InputError, match=r"200 labels can prove a risk of 1\.49 % at best.*needs at least 299"):
        world.plan(PilotSettings(200, 0.01))
    world.plan(PilotSettings(299, 0.01))


def test_a_pilot_too_small_for_its_own_test_is_refused(make_world: Any) -> None:
    world = make_world(items=200)
    with pytest.raises(InputError, match=r"hold at every moment.*needs more than 30"):
        world.plan(PilotSettings(30, 0.1, sequential=True))
    with pytest.raises(InputError, match="the statement 'rest'"):
        world.plan(PilotSettings(10, 0.1, statement=Statement.REST))
    with pytest.raises(InputError, match="without strata"):
        PilotSettings(80, 0.1, stratify="kind", sequential=True)


def test_what_is_not_said_comes_from_the_promise(make_world: Any) -> None:
    world = make_world(items=100, extra="\n[promise]\nrisk = 0.2\npilot = 30\n")
    assert settings_of(world.dataset, labels=None, risk=None, confidence=None) == (30, 0.2, 0.95)
    assert settings_of(world.dataset, labels=50, risk=0.1, confidence=0.9) == (50, 0.1, 0.9)
    with pytest.raises(InputError, match="no risk to keep"):
        settings_of(make_world(items=20).dataset, labels=None, risk=None, confidence=None)


def test_questions_and_checks_that_show_the_gold_are_refused(make_world: Any) -> None:
    world = make_world(items=80)
    world.recipe.write_text(world.recipe.read_text().replace("{{ text }}", "{{ text }} {{ booked }}"))
    with pytest.raises(InputError, match="gold column"):
        world.plan(PilotSettings(70, 0.1))
    extra = '\n[[check]]\nid = "leak"\nof = "total"\nby = { value = "{{ booked }}" }\n'
    world = make_world(items=80, extra=extra)
    with pytest.raises(InputError, match="gold column"):
        world.plan(PilotSettings(70, 0.1))


@pytest.mark.parametrize("price", ['"x"', "-1", "true"])
def test_what_a_withheld_item_costs_is_a_price(make_world: Any, price: str) -> None:
    world = make_world(items=200, wrong=0.05, extra=f"\n[ladder]\nwithheld = {price}\n")
    with pytest.raises(InputError, match=r"\[ladder\]: withheld = .* should be a price"):
        world.document(PilotSettings(100, 0.1))


def test_a_pilot_of_all_items_leaves_no_rest(make_world: Any) -> None:
    world = make_world(items=60)
    with pytest.raises(InputError, match="a pilot of all 60 items leaves no rest"):
        world.plan(PilotSettings(60, 0.1, statement=Statement.REST))
    for statement in (Statement.FRESH, Statement.POLICY, Statement.FILE):
        assert len(world.plan(PilotSettings(60, 0.1, statement=statement)).drawn) == 60
    with pytest.raises(InputError, match="a pilot of 61 items; the table has 60"):
        world.plan(PilotSettings(61, 0.1))
    with pytest.raises(InputError, match="a pilot of 0 items"):
        world.plan(PilotSettings(0, 0.1))


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


def test_looks_grow_from_what_could_prove_the_risk() -> None:
    settings = PilotSettings(300, 0.05, sequential=True)
    sizes = [look.labels for look in stages(settings)]
    assert sizes[0] == 82  # none wrong, tested at every moment; 59 would do for one look
    assert sizes == sorted(set(sizes))
    assert sizes[-1] == 300
    assert [look.labels for look in stages(settings, already=200)] == [200, 300]
    assert stages(replace(settings, sequential=False)) == [replace(settings, sequential=False)]
    assert [look.labels for look in stages(replace(settings, labels=82))] == [82]


def test_it_stops_when_more_labels_cost_more_than_they_save(make_world: Any) -> None:
    clean = make_world(items=200, wrong=0.0).pilot(PilotSettings(60, 0.1, sequential=True))
    assert clean.chosen is not None
    assert why_stop(clean, 20) is not None
    bad = make_world(items=200, wrong=0.0, together=0.4).pilot(PilotSettings(60, 0.1, sequential=True))
    assert bad.chosen is None
    words = why_stop(bad, 20)  # nothing looks good: checking everything is the answer
    assert words is not None
    assert "check everything" in words
    open_case = make_world(items=200, wrong=0.04).pilot(PilotSettings(42, 0.1, sequential=True))
    assert open_case.chosen is not None or why_stop(open_case, 1) is None


RECIPE = {
    "data": {"id": "no", "gold": "booked"},
    "answer": {"of": "a"},
    "ask": [{"id": "a", "prompt": "{{ text }}"}],
}


def population(*, stratify: str | None = None, size: int = 60) -> Population:
    rows = [{"no": str(i), "text": f"t{i % 50}", "kind": "x" if i % 3 else "y", "booked": i} for i in range(size)]
    return Population.of(dataset(RECIPE, rows), stratify=stratify)


def test_the_draw_is_the_seed_and_a_digest_without_gold() -> None:
    one = population()
    assert one.order(3) == population().order(3)
    assert one.order(3) != one.order(4)
    assert one.order(3) != population(size=61).order(3)[:60]
    assert sorted(one.order(3)) == list(range(60))
    rows = [{"no": "1", "text": "t", "booked": 1}]
    other = [{"no": "1", "text": "t", "booked": 2}]
    assert Population.of(dataset(RECIPE, rows)).digest == Population.of(dataset(RECIPE, other)).digest


def test_strata_are_drawn_in_proportion_and_never_by_the_truth() -> None:
    found = population(stratify="kind")
    drawn = found.order(1)[:30]
    assert found.labels is not None
    assert Counter(found.labels[place] for place in drawn) == {"x": 20, "y": 10}
    assert [(s.population, s.drawn) for s in found.strata(drawn)] == [(40, 20), (20, 10)]
    with pytest.raises(InputError, match="gold"):
        population(stratify="booked")


def test_items_that_ask_the_same_on_both_sides_are_noticed() -> None:
    found = population()
    twins = found.twins([0, 1, 2])  # items 50, 51, 52 ask the same
    assert twins == [{"item": str(50 + i), "pilot_item": str(i)} for i in range(3)]
    assert population(size=50).twins([0, 1]) == []


def test_twins_are_noticed_whatever_their_id_case_and_spacing() -> None:
    """A person's question names the id, so that no two items ask word for word the same; and a copy
    is seldom made letter by letter.
    """
    clerk = {"id": "clerk", "of": "a", "by": {"person": "Total of {{ no }}?"}, "cost": 3.0}
    rows = [
        {"no": "1", "text": "Pay 12", "booked": 1},
        {"no": "2", "text": "  pay  12\n", "booked": 2},
        {"no": "3", "text": "Pay 13", "booked": 1},
    ]
    found = Population.of(dataset({**RECIPE, "check": [clerk]}, rows))
    assert len(set(found.digests())) == 3
    assert found.digest == canonical_digest({"ids": list(found.ids), "asked": list(found.digests())})
    assert found.twins([0]) == [{"item": "2", "pilot_item": "1"}]
    assert found.twins([2]) == []


FRESH = _PromiseTest(Statement.FRESH, 10_000, 0.95)


@pytest.mark.parametrize(("kept", "risk"), [(Fraction(0), 0.05), (Fraction(1, 100), 0.05), (Fraction(3, 200), 0.025)])
def test_labels_prove_the_risk_when_what_was_seen_goes_on(kept: Fraction, risk: float) -> None:
    labels = FRESH.labels(kept, Fraction(str(risk)))
    assert labels is not None
    assert BinomialTail(labels, Fraction(str(risk)), int(kept * labels)).at_most(Fraction(1, 20))


def test_more_labels_do_not_make_wrong_answers_right(make_world: Any) -> None:
    assert FRESH.labels(Fraction(1, 20), Fraction(1, 20)) is None
    world = make_world(items=200, wrong=0.0, together=0.3)
    document = world.document(PilotSettings(80, 0.05))
    assert document["stronger"][0]["labels"] is None
    assert "better answers" in in_words(document["stronger"], document)[1]
    good = make_world(items=200, wrong=0.0).document(PilotSettings(80, 0.05))
    assert good["stronger"][0]["labels"] == 119
    assert "a pilot of about 119 labels in all, for" in in_words(good["stronger"], good)[1]
    few = make_world(items=100, wrong=0.0).document(PilotSettings(80, 0.05))  # too few others for an order of tests
    assert "about 59 labels would do for a policy that is tested first" in in_words(few["stronger"], few)[1]
    small = make_world(items=115, wrong=0.0).document(PilotSettings(80, 0.05))
    assert "about 119 labels in all, where the table has 115 items" in in_words(small["stronger"], small)[1]
    large = make_world(items=300, wrong=0.0).document(PilotSettings(150, 0.05))
    assert "could have been asked for it before it was looked at" in in_words(large["stronger"], large)[1]


def test_an_estimate_does_not_round_wrong_items_away() -> None:
    """One wrong of 120 is expected again: 119 labels are too few for 2.5 %, though 119 / 120 of an
    item is less than one.
    """
    labels = FRESH.labels(Fraction(1, 120), Fraction(1, 40))
    assert labels is not None
    assert labels > 119
    assert BinomialTail(labels, Fraction(1, 40), math.ceil(labels / 120)).at_most(Fraction(1, 20))


@pytest.mark.parametrize("statement", [Statement.FILE, Statement.REST, Statement.POLICY])
@pytest.mark.parametrize("kept", [Fraction(0), Fraction(1, 60)])
def test_labels_of_a_finite_table_are_those_of_its_own_test(statement: Statement, kept: Fraction) -> None:
    """Against every size: with that many labels and the expected number of wrong ones it is proven,
    and 119 (fresh items) are not needed.
    """
    size, rate = 115, Fraction(1, 40)
    test = _PromiseTest(statement, size, 0.95)
    labels = test.labels(kept, rate)
    assert labels is not None
    assert labels <= size
    wrong = math.ceil(kept * labels)
    scope = Scope(statement, labels, size)
    assert evidence(Limit(rate, among=Among.ALL), scope, labels, wrong).claim.at_most(Fraction(1, 20))
    if not kept:
        less = range(1, labels)
        assert not any(
            evidence(Limit(rate, among=Among.ALL), Scope(statement, n, size), n, 0).claim.at_most(Fraction(1, 20))
            for n in less
        )


def test_a_pilot_that_grows_takes_more_labels_than_one_that_does_not() -> None:
    test = _PromiseTest(Statement.FRESH, 10_000, 0.95, sequential=True)
    labels = test.labels(Fraction(0), Fraction(1, 20))
    assert labels == first_look(0.05, 0.95) > 59
    assert test.best(labels) <= 0.05 < test.best(labels - 1)
    more, less = (one.labels(Fraction(1, 50), Fraction(1, 20)) for one in (test, FRESH))
    assert more is not None
    assert less is not None
    assert more > less


def test_random_checks_need_the_labels_of_what_is_tested_there(make_world: Any) -> None:
    """Half of 2 % with 60 % checked is 2.5 % of what the gates accept: 119 clean labels, not the
    299 of a plain test of 1 %.
    """
    document = make_world(items=240, wrong=0.0).document(PilotSettings(60, 0.02, random_checks=True))
    (entry,) = document["stronger"]
    checked = next(p for p in document["choice"]["policies"] if p["name"] == document["policy"])["checked_share"]
    rate = Fraction(1, 100) / (1 - Fraction(checked))
    assert (rate, entry["labels"]) == (Fraction(1, 40), 119)
    assert BinomialTail(entry["labels"], rate, 0).at_most(Fraction(1, 20))
    assert not BinomialTail(entry["labels"] - 1, rate, 0).at_most(Fraction(1, 20))
    assert "labels could prove 0.49 % at best with 90.0 % checked at random" in in_words([], document)[0]


def test_a_pilot_that_proves_nothing_says_what_would_have_helped(make_world: Any) -> None:
    """Answers that are wrong together: too many for 5 %, few enough where a part is checked at
    random.
    """
    world = make_world(items=300, wrong=0.0, together=0.03)
    document = world.document(PilotSettings(80, 0.05))
    assert document["policy"] == "check everything"
    words = " ".join(in_words(document["stronger"], document))
    assert "--random-checks from the beginning would have helped" in words
    assert "A stage that decides for less than 30" in words
    (entry,) = [one for one in document["stronger"] if "random_checks" in one]
    assert entry["cost_per_item"] < document["check_cost"]
    tried = world.document(PilotSettings(80, 0.05, random_checks=True))
    assert tried["policy"] != "check everything"  # it does help, and is not advised again
    assert not any("random_checks" in one for one in tried["stronger"])


def test_few_answers_outside_the_pilot_mean_holm(make_world: Any) -> None:
    result = make_world(items=110, wrong=0.02).pilot(PilotSettings(100, 0.1))
    assert "Holm" in result.choice.ordered_by
    assert all(stream.pooled for stream in result.choice.streams)


def test_the_order_of_tests_owes_nothing_to_the_draw(make_world: Any) -> None:
    """Fresh items: none of the pilot's.

    A statement about this table: the same items whatever the pilot's size.
    """
    world = make_world(items=300)
    plan = world.plan(PilotSettings(80, 0.1))
    assert not set(plan.aside.ids) & set(plan.pilot.ids)
    finite = [world.plan(PilotSettings(n, 0.1, statement=Statement.REST)).aside.ids for n in (80, 150)]
    assert finite[0] == finite[1]


def test_one_check_that_is_worse_than_its_word_does_not_take_every_policy_with_it(
    with_ledger: Any, make_world: Any
) -> None:
    """A ledger that costs next to nothing and is wrong one time in ten: tested first, refuted, and
    another front goes on without it.
    """
    world = with_ledger(make_world, lambda at, truth: truth + (at % 10 == 0), items=300, wrong=0.04)
    document = world.document(PilotSettings(150, 0.05, aside=100))
    tested = {entry["policy"]: entry for entry in document["policies"]}
    streams = [stream["names"] for stream in document["choice"]["streams"]]
    assert "ledger" in streams[0][0]
    assert tested["ledger; else person"]["wrong"] > 0.05 * 150
    assert document["ladder"] is not None
    assert document["cost_per_item"] < 0.5 * document["check_cost"]


def test_what_checks_say_is_heard_beside_the_answers(with_ledger: Any, make_world: Any) -> None:
    world = with_ledger(
        make_world, lambda at, truth: "" if at % 3 == 0 else truth + 50 * (at % 2), items=60, wrong=0.0, nodes=3
    )
    sheet = world.plan(PilotSettings(30, 0.3)).whole
    heard = Heard.of(sheet, {"ledger"})
    assert heard.checks == ("ledger",)
    assert heard.codes[:, :3].tolist() == sheet.codes.tolist()
    assert heard.codes[:, 3].tolist() == [-1 if at % 3 == 0 else 3 if at % 2 else 0 for at in range(60)]
    assert heard.prices.tolist() == [1.0, 2.0, 3.0, 5.0]
    assert Heard.of(sheet, ()).codes.tolist() == sheet.codes.tolist()


@pytest.mark.parametrize("more", [{"among": Among.DELIVERED}, {"random_checks": True}, {"sequential": True}])
def test_a_single_front_takes_a_check_at_its_word(with_ledger: Any, make_world: Any, more: Any) -> None:
    """A ledger that is right: tested early, and what answers leave open is not left to a person."""
    world = with_ledger(make_world, lambda at, truth: truth, items=260, wrong=0.15)
    document = world.document(PilotSettings(120, 0.08, aside=100, **more))
    assert document["ladder"]["further"] == ["ledger"]
    assert document["cost_per_item"] < 8.0
