"""One process on a run: locks in files, and locks of a server."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rrf_design.acquisition import stores
from rrf_design.acquisition.stores import advisory_lock, file_lock
from rrf_design.errors import Refused

HOLDER = """
import importlib.util, pathlib, sys
spec = importlib.util.spec_from_file_location("locks", sys.argv[2])
locks = importlib.util.module_from_spec(spec)
spec.loader.exec_module(locks)
with locks.file_lock(pathlib.Path(sys.argv[1]), "r1"):
    print("held", flush=True)
    sys.stdin.readline()
"""


def lock_files(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.name.endswith(".lock")]


def test_the_second_is_refused_and_told_who_is_there(tmp_path: Path) -> None:
    base = tmp_path / "runs.db"
    with file_lock(base, "r1"):
        with pytest.raises(Refused, match=f"run r1: process {os.getpid()} is working on it"), file_lock(base, "r1"):
            pass
        with file_lock(base, "r2"):  # another run of the same journal
            assert len(lock_files(tmp_path)) == 2
    assert lock_files(tmp_path) == []
    with file_lock(base, "r1"):
        pass


def test_a_killed_holder_leaves_nothing_that_matters(tmp_path: Path) -> None:
    base = tmp_path / "runs.db"
    command = [sys.executable, "-c", HOLDER, str(base), stores.__file__]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(Refused, match=f"process {holder.pid} is working on it"), file_lock(base, "r1"):
            pass
        holder.kill()
        holder.wait()
    assert len(lock_files(tmp_path)) == 1  # its file is still there, and harmless
    with file_lock(base, "r1"):
        pass
    assert lock_files(tmp_path) == []


def test_a_file_that_was_removed_under_us_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between opening and locking, a holder may have ended and removed the file: a lock on a ghost
    locks nobody out.
    """
    base = tmp_path / "runs.db"
    real, opened = os.open, []

    def removing(path: Any, *more: Any) -> int:
        handle = real(path, *more)
        opened.append(path)
        if len(opened) == 1:
            os.unlink(path)
        return handle

    monkeypatch.setattr("rrf_design.acquisition.stores.os.open", removing)
    with file_lock(base, "r1"):
        assert len(opened) == 2
        with pytest.raises(Refused), file_lock(base, "r1"):
            pass


def test_an_error_inside_releases_it(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="mine"), file_lock(tmp_path / "runs.db", "r1"):
        raise ValueError("mine")
    with file_lock(tmp_path / "runs.db", "r1"):
        pass


class Connection:
    """A PostgreSQL session as far as a lock sees it; `test_journal` holds the real one."""

    def __init__(self, taken: set[int]) -> None:
        self.taken, self.mine = taken, set[int]()

    def begin(self) -> Any:
        return contextlib.nullcontext()

    def execute(self, text: Any, values: dict[str, int]) -> Any:
        number, words = values["n"], str(text)
        assert -(2**63) <= number < 2**63
        answer: Any = True
        if "pg_try" in words:
            answer = number not in self.taken
            self.taken |= {number}
            self.mine |= {number} if answer else set()
        elif "unlock" in words:
            assert number in self.mine
            self.taken.discard(number)
        else:
            answer = 4711
        return SimpleNamespace(scalar=lambda: answer)


def test_a_lock_of_the_server_is_named_by_the_run() -> None:
    taken: set[int] = set()
    one, two = Connection(taken), Connection(taken)
    with advisory_lock(one, "r1"):  # type: ignore[arg-type]
        words = r"run r1: process \(server side 4711\) is working on it"
        with pytest.raises(Refused, match=words), advisory_lock(two, "r1"):  # type: ignore[arg-type]
            pass
        with advisory_lock(two, "r2"):  # type: ignore[arg-type]
            assert len(taken) == 2
    assert taken == set()


def test_a_dead_connection_has_released_its_lock_already(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = Connection(set())
    with advisory_lock(connection, "r1"):  # type: ignore[arg-type]
        monkeypatch.setattr(connection, "execute", lambda *_: 1 / 0)
