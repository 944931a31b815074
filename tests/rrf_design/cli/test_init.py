"""init --from: a recipe for a table and a question, what was assumed, the estimate, and the next
command.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from loopback_model import largest_amount, model_server

Run = Callable[..., Any]

TABLE = """no,text,total
1,"Paper 42.00, tax 7.98. Please pay 49.98 soon.",49.98
2,"Desk lamp 40.00, tax 7.60, to pay in all 47.60.",47.60
3,"Windows, March. 120.00 and 22.80 tax, sum 142.80.",142.80
"""
QUESTION = "What is the total?"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my table.csv").write_text(TABLE)


def test_a_table_and_a_question_make_a_recipe_that_runs(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with model_server(largest_amount) as url:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-nobodys-key")
        monkeypatch.setattr("rrf_design.models.openai._HOSTED", url)
        made = run("init", "--from", "my table.csv", "--ask", QUESTION, "--model", "openai:gpt-4.1-mini", "-o", "to do")
        assert made.code == 0
        assert sorted(path.name for path in Path("to do").iterdir()) == ["rewordings.toml", "rrf.toml"]
        assert 'table = "../my table.csv"' in Path("to do/rrf.toml").read_text()
        assert "- column 'total' is the truth" in made.out
        assert re.search(r"^calls +12 +48$", made.out, re.MULTILINE)
        command = made.out.splitlines()[-1].removeprefix("Next: ")
        ran = run(*shlex.split(command)[1:])
        assert (ran.code, Path("delivered.csv").is_file()) == (0, True)


def test_the_table_s_name_is_the_folder_s_and_nothing_is_overwritten(run: Run) -> None:
    made = run("init", "--from", "my table.csv", "--ask", QUESTION, "--json")
    assert made.code == 0
    assert (made.json["folder"], made.json["files"]) == ("my table", ["rrf.toml"])
    assert made.json["estimate"]["calls"]["expected"] == 12
    assert made.json["estimate"]["money"] == {"expected": None, "most": None}
    assert len(made.json["assumed"]) >= 4
    assert made.json["next"].startswith("rrf-design ")
    Path("my table/rrf.toml").write_text("mine")
    again = run("init", "--from", "my table.csv", "--ask", QUESTION)
    assert (again.code, again.err.count("\n")) == (2, 1)
    assert "is there already" in again.err
    assert Path("my table/rrf.toml").read_text() == "mine"
    assert run("init", "--from", "my table.csv", "--ask", QUESTION, "--force").code == 0


def test_what_is_given_is_not_guessed(run: Run) -> None:
    call = (
        "init",
        "--from",
        "my table.csv",
        "--ask",
        "Which?",
        "--choices",
        "A, B,C",
        "--id",
        "none",
        "--gold",
        "none",
    )
    assert run(*call, "-o", "new", "-q").out == ""
    text = Path("new/rrf.toml").read_text()
    assert 'choices = ["A", "B", "C"]' in text
    assert 'id = "no"' not in text
    assert "gold" not in text
    assert "total: {{ total }}" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--from", "my table.csv"), 'takes --ask "QUESTION"'),
        (("documents", "--from", "my table.csv", "--ask", QUESTION), "and no situation"),
        (("--ask", QUESTION), "--ask goes with a table of yours"),
        (("documents", "--model", "embedded"), "--model goes with a table of yours"),
        (("--from", "no.csv", "--ask", QUESTION), "no.csv: no such file"),
        (("--from", "table.xls", "--ask", QUESTION), "tables end in .csv"),
        (("--from", "my table.csv", "--ask", ""), "the question is empty"),
        (("--from", "my table.csv", "--ask", QUESTION, "--choices", "A,"), "choices 'A, '"),
        (("--from", "my table.csv", "--ask", QUESTION, "--model", "opnai:x"), "unknown model"),
    ],
)
def test_wrong_calls_are_one_line_and_write_nothing(run: Run, arguments: tuple[str, ...], message: str) -> None:
    made = run("init", *arguments, "-o", "new")
    assert (made.code, made.out, made.err.count("\n")) == (2, "", 1)
    assert message in made.err
    assert not Path("new").exists()


def test_a_situation_ends_with_its_estimate_and_the_next_command(run: Run) -> None:
    made = run("init", "sums", "-o", "mine")
    assert "6 items of 1 structure" in made.out
    ran = run(*shlex.split(made.out.splitlines()[-1].removeprefix("Next: "))[1:])
    assert ran.code == 0
