"""Exports of promptfoo: the item must be named, repeats are counted, and a missed assertion is an
answer.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tool_logs import rows

from rrf_design.errors import InputError
from rrf_design.responses.imports import node_names, read_logs
from rrf_design.responses.imports.records import ImportedRow, RecordPaths


def promptfoo(no: str, prompt: int, provider: Any, **more: Any) -> dict[str, Any]:
    return {
        "promptIdx": prompt,
        "testIdx": 17,
        "vars": {"no": no, "text": "..."},
        "testCase": {"vars": {"no": no}, "metadata": {"row": no}, "assert": []},
        "prompt": {"raw": "Total?\n...", "label": "Total?\n{{ text }}" if prompt else "short"},
        "provider": provider,
        "response": {"output": f"answer {no}"},
        "success": False,
        "failureReason": 1,
        "cost": 0.5,
        **more,
    }


def test_promptfoo(tmp_path: Path) -> None:
    results = [
        promptfoo("007", 0, {"id": "openai:gpt-4.1", "label": "mini"}),
        promptfoo("007", 0, {"id": "openai:gpt-4.1", "label": "mini"}),
        promptfoo("007", 1, {"id": "openai:gpt-4.1", "label": ""}, response={"output": {"total": 3}}),
        promptfoo("008", 0, "echo", error="API error", failureReason=2),
        promptfoo("009", 0, "echo", response={}),
        promptfoo("010", 0, "echo", error="Expected output to equal 3", response={"output": "4"}),
    ]
    expected = [
        ImportedRow("007", "short", 1, "mini", "answer 007", None, 0.5),
        ImportedRow("007", "short", 2, "mini", "answer 007", None, 0.5),
        ImportedRow("007", "prompt-2", 1, "openai:gpt-4.1", '{"total": 3}', None, 0.5),
        ImportedRow("008", "short", 1, "echo", None, "error", 0.5),
        ImportedRow("009", "short", 1, "echo", None, "missing", 0.5),
        ImportedRow("010", "short", 1, "echo", "4", None, 0.5),
    ]
    one = tmp_path / "out.json"
    one.write_text(json.dumps({"evalId": "e", "results": {"version": 3, "results": results}, "config": {}}))
    many = tmp_path / "out.jsonl"
    many.write_text("".join(json.dumps(result) + "\n" for result in results))
    assert rows(one, item="vars.no") == rows(many, item="vars.no") == expected
    assert rows(one, item="testCase.metadata.row", node="=total")[0].node == "total"
    with pytest.raises(
        InputError, match=r"which variable names the item\? Say so with --item \(there are: vars.no, vars.text\)"
    ):
        rows(one)


@pytest.mark.parametrize("given", [5, "text", ["a"], None])
def test_variables_that_are_none(tmp_path: Path, given: Any) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text(json.dumps(promptfoo("7", 0, "echo", vars=given)))
    with pytest.raises(InputError, match=r"line 1: which variable names the item\? Say so with --item$"):
        rows(path)


def test_the_item_is_found_under_its_usual_names(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text(json.dumps(promptfoo("7", 0, None, vars={"id": "v"}, metadata={"id": "m"})))
    assert rows(path) == [ImportedRow("v", "short", 1, None, "answer 7", None, 0.5)]
    path.write_text(json.dumps(promptfoo("7", 0, None, metadata={"id": "m"})))
    assert rows(path)[0].id == "m"


@pytest.mark.parametrize("label", ["", "  ", "two\nlines", "{{ text }}", "x" * 81, 5])
def test_a_wording_without_a_plain_label_is_numbered(tmp_path: Path, label: Any) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text(json.dumps(promptfoo("7", 3, "echo") | {"prompt": {"label": label}}))
    assert rows(path, item="vars.no")[0].node == "prompt-4"
    path.write_text(json.dumps(promptfoo("7", True, "echo") | {"prompt": {"label": label}}))
    with pytest.raises(InputError, match="say with --node what tells the wordings apart"):
        rows(path, tool="promptfoo", item="vars.no")


def test_nodes_get_other_names(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    label = "file://prompts/total.txt: Total, in EUR"
    results = [promptfoo("7", 0, "echo") | {"prompt": {"label": label}}, promptfoo("7", 1, "echo")]
    path.write_text("".join(json.dumps(result) + "\n" for result in results))
    names = node_names([f"{label}=total,prompt-2=cents"])
    found = read_logs([path], where=RecordPaths("vars.no"), names=names)
    assert [row.node for row in found] == ["total", "cents"]
    with pytest.raises(
        InputError, match=r"no node 'prompt-3'; did you mean 'prompt-2'\? \(there are: file.*prompt-2\)"
    ):
        list(read_logs([path], where=RecordPaths("vars.no"), names={"prompt-3": "total"}))
    with pytest.raises(InputError, match="a second answer of item '7', node 'total'"):
        list(read_logs([path], where=RecordPaths("vars.no"), names=dict.fromkeys((label, "prompt-2"), "total")))


@pytest.mark.parametrize("given", ["a", "a=", "=b", "a=b,c", "a=b,a=c"])
def test_names_that_are_none(given: str) -> None:
    with pytest.raises(InputError, match=r"--node-names '[abc=]*': write old=new"):
        node_names([given])
    assert node_names(["a=b,c=d", "x=1: e=f,"]) == {"a": "b", "c": "d", "x=1: e": "f"}
