"""Repair of a problem: methods, records, and what may be believed."""

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
from rrf_design.repairing._decoding import Decoding
from rrf_design.repairing._engine import METHODS, RepairEngine, choose
from rrf_design.repairing._fields import make_task
from rrf_design.repairing._judgement import finish, judge
from rrf_design.repairing.contract import Candidate, Certainty, DecoderOutcome, Prepared


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
    from rrf_design.repairing._engine import choose
    from rrf_design.repairing._fields import make_task

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
        assert without_time(engine.repair([engine.prepared(problem, field)])[0]) == without_time(
            rrf.repair(problem, field)
        )
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
    monkeypatch.setattr("rrf_design.repairing._repairs.CHUNK", 3)
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


@pytest.fixture
def case(equality, answers):
    problem = equality("complete", epsilon=0.1)
    task, _ = make_task(problem, problem.operator(), answers(1, 1, 5, 1))
    error = np.array([0.0, 0.0, 4.0, 0.0])
    outcome = DecoderOutcome(error=error, method="exact", explanations=(Candidate((2,), 0.0, error),), proved=True)
    return task, outcome, Decoding.of(task)


def certainty(task, outcome, design, *, support=(2,), residual=0.0):
    return judge(task, outcome, design, support=support, residual=residual)


def test_table_of_verdicts(case):
    task, outcome, design = case
    two = (*outcome.explanations, Candidate((1,), 0.0, outcome.error))
    assert certainty(*case).certainty is Certainty.UNIQUE
    assert certainty(task, replace(outcome, explanations=two), design).certainty is Certainty.BOUNDED
    assert certainty(task, replace(outcome, complete=False), design).certainty is Certainty.BOUNDED
    assert certainty(task, replace(outcome, proved=False), design).certainty is Certainty.BOUNDED
    assert certainty(task, replace(outcome, edge=True), design).certainty is Certainty.UNDECIDED
    assert certainty(task, replace(outcome, heuristic=True), design).certainty is Certainty.HEURISTIC
    assert certainty(*case, residual=0.2).certainty is Certainty.UNEXPLAINED
    late = certainty(task, replace(outcome, complete=False), design, residual=0.2)
    assert late.certainty is Certainty.UNDECIDED
    assert certainty(*case, support=(1, 2)).certainty is Certainty.HEURISTIC


def test_only_unique_and_bounded_have_a_bound(case):
    task, outcome, design = case
    assert certainty(*case).error_bound is not None
    for other in (replace(outcome, edge=True), replace(outcome, heuristic=True)):
        assert certainty(task, other, design).error_bound is None


def test_a_margin_that_was_not_proved_positive_is_undecided(case):
    task, outcome, design = case
    design.__dict__["facts"] = replace(design.facts, lower=0.0, others=0.0)
    verdict = certainty(task, outcome, design)
    assert verdict.certainty is Certainty.UNDECIDED
    assert "not proved positive" in verdict.reason


def test_rounding_counts_where_the_margin_is_tiny(case):
    task, outcome, design = case
    design.__dict__["facts"] = replace(design.facts, lower=1e-11, gamma=1e-11)
    exact = replace(task, epsilon=0.0, tolerance=1e-12)
    assert certainty(exact, outcome, design).error_bound == pytest.approx(0.2)


def test_supports_that_could_not_be_decided_keep_who_is_wrong_open(case):
    task, outcome, design = case
    open_ = replace(outcome, undecided=((0, 1),))
    verdict = certainty(task, open_, design)
    assert verdict.certainty is Certainty.BOUNDED  # the values are within the bound whoever is wrong
    assert "{n0, n1} may explain the data too" in verdict.reason
    none = certainty(task, replace(open_, explanations=()), design, residual=0.2)
    assert none.certainty is Certainty.UNDECIDED


def test_a_proof_outranks_the_last_rounding_of_the_residual(case):
    task, outcome, design = case
    radius = task.epsilon + task.tolerance
    assert certainty(*case, residual=np.nextafter(radius, 1.0)).certainty is Certainty.UNIQUE
    unproved = replace(outcome, proved=False, explanations=())
    assert certainty(task, unproved, design, residual=np.nextafter(radius, 1.0)).certainty is Certainty.UNEXPLAINED


def test_explanations_on_the_edge_are_said_to_be(case):
    task, outcome, design = case
    two = (*outcome.explanations, Candidate((1,), 0.1, outcome.error, edge=True))
    assert "within ε or on its edge" in certainty(task, replace(outcome, explanations=two), design).reason


def test_what_fits_nothing_has_no_values_and_a_next_step(equality, answers):
    fixed = rrf.repair(equality("complete"), answers(1, 2, 5, 9))
    assert fixed.verdict == "contradicted"
    assert set(fixed.repaired.values()) == {None}
    assert (fixed.support, fixed.error, fixed.alternatives) == ((), {}, ())
    assert "No values are given: look at r03" in fixed.reason
    assert fixed.nearest != fixed.repaired
    assert fixed.blamed


def test_finishing_twice_with_one_design_gives_one_repair(equality, answers):
    """What a design remembers changes nothing: the slow way makes it anew each time."""
    problem = equality("complete", epsilon=0.05, delta=1.0)
    shared = None
    for wrong in range(4):
        values = [1.0] * 4
        values[wrong] = 6.0
        task, field = make_task(problem, problem.operator(), answers(*values))
        outcome = choose("exact", task)[0].decode(task)
        shared = shared or Decoding.of(task)
        one = Prepared(task, field, "", "")
        again = finish(one, task, outcome, Decoding.of(task), seconds=0.0)
        assert finish(one, task, outcome, shared, seconds=0.0) == again


def test_a_repair_owns_its_witness(equality, answers):
    problem = equality("complete")
    task, field = make_task(problem, problem.operator(), answers(1, 1, 5, 1))
    design = Decoding.of(task)
    outcome = choose("exact", task)[0].decode(task)
    first, second = (finish(Prepared(task, field, "", ""), task, outcome, design, seconds=0.0) for _ in range(2))
    assert first.witness == second.witness
    assert first.witness is not second.witness


def test_an_unread_answer_is_named_where_the_goal_is_missed(equality, answers):
    fixed = rrf.repair(equality("star", epsilon=0.1, delta=0.2), answers(1, 1, None, 1))
    assert fixed.verdict == "incomplete"
    assert fixed.reason.startswith("There is no readable answer of n2; ")


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
    """Two nodes that nothing touches: either may be wrong, though one error without a trace is
    enough to be ambiguous.
    """
    nodes = [{"id": name} for name in ("seen", "again", "third", "lost", "forgotten")]
    relations = [
        {"id": f"r{a}{b}", "tail": a, "head": b} for a, b in (("seen", "again"), ("again", "third"), ("third", "seen"))
    ]
    problem = rrf.Problem(nodes=nodes, relations=relations, anchors=[{"id": "x", "node": "seen", "value": 1.0}])
    fixed = rrf.repair(problem, {node["id"]: 1.0 for node in nodes})
    assert fixed.verdict == "ambiguous"
    assert {name for name, value in fixed.repaired.items() if value is None} == {"lost", "forgotten"}
    wanted = rrf.repair(problem.model_copy(update={"deliver": ("seen",)}), {node["id"]: 1.0 for node in nodes})
    assert (wanted.verdict, wanted.decided_by) == ("checked", "x")
    assert {name for name, value in wanted.repaired.items() if value is None} == {"lost", "forgotten"}
    assert set(wanted.bounds) == {"seen"}


def test_a_method_that_lists_no_explanations_vouches_for_nothing_that_a_margin_does_not() -> None:
    """Two answers that agree against one: convex repairs the third, but the two may be the wrong
    unit's just as well.
    """
    names = ("a", "b", "c", "d")
    relations = [{"id": f"{x}{y}", "tail": x, "head": y} for x, y in (("a", "b"), ("b", "c"), ("c", "a"))]
    problem = rrf.Problem(k=2, nodes=[{"id": name} for name in names], relations=relations, anchors=[])
    fixed = rrf.repair(problem, {"a": 5.0, "b": 5.0, "c": 1.0, "d": 1.0}, method="convex")
    assert fixed.verdict == "ambiguous"
    assert set(fixed.repaired.values()) == {None}


def declared(*, range=None, **settings):
    """Three answers that should be equal; the first relation is off by at most a tenth."""
    return rrf.Problem(
        k=1,
        nodes=[{"id": name} if range is None else {"id": name, "range": range} for name in "abc"],
        relations=[
            {"id": "ab", "tail": "a", "head": "b", "uncertainty": 0.1},
            {"id": "bc", "tail": "b", "head": "c"},
            {"id": "ca", "tail": "c", "head": "a"},
        ],
        anchors=[{"id": "known", "node": "a", "value": 100.0}],
        **settings,
    )


@pytest.mark.parametrize(
    ("bounds", "premise", "reason"),
    [
        ({"amplitude": 1.0}, "the true field is at most 1 long", "amplitude = 1 is declared"),
        ({"range": (0.0, 70.0)}, "lie in their ranges", "range = [0, 70] is declared"),
        ({"range": (150.0, 160.0)}, "lie in their ranges", "range = [150, 160] is declared"),
    ],
)
def test_a_field_that_breaks_what_is_declared_of_it_contradicts_it(bounds, premise, reason):
    found = rrf.repair(declared(**bounds), {"a": 100, "b": 105, "c": 100})
    assert found.verdict == "contradicted"
    assert found.error_bound is None
    assert set(found.repaired.values()) == {None}
    assert premise in found.assumes
    assert reason in found.reason


def test_what_is_declared_of_the_field_is_a_premise_where_it_holds():
    found = rrf.repair(declared(amplitude=142.0), {"a": 100, "b": 105, "c": 100})
    assert found.verdict == "consistent"
    assert "on the nodes of uncertain blocks the true field is at most 142 long" in found.assumes
    near = rrf.repair(declared(amplitude=141.0), {"a": 100, "b": 105, "c": 100})  # 141.42, within its error bound
    assert near.verdict == "consistent"
    certain = rrf.repair(declared(range=(0.0, 90.0)).model_copy(update={"relations": ()}), {"a": 100})
    assert "range" not in certain.assumes  # nothing is uncertain, so no bound rests on it


def test_a_given_amplitude_is_the_premise_in_place_of_the_declared_one():
    found = rrf.repair(declared(amplitude=500.0), {"a": 100, "b": 105, "c": 100}, amplitude=1.0)
    assert found.verdict == "contradicted"
    assert "at most 1 long" in found.assumes


@pytest.mark.parametrize("noise", [{"epsilon": 0.3}, {"sigma": 0.1}])
def test_a_check_decides_a_value_no_better_than_its_rows_are(noise):
    """Rows may be off by epsilon, that of the check too: checked, and not with an error of 0."""
    content = {
        "nodes": [{"id": "a"}, {"id": "b"}],
        "relations": [{"id": "r", "tail": "a", "head": "b"}],
        "deliver": ["a"],
    }

    def fixed(**settings):
        anchor = {"id": "x", "node": "a", "value": 1.0, **settings.pop("anchor", {})}
        return rrf.repair(rrf.Problem(**content, anchors=[anchor], **settings), {"a": 1.1, "b": 1.0})

    noisy = fixed(**noise)
    assert (noisy.verdict, noisy.decided_by) == ("checked", "x")
    assert noisy.bounds["a"] == noisy.error_bound > 0.1
    assert "x is right, up to noise of " in noisy.assumes
    assert fixed(delta=0.05, **noise).decided_by is None  # too noisy to decide what was asked for
    assert fixed(anchor={"trusted": True}, **noise).error_bound == 0.0
    assert fixed(anchor={"weight": 0.25}, **noise).error_bound == pytest.approx(2 * noisy.error_bound)
    assert fixed().error_bound == 0.0
