"""Every verb alike: help, JSON, exit codes; scenario and demo."""

from __future__ import annotations

import inspect
import json
import math
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer

import rrf_design
from rrf_design.cli import _options as options
from rrf_design.cli import main, output
from rrf_design.cli._options import Items
from rrf_design.cli.app import VERBS as LINES
from rrf_design.cli.app import app
from rrf_design.errors import InputError
from solvers.result import Progress

Run = Callable[..., Any]


def verbs() -> Iterator[tuple[str, Any]]:
    def walk(path: str, command: Any) -> Iterator[tuple[str, Any]]:
        if not hasattr(command, "list_commands"):
            yield path, command
        else:
            for name in command.list_commands(None):
                yield from walk(f"{path} {name}", command.get_command(None, name))

    yield from walk("rrf-design", typer.main.get_command(app))


VERBS = dict(verbs())


@pytest.mark.parametrize("path", VERBS)
def test_help_teaches_with_an_example(path: str) -> None:
    help_text = VERBS[path].help or ""
    assert f"Example: {path}" in inspect.cleandoc(help_text)


@pytest.mark.parametrize("path", VERBS)
def test_examples_are_calls_that_the_verb_takes(path: str) -> None:
    for paragraph in inspect.cleandoc(VERBS[path].help or "").split("\n\n"):
        if paragraph.startswith("Example: "):
            words = shlex.split(paragraph.removeprefix("Example: "))
            assert words[: len(path.split())] == path.split()
            VERBS[path].make_context(path, words[len(path.split()) :])


@pytest.mark.parametrize("name", LINES)
def test_the_line_of_a_verb_is_the_beginning_of_its_help(name: str) -> None:
    """`--help` lists the verbs without importing them; this keeps the list honest."""
    command = typer.main.get_command(app).get_command(None, name)  # type: ignore[attr-defined,arg-type]
    first = inspect.cleandoc(command.help or "").split("\n\n")[0]
    assert LINES[name].line == " ".join(first.split())


def test_verbs_stand_in_the_order_of_the_list(run: Run) -> None:
    """The group to start with first; `--help-all` has every verb once, with what it does."""
    shown = run("--help").out
    first = [shown.index(f"\n  {name}  ") for name in ("init", "estimate", "deliver", "studio", "verify")]
    assert first == sorted(first)
    assert shown.index("More verbs") > first[-1]
    assert all(re.search(rf"\b{name}\b", shown) for name in LINES)
    assert max(map(len, shown.splitlines())) < 110
    every = run("--help-all").out
    listed = typer.main.get_command(app).list_commands(None)  # type: ignore[attr-defined,arg-type]
    places = [every.index(f"\n  {name}  ") for name in listed]
    assert places == sorted(places)
    assert sorted(listed) == sorted(LINES)
    assert all(every.count(f"\n  {name}  ") == 1 for name in LINES)


def test_the_list_of_verbs_imports_none_of_them() -> None:
    program = (
        "import sys\nfrom rrf_design.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print([name for name in sys.modules if name.startswith('rrf_design.cli.') or name in ('numpy', 'pydantic')],"
        " file=sys.stderr)"
    )
    made = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert made.stderr.strip() == "['rrf_design.cli.app']"
    assert all(name in made.stdout for name in LINES)


@pytest.mark.parametrize("path", VERBS)
def test_every_verb_takes_json(path: str) -> None:
    assert any("--json" in parameter.opts for parameter in VERBS[path].params)


@pytest.mark.parametrize("path", VERBS)
def test_every_verb_can_be_quiet(path: str) -> None:
    assert any("--quiet" in parameter.opts for parameter in VERBS[path].params)


def test_the_version_and_the_help_without_arguments(run: Run) -> None:
    made = run("--version")
    assert (made.code, made.out.strip()) == (0, rrf_design.__version__)
    made = run()
    assert "margin" in made.out + made.err


@pytest.mark.parametrize(
    "arguments", [("margin",), ("nonsense",), ("margin", "x.toml", "--nonsense"), ("margin", "x.toml", "--k", "many")]
)
def test_a_wrong_call_is_one_line(run: Run, arguments: tuple[str, ...]) -> None:
    made = run(*arguments)
    assert made.code == 2
    assert made.err.count("\n") == 1
    assert made.err.startswith("rrf-design")
    assert made.out == ""


def test_a_mistyped_verb_is_told_the_nearest(run: Run) -> None:
    assert "Did you mean 'explain'" in run("explan").err


def test_ctrl_c_tells_the_bounds_so_far(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    import numpy as np

    import solvers

    found = solvers.margin(np.eye(4), k=1)

    def stopped(*_: object, **__: object) -> None:
        raise solvers.Interrupted(found)

    monkeypatch.setattr(solvers, "margin", stopped)
    path = tmp_path / "p.toml"
    path.write_text('[problem]\nk = 1\n[[nodes]]\nid = "a"\n')
    made = run("margin", path, "--json")
    assert made.code == 130
    assert made.out == ""
    assert "proven between" in made.err
    assert "k = 1" in made.err


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("exp", "explain"),
        ("init par", "paraphrase"),
        ("scenario run anchor", "anchor-transition"),
        ("plan --bud", "--budget"),
    ],
)
def test_completion_is_offered(typed: str, offered: str) -> None:
    environment = {
        **os.environ,
        "_RRF_DESIGN_COMPLETE": "complete_bash",
        "COMP_WORDS": f"rrf-design {typed}",
        "COMP_CWORD": str(len(typed.split())),
    }
    made = subprocess.run(
        [sys.executable, "-c", "from rrf_design.cli import main; main()"],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert offered in made.stdout.split()


def test_ctrl_c_in_a_planner_tells_the_bounds_it_was_told(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    import rrf_design.planning

    def stopped(*_: object, progress: Progress, **__: object) -> None:
        progress(None, (0.25, 0.5), "")
        raise KeyboardInterrupt

    monkeypatch.setattr(rrf_design.planning, "plan", stopped)
    path = tmp_path / "p.toml"
    path.write_text('[problem]\nk = 1\nbudget = 1.0\n[[nodes]]\nid = "a"\n')
    made = run("plan", path, "--json")
    assert made.code == 130
    assert made.out == ""
    assert "margin: so far proven between 0.25 and 0.5" in made.err


def test_an_interrupt_tells_what_is_known_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[BaseException] = []
    monkeypatch.setattr("rrf_design.cli.output.tell_interrupted", told.append)

    def interrupted(self: Any, ctx: Any) -> None:
        raise KeyboardInterrupt("γ is at least 0.5")

    monkeypatch.setattr("typer.core.TyperGroup.invoke", interrupted)
    with pytest.raises(KeyboardInterrupt):
        typer.main.get_command(app).invoke(None)  # type: ignore[arg-type]
    assert [str(one) for one in told] == ["γ is at least 0.5"]


def test_json_is_one_line_without_infinities(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_json({"a": math.inf, "b": [math.nan, 1.5], "γ": "é"})
    printed = capsys.readouterr().out
    assert printed.count("\n") == 1
    assert json.loads(printed) == {"a": None, "b": [None, 1.5], "γ": "é"}


def test_text_of_problem_files_is_never_markup(capsys: pytest.CaptureFixture[str]) -> None:
    output._console.cache_clear()
    output.say("[red]x[/red] [link]")
    output.table("", ["a"], [["[bold]y"]])
    printed = capsys.readouterr().out
    output._console.cache_clear()
    assert "[red]x[/red] [link]" in printed
    assert "[bold]y" in printed


def test_no_bar_and_no_colour_away_from_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with output.progress_bar("margin", quiet=True) as progress:
        progress(0.5, (0.1, 0.2), "")
    assert progress.bounds == (0.1, 0.2)
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


def test_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import rich.console

    terminal = rich.console.Console(stderr=True, force_terminal=True, width=160, color_system=None)
    monkeypatch.setattr(output, "_console", lambda *, stderr=False: terminal)
    progress = output._Progress("margin", time_limit=10.0, shown=True)
    progress(0.5, (0.125, 0.25), "")
    progress(None, (0.125, 0.2), "")
    progress.stop()
    assert "between 0.125 and 0.2" in capsys.readouterr().err


def test_words_take_the_place_of_bounds(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import rich.console

    terminal = rich.console.Console(stderr=True, force_terminal=True, width=160, color_system=None)
    monkeypatch.setattr(output, "_console", lambda *, stderr=False: terminal)
    progress = output._Progress("repair", time_limit=None, shown=True)
    progress(0.5, None, "best so far, not proven: a")
    progress.stop()
    assert "best so far, not proven: a" in capsys.readouterr().err
    assert output._progress_words(progress) == "repair: best so far, not proven: a"


def test_ids_are_split_at_commas() -> None:
    assert options.split_ids(None) is None
    assert options.split_ids(" a, b ,,c") == ["a", "b", "c"]


def test_an_interrupt_inside_a_kernel_is_an_interrupt() -> None:
    """Compiled code returns a result though the interrupt is set; the interpreter makes a
    SystemError of that, twice over.
    """

    def kernel(progress: output._Progress) -> None:
        progress(0.5, None, "best so far, not proven: a")
        inner = SystemError("returned a result with an exception set")
        inner.__cause__ = KeyboardInterrupt()
        raise SystemError("returned a result with an exception set") from inner

    with pytest.raises(KeyboardInterrupt) as caught, output.progress_bar("repair", quiet=True) as progress:
        kernel(progress)
    assert caught.value.__notes__ == ["repair: best so far, not proven: a"]
    with pytest.raises(SystemError), output.progress_bar("repair", quiet=True):
        raise SystemError("of another kind")


def test_a_zero_is_shown_without_the_digits_of_its_rounding() -> None:
    assert output.proven_range(0.0, 0.0) == "0"
    assert output.proven_range(0.0, 2.65e-16) == "0 (numerically: below 1e-09)"
    assert output.proven_range(0.25, 0.5) == "between 0.25 and 0.5"


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "rrf.toml"
    path.write_text('[data]\ntable = "t.csv"\n[answer]\nof = "a"\n[[ask]]\nid = "a"\nprompt = "{{ x }}"\n')
    (tmp_path / "t.csv").write_text("x\n" + "".join(f"q{i}\n" for i in range(9)))
    return path


def test_the_options_choose_a_part(recipe: Path) -> None:
    assert len(Items().dataset(recipe)) == 9
    assert list(Items(item="3").dataset(recipe)) == ["3"]
    assert list(Items(limit=2).dataset(recipe)) == ["1", "2"]
    assert list(Items(sample=3, seed=1).dataset(recipe)) == list(Items(sample=3, seed=1).dataset(recipe))
    with pytest.raises(InputError, match="give one of"):
        Items(item="3", limit=1).dataset(recipe)


def test_what_speaks_of_many_items(recipe: Path, tmp_path: Path) -> None:
    plain = tmp_path / "problem.toml"
    plain.write_text('[[nodes]]\nid = "a"\nprompt = "{{ x }}"\n')
    assert Items().many(recipe)
    assert not Items().many(plain)
    assert Items(tmp_path / "t.csv").many(plain)
    assert len(Items(tmp_path / "t.csv").dataset(plain)) == 9


@pytest.mark.parametrize("verb", [["margin"], ["explain"], ["certify", "-o", "c.json"], ["report", "-o", "r.html"]])
def test_verbs_of_one_problem_take_a_table(
    run: Any, recipe: Path, verb: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(recipe.parent)
    chosen: dict[int | None, list[object]] = {
        9: ["--data", "t.csv"],
        3: ["--limit", 3],
        2: ["--sample", 2, "--seed", 3],
        None: ["--item", 4],
    }
    for count, part in chosen.items():
        ran = run(*verb, *part, "--json")
        assert ran.code in (0, 1), ran.err
        assert verb[0] == "report" or ran.json.get("items") == count
    assert run(*verb, "--item", "4", "--limit", 1).code == 2
    (recipe.parent / "p.toml").write_text('[[nodes]]\nid = "a"\n')
    ran = run(verb[0], "p.toml", *verb[1:], "--limit", 1)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "goes with a table" in ran.err


def test_list_shows_every_question(run: Run) -> None:
    import scenarios

    listed = run("scenario", "list", "--json").json["scenarios"]
    assert [entry["name"] for entry in listed] == list(scenarios.names())
    assert all(entry["question"].endswith("?") and entry["expected"] for entry in listed)
    assert "worked-examples" in run("scenario", "list").out


def test_run_writes_pages_and_says_the_verdicts(run: Run, tmp_path: Path) -> None:
    ran = run("scenario", "run", "consistency-truth", "--quick", "--out", tmp_path, "--json", "--set", "seeds=2")
    assert ran.code == 0
    assert ran.json["parameters"]["seeds"] == 2
    assert {e["status"] for e in ran.json["expectations"]} == {"met"}
    assert (tmp_path / "consistency-truth" / "index.html").is_file()
    again = run("scenario", "run", "consistency-truth", "--quick", "--out", tmp_path, "--resume", "--set", "seeds=2")
    assert "finished before" in again.err
    assert "met" in again.out


def test_wrong_calls_are_one_line(run: Run, tmp_path: Path) -> None:
    for arguments, message in [
        (("scenario", "run", "anchor-transitoin"), "did you mean 'anchor-transition'"),
        (("scenario", "run", "worked-examples", "--model", "embedded"), "has no parameter 'model'"),
        (("scenario", "run", "worked-examples", "--set", "nonsense"), "NAME=VALUE"),
    ]:
        ran = run(*arguments, "--out", tmp_path)
        assert ran.code == 2
        assert message in ran.err
        assert "Traceback" not in ran.err
        assert len(ran.err.strip().splitlines()) == 1


def test_pages_are_made_again_without_a_run(run: Run, tmp_path: Path) -> None:
    run("scenario", "run", "consistency-truth", "--quick", "--out", tmp_path / "results", "--set", "seeds=2")
    made = run("scenario", "pages", tmp_path / "results", "--out", tmp_path / "pages")
    assert made.code == 0
    assert made.out.strip().endswith("index.html")
    for page in ("index.html", "consistency-truth/index.html"):
        assert (tmp_path / "pages" / page).read_bytes() == (tmp_path / "results" / page).read_bytes()
    nothing = run("scenario", "pages", tmp_path / "pages", "--out", tmp_path / "again")
    assert nothing.code == 2
    assert "no results of scenarios there" in nothing.err


def test_a_missing_extra_is_one_line(run: Run, tmp_path: Path, monkeypatch: Any) -> None:
    import scenarios.kit.runner

    def missing(*_: object, **__: object) -> None:
        raise ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib")

    monkeypatch.setattr(scenarios.kit.runner, "run_scenario", missing)
    ran = run("scenario", "run", "worked-examples", "--out", tmp_path)
    assert ran.code == 2
    assert ran.err.strip().endswith("needs matplotlib; get it with: pip install 'rrf-design[scenarios]'")
    assert len(ran.err.strip().splitlines()) == 1


def test_violations_set_the_exit_code(run: Run, tmp_path: Path, monkeypatch: Any) -> None:
    import scenarios.consistency_truth as module

    monkeypatch.setattr(module, "DEFECT_LIMIT", 1e-30)
    ran = run("scenario", "run", "consistency-truth", "--quick", "--out", tmp_path, "--quiet")
    assert ran.code == 1
    assert "Ran: 1 of" in ran.out
    assert "conditions violated" in ran.out
    assert ran.err == ""


def test_all_goes_on_and_tells_what_ran_from_what_did_not(run: Run, tmp_path: Path, monkeypatch: Any) -> None:
    """Violated, not runnable and crashed are three things, and each has its own exit code."""
    import scenarios
    import scenarios.consistency_truth as violating
    import scenarios.worked_examples as crashing

    monkeypatch.setattr(scenarios, "names", lambda: ("acquisition-policies", "consistency-truth", "worked-examples"))
    monkeypatch.setattr(violating, "DEFECT_LIMIT", 1e-30)
    missing = run("scenario", "run", "all", "--quick", "--out", tmp_path, "--quiet")
    assert missing.code == 2
    assert "2 scenarios ran: conditions violated in consistency-truth 1 of" in missing.out
    assert "acquisition-policies did not run: " in missing.err
    assert "Traceback" not in missing.err

    def crash(*_: object) -> None:
        raise ZeroDivisionError("broken on purpose")

    broken = replace(crashing.SCENARIO, report=crash)
    monkeypatch.setattr(crashing, "SCENARIO", broken)
    crashed = run("scenario", "run", "all", "--quick", "--out", tmp_path, "--quiet", "--json")
    assert crashed.code == 3
    assert [d["name"] for d in crashed.json["scenarios"]] == ["consistency-truth"]
    assert crashed.json["stopped"]["worked-examples"] == "crashed: ZeroDivisionError: broken on purpose"
    assert "Traceback" in crashed.err


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
        "And a table to hand over: the capitals of 40 countries",
        "At most 2 of these 40 rows are wrong, because nobody checked only 2: 38 looked at, 38 wrong found and fixed.",
        "Handed over without a look: Egypt: Cairo, Turkey: Istanbul.",
        "Fooled, and nobody looked: Turkey: Istanbul (it is Ankara); the promise allows for up to 2.",
    ):
        assert part in text
    assert "0, 1, 0, 0" not in text
    assert json.loads((here / "demo-output" / "run.json").read_text())["format"] == "rrf-run"
    assert list((here / "demo-output" / "certificates").glob("*.json"))
    capitals = here / "demo-output" / "capitals"
    assert call("verify", str(capitals / "proof.json"), "--delivered", str(capitals / "delivered.csv")) == 0
    assert "Egypt,Cairo,Cairo," in (capitals / "delivered.csv").read_text()
    page = (capitals / "delivered.html").read_text()
    assert page.index("At most 2 of these 40 rows are wrong") < page.index("<h2>Every item")


def test_the_page_of_the_demo_says_words_and_what_was_fooled(here: Path) -> None:
    assert call("demo", "--model", "scripted:s.json", "--quiet") == 0
    page = (here / "demo-output" / "report.html").read_text().partition("<script")[0]
    assert page.index("Fooled: capital of Turkey (more than two answers are wrong and agree") < page.index(
        "<h2>Every item"
    )
    assert "plain Cairo; tell Cairo" in page
    for numbers in ("0, 1, 0, 0", "1, 0, 0, 0", "0, 0, 1, 0", "0, 0, 0, 1"):
        assert numbers not in page


def test_json_is_one_object(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("demo", "--model", "scripted:s.json", "--json", "-o", "elsewhere") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["promise_kept"]
    assert document["certificates_valid"]
    assert document["verdicts"]["capital of Turkey"] == "too many wrong, fooled"
    assert document["delivered"]["reached"]
    assert document["delivered"]["fooled"] == ["Turkey"]
    assert document["spent"] <= 16


def test_a_folder_that_can_not_be_made(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("file").write_text("")
    Path("script.json").write_text('{"rules": [], "default": "5"}')  # the embedded model may not be installed
    assert call("demo", "-o", "file/folder", "--model", "scripted:script.json") == 2
    assert "can't be made a folder" in capsys.readouterr().err
