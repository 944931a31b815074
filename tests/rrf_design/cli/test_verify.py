"""rrf-design verify: the gate on the other side."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import rrf_design as rrf


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    problem = rrf.Problem(
        name="pair",
        nodes=[{"id": "a"}, {"id": "b"}],
        relations=[{"id": "r", "tail": "a", "head": "b"}],
        anchors=[{"id": "x", "node": "a"}],
    )
    rrf.certify(problem).save(tmp_path / "c.json")
    return tmp_path / "c.json"


def test_a_true_certificate(run: Any, certificate: Path) -> None:
    result = run("verify", certificate, "--json")
    assert result.code == 0
    assert result.json["valid"] is True
    assert result.json["gamma_lower"] == pytest.approx(0.618, abs=1e-3)
    assert "re-proved" in run("verify", certificate).out


def test_an_altered_certificate(run: Any, certificate: Path, tmp_path: Path) -> None:
    certificate.write_text(certificate.read_text().replace('"pair"', '"peer"'))
    result = run("verify", certificate, "--json", "--junit", tmp_path / "v.xml")
    assert result.code == 1
    assert result.json == {**result.json, "valid": False, "gamma_lower": None}
    assert "altered" in result.json["reason"]
    assert ElementTree.parse(tmp_path / "v.xml").getroot().get("failures") == "1"
    assert "REFUSED" in run("verify", certificate).out


def test_a_requirement(run: Any, certificate: Path, tmp_path: Path) -> None:
    assert run("verify", certificate, "--require", 0.6, "--junit", tmp_path / "v.xml").code == 0
    assert ElementTree.parse(tmp_path / "v.xml").getroot().get("failures") == "0"
    result = run("verify", certificate, "--require", 0.7, "--json")
    assert result.code == 1
    assert "required 0.7" in result.json["reason"]


def test_no_such_file(run: Any, tmp_path: Path) -> None:
    result = run("verify", tmp_path / "none.json")
    assert result.code == 2
    assert "no such file" in result.err


def test_ctrl_c_tells_what_was_re_proved(run: Any, certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: Any, progress: Any, **__: Any) -> None:
        progress(0.5)
        raise KeyboardInterrupt

    monkeypatch.setattr(import_module("rrf_design.certificates.checker.steps"), "prove_floor", stopped)
    result = run("verify", certificate, "--json")
    assert result.code == 130
    assert result.out == ""
    assert "verification: so far proven between 0 and 0.618" in result.err


def test_what_carries_no_proof_is_told_where_one_is(run: Any, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"format": "rrf-policy-run", "version": 1}')
    result = run("verify", tmp_path / "run.json")
    assert (result.code, "checked" in result.out) == (1, False)
    assert "verify its policy, or an audit of it" in result.err
