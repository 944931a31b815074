"""Local repair: convergence, honest scope, certificates that include curvature."""

from __future__ import annotations

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design.repairing import finite_alternatives, log_coordinates, repair_nonlinear


def squares(z):
    """Chain b = a², c = b + a, d = a·b, all measured against each other."""
    a, b, c, d = z
    return [b - a * a, c - b - a, d - a * b, c - a - a * a]


def test_one_wrong_answer_is_found_and_fitted():
    fixed = repair_nonlinear(squares, {"a": 2.0, "b": 4.0, "c": 6.4, "d": 8.0}, k=1)
    assert fixed.support == ("c",)
    assert fixed.repaired["c"] == pytest.approx((6.0,), abs=1e-9)
    assert fixed.error["c"] == pytest.approx((0.4,), abs=1e-9)
    assert fixed.converged
    assert fixed.scope == "local"
    assert fixed.error_bound is None
    assert "nothing is certified" in fixed.reason


def test_given_jacobian_agrees_with_autodiff():
    def jacobian(z):
        a, b, _, _ = z
        return [[-2 * a, 1, 0, 0], [-1, -1, 1, 0], [-b, -a, 0, 1], [-1 - 2 * a, 0, 1, 0]]

    responses = {"a": 2.0, "b": 4.0, "c": 6.0, "d": 7.0}
    auto = repair_nonlinear(squares, responses, k=1)
    given = repair_nonlinear(squares, responses, k=1, jacobian=jacobian)
    assert given.support == auto.support == ("d",)
    assert given.repaired["d"] == pytest.approx(auto.repaired["d"])
    assert given.method == "gauss-newton, given jacobian"


def test_sine_is_refused_globally():
    """M(z) = sin z: tangent margin one at 0, and π fits as well."""

    def sine(z):
        return np.sin(z)

    with pytest.raises(rrf.Refused, match="0 and π fit equally well"):
        repair_nonlinear(sine, {"z": 0.1}, k=1, claim="global")
    near, far = (repair_nonlinear(sine, {"z": start}, k=1) for start in (0.1, 3.0))
    assert near.repaired["z"] == pytest.approx((0.0,), abs=1e-8)
    assert far.repaired["z"] == pytest.approx((np.pi,), abs=1e-8)
    assert near.gamma == far.gamma == pytest.approx(1.0)
    assert near.scope == far.scope == "local"


def test_certificate_includes_curvature():
    options = {"k": 1, "epsilon": 0.01, "jacobian_error": 0.0}
    fixed = repair_nonlinear(np.sin, {"z": 0.1}, curvature=1.0, radius=0.5, **options)
    assert fixed.error_bound == pytest.approx(2 * 0.01 / (1 - 0.25), rel=1e-6)
    assert fixed.error_bound >= 0.0
    eaten = repair_nonlinear(np.sin, {"z": 0.1}, curvature=1.0, radius=2.0, **options)
    assert eaten.error_bound is None
    assert "eaten" in eaten.reason


def test_boolean_clauses_have_their_global_answer_over_finite_domains():
    def clause(z):
        return [z[0] * z[1] - z[2], z[2] - 0.0]

    local = repair_nonlinear(clause, {"x": 1.0, "y": 0.1, "w": 0.0}, k=1)
    assert local.residual < 1e-8
    everything = finite_alternatives(clause, {"x": [0, 1], "y": [0, 1], "w": [0, 1]})
    assert len(everything) == 3  # and the local fit saw one of them
    with pytest.raises(rrf.InputError, match="million"):
        finite_alternatives(clause, {"x": range(101), "y": range(101), "w": range(101)})


def test_power_relations_are_linear_in_logarithms():
    problem = rrf.Problem(
        nodes=[{"id": "a"}, {"id": "b"}, {"id": "c"}],
        relations=[
            {"id": "ab", "tail": "a", "head": "b", "transport": {"scale": 2.0}},
            {"id": "bc", "tail": "b", "head": "c", "transport": {"scale": 0.5}},
            {"id": "ac", "tail": "a", "head": "c"},
        ],
        epsilon=1e-9,
    )
    fixed = rrf.repair(problem, log_coordinates({"a": 3.0, "b": 81.0, "c": 3.0}))
    assert fixed.support == ("b",)
    assert np.exp(fixed.repaired["b"][0]) == pytest.approx(9.0)
    with pytest.raises(rrf.InputError, match="'b' is not positive"):
        log_coordinates({"a": 1.0, "b": 0.0})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"responses": {}}, "the field is empty"),
        ({"responses": {"a": float("nan")}}, "must be finite"),
        ({"penalty": -1.0}, "penalty must be positive"),
        ({"jacobian": lambda z: [[1.0, 2.0]]}, "must be \\(1, 1\\)"),
        ({"residual": lambda z: [np.linalg.svd(z)]}, "give a jacobian"),
    ],
)
def test_messages(arguments, message):
    call = {"residual": lambda z: [z[0]], "responses": {"a": 1.0}, **arguments}
    residual, responses = call.pop("residual"), call.pop("responses")
    with pytest.raises(rrf.InputError, match=message):
        repair_nonlinear(residual, responses, k=1, **call)


@pytest.mark.parametrize("seed", range(40))
def test_clauses_of_a_file_are_decided_by_looking_at_every_assignment(seed):
    """Against the definition: all assignments, those with at most k other units, those that fit."""
    rng = np.random.default_rng(seed)
    names, k = "abcde", int(rng.integers(1, 3))
    clauses = []
    for at in range(int(rng.integers(4, 9))):
        literals = rng.choice(5, int(rng.integers(1, 4)), replace=False)
        clauses.append(
            {"id": f"c{at}", "clause": [("not " if rng.random() < 0.5 else "") + names[i] for i in literals]}
        )
    clauses.append({"id": "all", "clause": list(names)})
    wrong = int(rng.integers(2))
    nodes = [{"id": name, **({"unit": "u"} if rng.random() < 0.3 else {})} for name in names]
    anchors = [{"id": "x", "node": "a", "value": float(rng.integers(2))}] if rng.random() < 0.5 else []
    problem = rrf.Problem(nodes=nodes, nonlinear=clauses, anchors=anchors, k=k, wrong_checks=wrong, deliver=["b", "c"])
    said = {name: float(rng.integers(2)) if rng.random() < 0.95 else 0.5 for name in names}
    units = {node["id"]: node.get("unit", node["id"]) for node in nodes}

    def broken(field):
        held = [any((field[x.removeprefix("not ")] == 0) == x.startswith("not ") for x in c["clause"]) for c in clauses]
        return held.count(False) + sum(field["a"] != anchor["value"] for anchor in anchors)

    fitting = [
        field
        for field in finite_alternatives(lambda z: [0.0], {name: [0, 1] for name in names})
        if len({units[name] for name in names if field[name] != (said[name],)}) <= k
        and broken({name: value[0] for name, value in field.items()}) <= wrong
    ]
    found = rrf.repair(problem, said)
    assert found.method == "finite search"
    assert (found.verdict == "contradicted") == (not fitting)
    agreed = bool(fitting) and all(field[name] == fitting[0][name] for field in fitting for name in "bc")
    assert found.verdict.passes == agreed
    assert (found.error_bound == 0.0) == agreed
    for name in names:
        values = {field[name] for field in fitting}
        assert found.repaired[name] == (next(iter(values)) if len(values) == 1 else None)
    assert "every value is 0 or 1" in found.assumes


def test_nodes_that_no_clause_names_leave_it_to_the_local_repair():
    problem = rrf.Problem(
        nodes=[{"id": "a"}, {"id": "b"}, {"id": "score"}],
        nonlinear=[{"id": "c", "clause": ["a", "b"]}, {"id": "t", "threshold": "score", "at": 1.0, "head": "a"}],
    )
    assert "local" in rrf.repair(problem, {"a": 1.0, "b": 0.0, "score": 2.0}).method
