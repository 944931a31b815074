"""rrf-design runs and show."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rrf_design.acquisition import acquire
from rrf_design.cli import main
from rrf_design.models.scripted import ScriptedModel
from rrf_design.problem import Problem


@pytest.fixture
def store(tmp_path: Path) -> str:
    problem = Problem(
        name="pair",
        k=1,
        nodes=[{"id": "x", "prompt": "x?"}, {"id": "y", "prompt": "y?"}],
        relations=[{"id": "xy", "tail": "x", "head": "y"}],
        anchors=[{"id": "a", "node": "x", "value": 7.0, "cost": 1.0}],
    )
    acquire(problem, ScriptedModel(lambda request: "7"), store=tmp_path / "r.sqlite", method="witness", budget=1.0)
    return str(tmp_path / "r.sqlite")


def call(*arguments: str) -> int:
    try:
        main(list(arguments))
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def test_runs(store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("runs", "--store", store, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert [run["name"] for run in document["runs"]] == ["pair"]
    assert document["runs"][0]["purchases"] == 3
    assert call("runs", "--store", store) == 0
    assert "pair" in capsys.readouterr().out
    assert call("runs", "--store", str(tmp_path / "empty.sqlite")) == 0
    assert "no runs yet" in capsys.readouterr().out


def test_show(store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("show", "last", "--store", store, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert [p["name"] for p in document["purchases"]] == ["x", "y", "a"]
    files = [str(tmp_path / "run.json"), str(tmp_path / "log.jsonl")]
    assert call("show", "last", "--store", store, "-o", files[0], "--answers", files[1]) == 0
    assert "revealed" in capsys.readouterr().out
    assert json.loads(Path(files[0]).read_text()) == document
    assert len(Path(files[1]).read_text().splitlines()) == 2


def test_who_only_reads_makes_no_journal(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RRF_STORE", raising=False)
    assert "no runs yet" in run("runs").out
    assert run("runs", "--json").json["runs"] == []
    made = run("show", "last")
    assert (made.code, made.err.count("\n")) == (2, 1)
    assert "no journal of runs" in made.err
    assert run("report", "last", "-o", "x.html").code == 2
    assert list(tmp_path.iterdir()) == []
