"""No forgery and no bytes are accepted, and none makes the verifier fail; a true certificate
passes.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rrf_design.certificates import verify
from rrf_design.errors import Refused
from rrf_design.promises import prove_policy
from scenarios.kit.sealing import Document, seal
from scenarios.rigour.changed_leaves import changed, changes, harmless, information, judged, leaf_case, places
from scenarios.rigour.forged_policies import policy_case, reseal, true_policies
from scenarios.rigour.forged_promises import promise_case, true_promises, verified
from scenarios.rigour.forgeries import TRICKS, forge, guarded_certificate, noise_bytes, true_certificate
from scenarios.rigour.leaf_documents import true_documents
from scenarios.rigour.promise_oracle import claims_follow, policy_follows

FULL, PLAIN, GUARDED = true_certificate(), true_certificate(plain=True), guarded_certificate()


def test_the_certificates_to_forge_are_true(tmp_path: Path) -> None:
    for document in (FULL, PLAIN, GUARDED):
        (tmp_path / "c.json").write_bytes(seal(document))
        assert verify(tmp_path / "c.json").valid


@pytest.mark.parametrize("first", range(0, 400, 100))
def test_no_forgery_is_accepted(first: int, tmp_path: Path) -> None:
    tricks = set()
    for seed in range(first, first + 100):
        trick, content = forge(np.random.default_rng(seed), FULL, PLAIN, GUARDED)
        (tmp_path / "c.json").write_bytes(content)
        found = verify(tmp_path / "c.json")
        assert not found.valid, (trick, seed)
        assert "check failed" not in found.reason, (trick, seed)
        tricks.add(trick)
    assert len(tricks) > len(TRICKS) / 2


def test_no_bytes_are_accepted(tmp_path: Path) -> None:
    for seed in range(150):
        kind, content = noise_bytes(np.random.default_rng(seed), FULL)
        (tmp_path / "c.json").write_bytes(content)
        found = verify(tmp_path / "c.json")
        assert not found.valid, (kind, seed)
        assert "check failed" not in found.reason, (kind, seed)


Made = tuple[dict[str, tuple[Document, dict[str, Any]]], Path]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("policies")
    return true_policies(folder), folder


@pytest.mark.parametrize("first", range(0, 480, 120))
def test_nothing_false_is_accepted(made: Made, first: int) -> None:
    accepted = 0
    for seed in range(first, first + 120):
        seen = policy_case(*made, seed)
        assert not seen["false"], (seed, seen)
        assert not seen["raised"], (seed, seen)
        accepted += seen["accepted"]
    assert 0 < accepted < 60  # some only make another honest document


@pytest.mark.parametrize("kind", ["strata", "sequential", "random checks", "policy", "file", "holm"])
def test_what_is_true_follows_and_is_what_the_forger_would_write(made: Made, kind: str) -> None:
    document, ladders = copy.deepcopy(made[0][kind])
    assert document["policy"] != "check everything"
    assert policy_follows(document)
    prove_policy(document)
    reseal(document, ladders)
    assert document == made[0][kind][0]


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("strata", lambda d: d["strata"].reverse()),
        ("strata", lambda d: d["choice"]["limits"][0].update(share="1/4")),
        ("sequential", lambda d: d["choice"].update(sequential=False)),
        ("sequential", lambda d: d["policies"][0].update(proven=not d["policies"][0]["proven"])),
        ("random checks", lambda d: d["ladder"].update(random_checks=0.9)),
        ("random checks", lambda d: d["choice"]["policies"][0].update(checked_share="0.9")),
        ("policy", lambda d: d["choice"].update(population=91)),
        ("file", lambda d: d.update(statement="rest")),
        ("file", lambda d: d["choice"]["streams"][0].update(share="2")),
        ("holm", lambda d: d.update(confidence=0.99)),
        ("holm", lambda d: d["places"].reverse()),
    ],
)
def test_the_oracle_and_verify_know_what_is_false(made: Made, kind: str, change: Any) -> None:
    document = copy.deepcopy(made[0][kind][0])
    change(document)
    assert not policy_follows(document)
    with pytest.raises(Refused):
        prove_policy(document)


@pytest.mark.parametrize(("statement", "population"), [("policy", 90), ("file", 90)])
def test_a_draw_inside_strata_proves_nothing_about_this_very_table(made: Made, statement: str, population: int) -> None:
    document, ladders = copy.deepcopy(made[0]["strata"])
    document["choice"].update(statement=statement, population=population)
    document["statement"] = statement
    reseal(document, ladders)
    with pytest.raises(Refused, match="a draw inside strata proves the statement 'fresh'"):
        prove_policy(document)


@pytest.fixture(scope="module")
def promised(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Document], Path]:
    folder = tmp_path_factory.mktemp("promises")
    return true_promises(folder), folder


@pytest.mark.parametrize("first", range(0, 600, 150))
def test_nothing_false_is_accepted_of_forged_promises(promised: tuple[dict[str, Document], Path], first: int) -> None:
    for seed in range(first, first + 150):
        seen = promise_case(*promised, seed)
        assert not seen["false"], (seed, seen)
        assert not seen["raised"], (seed, seen)


def test_the_oracle_takes_what_is_true(promised: tuple[dict[str, Document], Path]) -> None:
    assert all(claims_follow(kind, document, document) for kind, document in promised[0].items())


def _first(entries: list[Any]) -> Any:
    return entries[0]


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("policy", lambda d: _first(d["policies"]).update(wrong=7)),
        ("policy", lambda d: _first(d["policies"]).update(proven=not _first(d["policies"])["proven"])),
        ("policy", lambda d: _first(d["policies"]).update(delivered=1)),
        ("policy", lambda d: d.update(risk=0.01)),
        ("policy", lambda d: d["wrong_answers"]["nodes"][0].update(bound=1e-3)),
        ("policy", lambda d: d["places"].reverse()),
        ("audit", lambda d: d.update(bound=d["bound"] - 1)),
        ("audit", lambda d: d.update(wrong_items=[])),
        ("pilot", lambda d: d["pilot"].update(bound=d["pilot"]["bound"] * (1 - 1e-10))),
        ("pilot", lambda d: d.update(k=2)),
    ],
)
def test_the_oracle_knows_what_is_false(promised: tuple[dict[str, Document], Path], kind: str, change: Any) -> None:
    document = copy.deepcopy(promised[0][kind])
    change(document)
    assert not claims_follow(kind, document, promised[0][kind])


EVERY = 17
"""Of all changes of all leaves every seventeenth is made here; the scenario draws others."""


@pytest.fixture(scope="module")
def documents_of_leaves(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Document], Path]:
    folder = tmp_path_factory.mktemp("leaves")
    return true_documents(folder), folder


def _value(document: Document, place: tuple[Any, ...]) -> Any:
    value: Any = document
    for key in place:
        value = value[key]
    return value


def test_the_documents_are_true(documents_of_leaves: tuple[dict[str, Document], Path]) -> None:
    documents, folder = documents_of_leaves
    assert len(documents) == 21
    for name, document in documents.items():
        path = folder / "true.json"
        path.write_bytes(seal(document) if document["format"] == "rrf-certificate" else json.dumps(document).encode())
        assert verified(path), name


@pytest.mark.parametrize("share", range(3))
def test_no_leaf_is_free(documents_of_leaves: tuple[dict[str, Document], Path], share: int) -> None:
    documents, folder = documents_of_leaves
    for name in sorted(documents)[share::3]:
        cases = [(place, new) for place in places(documents[name]) for new in changes(_value(documents[name], place))]
        for place, new in cases[share::EVERY]:
            seen = judged(name, documents[name], place, new, folder)
            assert not seen["false"], (name, place, new)
            assert not seen["raised"], (name, place, new)


@pytest.mark.parametrize("kind", ["assumptions", "metrics.norm", "because", "voided_by", "sentence"])
def test_no_sentence_is_free(documents_of_leaves: tuple[dict[str, Document], Path], kind: str) -> None:
    """The texts, all of them and every change: a certificate whose premises were emptied used to be
    accepted.
    """
    documents, folder = documents_of_leaves
    tried = 0
    for name, document in documents.items():
        for place in places(document):
            if ".".join(str(key) for key in place if isinstance(key, str)) != kind:
                continue
            for new in changes(_value(document, place)):
                tried += 1
                assert not judged(name, document, place, new, folder)["accepted"], (name, place, new)
    assert tried > 30


def test_the_judge_knows_a_hole(documents_of_leaves: tuple[dict[str, Document], Path]) -> None:
    documents, _ = documents_of_leaves
    plain, policy = documents["certificate: plain"], documents["policy: fresh"]
    assert not harmless(plain, ("assumptions",), [], b"")
    assert not harmless(plain, ("margin", "upper"), plain["margin"]["upper"] / 2, b"")
    assert not harmless(policy, ("risk",), policy["risk"] / 2, b"")
    assert harmless(plain, ("margin", "upper"), plain["margin"]["upper"] * 2, b"")
    assert harmless(plain, ("provenance", "package"), "x", b"")
    for place, value in ((("operator", "data", -1), 0.0), (("operator", "data", -1), 1e-3)):
        assert not harmless(plain, place, value, changed(plain, place, value))


def test_what_is_not_proven_is_named_by_verify(
    documents_of_leaves: tuple[dict[str, Document], Path], tmp_path: Path
) -> None:
    from typer.testing import CliRunner

    from rrf_design.cli.app import app

    for name in ("certificate: everything", "policy: strata", "audit"):
        document = copy.deepcopy(documents_of_leaves[0][name])
        path = tmp_path / "d.json"
        path.write_bytes(seal(document) if document["format"] == "rrf-certificate" else json.dumps(document).encode())
        for options in ([], ["--json"]):
            said = CliRunner().invoke(app, ["verify", str(path), *options])
            assert said.exit_code == 0
            words = "".join(said.output.split())
            assert all(entry.replace(" ", "") in words for entry in information(document)), name


def test_cases_are_drawn_by_their_seed(documents_of_leaves: tuple[dict[str, Document], Path]) -> None:
    first, second = (leaf_case(*documents_of_leaves, 7) for _ in range(2))
    assert (first["trick"], first["place"]) == (second["trick"], second["place"])
