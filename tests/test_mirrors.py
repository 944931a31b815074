"""Tests mirror the source: a module has a test file of its name, in the folder of its name."""

from __future__ import annotations

from pathlib import Path

HOUSE = Path(__file__).parents[1]


def modules_without_a_test() -> set[str]:
    found = set()
    for folder in ("rrf_design", "solvers"):
        for path in (HOUSE / folder).rglob("*.py"):
            module = path.relative_to(HOUSE)
            mirror = HOUSE / "tests" / module.parent / f"test_{path.stem.lstrip('_')}.py"
            if path.name != "__init__.py" and not mirror.exists():
                found.add(str(module.with_suffix("")))
    return found


def test_every_module_has_its_test() -> None:
    assert modules_without_a_test() == set()
