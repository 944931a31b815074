"""What these tests share: the small fields of `fields.py`, and a quick place on the disk."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


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
