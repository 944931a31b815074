from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Run = Callable[..., Any]


def line(custom: str, text: str) -> str:
    body = {"model": "m", "choices": [{"message": {"content": text}}]}
    return json.dumps({"custom_id": custom, "response": {"status_code": 200, "body": body}, "error": None}) + "\n"


def test_a_log_becomes_rows(run: Run, tmp_path: Path) -> None:
    log, out = tmp_path / "log.jsonl", tmp_path / "long.jsonl"
    log.write_text(line("007::total", "119") + line("008::total", "5"))
    made = run("import", log, "-o", out, "--json")
    assert made.json == {"file": str(out), "rows": 2, "items": 2, "nodes": {"total": 2}, "without_text": 0}
    assert [json.loads(row)["id"] for row in out.read_text().splitlines()] == ["007", "008"]
    assert "2 answers of 2 items" in run("import", log, "--from", "openai-batch", "-o", out).out


def test_nothing_is_written_when_a_log_is_broken(run: Run, tmp_path: Path) -> None:
    log, out = tmp_path / "log.jsonl", tmp_path / "long.jsonl"
    log.write_text(line("007::total", "119") + "{")
    made = run("import", log, "-o", out)
    assert made.code == 2
    assert made.err.count("\n") == 1
    assert "line 2: not valid JSON" in made.err
    assert not out.exists()
    log.write_text("")
    assert run("import", log, "--from", "openai-batch", "-o", out).code == 2
    assert run("import", log, "-o", tmp_path / "long.csv").code == 2
