"""The one entry point: which method, which ε, and messages. Batches give what single repairs give,
share their factorisations, and don't depend on the number of processes. Which decoder is taken, and
what is refused rather than ignored.
"""

from __future__ import annotations

import pickle
from dataclasses import replace

import joblib
import numpy as np
import pytest
from scipy.stats import chi

import rrf_design as rrf
import rrf_design.repairing
from rrf_design.repairing import repair_many
from rrf_design.repairing._methods import METHODS, choose
from rrf_design.repairing.engine import RepairEngine
from rrf_design.repairing.fields import make_task


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
    from rrf_design.repairing._methods import choose
    from rrf_design.repairing.fields import make_task

    operator = problem.operator()
    anchors = dict.fromkeys(operator.block_ids, 0.0)
    task, _ = make_task(problem, operator, dict.fromkeys(operator.node_ids, 0.0), anchors=anchors)
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
    engine = RepairEngine()
    for field in random_fields(np.random.default_rng(3), 20, nodes=nodes):
        assert without_time(engine.repair_one(problem, field)) == without_time(rrf.repair(problem, field))
    assert 0 < len(engine._decodings) < 20


def test_ten_thousand_fields_share_one_design(equality):
    problem = equality("complete")
    fields = [{f"n{j}": float(i % 97) + 5.0 * (j == i % 4) for j in range(4)} for i in range(10_000)]
    batch = repair_many(problem, fields)
    assert batch.counts() == {"checked": 0, "consistent": 10_000, "ambiguous": 0, "incomplete": 0, "contradicted": 0}
    assert batch.designs == 1
    assert batch.guaranteed
    for i in (0, 1234, 9999):
        assert batch.items[i].support == (f"n{i % 4}",)
        assert batch.items[i].repaired[f"n{i % 4}"] == pytest.approx((float(i % 97),))


def test_workers_change_nothing(equality):
    """Two workers through joblib's threads (starting processes takes longer than all of this), and
    a trip through pickle.
    """
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


@pytest.mark.parametrize("method", ["convex", "discrete", "min-sum"])
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
    monkeypatch.setattr("rrf_design.repairing.repairs.CHUNK", 3)
    told = []
    repair_many(
        equality("complete"),
        [{f"n{j}": float(j == 0) for j in range(4)}] * 7,
        n_jobs=n_jobs,
        progress=lambda share, _, words: told.append((share, words)),
    )
    assert told[-1] == (1.0, "7 of 7 fields are finished: 7 consistent")
    assert told[0][0] < told[-1][0]


def test_fields_whose_relations_are_not_equally_uncertain_share_nothing() -> None:
    """The same B with another uncertainty has another radius: the bound of one field was given for
    the other.
    """

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


def task_of(problem, **more):
    operator = problem.operator()
    anchors = dict.fromkeys(operator.anchor_ids, 0.0)
    return make_task(problem, operator, dict.fromkeys(operator.node_ids, 0.0), anchors=anchors, **more)[0]


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


def test_each_field_of_a_batch_has_the_method_that_fits_it(equality, answers):
    """The second field has samples; it took the decoder of the first, which has none."""
    said = answers(1, 1, 4, 1)
    sampled = {**said, "n2": {"value": 4, "samples": [1, 2]}}
    batch = repair_many(equality("complete"), [said, sampled])
    assert [item.method for item in batch.items] == [
        rrf.repair(equality("complete"), one).method for one in (said, sampled)
    ]
    assert batch.items[0].method != batch.items[1].method
