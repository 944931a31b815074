from __future__ import annotations

from pathlib import Path

import pytest

from rrf_design import InputError
from scenarios.real import logs

REPORTS = Path(__file__).parents[3] / "reports"


def test_published_logs_are_found_beside_the_page() -> None:
    found = logs.paths(None, REPORTS / "error-directions", "x")
    assert [path.parent.name for path in found] == ["real-model", "real-model-coder"]
    assert len({logs.model(path) for path in found}) == 2


def test_no_log_and_one_model_twice_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--set logs="):
        logs.paths(None, tmp_path / "x", "x")
    one = REPORTS / "real-model" / "answers.jsonl.gz"
    with pytest.raises(InputError, match="one log per model"):
        logs.paths(f"{one}, {one}", tmp_path, "x")


def test_only_items_with_every_answer_are_covered() -> None:
    log = logs.read(REPORTS / "real-model-coder" / "answers.jsonl.gz")
    assert len(logs.covered(log, "mathematics", seed=0)) == 128
    assert len(logs.covered(log, "mathematics", seed=0, most=3)) == 3
    assert logs.covered(log, "mathematics", seed=5) == []
