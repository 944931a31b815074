"""What these tests share: the small fields of `fields.py`, and a real PostgreSQL server."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pgserver = pytest.importorskip("pgserver", reason="no PostgreSQL to test against: pip install pgserver")
    found = pgserver.get_server(tmp_path_factory.mktemp("postgres"))
    yield found.get_uri()
    found.cleanup()
