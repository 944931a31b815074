"""Every kind of damage is refused, or changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from scenarios.damaged_journals import DAMAGES, PlayedRun, journal_case


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
