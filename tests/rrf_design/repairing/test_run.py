"""The one entry point: which method, which ε, and messages."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi

import rrf_design as rrf
import rrf_design.repairing


def test_no_module_hides_the_function(equality, answers):
    """Importing the room of repairs leaves the public name a function."""
    assert callable(rrf_design.repairing.repair)
    assert not callable(rrf_design.repairing)
    assert rrf.repair(equality("star"), answers(1, 1, 2, 1)).support == ("n2",)


class TestMessages:
    def test_method(self, equality, answers):
        with pytest.raises(rrf.InputError, match="unknown method 'exat'; did you mean 'exact'"):
            rrf.repair(equality("star"), answers(1, 1, 1, 1), method="exat")

    def test_epsilon(self, equality, answers):
        with pytest.raises(rrf.InputError, match="epsilon must be"):
            rrf.repair(equality("star"), answers(1, 1, 1, 1), epsilon=-1.0)

    def test_budget(self, equality, answers):
        with pytest.raises(rrf.InputError, match="k must be"):
            rrf.repair(equality("star"), answers(1, 1, 1, 1), k=0)

    def test_nothing_valid(self, equality, answers):
        with pytest.raises(rrf.InputError, match="nothing to repair"):
            rrf.repair(equality("star"), answers(None, None, None, None))

    def test_anchor_without_a_value(self, answers):
        problem = rrf.Problem(nodes=[{"id": "n0"}], anchors=[{"id": "a", "node": "n0"}])
        with pytest.raises(rrf.InputError, match="anchor 'a': no value is known yet"):
            rrf.repair(problem, answers(1))

    def test_responses_of_another_kind(self, equality):
        with pytest.raises(rrf.InputError, match="must map node ids"):
            rrf.repair(equality("star"), [1, 2, 3, 4])

    def test_numbers_whose_squares_overflow(self, equality, answers):
        with pytest.raises(rrf.InputError, match="squares overflow"):
            rrf.repair(equality("star"), answers(1e200, 1, 1, 1))

    def test_candidates_of_an_unknown_node(self, equality, answers):
        with pytest.raises(rrf.InputError, match="candidates: no node 'x'"):
            rrf.repair(equality("star"), answers(1, 1, 1, 1), candidates={"x": [1]})


def test_auto_follows_the_papers_algorithm(equality, answers):
    assert rrf.repair(equality("star"), answers(1, 1, 1, 1)).method == "exact"
    assert rrf.repair(equality("star"), answers(1, 1, 1, 1), candidates={"n0": [2]}).method.startswith("discrete")
    rng = np.random.default_rng(0)
    problem = rrf.from_matrix(rng.normal(size=(30, 40)), k=6)
    from rrf_design.repairing.fields import make_task
    from rrf_design.repairing.methods import choose

    operator = problem.operator()
    anchors = dict.fromkeys(operator.block_ids, 0.0)
    task, _ = make_task(problem, operator, dict.fromkeys(operator.node_ids, 0.0), given=rrf.Given(anchors=anchors))
    decoder, why = choose("auto", task)
    assert decoder.name == "convex"
    assert "not feasible" in why


def test_radius_comes_from_the_argument_the_problem_or_its_sigma(equality, answers):
    responses = answers(1, 1, 1, 1)
    assert rrf.repair(equality("star", epsilon=0.5), responses, epsilon=0.1).epsilon == 0.1
    assert rrf.repair(equality("star", epsilon=0.5), responses).epsilon == 0.5
    sigma = rrf.repair(equality("star", sigma=0.1, confidence=0.9), responses).epsilon
    assert sigma == pytest.approx(0.1 * chi.ppf(0.9, 3))
    plain = rrf.repair(equality("star"), responses)
    assert plain.epsilon == 0.0
    assert 0 < plain.tolerance < 1e-9


def test_selected_blocks_and_unopened_nodes(answers):
    problem = rrf.Problem(
        nodes=[{"id": "n0"}, {"id": "n1"}, {"id": "late", "cost": 1.0}],
        relations=[
            {"id": "r", "tail": "n0", "head": "n1"},
            {"id": "s", "tail": "n0", "head": "late", "cost": 1.0},
            {"id": "t", "tail": "n1", "head": "late", "cost": 1.0},
        ],
    )
    before = rrf.repair(problem, {"n0": 1, "n1": 2})
    assert before.certainty == "ambiguous"
    after = rrf.repair(problem, {"n0": 1, "n1": 2, "late": 1}, select=["s", "t"])
    assert after.support == ("n1",)
    assert after.selected == ("late", "s", "t") or after.selected == ("s", "t")
    with pytest.raises(rrf.InputError, match="not in this design"):
        rrf.repair(problem, {"n0": 1, "n1": 2, "late": 1})


def test_callers_objects_are_not_changed(equality):
    responses = {"n0": [1.0], "n1": np.array([1.0]), "n2": 5, "n3": 1}
    before = {key: np.array(value) for key, value in responses.items()}
    rrf.repair(equality("star"), responses)
    assert all(np.array_equal(before[key], responses[key]) for key in responses)


def test_large_sparse_field_with_two_errors():
    """Thousands of nodes: exact repair and its guarantee."""
    rng = np.random.default_rng(1)
    n = 1500
    edges = [(i, int(j)) for i in range(n) for j in rng.choice(n, 3, replace=False) if i != j]
    problem = rrf.Problem(
        nodes=[{"id": f"n{i}"} for i in range(n)],
        relations=[{"id": f"r{e}", "tail": f"n{a}", "head": f"n{b}"} for e, (a, b) in enumerate(edges)],
        k=2,
    )
    responses = {f"n{i}": 5.0 for i in range(n)}
    responses["n17"], responses["n1203"] = 9.0, 4.0
    fixed = rrf.repair(problem, responses)
    assert fixed.support == ("n17", "n1203")
    assert fixed.guaranteed
    assert fixed.certainty == "unique"
