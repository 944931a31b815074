"""Certificates under a premise: what is issued is what can be re-proved, in the words of the
problem.
"""

from __future__ import annotations

from typing import Any

import pytest

import rrf_design as rrf


def field(**settings: Any) -> rrf.Problem:
    nodes = [{"id": "total"}, {"id": "again"}, {"id": "other"}]
    relations = [{"id": "same", "tail": "total", "head": "again", "sigma": 0.5}]
    anchors = [{"id": f"x{i}", "node": "total"} for i in range(3)]
    return rrf.Problem(nodes=nodes, relations=relations, anchors=anchors, deliver=["total"], wrong_checks=1, **settings)


@pytest.mark.parametrize("asked", [{"budgets": [2]}, {"largest_error": 1.0}, {"supports": [["total"]]}])
def test_what_can_not_be_re_proved_is_not_issued(asked: dict[str, Any]) -> None:
    with pytest.raises(rrf.InputError, match="is not certified with units"):
        rrf.certify(field(), **asked)
    with pytest.raises(rrf.InputError, match="relaxations know nothing"):
        rrf.certify(field(), rung="dominance")


def test_the_certificate_speaks_of_what_is_delivered() -> None:
    problem = field(epsilon=0.1, delta=0.3)
    certificate = rrf.certify(problem)
    assert rrf.verify(certificate).valid
    assert certificate.gamma_lower == pytest.approx(problem.margin().value)
    assert certificate.error_bound == pytest.approx(0.2 / problem.margin().value)
    assert certificate.document["assumptions"][:2] == [
        "At most 1 of 3 answers and at most 1 of 4 checks are wrong.",
        "Only the values of total are promised.",
    ]
    assert certificate.document["provenance"]["unwhitened"]["upper"] == pytest.approx(1.0)
