"""rrf-design cache."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from rrf_design.models import Request
from rrf_design.models.cache import AnswerCache
from rrf_design.models.scripted import ScriptedModel


def test_answers_are_listed_and_forgotten(run: Callable[..., Any], tmp_path: Path) -> None:
    empty = run("cache", "list", "--cache", tmp_path / "none", "--json").json
    assert empty["models"] == []
    assert not (tmp_path / "none").exists()  # looking makes nothing
    model = ScriptedModel(lambda request: "7", name="shop")
    with AnswerCache(tmp_path) as cache:
        cache.keep(Request("?"), model.ask(Request("?")), model)
    assert "shop" in run("cache", "list", "--cache", tmp_path).out
    assert run("cache", "list", "--cache", tmp_path, "--json").json["models"][0]["answers"] == 1
    assert run("cache", "clear", "--cache", tmp_path, "--model", "other", "--json").json["cleared"] == 0
    assert run("cache", "clear", "--cache", tmp_path, "--json").json["cleared"] == 1
    off = run("cache", "list", "--cache", "off")
    assert (off.code, off.err.count("\n")) == (2, 1)
