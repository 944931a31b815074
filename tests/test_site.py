"""The docs site is complete, and what others run of ours (a hook, an action) does what it says."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import rrf_design as rrf

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def site() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_site", ROOT / "docs" / "make_site.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pages(site: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Path]]:
    folder = tmp_path_factory.mktemp("site") / "pages"
    return folder, site.lay_out(folder)


def test_the_navigation_names_every_page_and_no_other(pages: tuple[Path, list[Path]]) -> None:
    """But reports, to which their own page leads."""
    folder, made = pages
    named = re.findall(r"^ +- .*?([\w./-]+\.md)$", (ROOT / ".mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    there = {path.relative_to(folder).as_posix() for path in made}
    assert set(named) <= there
    assert {name for name in there if not name.startswith("reports/")} <= set(named)
    assert len(named) == len(set(named))


def test_no_link_of_the_site_leads_nowhere(pages: tuple[Path, list[Path]], site: ModuleType) -> None:
    folder, made = pages
    lost = [
        f"{path.relative_to(folder)}: {target}"
        for path in made
        for target in site.links(path)
        if not target.is_file() or not target.is_relative_to(folder)
    ]
    assert lost == []


def test_the_pages_have_every_verb_and_public_name(pages: tuple[Path, list[Path]], site: ModuleType) -> None:
    assert site.unknown("\n".join(path.read_text(encoding="utf-8") for path in pages[1])) == []
    assert "deliver" in site.unknown("")


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    """A certificate that holds, one that was altered, and the command beside them."""
    anchors = [{"id": f"see-{name}", "node": name} for name in "ab"]
    made = rrf.certify(rrf.Problem(nodes=[{"id": "a"}, {"id": "b"}], anchors=anchors))
    made.save(tmp_path / "certificate.json")
    text = (tmp_path / "certificate.json").read_text()
    (tmp_path / "certificate-altered.json").write_text(text.replace('"k": 1', '"k": 2', 1))
    command = tmp_path / "bin" / "rrf-design"
    command.parent.mkdir()
    command.write_text(f"#!/bin/sh\nexec {sys.executable} -c 'from rrf_design.cli import main; main()' \"$@\"\n")
    command.chmod(0o755)
    return tmp_path


def run(documents: Path, *command: str, **more: str) -> subprocess.CompletedProcess[str]:
    path = f"{documents / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": path, **more}
    return subprocess.run(command, cwd=documents, env=environment, capture_output=True, text=True, check=False)


def read(name: str) -> Any:
    return pytest.importorskip("yaml").safe_load((ROOT / name).read_text(encoding="utf-8"))


def test_the_hook_refuses_an_altered_certificate(documents: Path) -> None:
    import shlex

    (hook,) = read(".pre-commit-hooks.yaml")
    names = ["certificate.json", "certificate-altered.json"]
    assert all(re.search(hook["files"], f"designs/{name}") for name in names)
    assert not re.search(hook["files"], "designs/plan.json")
    entry = shlex.split(hook["entry"])
    assert run(documents, *entry, names[0]).returncode == 0
    refused = run(documents, *entry, *names[::-1])
    assert refused.returncode == 1
    assert "REFUSED" in refused.stdout


@pytest.mark.parametrize(
    ("said", "code"), [("certificate.json", 0), ("certificate*.json", 1), ("certificate.json\nnone.json", 1), ("", 2)]
)
def test_the_action_fails_where_a_document_does_not_hold(documents: Path, said: str, code: int) -> None:
    action = read(".github/actions/verify/action.yml")
    step = action["runs"]["steps"][-1]
    assert set(action["inputs"]) == {"documents", "package"}
    made = run(documents, "bash", "-e", "-o", "pipefail", "-c", step["run"], DOCUMENTS=said)
    assert made.returncode == code, made.stdout + made.stderr
