"""certify: what stands in a certificate, and why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design.certificates import Certificate, NoiseKind, Regime, Uncertainty
from rrf_design.errors import InputError
from rrf_design.problem import Problem

from .conftest import triangle


def test_a_positive_margin() -> None:
    made = rrf.certify(triangle(), ["fix"], require=0.4)
    assert made.gamma_lower == pytest.approx(1.0, rel=1e-8)
    assert made.gamma_lower <= 1.0 <= made.gamma_upper
    assert made.robust_lower == pytest.approx(0.99, rel=1e-8)
    assert made.error_bound == pytest.approx(2 * (0.02 + 0.01 * 0.5**0.5), rel=1e-6)  # ab is off by 0.01 of two halves
    assert made.regime is Regime.COMPUTATION
    assert made.met
    assert made.certificate is made.document
    assert made.document["audit"]["sensitivity"] == pytest.approx(1.0)
    assert made.document["budgets"][0]["k"] == 2
    assert rrf.verify(made).valid


def test_a_zero_margin_gives_the_indistinguishable_pair() -> None:
    made = rrf.certify(triangle(), require=0.4)
    assert made.gamma_lower == 0.0
    assert made.regime is Regime.INFORMATION
    assert made.document["margin"]["rung"] == "none"
    assert made.document["audit"]["pair"] == {"first": ["isolate"], "second": []}
    assert made.document["nullspace"]["status"] == "refuted"
    assert made.error_bound is None
    assert not made.met
    assert rrf.verify(made).valid


def test_the_paper_chain_needs_its_anchor_only_at_two() -> None:
    chain = Problem(
        nodes=[{"id": str(i)} for i in range(4)],
        relations=[{"id": f"r{i}", "tail": str(i), "head": str(i + 1)} for i in range(3)],
        anchors=[{"id": "first", "node": "0", "cost": 1.0}],
    )
    made = rrf.certify(chain)
    assert made.gamma_lower > 0.5
    assert made.document["budgets"][0]["upper"] < 1e-9
    anchored = rrf.certify(chain, "all", k=2)
    assert anchored.gamma_lower > 0.1
    assert rrf.verify(made).valid
    assert rrf.verify(anchored).valid


def test_noise_limited_designs_are_called_so() -> None:
    assert rrf.certify(triangle(epsilon=0.2), ["fix"]).regime is Regime.NOISE
    spread = Uncertainty({"ab": 0.7}, source="calibration")
    assert rrf.certify(triangle(), ["fix"], uncertainty=spread).regime is Regime.NOISE


@pytest.mark.parametrize("kind", ["gaussian", "chi", "subgaussian"])
def test_random_noise(kind: str) -> None:
    made = rrf.certify(triangle(epsilon=None), ["fix"], sigma=0.01, confidence=0.9, kind=kind, largest_error=1.0)
    assert made.document["noise"]["kind"] == kind
    assert made.document["error"]["confidence"] == 0.9
    assert (made.document["error"]["minimax"]["gaussian_lower"] is not None) == (kind != "subgaussian")
    assert rrf.verify(made).valid


def test_declared_covariances_give_the_noise_and_the_unwhitened_margin() -> None:
    problem = Problem(
        nodes=[{"id": "a"}, {"id": "b"}],
        relations=[{"id": "r", "tail": "a", "head": "b"}],
        anchors=[{"id": "x", "node": "a", "sigma": 0.5}, {"id": "y", "node": "b", "sigma": 0.5}],
    )
    made = rrf.certify(problem)
    assert made.document["noise"]["blocks"] == ["x", "y"]
    assert made.document["noise"]["rows"] == 2
    assert made.document["metrics"]["whitened"] == ["x", "y"]
    assert made.document["provenance"]["unwhitened"]["lower"] == pytest.approx(1.0, rel=1e-8)
    assert made.gamma_lower == pytest.approx(2.0, rel=1e-8)
    assert rrf.verify(made).valid


def test_calibrated_radii_carry_their_confidence() -> None:
    spread = Uncertainty({"ab": 0.05, "fix": 0.05}, source="40 repeats, bootstrap", confidence=0.95)
    made = rrf.certify(triangle(), ["fix"], uncertainty=spread)
    assert made.document["uncertainty"]["support_lower"] > made.document["uncertainty"]["global_lower"]
    assert made.document["error"]["confidence"] == 0.95
    assert rrf.verify(made).valid


def test_supports_are_labelled_as_only_that() -> None:
    made = rrf.certify(triangle(), supports=[["a", "b"]])
    assert made.gamma_lower == 0.0
    assert made.document["conditional"]["lower"] == pytest.approx(1.0, rel=1e-9)
    assert rrf.verify(made).valid


def test_the_same_input_gives_the_same_document() -> None:
    assert rrf.certify(triangle(), ["fix"]).document == rrf.certify(triangle(), ["fix"]).document


def test_vector_nodes_with_metrics_and_transports() -> None:
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.standard_normal((2, 2)))[0].tolist()
    problem = Problem(
        nodes=[{"id": "p", "dim": 2, "metric": [[2.0, 0.5], [0.5, 1.0]]}, {"id": "q", "dim": 2}, {"id": "s", "dim": 1}],
        relations=[
            {"id": "turn", "tail": "p", "head": "q", "transport": {"matrix": turn}, "uncertainty": 0.02},
            {"id": "first", "tail": "q", "head": "s", "transport": {"select": [0]}},
        ],
        anchors=[{"id": "ap", "node": "p"}, {"id": "as", "node": "s", "covariance": [[0.25]]}],
    )
    for rung in ("auto", "dominance", "semidefinite"):
        made = rrf.certify(problem, rung=rung)
        assert made.gamma_lower > 0
        assert rrf.verify(made).valid


def test_saving(tmp_path: Path) -> None:
    made: Certificate = rrf.certify(triangle(), ["fix"]).save(tmp_path / "c.json")
    stored = json.loads((tmp_path / "c.json").read_text())
    assert stored == made.document
    assert made.to_json()["certificate"] == str(tmp_path / "c.json")
    with pytest.raises(InputError, match="can't be written"):
        made.save(tmp_path / "no" / "c.json")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rung": "best"}, "rung: 'best' is not one of"),
        ({"k": 0}, "k must be"),
        ({"epsilon": -1.0}, "epsilon must be"),
        ({"epsilon": 0.1, "sigma": 0.1}, "epsilon or sigma"),
        ({"sigma": 0.1, "kind": "loud"}, "'loud' is not one of"),
        ({"sigma": 0.1, "kind": NoiseKind.DETERMINISTIC}, "needs epsilon"),
        ({"amplitude": 0.0}, "amplitude must be"),
        ({"uncertainty": Uncertainty({"zz": 0.1})}, "'zz' is not a block"),
        ({"budgets": [0]}, "k must be"),
    ],
)
def test_input_errors(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        rrf.certify(triangle(), ["fix"], **options)  # type: ignore[arg-type]


def test_progress_hears_bounds_that_hold() -> None:
    heard: list[Any] = []
    certificate = rrf.certify(triangle(), ["fix"], budgets=[2], progress=lambda *told: heard.append(told))
    assert heard
    assert all(0.0 <= done <= 1.0 for done, _, _ in heard)
    assert all(lower <= certificate.gamma_upper and upper >= certificate.gamma_lower for _, (lower, upper), _ in heard)
    again: list[Any] = []
    assert rrf.verify(certificate, progress=lambda *told: again.append(told)).valid
    assert again[0][1][0] == 0.0  # nothing is re-proved before the search is through
    assert again[-1][1][0] == certificate.gamma_lower
