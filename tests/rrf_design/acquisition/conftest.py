"""What these tests share: the small fields of `fields.py`, and a real PostgreSQL server."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """Its address.

    The folder is not pytest's: run by root, the server is another user, who may not enter that.
    """
    pgserver = pytest.importorskip("pgserver", reason="no PostgreSQL to test against: pip install pgserver")
    with tempfile.TemporaryDirectory(prefix="rrf-postgres-", ignore_cleanup_errors=True) as folder:
        found = pgserver.get_server(folder)
        yield found.get_uri()
        found.cleanup()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """In memory where there is such a place: a killed process loses nothing there either, and waits
    for no disk.
    """
    memory = Path("/dev/shm")
    if not memory.is_dir() or not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as place:
        yield Path(place)
