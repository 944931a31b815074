"""The notebooks run, without a kernel and without a network, and print what stands in them."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).resolve().parent.parent / "docs"
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module")
def runner() -> ModuleType:
    spec = importlib.util.spec_from_file_location("run_notebooks", DOCS / "run_notebooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_prints_what_stands_in_it(
    path: Path, runner: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`make notebooks` writes the outputs anew."""
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("RRF_CACHE", str(tmp_path / "kept"))
    notebook = json.loads(path.read_text(encoding="utf-8"))
    again = runner.with_outputs(notebook, runner.run(notebook, path.name))
    assert again == notebook
    assert any(cell.get("outputs") for cell in notebook["cells"])


def test_there_are_notebooks_and_the_index_leads_to_them() -> None:
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    assert len(NOTEBOOKS) >= 4
    for path in NOTEBOOKS:
        assert f"(notebooks/{path.name})" in index, path.name
