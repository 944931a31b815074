"""What every verb promises: help with an example, one line for a wrong call, bounds when interrupted."""

from __future__ import annotations

import inspect
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import typer

import rrf_design
from rrf_design.bundles import Backend
from rrf_design.cli.app import VERBS as LINES
from rrf_design.cli.app import app

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
    for line in inspect.cleandoc(VERBS[path].help or "").splitlines():
        if line.startswith("Example: "):
            words = shlex.split(line.removeprefix("Example: "))
            assert words[: len(path.split())] == path.split()
            VERBS[path].make_context(path, words[len(path.split()) :])


@pytest.mark.parametrize("name", LINES)
def test_the_line_of_a_verb_is_the_beginning_of_its_help(name: str) -> None:
    """`--help` lists the verbs without importing them; this keeps the list honest."""
    command = typer.main.get_command(app).get_command(None, name)  # type: ignore[attr-defined,arg-type]
    first = inspect.cleandoc(command.help or "").split("\n\n")[0]
    assert LINES[name].line == " ".join(first.split())


def test_the_list_of_verbs_imports_none_of_them() -> None:
    program = (
        "import sys\nfrom rrf_design.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print([name for name in sys.modules if name.startswith('rrf_design.cli.')], file=sys.stderr)"
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


def test_the_version(run: Run) -> None:
    made = run("--version")
    assert (made.code, made.out.strip()) == (0, rrf_design.__version__)


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


def test_without_arguments_the_help_is_shown(run: Run) -> None:
    made = run()
    assert "margin" in made.out + made.err


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

    def stopped(*_: object, backend: Backend, **__: object) -> None:
        assert backend.progress is not None
        backend.progress(None, (0.25, 0.5), "")
        raise KeyboardInterrupt

    monkeypatch.setattr(rrf_design.planning, "plan", stopped)
    path = tmp_path / "p.toml"
    path.write_text('[problem]\nk = 1\nbudget = 1.0\n[[nodes]]\nid = "a"\n')
    made = run("plan", path, "--json")
    assert made.code == 130
    assert made.out == ""
    assert "margin: so far proven between 0.25 and 0.5" in made.err
