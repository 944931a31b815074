"""Which values are given: those that something vouches for."""

from __future__ import annotations

import rrf_design as rrf


def test_an_exact_check_is_the_value() -> None:
    problem = rrf.Problem(
        nodes=[{"id": "n"}, {"id": "m"}],
        relations=[{"id": "r", "tail": "n", "head": "m"}],
        anchors=[{"id": "sum", "node": "n", "value": 0.1, "weight": 3.0, "trusted": True}],
        epsilon=0.5,
    )
    fixed = rrf.repair(problem, {"n": 0.2, "m": 0.15})
    assert fixed.repaired["n"] == (0.1,)
    assert fixed.bounds["n"] == 0.0


def test_what_could_be_wrong_without_a_trace_is_not_given() -> None:
    """Two nodes that nothing touches: either may be wrong, though one error without a trace is enough to be ambiguous."""
    nodes = [{"id": name} for name in ("seen", "again", "third", "lost", "forgotten")]
    relations = [
        {"id": f"r{a}{b}", "tail": a, "head": b} for a, b in (("seen", "again"), ("again", "third"), ("third", "seen"))
    ]
    problem = rrf.Problem(nodes=nodes, relations=relations, anchors=[{"id": "x", "node": "seen", "value": 1.0}])
    fixed = rrf.repair(problem, {node["id"]: 1.0 for node in nodes})
    assert fixed.verdict == "ambiguous"
    assert {name for name, value in fixed.repaired.items() if value is None} == {"lost", "forgotten"}
    wanted = rrf.repair(problem.model_copy(update={"deliver": ("seen",)}), {node["id"]: 1.0 for node in nodes})
    assert wanted.verdict == "certified"
    assert {name for name, value in wanted.repaired.items() if value is None} == {"lost", "forgotten"}
    assert set(wanted.bounds) == {"seen"}


def test_a_method_that_lists_no_explanations_vouches_for_nothing_that_a_margin_does_not() -> None:
    """Two answers that agree against one: convex repairs the third, but the two may be the wrong unit's just as well."""
    names = ("a", "b", "c", "d")
    relations = [{"id": f"{x}{y}", "tail": x, "head": y} for x, y in (("a", "b"), ("b", "c"), ("c", "a"))]
    problem = rrf.Problem(k=2, nodes=[{"id": name} for name in names], relations=relations, anchors=[])
    fixed = rrf.repair(problem, {"a": 5.0, "b": 5.0, "c": 1.0, "d": 1.0}, method="convex")
    assert fixed.verdict == "ambiguous"
    assert set(fixed.repaired.values()) == {None}
