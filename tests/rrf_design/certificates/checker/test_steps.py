"""The checks in order: each is told with what it found, and none comes after one that refused.

Claims that follow from the margin by arithmetic: what is not exactly right, or weaker, is
refused.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.certificates import Certificate
from rrf_design.certificates.issue import certify
from rrf_design.checker._steps import (
    Check,
    Steps,
    _check_audit,
    _check_regime,
    _check_uncertainty,
    check_errors,
    check_noise,
)
from rrf_design.checker.document import content_digest
from rrf_design.errors import Refused

from ..conftest import triangle


def walked(document: dict[str, Any]) -> tuple[list[Check], str]:
    checks: list[Check] = []
    sealed = {**document, "digest": content_digest(document)}
    try:
        Steps(sealed, None, None, checks, 60.0, None).run()
    except Refused as refusal:
        return checks, str(refusal)
    return checks, ""


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return copy.deepcopy(dict(certify(triangle(), ["fix"]).document))


def test_all_checks_are_told_in_order(document: dict[str, Any]) -> None:
    checks, refusal = walked(document)
    assert refusal == ""
    names = [check.name for check in checks]
    assert names[:4] == ["form", "operator", "protection", "witness"]
    assert names.index("margin") > names.index("null-space property")
    assert len(set(names)) == len(names)
    assert all(check.detail and check.seconds >= 0.0 for check in checks)


def test_nothing_comes_after_a_refusal(document: dict[str, Any]) -> None:
    checks, refusal = walked({**document, "regime": {**document["regime"], "name": "noise"}})
    assert "regime" in refusal
    assert [check.name for check in checks][-1] == "error bounds"


@pytest.fixture(scope="module")
def made() -> Certificate:
    return rrf.certify(triangle(epsilon=None, sigma=0.004), ["fix"], amplitude=2.0)


def check(made: Certificate, document: dict[str, Any], name: str) -> str:
    checks: dict[str, Callable[[], str]] = {
        "uncertainty": lambda: _check_uncertainty(document, made.record),
        "noise": lambda: check_noise(document, made.record),
        "error": lambda: check_errors(document, made.record),
        "regime": lambda: _check_regime(document),
    }
    return checks[name]()


def test_what_certify_writes_is_accepted(made: Certificate) -> None:
    assert check(made, made.document, "uncertainty").startswith("eta =")
    assert check(made, made.document, "noise").startswith("chi, radius")
    assert check(made, made.document, "error").startswith("error bound")
    assert check(made, made.document, "regime") == "computation"


@pytest.mark.parametrize(
    ("section", "key", "value", "reason"),
    [
        ("uncertainty", "eta", 0.0, "smaller than the root"),
        ("uncertainty", "global_lower", 0.995, "more than the margin minus eta"),
        ("uncertainty", "robust_lower", 0.5, "not the larger"),
        ("uncertainty", "confidence", 1.5, "between 0 and 1"),
        ("noise", "kind", "pink", "unknown"),
        ("noise", "rows", 3, "but those blocks have 4"),
        ("noise", "blocks", ["ab", "ab"], "different blocks"),
        ("noise", "epsilon", 1e-3, "too small"),
        ("noise", "epsilon", None, "must be a radius"),
        ("noise", "sigma", None, "belong to random noise"),
        ("noise", "confidence", 1.0, "between 0 and 1"),
        ("error", "confidence", 0.999, "more than the certified numbers imply"),
        ("regime", "name", "noise", "is computation"),
        ("regime", "consequence", "buy", "not the specified one"),
    ],
)
def test_one_changed_value(made: Certificate, section: str, key: str, value: Any, reason: str) -> None:
    document = copy.deepcopy(made.document)
    document[section][key] = value
    with pytest.raises(Refused, match=reason):
        check(made, document, section)


def test_an_audit_goes_with_its_margin(made: Certificate) -> None:
    from fractions import Fraction

    document = copy.deepcopy(made.document)
    assert _check_audit(document, Fraction(0)) == "witness checked directly"
    with pytest.raises(Refused, match="leaves more"):
        _check_audit(document, Fraction(10**6))
    document["audit"]["sensitivity"] = 2.0
    with pytest.raises(Refused, match="not one over"):
        _check_audit(document, Fraction(0))
    document["margin"]["upper"] = 0.0
    with pytest.raises(Refused, match="a pair belongs to a zero margin"):
        _check_audit(document, Fraction(0))
    document["audit"] = {"residual": 0.0, "sensitivity": None, "pair": {"first": ["a"], "second": ["c"]}}
    with pytest.raises(Refused, match="not a division"):
        _check_audit(document, Fraction(0))
    document["witness"]["support"] = ["a", "c"]
    document["audit"]["pair"] = {"first": ["a", "c"], "second": []}
    with pytest.raises(Refused, match="more than k nodes"):
        _check_audit(document, Fraction(0))


@pytest.mark.parametrize("shared", [{"correlation": 0.5}, {"covariance": [[0.25, 0.1], [0.1, 0.25]]}])
def test_noise_that_is_shared_must_be_covered(shared: dict[str, Any]) -> None:
    labels = [{"id": name, "node": name.upper(), "sigma": 0.5, "value": 0.0} for name in ("a", "b")]
    noise = [{"id": "annotator", "blocks": ["a", "b"], **shared}]
    made = rrf.certify(rrf.Problem(nodes=[{"id": "A"}, {"id": "B"}], anchors=labels, noise=noise))
    assert rrf.verify(made).valid
    assert check(made, made.document, "noise").startswith("correlated, radius")
    for key, value in (
        ("dilation", 1.3),
        ("members", 1),
        ("blocks", ["a", "a"]),
        ("blocks", ["c"]),
        ("correlation", -1.0),
    ):
        document = copy.deepcopy(made.document)
        document["noise"]["shared"][0][key] = value
        with pytest.raises(Refused, match=r"noise\.shared\[0\]"):
            check(made, document, "noise")
    document = copy.deepcopy(made.document)
    document["noise"]["shared"] = []
    with pytest.raises(Refused, match="names no block"):
        check(made, document, "noise")
