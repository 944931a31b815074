"""Which decoder is taken, and what is refused rather than ignored."""

from __future__ import annotations

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design.repairing.fields import make_task
from rrf_design.repairing.methods import METHODS, choose


def task_of(problem, **more):
    operator = problem.operator()
    anchors = dict.fromkeys(operator.anchor_ids, 0.0)
    given = rrf.Given(anchors=anchors, **more)
    return make_task(problem, operator, dict.fromkeys(operator.node_ids, 0.0), given=given)[0]


@pytest.mark.parametrize("method", [name for name in METHODS if name != "auto"])
def test_every_method_is_found_by_its_name(method, equality):
    decoder, why = choose(method, task_of(equality("star")))
    assert why == ""
    assert decoder.name in (method, "discrete", "min-sum")


def test_auto_says_why(equality):
    assert choose("auto", task_of(equality("star")))[1].startswith("exact, because")
    assert choose("auto", task_of(equality("star"), candidates={"n0": [2]}))[1].startswith("discrete, because")
    matrix = np.random.default_rng(0).normal(size=(30, 40))
    assert choose("auto", task_of(rrf.from_matrix(matrix, k=6)))[0].name == "convex"


def test_units_are_known_to_the_exact_search_only():
    nodes = [{"id": name, "unit": unit} for name, unit in (("a", "u"), ("b", "u"), ("c", "v"), ("d", "w"))]
    relations = [{"id": f"r{i}", "tail": "a", "head": node["id"]} for i, node in enumerate(nodes[1:])]
    task = task_of(rrf.Problem(nodes=nodes, relations=relations))
    assert choose("auto", task)[0].name == "exact"
    with pytest.raises(rrf.InputError, match="method convex: it knows nothing of units"):
        choose("convex", task)


def test_an_option_of_another_method_is_named(equality, answers):
    with pytest.raises(rrf.InputError, match="method exact has no option 'mu'; it belongs to discrete"):
        rrf.repair(equality("star"), answers(1, 1, 1, 1), method="exact", mu=1.0)
