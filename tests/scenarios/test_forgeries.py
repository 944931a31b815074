"""No forgery and no bytes are accepted, and none makes the verifier fail; a true certificate passes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rrf_design.certificates import verify
from scenarios.forgeries import TRICKS, forge, guarded_certificate, noise_bytes, true_certificate
from scenarios.sealing import seal

FULL, PLAIN, GUARDED = true_certificate(), true_certificate(plain=True), guarded_certificate()


def test_the_certificates_to_forge_are_true(tmp_path: Path) -> None:
    for document in (FULL, PLAIN, GUARDED):
        (tmp_path / "c.json").write_bytes(seal(document))
        assert verify(tmp_path / "c.json").valid


@pytest.mark.parametrize("first", range(0, 400, 100))
def test_no_forgery_is_accepted(first: int, tmp_path: Path) -> None:
    tricks = set()
    for seed in range(first, first + 100):
        trick, content = forge(np.random.default_rng(seed), FULL, PLAIN, GUARDED)
        (tmp_path / "c.json").write_bytes(content)
        found = verify(tmp_path / "c.json")
        assert not found.valid, (trick, seed)
        assert "check failed" not in found.reason, (trick, seed)
        tricks.add(trick)
    assert len(tricks) > len(TRICKS) / 2


def test_no_bytes_are_accepted(tmp_path: Path) -> None:
    for seed in range(150):
        kind, content = noise_bytes(np.random.default_rng(seed), FULL)
        (tmp_path / "c.json").write_bytes(content)
        found = verify(tmp_path / "c.json")
        assert not found.valid, (kind, seed)
        assert "check failed" not in found.reason, (kind, seed)
