"""The wheel: everything a user needs is in it, nothing else, and it works where only it is
installed.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import rrf_design

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    if importlib.util.find_spec("hatchling") is not None:  # no network needed then
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    elif importlib.util.find_spec("build") is not None:
        command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(out)]
    else:
        pytest.skip("neither hatchling nor build is installed: the wheel is not tried")
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if made.returncode != 0 and "Connection" in made.stdout + made.stderr:
        pytest.skip("no package index to fetch the build backend from: the wheel is not tried")
    assert made.returncode == 0, made.stderr[-2000:]
    return next(out.glob("*.whl"))


def test_the_wheel_holds_what_is_needed_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    for needed in (
        "rrf_design/py.typed",
        "solvers/py.typed",
        "rrf_design/reporting/assets/page.css",
        "rrf_design/reporting/assets/page.js",
        "rrf_design/reporting/assets/field.js",
        "rrf_design/templates/paraphrase.toml",
    ):
        assert needed in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    tops = {name.split("/")[0] for name in names}
    assert tops == {"rrf_design", "solvers", f"rrf_design-{rrf_design.__version__}.dist-info"}
    assert not any("__pycache__" in name or name.endswith((".sqlite", ".gguf")) for name in names)


def test_it_works_where_only_the_wheel_is(wheel: Path, tmp_path: Path) -> None:
    """Unpacked into an empty folder and run from elsewhere, with the checkout off the path, so that
    it can't help.
    """
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    (tmp_path / "work").mkdir()
    code = (
        "import os, sys; sys.path = [path for path in sys.path if not os.path.isdir(os.path.join(path, 'scenarios'))];"
        " sys.path.insert(0, sys.argv.pop(1)); import rrf_design; from rrf_design.cli import main; assert"
        " rrf_design.__file__.startswith(sys.path[0]); main()"
    )
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["NUMBA_DISABLE_JIT"] = (
        "1"  # a new place means a new kernel cache: a minute of compiling for one tiny field
    )

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", code, str(site), *arguments]
        return subprocess.run(
            command, cwd=tmp_path / "work", env=environment, capture_output=True, text=True, check=False
        )

    assert run("--version").stdout.strip() == rrf_design.__version__
    assert run("init", "paraphrase").returncode == 0
    assert run("margin", "problem.toml", "--json").stdout.startswith('{"k": 1')
    made = run("report", "problem.toml", "-o", "page.html")
    assert made.returncode == 0, made.stderr
    assert (tmp_path / "work" / "page.html").stat().st_size > 10_000
    left_out = run("scenario", "list")
    assert (left_out.returncode, left_out.stdout) == (2, "")
    assert left_out.stderr == (
        "rrf-design: scenarios are a folder of the repository and not of the package: get the source of rrf-design"
        f" {rrf_design.__version__} and run pip install -e '.[scenarios]' in it\n"
    )
    (tmp_path / "work" / "scenarios").symlink_to(ROOT / "scenarios")
    assert "worked-examples" in run("scenario", "list").stdout


def test_versions_agree() -> None:
    assert PROJECT["version"] == rrf_design.__version__
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"version: {rrf_design.__version__}\n" in citation
    assert f"## {rrf_design.__version__}\n" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_every_dependency_says_who_needs_it() -> None:
    inside = False
    for line in (ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines():
        inside = line.startswith("dependencies = [") or (inside and not line.startswith("]"))
        if inside and line.strip().startswith('"'):
            assert "#" in line, line


def test_no_syntax_beyond_the_oldest_python() -> None:
    import ast

    for folder in ("rrf_design", "solvers", "scenarios"):
        for path in (ROOT / folder).rglob("*.py"):
            ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 11))
