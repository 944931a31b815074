"""The baselines do what they are famous for, including what they get wrong."""

from __future__ import annotations

import pytest

import rrf_design as rrf
from rrf_design.planning import plan
from scenarios.kit import planner_baselines as planner_baselines
from scenarios.planner_comparison import counterexample


def test_degree_anchors_the_clique_and_leaves_the_pair_invisible():
    clique_and_pair = counterexample("clique and pair")
    assert plan(clique_and_pair, budget=1.0, method="degree").selected == ("a-c0",)
    assert plan(clique_and_pair, budget=1.0, method="degree").gamma == 0.0
    assert plan(clique_and_pair, budget=1.0, method="optimal").gamma > 0.6


@pytest.mark.parametrize(
    ("method", "first"), [("trace", "loud"), ("logdet", "fresh"), ("rank", "fresh"), ("qr", "fresh"), ("eopt", "fresh")]
)
def test_criteria_over_the_whole_operator(method, first):
    """`loud` repeats what is known already, with more energy; `fresh` sees something new."""
    problem = rrf.Problem(
        nodes=[{"id": "x"}, {"id": "y"}],
        anchors=[
            {"id": "own", "node": "x", "weight": 4.0},
            {"id": "loud", "node": "x", "weight": 9.0, "cost": 1.0},
            {"id": "fresh", "node": "y", "cost": 1.0},
        ],
    )
    assert plan(problem, budget=1.0, method=method).selected == (first,)


def test_random_depends_on_the_seed_only():
    pairs = counterexample("six pairs")
    one = plan(pairs, budget=6.0, method="random", seed=1)
    assert one == plan(pairs, budget=6.0, method="random", seed=1)


def test_greedy_on_the_margin_sees_no_single_gain_at_zero():
    pairs = counterexample("six pairs")
    assert plan(pairs, budget=6.0, method="margin").gamma == 0.0
