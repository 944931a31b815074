"""Rivals are checked by arithmetic of their own: every false pair is refused, with a reason."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.certificates import Certificate
from rrf_design.certificates.checker.document import content_digest


@pytest.fixture(scope="module")
def made() -> Certificate:
    """Three answers in a row, the last one anchored by two clerks of whom one may be wrong."""
    problem = rrf.Problem(
        epsilon=0.1,
        wrong_checks=1,
        nodes=[{"id": name} for name in "abc"],
        relations=[{"id": "ab", "tail": "a", "head": "b"}, {"id": "bc", "tail": "b", "head": "c", "trusted": True}],
        anchors=[{"id": f"x{i}{name}", "node": name} for i in range(3) for name in "abc"],
    )
    return rrf.certify(problem)


def test_the_pair_is_accepted(made: Certificate) -> None:
    claim = made.document["rivals"]
    assert claim["distance"] == pytest.approx(0.2 / made.gamma_upper, rel=1e-9)
    assert claim["first"]["checks"]
    assert rrf.verify(made).valid


def change(made: Certificate, **changes: Any) -> Certificate:
    document = copy.deepcopy(made.document)
    for path, value in changes.items():
        place: Any = document["rivals"]
        *inner, last = path.split("__")
        for key in inner:
            place = place[key]
        place[last] = value(place[last]) if callable(value) else value
    document["digest"] = content_digest(document)
    return Certificate(document, made.record)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"distance": lambda x: x * 1.001}, "rivals.distance: is more than"),
        ({"distance": 0.0}, "rivals.distance: is more than"),
        ({"residual": lambda x: x * 0.999}, "rivals.residual: is smaller"),
        ({"residual": 0.1001}, "more than the noise radius"),
        ({"residual": -1.0}, "rivals.residual: is smaller"),
        ({"first__support": ["nobody"]}, "must name different nodes"),
        ({"first__support": lambda x: x * 2}, "must name different nodes"),
        ({"first__support": ["a", "b"], "first__direction": [[0.1], [0.1]]}, "more is wrong than k = 1 allows"),
        ({"first__direction": [[0.1, 0.1]]}, "does not fit its nodes"),
        ({"second__checks": ["bc"], "second__disturbance": [[0.1]]}, "must name at most 1 different suspects"),
        ({"first__checks": ["x0a", "x1a"]}, "must name at most 1 different suspects"),
        ({"first__disturbance": [[0.1, 0.1]]}, "does not fit its checks"),
        ({"first__checks": [], "first__disturbance": []}, "is smaller than what the two leave unexplained"),
        ({"first": "x"}, "must be an object"),
    ],
)
def test_a_false_pair_is_refused(made: Certificate, changes: dict[str, Any], reason: str) -> None:
    found = rrf.verify(change(made, **changes))
    assert not found.valid
    assert reason in found.reason


def test_both_can_not_blame_the_same(made: Certificate) -> None:
    same = copy.deepcopy(made.document["rivals"]["first"])
    assert "different answers and checks" in rrf.verify(change(made, second=same)).reason
