"""What a design knows once for all its fields. Repair under uncertain relations: nothing within the
declared uncertainty is called wrong, and bounds hold. What fields of one problem share is made
once, and is what each would have said alone. Answers that are all off a little: whoever is wrong
altogether is found, and no value is further off than promised.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design.goal import Goal
from rrf_design.noise import Noise
from rrf_design.repairing import engine, repair_many
from rrf_design.repairing.decoding import Decoding, _Grounds
from rrf_design.repairing.fields import make_task


def test_margin_with_and_without_erasures(equality):
    operator = equality("complete").operator()
    assert Decoding(operator, k=1).facts.gamma == pytest.approx(equality("complete").margin().value)
    erased = Decoding(operator, k=1, erased=(2,)).facts
    assert 0 < erased.lower <= erased.gamma < equality("complete").margin().value
    assert erased.method.startswith("erasures")


def test_undetermined_nodes(equality):
    design = Decoding(equality("pairs").operator(), k=1)
    assert design.undetermined((0,)) == frozenset()
    assert design.undetermined((0, 1)) == {0, 1}
    assert design.undetermined((0, 1, 2)) == {0, 1}


def test_unseen_errors(equality):
    triangle = Decoding(equality("triangle").operator(), k=1)
    assert triangle.unseen_nodes == (3,)
    assert [item.support for item in triangle.unseen(())] == [(3,)]
    assert triangle.unseen((0,)) == ()  # the budget is spent
    pairs = Decoding(equality("pairs").operator(), k=2)
    assert pairs.unseen(())[0].support in ((0, 1), (2, 3))
    assert set(pairs.unseen((0,))[0].support) == {0, 1}
    assert Decoding(equality("complete").operator(), k=1).unseen(()) == ()


def triangle(eta: float, **more: Any) -> rrf.Problem:
    pairs = [("a", "b"), ("b", "c"), ("c", "a")]
    relations = [{"id": x + y, "tail": x, "head": y, "uncertainty": eta} for x, y in pairs]
    anchors = [{"id": "fix", "node": "a", "value": 100.0}]
    return rrf.Problem(nodes=[{"id": n} for n in "abc"], relations=relations, anchors=anchors, **more)


def test_an_answer_within_the_declared_uncertainty_is_left_alone() -> None:
    fixed = rrf.repair(triangle(0.1), {"a": 100.0, "b": 105.0, "c": 100.0})
    assert fixed.support == ()
    assert fixed.repaired["b"] == (105.0,)
    assert fixed.epsilon > 5.0
    assert fixed.error_bound is not None
    assert fixed.error_bound > 5.0


def test_an_answer_far_beyond_it_is_found() -> None:
    fixed = rrf.repair(triangle(0.01), {"a": 100.0, "b": 400.0, "c": 100.0})
    assert fixed.support == ("b",)


def test_where_nothing_bounds_the_field_nothing_is_certified() -> None:
    fixed = rrf.repair(triangle(3.0), {"a": 100.0, "b": 100.0, "c": 100.0})
    assert (fixed.certainty, fixed.verdict) == ("undecided", "incomplete")
    assert "range" in fixed.reason
    assert fixed.error_bound is None


def test_ranges_bound_it_beforehand() -> None:
    problem = triangle(0.01)
    nodes = [node.model_copy(update={"range": (0.0, 200.0)}) for node in problem.nodes]
    ranged = problem.model_copy(update={"nodes": tuple(nodes)})
    answers = {"a": 100.0, "b": 100.0, "c": 100.0}
    assert rrf.repair(ranged, answers).epsilon <= rrf.repair(problem, answers).epsilon + 1e-9


@pytest.mark.parametrize("seed", range(30))
def test_bounds_hold_against_operators_within_their_radii(seed: int) -> None:
    """An attacker moves every uncertain block as far as it may, corrupts one answer, and is still
    within the bound.
    """
    rng = np.random.default_rng(seed)
    eta = float(rng.choice([0.01, 0.05, 0.1]))
    problem = triangle(eta, epsilon=0.5)
    truth = {"a": 100.0}
    shifts = {}
    for name, tail, head in (("ab", "a", "b"), ("bc", "b", "c")):
        error = rng.normal(size=2)
        error *= eta * rng.choice([0.0, 1.0]) / np.linalg.norm(error)
        shifts[name] = error
        truth[head] = truth[tail] * (1 - error[0]) / (1 + error[1])  # (1 + e1) z_head − (1 − e0) z_tail = 0
    if abs(truth["a"] - truth["c"]) > eta * np.hypot(truth["a"], truth["c"]) + 0.5:
        return  # then "ca" itself is broken by more than it may be
    answers = dict(truth)
    wrong = str(rng.choice(["b", "c"]))
    answers[wrong] += float(rng.choice([0.0, 3.0, 80.0]))
    fixed = rrf.repair(problem, answers)
    assert fixed.verdict != "contradicted"
    if fixed.error_bound is not None and all(value is not None for value in fixed.repaired.values()):
        left = np.array([fixed.repaired[n][0] - truth[n] for n in "abc"])  # type: ignore[index]
        assert np.linalg.norm(left) <= fixed.error_bound


def test_terms_are_those_of_the_goal_the_radius_and_the_premise(equality, answers):
    problem = equality("complete", sigma=0.1, confidence=0.9, delta=0.5, anchors={0: 1.0})
    task, _ = make_task(problem, problem.operator(), answers(1, 1, None, 1))
    grounds = _Grounds.of(task)
    assert grounds.goal == Goal(delta=0.5)
    assert grounds.wanted == pytest.approx(2 * task.radius.total / 0.5)
    assert grounds.assumes.startswith("at most 1 of 3 answers is wrong")
    assert grounds.sure == pytest.approx(0.9)


def test_terms_hold_for_the_same_problem_and_radius_only(equality, answers):
    problem = equality("complete", epsilon=0.1)
    operator = problem.operator()
    task, _ = make_task(problem, operator, answers(1, 1, 2, 1))
    again, _ = make_task(problem, operator, answers(1, 1, 3, 1), radius=task.radius)
    louder, _ = make_task(problem, operator, answers(1, 1, 3, 1), noise=Noise(epsilon=0.7))
    design = Decoding.of(task)
    grounds = design.grounds(task)
    assert design.grounds(again) is grounds
    assert design.grounds(louder) is not grounds
    assert "0.7" in design.grounds(louder).assumes
    assert "0.1" in design.grounds(task).assumes


def test_radius_and_terms_are_worked_out_once_for_many_fields(equality, answers, monkeypatch):
    """The cost of ten thousand small fields is that of what differs between them."""
    counts = {"radius": 0, "grounds": 0}
    plain_radius, plain_grounds = engine.radius_of, _Grounds.of

    def radius(*given):
        counts["radius"] += 1
        return plain_radius(*given)

    def grounds(task):
        counts["grounds"] += 1
        return plain_grounds(task)

    monkeypatch.setattr(engine, "radius_of", radius)
    monkeypatch.setattr(_Grounds, "of", staticmethod(grounds))
    problem = equality("complete", epsilon=0.1)
    found = repair_many(problem, [answers(i, i, i + 5.0, i) for i in range(40)])
    assert {item.support for item in found.items} == {("n2",)}
    chunks = 10  # of four fields
    assert counts == {"radius": chunks, "grounds": chunks}


def diffuse(rng: np.random.Generator, **settings: Any) -> tuple[rrf.Problem, dict[str, Any], dict[str, float]]:
    """A small field, its answers (one wrong, all off a little, as badly as declared) and the
    truth.
    """
    count, tail, epsilon = 5, 0.3, 0.1
    truth = rng.uniform(-5, 5, count)
    tied = [(i, j) for i in range(count) for j in range(i) if rng.random() < 0.8]
    gap = {pair: truth[pair[1]] - truth[pair[0]] for pair in tied}
    problem = rrf.Problem(
        nodes=[{"id": f"n{i}"} for i in range(count)],
        relations=[{"id": f"r{i}{j}", "tail": f"n{i}", "head": f"n{j}", "offset": float(gap[i, j])} for i, j in tied],
        anchors=[
            {"id": f"a{i}", "node": f"n{i}", "value": float(truth[i])} for i in range(count) if rng.random() < 0.7
        ],
        tail=tail,
        epsilon=epsilon,
        **settings,
    )
    dense = problem.operator().matrix.toarray()
    push = np.linalg.svd(dense)[2][0] if rng.random() < 0.5 else rng.standard_normal(count)
    answers = truth + tail * push / np.linalg.norm(push)
    answers[rng.integers(count)] += rng.choice([-1, 1]) * 10.0 ** rng.uniform(-1, 2)
    said = {f"n{i}": float(answers[i]) for i in range(count)}
    return problem, said, {f"n{i}": float(truth[i]) for i in range(count)}


@pytest.mark.parametrize("method", ["exact", "convex"])
@pytest.mark.parametrize("seed", range(25))
def test_the_promise_holds_whatever_the_small_errors_are(seed: int, method: str) -> None:
    problem, said, truth = diffuse(np.random.default_rng(seed), **({"deliver": ["n0", "n1"]} if seed % 4 == 0 else {}))
    fixed = rrf.repair(problem, said, method=method)
    assert fixed.verdict != "contradicted", fixed.reason  # the truth is an explanation
    standing = problem.design().standing(problem)
    assert rrf.certify(problem, budgets=() if seed % 4 else None).error_bound == pytest.approx(standing.error_bound)
    if fixed.error_bound is None:
        return
    wanted = problem.deliver or tuple(truth)
    off = [fixed.nearest[name][0] - truth[name] for name in wanted]  # type: ignore[index]
    assert np.linalg.norm(off) <= fixed.error_bound
    assert fixed.error_bound == pytest.approx(standing.error_bound, rel=1e-6)
    assert "all other answers together are off by at most 0.3" in fixed.assumes


def test_without_a_tail_the_same_answers_contradict_everything() -> None:
    problem, said, _ = diffuse(np.random.default_rng(3))
    assert rrf.repair(problem.model_copy(update={"tail": 0.0, "epsilon": 0.0}), said).verdict == "contradicted"


def test_certificates_promise_with_the_tail_and_are_re_proved() -> None:
    problem, _, _ = diffuse(np.random.default_rng(5), delta=50.0)
    made = rrf.certify(problem)
    part = made.document["error"]["tail"]
    gain = np.linalg.norm(problem.operator().matrix.toarray(), 2)
    assert part["norm"] == 0.3
    assert part["image"] == pytest.approx(0.3 * gain)
    assert made.error_bound == part["bound"] == pytest.approx(0.3 + 2 * (0.1 + 0.3 * gain) / made.gamma_lower)
    assert rrf.verify(made).valid
    assert made.standing is not None
    assert made.standing.reached == (made.error_bound <= 50.0)
