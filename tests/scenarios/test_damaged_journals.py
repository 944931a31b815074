"""Every kind of damage is refused, or changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from scenarios.damaged_journals import DAMAGES, FILES, PlayedRun, journal_case, postgres


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> PlayedRun:
    return PlayedRun(tmp_path_factory.mktemp("played"))


@pytest.mark.parametrize("seed", range(2 * len(DAMAGES)))
def test_no_damage_is_believed(played: PlayedRun, seed: int) -> None:
    seen = journal_case(played, seed)
    assert not seen["believed"], seen
    assert not seen["raised"], seen


def test_the_run_itself_is_believed(played: PlayedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(rng: object, path: Path) -> None: ...

    monkeypatch.setattr("scenarios.damaged_journals.DAMAGES", {"nothing": nothing})
    seen = journal_case(played, 0)
    assert (seen["believed"], seen["raised"], seen["refused"]) == (False, False, 0)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlayedRun]:
    with postgres() as address:
        if address is None:
            pytest.skip("no PostgreSQL to test against: pip install pgserver")
        yield PlayedRun(tmp_path_factory.mktemp("served"), address)


@pytest.mark.parametrize("seed", range(3 * (len(DAMAGES) - len(FILES))))
def test_nor_on_a_server(served: PlayedRun, seed: int) -> None:
    seen = journal_case(served, seed)
    assert not seen["believed"], seen
    assert not seen["raised"], seen
