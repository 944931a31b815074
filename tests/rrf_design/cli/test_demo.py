"""The demonstration with a scripted model: the story holds together whatever the model says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rrf_design.cli import main

SCRIPT = {
    "rules": [
        {"pattern": r"^Compute the sum", "text": "The sum is 54."},
        {"pattern": r"Egypt", "text": "It is Cairo."},
        {"pattern": r"Turkey", "text": "It is Istanbul."},
        {"pattern": r"Python", "text": "```python\ndef solve(n):\n    return n * n\n```"},
    ],
    "default": "I think it is 14.",
}


def call(*arguments: str) -> int:
    with pytest.raises(SystemExit) as caught:
        main(list(arguments))
    return int(caught.value.code or 0)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("s.json").write_text(json.dumps(SCRIPT))
    return tmp_path


def test_the_whole_story(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("demo", "--model", "scripted:s.json") == 0
    text = capsys.readouterr().out
    for part in (
        "The plan for a budget of 16 (optimal",
        "No promise was broken",
        "Fooled: capital of Turkey",
        "The report:",
    ):
        assert part in text
    assert (here / "demo-output" / "report.html").read_text().startswith("<!")
    assert json.loads((here / "demo-output" / "run.json").read_text())["format"] == "rrf-run"
    assert list((here / "demo-output" / "certificates").glob("*.json"))


def test_json_is_one_object(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("demo", "--model", "scripted:s.json", "--json", "-o", "elsewhere") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["promise_kept"]
    assert document["certificates_valid"]
    assert document["verdicts"]["capital of Turkey"] == "too many wrong, fooled"
    assert document["spent"] <= 16


def test_a_folder_that_can_not_be_made(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("file").write_text("")
    Path("script.json").write_text('{"rules": [], "default": "5"}')  # the embedded model may not be installed
    assert call("demo", "-o", "file/folder", "--model", "scripted:script.json") == 2
    assert "can't be made a folder" in capsys.readouterr().err
