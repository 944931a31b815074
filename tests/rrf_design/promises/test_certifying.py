"""k in the certificate: how often its premise fails, re-proved by whoever reads it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import comb
from typing import Any

import pytest

from rrf_design import certify, verify
from rrf_design.checker.document import content_digest
from rrf_design.checker.premises import rate_above
from rrf_design.errors import InputError, Refused
from rrf_design.promises import PilotSettings
from rrf_design.promises.premise import premise_summary, with_pilot, with_pilot_of_table
from rrf_design.risk import rate_bound
from rrf_design.tables.structures import certify_dataset


@pytest.fixture
def made(make_world: Any) -> Any:
    world = make_world(items=100, wrong=0.15)
    policy = world.document(PilotSettings(60, 0.3))
    name = next(item for item in world.dataset if item not in policy["drawn"])
    return world, policy, name, certify(world.dataset.item(name).problem)


def test_the_bounded_probability_that_the_premise_fails(made: Any) -> None:
    world, policy, name, plain = made
    found = with_pilot(plain, policy, recipe_digest=world.dataset.recipe.digest, item=name)
    section = found.document["pilot"]
    marks = policy["wrong_answers"]["by_node"]
    failed = sum(sum(marks[node][at] == "1" for node in marks) > 1 for at in range(60))
    assert section["more_than_k"] == failed > 0
    assert section["bound"] == rate_bound(60, failed, 0.95)
    assert f"wrong in {failed} of 60 items drawn from" in section["sentence"]
    assert "table.jsonl (100 items)" in section["sentence"]
    checked = verify(found)
    assert checked.valid, checked.reason
    assert any("drawn items recounted" in check.detail for check in checked.checks)
    assert verify(plain).valid  # and nothing is claimed without a pilot


FORGERIES: dict[str, Callable[[dict[str, Any]], object]] = {
    "a smaller bound": lambda s: s.update(bound=s["bound"] * 0.9),
    "fewer failures": lambda s: s.update(more_than_k=s["more_than_k"] - 1),
    "another draw": lambda s: s["places"].reverse(),
    "another seed": lambda s: s.update(seed=s["seed"] + 1),
    "a mark": lambda s: s["wrong"].update({next(iter(s["wrong"])): "0" * 60}),
    "a node less": lambda s: s["wrong"].pop(next(iter(s["wrong"]))),
    "marks of another kind": lambda s: s["wrong"].update({next(iter(s["wrong"])): "x" * 60}),
    "another table": lambda s: s.update(table="another"),
    "more confidence": lambda s: s.update(confidence=0.99),
    "a key more": lambda s: s.update(more=1),
    "no population": lambda s: s.update(size=0),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_premise_is_refused(made: Any, forgery: str) -> None:
    _, policy, _, plain = made
    document = copy.deepcopy(with_pilot(plain, policy).document)
    FORGERIES[forgery](document["pilot"])
    document["digest"] = content_digest(document)
    checked = verify(replace(plain, document=document))
    assert not checked.valid
    assert "pilot" in checked.reason


def test_what_a_pilot_does_not_speak_of_is_refused(made: Any) -> None:
    _, policy, name, plain = made
    with pytest.raises(Refused, match="no evidence for itself"):
        with_pilot(plain, policy, item=policy["drawn"][0])
    with pytest.raises(Refused, match="recipe has changed"):
        with_pilot(plain, policy, recipe_digest="0" * 64, item=name)
    with pytest.raises(Refused):
        with_pilot(plain, {**policy, "risk": 0.01})
    import rrf_design as rrf

    other = certify(
        rrf.Problem(nodes=[{"id": "total"}, {"id": "x"}], relations=[{"id": "r", "tail": "total", "head": "x"}])
    )
    with pytest.raises(InputError, match="node 'x'"):
        with_pilot(other, policy)


def test_a_table_gets_a_premise_for_each_structure(made: Any) -> None:
    world, policy, _, _ = made
    found = with_pilot_of_table(certify_dataset(world.dataset), policy)
    assert len(found.speakers) == 1
    for speaker in found.speakers:
        assert verify(speaker.result).valid
        assert speaker.result.document["pilot"]["more_than_k"] > 0
    told = premise_summary(found)
    assert told["bound"] == found.worst.result.document["pilot"]["bound"]
    assert told["sentence"].endswith(found.worst.result.document["pilot"]["sentence"])
    everything = {**policy, "drawn": list(world.dataset)}
    with pytest.raises(Refused, match="their truth is known"):
        with_pilot_of_table(certify_dataset(world.dataset), everything)


@pytest.fixture
def run_in() -> Any:
    def make(folder: Any, labels: int) -> tuple[Any, Any]:
        from rrf_design.promises import gold_truths, plan_pilot, policy_document, run_pilot
        from rrf_design.questions import dataset
        from rrf_design.questions.answers import RecordedAnswers

        found = dataset(folder / "rrf.toml")
        with RecordedAnswers(found, folder / "answers.jsonl") as answers:
            plan = plan_pilot(found, answers, PilotSettings(labels, 0.3))
        truths, _ = gold_truths(plan)
        return found, policy_document(run_pilot(plan, truths, truth_source="gold column 'booked'"))

    return make


@pytest.fixture
def mixed(tmp_path: Any) -> Any:
    """Two kinds of rows: printed ones, never wrong and asked twice; a few handwritten ones, asked
    three times and always wrong at all of them.
    """
    import json

    (tmp_path / "rrf.toml").write_text(
        """[data]
table = "table.jsonl"
id = "no"
gold = "booked"

[answer]
of = "total"
k = 1

[[ask]]
id = "total"
prompt = "{{ text }}"
cost = 1.0

[[ask]]
id = "reworded"
like = "total"
prompt = "{{ text }} again"
cost = 1.0

[[ask]]
id = "enlarged"
like = "total"
prompt = "{{ text }} enlarged"
when = "{{ hand }}"
cost = 1.0

[[check]]
id = "clerk"
of = "total"
by = { person = "{{ no }}?" }
cost = 30.0
"""
    )
    rows = [
        {"no": f"i{n}", "text": f"item {n}", "booked": n + 10, "hand": "yes" if n % 10 == 0 else ""} for n in range(120)
    ]
    nodes = ("total", "reworded", "enlarged")
    said = [
        {"id": row["no"], "node": node, "text": str(int(str(row["booked"])) + (5 if row["hand"] else 0))}
        for row in rows
        for node in nodes[: 3 if row["hand"] else 2]
    ]
    for name, lines in (("table", rows), ("answers", said)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return tmp_path


def test_a_kind_of_item_is_judged_by_its_own_kind(mixed: Any, run_in: Any) -> None:
    """Over all items the premise fails in one of ten.

    Of the handwritten ones it always fails, of the printed ones never; each certificate says its
    own, and a common rate, which would be false for the one and too much for the other, is in
    neither.
    """
    table, policy = run_in(mixed, 60)
    drawn = [int(name[1:]) for name in policy["drawn"]]
    hand = sum(n % 10 == 0 for n in drawn)
    assert 0 < hand < 20
    marks = policy["wrong_answers"]["by_node"]
    assert [mark == "-" for mark in marks["enlarged"]] == [n % 10 != 0 for n in drawn]
    assert (
        policy["wrong_answers"]["more_than"][1]["items"] == hand
    )  # a question that was not asked is not a wrong answer
    node = policy["wrong_answers"]["nodes"][2]
    assert (node["wrong"], node["bound"]) == (hand, 1.0)
    found = with_pilot_of_table(certify_dataset(table), policy)
    told = {len(one.problem.nodes): one.result.document["pilot"] for one in found.speakers}
    assert (told[3]["more_than_k"], told[3]["bound"]) == (hand, 1.0)
    assert (told[2]["more_than_k"], told[2]["bound"]) == (0, rate_bound(60 - hand, 0, 0.95))
    assert f"in 0 of {60 - hand} items that are asked the same, among 60 drawn from" in told[2]["sentence"]
    for one in found.speakers:
        checked = verify(one.result)
        assert checked.valid, checked.reason
    summary = premise_summary(found)
    assert (summary["bound"], summary["alike"]) == (1.0, hand)
    assert "of the weakest of 2 structures" in summary["sentence"]
    forged = copy.deepcopy(found.speakers[0].result.document)
    first = next(iter(forged["pilot"]["wrong"]))
    forged["pilot"]["wrong"][first] = forged["pilot"]["wrong"][first].replace("1", "-")
    forged["digest"] = content_digest(forged)
    assert not verify(replace(found.speakers[0].result, document=forged)).valid


def test_an_item_is_judged_by_its_own_kind_too(mixed: Any, run_in: Any) -> None:
    """Without the table at hand the marks say which items are asked at least the same."""
    table, policy = run_in(mixed, 60)
    name = next(n for n in table if n not in policy["drawn"] and int(n[1:]) % 10 == 0)
    plain = certify(table.item(name).problem)
    assert with_pilot(plain, policy, item=name).document["pilot"]["bound"] == 1.0


def test_a_kind_that_was_never_drawn_is_not_promised_anything(mixed: Any, run_in: Any) -> None:
    table, policy = run_in(mixed, 60)
    name = next(n for n in table if n not in policy["drawn"])
    found = with_pilot(certify(table.item(name).problem), policy, item=name, like=[name])
    assert found.document["pilot"]["bound"] == 1.0
    assert "says nothing about its premise" in found.document["pilot"]["sentence"]
    assert verify(found).valid


def test_a_kind_that_was_piloted_whole_needs_no_premise(mixed: Any, run_in: Any) -> None:
    """Its truth is known; the other kind still gets its own."""
    table, policy = run_in(mixed, 60)
    kept = [n for n in table if int(n[1:]) % 10 or n in policy["drawn"]]
    found = with_pilot_of_table(certify_dataset(table.only(kept)), policy, whole=table)
    sections = ["pilot" in one.result.document for one in found.speakers]
    assert sorted(sections) == [False, True]
    assert premise_summary(found)["more_than_k"] == 0


def test_a_pilot_of_another_table_says_nothing_about_this_one(made: Any) -> None:
    """Next month's rows with the same ids, or drawn items under other names: neither was
    piloted.
    """
    from rrf_design.promises._pilot_design import Population

    world, policy, name, plain = made
    here = Population.of(world.dataset)
    digest = world.dataset.recipe.digest
    with_pilot(plain, policy, recipe_digest=digest, population=here, item=name)
    others = [*policy["drawn"][1:], policy["drawn"][0]]
    with pytest.raises(Refused, match="was drawn, and its draw is of"):
        with_pilot(plain, {**policy, "drawn": others}, recipe_digest=digest, population=here, item=name)
    path = world.folder / "table.jsonl"
    path.write_text(path.read_text().replace("item ", "invoice "))
    later = world.dataset
    assert list(later) == list(here.ids)
    assert later.recipe.digest == digest
    with pytest.raises(Refused, match="the table has changed since the pilot"):
        with_pilot(plain, policy, recipe_digest=digest, population=Population.of(later), item=name)
    with pytest.raises(Refused, match="the table has changed since the pilot"):
        with_pilot_of_table(certify_dataset(later), policy)


@pytest.mark.parametrize(("size", "drawn"), [(12, 5), (40, 20)])
def test_the_premise_is_bounded_in_the_table_and_not_in_what_a_pilot_leaves_over(size: int, drawn: int) -> None:
    """Every number of failing items and every draw: the share in the table is covered; that among
    the rows left over, which docs/promises.md does not promise, is not.
    """
    bounds = [Fraction(rate_above(drawn, seen, 0.95)) for seen in range(drawn + 1)]

    def covered(failing: int, *, over: bool) -> Fraction:
        ways = {x: comb(failing, x) * comb(size - failing, drawn - x) for x in range(min(drawn, failing) + 1)}
        share = {x: Fraction(failing - x, size - drawn) if over else Fraction(failing, size) for x in ways}
        return Fraction(sum(count for x, count in ways.items() if bounds[x] >= share[x]), comb(size, drawn))

    assert min(covered(failing, over=False) for failing in range(size + 1)) >= Fraction(19, 20)
    assert min(covered(failing, over=True) for failing in range(size + 1)) < Fraction(3, 5)
