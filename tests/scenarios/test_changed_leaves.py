"""No leaf of any document that `verify` takes can be changed to something that is neither weaker nor named as not proven."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from scenarios.changed_leaves import changed, changes, harmless, information, judged, leaf_case, places
from scenarios.forged_promises import verified
from scenarios.leaf_documents import true_documents
from scenarios.sealing import Document, seal

EVERY = 17
"""Of all changes of all leaves every seventeenth is made here; the scenario draws others."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Document], Path]:
    folder = tmp_path_factory.mktemp("leaves")
    return true_documents(folder), folder


def _value(document: Document, place: tuple[Any, ...]) -> Any:
    value: Any = document
    for key in place:
        value = value[key]
    return value


def test_the_documents_are_true(made: tuple[dict[str, Document], Path]) -> None:
    documents, folder = made
    assert len(documents) == 21
    for name, document in documents.items():
        path = folder / "true.json"
        path.write_bytes(seal(document) if document["format"] == "rrf-certificate" else json.dumps(document).encode())
        assert verified(path), name


@pytest.mark.parametrize("share", range(3))
def test_no_leaf_is_free(made: tuple[dict[str, Document], Path], share: int) -> None:
    documents, folder = made
    for name in sorted(documents)[share::3]:
        cases = [(place, new) for place in places(documents[name]) for new in changes(_value(documents[name], place))]
        for place, new in cases[share::EVERY]:
            seen = judged(name, documents[name], place, new, folder)
            assert not seen["false"], (name, place, new)
            assert not seen["raised"], (name, place, new)


@pytest.mark.parametrize("kind", ["assumptions", "metrics.norm", "because", "voided_by", "sentence"])
def test_no_sentence_is_free(made: tuple[dict[str, Document], Path], kind: str) -> None:
    """The texts, all of them and every change: a certificate whose premises were emptied used to be accepted."""
    documents, folder = made
    tried = 0
    for name, document in documents.items():
        for place in places(document):
            if ".".join(str(key) for key in place if isinstance(key, str)) != kind:
                continue
            for new in changes(_value(document, place)):
                tried += 1
                assert not judged(name, document, place, new, folder)["accepted"], (name, place, new)
    assert tried > 30


def test_the_judge_knows_a_hole(made: tuple[dict[str, Document], Path]) -> None:
    documents, _ = made
    plain, policy = documents["certificate: plain"], documents["policy: fresh"]
    assert not harmless(plain, ("assumptions",), [], b"")
    assert not harmless(plain, ("margin", "upper"), plain["margin"]["upper"] / 2, b"")
    assert not harmless(policy, ("risk",), policy["risk"] / 2, b"")
    assert harmless(plain, ("margin", "upper"), plain["margin"]["upper"] * 2, b"")
    assert harmless(plain, ("provenance", "package"), "x", b"")
    for place, value in ((("operator", "data", -1), 0.0), (("operator", "data", -1), 1e-3)):
        assert not harmless(plain, place, value, changed(plain, place, value))


def test_what_is_not_proven_is_named_by_verify(made: tuple[dict[str, Document], Path], tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from rrf_design.cli.app import app

    for name in ("certificate: everything", "policy: strata", "audit"):
        document = copy.deepcopy(made[0][name])
        path = tmp_path / "d.json"
        path.write_bytes(seal(document) if document["format"] == "rrf-certificate" else json.dumps(document).encode())
        for options in ([], ["--json"]):
            said = CliRunner().invoke(app, ["verify", str(path), *options])
            assert said.exit_code == 0
            words = "".join(said.output.split())
            assert all(entry.replace(" ", "") in words for entry in information(document)), name


def test_cases_are_drawn_by_their_seed(made: tuple[dict[str, Document], Path]) -> None:
    first, second = (leaf_case(*made, 7) for _ in range(2))
    assert (first["trick"], first["place"]) == (second["trick"], second["place"])
