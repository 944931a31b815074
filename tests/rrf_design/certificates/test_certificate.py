"""A certificate in memory, and its files: whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import rrf_design as rrf

from .conftest import triangle


def test_nothing_is_left_when_saving_is_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rrf_design.certificates.sections.INLINE_ENTRIES", 3)
    certificate = rrf.certify(triangle(), ["fix"])

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("rrf_design.certificates.certificate.write_text", stop)
        with pytest.raises(KeyboardInterrupt):
            certificate.save(tmp_path / "c.json")
    assert list(tmp_path.iterdir()) == []
    certificate.save(tmp_path / "c.json")
    assert len(list(tmp_path.iterdir())) == 2


def test_what_is_saved_is_the_document(tmp_path: Path) -> None:
    made = rrf.certify(triangle(), ["fix"], require=0.4)
    saved = made.save(tmp_path / "c.json")
    assert json.loads((tmp_path / "c.json").read_text(encoding="utf-8")) == made.document
    assert saved.certificate == tmp_path / "c.json"
    assert made.certificate == made.document
    assert saved.met
    assert not rrf.certify(triangle(), ["fix"], require=1.4).met


def test_the_same_design_gives_the_same_document_and_an_idea_of_what_checking_takes() -> None:
    first, second = rrf.certify(triangle(), ["fix"]), rrf.certify(triangle(), ["fix"])
    assert first.document == second.document
    assert first.verification_seconds is not None
    assert 0.0 < first.verification_seconds < 60.0
    assert first.to_json()["verification_seconds"] == first.verification_seconds
