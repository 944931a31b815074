"""Every rule, alone and composed; and the shared hallucination that no rule falls for."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fields import ring, scripted

import rrf_design as rrf
from rrf_design.acquisition import acquire
from rrf_design.acquisition._candidates import Candidates
from rrf_design.acquisition.stopping import (
    AllOf,
    AnyOf,
    Because,
    Calls,
    Exhausted,
    Gain,
    Recall,
    Seconds,
    Stop,
    StoppingRule,
    Target,
    Validity,
    View,
    default,
    record,
    restore,
    summary,
)
from rrf_design.design import standing_of


def view(**changes: Any) -> View:
    design = Candidates(ring(target=0.5))
    given: dict[str, Any] = {
        "problem": design.problem,
        "margin": lambda: design.margin(["r1", "r3"]),
        "ceiling": lambda: 2.0,
        "left": lambda: (3, 5),
        "planned": False,
        "history": ((0.0, 0.0), (1.0, 0.5)),
        "read": (10, 10),
        "recalled": (10, 10),
        "committed_money": 0.0,
        "calls": 10,
        "seconds": 5.0,
    }
    return View(**given | changes)


@pytest.mark.parametrize(
    ("rule", "changes", "because"),
    [
        (Target(), {}, Because.TARGET),
        (Target(5.0), {}, None),
        (Target(), {"problem": ring()}, None),
        (Validity(0.5, after=8), {"read": (3, 8)}, Because.VALIDITY),
        (Validity(0.5, after=8), {"read": (3, 7)}, None),
        (Validity(0.5, after=8), {"read": (4, 8)}, None),
        (Recall(0.5, after=4), {"recalled": (1, 4)}, Because.RECALL),
        (Recall(0.5, after=4), {"recalled": (0, 3)}, None),
        (Gain(0.6), {}, Because.GAIN),
        (Gain(0.4), {}, None),
        (Gain(0.6), {"history": ((0.0, 0.0), (1.0, 0.0))}, None),
        (Gain(0.6), {"history": ((0.0, 0.0),)}, None),
        (Exhausted(), {}, None),
        (Exhausted(), {"left": lambda: (0, 0)}, Because.EXHAUSTED),
        (Exhausted(), {"left": lambda: (0, 3)}, Because.BUDGET),
        (Exhausted(), {"ceiling": lambda: 0.3}, None),
        (Exhausted(), {"ceiling": lambda: 0.3, "history": ((0.0, 0.5), (1.0, 0.5))}, Because.EXHAUSTED),
        (Exhausted(), {"ceiling": lambda: 0.3, "history": ((0.0, 0.5),)}, Because.EXHAUSTED),
        (Exhausted(), {"ceiling": lambda: 0.3, "planned": True}, None),
        (Calls(10), {}, Because.CALLS),
        (Calls(11), {}, None),
        (Seconds(5.0), {}, Because.TIME),
        (Seconds(5.1), {}, None),
    ],
)
def test_rules(rule: StoppingRule, changes: dict[str, Any], because: Because | None) -> None:
    stop = rule.check(view(**changes))
    assert (None if stop is None else stop.because) == because
    assert rule.describe()


def test_composition() -> None:
    yes, no = Calls(1), Calls(99)
    assert (yes | no).check(view()) is not None
    assert (yes & no).check(view()) is None
    both = (yes & Seconds(1.0)).check(view())
    assert both is not None
    assert both.because is Because.CALLS
    assert "; and " in both.detail
    assert isinstance(yes | no, AnyOf)
    assert isinstance(yes & no, AllOf)
    assert (no & no | yes).check(view()) is not None
    assert ((no | no) & yes).check(view()) is None
    assert " or " in (yes | no).describe()
    assert " and " in (yes & no).describe()


def test_declared_uncertainty_is_subtracted_before_the_goal_is_called_reached() -> None:
    base = ring(target=0.5)
    blocks = [relation.model_copy(update={"uncertainty": 0.4}) for relation in base.relations]
    doubtful = Candidates(rrf.Problem(k=1, target=0.5, nodes=base.nodes, relations=blocks, anchors=base.anchors))
    margin = doubtful.margin(["r1", "r3"])
    assert margin.lower > 0.5 > standing_of(doubtful.problem, margin).robust_lower
    assert Target().check(view(problem=doubtful.problem, margin=lambda: margin)) is None


def test_summaries() -> None:
    done = Stop(Because.TARGET, "")
    assert summary({"": done}) == "target reached"
    assert summary({"a": done, "b": None, "c": done}) == "target reached: 2, unfinished: 1"


def test_shared_hallucination_does_not_stop_the_run(tmp_path: Any) -> None:
    """All answers agree on the same wrong number: the relation defect is zero from the start, and
    the margin too.

    A rule "stop when the answers are consistent" would stop before the first purchase and return
    the hallucination. The loop goes on until an anchor is bought, and says that the field is beyond
    its corruption budget.
    """
    problem = rrf.Problem(
        k=1,
        target=0.5,
        budget=3.0,
        nodes=[{"id": "x", "prompt": "x?"}, {"id": "y", "prompt": "y?"}],
        relations=[{"id": "xy", "tail": "x", "head": "y"}],
        anchors=[{"id": name, "node": node, "value": 7.0, "cost": 1.0} for name, node in (("ax", "x"), ("ay", "y"))],
    )
    wrong = scripted(lambda request: "9")
    run = acquire(problem, wrong, store=tmp_path / "r.sqlite", method="witness")
    answers = run.items[0].answers
    assert problem.operator().syndrome(answers) == pytest.approx([0.0])  # what a defect rule would have seen
    assert problem.margin().value == 0.0
    bought = [entry.name for entry in run.purchases if entry.price > 0]
    assert set(bought) & {"ax", "ay"}
    assert run.gamma_lower >= 0.5
    repair = run.items[0].repair
    assert repair is not None
    assert not repair["guaranteed"]  # two wrong answers are more than k = 1, and the run says so


@pytest.mark.parametrize(
    "rule",
    [
        default(),
        Target(0.4) & (Calls(7) | Seconds(1.5)),
        Gain(0.01) | Validity(0.5, after=3) | Recall(0.2, after=9) | Exhausted(),
    ],
)
def test_a_recorded_rule_comes_back_the_same(rule: StoppingRule) -> None:
    document = json.loads(json.dumps(record(rule)))
    back = restore(document)
    assert back.describe() == rule.describe()
    assert record(back) == document


def test_a_rule_of_ones_own_must_be_given_again() -> None:
    class Mine(StoppingRule):
        def check(self, view: View) -> Stop | None:
            return None

        def describe(self) -> str:
            return "when I say so"

    with pytest.raises(rrf.InputError, match=r"of its own \(when I say so\); give `stop` again"):
        restore(record(Target() | Mine()))
