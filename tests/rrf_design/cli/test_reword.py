"""reword: a file for review, never written over."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rrf_design.cli import main

RECIPE = '[data]\n[answer]\nof = "q"\ntolerance = 0.1\n[[ask]]\nid = "q"\nprompt = "{{ a }} plus 3?"\n'


def call(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0)


def test_wordings_are_written_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rrf.toml").write_text(RECIPE)
    Path("s.json").write_text(json.dumps({"default": "What is 3 more than {{ a }}?"}))
    assert call("reword", "--model", "scripted:s.json", "--json") == 0
    assert json.loads(capsys.readouterr().out)["usable"] == 1
    assert "reviewed = false" in Path("rewordings.toml").read_text()
    assert call("reword", "--model", "scripted:s.json") == 2
    assert "somebody may have reviewed it" in capsys.readouterr().err
    Path("s.json").write_text(json.dumps({"default": "What is 4 more than {{ a }}?"}))
    assert call("reword", "--model", "scripted:s.json", "-o", "other.toml") == 1


def test_a_recipe_may_name_the_file_before_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rrf.toml").write_text(RECIPE.replace("tolerance", 'rewordings = "rewordings.toml"\ntolerance'))
    Path("s.json").write_text(json.dumps({"default": "What is 3 more than {{ a }}?"}))
    assert call("reword", "--model", "scripted:s.json", "-o", "other.toml") == 2
    assert "rewordings.toml: no such file" in capsys.readouterr().err
    assert call("reword", "--model", "scripted:s.json") == 0
