"""The checks in order: each is told with what it found, and none comes after one that refused."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from rrf_design.certificates.checker.document import content_digest
from rrf_design.certificates.checker.steps import Check, Steps
from rrf_design.certificates.issue import certify
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
