"""Batches give what single repairs give, share their factorisations, and don't depend on the number of processes."""

from __future__ import annotations

import pickle
from dataclasses import replace

import joblib
import numpy as np
import pytest

import rrf_design as rrf
from rrf_design.repairing import repair_many
from rrf_design.repairing.batch import repair_like


def without_time(item):
    return replace(item, diagnostics=replace(item.diagnostics, seconds=0.0, details={}))


def random_fields(rng, count, *, nodes=4):
    fields = []
    for _ in range(count):
        field = {f"n{j}": 10.0 for j in range(nodes)}
        for j in rng.choice(nodes, size=int(rng.integers(0, 3)), replace=False):
            field[f"n{j}"] = None if rng.random() < 0.2 else float(rng.integers(0, 20))
        fields.append(field)
    return fields


@pytest.mark.parametrize(
    ("shape", "k", "nodes"), [("complete", 1, 4), ("pairs", 1, 4), ("triangle", 1, 4), ("ring", 2, 8)]
)
def test_agrees_with_single_repairs(shape, k, nodes, equality):
    problem = equality(shape, k=k, epsilon=0.01)
    fields = random_fields(np.random.default_rng(1), 60, nodes=nodes)
    batch = repair_many(problem, fields)
    assert len(batch.items) == 60
    for field, item in zip(fields, batch.items, strict=True):
        single = rrf.repair(problem, field)
        assert item.certainty == single.certainty
        assert item.guaranteed == single.guaranteed
        assert item.residual == pytest.approx(single.residual, abs=1e-9)
        assert item.erased == single.erased
        if single.guaranteed:
            assert item.support == single.support
            for node, value in single.repaired.items():
                assert item.repaired[node] == pytest.approx(value, abs=1e-9)
        assert len(item.alternatives) == len(single.alternatives)


@pytest.mark.parametrize(("shape", "k", "nodes"), [("complete", 1, 4), ("triangle", 1, 4), ("ring", 2, 8)])
def test_one_by_one_with_shared_designs_is_the_same_repair(shape, k, nodes, equality):
    problem = equality(shape, k=k, epsilon=0.01)
    designs = {}
    for field in random_fields(np.random.default_rng(3), 20, nodes=nodes):
        assert without_time(repair_like(problem, field, designs)) == without_time(rrf.repair(problem, field))
    assert 0 < len(designs) < 20


def test_ten_thousand_fields_share_one_design(equality):
    problem = equality("complete")
    fields = [{f"n{j}": float(i % 97) + 5.0 * (j == i % 4) for j in range(4)} for i in range(10_000)]
    batch = repair_many(problem, fields)
    assert batch.counts() == {"certified": 10_000, "ambiguous": 0, "incomplete": 0, "contradicted": 0}
    assert batch.designs == 1
    assert batch.guaranteed
    for i in (0, 1234, 9999):
        assert batch.items[i].support == (f"n{i % 4}",)
        assert batch.items[i].repaired[f"n{i % 4}"] == pytest.approx((float(i % 97),))


def test_workers_change_nothing(equality):
    """Two workers through joblib's threads (starting processes takes longer than all of this), and a trip through pickle."""
    problem = equality("complete")
    fields = random_fields(np.random.default_rng(2), 1200)
    fields = [field for field in fields if any(value is not None for value in field.values())]
    one = repair_many(problem, fields)
    with joblib.parallel_config(backend="threading"):
        two = repair_many(problem, fields, n_jobs=2)
    assert [without_time(item) for item in one.items] == [without_time(item) for item in two.items]
    assert one.designs == two.designs
    assert pickle.loads(pickle.dumps(one)) == one


def test_anchor_values_of_each_field(equality, answers):
    problem = equality("star", anchors={0: 0.0})
    batch = repair_many(problem, [answers(9, 5, 5, 5), answers(7, 7, 7, 8)], anchors=[{"a0": 5.0}, {"a0": [7.0]}])
    assert [item.support for item in batch.items] == [("n0",), ("n3",)]
    assert batch.designs == 1
    with pytest.raises(rrf.InputError, match="'r01' is not an anchor"):
        repair_many(problem, [answers(1, 1, 1, 1)], anchors=[{"r01": 1.0}])
    with pytest.raises(rrf.InputError, match="value has"):
        repair_many(problem, [answers(1, 1, 1, 1)], anchors=[{"a0": [1.0, 2.0]}])


def test_problems_with_equal_operators_share_a_design(equality, answers):
    problems = [equality("star", anchors={0: float(i)}) for i in range(6)]
    batch = repair_many(problems, [answers(i, i, i + 1, i) for i in range(6)])
    assert batch.designs == 1
    assert all(item.support == ("n2",) for item in batch.items)
    assert len({item.problem_digest for item in batch.items}) == 6


def test_faults_name_the_field(equality, answers):
    problem = equality("star")
    with pytest.raises(rrf.InputError, match=r"field 2: responses: no node 'x'"):
        repair_many(problem, [answers(1, 1, 1, 1), {"x": 1}])
    with pytest.raises(rrf.InputError, match="1 truths for 2 fields"):
        repair_many(problem, [answers(1, 1, 1, 1)] * 2, truth=[answers(1, 1, 1, 1)])


@pytest.mark.parametrize("method", ["convex", "discrete", "mode"])
def test_other_methods(method, equality, answers):
    batch = repair_many(equality("complete"), [answers(1, 1, 1, 4)] * 3, method=method)
    assert all(item.support == ("n3",) for item in batch.items)


def test_failures_are_counted(equality, answers):
    truth = answers(1, 1, 1, 1)
    batch = repair_many(equality("complete"), [answers(1, 1, 1, 4), answers(2, 2, 2, 2)], truth=[truth, truth])
    assert batch.failures()["shared error"] == 1
    assert batch.failures()["optimisation"] == 0


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_progress_counts_fields_and_certainties(n_jobs, equality, monkeypatch):
    monkeypatch.setattr("rrf_design.repairing.batch.CHUNK", 3)
    told = []
    repair_many(
        equality("complete"),
        [{f"n{j}": float(j == 0) for j in range(4)}] * 7,
        n_jobs=n_jobs,
        progress=lambda share, _, words: told.append((share, words)),
    )
    assert told[-1] == (1.0, "7 of 7 fields are finished: 7 certified")
    assert told[0][0] < told[-1][0]


def test_fields_whose_relations_are_not_equally_uncertain_share_nothing() -> None:
    """The same B with another uncertainty has another radius: the bound of one field was given for the other."""

    def problem(uncertainty: float) -> rrf.Problem:
        pairs = (("a", "b"), ("b", "c"), ("c", "a"))
        return rrf.Problem(
            k=1,
            epsilon=0.01,
            nodes=[{"id": name} for name in "abc"],
            relations=[{"id": x + y, "tail": x, "head": y, "uncertainty": uncertainty} for x, y in pairs],
            anchors=[{"id": "x", "node": "a", "value": 5.0}, {"id": "y", "node": "b", "value": 5.0}],
        )

    problems, answers = [problem(0.0), problem(0.05)], {"a": 5.0, "b": 5.0, "c": 5.3}
    together = repair_many(problems, [answers, answers]).items
    for one, field in zip(problems, together, strict=True):
        alone = rrf.repair(one, answers)
        assert (field.verdict, field.error_bound, field.epsilon) == (alone.verdict, alone.error_bound, alone.epsilon)
    assert together[1].error_bound > 10 * together[0].error_bound
