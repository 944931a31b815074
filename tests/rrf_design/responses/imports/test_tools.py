"""What all readers have in common: who wrote a log, answers that stand there twice, and files that
are hostile.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tool_logs import batch, chat, rows

from rrf_design.errors import InputError
from rrf_design.responses.imports import TOOLS, recognise, row_line
from rrf_design.responses.imports.records import ImportedRow


def test_one_answer_twice_is_refused_across_files(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_text(json.dumps(batch("007::total", chat("1"))))
    with pytest.raises(
        InputError, match=r"b.jsonl: a second answer of item '007', node 'total', repeat 1 \(the first is in .*a.jsonl"
    ):
        rows(tmp_path / "a.jsonl", tmp_path / "b.jsonl")


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"3", b"null", b"\xff\xfe", b"[" * 100_000, b'{"a": ' + b"9" * 9000 + b"}", b'{"samples": [3], "results": {"results": [3]}, "custom_id": [1], "resps": {}, "doc_id": null}', b'{"samples": 3, "results": [], "custom_id": {}, "resps": [[]], "doc_id": true}'],
    ids=range(10),
)  # fmt: skip
@pytest.mark.parametrize("ending", [".json", ".jsonl", ".eval"])
def test_hostile_files_are_one_line(tmp_path: Path, tool: str, content: bytes, ending: str) -> None:
    path = tmp_path / f"log{ending}"
    path.write_bytes(content)
    if content == b"" and (
        tool in ("lm-eval", "openai-batch", "rrf-design") or (tool == "promptfoo" and ending == ".jsonl")
    ):
        assert rows(path, tool=tool) == []
        return
    with pytest.raises(InputError) as caught:
        rows(path, tool=tool)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    assert len(message) < 400


def test_who_wrote_it(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"hello": 1}')
    with pytest.raises(InputError, match="no log of a known tool"):
        recognise(path)
    with pytest.raises(InputError, match="'inspekt' is unknown; did you mean 'inspect'"):
        rows(path, tool="inspekt")


def test_a_line_of_json(tmp_path: Path) -> None:
    assert (
        row_line(ImportedRow("007", "total", 1, None, "é"))
        == '{"id": "007", "node": "total", "repeat": 1, "text": "é"}'
    )
    assert (
        row_line(ImportedRow("007", "total", 1, None, "\ud800")).encode()
        == b'{"id": "007", "node": "total", "repeat": 1, "text": "\\ud800"}'
    )
