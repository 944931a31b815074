"""rrf-design parsers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rrf_design.cli import main
from rrf_design.cli.parsers import WORDS
from rrf_design.responses.parsers import names


def call(*arguments: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(list(arguments))
    return int(end.value.code or 0)


def test_it_lists_the_parsers(capsys):
    assert call("parsers") == 0
    assert "integer-last" in capsys.readouterr().out.split()


def test_every_parser_is_described():
    assert tuple(WORDS) == names()


def test_it_publishes_how_numbers_are_written(capsys):
    assert call("parsers", "--forms", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["count"] == len(document["forms"]) >= 200
    assert document["otherwise"] == 0
    assert all(row["reading"] == row["reads"] for row in document["forms"])
    assert call("parsers", "--forms") == 0
    assert "0 otherwise than they should be" in capsys.readouterr().out


def test_a_form_that_is_read_otherwise_is_a_failure(capsys, monkeypatch):
    from rrf_design.responses import forms

    monkeypatch.setattr(forms, "written_forms", lambda: (forms.Form("plain", "42", "43"),))
    assert call("parsers", "--forms", "--json") == 1
    assert json.loads(capsys.readouterr().out)["otherwise"] == 1


def test_classes_are_compared_too(tmp_path: Path, capsys):
    answers = tmp_path / "answers.txt"
    answers.write_text("[1, 2]\n[1,2]\n", encoding="utf-8")
    assert call("parsers", str(answers), "-p", "literal", "-p", "label") == 1
    assert "[1, 2]" in capsys.readouterr().out


def test_it_finds_where_parsers_part(tmp_path: Path, capsys):
    answers = tmp_path / "answers.txt"
    answers.write_text("42\nfirst 3 then 4\nnone\n", encoding="utf-8")
    assert call("parsers", str(answers), "-p", "integer-first", "-p", "integer-last", "--json") == 1
    document = json.loads(capsys.readouterr().out)
    assert [d["index"] for d in document["disagreements"]] == [1]
    assert call("parsers", str(answers), "-p", "integer-first", "-p", "integer-last") == 1
    assert "1 of 3 answers are read in more than one way" in capsys.readouterr().out


def test_agreement_is_a_yes(tmp_path: Path, capsys):
    answers = tmp_path / "answers.txt"
    answers.write_text("42\n", encoding="utf-8")
    choice = '{"name": "choice", "options": ["42", "43"]}'
    assert call("parsers", str(answers), "-p", "integer-first", "-p", "integer-strict") == 0
    assert call("parsers", str(answers), "-p", choice, "-p", choice) == 0
    capsys.readouterr()


@pytest.mark.parametrize("content", [None, ""])
def test_wrong_files_get_one_line(tmp_path: Path, capsys, content):
    file = tmp_path / "answers.txt"
    if content is not None:
        file.write_text(content)
    assert call("parsers", str(file)) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.strip().splitlines()) == 1
