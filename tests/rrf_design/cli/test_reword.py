"""reword: a file for review, never written over."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

RECIPE = '[data]\n[answer]\nof = "q"\ntolerance = 0.1\n[[ask]]\nid = "q"\nprompt = "{{ a }} plus 3?"\n'


def test_wordings_are_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rrf.toml").write_text(RECIPE)
    Path("s.json").write_text(json.dumps({"default": "What is 3 more than {{ a }}?"}))
    ran = run("reword", "--model", "scripted:s.json", "--json")
    assert ran.code == 0
    assert ran.json["usable"] == 1
    assert "reviewed = false" in Path("rewordings.toml").read_text()
    ran = run("reword", "--model", "scripted:s.json")
    assert ran.code == 2
    assert "somebody may have reviewed it" in ran.err
    Path("s.json").write_text(json.dumps({"default": "What is 4 more than {{ a }}?"}))
    ran = run("reword", "--model", "scripted:s.json", "-o", "other.toml")
    assert ran.code == 1


def test_a_recipe_may_name_the_file_before_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rrf.toml").write_text(RECIPE.replace("tolerance", 'rewordings = "rewordings.toml"\ntolerance'))
    Path("s.json").write_text(json.dumps({"default": "What is 3 more than {{ a }}?"}))
    ran = run("reword", "--model", "scripted:s.json", "-o", "other.toml")
    assert ran.code == 2
    assert "rewordings.toml: no such file" in ran.err
    ran = run("reword", "--model", "scripted:s.json")
    assert ran.code == 0
