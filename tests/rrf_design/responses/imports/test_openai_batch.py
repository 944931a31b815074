"""Output of OpenAI's batch interface: names in `custom_id`, both formats of a body, failures as
failures.
"""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from tool_logs import batch, chat, rows

from rrf_design.errors import InputError
from rrf_design.responses.imports.records import ImportedRow


def test_bodies_are_what_the_client_calls_a_completion() -> None:
    """The provider's own client knows every field of the bodies that `init documents` writes, and
    misses none.
    """
    completion = pytest.importorskip("openai.types.chat").ChatCompletion
    lines = (files("rrf_design") / "templates" / "documents" / "batch.jsonl").read_text().splitlines()
    for line in map(json.loads, lines):
        assert set(line) == {"id", "custom_id", "response", "error"}
        if line["error"] is None:
            assert set(line["response"]) == {"status_code", "request_id", "body"}
            read = completion.model_validate(line["response"]["body"])
            assert not read.model_extra
            assert read.choices[0].message.content


def test_openai_batches(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    output = {
        "model": "gpt-y",
        "output": [
            {"type": "reasoning"},
            {
                "type": "message",
                "content": [{"type": "output_text", "text": "x"}, {"type": "output_text", "text": "y"}],
            },
        ],
    }
    refused = {"model": "gpt-y", "output": [{"content": [{"type": "refusal", "refusal": "no"}]}]}
    lines = [
        batch("007::total::2", chat("119")),
        batch("007::total", chat("118")),
        batch("008::total", output),
        batch("009::total", chat(None, refusal="no")),
        batch("010::total", {"error": {"message": "x"}}, 429),
        batch("011::total", chat("1", "2")),
        batch("012::total", refused),
        {"id": "b", "custom_id": "013::total", "response": None, "error": {"code": "batch_expired"}},
    ]
    path.write_text("\ufeff" + "\n".join(json.dumps(line) for line in lines))
    assert [(row.id, row.repeat, row.model, row.text, row.status) for row in rows(path)] == [
        ("007", 2, "gpt-x", "119", None),
        ("007", 1, "gpt-x", "118", None),
        ("008", 1, "gpt-y", "xy", None),
        ("009", 1, "gpt-x", None, "refusal"),
        ("010", 1, None, None, "error"),
        ("011", 1, "gpt-x", "1", None),
        ("011", 2, "gpt-x", "2", None),
        ("012", 1, "gpt-y", None, "refusal"),
        ("013", 1, None, None, "error"),
    ]
    path.write_text(json.dumps(batch("only-an-id", chat("1"))))
    with pytest.raises(InputError, match="custom_id 'only-an-id' is not ITEM::NODE"):
        rows(path)
    assert rows(path, node="=total")[0] == ImportedRow("only-an-id", "total", 1, "gpt-x", "1")


@pytest.mark.parametrize("custom", ["a::b::0", "a::b::-1", "a::b::x", "a::b::1000001", "a::b::99999999999999999999"])
def test_a_repeat_counts_from_one(tmp_path: Path, custom: str) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text(json.dumps(batch(custom, chat("1"))))
    with pytest.raises(InputError, match=r"line 1: .*its repeat must be a whole number from 1 on"):
        rows(path)


@pytest.mark.parametrize("custom", ["a", "a::b::1::2", "::b", "a::", None, 5])
def test_an_id_that_names_nothing(tmp_path: Path, custom: Any) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text(json.dumps(batch(custom, chat("1"))))
    with pytest.raises(InputError, match=r"^[^\n]*line 1: "):
        rows(path)


@pytest.mark.parametrize("content", [5, "text", {"text": "x"}, None, [5], [{"type": "output_text", "text": 5}]])
def test_output_that_says_nothing_is_missing(tmp_path: Path, content: Any) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text(json.dumps(batch("a::b", {"model": 7, "output": [{"content": content}, 3]})))
    assert rows(path) == [ImportedRow("a", "b", 1, None, None, "missing")]


def test_a_body_of_neither_format(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text(json.dumps(batch("a::b", {"text": "1"})))
    with pytest.raises(InputError, match="line 1: neither choices nor output in its body"):
        rows(path)
    assert rows(path, answer="response.body.text") == [ImportedRow("a", "b", 1, None, "1")]
    path.write_text(json.dumps(batch("a::b", {"choices": []})))
    assert rows(path) == [ImportedRow("a", "b", 1, None, None, "missing")]
