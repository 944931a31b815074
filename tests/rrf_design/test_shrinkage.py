"""Margins under more and more shrinkage: against the margin of the shrunk covariance, declared as
it is.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design.cli import main
from rrf_design.rows import shrunk
from rrf_design.shrinkage import TAUS, sensitivity

SIGMA = np.array([[1.0, 0.8], [0.8, 2.0]])


def field(covariance: np.ndarray, **settings: float) -> rrf.Problem:
    labels = {"id": "labels", "nodes": ["x", "y"], "rows": [[1.0, 0.0], [0.0, 1.0]], "value": [0.0, 0.0]}
    tie = {"id": "r", "tail": "x", "head": "y"}
    return rrf.Problem(
        nodes=[{"id": "x"}, {"id": "y"}],
        relations=[tie],
        anchors=[{**labels, "covariance": covariance.tolist()}],
        **settings,
    )


def test_every_row_is_the_margin_of_that_covariance() -> None:
    for row in sensitivity(field(SIGMA)):
        slow = field(shrunk(SIGMA, row.tau)).margin()
        assert row.lower == pytest.approx(slow.lower)
        assert row.lower <= slow.value * (1 + 1e-9)
        assert row.error_bound is not None
    assert [row.tau for row in sensitivity(field(SIGMA))] == list(TAUS)


def test_bad_input() -> None:
    bare = rrf.Problem(nodes=[{"id": "x"}], anchors=[{"id": "a", "node": "x", "sigma": 1.0}])
    with pytest.raises(rrf.InputError, match="no block of this design declares a covariance"):
        sensitivity(bare)
    with pytest.raises(rrf.InputError, match="between 0 and 1, not 2"):
        sensitivity(field(SIGMA), taus=[2.0])


def test_certify_tells_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rrf.save(field(SIGMA), tmp_path / "p.toml")
    with pytest.raises(SystemExit) as left:
        main(
            ["certify", str(tmp_path / "p.toml"), "-o", str(tmp_path / "c.json"), "--sensitivity", "--json", "--quiet"]
        )
    assert left.value.code == 0
    told = json.loads(capsys.readouterr().out)["sensitivity"]
    assert [row["tau"] for row in told] == list(TAUS)
    assert rrf.verify(tmp_path / "c.json").valid


def repeated(repeats: int | None, rows: int = 2, **settings: float) -> rrf.Problem:
    entry = {"id": "a", "node": "x", "value": [0.0] * rows, "covariance": np.eye(rows).tolist()}
    entry |= {} if repeats is None else {"estimated_from": repeats}
    return rrf.Problem(nodes=[{"id": "x", "dim": rows}], anchors=[entry], **settings)


@pytest.mark.parametrize("rows", [1, 2])
def test_an_estimate_is_raised_by_what_so_few_repeats_may_have_missed(rows: int) -> None:
    values = [repeated(many, rows).margin().value for many in (60, 1000, 10**6, None)]
    assert values == sorted(values)
    assert values[2] == pytest.approx(1.0, rel=0.01)
    made = rrf.certify(repeated(60, rows))
    assert rrf.verify(made).valid
    assert made.document["error"]["confidence"] >= 0.95 - 1e-9
    entry = made.document["noise"]["estimated"]["blocks"][0]
    assert 1.0 / values[0] ** 2 == pytest.approx(entry["inflation"])


@pytest.mark.parametrize("rows", [1, 3])
def test_the_truth_is_below_the_raised_estimate_as_often_as_promised(rows: int) -> None:
    from rrf_design.checker.noise import inflation

    rng = np.random.default_rng(rows)
    factor = inflation(rows=rows, repeats=60, confidence=0.9)
    logs = rng.standard_normal((400, 60, rows))
    least = [np.linalg.eigvalsh(np.atleast_2d(np.cov(log.T)))[0] for log in logs]
    assert np.mean(np.array(least) * factor < 1.0) <= 0.1 + 4 * 0.3 / 20  # four standard errors


def test_too_little_is_refused() -> None:
    import copy

    from rrf_design.checker._steps import check_noise

    made = rrf.certify(repeated(60))
    for key, value in (("inflation", 1.5), ("repeats", 10**7), ("rows", 7), ("block", "b")):
        document = copy.deepcopy(made.document)
        document["noise"]["estimated"]["blocks"][0][key] = value
        if key == "repeats":  # more repeats than were taken would need less: that is a premise, and no arithmetic
            assert check_noise(document, made.record)
            continue
        with pytest.raises(rrf.RRFError, match=r"noise\.estimated"):
            check_noise(document, made.record)
    with pytest.raises(
        rrf.InputError, match="anchor 'a': 5 repeats are too few to bound the covariance of 2 rows; take at"
    ):
        repeated(5)
    with pytest.raises(rrf.InputError, match="estimated_from speaks of sigma or covariance"):
        rrf.Problem(nodes=[{"id": "x"}], anchors=[{"id": "a", "node": "x", "estimated_from": 9}])
    with pytest.raises(rrf.InputError, match="raises the estimate itself; leave shrinkage out"):
        repeated(60, shrinkage=0.5)


def test_what_an_estimate_costs_is_told() -> None:
    from rrf_design._explain import explain
    from rrf_design.shrinkage import raised_noise, raised_words

    label = {"id": "label", "node": "x", "sigma": 1.0}
    told = rrf.Problem(nodes=[{"id": "x"}], anchors=[label])
    guessed = rrf.Problem(
        nodes=[{"id": "x", "sigma": 0.1, "estimated_from": 30}], anchors=[{**label, "estimated_from": 60}]
    )
    assert raised_words(told) == ""
    assert [(one.name, one.repeats) for one in raised_noise(guessed)] == [("label", 60), ("x", 30)]
    words = raised_words(guessed)
    assert "label 1.5" in words
    assert "Taken at their word the margin would be 1 instead of 0.79" in words
    assert "and the error bound" in words
    explained = explain(guessed)
    assert words in explained.to_json()["words"]
    assert explained.to_json()["estimated"][0]["name"] == "label"
