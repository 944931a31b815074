"""Sentences of certificates: a function of the numbers, and every number that nobody re-proves is
in one.

The trichotomy, case by case.
"""

from __future__ import annotations

from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.certificates.issue import certify
from rrf_design.checker._steps import _check_sentences
from rrf_design.checker.wording import (
    CONSEQUENCE,
    INFORMATION,
    MOST_LISTED,
    ON_TRUST,
    Finding,
    Regime,
    assumption_lines,
    regime_of,
)
from rrf_design.errors import Refused

from ..conftest import triangle


def test_plain() -> None:
    document = certify(triangle(), ["fix"]).document
    assert document["assumptions"][0] == "At most 1 of the 4 answers are wrong."
    assert any(line.startswith("The noise of all rows together is at most") for line in document["assumptions"])


def test_information_is_named() -> None:
    assert all(name in ON_TRUST for name in INFORMATION)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"nodes": [{"id": "a", "sigma": 0.25}, {"id": "b"}]}, "a 0.25"),
        ({"tail": 0.125}, "at most 0.125"),
        ({"amplitude": 2.5}, "at most 2.5 long"),
        ({"nodes": [{"id": "a", "range": [0.0, 3.5]}, {"id": "b", "range": [-4.5, 0.0]}]}, "a 3.5, b 4.5"),
        ({"epsilon": 0.375}, "at most 0.375"),
    ],
)
def test_premises_are_said_with_their_numbers(change: dict[str, Any], word: str) -> None:
    known: dict[str, Any] = {
        "k": 1,
        "nodes": [{"id": "a"}, {"id": "b"}],
        "relations": [{"id": "ab", "tail": "a", "head": "b", "uncertainty": 0.01}],
        "anchors": [{"id": "x", "node": "a", "value": 1.0}, {"id": "y", "node": "b", "value": 1.0}],
        "epsilon": 0.1,
    }
    if "sigma" in str(change):
        del known["epsilon"]
    document = certify(rrf.Problem(**{**known, **change})).document
    assert any(word in line for line in document["assumptions"]), document["assumptions"]


def test_long_lists_are_pointed_at() -> None:
    names = [f"n{i:02d}" for i in range(MOST_LISTED + 1)]
    problem = rrf.Problem(
        k=1,
        nodes=[{"id": name, "sigma": 0.1} for name in names],
        anchors=[{"id": f"x{name}", "node": name, "value": 1.0} for name in names],
    )
    lines = certify(problem).document["assumptions"]
    assert any(f"those of {len(names)} entries under noise.answers" in line for line in lines)


@pytest.mark.parametrize(
    ("section", "key", "value", "reason"),
    [
        (None, "assumptions", [], "are not those of this certificate; missing: At most 1"),
        ("metrics", "norm", "the largest entry", "not in the specified words"),
        ("metrics", "fibers", ["nobody"], "must name different entries"),
        ("metrics", "whitened", ["fix", "fix"], "must name different entries"),
        ("problem", "selected", ["nothing"], "must name different entries"),
        ("problem", "digest", "0", "no SHA-256"),
    ],
)
def test_another_sentence_is_refused(section: str | None, key: str, value: Any, reason: str) -> None:
    made = certify(triangle(), ["fix"])
    document = {**made.document}
    if section is None:
        document[key] = value
    else:
        document[section] = {**document[section], key: value}
    with pytest.raises(Refused, match=reason):
        _check_sentences(document, made.record)
    assert (
        assumption_lines(made.document, nodes=4, uncertain=bool(made.record.radii.any()))
        == made.document["assumptions"]
    )


@pytest.mark.parametrize(
    ("finding", "expected"),
    [
        (Finding(0.0, 0.0, None, None, None), Regime.INFORMATION),
        (Finding(1e-12, 1e-12, 1.0, None, None), Regime.INFORMATION),
        (Finding(1.0, 0.3, None, None, None), Regime.NOISE),
        (Finding(1.0, 1.0, 0.2, 0.1, None), Regime.NOISE),
        (Finding(1.0, 1.0, 5.0, None, 2.0), Regime.NOISE),
        (Finding(1.0, 0.9, 0.05, 0.1, 2.0), Regime.COMPUTATION),
        (Finding(1.0, 1.0, None, 0.1, None), Regime.COMPUTATION),
    ],
)
def test_regime(finding: Finding, expected: Regime) -> None:
    assert regime_of(finding) is expected


def test_every_regime_has_its_consequence() -> None:
    assert set(CONSEQUENCE) == set(Regime)
