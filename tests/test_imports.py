"""The house rules on who may import whom, and on what stays out until it is used."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import rrf_design

ROOT = Path(__file__).resolve().parent.parent
HEAVY = {
    "numpy",
    "scipy",
    "numba",
    "ortools",
    "pulp",
    "pydantic",
    "sqlalchemy",
    "networkx",
    "matplotlib",
    "xllamacpp",
    "openai",
    "transformers",
    "torch",
    "rich",
    "typer",
    "flint",
    "joblib",
    "sklearn",
    "statsmodels",
}


def sources(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def imported(path: Path) -> Iterator[str]:
    """Absolute names of every module a file imports, anywhere in it, type checking included."""
    package = path.relative_to(ROOT).with_suffix("").parts
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level]) if node.level else ""
            module = ".".join(part for part in (base, node.module or "") if part)
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def offenders(folder: str, forbidden: tuple[str, ...], *, allowed: tuple[str, ...] = ()) -> list[str]:
    found = []
    for path in sources(folder):
        if str(path.relative_to(ROOT)).startswith(allowed) and allowed:
            continue
        for name in imported(path):
            if any(name == bad or name.startswith(f"{bad}.") for bad in forbidden):
                found.append(f"{path.relative_to(ROOT)} imports {name}")
    return found


def test_solvers_know_nothing_of_the_rest() -> None:
    assert offenders("solvers", ("rrf_design", "scenarios")) == []


def test_the_library_knows_neither_scenarios_nor_the_command_line() -> None:
    assert offenders("rrf_design", ("scenarios", "rrf_design.cli"), allowed=("rrf_design/cli/",)) == []


def test_the_verifier_shares_no_code_with_the_solvers() -> None:
    path = ROOT / "rrf_design" / "certificates" / "verify.py"
    if not path.exists():
        pytest.fail("rrf_design/certificates/verify.py is gone")
    seen, queue = set(), [path]
    while queue:  # the verifier and everything of ours that it imports
        here = queue.pop()
        for name in imported(here):
            assert name.split(".")[0] != "solvers", f"{here.relative_to(ROOT)} imports {name}"
            inside = ROOT / Path(*name.split(".")).with_suffix(".py")
            if name.startswith("rrf_design.certificates") and inside.exists() and inside not in seen:
                seen.add(inside)
                queue.append(inside)


def test_scenarios_use_public_names_only() -> None:
    assert list(_private_imports("scenarios")) == []


def _private_imports(folder: str) -> Iterator[str]:
    for path in sources(folder):
        for name in imported(path):
            if name.split(".")[0] in ("rrf_design", "solvers") and any(
                part.startswith("_") for part in name.split(".")
            ):
                yield f"{path.relative_to(ROOT)} imports {name}"


@pytest.mark.parametrize("statement", ["import rrf_design", "from rrf_design.cli.app import app"])
def test_nothing_heavy_is_imported_before_it_is_used(statement: str) -> None:
    code = f"import sys; {statement}; print(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    light = {"typer", "rich"} if "cli" in statement else set()
    assert (HEAVY - light) & set(made.stdout.split()) == set()


def test_every_public_name_is_there() -> None:
    for name in rrf_design.__all__:
        assert getattr(rrf_design, name) is not None
