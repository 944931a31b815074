"""Discrete, convex and local decoders."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design.autodiff import value_and_jacobian
from rrf_design.noise import Noise
from rrf_design.repairing import calibrate
from rrf_design.repairing._discrete import (
    _build_energy,
    _close,
    _edit_price,
    _eliminate,
    _elimination_order,
    _Energy,
    _enumerate_fields,
    _Factor,
    _min_sum,
    moves,
    solve,
)
from rrf_design.repairing._fields import make_task
from rrf_design.repairing._local import _BentField, _TangentMargins
from rrf_design.repairing.contract import WorkSettings


def random_energy(rng, *, nodes=5, tree=False):
    sizes = rng.integers(2, 5, size=nodes)
    factors = [_Factor((i,), rng.random(sizes[i])) for i in range(nodes)]
    for i in range(1, nodes):
        j = int(rng.integers(0, i))
        factors.append(_Factor((j, i), rng.random((sizes[j], sizes[i]))))
    if not tree:
        factors.append(_Factor((0, 2, 4), rng.random((sizes[0], sizes[2], sizes[4]))))
        factors.append(_Factor((3, 1), rng.random((sizes[3], sizes[1]))))
    return _Energy(tuple(tuple((float(c),) for c in range(size)) for size in sizes), tuple(factors), ())


@pytest.mark.parametrize("seed", range(10))
def test_exact_solvers_agree_with_the_definition(seed):
    energy = random_energy(np.random.default_rng(seed))
    best = min(energy.value(choice) for choice in product(*map(range, energy.sizes)))
    choice, ties = _enumerate_fields(energy)
    assert energy.value(choice) == pytest.approx(best, rel=1e-12)
    assert ties == 1
    assert energy.value(_eliminate(energy)) == pytest.approx(best, rel=1e-12)
    solved = solve(energy, time_limit=None, seed=0)
    assert solved.complete
    assert energy.value(solved.choice) == pytest.approx(best, rel=1e-9)
    assert energy.value(solved.choice) - solved.gap <= best
    assert solved.gap < 1e-6
    assert energy.value(_min_sum(energy)) >= best - 1e-12


@pytest.mark.parametrize("seed", range(5))
def test_min_sum_is_exact_on_trees(seed):
    energy = random_energy(np.random.default_rng(100 + seed), tree=True)
    assert _min_sum(energy) == _enumerate_fields(energy)[0]


def test_low_treewidth_is_seen():
    path = _Energy(
        tuple(((0.0,), (1.0,)) for _ in range(40)),
        tuple(_Factor((i, i + 1), np.array([[0.0, 1.0], [1.0, 0.0]])) for i in range(39)),
        (),
    )
    assert _elimination_order(path)[1] == 4
    assert _eliminate(path) in ((0,) * 40, (1,) * 40)


def test_never_an_average(equality, answers):
    """Two answers of each kind: a continuous fit would say 15, the discrete one must choose an
    answer.
    """
    fixed = rrf.repair(
        equality("star", anchors={3: 20.0}, epsilon=0.1), answers(10, 10, 20, 20), method="discrete", k=2
    )
    assert {value[0] for value in fixed.repaired.values()} <= {10.0, 20.0}
    assert fixed.support == ("n0", "n1")


@pytest.mark.parametrize("solver", ["enumeration", "dynamic programming", "cp-sat", "min-sum"])
def test_solvers_by_name(solver, equality, answers):
    problem = equality("complete", epsilon=0.1)
    fixed = rrf.repair(problem, answers(1, 1, 3, 1), method="discrete", solver=solver)
    assert fixed.method == f"discrete, {solver}"
    assert fixed.support == ("n2",)
    assert (fixed.certainty == "heuristic") == (solver == "min-sum")


def test_unknown_solvers_and_deviations_are_refused(equality, answers) -> None:
    with pytest.raises(rrf.InputError, match="unknown discrete solver"):
        rrf.repair(equality("star"), answers(1, 1, 1, 1), method="discrete", solver="guess")
    with pytest.raises(rrf.InputError, match="deviation must be"):
        rrf.repair(equality("star"), answers(1, 1, 1, 1), method="discrete", deviation="squared")


def test_candidates_are_samples_and_what_they_become(equality, answers):
    problem = rrf.Problem(
        nodes=[{"id": "a"}, {"id": "b"}, {"id": "c"}],
        relations=[
            {"id": "ab", "tail": "a", "head": "b", "transport": {"scale": 3.0}},
            {"id": "bc", "tail": "b", "head": "c", "offset": 1.0},
        ],
    )
    task, _ = make_task(problem, problem.operator(), {"a": 2, "b": 9, "c": 10}, candidates={"a": [5]})
    energy = _build_energy(task)
    assert energy.candidates[0] == ((2.0,), (5.0,), (3.0,))  # its response, its sample, 9 / 3 from b
    assert (6.0,) in energy.candidates[1]
    assert (7.0,) in energy.candidates[2]
    capped, _ = make_task(
        problem, problem.operator(), {"a": 2, "b": 9, "c": 10}, work=WorkSettings(options={"most_candidates": 1})
    )
    assert _build_energy(capped).truncated == ("a", "b")


def test_what_candidates_assume_is_said_and_none_that_fits_leaves_it_open():
    """A value read from a text is assumed to be written there; where no such value fits, that may
    be what is wrong, and nothing is decided.
    """
    relations = [
        {"id": "same", "tail": "a", "head": "b"},
        {"id": "cents", "tail": "a", "head": "c", "transport": {"scale": 100}},
    ]
    problem = rrf.Problem(k=1, delta=0.01, nodes=[{"id": name} for name in "abc"], relations=relations)

    def repaired(a, b, c):
        return rrf.repair(problem, {"a": a, "b": b, "c": c}, candidates={"a": [40, 7.6, 47.6]}, method="discrete")

    written = repaired(9, 47.6, 4760)
    assert (written.verdict, written.repaired["a"], written.support) == ("consistent", (47.6,), ("a",))
    assert written.assumes.endswith("and a is one of 3 named values")
    for answers in ((9, 40, 4760), (8, 8, 4760), (8, 8, 800)):  # two wrong; the text lies; all agree on what is nowhere
        found = repaired(*answers)
        assert (found.verdict, found.repaired["a"]) == ("ambiguous", None)
        assert found.reason.startswith("none of the named values of a fits")
    more = {"anchors": [{"id": "clerk", "node": "a", "value": 8.0}], "deliver": ("a",)}
    sure = rrf.repair(
        rrf.Problem(k=1, delta=0.01, nodes=[{"id": name} for name in "abc"], relations=relations, **more),
        {"a": 8, "b": 8, "c": 800},
        candidates={"a": [40]},
        method="discrete",
    )
    assert (sure.verdict, sure.repaired["a"]) == ("checked", (8.0,))  # a check wins, and needs no candidate


def test_anchor_values_are_never_candidates(equality, answers):
    fixed = rrf.repair(equality("star", anchors={0: 17.0}), answers(19, 19, 19, 19), method="discrete")
    assert all(found == [(19.0,)] for found in map(list, fixed.diagnostics.details["candidates"].values()))
    assert fixed.certainty == "unexplained"
    assert set(fixed.repaired.values()) == {None}
    assert fixed.verdict == "incomplete"  # among these candidates nothing fits; that is no proof that nothing does


def test_candidate_recall(equality, answers):
    problem = equality("star", anchors={0: 17.0})
    truth = answers(17, 17, 17, 17)
    absent = rrf.repair(problem, answers(19, 19, 19, 19), method="discrete", truth=truth)
    assert absent.diagnostics.details["candidate_recall"] == 0.0
    assert "candidate absence" in absent.failures
    there = rrf.repair(problem, answers(19, 19, 19, 19), candidates={"n3": [17]}, truth=truth)
    assert there.method.startswith("discrete")
    assert there.diagnostics.details["candidate_recall"] == 1.0
    assert all(value == (17.0,) for value in there.repaired.values())


def test_prices_and_objectives_are_those_defined(equality, answers) -> None:
    problem = equality("star", anchors={0: 2.0})
    fixed = rrf.repair(problem, answers(1, 1, 1, 1), method="discrete", beta=0.5, mu=10.0)
    assert fixed.support == ()
    assert fixed.diagnostics.objective == pytest.approx(0.5 * 0.5 * 1.0)
    operator = equality("star").operator()
    noisy, _ = make_task(equality("star"), operator, answers(1, 1, 5, 1), noise=Noise(0.2))
    assert _edit_price(noisy) == pytest.approx(0.02)
    exact, _ = make_task(equality("star"), operator, answers(1, 1, 5, 1))
    assert 0 < _edit_price(exact) < 1e-5


@pytest.mark.parametrize("deviation", ["edit", "distance"])
def test_tables_add_up_to_the_formula(deviation):
    problem = rrf.Problem(
        nodes=[{"id": "a", "dim": 2, "metric": 4.0}, {"id": "b", "dim": 2}, {"id": "c"}],
        relations=[
            {"id": "r", "tail": "a", "head": "b", "transport": {"permute": [1, 0]}, "offset": [1.0, 0.0], "weight": 2.0}
        ],
        anchors=[
            {"id": "x", "nodes": ["b", "c"], "rows": [[1.0, 2.0, 3.0]], "value": 4.0, "sigma": 0.5},
            {"id": "y", "node": "c", "value": [1.0]},
        ],
    )
    responses = {"a": (1.0, 2.0), "b": (0.0, 1.0), "c": 2.0}
    options = {"beta": 0.7, "mu": 0.3, "deviation": deviation}
    task, _ = make_task(
        problem,
        problem.operator(),
        responses,
        candidates={"c": [5.0], "b": [(2.0, 2.0)]},
        work=WorkSettings(options=options),
    )
    energy = _build_energy(task)
    operator = problem.operator()
    anchor = np.repeat([kind == "anchor" for kind in operator.block_kinds], np.diff(operator.block_offsets))
    for choice in product(*map(range, energy.sizes)):
        field = {name: energy.candidates[i][choice[i]] for i, name in enumerate(operator.node_ids)}
        rows = operator.syndrome(field)
        distance = [np.linalg.norm(np.subtract(field[n], np.atleast_1d(responses[n]))) for n in field]
        edits = sum(distance) if deviation == "distance" else sum(d > 0 for d in distance)
        expected = 0.5 * rows[~anchor] @ rows[~anchor] + 0.35 * rows[anchor] @ rows[anchor] + 0.3 * edits
        assert energy.value(choice) == pytest.approx(expected)


def invoice(**settings):
    return rrf.Problem(
        nodes=[{"id": name} for name in ("net", "tax", "total")],
        relations=[{"id": "sum", "sum": ["net", "tax"], "head": "total"}],
        **settings,
    )


@pytest.mark.parametrize(("k", "counts"), [(1, (2, 2, 2)), (2, (2, 2, 2)), (3, (3, 3, 3))])
def test_sums_say_what_an_answer_should_have_been_and_stop_at_k(k, counts):
    task, _ = make_task(invoice(k=k), invoice(k=k).operator(), {"net": 100, "tax": 19, "total": 120})
    found, cut = _close(task)
    assert tuple(map(len, found)) == counts
    assert found[2][:2] == ((120.0,), (119.0,))
    assert not cut


def test_a_missing_answer_is_computed_from_the_others():
    fixed = rrf.repair(invoice(), {"net": 100, "tax": 19, "total": None}, method="discrete")
    assert fixed.nearest["total"] == (119.0,)


def test_too_many_combinations_are_said_to_be_cut(monkeypatch):
    monkeypatch.setattr("rrf_design.repairing._discrete.MOST_COMBINATIONS", 200)
    nodes = [{"id": f"p{i}"} for i in range(4)]
    problem = rrf.Problem(
        nodes=[*nodes, {"id": "t"}],
        relations=[{"id": "sum", "sum": [node["id"] for node in nodes], "head": "t"}],
    )
    said = {node["id"]: 1.0 for node in nodes} | {"t": 5.0}
    samples = {node["id"]: [0.0, 2.0, 3.0] for node in nodes}
    task, _ = make_task(problem, problem.operator(), said, candidates=samples)
    assert "t" in _close(task)[1]


def clique(rng, nodes, candidates):
    factors = [_Factor((i, j), rng.random((candidates, candidates))) for i in range(nodes) for j in range(i + 1, nodes)]
    return _Energy(tuple(tuple((float(c),) for c in range(candidates)) for _ in range(nodes)), tuple(factors), ())


def test_rounding_is_in_the_gap():
    energy = clique(np.random.default_rng(0), 5, 3)
    solved = solve(energy, time_limit=None, seed=0)
    assert solved.complete
    assert 0 <= solved.gap < 1e-9 * len(energy.factors)


def test_no_field_within_the_limit_is_an_error_that_says_so():
    energy = clique(np.random.default_rng(1), 12, 8)
    with pytest.raises(rrf.RetryLater, match="raise the time limit"):
        solve(energy, time_limit=0.0, seed=0)


@pytest.fixture
def task():
    problem = rrf.Problem(
        nodes=[{"id": "a", "dim": 2}, {"id": "b", "dim": 2}, {"id": "c", "dim": 1}, {"id": "d", "dim": 2}],
        relations=[
            {
                "id": "ab",
                "tail": "a",
                "head": "b",
                "transport": {"matrix": [[2.0, 1.0], [0.0, 1.0]]},
                "offset": [1.0, 0.0],
            },
            {"id": "bc", "tail": "b", "head": "c", "transport": {"select": [0]}},
            {"id": "bd", "tail": "d", "head": "b", "transport": {"scale": -1.0}},
        ],
    )
    valid = {"a": (1.0, 2.0), "b": (5.0, 2.0), "c": 5.0, "d": (-5.0, -2.0)}
    return make_task(problem, problem.operator(), valid)[0]


def test_moves_carry_valid_answers_to_valid_answers(task):
    found = moves(task)
    assert len(found) == 5  # a projection has no way back
    for move in found:
        np.testing.assert_allclose(move([np.array(task.values[move.sources[0]])]), task.values[move.target], atol=1e-12)


def test_relations_among_several_are_solved_for_each_of_their_nodes():
    problem = rrf.Problem(
        nodes=[{"id": "net"}, {"id": "tax"}, {"id": "total"}, {"id": "parts", "dim": 2}],
        relations=[
            {"id": "sum", "sum": ["net", "tax"], "head": "total", "offset": 1.0},
            {"id": "rate", "rows": {"net": [[0.5]], "tax": [[-2.0]]}, "offset": 3.0},
            {"id": "whole", "sum": ["parts"], "head": "total"},
        ],
    )
    valid = {"net": 14.0, "tax": 2.0, "total": 17.0, "parts": (10.0, 7.0)}
    task = make_task(problem, problem.operator(), valid)[0]
    found = moves(task)
    several = ["net", "tax", "total"]
    assert sorted(move.target for move in found) == sorted([*several, "net", "tax", "total"])  # no parts from their sum
    for move in found:
        said = [np.array(task.values[name]) for name in move.sources]
        np.testing.assert_allclose(move(said), task.values[move.target], atol=1e-12)


def test_positive_margin_but_convex_failure():
    """Kernel (1, 0.4, 0.4): exact repair succeeds with a guarantee, the relaxation edits two nodes
    and promises nothing.
    """
    B = np.linalg.svd(np.array([[1.0, 0.4, 0.4]]))[2][1:]
    problem = rrf.from_matrix(B, k=1)
    anchors = {"row0": 0.0, "row1": 0.0}
    responses = {"n0": 1.0, "n1": 0.0, "n2": 0.0}  # the valid field is zero
    exact = rrf.repair(problem, responses, anchors=anchors, method="exact")
    assert exact.gamma > 0
    assert exact.guaranteed
    assert exact.repaired["n0"] == pytest.approx((0.0,), abs=1e-12)
    convex = rrf.repair(problem, responses, anchors=anchors, method="convex", truth={"n0": 0.0, "n1": 0.0, "n2": 0.0})
    assert convex.support == ("n1", "n2")
    assert convex.certainty == "heuristic"
    assert not convex.guaranteed
    assert convex.failures == ("optimisation",)


def test_penalised_form(equality, answers):
    fixed = rrf.repair(equality("complete", epsilon=0.5), answers(1, 1, 4, 1), method="convex", penalty=0.1)
    assert fixed.method == "convex, penalised"
    assert fixed.diagnostics.details["penalty"] == 0.1
    assert fixed.support == ("n2",)
    assert (fixed.certainty, fixed.verdict) == (
        "bounded",
        "ambiguous",
    )  # within its bound, but others may explain it too
    wish = equality("complete", epsilon=0.5, delta=1.0)
    assert rrf.repair(wish, answers(1, 1, 4, 1), method="convex", penalty=0.1).verdict == "consistent"


def test_an_unconverged_run_says_so(equality, answers):
    fixed = rrf.repair(equality("ring", k=2), answers(1, 1, 4, 1, 1, 1, 0, 1), method="convex", max_iterations=1)
    assert not fixed.diagnostics.complete
    assert any("duality gap" in note for note in fixed.notes)


def test_weights_by_node(equality, answers):
    weights = answers(1.0, 1.0, 1.0, 1.0)
    assert rrf.repair(equality("complete"), answers(1, 1, 4, 1), method="convex", weights=weights).support == ("n2",)
    with pytest.raises(rrf.InputError, match="none for node 'n1'"):
        rrf.repair(equality("complete"), answers(1, 1, 4, 1), method="convex", weights={"n0": 1.0})


def test_radius_that_no_error_reaches():
    problem = rrf.Problem(
        nodes=[{"id": "a"}], anchors=[{"id": "x", "node": "a", "value": 0.0}, {"id": "y", "node": "a", "value": 2.0}]
    )
    with pytest.raises(rrf.InputError, match="raise epsilon"):
        rrf.repair(problem, {"a": 1.0}, method="convex", epsilon=0.5)
    assert rrf.repair(problem, {"a": 1.0}, method="exact", epsilon=0.5).certainty == "unexplained"


def test_large_sparse_field_is_repaired():
    rng = np.random.default_rng(0)
    n = 400
    edges = [(i, int(j)) for i in range(n) for j in rng.choice(n, 4, replace=False) if i != j]
    problem = rrf.Problem(
        nodes=[{"id": f"n{i}"} for i in range(n)],
        relations=[{"id": f"r{e}", "tail": f"n{a}", "head": f"n{b}"} for e, (a, b) in enumerate(edges)],
        k=1,
    )
    responses = {f"n{i}": 5.0 for i in range(n)}
    responses["n17"] = 9.0
    fixed = rrf.repair(problem, responses, method="convex")
    assert fixed.support == ("n17",)
    assert fixed.repaired["n17"] == pytest.approx((5.0,), abs=1e-6)


def test_by_truth_and_by_residual(equality, answers):
    problem = equality("ring", k=1, epsilon=0.05)
    truth = answers(*[5.0] * 8)
    fields = [{**truth, f"n{i}": 9.0, f"n{i + 1}": 5.02} for i in range(4)]
    by_truth = calibrate(problem, fields, truths=[truth] * 4)
    by_residual = calibrate(problem, fields)
    assert by_truth.criterion == "error"
    assert by_residual.criterion == "residual"
    for found in (by_truth, by_residual):
        assert found.penalty in found.grid
        assert min(found.scores) == found.scores[found.grid.index(found.penalty)]
    fixed = rrf.repair(problem, {**truth, "n6": 1.0}, method="convex", penalty=by_truth)
    assert fixed.support == ("n6",)
    assert fixed.diagnostics.details["penalty"] == by_truth.penalty


def test_a_calibration_field_is_refused(equality, answers):
    problem = equality("star")
    found = calibrate(problem, [answers(1, 1, 4, 1)])
    with pytest.raises(rrf.Refused, match="used to calibrate"):
        rrf.repair(problem, answers(1.0, 1.0, 4.0, 1.0), method="convex", penalty=found)
    with pytest.raises(rrf.Refused, match="used to calibrate"):
        rrf_repair_many(problem, [answers(2, 1, 1, 1), answers(1, 1, 4, 1)], found)


def rrf_repair_many(problem, fields, found):
    from rrf_design.repairing import repair_many

    return repair_many(problem, fields, method="convex", options={"penalty": found})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"fields": []}, "at least one held-out field"),
        ({"truths": []}, "0 truths for 1 fields"),
        ({"grid": [0.0]}, "positive numbers"),
    ],
)
def test_messages(arguments, message, equality, answers):
    fields = arguments.pop("fields", [answers(1, 1, 4, 1)])
    with pytest.raises(rrf.InputError, match=message):
        calibrate(equality("star"), fields, **arguments)


def room(**settings: Any) -> rrf.Problem:
    return rrf.Problem(
        nodes=[{"id": name} for name in ("width", "height", "area", "reworded")],
        nonlinear=[{"id": "rectangle", "product": ["width", "height"], "head": "area"}],
        relations=[{"id": "same", "tail": "area", "head": "reworded"}],
        anchors=[{"id": "plan", "node": "width", "value": 4.0}, {"id": "ruler", "node": "height", "value": 3.0}],
        **settings,
    )


SAID = {"width": 4, "height": 3, "area": 14, "reworded": 12}


def test_a_wrong_product_is_found_and_promised_nearby() -> None:
    fixed = rrf.repair(room(local_radius=0.5), SAID)
    assert fixed.verdict == "consistent"
    assert fixed.support == ("area",)
    assert fixed.repaired["area"] == pytest.approx((12.0,))
    assert fixed.error_bound == pytest.approx(0.0, abs=1e-9)
    assert "the truth lies within 0.5 of these values (a local promise)" in fixed.assumes
    assert fixed.reason.startswith("local: within 0.5")
    details = fixed.diagnostics.details
    assert details["scope"] == "local"
    assert 0 < details["estimated_curvature"] <= details["curvature"]


def test_noise_gives_a_bound_and_a_goal_decides() -> None:
    noisy = rrf.repair(room(local_radius=0.1, epsilon=0.01, delta=1.0), SAID)
    assert noisy.verdict == "consistent"
    assert noisy.error_bound == pytest.approx(0.02 / (0.618034 - 0.05 * 2**0.5), rel=1e-3)
    assert rrf.repair(room(local_radius=0.1, epsilon=0.01, delta=0.02), SAID).verdict == "incomplete"


@pytest.mark.parametrize(
    ("settings", "said", "verdict", "reason"),
    [
        ({}, SAID, "ambiguous", "without local_radius nothing is promised"),
        ({"local_radius": 5.0}, SAID, "ambiguous", "curvature takes the tangent margin"),
        (
            {"local_radius": 0.5},
            {**SAID, "width": 9, "reworded": 30},
            "incomplete",
            "that is no proof that there is none",
        ),
    ],
)
def test_what_is_not_promised(settings: dict[str, Any], said: dict[str, Any], verdict: str, reason: str) -> None:
    fixed = rrf.repair(room(**settings), said)
    assert fixed.verdict == verdict
    assert reason in fixed.reason
    assert fixed.error_bound is None
    if verdict == "incomplete":
        assert set(fixed.repaired.values()) == {None}


def test_bad_calls() -> None:
    with pytest.raises(rrf.InputError, match="node 'area': missing; a local repair needs an answer at every node"):
        rrf.repair(room(), {"width": 4, "height": 3, "reworded": 12})
    with pytest.raises(rrf.InputError, match="method: does not apply to the local repair"):
        rrf.repair(room(), SAID, method="convex")
    with pytest.raises(rrf.InputError, match="anchor 'x': no value is known yet"):
        rrf.repair(room().model_copy(update={"anchors": ({"id": "x", "node": "width"},)}), SAID)


def test_its_page_is_made_with_the_field_and_says_that_it_is_local() -> None:
    from rrf_design.repairing.contract import to_document
    from rrf_design.reporting.documents import read, render

    field = room(local_radius=0.5)
    made = render(read(to_document(rrf.repair(field, SAID)), problem=field))
    assert "a local promise" in made
    assert "Not drawn, since they are no rows of B: the nonlinear relations rectangle." in made


def shared(**settings: Any) -> rrf.Problem:
    """Three models on a room: one of them gave three answers."""
    return rrf.Problem(
        nodes=[{"id": name, "unit": "mini"} for name in ("width", "height", "area")]
        + [{"id": name, "unit": name} for name in ("other", "third")],
        nonlinear=[{"id": "rectangle", "product": ["width", "height"], "head": "area"}],
        relations=[
            {"id": "same", "tail": "area", "head": "other"},
            {"id": "also", "tail": "area", "head": "third"},
            {"id": "cross", "tail": "other", "head": "third"},
        ],
        anchors=[
            {"id": "plan", "node": "width", "value": 4.0},
            {"id": "ruler", "node": "height", "value": 3.0},
            {"id": "clerk", "node": "area", "value": 12.0},
        ],
        epsilon=0.01,
        local_radius=0.1,
        **settings,
    )


WRONG = {"width": 5, "height": 3, "area": 14, "other": 12, "third": 12}


def test_k_counts_units_and_only_what_is_delivered_decides() -> None:
    fixed = rrf.repair(shared(deliver=["area"], delta=0.1), WRONG)
    assert fixed.verdict == "consistent"
    assert fixed.support == ("width", "area")  # one unit
    assert fixed.assumes.startswith("at most 1 of 3 units is wrong")
    assert set(fixed.bounds) == {"area"}
    assert "away in what is delivered" in fixed.reason
    assert rrf.repair(shared(delta=0.1), WRONG).error_bound > fixed.error_bound
    alone = shared().model_copy(update={"nodes": tuple(n.model_copy(update={"unit": None}) for n in shared().nodes)})
    assert rrf.repair(alone, WRONG).verdict == "incomplete"  # two answers, each on its own


def test_a_wrong_check_is_named() -> None:
    base = shared(wrong_checks=1, deliver=["area"], delta=1.0)
    anchors = tuple(a.model_copy(update={"value": 13.0}) if a.id == "clerk" else a for a in base.anchors)
    right = {"width": 4, "height": 3, "area": 12, "other": 12, "third": 12}
    fixed = rrf.repair(base.model_copy(update={"anchors": anchors}), right)
    assert fixed.wrong_checks == ("clerk",)
    assert fixed.support == ()
    assert "and at most 1 of 7 checks are wrong" in fixed.assumes
    trusted = tuple(a.model_copy(update={"trusted": True}) for a in anchors)
    held = rrf.repair(base.model_copy(update={"anchors": trusted}), right)
    assert held.wrong_checks != ("clerk",)


PROBLEM = rrf.Problem(
    deliver=["area"],
    wrong_checks=1,
    nodes=[
        {"id": "width", "unit": "mini"},
        {"id": "other", "unit": "big"},
        {"id": "height", "unit": "mini"},
        {"id": "area", "unit": "mini"},
    ],
    nonlinear=[{"id": "rectangle", "product": ["width", "height"], "head": "area", "trusted": True}],
    relations=[{"id": "same", "tail": "area", "head": "other"}],
    anchors=[{"id": "plan", "node": "width", "value": 4.0}, {"id": "clerk", "node": "area", "value": 12.0}],
)
BENT_SAID = {"width": (4.0,), "other": (12.0,), "height": (3.0,), "area": (11.0,)}


def test_coordinates_come_unit_by_unit_and_back() -> None:
    field = _BentField.of(PROBLEM)
    assert list(field.place) == ["width", "height", "area", "other"]
    units = field.by_unit(BENT_SAID)
    assert units == {"mini": (4.0, 3.0, 11.0), "big": (12.0,)}
    assert field.by_node(units) == BENT_SAID
    assert field.residual(BENT_SAID) == pytest.approx(np.sqrt(1 + 1 + 1))


def test_what_is_set_aside_is_not_measured() -> None:
    field = _BentField.of(PROBLEM)
    operator = field.tangent(np.eye(4))
    assert operator.block_ids == ("same", "plan", "clerk", "rectangle")
    clerk = operator.block_ids.index("clerk")
    assert field.without([clerk]).residual(BENT_SAID) == pytest.approx(np.sqrt(2))


def test_margins_of_the_tangent_are_those_of_the_premise() -> None:
    field = _BentField.of(PROBLEM)
    _, jacobian = value_and_jacobian(field, np.array([4.0, 3.0, 12.0, 12.0]))
    operator = field.tangent(jacobian)
    assert operator.premise.suspects == {"same", "plan", "clerk"}
    assert field.bent == {"width", "height"}
    margins = _TangentMargins.of(operator, 1, field.bent)
    assert margins.value == 0.0  # the whole unit may move, and two of its checks may be wrong
    plain = _BentField.of(PROBLEM.model_copy(update={"wrong_checks": 0, "deliver": None}))
    alone = _TangentMargins.of(plain.tangent(jacobian), 1, plain.bent)
    assert alone.value == pytest.approx(float(np.linalg.svd(jacobian, compute_uv=False)[-1]))
    assert alone.near == alone.delivered


def test_a_coordinatewise_penalty_edits_coordinates_and_k_counts_nodes():
    """One coordinate of one node is wrong, the other rightly stands alone: nothing measures it but
    itself.
    """
    rng = np.random.default_rng(5)
    names = [f"n{i}" for i in range(5)]
    problem = rrf.Problem(
        nodes=[{"id": name, "dim": 3} for name in names],
        relations=[{"id": x + y, "tail": x, "head": y} for x, y in zip(names, names[1:] + names[:1], strict=True)],
        epsilon=0.2,
    )
    said = {name: [7.0, 8.0, 9.0] + 0.01 * rng.standard_normal(3) for name in names}
    said["n2"] = said["n2"] + [0.0, 5.0, 0.0]
    found = rrf.repair(problem, said, method="convex", options={"coordinatewise": True})
    grouped = rrf.repair(problem, said, method="convex")
    assert found.support == grouped.support == ("n2",)
    assert np.flatnonzero(found.error["n2"]).tolist() == [1]
    assert len(np.flatnonzero(grouped.error["n2"])) == 3
    assert "coordinatewise" in found.method
    assert found.verdict == grouped.verdict
    assert found.error_bound == grouped.error_bound
    weighted = dict.fromkeys(names, 1.0)
    same = rrf.repair(problem, said, method="convex", weights=weighted, options={"coordinatewise": True})
    assert same.support == ("n2",)
