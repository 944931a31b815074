"""Documentation, examples and the distribution say what the code does."""

from __future__ import annotations

import contextlib
import doctest
import importlib.util
import inspect
import io
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer

import rrf_design
import rrf_design as rrf
import rrf_design.certificates
import rrf_design.questions
import rrf_design.repairing
import rrf_design.responses
import solvers
import solvers.decoding
from rrf_design.cli import main
from rrf_design.cli.app import app

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]
FENCE = re.compile(
    r"^(?:<!-- file: (?P<file>[\w.-]+) -->\n)?```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Block:
    kind: str
    text: str
    line: int
    shows: str | None
    """The ```text block that follows at once."""
    file: str | None


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    found = list(FENCE.finditer(text))
    for index, match in enumerate(found):
        after = found[index + 1] if index + 1 < len(found) else None
        at_once = after is not None and after["kind"] == "text" and not text[match.end() : after.start()].strip()
        line = text.count("\n", 0, match.start("text")) + 1
        yield Block(match["kind"], match["text"], line, after["text"] if after and at_once else None, match["file"])


def executable(page: Path) -> bool:
    return any(block.kind in ("python", "console") or block.file for block in blocks(page))


@pytest.mark.parametrize("page", [p for p in PAGES if executable(p)], ids=lambda p: p.name)
def test_examples_do_what_they_say(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("RRF_CACHE", str(tmp_path / "kept"))  # what an earlier run was told is not asked again
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(page):
        where = f"{page.name}, line {block.line}"
        if block.kind == "python":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(block.text, where, "exec"), namespace)
            assert tidy(printed.getvalue()) == tidy(block.shows or ""), where
        elif block.kind == "console":
            for command, expected in commands(block.text):
                assert fits(run(command), expected), f"{where}: {command}\nprinted\n{run.last}"  # type: ignore[attr-defined]
        elif block.file is not None:
            (tmp_path / block.file).write_text(block.text, encoding="utf-8")


def commands(text: str) -> Iterator[tuple[str, list[str]]]:
    """Each command with the lines below it."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, *lines = part.rstrip("\n").split("\n")
        yield command, lines


def run(command: str) -> str:
    """Standard output of one of our own commands; a call that the documentation gets wrong fails
    here.
    """
    from rrf_design.cli.output import _console

    program, *arguments = shlex.split(command, comments=True)
    assert program == "rrf-design", f"only rrf-design can be shown: {command}"
    printed, messages = io.StringIO(), io.StringIO()
    _console.cache_clear()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(messages), pytest.raises(SystemExit) as ended:
        main(arguments)
    _console.cache_clear()
    assert ended.value.code in (0, 1, None), f"{command}: {messages.getvalue()}"
    run.last = printed.getvalue()  # type: ignore[attr-defined]
    return printed.getvalue()


def fits(printed: str, expected: list[str]) -> bool:
    lines = (
        r"(?:.*\n)*?" if line.strip() == "…" else re.escape(line.rstrip()).replace("…", ".*") + r"\n"
        for line in expected
    )
    pattern = "".join(lines)
    return not expected or re.fullmatch(pattern, tidy(printed) + "\n") is not None


def tidy(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.rstrip().splitlines())


def mentioned(page: Path) -> Iterator[str]:
    """Commands that a page names without running them: in ```text blocks, and in running text
    between backticks.
    """
    for block in blocks(page):
        if block.kind == "text":
            yield from (line for line in block.text.splitlines() if line.startswith("rrf-design "))
    yield from re.findall(r"`(rrf-design [^`\n]+)`", FENCE.sub("", page.read_text(encoding="utf-8")))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_commands_that_are_only_named_are_calls_that_the_verb_takes(page: Path) -> None:
    for line in mentioned(page):
        command = re.split(r"\s{2,}", line)[0]  # what follows is a remark
        words = shlex.split(command)[1:]
        group: Any = typer.main.get_command(app)
        while words and hasattr(group, "get_command") and not words[0].startswith("-"):
            group = group.get_command(None, words[0])
            assert group is not None, f"{page.name}: {command}: no verb {words[0]!r}"
            words = words[1:]
        if hasattr(group, "get_command"):
            continue  # the command by itself, or one of its own options
        known = {name for parameter in group.params for name in (*parameter.opts, *parameter.secondary_opts)}
        options = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
        assert options <= known | {"--help"}, f"{page.name}: {command}: no option {', '.join(options - known)}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if not re.match(r"[a-z]+:", target):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_readme_is_short_and_shows_the_product() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 80
    assert any(block.kind == "python" and block.shows for block in blocks(ROOT / "README.md"))


def test_every_page_is_listed() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for page in (ROOT / "docs").glob("*.md"):
        assert page.name == "index.md" or f"({page.name})" in index, page.name


def test_the_references_name_what_there_is() -> None:
    """Names and signatures; `make docs` writes both pages anew."""
    spec = importlib.util.spec_from_file_location("make_api", ROOT / "docs" / "make_api.py")
    assert spec is not None
    assert spec.loader is not None
    make_api = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make_api)
    for path, text in make_api.pages().items():
        there = re.findall(r"^##.*$", path.read_text(encoding="utf-8"), re.MULTILINE)
        assert there == re.findall(r"^##.*$", text, re.MULTILINE), f"{path.name} is out of date: run make docs"


def test_the_map_of_the_code_shows_every_room() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    for house in ("rrf_design", "solvers"):
        for path in (ROOT / house).iterdir():
            if path.name.startswith(("_", ".")) or path.name == "py.typed":
                continue
            assert re.search(rf"\b{path.stem}\b", text), f"docs/architecture.md says nothing of {house}/{path.name}"


FUNCTIONS = {name: value for name in rrf_design.__all__ if inspect.isfunction(value := getattr(rrf_design, name))} | {
    f"solvers.{name}": value for name in solvers.__all__ if inspect.isfunction(value := getattr(solvers, name))
}
ROOMS = (
    rrf_design.certificates,
    rrf_design.repairing,
    rrf_design.responses,
    rrf_design.questions,
    solvers.decoding,
)
FUNCTIONS |= {
    f"{room.__name__}.{name}": value
    for room in ROOMS
    for name in room.__all__
    if inspect.isfunction(value := getattr(room, name))
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_example_of_a_public_function_runs(name: str) -> None:
    function = inspect.unwrap(FUNCTIONS[name])
    finder = doctest.DocTestFinder(recurse=False)
    found = [test for test in finder.find(function, name, globs={}) if test.examples]
    assert found, f"{name} has no example"
    told: list[str] = []
    for test in found:
        result = doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE).run(
            test, out=told.append
        )
        assert result.failed == 0, "".join(told)


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if not name.startswith("solvers.")])
def test_the_docstring_of_a_public_function_names_every_parameter(name: str) -> None:
    """On a line of its own, as numpy's do, or between backticks in a sentence."""
    text = inspect.getdoc(FUNCTIONS[name]) or ""
    plain = [p.name for p in inspect.signature(FUNCTIONS[name]).parameters.values() if p.kind is not p.VAR_KEYWORD]
    missing = [
        one for one in plain if not re.search(rf"`{one}[`=]|^(?:\w+, )*{one}(?:, \w+)*(?: : .*)?$", text, re.MULTILINE)
    ]
    assert missing == [], f"{name}: nothing is said of {', '.join(missing)}"


PAGES_TYPED_CALLS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "CONTRIBUTING.md"]
PROGRAM = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)

CALLS = """
import networkx as nx
import numpy as np
from numpy.typing import NDArray

import rrf_design as rrf
from rrf_design.models import Model
from rrf_design.risk import AuditSequence, bound
from solvers import margin


def of_a_matrix(B: NDArray[np.float64], groups: list[int]) -> tuple[float, ...]:
    m = margin(B, groups, k=2, n_jobs=2, time_limit=5.0, method="auto")
    return m.value, m.lower, m.upper


def of_a_problem(adapter: Model, responses: dict[str, float]) -> None:
    problem: rrf.Problem = rrf.load("problem.toml")
    problem.margin(select=["a3"], k=1, n_jobs=2, time_limit=5.0)
    plan = rrf.plan(problem, budget=3.0)
    rrf.plan(problem, target=0.5, method="greedy", k=2, seed=1, n_jobs=2, time_limit=5.0, front_end="pulp")
    rrf.plan(problem, k=2)
    points = rrf.frontier(problem, k=2, objective="gamma", time_limit=5.0).points
    assert points[0].cost <= points[-1].gamma
    rrf.portfolio([problem, problem], budget=3.0, k=1, n_jobs=2)
    certificate = rrf.certify(problem, plan.selected, k=2, epsilon=0.1, largest_error=1.0, time_limit=5.0)
    certificate.save("certificate.json")
    assert rrf.verify(certificate).valid and rrf.verify("certificate.json").valid
    fixed = rrf.repair(problem, responses, epsilon=0.1)
    rrf.repair(problem, responses, method="convex", sigma=0.1, confidence=0.9, noise=rrf.Noise(amplitude=2.0))
    assert fixed.verdict.value and fixed.support
    run = rrf.acquire(problem, model="embedded", batch=2, budget=3.0, calls=10, seconds=60.0)
    rrf.acquire(problem, model=adapter, mode="adaptive", prices="prices.toml", seed=1)
    assert run.spent >= 0


def of_a_table() -> None:
    dataset: rrf.Dataset = rrf.dataset("recipe.toml", "table.csv")
    print(len(dataset), dataset["007"].k)
    rrf.plan(dataset, budget=10.0, k=1, n_jobs=2).to_json()
    rrf.certify(dataset, time_limit=5.0).worst.result.gamma_lower
    rrf.repair(dataset, "answers.jsonl", epsilon=0.1, reviews="review.csv").to_json()
    rrf.acquire(dataset, budget=10.0, batch=2)
    rrf.estimate(dataset, "embedded", prices="prices.toml").to_json()


def of_counts() -> int:
    sequence = AuditSequence(100, 0.95)
    sequence.observe(False)
    return bound(100, 10, 0, 0.95) + sequence.bound


def built() -> None:
    rrf.from_graph(nx.path_graph(3), k=1, budget=2.0)
    rrf.save(rrf.from_matrix(np.eye(3), [1, 2], k=1), "problem.toml")
"""
"""INTERFACE.md's calls and the short forms: every keyword has a name and a type."""


def public_functions() -> Iterator[tuple[str, Any]]:
    for name in rrf.__all__:
        if inspect.isfunction(thing := getattr(rrf, name)):
            yield name, thing


def test_every_keyword_stands_in_the_signature() -> None:
    """No decorator hides them, and no `**options` but typed ones."""
    for name, function in public_functions():
        assert not hasattr(function, "__wrapped__"), name
        stars = [p for p in inspect.signature(function).parameters.values() if p.kind is p.VAR_KEYWORD]
        assert all("Unpack" in str(p.annotation) for p in stars), name


def test_mypy_accepts_every_documented_call(tmp_path: Path) -> None:
    """INTERFACE's calls and the programs of all pages; a page may leave its own functions
    unannotated, use a name twice, and know that a result is not None.
    """
    (tmp_path / "calls.py").write_text(CALLS, encoding="utf-8")
    for page in PAGES_TYPED_CALLS:
        if programs := PROGRAM.findall(page.read_text(encoding="utf-8")):
            head = "# mypy: allow-redefinition, allow-untyped-defs, allow-untyped-calls, no-strict-optional"
            (tmp_path / f"page_{page.stem.replace('-', '_').lower()}.py").write_text("\n\n".join([head, *programs]))
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--hide-error-context", "--no-pretty"]
    ran = subprocess.run(
        [*command, *map(str, sorted(tmp_path.glob("*.py")))], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert ran.returncode in (0, 1), ran.stderr
    refused = [line for line in ran.stdout.splitlines() if ": error: " in line]
    assert refused == []
