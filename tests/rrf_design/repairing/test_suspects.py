"""Repair under a premise against plain enumeration: every set of units and checks, and all that each of them leaves open."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import rrf_design as rrf
from rrf_design.operators import Operator
from rrf_design.repairing import repair_many
from rrf_design.repairing.fields import with_anchor_values

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
    """Every explanation by k units and a checks: one field, and the directions in which it could move as well."""
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
        every = list(explanations(with_anchor_values(problem, operator, wrong), given, problem.k))
        verdicts.add(str(fixed.verdict))
        assert (fixed.verdict == "contradicted") == (not every), (seed, fixed.reason)
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
        if fixed.verdict == "certified":
            assert all(fixed.repaired[name] is not None for name in premise.wanted(names))
        named += bool(fixed.wrong_checks)
        assert set(fixed.wrong_checks) <= premise.suspects
    assert {"certified", "ambiguous"} <= verdicts
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
    assert (fixed.wrong_checks, fixed.support, fixed.verdict) == (("c2",), (), "certified")
    assert fixed.assumes.startswith("at most 1 of 2 answers and at most 1 of 4 checks are wrong")
    assert fixed.bounds == {"total": 0.0}
    alone = rrf.repair(problem.model_copy(update={"wrong_checks": 0}), {"total": 119.0, "again": 119.0})
    assert alone.verdict == "contradicted"


def test_methods_that_count_nodes_refuse() -> None:
    problem = rrf.Problem(nodes=[{"id": "a", "unit": "u"}, {"id": "b", "unit": "u"}, {"id": "c"}])
    for method in ("convex", "discrete", "majority"):
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
