"""The exact decoder, what failures are called, and designs that many fields share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import rrf_design as rrf
from rrf_design.errors import InputError
from rrf_design.operators import Operator
from rrf_design.premise import Parts
from rrf_design.repairing import Certainty, Failure, count_failures, repair_many
from rrf_design.repairing._engine import SharedDesign, _operator_key
from rrf_design.repairing._fields import _with_anchor_values


def test_two_disconnected_pairs_are_ambiguous(equality, answers):
    fixed = rrf.repair(equality("pairs"), answers(5, 5, 1, 2))
    assert fixed.certainty is Certainty.AMBIGUOUS
    assert not fixed.guaranteed
    assert fixed.error_bound is None
    assert fixed.gamma == 0.0
    explanations = {fixed.support, *(other.support for other in fixed.alternatives)}
    assert explanations == {("n2",), ("n3",)}
    assert {"n2", "n3"} == {fixed.support[0], fixed.alternatives[0].support[0]}
    assert "n2" in fixed.reason
    assert "n3" in fixed.reason


def test_at_zero_margin_the_nodes_that_cannot_be_told_apart_are_named(equality, answers):
    fixed = rrf.repair(equality("triangle"), answers(5, 5, 5, 8))
    assert fixed.indistinguishable == ("n3",)
    assert fixed.certainty is Certainty.AMBIGUOUS
    assert fixed.alternatives[0].support == ("n3",)
    assert fixed.alternatives[0].repaired == {"n3": None}
    assert fixed.alternatives[0].free == 1


def test_zero_margin_with_one_explanation_promises_nothing(equality, answers):
    """The isolate is unseen, but with the one allowed error found in the triangle it must be
    right.
    """
    fixed = rrf.repair(equality("triangle"), answers(5, 9, 5, 8))
    assert fixed.support == ("n1",)
    assert fixed.certainty is Certainty.UNIQUE_HERE
    assert not fixed.guaranteed


def test_more_errors_than_the_budget_are_unexplained(equality, answers):
    fixed = rrf.repair(equality("complete"), answers(1, 2, 3, 4))
    assert fixed.certainty is Certainty.UNEXPLAINED
    assert fixed.error_bound is None
    assert not fixed.guaranteed


def test_shared_error_needs_an_anchor(equality, answers):
    blind = rrf.repair(equality("star"), answers(19, 19, 19, 19), truth=answers(17, 17, 17, 17))
    assert blind.support == ()
    assert {"candidate absence", "shared error", "budget violation"} <= set(blind.failures)
    seen = rrf.repair(equality("star", anchors={0: 17.0}), answers(19, 19, 19, 19))
    assert seen.certainty is Certainty.UNEXPLAINED
    assert seen.diagnostics.anchor_residual + seen.diagnostics.relation_residual > 0


def test_noisy_stability_bound(equality, answers):
    fixed = rrf.repair(equality("complete", epsilon=0.02), answers(42.005, 42.0, 47.0, 41.995))
    assert fixed.support == ("n2",)
    assert fixed.error_bound == pytest.approx(2 * 0.02 / fixed.gamma, rel=1e-6)
    assert fixed.diagnostics.posterior_bound <= fixed.error_bound
    assert fixed.diagnostics.best_smaller > 0.02


def test_small_errors_inside_the_noise_are_bounded_not_unique(equality, answers):
    fixed = rrf.repair(equality("complete", epsilon=1.0), answers(42, 42, 42.4, 42))
    assert fixed.support == ()
    assert fixed.guaranteed
    assert abs(fixed.repaired["n2"][0] - 42) <= fixed.error_bound


def test_acceptable_error_is_part_of_the_guarantee(equality, answers):
    tight = rrf.repair(equality("complete", epsilon=0.1, delta=0.01), answers(42, 42, 47, 42))
    assert not tight.guaranteed
    assert "0.01" in tight.reason
    assert rrf.repair(equality("complete", epsilon=0.1, delta=1.0), answers(42, 42, 47, 42)).guaranteed


def test_two_errors_on_a_larger_field(equality, answers):
    problem = equality("ring", k=2)
    fixed = rrf.repair(problem, answers(3, 3, 9, 3, 3, -1, 3, 3))
    assert fixed.support == ("n2", "n5")
    assert fixed.guaranteed
    assert fixed.certainty is Certainty.UNIQUE


def test_corrupted_and_erased_together(equality, answers):
    """k = 1 corrupted and one erased: three nodes of eight, fewer than the ring needs for two
    corrupted.
    """
    problem = equality("ring", k=1)
    fixed = rrf.repair(problem, answers(3, 3, 9, 3, 3, {"status": "timeout"}, 3, 3))
    assert fixed.support == ("n2",)
    assert fixed.erased == {"n5": "timeout"}
    assert fixed.repaired["n5"] == pytest.approx((3.0,))
    assert fixed.guaranteed
    plain = problem.margin(k=2).value
    assert plain <= fixed.gamma <= problem.margin(k=1).value + 1e-12


@pytest.mark.parametrize("seed", range(3))
def test_recovery_with_noise_and_erasures(seed):
    """Over random typed fields: within 2ε/γ(k | R) of the truth, erased nodes included, wherever
    that margin is positive.
    """
    rng = np.random.default_rng(seed)
    positive = 0
    for _ in range(60):
        n = int(rng.integers(4, 8))
        B = rng.integers(-1, 2, size=(int(rng.integers(5, 14)), n)).astype(float)
        if not B.any():
            continue
        problem = rrf.from_matrix(B, k=1)
        operator = problem.operator()
        truth = rng.normal(size=n)
        epsilon = 0.05
        noise = rng.normal(size=operator.shape[0])
        noise *= epsilon * rng.random() / np.linalg.norm(noise)
        anchors = {name: float(x) for name, x in zip(operator.block_ids, operator.matrix @ truth + noise, strict=True)}
        responses = {f"n{i}": float(x) for i, x in enumerate(truth)}
        wrong, gone = rng.choice(n, size=2, replace=False)
        responses[f"n{wrong}"] += float(rng.normal())
        responses[f"n{gone}"] = None
        fixed = rrf.repair(problem, responses, anchors=anchors, epsilon=epsilon)
        assert fixed.certainty is not Certainty.UNEXPLAINED
        if fixed.error_bound is not None:
            positive += 1
            found = np.array([fixed.repaired[f"n{i}"][0] for i in range(n)])
            assert np.linalg.norm(found - truth) <= fixed.error_bound + 1e-9
    assert positive > 15


def test_fiber_metrics_are_respected():
    problem = rrf.Problem(
        nodes=[{"id": "a", "metric": 4.0}, {"id": "b"}, {"id": "c"}],
        relations=[
            {"id": "ab", "tail": "a", "head": "b"},
            {"id": "bc", "tail": "b", "head": "c"},
            {"id": "ac", "tail": "a", "head": "c"},
        ],
    )
    fixed = rrf.repair(problem, {"a": 9.0, "b": 2.0, "c": 2.0})
    assert fixed.support == ("a",)
    assert fixed.repaired["a"] == pytest.approx((2.0,))
    assert fixed.error["a"] == pytest.approx((7.0,))


def test_limits_are_said(equality, answers):
    rng = np.random.default_rng(0)
    problem = rrf.from_matrix(rng.normal(size=(30, 30)), k=4)
    operator = problem.operator()
    anchors = {name: float(x) for name, x in zip(operator.block_ids, rng.normal(size=30), strict=True)}
    fixed = rrf.repair(problem, dict.fromkeys(operator.node_ids, 0.0), anchors=anchors, method="exact", time_limit=0.0)
    assert fixed.certainty is Certainty.UNDECIDED
    assert not fixed.diagnostics.complete


@pytest.mark.parametrize("seed", range(3))
def test_claims_against_brute_force(seed):
    """Certain repairs are the truth, and ambiguous data really have two explanations; erasures and
    all.
    """
    rng = np.random.default_rng(70 + seed)
    seen = set()
    for _ in range(60):
        n, k = int(rng.integers(3, 6)), int(rng.integers(1, 3))
        B = rng.integers(-1, 2, size=(int(rng.integers(2, 9)), n)).astype(float)
        B = B[np.abs(B).sum(axis=1) > 0]
        if not len(B):
            continue
        problem = rrf.from_matrix(B, k=k)
        truth = rng.integers(-3, 4, size=n).astype(float)
        y = truth.copy()
        for i in rng.choice(n, size=int(rng.integers(0, k + 1)), replace=False):
            y[i] += rng.integers(1, 5)
        gone = [i for i in range(n) if rng.random() < 0.15][: n - 1]
        responses = {f"n{i}": None if i in gone else float(y[i]) for i in range(n)}
        anchors = dict(zip(problem.operator().block_ids, (B @ truth).tolist(), strict=True))
        fixed = rrf.repair(problem, responses, anchors=anchors)
        seen.add(fixed.certainty)
        assert fixed.certainty is not Certainty.UNEXPLAINED
        if fixed.certainty in (Certainty.UNIQUE, Certainty.BOUNDED, Certainty.UNIQUE_HERE):
            known = [i for i in range(n) if fixed.repaired[f"n{i}"] is not None]
            assert [fixed.repaired[f"n{i}"][0] for i in known] == pytest.approx(truth[known], abs=1e-6)
        else:
            assert several_explanations(B, y, truth, gone, k)
    assert {Certainty.UNIQUE, Certainty.AMBIGUOUS} <= seen


def several_explanations(B, y, truth, gone, k):
    """Whether more than one error on at most k answered nodes (and the erased ones) explains the
    data.
    """
    answered = [i for i in range(B.shape[1]) if i not in gone]
    s = B @ np.where(np.isin(np.arange(B.shape[1]), gone), 0.0, y) - B @ truth
    errors = []
    for part in combinations(answered, min(k, len(answered))):
        columns = [*part, *gone]
        e, _, rank, _ = np.linalg.lstsq(B[:, columns], s, rcond=1e-10)
        if np.linalg.norm(B[:, columns] @ e - s) < 1e-9:
            if rank < len(columns):
                return True
            full = np.zeros(B.shape[1])
            full[columns] = e
            errors.append(full)
    return any(not np.allclose(errors[0], other) for other in errors)


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
    assert (both.support, both.verdict) == (("b1", "b2"), "consistent")
    assert (both.repaired["b2"] or (0.0,))[0] == pytest.approx(1.0)
    assert both.assumes.startswith("at most 1 of 3 units is wrong")
    one = rrf.repair(problem, right | {"b2": 0.0})
    assert (one.support, one.verdict) == (("b2",), "consistent")
    silent = rrf.repair(problem, {**right, "b1": 0.0, "b2": None})
    assert (silent.support, tuple(silent.erased)) == (("b1",), ("b2",))
    assert silent.verdict != "contradicted"
    each = problem.model_copy(update={"nodes": [n.model_copy(update={"unit": None}) for n in problem.nodes]})
    assert rrf.repair(each, right | {"b1": 0.0, "b2": 0.0}).verdict == "contradicted", "two answers are more than one"


Array = NDArray[np.float64]


def generated(seed: int) -> rrf.Problem:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 6))
    nodes: list[dict[str, Any]] = [{"id": f"n{i}"} for i in range(n)]
    for node in nodes:
        if rng.random() < 0.5:
            node["unit"] = f"u{rng.integers(3)}"
    pairs = [(i, j) for i in range(n) for j in range(i) if rng.random() < 0.5]
    relations: list[dict[str, Any]] = [
        {"id": f"r{i}{j}", "tail": f"n{j}", "head": f"n{i}", "transport": {"scale": float(rng.choice([1, 2, -1]))}}
        for i, j in pairs
    ]
    anchors: list[dict[str, Any]] = [
        {"id": f"a{i}", "node": f"n{i}", "value": 0.0} for i in range(n) if rng.random() < 0.7
    ]
    settings: dict[str, Any] = {}
    if rng.random() < 0.6:
        settings["deliver"] = [f"n{i}" for i in sorted(rng.choice(n, size=int(rng.integers(1, 3)), replace=False))]
    if rng.random() < 0.5:
        settings["wrong_checks"] = 1
        for block in (*relations, *anchors):
            if rng.random() < 0.4:
                block["trusted"] = True
    return rrf.Problem(nodes=nodes, relations=relations, anchors=anchors, **settings)


def explanations(operator: Operator, given: dict[str, float], k: int) -> Iterator[tuple[Array, Array]]:
    """Every explanation by k units and a checks: one field, and the directions in which it could
    move as well.
    """
    premise, names = operator.premise, operator.node_ids
    answers = np.array([given.get(name, 0.0) for name in names])
    dense = operator.matrix.toarray()
    syndrome = dense @ answers - operator.target
    units = list(premise.partition(name for name in names if name in given).values())
    suspects = [j for j, name in enumerate(operator.block_ids) if name in premise.suspects]
    owner = np.repeat(np.arange(len(operator.block_ids)), np.diff(operator.block_offsets))
    for chosen in combinations(units, min(k, len(units))):
        inside = [names.index(n) for unit in chosen for n in unit] + [i for i, n in enumerate(names) if n not in given]
        for aside in combinations(suspects, min(premise.wrong_checks, len(suspects))):
            kept = ~np.isin(owner, aside)
            part = np.vstack([dense[kept][:, inside], np.zeros((1, len(inside)))])
            right = np.append(syndrome[kept], 0.0)
            found = np.linalg.lstsq(part, right, rcond=None)[0]
            if np.linalg.norm(part @ found - right) < 1e-9:
                error, moves = np.zeros(len(names)), np.zeros((len(names), len(inside)))
                error[inside] = found
                _, values, axes = np.linalg.svd(part, full_matrices=True)
                moves[inside] = axes.T
                yield answers - error, moves[:, int((values > 1e-9).sum()) :]


@pytest.mark.parametrize("block", range(8))
def test_values_are_those_on_which_all_explanations_agree(block: int) -> None:
    verdicts, named = set(), 0
    for seed in range(block * 25, block * 25 + 25):
        problem, rng = generated(seed), np.random.default_rng(9_000 + seed)
        operator = problem.operator()
        names, premise = operator.node_ids, operator.premise
        answers = dict.fromkeys(names, 0.0)
        units = list(premise.partition(names).values())
        for place in rng.permutation(len(units))[: int(rng.integers(0, 3))]:
            answers |= {name: float(rng.integers(1, 4)) for name in units[place] if rng.random() < 0.8}
        checks = [name for name in operator.block_ids if name in premise.suspects and name.startswith("a")]
        wrong = {str(rng.choice(checks)): 5.0} if checks and rng.random() < 0.5 else {}
        silent = {str(rng.choice(names))} if rng.random() < 0.2 else set()
        given = {name: value for name, value in answers.items() if name not in silent}
        fixed = rrf.repair(problem, {**given, **dict.fromkeys(silent)}, anchors=wrong or None)
        every = list(explanations(_with_anchor_values(problem, operator, wrong), given, problem.k))
        verdicts.add(str(fixed.verdict))
        if fixed.decided_by is not None:  # it wins over what was answered
            assert fixed.verdict == "checked"
            (wanted,) = problem.deliver or names
            (stated,) = [a.value for a in problem.anchors if a.id == fixed.decided_by]
            assert fixed.repaired[wanted] == pytest.approx(np.atleast_1d(wrong.get(fixed.decided_by, stated)))
        else:
            assert (fixed.verdict == "contradicted") == (not every), (seed, fixed.reason)
        if not every and fixed.decided_by is not None:
            continue
        if not every:
            assert not any(fixed.repaired.values())
            continue
        first = every[0][0]
        for i, name in enumerate(names):
            value = fixed.repaired[name]
            if value is not None and (premise.deliver is not None or premise.wrong_checks):
                assert value[0] == pytest.approx(first[i], abs=1e-6), (seed, name)
                assert all(abs(z[i] - first[i]) < 1e-7 for z, _ in every), (seed, name)
                assert all(np.abs(moves[i]).max(initial=0.0) < 1e-7 for _, moves in every), (seed, name)
        if fixed.verdict == "consistent":
            assert all(fixed.repaired[name] is not None for name in premise.wanted(names))
        named += bool(fixed.wrong_checks)
        assert set(fixed.wrong_checks) <= premise.suspects
    assert {"consistent", "ambiguous"} <= verdicts
    assert named > 0


def test_the_check_that_contradicts_the_rest_is_named() -> None:
    problem = rrf.Problem(
        nodes=[{"id": "total"}, {"id": "again"}],
        relations=[{"id": "same", "tail": "total", "head": "again"}],
        anchors=[{"id": f"c{i}", "node": "total", "value": v} for i, v in enumerate((119.0, 119.0, 109.0))],
        wrong_checks=1,
        deliver=["total"],
    )
    fixed = rrf.repair(problem, {"total": 119.0, "again": 119.0})
    assert (fixed.wrong_checks, fixed.support, fixed.verdict) == (("c2",), (), "consistent")
    assert fixed.assumes.startswith("at most 1 of 2 answers and at most 1 of 4 checks are wrong")
    assert fixed.bounds == {"total": 0.0}
    alone = rrf.repair(problem.model_copy(update={"wrong_checks": 0}), {"total": 119.0, "again": 119.0})
    assert alone.verdict == "contradicted"


def test_methods_that_count_nodes_refuse() -> None:
    problem = rrf.Problem(nodes=[{"id": "a", "unit": "u"}, {"id": "b", "unit": "u"}, {"id": "c"}])
    for method in ("convex", "discrete"):
        with pytest.raises(rrf.InputError, match=f"method {method}: it knows nothing of units"):
            rrf.repair(problem, {"a": 1.0, "b": 1.0, "c": 1.0}, method=method)
    suspect = rrf.Problem(nodes=[{"id": "a"}], anchors=[{"id": "x", "node": "a", "value": 1.0}], wrong_checks=1)
    with pytest.raises(rrf.InputError, match="checks that may be wrong"):
        rrf.repair(suspect, {"a": 1.0}, method="convex")


def test_too_many_sets_of_checks_are_refused() -> None:
    anchors = [{"id": f"a{i}", "node": "n", "value": 0.0} for i in range(60)]
    problem = rrf.Problem(nodes=[{"id": "n"}], anchors=anchors, wrong_checks=3)
    with pytest.raises(rrf.InputError, match="trusted = true"):
        rrf.repair(problem, {"n": 0.0})


def test_a_batch_is_repaired_as_each_field_is() -> None:
    problem = generated(3).model_copy(update={"wrong_checks": 1})
    names = problem.operator().node_ids
    fields = [{name: float((i * 7 + j) % 5 == 0) for j, name in enumerate(names)} for i in range(6)]
    batch = repair_many(problem, fields)
    for field, item in zip(fields, batch.items, strict=True):
        alone = rrf.repair(problem, field)
        assert (item.verdict, item.support, item.wrong_checks) == (alone.verdict, alone.support, alone.wrong_checks)
        assert item.repaired == alone.repaired


def failures(problem, responses, truth, **options):
    return set(rrf.repair(problem, responses, truth=truth, **options).failures)


def test_truth_gives_labels_and_changes_nothing_else(equality, answers) -> None:
    fixed = rrf.repair(equality("star"), answers(1, 1, 5, 1), truth=answers(1, 1, 1, 1))
    assert fixed.failures == ()
    assert fixed.truth_error == pytest.approx(0.0, abs=1e-9)
    plain = rrf.repair(equality("pairs"), answers(1, 1, 3, 1))
    told = rrf.repair(equality("pairs"), answers(1, 1, 3, 1), truth=answers(1, 1, 3, 3))
    assert plain.repaired == told.repaired
    assert plain.certainty == told.certainty


def test_labels(equality, answers):
    ones = answers(1, 1, 1, 1)
    assert failures(equality("star"), answers(2, 2, 2, 2), ones) >= {Failure.SHARED_ERROR, Failure.CANDIDATE_ABSENCE}
    assert Failure.BUDGET_VIOLATION in failures(equality("complete"), answers(1, 2, 5, 1), ones)
    assert Failure.MARGIN in failures(equality("triangle"), answers(1, 1, 1, 4), ones)
    assert failures(equality("triangle"), answers(1, 1, 1, 4), ones) == {Failure.MARGIN}
    gone = failures(equality("pairs"), answers(1, 1, {"status": "parse failure"}, 5), ones)
    assert Failure.PARSE_FAILURE in gone


def test_optimisation_only_when_the_information_sufficed(equality, answers):
    """The vote is fooled by two agreeing wrong answers of five; exact repair is not needed to see
    why.
    """
    wrong = rrf.repair(equality("complete"), answers(1, 1, 4, 1), method="discrete", mu=1e6, truth=answers(1, 1, 1, 1))
    assert set(wrong.failures) == {Failure.OPTIMISATION}


def test_representation_collision(equality, answers):
    ones = answers(1, 1, 1, 1)
    fixed = rrf.repair(equality("star"), ones, truth=ones, hidden={"n0": True, "n1": False})
    assert fixed.failures == (Failure.REPRESENTATION_COLLISION,)


def test_counts():
    assert count_failures([(Failure.MARGIN,), (), (Failure.MARGIN, Failure.PARSE_FAILURE)])["zero or low margin"] == 2


def without_time(item):
    return replace(item, diagnostics=replace(item.diagnostics, seconds=0.0, details={}), failures=(), truth_error=None)


def test_the_truth_changes_no_value_and_no_verdict(equality, answers):
    blind = rrf.repair(equality("complete"), answers(1, 1, 5, 1))
    told = rrf.repair(equality("complete"), answers(1, 1, 5, 1), truth=answers(2, 2, 2, 2))
    assert without_time(told) == without_time(blind)
    assert told.truth_error == pytest.approx(2.0)


def test_only_known_nodes_of_the_design_are_compared(equality, answers):
    fixed = rrf.repair(equality("complete"), answers(1, 1, 5, 1), truth={"n0": 1, "elsewhere": 7})
    assert fixed.truth_error == pytest.approx(0.0, abs=1e-9)
    assert fixed.failures == ()


def test_the_share_of_candidates_that_hold_the_truth(equality, answers):
    given = {"candidates": {f"n{i}": [1, 7] for i in range(4)}, "method": "discrete"}
    fixed = rrf.repair(equality("complete"), answers(7, 7, 7, 3), truth=answers(1, 1, 1, 9), **given)
    assert fixed.diagnostics.details["candidate_recall"] == 0.75


def problem(*, offset: Any = 0.0, first: Any = (1.0, 2.0), second: float | None = 5.0) -> rrf.Problem:
    """Noise of every kind: a sigma, a covariance, a family that shares its weight; one node and one
    anchor on sale.
    """
    return rrf.Problem(
        k=1,
        nodes=[{"id": "a", "dim": 2}, {"id": "b", "dim": 2}, {"id": "c", "cost": 1.0}],
        relations=[
            {"id": "r", "tail": "a", "head": "b", "offset": offset, "covariance": [[2.0, 1.0], [1.0, 3.0]]},
            {"id": "s", "tail": "b", "head": "a", "family": "f", "weight": 4.0},
            {"id": "t", "tail": "a", "head": "b", "family": "f", "weight": 4.0},
        ],
        anchors=[
            {"id": "x", "node": "a", "value": list(first), "sigma": 0.5},
            {"id": "y", "node": "c", "value": second, "cost": 2.0} if second is not None else {"id": "y", "node": "c", "cost": 2.0},
        ],
    )  # fmt: skip


def shared(own: rrf.Problem, held: frozenset[str], absent: frozenset[str]) -> SharedDesign:
    return SharedDesign(own, own.structure.holding(held, absent))


@pytest.mark.parametrize("held", [frozenset(), frozenset({"c"}), frozenset({"c", "y"})])
def test_it_is_the_item_s_own_operator(held: frozenset[str]) -> None:
    template = shared(problem(), held, frozenset())
    own = problem(offset=[0.5, -1.0], first=(3.0, 4.0), second=9.0)
    values: dict[str, Any] = {"r": (0.5, -1.0), "x": (3.0, 4.0)} | ({"y": (9.0,)} if "y" in held else {})
    cast = template.aimed(values)
    slow = own.operator(sorted(held))
    np.testing.assert_allclose(cast.matrix.toarray(), slow.matrix.toarray(), atol=1e-14)
    np.testing.assert_allclose(cast.target, slow.target, atol=1e-14)
    assert cast.block_ids == slow.block_ids
    assert template.key == _operator_key(template.operator)
    np.testing.assert_array_equal(template.operator.magnitudes.toarray(), abs(template.operator.matrix.toarray()))


def test_an_owned_anchor_may_be_absent() -> None:
    template = shared(problem(), frozenset(), frozenset({"x"}))
    assert "x" not in template.operator.block_ids
    assert template.aimed({}).target.tolist() == [0.0] * template.operator.shape[0]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "check 'x': no value is known"),
        ({"x": (1.0,)}, "is not a value for 2 rows"),
        ({"x": 1.0}, "is not a value for 2 rows"),
        ({"x": (1.0, 2.0), "r": (1.0, 2.0, 3.0)}, "is not a value for 2 rows"),
    ],
)
def test_values_that_do_not_fit(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        shared(problem(), frozenset(), frozenset()).aimed(values)


def test_one_number_is_the_offset_of_every_row_of_a_relation() -> None:
    template = shared(problem(), frozenset(), frozenset())
    both = [template.aimed({"x": (1.0, 2.0), "r": given}).target for given in (0.5, (0.5, 0.5))]
    np.testing.assert_array_equal(both[0], both[1])
