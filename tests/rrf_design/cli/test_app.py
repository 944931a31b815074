"""All verbs in one application: each imported when it is called, and its line in the help what its own help begins with."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest
import typer

import rrf_design
from rrf_design.cli.app import VERBS, Verbs, app

Run = Callable[..., Any]


@pytest.fixture
def group() -> Verbs:
    found = typer.main.get_command(app)
    assert isinstance(found, Verbs)
    return found


def test_verbs_stand_in_the_order_of_the_list(run: Run, group: Verbs) -> None:
    assert group.list_commands(None) == list(VERBS)
    shown = run("--help").out.partition("Commands")[2]
    places = [shown.index(f"\n  {name}  ") for name in VERBS]
    assert places == sorted(places)


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_lives_where_the_list_says(name: str, group: Verbs) -> None:
    command = group.get_command(None, name)
    assert command is not None
    module = import_module(f"rrf_design.cli.{VERBS[name].module}")
    assert callable(module.register)
    first = (command.help or "").split("\n\n")[0].replace("\n", " ").strip()
    assert first == VERBS[name].line
    assert group.get_command(None, name) is command


def test_a_verb_that_is_not_there_suggests_the_nearest(run: Run) -> None:
    found = run("margn", "problem.toml")
    assert found.code == 2
    assert "margin" in found.err
    assert found.out == ""


def test_the_version(run: Run) -> None:
    found = run("--version")
    assert (found.code, found.out) == (0, f"{rrf_design.__version__}\n")


def test_help_alone_loads_no_verb() -> None:
    program = (
        "import sys\nfrom rrf_design.cli.app import app\n"
        "print(sorted(name for name in sys.modules if name.startswith('rrf_design.cli.') or name in ('numpy', 'pydantic')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['rrf_design.cli.app']"


def test_an_interrupt_tells_what_is_known_so_far(monkeypatch: pytest.MonkeyPatch, group: Verbs) -> None:
    told: list[BaseException] = []
    monkeypatch.setattr("rrf_design.cli.output.tell_interrupted", told.append)

    def interrupted(self: Any, ctx: Any) -> None:
        raise KeyboardInterrupt("γ is at least 0.5")

    monkeypatch.setattr("typer.core.TyperGroup.invoke", interrupted)
    with pytest.raises(KeyboardInterrupt):
        group.invoke(None)
    assert [str(one) for one in told] == ["γ is at least 0.5"]
