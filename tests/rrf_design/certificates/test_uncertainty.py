"""Radii of relations, and certificates around one answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design.certificates import calibrate, read_calibration
from rrf_design.certificates._uncertainty import (
    Uncertainty,
    bootstrap_radius,
    concentration_radius,
    parser_radius,
    robust_floor,
)
from rrf_design.certificates.local import curvature_bound, local_certificate
from rrf_design.errors import InputError
from rrf_design.problem import Problem

from .conftest import make_record, triangle


def test_bootstrap_covers_the_mean_about_as_often_as_promised() -> None:
    rng = np.random.default_rng(3)
    inside = 0
    for trial in range(60):
        samples = rng.normal(1.0, 0.5, (40, 2, 2))
        reach = bootstrap_radius(samples, confidence=0.9, draws=200, seed=trial)
        inside += np.linalg.norm(samples.mean(axis=0) - 1.0, 2) <= reach
    assert inside >= 48


def test_bootstrap_is_repeatable_and_concentration_always_holds() -> None:
    samples = np.random.default_rng(0).normal(size=(10, 1, 2))
    assert bootstrap_radius(samples, seed=1) == bootstrap_radius(samples, seed=1)
    rng = np.random.default_rng(0)
    samples = rng.uniform(-0.5, 0.5, (400, 2, 2))
    few, many = (concentration_radius(samples[:n], deviation=1.0, confidence=0.95) for n in (40, 400))
    assert many < few
    assert np.linalg.norm(samples.mean(axis=0), 2) <= many


def test_parser_error_rates() -> None:
    assert parser_radius(0, 100, effect=2.0, confidence=0.95) == pytest.approx(2 * (1 - 0.05 ** (1 / 100)), rel=1e-9)
    assert parser_radius(5, 5, effect=2.0) == pytest.approx(2.0)
    assert parser_radius(3, 50, effect=1.0) > 3 / 50


@pytest.mark.parametrize("call", [lambda: parser_radius(3, 2, effect=1.0), lambda: bootstrap_radius(np.zeros((2, 2)))])
def test_input_errors(call: object) -> None:
    with pytest.raises(InputError, match="uncertainty"):
        call()  # type: ignore[operator]
    with pytest.raises(InputError, match="radius of 'a'"):
        Uncertainty({"a": -1.0})
    with pytest.raises(InputError, match="confidence"):
        Uncertainty({}, confidence=1.0)


def test_the_largest_threshold_is_found() -> None:
    matrix = np.diag([1.0, 0.5, 0.9])
    record = make_record(matrix, radii=[0.5, 0.0, 0.3])
    assert robust_floor(record, 2, start=0.5) == pytest.approx(0.5, rel=1e-8)
    record = make_record(matrix, radii=[0.7, 0.0, 0.3])
    assert robust_floor(record, 2, start=0.5) == pytest.approx(0.3, rel=1e-8)
    record = make_record(matrix, radii=[2.0, 0.0, 0.3])
    assert robust_floor(record, 2, start=0.5) == 0.0


def write(folder: Path, name: str, content: Any) -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("c.json", "{", "not valid JSON"),
        ("c.json", "{}", "holds no calibration data"),
        ("c.json", "[1]", "entry 1: must be a table"),
        ("c.json", {"ab": 3}, "block 'ab': must be a table"),
        ("c.json", {"ba": {"samples": [1] * 5}}, "there is no block 'ba'"),
        ("c.json", {"ab": {"sampels": []}}, "unknown key 'sampels'; did you mean"),
        ("c.json", {"ab": {}}, "give samples, or errors"),
        ("c.json", {"ab": {"samples": [1, 2]}}, "expected at least 5 repeats"),
        ("c.json", {"ab": {"samples": [[[1, 2]]] * 6}}, "sample 1: expected 1×1"),
        ("c.json", {"ab": {"samples": ["x"] * 6}}, "sample 1: must be a matrix of numbers"),
        ("c.json", {"ab": {"samples": 4}}, "samples must be a list"),
        ("c.json", '{"ab": {"samples": [NaN]}}', "NaN is not JSON"),
        ("c.json", {"ab": {"samples": [1] * 6, "deviation": -1}}, "deviation must be a number of at least 0"),
        ("c.json", {"ab": {"errors": 1, "trials": 9}}, "errors need effect"),
        ("c.json", {"ab": {"errors": 1.5, "trials": 9, "effect": 1}}, "whole numbers"),
        ("c.json", {"ab": {"errors": 10, "trials": 9, "effect": 1}}, "is no error rate"),
        ("c.json", {"ab": {"samples": [1] * 6, "effect": 1}}, "belong to errors"),
        ("c.json", {"ab": {"errors": 0, "trials": 9, "effect": 1, "deviation": 1}}, "belongs to samples"),
        ("c.jsonl", '{"sample": 1}', "entry 1: names no block"),
        ("c.jsonl", '{"block": "ab", "trials": 1}\n{"block": "ab", "trials": 2}', "two values of trials"),
        ("c.csv", "block,value\nab,1", "unknown column 'value'"),
        ("c.csv", "block,sample\nab,one", "line 2: sample 'one' is not a number"),
        ("c.csv", "block,sample\nab,1,2", "too many cells"),
        ("c.txt", "", "end in .json, .jsonl or .csv"),
    ],
)
def test_faults_name_the_file_and_what_is_wrong(tmp_path: Path, name: str, content: Any, message: str) -> None:
    path = write(tmp_path, name, content)
    with pytest.raises(InputError, match=message) as fault:
        read_calibration(triangle(), path)
    assert str(fault.value).startswith(str(path))
    assert "\n" not in str(fault.value)


def test_a_missing_file_and_a_bad_confidence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_calibration(triangle(), tmp_path / "none.json")
    with pytest.raises(InputError, match="between 0 and 1"):
        calibrate(triangle(), {"ab": {"samples": [1.0] * 6}}, confidence=1.0)


def test_the_three_formats_say_the_same(tmp_path: Path) -> None:
    samples = [1.02, 0.97, 1.01, 1.0, 0.99, 1.03]
    rate = {"errors": 1, "trials": 50, "effect": 0.5}
    whole = write(tmp_path, "c.json", {"ab": {"samples": samples}, "bc": rate})
    lines = [{"block": "ab", "sample": [[x]]} for x in samples] + [{"block": "bc", **rate}]
    logged = write(tmp_path, "c.jsonl", "\n".join(json.dumps(line) for line in lines))
    rows = ["block,sample,errors,trials,effect", *(f"ab,{x},,," for x in samples), "bc,,1,50,0.5"]
    table = write(tmp_path, "c.csv", "\n".join(rows))
    first = read_calibration(triangle(), whole)
    assert read_calibration(triangle(), logged) == read_calibration(triangle(), table) == first
    assert first.confidence == 0.95
    assert "bootstrap (asymptotic)" in first.source
    assert "Clopper" in first.source
    assert first.radii["bc"] == pytest.approx(parser_radius(1, 50, effect=0.5, confidence=0.975))


def scaled() -> Problem:
    """Weight 4 in a family of one, rows in units of 0.5, the tail in a metric of 9: 2 · 2 / 3 in
    front of everything.
    """
    return Problem(
        name="scaled",
        nodes=[{"id": "x", "metric": 9.0}, {"id": "y"}],
        relations=[
            {
                "id": "r",
                "tail": "x",
                "head": "y",
                "transport": {"scale": 2.0},
                "weight": 4.0,
                "sigma": 0.5,
                "uncertainty": 9.0,
            }
        ],
        anchors=[{"id": "a", "node": "x", "uncertainty": 0.25}],
    )


def test_radii_are_those_of_the_assembled_operator_and_count_the_bias() -> None:
    found = calibrate(scaled(), {"r": {"samples": [2.3] * 40, "deviation": 0.1}}, confidence=0.9)
    front = 2.0 * 2.0 / 3.0
    around = concentration_radius(np.full((40, 1, 1), 2.3), deviation=0.1 * front, confidence=0.9)
    assert found.radii == {"r": pytest.approx(0.3 * front + around)}
    assert "the others as declared" in found.source


def test_calibrated_radii_cover_the_truth_and_reach_the_certificate() -> None:
    problem = Problem(
        name="plane",
        nodes=[{"id": "x", "dim": 2}, {"id": "y", "dim": 2}],
        relations=[{"id": "r", "tail": "x", "head": "y"}],
        anchors=[{"id": "a", "node": "x"}, {"id": "b", "node": "y"}],
        k=1,
    )
    rng = np.random.default_rng(0)
    truth = np.eye(2) + 0.02
    samples = (truth + 0.05 * rng.standard_normal((60, 2, 2))).tolist()
    spread = calibrate(problem, {"r": {"samples": samples}})
    assert np.linalg.norm(truth - np.eye(2), 2) < spread.radii["r"] < 0.2
    certificate = rrf.certify(problem, uncertainty=spread)
    assert certificate.document["uncertainty"]["confidence"] == 0.95
    assert certificate.robust_lower < certificate.gamma_lower
    assert rrf.verify(certificate).valid


def test_data_about_blocks_that_are_not_in_the_design_are_of_no_account() -> None:
    """The calibration of a whole catalogue serves every design made from it."""
    spread = calibrate(triangle(), {"fix": {"errors": 0, "trials": 100, "effect": 1.0}})
    with_it = rrf.certify(triangle(), ["fix"], uncertainty=spread)
    without = rrf.certify(triangle(), uncertainty=spread)
    assert with_it.document["uncertainty"]["eta"] > without.document["uncertainty"]["eta"]


def test_sine_is_certified_near_zero_and_nowhere_else() -> None:
    """M(z) = sin z at 0: tangent margin one, curvature at most one, and M(0) = M(π)."""
    near = local_certificate([[1.0]], k=1, radius=0.5, curvature=1.0, jacobian_error=0.0, epsilon=0.01)
    assert near.holds
    assert near.scope == "local"
    assert near.effective == pytest.approx(0.75, rel=1e-8)
    assert near.error_bound == pytest.approx(0.02 / 0.75, rel=1e-8)
    assert near.largest_radius == pytest.approx(2.0, rel=1e-8)
    assert not local_certificate([[1.0]], k=1, radius=np.pi, curvature=1.0, jacobian_error=0.0).holds


def test_curvature_and_jacobian_errors_bound_the_remainder() -> None:
    found = local_certificate(np.eye(2), k=1, radius=0.1, curvature=0.0, jacobian_error=1.5)
    assert not found.holds
    assert found.largest_radius == float("inf") or found.largest_radius == 0.0
    assert found.error_bound is None
    # r(z) = z0·z1 − z2 has a constant Hessian; z² + exp(z) has one that grows.
    product = curvature_bound(lambda z: [[[0, 1, 0], [1, 0, 0], [0, 0, 0]]], [1.0, 1.0, 1.0], radius=5.0)
    assert product == pytest.approx(np.sqrt(2), rel=1e-12)
    grown = curvature_bound(lambda z: [[[2 + z[0].exp()]]], [0.0], radius=1.0)
    assert 2 + np.e <= grown <= (2 + np.e) * 1.001
    level = curvature_bound(lambda z: [[[-z[0].sin()]]], [0.3], radius=0.2)
    for h in np.linspace(-0.2, 0.2, 41):
        assert abs(np.sin(0.3 + h) - np.sin(0.3) - np.cos(0.3) * h) <= level / 2 * h * h + 1e-15


def test_input_errors_of_local() -> None:
    with pytest.raises(InputError, match="curvature must be"):
        local_certificate(np.eye(1), k=1, radius=1.0, curvature=-1.0, jacobian_error=0.0)
    with pytest.raises(InputError, match="not bounded"):
        curvature_bound(lambda z: [[[1 / z[0]]]], [0.0], radius=1.0)
    with pytest.raises(InputError, match="radius"):
        curvature_bound(lambda z: [], [0.0], radius=-1.0)
