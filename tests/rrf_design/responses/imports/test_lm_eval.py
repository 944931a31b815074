"""Samples of lm-evaluation-harness: a line per document and filter, texts only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tool_logs import rows

from rrf_design.errors import InputError
from rrf_design.responses.imports.records import ImportedRow


def lm_eval(doc: int, texts: Any, filter_name: str = "none", **more: Any) -> dict[str, Any]:
    return {"doc_id": doc, "doc": {"no": f"00{doc}"}, "target": "5", "resps": [texts], "filtered_resps": ["5"], "filter": filter_name,
            "doc_hash": f"h{doc}", "prompt_hash": "p", **more}  # fmt: skip


def test_lm_eval_drops_the_doubles_of_its_filters(tmp_path: Path) -> None:
    path = tmp_path / "samples_gsm8k_cot_2026-01-02T03-04-05.678901.jsonl"
    lines = [lm_eval(0, ["a", "b"], name) for name in ("strict", "flexible")] + [lm_eval(1, ["c"])]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert rows(path) == [
        ImportedRow("0", "gsm8k_cot", 1, None, "a"), ImportedRow("0", "gsm8k_cot", 2, None, "b"), ImportedRow("1", "gsm8k_cot", 1, None, "c"),
    ]  # fmt: skip
    assert rows(path, item="doc.no")[0].id == "000"
    path.write_text("".join(json.dumps(line) + "\n" for line in (lm_eval(0, ["a"]), lm_eval(0, ["other"]))))
    with pytest.raises(InputError, match="line 2: a second document '0' with other answers"):
        rows(path)
    path.write_text(json.dumps(lm_eval(0, [["-1.5", "False"]])))
    with pytest.raises(InputError, match="line 1: its answers are log-likelihoods"):
        rows(path)


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("samples_a_b_2026-01-02T03-04-05.678901.jsonl", "a_b"),
        ("samples_plain.jsonl", "plain"),
        ("other.jsonl", "other"),
    ],
)
def test_the_task_stands_in_the_file_name(tmp_path: Path, name: str, task: str) -> None:
    path = tmp_path / name
    path.write_text(json.dumps(lm_eval(0, ["a"])))
    assert rows(path) == [ImportedRow("0", task, 1, None, "a")]
    assert rows(path, node="target")[0].node == "5"


def test_an_answer_at_a_path_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "samples_t.jsonl"
    path.write_text(json.dumps(lm_eval(0, ["a", "b"])))
    assert rows(path, answer="filtered_resps.0") == [ImportedRow("0", "t", 1, None, "5")]
    assert rows(path, answer="nowhere") == [ImportedRow("0", "t", 1, None, None, "missing")]


@pytest.mark.parametrize("resps", [None, [], [[]], "text", [5]])
def test_a_file_of_something_else(tmp_path: Path, resps: Any) -> None:
    path = tmp_path / "samples_t.jsonl"
    path.write_text(json.dumps({**lm_eval(0, []), "resps": resps}))
    with pytest.raises(InputError, match="line 1: no resps in it"):
        rows(path, tool="lm-eval")
