"""Checks that nobody is asked for; the suites that are shipped; entry points; keywords."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rrf_design as rrf
import solvers
from rrf_design.checks import (
    FREE,
    cheapest_first,
    decided_premise,
    decided_verdict,
    decides,
    decisive_checks,
    delivered_node,
    evaluate,
    is_person,
    known_value,
    worth_of,
)
from rrf_design.errors import InputError
from rrf_design.models import Attempt, Model, Outcome, Request, Usage
from rrf_design.noise import Noise
from rrf_design.planning import Order, Plan, planner
from rrf_design.planning.evaluator import Evaluator
from rrf_design.testing import check_model, check_planner, check_solver
from rrf_design.verdict import Verdict


def value(dim: int = 1, **anchor: Any) -> Any:
    node = {"id": "n", "dim": dim, "variables": {"a": 1, "b": 3}}
    problem = rrf.Problem(k=1, nodes=[node], anchors=[{"id": "A", "node": "n", "cost": 1.0, **anchor}])
    return known_value(problem, problem.anchors[0])


def test_what_is_computed_is_exact() -> None:
    assert value(source="expression: a / b") == (Fraction(1, 3),)
    assert value(source={"expression": "a + c", "variables": {"c": 5}}) == (6,)
    assert value(dim=2, source="expression: [a, b]") == (1, 3)


def test_values_in_the_file_are_the_decimals_that_were_written() -> None:
    assert value(value=0.1) == (Fraction(1, 10),)
    assert value(dim=2, value=[1.0, 2.5], source="value") == (1, Fraction(5, 2))


@pytest.mark.parametrize("source", ["person", {"command": ["true"]}, {"verifier": "embedded", "prompt": "?"}])
def test_what_has_to_be_fetched_is_not_known(source: Any) -> None:
    assert value(source=source) is None
    assert value(source=source, value=3.0) is None


def test_an_expression_must_fit_its_anchor() -> None:
    with pytest.raises(InputError, match="anchor 'A': the expression gives 2 numbers, but the anchor has 1 rows"):
        value(source="expression: [a, b]")


@pytest.mark.parametrize(("text", "fits"), [("10 ** 308", True), ("10 ** 309", False), ("-(10 ** 309)", False), ("10 ** 400 / 10 ** 399", True)])  # fmt: skip
def test_a_number_beyond_the_doubles_is_refused_where_it_is_made(text: str, fits: bool) -> None:
    anchor = {"id": "x", "node": "n", "source": f"expression: {text}"}
    problem = rrf.Problem(nodes=[{"id": "n"}], anchors=[anchor])
    if fits:
        assert known_value(problem, problem.anchors[0]) is not None
        return
    with pytest.raises(InputError, match="anchor 'x': the expression gives a number that no double can hold"):
        known_value(problem, problem.anchors[0])


def problem(*anchors: dict[str, Any], **settings: Any) -> rrf.Problem:
    return rrf.Problem(
        nodes=[{"id": "total"}, {"id": "parts", "dim": 2}],
        anchors=[{"node": "total", "cost": 1.0, **anchor} for anchor in anchors],
        **{"deliver": ["total"], **settings},
    )


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({}, True),
        ({"trusted": True}, True),
        ({"trusted": False}, False),
        ({"sigma": 0.5}, False),
        ({"uncertainty": 0.1}, False),
        ({"rows": [[2.0]]}, False),
        ({"node": "parts"}, False),
    ],
)
def test_who_states_the_whole_value_exactly_decides(entry: dict[str, Any], expected: bool) -> None:
    stated = problem({"id": "x", **entry})
    assert decides(stated, stated.anchors[0], "total") is expected


def test_machines_come_before_people_and_the_cheapest_first() -> None:
    found = problem(
        {"id": "clerk", "cost": 0.5, "source": {"person": "Total?"}},
        {"id": "slow", "cost": 3.0},
        {"id": "quick", "cost": 2.0},
        {"id": "noisy", "cost": 0.1, "sigma": 1.0},
    )
    assert [anchor.id for anchor in decisive_checks(found)] == ["quick", "slow", "clerk"]
    assert [anchor.id for anchor in decisive_checks(found, without=["quick"])] == ["slow", "clerk"]
    assert [is_person(anchor) for anchor in decisive_checks(found)] == [False, False, True]


def test_several_delivered_values_are_not_decided_by_one_check() -> None:
    assert decisive_checks(problem({"id": "x"}, deliver=["total", "parts"])) == []
    assert delivered_node(problem({"id": "x"}, deliver=["total", "parts"])) == "total"


def test_a_suspect_check_decides_only_where_it_is_trusted() -> None:
    suspects = problem({"id": "x"}, {"id": "y", "trusted": True}, wrong_checks=1)
    assert [anchor.id for anchor in decisive_checks(suspects)] == ["y"]
    assert [decides(suspects, anchor, "total") for anchor in suspects.anchors] == [False, True]


@pytest.mark.parametrize(
    ("source", "verdict", "premise"),
    [
        ("value", Verdict.CHECKED, "x is right"),
        ({"person": "how much?"}, Verdict.CHECKED, "x is right"),
        ({"tests": [[1]], "expected": [2]}, Verdict.CHECKED, "x is right, which ran the given tests"),
        ({"verifier": "gpt", "prompt": "right?"}, Verdict.CONSISTENT, "the verifier is right (x)"),
    ],
)
def test_a_model_that_verifies_never_makes_a_value_checked(source: Any, verdict: Verdict, premise: str) -> None:
    anchor = problem({"id": "x", "source": source}).anchors[0]
    assert (decided_verdict(anchor), decided_premise(anchor)) == (verdict, premise)


def test_what_a_check_is_worth_and_who_is_asked_first() -> None:
    found = problem(
        {"id": "dear", "cost": 0.3, "source": "person: total?"},
        {"id": "free", "cost": 0.0, "source": "person: total?"},
        {"id": "machine", "cost": 5.0, "source": "judge"},
    )
    assert [anchor.id for anchor in cheapest_first(found.anchors)] == ["machine", "free", "dear"]
    assert worth_of(found.anchors[0]) == 1.0 / 0.3
    assert worth_of(found.anchors[1]) == 1.0 / FREE


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("__import__('os')", "the functions are"),
        ("(1).real", "Attribute is not allowed"),
        ("[x for x in (1, 2)]", "ListComp is not allowed"),
        ("lambda: 1", "Lambda is not allowed"),
        ("'a' * 9", "is not a number"),
        ("True", "is not a number"),
        ("10 ** 10 ** 10", "not between 0 and"),
        ("9 ** 4000", "too large"),
        ("factorial(10 ** 9)", "not between 0 and 300"),
        ("1 / 0", "division by zero"),
        ("0 ** -1", "division by zero"),
        ("a + 1", "no number called 'a'"),
        ("word + 1", "no number called 'word'"),
        ("1 +", "not an expression"),
        ("gcd(1/2, 3)", "not a whole number"),
        ("[[1]]", "must be a number or a list"),
        ("[]", "must be a number or a list"),
        ("[1] + [2]", "a list stands where a number"),
        ("(" * 500 + "1" + ")" * 500, ""),
        ("1" * 5000, "longer than"),
        ("not 1", "Not is not allowed"),
        ("1 if 1 else 2", "IfExp is not allowed"),
        ("abs(1, 2)", "takes one number"),
        ("abs(x=1)", "the functions are"),
    ],
)
def test_what_is_not_arithmetic_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        evaluate(text, {"word": "seven"})
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(a + b) * 3", 57),
        ("0.1 + 0.2", Fraction(3, 10)),
        ("7 // 2 + 7 % 2", 4),
        ("-2 ** 2", -4),
        ("2 ** -3", Fraction(1, 8)),
        ("max(a, b) - min(a, b)", 5),
        ("1 < 2 <= 2", 1),
        ("1 == 2", 0),
        ("gcd(12, 18) + lcm(4, 6)", 18),
        ("factorial(5) + comb(5, 2)", 130),
        ("floor(7/2) + ceil(7/2) + abs(-1)", 8),
        ("sum(xs)", 6),
    ],
)
def test_values(text: str, value: Fraction) -> None:
    assert evaluate(text, {"a": 12, "b": 7, "xs": [1, 2, 3]}) == (value,)


def test_a_list_is_a_vector() -> None:
    assert evaluate("[a, a / 3]", {"a": 2}) == (Fraction(2), Fraction(2, 3))


@given(st.integers(-999, 999), st.integers(-999, 999), st.integers(1, 99))
def test_agrees_with_python(a: int, b: int, c: int) -> None:
    assert evaluate("(a - b) * c + a // c - b % c", {"a": a, "b": b, "c": c}) == ((a - b) * c + a // c - b % c,)


def test_our_solver_and_planner_conform() -> None:
    check_solver(solvers.margin)
    check_planner(planner("greedy"))
    check_planner(planner("optimal"))


class Cautious:
    """Somebody else's planner: buys what another would, and claims nothing."""

    name = "cautious"

    def plan(self, evaluator: Evaluator, goal: Order) -> Plan:
        found = planner("greedy").plan(evaluator, goal)
        return replace(found, method=self.name)


def test_a_third_partys_planner_joins() -> None:
    check_planner(Cautious())


class Spendthrift(Cautious):
    def plan(self, evaluator: Evaluator, goal: Order) -> Plan:
        return super().plan(evaluator, replace(goal, budget=goal.budget + 3.0))  # type: ignore[operator]


class Boastful(Cautious):
    def plan(self, evaluator: Evaluator, goal: Order) -> Plan:
        return replace(super().plan(evaluator, goal), gamma=1.5)


class Hopeful(Cautious):
    def plan(self, evaluator: Evaluator, goal: Order) -> Plan:
        found = super().plan(evaluator, goal)
        return replace(found, upper_bound=0.0)


@pytest.mark.parametrize(
    ("faulty", "words"), [(Spendthrift(), "spends"), (Boastful(), "says 1.5"), (Hopeful(), "the bound 0.0 is below")]
)
def test_a_planner_that_breaks_a_promise_is_told_which(faulty: Any, words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        check_planner(faulty)


def test_a_third_partys_solver_joins() -> None:
    def enumerating(B: Any, groups: Any, *, k: int) -> Any:
        return solvers.margin(B, groups, k=k, method="enumerate")

    check_solver(enumerating)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda found: {"lower": found.upper + 1.0, "value": found.upper + 1.0, "upper": found.upper + 1.0},
            "lower bound",
        ),
        (lambda found: {"lower": 0.0, "status": solvers.Status.EXACT}, "called exact"),
    ],
)
def test_a_solver_that_breaks_a_promise_is_told_which(change: Any, words: str) -> None:
    class Result:
        def __init__(self, found: Any, changed: Mapping[str, Any]) -> None:
            for name in ("lower", "upper", "value", "support", "direction", "status"):
                setattr(self, name, changed.get(name, getattr(found, name)))

    def faulty(B: Any, groups: Any, *, k: int) -> Any:
        found = solvers.margin(B, groups, k=k)
        return Result(found, change(found))

    with pytest.raises(AssertionError, match=words):
        check_solver(faulty)


def test_a_solver_must_not_touch_the_matrix() -> None:
    def careless(B: Any, groups: Any, *, k: int) -> Any:
        found = solvers.margin(np.array(B), groups, k=k)
        B[0, 0] += 1.0
        return found

    with pytest.raises(AssertionError, match="matrix was changed"):
        check_solver(careless)


class Echo(Model):
    """Somebody else's adapter: two methods, as the contract says."""

    name = "echo"

    @property
    def identity(self) -> Mapping[str, Any]:
        return {"adapter": "echo", "model": "none"}

    def attempt(self, request: Request) -> Attempt:
        return Attempt(
            Outcome.ANSWERED,
            "5",
            usage=Usage(calls=1, input_tokens=4, output_tokens=1),
            raw_request={"prompt": request.prompt},
            raw_response={"text": "5"},
        )


def test_a_third_partys_adapter_joins() -> None:
    check_model(Echo())


class Nameless(Echo):
    @property
    def identity(self) -> Mapping[str, Any]:
        return {}


class Wordy(Echo):
    def attempt(self, request: Request) -> Attempt:
        usage = Usage(calls=1, input_tokens=4, output_tokens=request.max_tokens + 1)
        return replace(super().attempt(request), usage=usage)


class Forgetful(Echo):
    def attempt(self, request: Request) -> Attempt:
        return replace(super().attempt(request), raw_request={})


class Deaf(Echo):
    def check(self, request: Request) -> None:
        pass


@pytest.mark.parametrize(
    ("faulty", "words"),
    [
        (Nameless(), "names no adapter"),
        (Wordy(), "more tokens"),
        (Forgetful(), "does not hold the prompt"),
        (Deaf(), "a grammar was ignored"),
    ],
)
def test_an_adapter_that_breaks_a_promise_is_told_which(faulty: Model, words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        check_model(faulty)


_MODULE = """
from rrf_design.models.scripted import ScriptedModel
from rrf_design.planning._greedy import Greedy
from rrf_design.responses._numeric import IntegerParser

def model(answer="7", *, slots=1):
    return ScriptedModel(lambda request: answer, name=f"acme {answer}", slots=slots)

def parser():
    return IntegerParser("last")

def planner():
    return Greedy("acme")

def no_model():
    return 7
"""
_OFFERS = """[rrf_design.models]
acme = acme_parts:model
acme-broken = acme_nowhere:model
acme-wrong = acme_parts:no_model
openai = acme_parts:model

[rrf_design.parsers]
acme = acme_parts:parser

[rrf_design.planners]
acme = acme_parts:planner
acme-broken = acme_nowhere:planner
"""
_USE = """
import json
import rrf_design as rrf
from rrf_design import models
from rrf_design.errors import RRFError
from rrf_design.planning.registry import planner
from rrf_design.responses import parsers

def refusal(call):
    try:
        return str(call())
    except RRFError as error:
        return str(error)

problem = rrf.Problem(
    nodes=[{"id": "a", "prompt": "?", "parser": "acme"}],
    anchors=[{"id": "x", "node": "a", "value": 8.0, "cost": 1.0}],
)
print(json.dumps({
    "names": models.names(),
    "answer": models.get("acme:8", slots=2).ask(models.Request("?")).text,
    "plain": models.get("acme").name,
    "parsed": list(parsers.get("acme").parse("it is 8").value),
    "plan": rrf.plan(problem, budget=1.0, method="acme").method,
    "run": rrf.acquire(problem, "acme:8", budget=1.0, method="acme", store="runs.sqlite").verdict.value,
    "refused": [refusal(lambda: models.get("acme-broken")), refusal(lambda: models.get("acme-wrong")),
                refusal(lambda: models.get("acme:8", slot=2)), refusal(lambda: planner("acme-broken")),
                refusal(lambda: models.get("acm"))],
}))
"""


def test_parts_of_another_package_are_found(tmp_path: Path) -> None:
    (tmp_path / "acme_parts.py").write_text(_MODULE)
    info = tmp_path / "acme_parts-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-parts\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(_OFFERS)
    root = str(Path(__file__).resolve().parents[2])
    done = subprocess.run(
        [sys.executable, "-c", _USE],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{tmp_path}"},
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert "acme" in found["names"]
    assert (found["answer"], found["plain"], found["parsed"]) == ("8", "acme 7", [8.0])
    assert (found["plan"], found["run"]) == ("acme", "checked")
    broken, wrong, option, planner, near = found["refused"]
    assert "model 'acme-broken': its package can't be loaded (No module named 'acme_nowhere')" in broken
    assert "gives a int, not a Model" in wrong
    assert "unknown option 'slot'; did you mean 'slots'?" in option
    assert "the package of 'acme-broken' can't be loaded" in planner
    assert "did you mean 'acme'?" in near


def test_options_after_the_first_two_are_keywords():
    for name in ("explain", "margin", "plan", "frontier", "portfolio", "certify", "repair", "acquire"):
        parameters = list(inspect.signature(getattr(rrf, name)).parameters.values())
        assert all(p.kind in (p.KEYWORD_ONLY, p.VAR_KEYWORD) for p in parameters[2:]), name


@pytest.mark.parametrize("verb", [rrf.plan, rrf.frontier, rrf.portfolio, rrf.certify, rrf.acquire, rrf.explain])
def test_an_unknown_keyword_is_refused_by_its_name(verb):
    problem = rrf.Problem(nodes=[{"id": "a"}], anchors=[{"id": "x", "node": "a", "value": 1.0}])
    with pytest.raises(TypeError, match="tyme_limit"):
        verb(problem, tyme_limit=3)


def test_what_repair_has_no_use_for_is_refused_and_not_ignored():
    problem = rrf.Problem(nodes=[{"id": "a"}], anchors=[{"id": "x", "node": "a", "value": 1.0}])
    with pytest.raises(rrf.InputError, match="resume"):
        rrf.repair(problem, {"a": 1.0}, resume="rows.jsonl")
    with pytest.raises(rrf.InputError, match="beta"):
        rrf.repair(problem, {"a": 1.0}, method="exact", beta=2.0)


def test_noise_and_its_short_forms_say_the_same():
    problem = rrf.Problem(
        k=1,
        nodes=[{"id": "a"}, {"id": "b"}, {"id": "c"}],
        relations=[{"id": "ab", "tail": "a", "head": "b"}, {"id": "bc", "tail": "b", "head": "c"}],
        anchors=[
            {"id": "x", "node": "a", "value": 1.0, "cost": 1.0},
            {"id": "y", "node": "c", "value": 1.0, "cost": 2.0},
        ],
    )
    short = rrf.repair(problem, {"a": 1, "b": 5, "c": 1}, select="all", epsilon=0.1)
    long = rrf.repair(problem, {"a": 1, "b": 5, "c": 1}, select="all", noise=Noise(0.1))
    assert (short.repaired, short.epsilon, short.verdict) == (long.repaired, long.epsilon, long.verdict)
    assert short.epsilon == 0.1
    both = rrf.certify(problem, "all", noise=Noise(sigma=0.1), confidence=0.9).document["noise"]
    assert both == rrf.certify(problem, "all", sigma=0.1, confidence=0.9).document["noise"]


def test_everything_that_takes_time_tells_its_progress_the_same_way(tmp_path):
    """progress(share, bounds, words): a share or None, two bounds or None, words or none."""
    from rrf_design.models.scripted import ScriptedModel
    from solvers import margin

    told = {}

    def listen(name):
        return lambda *news: told.setdefault(name, []).append(news)

    problem = rrf.Problem(
        k=1,
        nodes=[{"id": name, "prompt": "6 * 7?"} for name in "abcd"],
        relations=[{"id": a + b, "tail": a, "head": b} for a, b in ("ab", "bc", "cd", "da")],
        anchors=[{"id": f"x{name}", "node": name, "value": 42.0, "cost": 1.0} for name in "abcd"],
    )
    margin(problem.operator("all").matrix.toarray(), k=1, progress=listen("margin"))
    rrf.plan(problem, budget=2.0, method="optimal", progress=listen("plan"))
    rrf.frontier(problem, progress=listen("frontier"))
    certificate = rrf.certify(problem, "all", progress=listen("certify"))
    rrf.verify(certificate, progress=listen("verify"))
    rrf.repair(problem, dict.fromkeys("abcd", 42.0), select="all", progress=listen("repair"))
    one = ScriptedModel(lambda request: "42")
    rrf.acquire(problem, one, budget=4.0, store=tmp_path / "runs.sqlite", progress=listen("acquire"))
    many = {"one": problem, "two": problem}
    rrf.acquire(many, one, budget=4.0, store=tmp_path / "runs.sqlite", progress=listen("data set"))
    assert {"margin", "plan", "frontier", "certify", "acquire", "data set"} <= set(told)
    for name, news in told.items():
        for share, bounds, words in news:
            assert share is None or 0.0 <= share <= 1.0, name
            assert bounds is None or bounds[0] <= bounds[1] * (1 + 1e-12), name
            assert isinstance(words, str), name
    assert told["data set"][-1][0] == 1.0
