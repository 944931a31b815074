from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.questions import load_recipe

Run = Callable[..., Any]
RECIPE = """[data]
table = "t.csv"
id = "no"
[answer]
of = "a"
[[ask]]
id = "a"
prompt = "{{ x }}?"
repeat = 2
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "rrf.toml").write_text(RECIPE)
    (tmp_path / "t.csv").write_text("no,x\n007,{{ no }}\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_long_form_reads_back_to_the_same_recipe(run: Run, folder: Path) -> None:
    made = run("compile", "rrf.toml")
    assert made.code == 0
    (folder / "long.toml").write_text(made.out)
    assert load_recipe(folder / "long.toml").long == load_recipe(folder / "rrf.toml").long
    assert run("compile", "long.toml").out == made.out
    assert run("compile", "--json").json == load_recipe(folder / "rrf.toml").document()


def test_an_item_is_a_problem_file(run: Run, folder: Path) -> None:
    made = run("compile", "--item", "007")
    problem = rrf.loads(made.out)
    assert problem.nodes[0].prompt == "{{ no }}?"
    assert problem == rrf.dataset("rrf.toml")["007"]
    assert rrf.loads(run("compile", "--item", "007", "--json").out, "json") == problem


def test_faults_are_one_line(run: Run, folder: Path) -> None:
    made = run("compile", "--item", "7")
    assert (made.code, made.out) == (2, "")
    assert "no item '7'" in made.err
    (folder / "bad.csv").write_text("no,x\n1,a\n1,b\n,c\n")
    made = run("compile", "--data", "bad.csv")
    assert made.code == 2
    assert made.err.count("\n") == 1
    assert (
        "2 of 3 rows can't be used: row 2: the id '1' stands in row 1 already; ids must be unique; row 3: the id in column"
        in made.err
    )


def test_without_a_file_the_folder_s_own_is_meant(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = run("compile")
    assert made.code == 2
    assert "no rrf.toml in this folder" in made.err
    (tmp_path / "rrf.toml").write_text('[problem]\nk = 1\n[[nodes]]\nid = "a"\n')
    assert run("margin", "--json").json["gamma"] == 0.0
    assert run("report", "-o", "page.html").code == 0
