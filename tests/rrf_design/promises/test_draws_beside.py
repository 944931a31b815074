"""Who draws again after looking is told so, where the first draw lies beside the second."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rrf_design.errors import Refused
from rrf_design.promises.draws_beside import other_pilots, refuse_another_draw


def audit(path: Path, digest: str, seed: int) -> None:
    path.write_text(
        json.dumps(
            {"format": "rrf-audit", "version": 1, "confidence": 0.95, "record": {"digest": digest, "seed": seed}}
        )
    )


def test_another_seed_for_the_same_deliveries_is_refused(tmp_path: Path) -> None:
    audit(tmp_path / "first.json", "abc", 0)
    (tmp_path / "broken.json").write_text('{"format": "rrf-audit", ')
    (tmp_path / "list.json").write_text('["rrf-audit"]')
    refuse_another_draw(tmp_path / "second.json", "abc", 0, confidence=0.95)
    refuse_another_draw(tmp_path / "second.json", "other", 7, confidence=0.95)
    refuse_another_draw(
        tmp_path / "first.json", "abc", 7, confidence=0.95
    )  # what is there itself is compared by who goes on with it
    with pytest.raises(
        Refused, match=r"first\.json beside it audited these deliveries with seed 0 and confidence 0\.95"
    ):
        refuse_another_draw(tmp_path / "second.json", "abc", 7, confidence=0.95)
    with pytest.raises(Refused, match="another chance"):
        refuse_another_draw(tmp_path / "second.json", "abc", 0, confidence=0.9)


def test_pilots_of_one_table_are_named(tmp_path: Path) -> None:
    own = {"population": {"digest": "abc"}, "seed": 1, "risk": 0.1, "confidence": 0.95, "drawn": ["a"]}
    policy = {"format": "rrf-policy", "version": 1}
    (tmp_path / "same.json").write_text(json.dumps({**policy, **own}))
    (tmp_path / "seed.json").write_text(json.dumps({**policy, **own, "seed": 2}))
    (tmp_path / "risk.json").write_text(json.dumps({**policy, **own, "risk": 0.2}))
    (tmp_path / "table.json").write_text(json.dumps({**policy, **own, "seed": 2, "population": {"digest": "d"}}))
    (tmp_path / "odd.json").write_text(json.dumps({**policy, "population": 3}))
    assert other_pilots(tmp_path / "own.json", own) == ["risk.json", "seed.json"]
