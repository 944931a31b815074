"""Fields become tasks, decoders keep one contract; programs and nonlinear relations."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, fields
from typing import Any

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design.goal import Goal
from rrf_design.noise import Noise
from rrf_design.repairing import METHODS, Repair, read_responses, repair_many, to_document
from rrf_design.repairing import _engine as engine
from rrf_design.repairing._decoding import Decoding, _Grounds
from rrf_design.repairing._fields import _with_anchor_values, collect, make_task


def test_syndrome_is_what_the_error_causes(equality, answers):
    """s = B y − c = B e, with e = y − z."""
    problem = equality("star", anchors={0: 5.0})
    operator = problem.operator()
    task, _ = make_task(problem, operator, answers(5, 5, 9, 5))
    np.testing.assert_allclose(task.syndrome, operator.matrix @ np.array([0.0, 0.0, 4.0, 0.0]))


def test_erased_columns_drop_out(equality, answers):
    task, field = make_task(equality("star"), equality("star").operator(), answers(5, None, 9, 5))
    assert task.erased == (1,)
    assert field.invalid == {"n1": "missing"}
    assert task.response[1] == 0.0  # a placeholder that no decoder may read


def test_tolerance_follows_the_size_of_the_numbers(equality, answers):
    small, _ = make_task(equality("star"), equality("star").operator(), answers(1, 1, 1, 1))
    large, _ = make_task(equality("star"), equality("star").operator(), answers(1e9, 1e9, 1e9, 1e9))
    assert large.tolerance == pytest.approx(1e9 * small.tolerance)


def test_anchor_values_are_weighted_and_whitened_like_their_rows():
    def build(value):
        return rrf.Problem(
            nodes=[{"id": "a", "dim": 2}],
            anchors=[
                {
                    "id": "x",
                    "node": "a",
                    "value": value,
                    "weight": 3.0,
                    "family": "f",
                    "covariance": [[2.0, 0.5], [0.5, 1.0]],
                },
                {"id": "y", "node": "a", "value": [0.0, 0.0], "weight": 3.0, "family": "f"},
            ],
        )

    replaced = _with_anchor_values(build([0.0, 0.0]), build([0.0, 0.0]).operator(), {"x": [4.0, -1.0]})
    np.testing.assert_allclose(replaced.target, build([4.0, -1.0]).operator().target)


def test_an_anchor_value_must_be_finite(equality, answers):
    with pytest.raises(rrf.InputError, match="not finite"):
        rrf.repair(equality("star", anchors={0: 1.0}), answers(1, 1, 1, 1), anchors={"a0": float("nan")})


def test_confidence_is_part_of_the_reason(equality, answers):
    fixed = rrf.repair(equality("star", sigma=0.01, confidence=0.9), answers(1, 1, 5, 1))
    assert "with probability at least 0.9" in fixed.reason
    assert "probability" not in rrf.repair(equality("star", epsilon=0.01), answers(1, 1, 5, 1)).reason


@pytest.fixture
def problem():
    return rrf.Problem(nodes=[{"id": "a", "parser": "integer-last"}, {"id": "b", "dim": 2}, {"id": "c"}])


def write(tmp_path, name, content):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("r.json", '{"x": 1}', "no node 'x'"),
        ("r.json", '{"bb": 1}', "did you mean 'b'"),
        ("r.json", '{"b": 1}', "'b' has 1 numbers, but the node has dimension 2"),
        ("r.json", '{"c": "17"}', "names no parser"),
        ("r.json", '{"c": {"value": 1, "vale": 2}}', "unknown key 'vale'; did you mean 'value'"),
        ("r.json", '{"c": {"status": "timout"}}', "unknown status 'timout'; did you mean 'timeout'"),
        ("r.json", '{"c": true}', "must be a number or a list of numbers"),
        ("r.json", '{"c": NaN}', "give a status instead"),
        ("r.json", "17", "must be a table"),
        ("r.json", "{", "not valid JSON"),
        ("r.jsonl", '{"node": "c", "value": 1}\n{"node": "c", "value": 2}', "entry 2: a second response for node 'c'"),
        ("r.jsonl", '{"value": 1}', "no node 'value'"),
        ("r.json", '{"c": 1, "c": 2}', "'c' stands twice"),
        ("r.csv", "c,d\n1,2\n", "no node 'd'"),
        ("r.json", "[3]", "entry 1: must be a table"),
        ("r.jsonl", "\n", "holds no responses"),
        ("r.jsonl", '{"node": "c", "value": 1}\n{', "line 2: not valid JSON"),
        ("r.csv", "id,value\nc,1\n", "no node 'id'"),
        ("r.csv", "node,valeu\nc,1\n", "unknown column 'valeu'; did you mean 'value'"),
        ("r.csv", "node,value\nc,one\n", "'one' is not a number"),
        ("r.txt", "", "end in .json, .jsonl or .csv"),
    ],
)
def test_messages(tmp_path, problem, name, content, message):
    path = write(tmp_path, name, content)
    with pytest.raises(rrf.InputError) as caught:
        read_responses(problem, path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_no_such_file(tmp_path, problem):
    with pytest.raises(rrf.InputError, match="no such file"):
        read_responses(problem, tmp_path / "none.json")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("r.json", '{"a": "so it is 17.", "b": [1, 2], "c": {"status": "refusal"}}'),
        ("r.json", '{"responses": {"a": 17, "b": [1, 2], "c": {"status": "refusal"}}}'),
        ("r.json", '[{"node": "a", "value": 17}, {"node": "b", "value": [1, 2]}, {"node": "c", "status": "refusal"}]'),
        (
            "r.jsonl",
            '{"node": "a", "text": "17"}\n\n{"node": "b", "value": [1, 2]}\n{"node": "c", "status": "refusal"}\n',
        ),
        ("r.csv", "node,value_0,value_1,status\na,17,,\nb,1,2,\nc,,,refusal\n"),
        ("r.jsonl", '{"a": 17, "b": [1, 2]}\n{"c": {"status": "refusal"}}\n'),
    ],
)
def test_forms(tmp_path, problem, name, content):
    (field,) = read_responses(problem, write(tmp_path, name, content))
    assert field.values == {"a": (17.0,), "b": (1.0, 2.0)}
    assert field.invalid == {"c": "refusal"}


def test_several_fields(tmp_path, problem):
    lines = [{"field": f"item{i}", "responses": {"a": i, "b": [0, 0], "c": 1}} for i in range(3)]
    path = write(tmp_path, "r.jsonl", "\n".join(json.dumps(line) for line in lines))
    fields = read_responses(problem, path)
    assert [field.name for field in fields] == ["item0", "item1", "item2"]
    assert fields[2].values["a"] == (2.0,)
    csv = write(tmp_path, "r.csv", "field,node,value\nx,a,1\nx,c,2\ny,a,3\n")
    assert [field.values for field in read_responses(problem, csv)] == [{"a": (1.0,), "c": (2.0,)}, {"a": (3.0,)}]


def test_one_table_or_row_per_field(tmp_path, problem):
    lines = write(tmp_path, "r.jsonl", '{"a": 1, "c": 2}\n{"a": 3, "c": 4}\n')
    assert [(field.name, field.values["a"]) for field in read_responses(problem, lines)] == [
        ("1", (1.0,)),
        ("2", (3.0,)),
    ]
    wide = write(tmp_path, "r.csv", "a,c\n1,2\nit is 3,\n")
    fields = read_responses(problem, wide)
    assert [field.values for field in fields] == [{"a": (1.0,), "c": (2.0,)}, {"a": (3.0,)}]
    assert fields[1].invalid == {"b": "missing", "c": "missing"}


def test_what_the_parser_can_not_read_is_a_status(problem):
    field = collect(problem, {"a": "no idea"}, nodes=("a", "b", "c"))
    assert field.values == {}
    assert field.invalid == {"a": "parse failure", "b": "missing", "c": "missing"}


def test_samples_are_kept_beside_the_response(problem):
    field = collect(problem, {"a": {"value": 1, "samples": ["it is 2", "??", 3]}}, nodes=("a",))
    assert field.samples == {"a": ((2.0,), (3.0,))}


def test_an_infinite_response_is_refused(problem):
    with pytest.raises(rrf.InputError, match="not finite"):
        collect(problem, {"c": float("inf")}, nodes=("c",))


def test_margin_with_and_without_erasures(equality):
    operator = equality("complete").operator()
    assert Decoding(operator, k=1).facts.gamma == pytest.approx(equality("complete").margin().value)
    erased = Decoding(operator, k=1, erased=(2,)).facts
    assert 0 < erased.lower <= erased.gamma < equality("complete").margin().value
    assert erased.method.startswith("erasures")


def test_undetermined_nodes(equality):
    design = Decoding(equality("pairs").operator(), k=1)
    assert design.undetermined((0,)) == frozenset()
    assert design.undetermined((0, 1)) == {0, 1}
    assert design.undetermined((0, 1, 2)) == {0, 1}


def test_unseen_errors(equality):
    triangle = Decoding(equality("triangle").operator(), k=1)
    assert triangle.unseen_nodes == (3,)
    assert [item.support for item in triangle.unseen(())] == [(3,)]
    assert triangle.unseen((0,)) == ()  # the budget is spent
    pairs = Decoding(equality("pairs").operator(), k=2)
    assert pairs.unseen(())[0].support in ((0, 1), (2, 3))
    assert set(pairs.unseen((0,))[0].support) == {0, 1}
    assert Decoding(equality("complete").operator(), k=1).unseen(()) == ()


def triangle(eta: float, **more: Any) -> rrf.Problem:
    pairs = [("a", "b"), ("b", "c"), ("c", "a")]
    relations = [{"id": x + y, "tail": x, "head": y, "uncertainty": eta} for x, y in pairs]
    anchors = [{"id": "fix", "node": "a", "value": 100.0}]
    return rrf.Problem(nodes=[{"id": n} for n in "abc"], relations=relations, anchors=anchors, **more)


def test_an_answer_within_the_declared_uncertainty_is_left_alone() -> None:
    fixed = rrf.repair(triangle(0.1), {"a": 100.0, "b": 105.0, "c": 100.0})
    assert fixed.support == ()
    assert fixed.repaired["b"] == (105.0,)
    assert fixed.epsilon > 5.0
    assert fixed.error_bound is not None
    assert fixed.error_bound > 5.0


def test_an_answer_far_beyond_it_is_found() -> None:
    fixed = rrf.repair(triangle(0.01), {"a": 100.0, "b": 400.0, "c": 100.0})
    assert fixed.support == ("b",)


def test_a_field_is_bounded_beforehand_or_not_at_all() -> None:
    fixed = rrf.repair(triangle(3.0), {"a": 100.0, "b": 100.0, "c": 100.0})
    assert (fixed.certainty, fixed.verdict) == ("undecided", "incomplete")
    assert "range" in fixed.reason
    assert fixed.error_bound is None
    problem = triangle(0.01)
    nodes = [node.model_copy(update={"range": (0.0, 200.0)}) for node in problem.nodes]
    ranged = problem.model_copy(update={"nodes": tuple(nodes)})
    answers = {"a": 100.0, "b": 100.0, "c": 100.0}
    assert rrf.repair(ranged, answers).epsilon <= rrf.repair(problem, answers).epsilon + 1e-9


@pytest.mark.parametrize("seed", range(30))
def test_bounds_hold_against_operators_within_their_radii(seed: int) -> None:
    """An attacker moves every uncertain block as far as it may, corrupts one answer, and is still
    within the bound.
    """
    rng = np.random.default_rng(seed)
    eta = float(rng.choice([0.01, 0.05, 0.1]))
    problem = triangle(eta, epsilon=0.5)
    truth = {"a": 100.0}
    shifts = {}
    for name, tail, head in (("ab", "a", "b"), ("bc", "b", "c")):
        error = rng.normal(size=2)
        error *= eta * rng.choice([0.0, 1.0]) / np.linalg.norm(error)
        shifts[name] = error
        truth[head] = truth[tail] * (1 - error[0]) / (1 + error[1])  # (1 + e1) z_head − (1 − e0) z_tail = 0
    if abs(truth["a"] - truth["c"]) > eta * np.hypot(truth["a"], truth["c"]) + 0.5:
        return  # then "ca" itself is broken by more than it may be
    answers = dict(truth)
    wrong = str(rng.choice(["b", "c"]))
    answers[wrong] += float(rng.choice([0.0, 3.0, 80.0]))
    fixed = rrf.repair(problem, answers)
    assert fixed.verdict != "contradicted"
    if fixed.error_bound is not None and all(value is not None for value in fixed.repaired.values()):
        left = np.array([fixed.repaired[n][0] - truth[n] for n in "abc"])  # type: ignore[index]
        assert np.linalg.norm(left) <= fixed.error_bound


def test_terms_are_those_of_the_goal_the_radius_and_the_premise(equality, answers):
    problem = equality("complete", sigma=0.1, confidence=0.9, delta=0.5, anchors={0: 1.0})
    task, _ = make_task(problem, problem.operator(), answers(1, 1, None, 1))
    grounds = _Grounds.of(task)
    assert grounds.goal == Goal(delta=0.5)
    assert grounds.wanted == pytest.approx(2 * task.radius.total / 0.5)
    assert grounds.assumes.startswith("at most 1 of 3 answers is wrong")
    assert grounds.sure == pytest.approx(0.9)


def test_terms_hold_for_the_same_problem_and_radius_only(equality, answers):
    problem = equality("complete", epsilon=0.1)
    operator = problem.operator()
    task, _ = make_task(problem, operator, answers(1, 1, 2, 1))
    again, _ = make_task(problem, operator, answers(1, 1, 3, 1), radius=task.radius)
    louder, _ = make_task(problem, operator, answers(1, 1, 3, 1), noise=Noise(epsilon=0.7))
    design = Decoding.of(task)
    grounds = design.grounds(task)
    assert design.grounds(again) is grounds
    assert design.grounds(louder) is not grounds
    assert "0.7" in design.grounds(louder).assumes
    assert "0.1" in design.grounds(task).assumes


def test_radius_and_terms_are_worked_out_once_for_many_fields(equality, answers, monkeypatch):
    """The cost of ten thousand small fields is that of what differs between them."""
    counts = {"radius": 0, "grounds": 0}
    plain_radius, plain_grounds = engine.radius_of, _Grounds.of

    def radius(*given):
        counts["radius"] += 1
        return plain_radius(*given)

    def grounds(task):
        counts["grounds"] += 1
        return plain_grounds(task)

    monkeypatch.setattr(engine, "radius_of", radius)
    monkeypatch.setattr(_Grounds, "of", staticmethod(grounds))
    problem = equality("complete", epsilon=0.1)
    found = repair_many(problem, [answers(i, i, i + 5.0, i) for i in range(40)])
    assert {item.support for item in found.items} == {("n2",)}
    chunks = 10  # of four fields
    assert counts == {"radius": chunks, "grounds": chunks}


def diffuse(rng: np.random.Generator, **settings: Any) -> tuple[rrf.Problem, dict[str, Any], dict[str, float]]:
    """A small field, its answers (one wrong, all off a little, as badly as declared) and the
    truth.
    """
    count, tail, epsilon = 5, 0.3, 0.1
    truth = rng.uniform(-5, 5, count)
    tied = [(i, j) for i in range(count) for j in range(i) if rng.random() < 0.8]
    gap = {pair: truth[pair[1]] - truth[pair[0]] for pair in tied}
    problem = rrf.Problem(
        nodes=[{"id": f"n{i}"} for i in range(count)],
        relations=[{"id": f"r{i}{j}", "tail": f"n{i}", "head": f"n{j}", "offset": float(gap[i, j])} for i, j in tied],
        anchors=[
            {"id": f"a{i}", "node": f"n{i}", "value": float(truth[i])} for i in range(count) if rng.random() < 0.7
        ],
        tail=tail,
        epsilon=epsilon,
        **settings,
    )
    dense = problem.operator().matrix.toarray()
    push = np.linalg.svd(dense)[2][0] if rng.random() < 0.5 else rng.standard_normal(count)
    answers = truth + tail * push / np.linalg.norm(push)
    answers[rng.integers(count)] += rng.choice([-1, 1]) * 10.0 ** rng.uniform(-1, 2)
    said = {f"n{i}": float(answers[i]) for i in range(count)}
    return problem, said, {f"n{i}": float(truth[i]) for i in range(count)}


@pytest.mark.parametrize("method", ["exact", "convex"])
@pytest.mark.parametrize("seed", range(25))
def test_the_promise_holds_whatever_the_small_errors_are(seed: int, method: str) -> None:
    problem, said, truth = diffuse(np.random.default_rng(seed), **({"deliver": ["n0", "n1"]} if seed % 4 == 0 else {}))
    fixed = rrf.repair(problem, said, method=method)
    assert fixed.verdict != "contradicted", fixed.reason  # the truth is an explanation
    standing = problem.design().standing(problem)
    assert rrf.certify(problem, budgets=() if seed % 4 else None).error_bound == pytest.approx(standing.error_bound)
    if fixed.error_bound is None:
        return
    wanted = problem.deliver or tuple(truth)
    off = [fixed.nearest[name][0] - truth[name] for name in wanted]  # type: ignore[index]
    assert np.linalg.norm(off) <= fixed.error_bound
    assert fixed.error_bound == pytest.approx(standing.error_bound, rel=1e-6)
    assert "all other answers together are off by at most 0.3" in fixed.assumes


def test_without_a_tail_the_same_answers_contradict_everything() -> None:
    problem, said, _ = diffuse(np.random.default_rng(3))
    assert rrf.repair(problem.model_copy(update={"tail": 0.0, "epsilon": 0.0}), said).verdict == "contradicted"


def test_certificates_promise_with_the_tail_and_are_re_proved() -> None:
    problem, _, _ = diffuse(np.random.default_rng(5), delta=50.0)
    made = rrf.certify(problem)
    part = made.document["error"]["tail"]
    gain = np.linalg.norm(problem.operator().matrix.toarray(), 2)
    assert part["norm"] == 0.3
    assert part["image"] == pytest.approx(0.3 * gain)
    assert made.error_bound == part["bound"] == pytest.approx(0.3 + 2 * (0.1 + 0.3 * gain) / made.gamma_lower)
    assert rrf.verify(made).valid
    assert made.standing is not None
    assert made.standing.reached == (made.error_bound <= 50.0)


ALL = [method for method in METHODS if method != "auto"]


@pytest.mark.parametrize("method", ALL)
class TestEveryDecoder:
    def test_one_outlier_among_four(self, method, equality, answers):
        """The paper's worked example: (42, 42, 47, 42) on a star, and the sign convention ẑ = y −
        ê.
        """
        fixed = rrf.repair(equality("star"), answers(42, 42, 47, 42), method=method)
        assert fixed.support == ("n2",)
        assert fixed.error["n2"] == pytest.approx((5.0,))
        assert fixed.repaired["n2"] == pytest.approx((42.0,))
        assert fixed.repaired["n0"] == (42.0,)
        assert fixed.residual == pytest.approx(0.0, abs=1e-6)

    @pytest.mark.parametrize("size", [5.0, -5.0])
    def test_sign_convention(self, method, size, equality, answers):
        """Whatever the method and the sign: repaired = response − error, and the residual is that
        of the repaired field.
        """
        problem = equality("complete", epsilon=0.1)
        responses = answers(10.0, 10.0 + size, 10.0, 10.0)
        fixed = rrf.repair(problem, responses, method=method)
        for node, error in fixed.error.items():
            assert fixed.repaired[node][0] == pytest.approx(responses[node] - error[0])
        operator = problem.operator()
        left = operator.matrix @ operator.stack(fixed.repaired) - operator.target
        assert np.linalg.norm(left) == pytest.approx(fixed.residual, abs=1e-9)
        assert fixed.error["n1"][0] == pytest.approx(size, abs=0.2)

    def test_consistent_answers_are_left_alone(self, method, equality, answers):
        fixed = rrf.repair(equality("complete"), answers(7, 7, 7, 7), method=method)
        assert fixed.support == ()
        assert fixed.repaired == answers((7.0,), (7.0,), (7.0,), (7.0,))

    def test_an_answer_that_is_missing_is_never_zero(self, method, equality, answers):
        fixed = rrf.repair(equality("complete"), answers(7, None, 7, 7), method=method)
        assert fixed.erased == {"n1": "missing"}
        assert fixed.repaired["n1"] == pytest.approx((7.0,))
        assert "n1" not in fixed.support

    def test_an_erased_node_that_nothing_reaches_has_no_value(self, method, equality, answers):
        problem = equality("triangle")
        if method in ("discrete", "min-sum"):
            with pytest.raises(rrf.InputError, match="'n3' has no candidate"):
                rrf.repair(problem, answers(7, 7, 7, None), method=method)
            return
        fixed = rrf.repair(problem, answers(7, 7, 7, None), method=method)
        assert fixed.repaired["n3"] is None
        assert not fixed.guaranteed

    def test_typed_relations(self, method):
        problem = rrf.Problem(
            nodes=[{"id": "a", "dim": 2}, {"id": "b", "dim": 2}, {"id": "c", "dim": 2}, {"id": "d", "dim": 2}],
            relations=[
                {"id": "ab", "tail": "a", "head": "b", "transport": {"scale": 3.0}, "offset": [1.0, 2.0]},
                {"id": "ac", "tail": "a", "head": "c", "transport": {"permute": [1, 0]}},
                {"id": "ad", "tail": "a", "head": "d", "transport": {"matrix": [[1.0, 1.0], [0.0, 1.0]]}},
            ],
        )
        valid = {"a": (1.0, 2.0), "b": (4.0, 8.0), "c": (2.0, 1.0), "d": (3.0, 2.0)}
        fixed = rrf.repair(problem, {**valid, "c": (2.0, 9.0)}, method=method)
        if method == "convex":  # a positive margin is no promise for the relaxation
            assert fixed.certainty in ("bounded", "heuristic")
            return
        for node, value in valid.items():
            assert fixed.repaired[node] == pytest.approx(value)

    def test_result_is_frozen_and_is_json(self, method, equality, answers):
        fixed = rrf.repair(equality("star"), answers(42, 42, 47, 42), method=method, seed=3)
        with pytest.raises(FrozenInstanceError):
            fixed.residual = 0.0
        document = json.loads(json.dumps(to_document(fixed), allow_nan=False))
        assert document["format"] == "rrf-repair"
        assert document["version"] == 2
        assert document["problem"] == rrf.digest(equality("star"))
        assert {"repaired", "support", "residual", "gamma", "error_bound", "method"} <= set(document)
        recorded = document["diagnostics"]
        assert recorded["seed"] == 3
        assert {"objective", "relation_residual", "anchor_residual", "active_groups", "gap", "seconds"} <= set(recorded)

    def test_only_a_method_that_proves_something_guarantees(self, method, equality, answers):
        fixed = rrf.repair(equality("star"), answers(42, 42, 47, 42), method=method)
        if method in ("exact", "convex", "discrete"):
            assert fixed.guaranteed
        else:
            assert fixed.certainty == "heuristic"
            assert not fixed.guaranteed
            assert fixed.error_bound is None

    def test_blind_to_the_kernel_of_the_relations(self, method, equality, answers):
        """A shared shift lies in ker D: the same edits are made, and the shifted truth is missed by
        exactly the shift.
        """
        problem = equality("complete", k=1)
        base = rrf.repair(problem, answers(1, 1, 4, 1), method=method)
        shifted = rrf.repair(problem, answers(101, 101, 104, 101), method=method)
        assert base.support == shifted.support == ("n2",)
        for node in base.repaired:
            assert shifted.repaired[node][0] - base.repaired[node][0] == pytest.approx(100.0)


def test_everything_is_there_and_plain(equality, answers):
    fixed = rrf.repair(equality("pairs"), answers(1, 1, 3, 1), truth=answers(1, 1, 3, 3))
    document = to_document(fixed)
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    names = {field.name for field in fields(Repair)} - {"problem_digest"}
    assert set(document) == names | {"format", "version", "problem", "guaranteed"}
    assert document["certainty"] == "ambiguous"
    assert document["failures"] == ["zero or low margin"]
    assert document["alternatives"][0]["support"] in (["n2"], ["n3"])


def test_infinities_are_null(equality, answers):
    fixed = rrf.repair(equality("complete"), answers(1, 1, 1, 1))
    assert fixed.diagnostics.best_smaller == float("inf")
    assert to_document(fixed)["diagnostics"]["best_smaller"] is None
