"""Tasks: syndrome, erased nodes, radius, tolerance, replaced anchor values. Responses in every
form, and one message per fault.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design.repairing import read_responses
from rrf_design.repairing.fields import _with_anchor_values, collect, make_task


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
