"""Strict reading: what is not exactly a certificate is refused before anything is computed."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from rrf_design.certificates.checker.document import SECTIONS, check_form, content_digest, parse
from rrf_design.certificates.issue import certify
from rrf_design.errors import Refused

from ..conftest import triangle


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return certify(triangle(), ["fix"]).document


def sealed(document: dict[str, Any]) -> dict[str, Any]:
    return {**document, "digest": content_digest(document)}


def test_a_fresh_document_passes(document: dict[str, Any]) -> None:
    check_form(document)


@pytest.mark.parametrize("key", sorted(set(SECTIONS) - {"digest"}))
def test_a_missing_section_is_refused(document: dict[str, Any], key: str) -> None:
    with pytest.raises(Refused):
        check_form(sealed({name: value for name, value in document.items() if name != key}))


def test_a_document_without_digest_is_refused(document: dict[str, Any]) -> None:
    with pytest.raises(Refused, match="digest"):
        check_form({name: value for name, value in document.items() if name != "digest"})


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("format",), "other", "not a certificate"),
        (("version",), 1, "version 1 is unknown"),
        (("version",), 1.0, "version 1.0 is unknown"),
        (("extra",), 1, "extra: unknown"),
        (("k",), "1", "wrong type"),
        (("k",), True, "wrong type"),
        (("margin", "lower"), "0.9", "wrong type"),
        (("margin", "rung"), "dominance", "does not go with"),
        (("margin", "proof"), {"kind": "guess"}, "does not go with"),
        (("margin", "proof"), {"kind": "enumeration", "more": 1}, "more: unknown"),
        (("witness", "direction"), [[0.5], "x"], "must be a list"),
        (("audit",), [], "must be an object"),
        (("assumptions",), ["a", "b", 1], r"assumptions\[2\]: 1 has the wrong type"),
        (("witness", "direction"), [[0.5, True]], r"direction\[0\]\[1\]: True has the wrong type"),
        (("witness", "direction"), [[0.5, 2e300]], r"direction\[0\]\[1\]: must be a number of at most"),
        (("witness", "direction"), [[0.5, 2**60]], r"direction\[0\]\[1\]: must be a number of at most"),
    ],
)
def test_faults_are_named(document: dict[str, Any], path: tuple[str, ...], value: Any, message: str) -> None:
    changed = copy.deepcopy(document)
    place = changed
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(Refused, match=message):
        check_form(sealed(changed))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a JSON document"),
        ("[1]", "top level"),
        ('{"a": NaN}', "NaN"),
        ('{"a": 1, "a": 2}', "twice"),
        ("[" * 100_000, "not a JSON document"),
    ],
)
def test_texts_that_are_no_documents(text: str, message: str) -> None:
    with pytest.raises(Refused, match=message):
        parse(text)
