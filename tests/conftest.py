"""Shared by all tests: helper modules that stand beside the tests can be imported by name."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

# small.py: random problems and the definition of a best plan; agreeing.py: problem files on which
# every verb must agree
for folder in ("solvers", "rrf_design/planning", "rrf_design/responses/imports", "rrf_design"):
    sys.path.insert(0, str(Path(__file__).parent / folder))


@pytest.fixture(scope="session", autouse=True)
def _a_data_folder_of_this_session() -> Iterator[Path]:
    """Pilots note their looks in the user's data folder; tests have one of their own."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_DATA_HOME"] = folder
        yield Path(folder)


@pytest.fixture(autouse=True)
def _a_data_folder_of_this_test(_a_data_folder_of_this_session: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", tempfile.mkdtemp(dir=_a_data_folder_of_this_session))
