"""Triage: what agrees is left alone, what is disputed goes to who decides it, and never in the order of the file."""

from __future__ import annotations

import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.acquisition.triage import Wish, admitted
from rrf_design.handover import delivery_of, write_reviews
from rrf_design.verdict import Verdict

RECIPE: dict[str, Any] = {
    "data": {"id": "no"},
    "answer": {"of": "total", "tolerance": 0.005},
    "ask": [
        {"id": "total", "prompt": "Total of {{ no }}?"},
        {"id": "reworded", "prompt": "To pay for {{ no }}?", "like": "total"},
        {"id": "again", "prompt": "Sum of {{ no }}?", "like": "total"},
    ],
    "check": [{"id": "clerk", "of": "total", "by": {"person": "Total of {{ no }}"}, "cost": 5.0}],
}


def invoices(count: int, wrong: float = 0.13) -> tuple[rrf.Dataset, list[dict[str, Any]], dict[str, float]]:
    chance = random.Random(7)
    truth = {str(number): chance.randrange(100, 90000) / 100 for number in range(count)}
    answers = [
        {"id": name, "node": node, "value": value + (chance.random() < wrong) * chance.randrange(1, 99)}
        for name, value in truth.items()
        for node in ("total", "reworded", "again")
    ]
    return rrf.dataset(RECIPE, [{"no": name} for name in truth]), answers, truth


def test_disputed_items_go_to_the_clerk_and_no_others(tmp_path: Path) -> None:
    items, answers, truth = invoices(60, wrong=0.3)
    said: dict[str, list[float]] = {}
    for row in answers:
        said.setdefault(row["id"], []).append(row["value"])
    disputed = {name for name, values in said.items() if len(set(values)) == 3}
    run = rrf.acquire(items, responses=answers, store=tmp_path / "runs.sqlite")
    waiting = {entry.item for entry in run.items if entry.stopped_because == "waiting for review"}
    assert waiting == disputed != set()
    assert run.verdicts["certified"] == 60 - len(disputed)
    assert run.verdicts["contradicted"] == len(disputed)
    # The review list is what was asked, and what it says is the value.
    table = tmp_path / "review.csv"
    assert write_reviews(table, delivery_of(items, run)) == len(disputed)
    lines = table.read_text().splitlines()
    filled = [lines[0], *(line + f"{truth[line.split(',')[1]]}" for line in lines[1:])]
    table.write_text("\n".join(filled) + "\n")
    after = rrf.acquire(items, resume=run.run, store=tmp_path / "runs.sqlite", responses=answers, reviews=table)
    assert after.verdicts["certified"] == 60
    assert after.spent == 5.0 * len(disputed)
    delivery = delivery_of(items, after)
    for name in disputed:
        assert (delivery[name].answer, delivery[name].assumes) == (truth[name], "clerk is right")


def test_the_money_goes_to_the_largest_disputes(tmp_path: Path) -> None:
    items, answers, _ = invoices(40, wrong=0.4)
    whole = rrf.acquire(items, responses=answers, store=tmp_path / "all.sqlite")
    misfit = {e.item: (e.repair or {})["residual"] for e in whole.items if e.stopped_because == "waiting for review"}
    assert len(misfit) > 4
    some = rrf.acquire(items, responses=answers, budget=15.0, store=tmp_path / "some.sqlite")
    asked = {entry.item for entry in some.items if entry.stopped_because == "waiting for review"}
    assert len(asked) == 3
    assert min(misfit[name] for name in asked) >= max(size for name, size in misfit.items() if name not in asked)
    assert asked != set(list(misfit)[:3])
    late = next(entry for entry in some.items if entry.item in misfit and entry.item not in asked)
    assert late.stopped_because == "budget used up"
    assert "settling it costs 5" in late.detail


def test_a_dispute_is_one_though_k_would_explain_it_away(tmp_path: Path) -> None:
    """At k = 2 of three answers everything fits and nothing is certified: the clerk is still asked about what disagrees."""
    _, answers, _ = invoices(40)
    recipe = {**RECIPE, "answer": {**RECIPE["answer"], "k": 2}}
    said: dict[str, set[float]] = {}
    for row in answers:
        said.setdefault(row["id"], set()).add(row["value"])
    disputed = [name for name, values in said.items() if len(values) > 1]
    assert 8 < len(disputed) < 30
    items = rrf.dataset(recipe, [{"no": name} for name in said])
    run = rrf.acquire(items, responses=answers, budget=40.0, store=tmp_path / "runs.sqlite")
    asked = [entry.item for entry in run.items if entry.stopped_because == "waiting for review"]
    assert len(asked) == 8
    assert set(asked) <= set(disputed)
    ranked = sorted(delivery_of(items, run).ranked(), key=lambda entry: entry[2] or 0)
    assert {item.id for item, _, _ in ranked[: len(disputed)]} == set(disputed)


def test_machines_come_before_people(tmp_path: Path) -> None:
    """A question on sale is asked where it can bring an item to its goal; a person only where it can't."""
    recipe = {
        **RECIPE,
        "ask": [*RECIPE["ask"][:2], {**RECIPE["ask"][2], "cost": 1.0, "buy": "if needed"}],
    }
    items = rrf.dataset(recipe, [{"no": "a"}, {"no": "b"}])
    texts = {"Total of a?": "10", "To pay for a?": "10", "Sum of a?": "10"}
    texts |= {"Total of b?": "10", "To pay for b?": "11", "Sum of b?": "12"}
    from rrf_design.models.scripted import ScriptedModel

    model = ScriptedModel(lambda request: texts[request.prompt], name="table")
    run = rrf.acquire(items, model, budget=20.0, store=tmp_path / "runs.sqlite")
    bought = {entry.item: entry for entry in run.items}
    assert bought["a"].verdict is Verdict.CERTIFIED
    assert "clerk" not in bought["a"].selected
    assert "again" in bought["b"].selected
    assert bought["b"].stopped_because == "waiting for review"


def test_one_item_that_nobody_can_read_does_not_stop_the_others(tmp_path: Path) -> None:
    items, answers, _ = invoices(6, wrong=0.0)
    answers = [row if row["id"] != "3" else {**row, "value": None, "text": "no idea"} for row in answers]
    run = rrf.acquire(items, responses=answers, store=tmp_path / "runs.sqlite")
    verdicts = {entry.item: entry.verdict for entry in run.items}
    assert verdicts.pop("3") is Verdict.INCOMPLETE
    assert set(verdicts.values()) == {Verdict.CERTIFIED}


def wish(settling: int, *, person: bool = False, verdict: Verdict = Verdict.CONTRADICTED, misfit: float = 0.0) -> Wish:
    return Wish(("x",), Fraction(settling), Fraction(settling), person, verdict, misfit)


@pytest.mark.parametrize(
    ("wishes", "left", "expected"),
    [
        ({"a": wish(5, person=True), "b": wish(9)}, 20, ["b"]),
        ({"a": wish(5, person=True), "b": wish(5, person=True, misfit=2.0)}, 5, ["b"]),
        ({"a": wish(5, verdict=Verdict.INCOMPLETE), "b": wish(5)}, 5, ["b"]),
        ({"a": wish(7), "b": wish(3)}, 8, ["b"]),
        ({"a": wish(7)}, 6, []),
        ({"a": wish(7), "b": wish(3)}, None, ["b", "a"]),
    ],
)
def test_who_buys(wishes: dict[str, Wish], left: int | None, expected: list[str]) -> None:
    assert list(admitted(wishes, None if left is None else Fraction(left))) == expected


def test_disputed_items_buy_as_many_suspect_checks_as_can_not_all_be_wrong(tmp_path: Path) -> None:
    """Three books of which one may be wrong: two that agree decide; two that don't are followed by the third."""
    books = [
        {"id": f"book{i}", "of": "total", "by": {"value": f"{{{{ b{i} }}}}"}, "cost": 1.0, "may_be_wrong": True}
        for i in range(3)
    ]
    recipe = {**RECIPE, "check": books}
    rows = [
        {"no": "agreed", "b0": "9", "b1": "9", "b2": "9"},
        {"no": "disputed", "b0": "30", "b1": "30", "b2": "31"},
        {"no": "first book wrong", "b0": "55", "b1": "40", "b2": "40"},
        {"no": "no two books agree", "b0": "1", "b1": "2", "b2": "3"},
    ]
    said = {
        "agreed": (9, 9, 9),
        "disputed": (30, 31, 32),
        "first book wrong": (40, 41, 42),
        "no two books agree": (7, 8, 9),
    }
    answers = [
        {"id": item, "node": node, "value": float(value)}
        for item, values in said.items()
        for node, value in zip(("total", "reworded", "again"), values, strict=True)
    ]
    items = rrf.dataset(recipe, rows)
    run = rrf.acquire(items, responses=answers, store=tmp_path / "runs.sqlite")
    delivery = delivery_of(items, run)
    bought = {item: delivery[item].cost for item in said}
    assert bought == {"agreed": 0.0, "disputed": 2.0, "first book wrong": 3.0, "no two books agree": 3.0}
    assert (delivery["disputed"].answer, delivery["disputed"].assumes) == (30.0, "at most 1 of 2 checks is wrong")
    assert (delivery["first book wrong"].answer, delivery["first book wrong"].verdict) == (40.0, Verdict.CERTIFIED)
    assert delivery["no two books agree"].verdict is Verdict.CONTRADICTED
    assert delivery["no two books agree"].answer is None


def test_two_quorums_that_differ_decide_nothing() -> None:
    from rrf_design.decisive import agreed, quorum

    anchors = [{"id": f"a{i}", "node": "x", "trusted": False} for i in range(4)]
    problem = rrf.Problem(nodes=[{"id": "x"}], anchors=anchors, wrong_checks=1)
    assert quorum(problem) == 2
    assert agreed(problem, {"a0": (1.0,), "a1": (1.0,)}, "x") == ((1.0,), 2)
    assert agreed(problem, {"a0": (1.0,), "a1": (2.0,)}, "x") is None
    assert agreed(problem, {"a0": (1.0,), "a1": (1.0,), "a2": (2.0,), "a3": (2.0,)}, "x") is None
    assert agreed(problem.model_copy(update={"wrong_checks": 0}), {"a0": (1.0,), "a1": (1.0,)}, "x") is None
