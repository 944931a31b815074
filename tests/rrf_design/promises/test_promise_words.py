"""What promises say, and documents that are proven before they are believed."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from rrf_design.checker._tails import PromiseScope
from rrf_design.checker.promise_words import (
    AUDIT_INFORMATION,
    POLICY_INFORMATION,
    POLICY_TRUST,
    audit_words,
    audited_risk,
    number_above,
    percent,
    percent_above,
    percent_below,
    policy_words,
    promise,
    why_everything,
)
from rrf_design.errors import Refused
from rrf_design.promises import PilotSettings, forecast_pilot, plan_pilot, prove_audit, prove_policy
from rrf_design.promises._buying import NOTHING
from rrf_design.promises._forecast import GUESSES, NO_PILOT, _least_pilot
from rrf_design.risk import Among, Limit, Scope, Statement, least_labels, passing_count
from rrf_design.risk import Scope as Sized
from rrf_design.risk._forecasts import AGREED_WRONG
from rrf_design.risk._statements import evidence
from scenarios.rigour.forged_promises import true_promises

SURE = Fraction(19, 20)


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (
            Statement.POLICY,
            (
                "Of the 1,319 items, at most 65 (5 %) are wrong under this policy, the pilot's counted as the policy"
                " left them, with confidence 95 %."
            ),
        ),
        (
            Statement.FILE,
            (
                "Of the 1,319 items, at most 65 (5 %) are wrong in the file as it is handed over, with what the pilot"
                " found wrong corrected, with confidence 95 %."
            ),
        ),
        (Statement.REST, "Of the 1,119 items outside the pilot, at most 55 (5 %) are wrong, with confidence 95 %."),
    ],
)
def test_finite_statements_name_their_denominator(statement: Statement, expected: str) -> None:
    assert promise(Fraction("0.05"), PromiseScope(statement, 200, 1319, delivered=False), confidence=SURE) == expected


def test_fresh_items_are_those_drawn_like_the_pilot() -> None:
    said = promise(Fraction("0.025"), PromiseScope("fresh", 200, 900, delivered=True), confidence=SURE)
    assert (
        said
        == "Of the items delivered, at most 2.5 % are wrong, with confidence 95 %, for items drawn like the 200 of the"
        " pilot."
    )


def test_what_random_checks_leave_of_a_table_is_promised_on_average() -> None:
    """K(1 − q) ≤ rN is what is tested, and not how many of K the draw finds: with nearly all items
    piloted, K = 17 of 200 at r = 5 % and q = ½ is proven surely, and more than 10 are left in one
    of six runs.
    """
    risk, half = Fraction(1, 20), Fraction(1, 2)
    tested, scope = Limit(risk / half, among=Among.ALL), Sized(Statement.POLICY, 190, 200)
    seen = range(17 - 10, 18)
    assert all(evidence(tested, scope, 190, x).claim.at_most(1 - SURE) for x in seen)
    assert sum(math.comb(17, left) for left in range(11, 18)) / 2**17 > 0.16
    said = promise(risk, PromiseScope("policy", 190, 200, delivered=False), confidence=SURE, checked_share=half)
    assert said.startswith("Of the 200 items, at most 10 (5 %) are wrong on average over what is checked at random")
    larger = PromiseScope("policy", 200, 1320, delivered=False)
    assert "at most 66 (5 %)" in promise(risk, larger, confidence=SURE, checked_share=half)
    larger = PromiseScope("policy", 200, 1321, delivered=False)
    assert "at most 66.1 (" in promise(risk, larger, confidence=SURE, checked_share=half)


def test_a_number_is_given_only_where_it_is_known() -> None:
    scope = PromiseScope("policy", 200, 1319, delivered=True)
    assert promise(Fraction("0.1"), scope, confidence=SURE, delivers=1001).startswith(
        "Of the 1,001 items delivered, at most 100 (10 %)"
    )
    assert promise(Fraction("0.1"), scope, confidence=SURE).startswith("Of the items delivered, at most 10 %")
    rest = promise(Fraction("0.1"), PromiseScope("rest", 200, 1319, delivered=True), confidence=SURE, delivers=1001)
    assert rest == "Of the items delivered outside the pilot, at most 10 % are wrong, with confidence 95 %."


@pytest.mark.parametrize("value", [0.0, 1e-9, 0.2486, 0.24861, 0.5, 1 / 3, 0.99999, 1.0])
def test_limits_are_rounded_away_from_what_helps(value: float) -> None:
    exact = Fraction(value)
    above, below = percent_above(exact), percent_below(exact)
    assert Fraction(below.rstrip("%")) <= 100 * exact <= Fraction(above.rstrip("%"))
    assert Fraction(above.rstrip("%")) - Fraction(below.rstrip("%")) <= Fraction(1, 100)
    assert exact <= Fraction(number_above(value)) <= exact * Fraction(1001, 1000) + Fraction(1, 10**300)


def test_shares_are_cut_to_the_safe_side() -> None:
    assert percent(Fraction(1, 30)) == "3.33334 %"
    said = promise(Fraction(1, 30), PromiseScope("fresh", 200, 900, delivered=True), confidence=Fraction(2, 3))
    assert "at most 3.33334 % are wrong, with confidence 66.6666 %" in said
    assert percent(Fraction(1, 8)) == "12.5 %"
    assert number_above(12.3401) == "12.35"
    assert number_above(123456.0) == "123500"
    assert number_above(float("inf")) == "inf"


def test_a_risk_that_was_seen_to_be_larger_is_not_open() -> None:
    assert audited_risk(0.1, holds=True, population=100, wrong=2) == "The risk of 10 % holds."
    assert "not proven yet: it takes more draws" in audited_risk(0.1, holds=False, population=100, wrong=10)
    assert "it takes more labels" in audited_risk(0.1, holds=False, population=100, wrong=10, waiting=True)
    said = audited_risk(0.1, holds=False, population=1000, wrong=120)
    assert said == "The risk of 10 % does not hold: 120 of 1,000 are known to be wrong."


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return true_promises(Path(tmp_path_factory.mktemp("forms")))


def test_what_is_not_proven_is_named() -> None:
    assert all(name in policy_words(0) for name in (*POLICY_INFORMATION, *POLICY_TRUST))
    assert all(name in audit_words(0) for name in AUDIT_INFORMATION)
    assert "columns" not in audit_words(0, same=True)
    assert "seed 0, the default" in audit_words(0)
    assert "seed 7, which somebody chose" in audit_words(7)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda d: d.update(note="certified by us"), "'note' is unknown"),
        (lambda d: d.pop("voided_by"), "'voided_by' is missing"),
        (lambda d: d.update(voided_by="nothing"), "voided_by"),
        (lambda d: d.update(because="it is the best there is"), "because"),
        (lambda d: d.update(stratify="kind"), "stratify"),
        (lambda d: d.update(random_checks=True), "random_checks"),
        (lambda d: d["population"].update(drawn="well"), "'drawn' is unknown"),
        (lambda d: d["policies"][0].update(rating="A"), "'rating' is unknown"),
        (lambda d: d["wrong_answers"]["more_than"].pop(), r"more_than: should be a list of"),
        (lambda d: d["choice"].update(note="x"), "choice: 'note' is unknown"),
        (lambda d: d["choice"]["policies"][0].update(cost="1.0"), "should be a number"),
    ],
)
def test_a_policy_says_nothing_beside_its_figures(made: dict[str, Any], change: Any, reason: str) -> None:
    document = copy.deepcopy(made["policy"])
    prove_policy(document)
    change(document)
    with pytest.raises(Refused, match=reason):
        prove_policy(document)


def test_an_audit_says_nothing_beside_its_figures(made: dict[str, Any]) -> None:
    for where in (lambda d: d, lambda d: d["record"]):
        document = copy.deepcopy(made["audit"])
        where(document)["note"] = "clean"
        with pytest.raises(Refused, match="note"):
            prove_audit(document)


def test_check_everything_says_why(made: dict[str, Any]) -> None:
    """Where a proven policy is dearer than a check, and only there."""
    document = copy.deepcopy(made["policy"])
    cost = document["cost_per_item"]
    said = why_everything(cost, cost / 2)
    document.update(policy="check everything", because=said, ladder=None, bound=0.0, delivered_share=0.0)
    document.update(check_cost=cost / 2, cost_per_item=cost / 2, sentence=f"Check everything: {said}.")
    assert prove_policy(document).policy == "check everything"
    dear = copy.deepcopy(document)
    dear.update(check_cost=2 * cost, cost_per_item=2 * cost)
    with pytest.raises(Refused, match="less than a check"):
        prove_policy(dear)


def test_an_honest_policy_is_proven(proven_policy: dict[str, Any]) -> None:
    proven = prove_policy(proven_policy)
    assert proven.policy == proven_policy["policy"]
    assert proven.risk == 0.1
    assert (
        proven_policy["sentence"]
        == "Of all items, at most 10 % are wrong, with confidence 95 %, for items drawn like the 100 of the pilot."
    )


def unproven(document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = next(entry for entry in document["choice"]["policies"] if not entry["proven"])
    return found


def chosen_marks(document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = next(e for e in document["policies"] if e["policy"] == document["policy"])
    return found


def _flip_wrong(data: dict[str, Any]) -> None:
    entry = next(e for e in data["policies"] if "w" in e["marks"])
    entry["marks"] = entry["marks"].replace("w", "r", 1)


def _forge_counts(data: dict[str, Any]) -> None:
    """Counts, p-values and marks agree with each other, and the test is not redone at its level."""
    entry = unproven(data)
    entry["proven"] = True


FORGERIES: dict[str, Callable[[dict[str, Any]], object]] = {
    "a smaller risk": lambda d: d.update(risk=0.01),
    "more confidence": lambda d: d.update(confidence=0.99),
    "another sentence": lambda d: d.update(sentence="Nothing is wrong."),
    "a smaller bound": lambda d: d.update(bound=0.01),
    "another statement": lambda d: d.update(statement="rest"),
    "another denominator": lambda d: d.update(among="delivered"),
    "another seed": lambda d: d.update(seed=d["seed"] + 1),
    "another population": lambda d: d["population"].update(digest="0" * 64),
    "chosen items": lambda d: d["places"].__setitem__(0, (d["places"][0] + 1) % 300),
    "items left out": lambda d: (d["places"].pop(), d["drawn"].pop()),
    "a wrong item called right": _flip_wrong,
    "an unproven policy": lambda d: d.update(policy=unproven(d)["name"]),
    "an unproven policy, chosen": lambda d: (
        d.update(policy=unproven(d)["name"]),
        d["choice"].update(chosen=unproven(d)["name"]),
    ),
    "a proof": _forge_counts,
    "a p-value": lambda d: unproven(d).update(p=0.0),
    "a count": lambda d: unproven(d)["counts"][0].update(marked=unproven(d)["counts"][0]["marked"] + 1),
    "another ladder": lambda d: d["ladder"].update(number=1, gate="lead", order=["total"]),
    "a policy left out": lambda d: d["policies"].pop(),
    "marks too short": lambda d: chosen_marks(d).update(marks=chosen_marks(d)["marks"][:-1]),
    "fewer wrong told": lambda d: d["policies"][0].update(wrong=-1),
    "more delivered told": lambda d: d["policies"][0].update(delivered=1000),
    "a proof told": lambda d: d["policies"][0].update(proven=not d["policies"][0]["proven"]),
    "another cost told": lambda d: d["policies"][0].update(cost=0.0),
    "a cheaper item": lambda d: d.update(cost_per_item=0.001),
    "a larger share": lambda d: d.update(delivered_share=1.5),
    "a node that is never wrong": lambda d: d["wrong_answers"]["nodes"][1].update(wrong=0, bound=0.01),
    "a bound a little smaller": lambda d: d["wrong_answers"]["more_than"][0].update(
        bound=d["wrong_answers"]["more_than"][0]["bound"] * (1 - 1e-10)
    ),
    "nothing checked, sweet words": lambda d: d.update(policy="check everything", sentence="Nothing is wrong."),
    "an item drawn twice": lambda d: d["drawn"].__setitem__(1, d["drawn"][0]),
    "an order made afterwards": lambda d: d["choice"]["streams"].__setitem__(
        slice(None), [{"share": "1", "names": [unproven(d)["name"]], "pooled": False}]
    ),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_policy_is_refused(proven_policy: dict[str, Any], forgery: str) -> None:
    forged = copy.deepcopy(proven_policy)
    FORGERIES[forgery](forged)
    assert forged != proven_policy
    with pytest.raises(Refused):
        prove_policy(forged)


@pytest.mark.parametrize(
    "junk", [None, 3, "x", [], {}, {"format": "rrf-policy"}, {"format": "rrf-policy", "version": 1}]
)
def test_what_is_no_policy_is_refused(junk: Any) -> None:
    with pytest.raises(Refused):
        prove_policy(junk)


def test_every_entry_may_be_anything(proven_policy: dict[str, Any]) -> None:
    """Total on malformed input: a refusal, or the proof where the entry proves nothing; never
    another error.
    """
    junk: Any
    for key in proven_policy:
        for junk in (None, True, -1, 1e308, "", "1e999999999", [], {}, [[]], {"digest": 3, "size": True}):
            try:
                prove_policy({**proven_policy, key: junk})
            except Refused:
                continue
    for key in proven_policy["choice"]:
        for junk in (None, True, -1, "9" * 400, [], {}, [{}]):
            try:
                prove_policy({**proven_policy, "choice": {**proven_policy["choice"], key: junk}})
            except Refused:
                continue


def test_size_and_strata_are_those_of_the_table(make_world: Any) -> None:
    """Beside a true digest, a forged size would make a promise about part of the table, and forged
    strata another test.
    """
    from rrf_design.promises._pilot_design import Population
    from rrf_design.promises._policy_document import check_draw

    world = make_world(items=80, wrong=0.05)
    document = world.document(PilotSettings(40, 0.2))
    here = Population.of(world.dataset)
    check_draw(document, here)
    smaller = {**document, "population": {**document["population"], "size": 60}}
    for forged in (smaller, {**document, "strata": ["a"] * 80}):
        with pytest.raises(Refused, match="another size or other strata"):
            check_draw(forged, here)


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
    least = _least_pilot(settings, 300)
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
    from rrf_design.promises._buying import NOTHING

    data = make_checked_world(("tests", "judge"), items=40).dataset
    for order, beside in (("front", 10), ("holm", 0)):
        plan = plan_pilot(data, NOTHING, PilotSettings(20, 0.2, order=order, aside=10), small=True)
        found = forecast_pilot(plan)
        assert found["aside"] == beside
        for entry in found["sizes"]:
            assert entry["pilot_cost"] == 42.0 * entry["labels"] + 12.0 * min(beside, 40 - entry["labels"])
