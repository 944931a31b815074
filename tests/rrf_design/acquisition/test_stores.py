"""What a user's word for a store means."""

from __future__ import annotations

from pathlib import Path

import pytest

from rrf_design.acquisition.journal import Journal
from rrf_design.acquisition.stores import store_address
from rrf_design.errors import InputError


def test_addresses() -> None:
    assert store_address("runs.sqlite") == "sqlite:///runs.sqlite"
    assert store_address("postgresql://a@b/c") == "postgresql+psycopg://a@b/c"
    with pytest.raises(InputError, match=r"use a path, sqlite:///PATH or postgresql"):
        store_address("mysql://me:secret@host/db")
    with pytest.raises(InputError) as caught:
        store_address("mysql://me:secret@host/db")
    assert "secret" not in str(caught.value)


def test_default_store_can_be_named_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RRF_STORE", raising=False)
    assert store_address(None) == "sqlite:///rrf-runs.sqlite"
    monkeypatch.setenv("RRF_STORE", "elsewhere.sqlite")
    assert store_address(None) == "sqlite:///elsewhere.sqlite"


def test_missing_folder_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        Journal(tmp_path / "no" / "runs.sqlite")
