"""The documentation can't rot: its programs run, its commands print what it says, its links lead
somewhere.

A ```python block runs in a namespace shared by its file; a ```text block right after it is what it
prints. In a ```console block, lines after "$ " are commands and the lines below them their standard
output, where "…" stands for the rest of a line or, alone, for any lines. A block below a line
<!-- file: NAME --> is written to that file.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer

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
    from rrf_design.cli.output import console

    program, *arguments = shlex.split(command, comments=True)
    assert program == "rrf-design", f"only rrf-design can be shown: {command}"
    printed, messages = io.StringIO(), io.StringIO()
    console.cache_clear()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(messages), pytest.raises(SystemExit) as ended:
        main(arguments)
    console.cache_clear()
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
    assert len(text.splitlines()) <= 50
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
