"""Recipes at the command line: compiled, begun from a template, reworded."""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from loopback_model import largest_amount, model_server

import rrf_design as rrf
from rrf_design.cli.init import RECIPES, SITUATIONS, _recipe_files, _template
from rrf_design.models import Request
from rrf_design.models.cache import AnswerCache
from rrf_design.models.scripted import ScriptedModel
from rrf_design.questions import load_recipe
from rrf_design.questions.answers import RecordedAnswers
from rrf_design.responses import parsers
from rrf_design.responses.parsers import names, reads

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
        "2 of 3 rows can't be used: row 2: the id '1' stands in row 1 already; ids must be unique; row 3: the id in"
        " column" in made.err
    )


def test_without_a_file_the_folder_s_own_is_meant(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = run("compile")
    assert made.code == 2
    assert "no rrf.toml in this folder" in made.err
    (tmp_path / "rrf.toml").write_text('[problem]\nk = 1\n[[nodes]]\nid = "a"\n')
    assert run("margin", "--json").json["gamma"] == 0.0
    assert run("report", "-o", "page.html").code == 0


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


def test_nodes_of_a_log_are_renamed(run: Run, tmp_path: Path) -> None:
    log, out = tmp_path / "log.jsonl", tmp_path / "long.jsonl"
    log.write_text(line("007::prompt-1", "119") + line("007::prompt-2", "5"))
    assert run("import", log, "-o", out, "--node-names", "prompt-1=total,prompt-2=cents").code == 0
    assert [json.loads(row)["node"] for row in out.read_text().splitlines()] == ["total", "cents"]
    made = run("import", log, "-o", out, "--node-names", "prompt-3=total")
    assert (made.code, made.err.count("\n")) == (2, 1)
    assert "no node 'prompt-3'" in made.err


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


def test_situations_are_listed_and_a_wrong_one_names_the_nearest(run: Run, tmp_path: Path) -> None:
    made = run("init")
    assert made.code == 0
    for name in (*SITUATIONS, *RECIPES):
        assert name in made.out
    assert set(run("init", "--json").json["situations"]) == set(SITUATIONS) | set(RECIPES)
    made = run("init", "paraphrases", "-o", tmp_path / "p.toml")
    assert made.code == 2
    assert "did you mean 'paraphrase'" in made.err
    assert made.err.count("\n") == 1
    assert not (tmp_path / "p.toml").exists()


def test_nothing_is_overwritten_unasked(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text("mine")
    assert run("init", "units", "-o", path).code == 2
    assert path.read_text() == "mine"
    assert run("init", "units", "-o", path, "--force").code == 0
    assert "unit conversion" in path.read_text()


@pytest.mark.parametrize("situation", SITUATIONS)
def test_each_file_loads_and_teaches_something(run: Run, tmp_path: Path, situation: str) -> None:
    path = tmp_path / "mine.toml"
    made = run("init", situation, "-o", path, "--json")
    assert made.code == 0
    assert made.json == {"file": str(path), "situation": situation}
    text = path.read_text(encoding="utf-8")
    assert f"rrf-design explain {path} " in text
    problem = rrf.load(path)
    # It starts below its target, and what is on sale within its budget reaches it: a plan has
    # something to do.
    explained = run("explain", path, "--json")
    assert explained.code == 1
    mend = explained.json["mend"]
    assert mend is not None
    assert mend["cost"] <= problem.budget


RIGHT = {
    "paraphrase": ("It is 42.", (42.0,)),
    "units": ("1.609344", (1.609344,)),
    "code": ("def solve(a, b):\n    return a if a > b else b", (2.0, 5.0, -4.0)),
    "claims": ("Yes.", (1.0,)),
}


@pytest.mark.parametrize("situation", SITUATIONS)
def test_a_right_answer_is_read_by_the_parser_it_names(situation: str) -> None:
    text, value = RIGHT[situation]
    node = rrf.loads(_template(situation)).nodes[0]
    assert node.parser is not None
    assert parsers.get(node.parser).parse(text).value == value


@pytest.mark.parametrize("situation", SITUATIONS)
def test_a_live_run_could_ask_every_node(situation: str) -> None:
    for node in rrf.loads(_template(situation)).nodes:
        assert node.prompt
        assert node.parser is not None
        assert parsers.get(node.parser).dim == node.dim


def test_every_template_has_its_situation() -> None:
    import rrf_design

    folder = Path(rrf_design.__file__).parent / "templates"
    assert {path.stem for path in folder.glob("*.toml")} == set(SITUATIONS)
    assert {path.parent.name for path in folder.glob("*/rrf.toml")} == set(RECIPES)


@pytest.mark.parametrize("situation", RECIPES)
def test_a_recipe_comes_with_a_table_and_answers(run: Run, tmp_path: Path, situation: str) -> None:
    folder = tmp_path / "new" / "mine"
    made = run("init", situation, "-o", folder, "--json")
    assert made.code == 0
    told = {"folder": str(folder), "files": list(_recipe_files(situation)), "situation": situation}
    assert made.json.items() >= told.items()
    assert sorted(path.name for path in folder.iterdir()) == sorted(made.json["files"])
    assert run("compile", folder / "rrf.toml").code == 0
    again = run("init", situation, "-o", folder)
    assert again.code == 2
    assert "is there already" in again.err
    assert run("init", situation, "-o", folder, "--force").code == 0


def test_a_recipe_s_folder_is_called_like_its_situation(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("init", "sums").code == 0
    monkeypatch.chdir(tmp_path / "sums")
    assert run("compile", "--item", "stamps").code == 0


# What is delivered for each item, by hand, and which answers were wrong; None where too little was
# read to tell.
DELIVERED: dict[str, dict[str, tuple[Any, tuple[str, ...]]]] = {
    "documents": {
        "1001": (49.98, ()), "1002": (47.6, ()), "1003": (142.8, ("total",)), "1004": (176.12, ()), "1005": (67.41, ("reworded",)),
    },
    "sums": {
        "pencils": (84, ()), "apples": (54, ()), "stamps": (120, ()), "bottles": (264, ()), "chairs": (182, ("plain",)),
        "books": (162, ("nineteen more",)),
    },
    "judges": {"q1": (1, ()), "q2": (0, ()), "q4": (0, ("backward@two",)), "q5": (1, ()), "q6": (1, ("backward@two",))},
    "programs": {"double": (2, ()), "square": (4, ("short",)), "parity": (1, ()), "triangle": (1, ("define",))},
    "statements": {"rhine": (1, ()), "oslo": (0, ()), "whale": (1, ("negation",)), "gold": (1, ("claim",)), "copper": (1, ())},
}  # fmt: skip


@pytest.mark.parametrize("situation", DELIVERED)
def test_recorded_answers_are_repaired_without_a_call(situation: str) -> None:
    import rrf_design

    folder = Path(rrf_design.__file__).parent / "templates" / situation
    data = rrf.dataset(folder / "rrf.toml")
    (delivered,) = data.recipe.long["problem"]["deliver"]
    assert set(DELIVERED[situation]) < set(data) or situation == "sums"
    with RecordedAnswers(data, folder / "answers.jsonl") as answers:
        for name, (value, wrong) in DELIVERED[situation].items():
            responses = {node: answer.response for node, answer in answers.of(name).items()}
            assert set(responses) == {node.id for node in data[name].nodes}
            fixed = rrf.repair(data[name], responses)
            assert fixed.support == wrong, name
            assert fixed.repaired[delivered][0] == pytest.approx(value), name


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


def test_it_lists_the_parsers(run: Run):
    ran = run("parsers")
    assert ran.code == 0
    assert "integer-last" in ran.out.split()


def test_every_parser_is_described():
    assert len({reads(name) for name in names()}) == len(names())
    assert all(len(reads(name)) > 20 for name in names())


def test_it_publishes_how_numbers_are_written(run: Run):
    ran = run("parsers", "--forms", "--json")
    assert ran.code == 0
    document = ran.json
    assert document["count"] == len(document["forms"]) >= 200
    assert document["otherwise"] == 0
    assert all(row["reading"] == row["reads"] for row in document["forms"])
    ran = run("parsers", "--forms")
    assert ran.code == 0
    assert "0 otherwise than they should be" in ran.out


def test_a_form_that_is_read_otherwise_is_a_failure(run: Run, monkeypatch):
    from rrf_design.responses import parsers as forms

    monkeypatch.setattr(forms, "written_forms", lambda: (forms._Form("plain", "42", "43"),))
    ran = run("parsers", "--forms", "--json")
    assert ran.code == 1
    assert ran.json["otherwise"] == 1


def test_classes_are_compared_too(tmp_path: Path, run: Run):
    answers = tmp_path / "answers.txt"
    answers.write_text("[1, 2]\n[1,2]\n", encoding="utf-8")
    ran = run("parsers", answers, "-p", "literal", "-p", "label")
    assert ran.code == 1
    assert "[1, 2]" in ran.out


def test_it_finds_where_parsers_part(tmp_path: Path, run: Run):
    answers = tmp_path / "answers.txt"
    answers.write_text("42\nfirst 3 then 4\nnone\n", encoding="utf-8")
    ran = run("parsers", answers, "-p", "integer-first", "-p", "integer-last", "--json")
    assert ran.code == 1
    document = ran.json
    assert [d["index"] for d in document["disagreements"]] == [1]
    ran = run("parsers", answers, "-p", "integer-first", "-p", "integer-last")
    assert ran.code == 1
    assert "1 of 3 answers are read in more than one way" in ran.out


def test_agreement_is_a_yes(tmp_path: Path, run: Run):
    answers = tmp_path / "answers.txt"
    answers.write_text("42\n", encoding="utf-8")
    choice = '{"name": "choice", "options": ["42", "43"]}'
    ran = run("parsers", answers, "-p", "integer-first", "-p", "integer-strict")
    assert ran.code == 0
    ran = run("parsers", answers, "-p", choice, "-p", choice)
    assert ran.code == 0


@pytest.mark.parametrize("content", [None, ""])
def test_wrong_files_get_one_line(tmp_path: Path, run: Run, content):
    file = tmp_path / "answers.txt"
    if content is not None:
        file.write_text(content)
    ran = run("parsers", file)
    assert ran.code == 2

    assert ran.out == ""
    assert len(ran.err.strip().splitlines()) == 1


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_an_interrupted_table_says_how_to_go_on(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, form: tuple[str, ...]
) -> None:
    answer = ScriptedModel.attempt

    def interrupted(self: ScriptedModel, request: Request) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return answer(self, request)

    (folder / "s.json").write_text('{"default": "7"}')
    (folder / "t.csv").write_text("no,x\n1,a\n2,b\n")
    with monkeypatch.context() as patch:
        patch.setattr(ScriptedModel, "attempt", interrupted)
        made = run("acquire", "rrf.toml", "--limit", 2, "--model", "scripted:s.json", "-o", "d.csv", "--yes", *form)
    assert made.code == 130
    command = (made.err if form else made.out).split("Go on with: rrf-design ")[1].splitlines()[0]
    assert command.startswith("acquire rrf.toml --limit 2 -o d.csv --resume 2")
    done = run(*command.split(), "--json")
    assert done.json["stopped_because"] != "paused"
    assert "Go on with" not in done.err


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
    assert made.json["next"].startswith("rrf-design deliver ")
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


RECIPE_REWORD = '[data]\n[answer]\nof = "q"\ntolerance = 0.1\n[[ask]]\nid = "q"\nprompt = "{{ a }} plus 3?"\n'


def test_wordings_are_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rrf.toml").write_text(RECIPE_REWORD)
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


def test_candidates_are_added_to_the_recipe_on_sale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rrf.toml").write_text(f"# mine\n{RECIPE_REWORD}")
    ran = run("suggest", "-o", "more.toml", "--json")
    assert ran.code == 0
    assert {
        one["transform"] if isinstance(one["transform"], str) else next(iter(one["transform"]))
        for one in (ran.json["candidates"])
    } == {"wording", "cents", "scale", "plus", "complement", "quote-first"}
    text = Path("more.toml").read_text()
    assert text.startswith("# mine")
    assert "# [[veto]]" in text
    planned = rrf.plan(rrf.dataset("more.toml", [{"a": 4}])["1"], target=0.9)
    assert (planned.status, len(planned.selected)) == ("optimal", 2)
    assert run("suggest", "--only", "unit,scale").out.count("[[ask]]") == 2
    assert run("suggest", "--only", "units").code == 2
    Path("s.json").write_text(json.dumps({"default": "What is 3 more than {{ a }}?"}))
    assert '# [[ask]]\n# id = "q-1"' in run("suggest", "--model", "scripted:s.json").out
    assert run("suggest", "--only", "wording", "--model", "scripted:s.json").code == 0
    assert "reviewed = false" in Path("rewordings.toml").read_text()
    assert "say who with --model" in run("suggest", "--language", "German").err
    Path("s.json").write_text(json.dumps({"default": "Was ist 3 mehr als {{ a }}?"}))
    assert '# id = "q-german-1"' in run("suggest", "--model", "scripted:s.json", "--language", "German").out


def test_inputs_that_part_recorded_programs_are_written_as_problems(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("init", "programs", "--out", ".").code == 0
    text = Path("rrf.toml").read_text()
    Path("rrf.toml").write_text(text.replace('name = "code"', 'name = "code", require = "limits"'))
    ran = run("suggest", "-r", "answers.jsonl", "-o", "apart", "--json")
    assert ran.code == 0
    (one,) = ran.json["separating"]
    assert one["id"] == "triangle"
    assert set(one["outputs"]) == {"plain", "short"}
    assert set(json.loads(Path("apart/triangle.answers.json").read_text())) == {"plain", "define", "short"}
    ran = run("repair", "apart/triangle.toml", "-r", "apart/triangle.answers.json", "--json")
    assert (ran.code, ran.json["verdict"]) == (1, "contradicted")
    ran = run("suggest", "--only", "renamed-arguments,restated,decomposed", "--json")
    assert len(ran.json["candidates"]) == 3


def test_a_recipe_may_name_the_file_before_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rrf.toml").write_text(RECIPE_REWORD.replace("tolerance", 'rewordings = "rewordings.toml"\ntolerance'))
    Path("s.json").write_text(json.dumps({"default": "What is 3 more than {{ a }}?"}))
    ran = run("reword", "--model", "scripted:s.json", "-o", "other.toml")
    assert ran.code == 2
    assert "rewordings.toml: no such file" in ran.err
    ran = run("reword", "--model", "scripted:s.json")
    assert ran.code == 0


def test_the_invoices_of_init_go_from_recorded_answers_to_a_delivered_table(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    """Five fields, both kinds of equation, and people for what stays open."""
    from rrf_design.tables import read_reviews

    folder = tmp_path / "invoices"
    assert run("init", "invoices", "-o", folder).code == 0
    table = tmp_path / "delivered.csv"
    run("repair", folder / "rrf.toml", "--responses", folder / "answers.jsonl", "-o", table, "-q")
    with table.open(newline="") as stream:
        rows = {row["no"]: row for row in csv.DictReader(stream)}
    assert [rows["2002"][name] for name in ("net", "tax", "total", "date", "vendor")] == [
        *("40", "7.6", "47.6", "2024-03-11", "lamp shop")
    ]
    assert {no: row["verdict"] for no, row in rows.items()} == {
        **dict.fromkeys(("2001", "2002"), "consistent"),
        **{"2003": "incomplete", "2004": "contradicted"},
    }
    assert "read.net + read.tax is 142.8, and read.total is 120" in rows["2003"]["total_reason"]
    data = rrf.dataset(folder / "rrf.toml")
    right = {("2003", "clerk-total"): "142.80", ("2004", "clerk-vendor"): "Hill Garage"}
    said = [{"id": no, "check": check, "value": value} for (no, check), value in right.items()]
    done = rrf.repair(data, folder / "answers.jsonl", reviews=read_reviews(said, data))
    assert [value.answer for value in done["2004"].values] == [176.12, 148, 28.12, "2024-04-02", "hill garage"]
    assert done["2003"].values[0].verdict.value == "checked"


def test_a_promise_about_several_fields_is_refused_before_anything_is_asked(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    assert run("init", "invoices", "-o", tmp_path / "invoices").code == 0
    data = rrf.dataset(tmp_path / "invoices" / "rrf.toml")
    with pytest.raises(rrf.InputError, match="speaks of one value a row, and this recipe delivers 5"):
        rrf.pilot(data, tmp_path / "invoices" / "answers.jsonl", risk=0.1)
