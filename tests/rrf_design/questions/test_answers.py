from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.errors import InputError
from rrf_design.questions.answers import RecordedAnswer, RecordedAnswers
from rrf_design.questions.datasets import Dataset, dataset
from rrf_design.responses.imports import read_logs

RECIPE: dict[str, Any] = {
    "data": {"id": "no"},
    "models": {"mini": "openai:gpt-4.1-mini", "other": "embedded"},
    "answer": {"of": "a", "epsilon": 0.01},
    "ask": [
        {"id": "a", "prompt": "{{ x }}", "repeat": 2},
        {"id": "b", "prompt": "{{ x }}", "like": "a", "model": ["mini", "other"], "repeat": 2},
    ],
}


@pytest.fixture
def two() -> Dataset:
    return dataset(RECIPE, [{"no": "007", "x": "?"}, {"no": "008", "x": "?"}])


def read(data: Dataset, source: Any, item: str = "007") -> dict[str, RecordedAnswer]:
    with RecordedAnswers(data, source) as answers:
        return answers.of(item)


def test_rows_in_any_order(two: Dataset) -> None:
    rows = [
        {"id": "008", "node": "a", "text": "It is 4."},
        {"id": "007", "node": "b", "model": "other", "repeat": 2, "value": [3]},
        {"id": "007", "node": "a#2", "status": "timeout", "cost": 0.5},
        {"id": "007", "node": "a", "value": 2.5, "text": "kept beside", "status": "ok"},
        {"id": "007", "node": "b", "model": "openai/gpt-4.1-mini", "text": ""},
    ]
    assert read(two, rows) == {
        "b@other#2": RecordedAnswer(value=(3.0,)),
        "a#2": RecordedAnswer(status="timeout", cost=0.5),
        "a": RecordedAnswer(value=(2.5,)),
        "b": RecordedAnswer(text=""),
    }
    assert read(two, rows, "008") == {"a": RecordedAnswer(text="It is 4.")}
    with RecordedAnswers(two.limit(1), rows) as answers:  # a part of the table, all of its answers
        assert len(answers) == 5
        assert answers.of("009") == {}


def test_files(two: Dataset, tmp_path: Path) -> None:
    text = tmp_path / "long.csv"
    text.write_text(
        'id,node,repeat,value,text,status\n007,a,,2,,\n007,a,2,"[3]",,\n008,b@other,,,It is'
        " 4.,\n008,a,,,,error\n008,a#2,,,,\n"
    )
    assert read(two, text) == {"a": RecordedAnswer(value=(2.0,)), "a#2": RecordedAnswer(value=(3.0,))}
    assert read(two, text, "008") == {
        "b@other": RecordedAnswer(text="It is 4."),
        "a": RecordedAnswer(status="error"),
        "a#2": RecordedAnswer(status="missing"),
    }
    lines = tmp_path / "long.jsonl"
    lines.write_text("".join(json.dumps({"id": no, "node": "a", "text": no}) + "\n" for no in ("007", "008")))
    assert read(two, lines) == {"a": RecordedAnswer(text="007")}


def test_an_ask_of_one_model_takes_whatever_a_log_calls_it(two: Dataset) -> None:
    assert list(read(two, [{"id": "007", "node": "a", "model": "gpt-4o", "repeat": 2, "value": 1}])) == ["a#2"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "holds no answers"),
        ([{"id": "007", "node": "c", "value": 1}], "row 1: no node 'c'"),
        ([{"id": "007", "node": "a", "repeat": 3, "value": 1}], r"node 'a' has no repeat 3 in the recipe \(it has: a, a#2\)"),
        ([{"id": "007", "node": "b", "model": "third", "value": 1}], "node 'b' has no model 'third', repeat 1"),
        ([{"id": "009", "node": "a", "value": 1}], "has no item '009'"),
        ([{"id": "007", "node": "a", "value": 1}, {"id": "007", "node": "a", "value": 1}], "1 of 2 rows .*row 2: a second answer of item '007'"),
        ([{"id": "007", "node": "a", "valu": 1}], "unknown column 'valu'; did you mean 'value'"),
        ([{"question": "007", "node": "a"}], "unknown column 'question'; answers have the columns id, node, repeat"),
        ([{"id": "007", "node": "a", "value": "much"}, {"id": "", "node": "a"}, {"id": "007"}], "3 of 3 rows .*row 1: value is 'much'.*row 2: id is empty; row 3: node is empty"),
        ([{"id": "007", "node": "a", "value": float("nan")}], "not a finite number"),
        ([{"id": "007", "node": "a", "status": "timeot"}], "unknown status 'timeot'; did you mean 'timeout'"),
        ([{"id": "007", "node": "a", "text": 3}], "text is 3, not text"),
        ([{"id": "007", "node": "a", "repeat": 0}], "repeats count from 1 on"),
        ([{"id": "007", "node": "a", "cost": -1}], "costs are not negative"),
    ],
)  # fmt: skip
def test_faults_are_named_together(two: Dataset, rows: list[Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        RecordedAnswers(two, rows)
    assert "\n" not in str(caught.value)


def test_columns_of_a_file_are_checked_first(two: Dataset, tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text("id,nod,text\n007,a,1\n")
    with pytest.raises(InputError, match="unknown column 'nod'; did you mean 'node'"):
        RecordedAnswers(two, path)
    path.write_text("id,text\n007,1\n")
    with pytest.raises(InputError, match="no column 'node'"):
        RecordedAnswers(two, path)


def test_answers_go_straight_to_repair(two: Dataset) -> None:
    rows = [
        {"id": "007", "node": node, "text": text}
        for node, text in [("a", "5"), ("a#2", "5"), ("b", "9.0"), ("b@other", "5"), ("b#2", "5")]
    ]
    with RecordedAnswers(two, rows) as answers:
        responses = {node: answer.response for node, answer in answers.of("007").items()}
    fixed = rrf.repair(two["007"], responses)
    assert list(fixed.support) == ["b"]


@pytest.mark.parametrize(
    "said",
    [
        "mini",
        "openai:gpt-4.1-mini",
        "openai/gpt-4.1-mini",
        "gpt-4.1-mini",
        "gpt-4.1-mini-2025-04-14",
        "OpenAI/GPT-4.1-mini",
    ],
)
def test_models_by_the_names_that_logs_give_them(two: Dataset, said: str) -> None:
    assert list(read(two, [{"id": "007", "node": "b", "model": said, "value": 1}])) == ["b"]


def test_a_name_that_two_models_share_is_no_name() -> None:
    models = {"one": "openai:m", "two": "azure:m"}
    asks = [{"id": "a", "prompt": "?", "model": ["one", "two"]}]
    data = dataset({"models": models, "answer": {"of": "a"}, "ask": asks}, [{"x": 1}])
    assert list(read(data, [{"id": "1", "node": "a", "model": "azure/m", "value": 1}], "1")) == ["a@two"]
    with pytest.raises(InputError, match="node 'a' has no model 'm'"):
        RecordedAnswers(data, [{"id": "1", "node": "a", "model": "m", "value": 1}])


def test_nodes_that_a_tool_calls_otherwise_are_to_be_renamed(two: Dataset) -> None:
    rows = [{"id": name, "node": f"it's {wording}", "text": "1"} for name in ("007", "008") for wording in "xy"]
    with pytest.raises(InputError) as caught:
        read(two, rows)
    told = str(caught.value)
    assert "4 of 4 rows can't be used" in told
    assert told.endswith("import LOG --node-names 'it'\"'\"'s x=NODE,it'\"'\"'s y=NODE', NODE one of a, b")
    with pytest.raises(InputError) as caught:
        read(two, [{"id": "007", "node": "a", "value": "x"}])
    assert "--node-names" not in str(caught.value)


def kept(node: str, outcome: str, text: str = "", **more: Any) -> dict[str, Any]:
    reply = {"text": text, "outcome": outcome}
    return {"format": "rrf-answer", "version": 1, "item": "007", "node": node, "reply": reply, **more}


def test_the_answers_of_a_run_are_read_as_they_were_given(two: Dataset, tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    records = [
        kept("a", "answered", "It is 4.", parsed={"value": [4.0]}),
        kept("a#2", "truncated", "It is"),
        kept("b", "refused", "no"),
        kept("b@other#2", "timeout"),
        kept("judge", "answered", "yes", source="verifier"),
    ]
    path.write_text("".join(json.dumps(entry) + "\n" for entry in records))
    assert read(two, path) == {
        "a": RecordedAnswer(text="It is 4."),
        "a#2": RecordedAnswer(status="error"),
        "b": RecordedAnswer(status="refusal"),
        "b@other#2": RecordedAnswer(status="timeout"),
    }
    imported = [(row.id, row.node, row.text, row.status) for row in read_logs([path])]
    assert imported[:2] == [("007", "a", "It is 4.", None), ("007", "a#2", None, "error")]
    assert len(imported) == 4
    path.write_text(json.dumps({"format": "rrf-answer", "version": 1, "reply": {}}))
    with pytest.raises(InputError, match="row 1: a recorded answer without its reply or its node"):
        read(two, path)
