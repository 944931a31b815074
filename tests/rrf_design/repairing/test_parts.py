"""Units as parts: what is chosen from, and what of a wrong unit is named."""

from __future__ import annotations

import pytest

import rrf_design as rrf
from rrf_design.repairing.parts import Parts


def test_parts_hold_the_answered_nodes_of_a_unit() -> None:
    nodes = [{"id": "a", "unit": "u"}, {"id": "b"}, {"id": "c", "unit": "u"}]
    parts = Parts.of(rrf.Problem(nodes=nodes).operator(), erased=(2,))
    assert (parts.members, parts.known, parts.part_of) == (((0,), (1,), (2,)), (2,), (0, 1, 2))
    whole = Parts.of(rrf.Problem(nodes=nodes).operator())
    assert (whole.members, whole.part_of, whole.covering((2,))) == (((0, 2), (1,)), (0, 1, 0), (0,))


def test_a_unit_is_wrong_as_a_whole_and_only_what_was_edited_is_named() -> None:
    nodes = [{"id": f"{j}{o}", "unit": j} for j in "abc" for o in (1, 2)]
    relations = [{"id": f"own {j}", "tail": f"{j}1", "head": f"{j}2"} for j in "abc"]
    relations += [{"id": f"{a}{b}", "tail": f"{a}1", "head": f"{b}1"} for a, b in ("ab", "bc", "ac")]
    problem = rrf.Problem(nodes=nodes, relations=relations)
    right = {node["id"]: 1.0 for node in nodes}
    both = rrf.repair(problem, right | {"b1": 0.0, "b2": 0.0})
    assert (both.support, both.verdict) == (("b1", "b2"), "certified")
    assert (both.repaired["b2"] or (0.0,))[0] == pytest.approx(1.0)
    assert both.assumes.startswith("at most 1 of 3 units is wrong")
    one = rrf.repair(problem, right | {"b2": 0.0})
    assert (one.support, one.verdict) == (("b2",), "certified")
    silent = rrf.repair(problem, {**right, "b1": 0.0, "b2": None})
    assert (silent.support, tuple(silent.erased)) == (("b1",), ("b2",))
    assert silent.verdict != "contradicted"
    each = problem.model_copy(update={"nodes": [n.model_copy(update={"unit": None}) for n in problem.nodes]})
    assert rrf.repair(each, right | {"b1": 0.0, "b2": 0.0}).verdict == "contradicted", "two answers are more than one"
