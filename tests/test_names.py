"""A class name means one thing in the whole house, and no module hides a public function."""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from importlib import import_module
from pathlib import Path

HOUSE = Path(__file__).parents[1]
FOLDERS = ("rrf_design", "solvers", "scenarios")

SAME_IDEA_TWICE = {
    "Field": "the solvers' Gram matrix and the checker's own, which shares no code with it",
    "Kernel": "the same text for both, which share no module",
}


def defined() -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for folder in FOLDERS:
        for path in sorted((HOUSE / folder).rglob("*.py")):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found[node.name].add(str(path.relative_to(HOUSE)))
    return found


def test_a_class_name_is_defined_once() -> None:
    twice = {name: places for name, places in defined().items() if len(places) > 1}
    assert {name: places for name, places in twice.items() if name not in SAME_IDEA_TWICE} == {}
    assert SAME_IDEA_TWICE.keys() <= twice.keys()


def test_public_functions_are_functions_whatever_modules_are_called() -> None:
    """The names that scripts rely on, after everything that could hide them was imported."""
    import inspect

    import rrf_design as rrf
    import solvers

    for name in ("rrf_design.repairing", "rrf_design.planning", "rrf_design.certificates", "rrf_design.acquisition"):
        import_module(name)
    public = [getattr(rrf, name) for name in ("load", "plan", "frontier", "certify", "verify", "repair", "acquire")]
    assert all(inspect.isfunction(entry) for entry in (*public, rrf.dataset, solvers.margin))


def test_no_module_is_called_like_one_of_the_standard_library() -> None:
    modules = [path for folder in ("rrf_design", "solvers") for path in (HOUSE / folder).rglob("*.py")]
    names = {path.parent.name if path.name == "__init__.py" else path.stem for path in modules}
    assert names & sys.stdlib_module_names == set()


def test_the_files_that_dependencies_are_for_exist() -> None:
    """Each dependency in pyproject.toml says which file needs it."""
    text = (HOUSE / "pyproject.toml").read_text(encoding="utf-8")
    named = re.findall(r"[\w/]+\.py\b", " ".join(re.findall(r"# .*", text)))
    assert len(named) > 10
    missing = [name for name in named if not any((HOUSE / root / name).exists() for root in ("", "rrf_design"))]
    assert missing == []


def test_no_module_takes_the_place_of_a_name_that_a_package_gives_out() -> None:
    """A module that is imported hides the name that its package would import when it is used."""
    for package in ("rrf_design", "rrf_design.promises", "rrf_design.certificates"):
        folder = HOUSE.joinpath(*package.split("."))
        modules = {path.stem for path in folder.glob("*.py")} | {path.parent.name for path in folder.glob("*/*.py")}
        homes = import_module(package)._HOME
        for home, names in homes.items():
            for name in set(names.split()) & modules:
                assert home == f"{package}.{name}", name
                assert not hasattr(import_module(home), name), name
