"""The verifier: accepts what is true, and refuses every altered certificate with a reason."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rrf_design.builders import from_matrix
from rrf_design.certificates._uncertainty import Uncertainty
from rrf_design.certificates.issue import Certificate, _save_record, certify
from rrf_design.checker.document import content_digest
from rrf_design.checker.noise import Tail, Tolerances
from rrf_design.checker.verifier import verify
from rrf_design.errors import InputError

from ..conftest import triangle

Path_ = tuple[Any, ...]


@pytest.fixture(scope="module")
def full() -> Certificate:
    """A certificate that uses every optional part."""
    return certify(
        triangle(epsilon=None, sigma=0.004),
        ["fix"],
        amplitude=2.0,
        largest_error=2.0,
        uncertainty=Uncertainty({"bc": 0.02}, source="calibration", confidence=0.99),
        tolerances=Tolerances(0.1, 0.1, 0.2, 0.2),
        tail=Tail(0.05, 0.01),
        supports=[["a", "b"], ["isolate"]],
    )


def leaves(value: Any, path: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from leaves(item, (*path, index))
    else:
        yield path, value


def altered(document: dict[str, Any], path: Path_, value: Any, *, seal: bool) -> dict[str, Any]:
    result = copy.deepcopy(document)
    place: Any = result
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    if seal:
        result["digest"] = content_digest(result)
    return result


def other(value: Any) -> Any:
    if value is None:
        return 1.0
    if isinstance(value, str):
        return value + "x"
    if isinstance(value, int):
        return value + 1
    return float(np.nextafter(value, np.inf))


def test_a_true_certificate_is_accepted(full: Certificate) -> None:
    result = verify(full)
    assert result.valid, result.reason
    assert result.gamma_lower == full.gamma_lower > 0.9
    assert len(result.checks) == 16


def test_every_single_value_tampering_is_refused(full: Certificate) -> None:
    count = 0
    for path, value in leaves(full.document):
        result = verify(Certificate(altered(full.document, path, other(value), seal=False), full.record))
        assert not result.valid, path
        assert result.reason
        assert result.gamma_lower is None
        count += 1
    assert count > 120


def test_a_forger_who_renews_the_digest_gains_nothing(full: Certificate) -> None:
    """With a new content digest, an altered number is refused or claims no more than the truth."""
    truth = 1.0  # γ_1 of the anchored triangle
    for path, value in leaves(full.document):
        if path[0] in ("provenance", "assumptions", "problem", "metrics", "digest"):
            continue  # no claims: words, held by the digest alone
        if not isinstance(value, int | float) or isinstance(value, bool):
            continue
        for changed in (other(value), value * 1.5 + 0.01, value * 0.5, 0.0, -1.0):
            kind = int if isinstance(value, int) else float
            if kind(changed) == value:
                continue
            document = altered(full.document, path, kind(changed), seal=True)
            result = verify(Certificate(document, full.record))
            if not result.valid or path[0] == "operator":
                assert not (path[0] == "operator" and result.valid), path
                continue
            assert document["margin"]["lower"] <= truth <= document["margin"]["upper"], path
            assert document["uncertainty"]["robust_lower"] <= truth - 0.02 + 1e-9, path
            assert document["error"]["bound"] >= 2 * document["noise"]["epsilon"] / truth, path
            assert document["noise"]["epsilon"] >= 0.004 * 3 or path[0] == "noise", path


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (("margin", "lower"), 1.0 - 1e-12, None),
        (("margin", "lower"), 1.0000000000000002, "the claim is false"),
        (("margin", "upper"), 0.99999, "the witness does not reach"),
        (("margin", "status"), "bounded", "does not go with the bounds"),
        (("k",), 2, None),
        (("witness", "support", 0), "nobody", "must name 1 to 2 different nodes"),
        (("witness", "direction", 0, 0), 0.1, "not of unit length|does not reach"),
        (("uncertainty", "eta"), 0.01, "smaller than the root"),
        (("uncertainty", "global_lower"), 0.99, "more than the margin minus eta"),
        (("uncertainty", "support_lower"), 0.999, "not the larger"),
        (("noise", "epsilon"), 0.001, "too small for the stated confidence"),
        (("noise", "kind"), "guess", "unknown"),
        (("noise", "rows"), 3, "those blocks have 4"),
        (("error", "bound"), 1e-6, "smaller than the certified numbers imply"),
        (("error", "spread"), 1e-6, "smaller than the certified numbers imply"),
        (("error", "spread"), None, "must be a number"),
        (("error", "norms"), {"a": 0.0}, None),
        (("error", "effective_epsilon"), 1e-6, "smaller than the certified numbers imply"),
        (("error", "confidence"), 0.999, "more than the certified numbers imply"),
        (("error", "minimax", "upper"), 1e-9, "smaller than the certified numbers imply"),
        (("error", "minimax", "gaussian_lower"), 1.0, "more than the certified numbers imply"),
        (("error", "tolerances", "bound"), 0.1, "smaller than the certified numbers imply"),
        (("error", "tail", "bound"), 0.01, "smaller than the certified numbers imply"),
        (("regime", "name"), "information", "regime: is"),
        (("regime", "consequence"), "All is well.", "consequence"),
        (("conditional", "lower"), 1.1, "conditional.lower"),
        (("audit", "sensitivity"), 0.5, "one over the margin"),
        (("budgets", 0, "lower"), 0.5, r"budgets\[0\]"),
        (("budgets", 0, "k"), 1, "must grow"),
        (("operator", "data", 0), -1.5, "not the one that was certified"),
        (("operator", "rows"), 5, "but the operator has 4"),
    ],
)
def test_reasons(full: Certificate, path: Path_, value: Any, reason: str | None) -> None:
    result = verify(Certificate(altered(full.document, path, value, seal=True), full.record))
    if reason is None:  # changes more than one thing, or claims something that is true: only soundness matters
        assert result.valid == (path != ("k",)) or not result.valid
        return
    assert not result.valid
    import re

    assert re.search(reason, result.reason), result.reason


def test_a_file_is_verified_as_the_object_is(full: Certificate, tmp_path: Path) -> None:
    saved = full.save(tmp_path / "certificate.json")
    assert saved.certificate == tmp_path / "certificate.json"
    assert verify(tmp_path / "certificate.json").valid
    text = (tmp_path / "certificate.json").read_text().replace('"rows": 4', '"rows": 5', 1)
    (tmp_path / "certificate.json").write_text(text)
    assert not verify(tmp_path / "certificate.json").valid


def test_a_large_operator_lies_beside_the_certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rrf_design.certificates._sections.INLINE_ENTRIES", 3)
    made = certify(triangle(), ["fix"])
    assert verify(made).valid
    saved = made.save(tmp_path / "c.json")
    assert verify(tmp_path / "c.json").valid
    name = saved.document["operator"]["file"]
    from ..conftest import make_record

    _save_record(make_record(np.eye(4)), tmp_path / name)
    assert "rows" in verify(tmp_path / "c.json").reason or "not the one" in verify(tmp_path / "c.json").reason
    (tmp_path / name).unlink()
    assert "not found" in verify(tmp_path / "c.json").reason
    outside = altered(saved.document, ("operator", "file"), f"../{name}", seal=True)
    (tmp_path / "c.json").write_text(json.dumps(outside))
    assert "plain file name" in verify(tmp_path / "c.json").reason


def test_not_a_certificate(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        verify(tmp_path / "none.json")
    (tmp_path / "x.json").write_bytes(b"\xff\xfe")
    assert not verify(tmp_path / "x.json").valid
    (tmp_path / "x.json").write_text("{}")
    assert "format" in verify(tmp_path / "x.json").reason


def test_random_structures_are_refused_without_an_exception(full: Certificate) -> None:
    rng = np.random.default_rng(0)
    odd: list[Any] = [None, True, -1, 1e308, "", [], {}, [[]], "exact", 2**70, -0.0]
    paths = [path for path, _ in leaves(full.document)]
    for _ in range(400):
        path = paths[int(rng.integers(len(paths)))]
        path = path[: int(rng.integers(1, len(path) + 1))]
        value = odd[int(rng.integers(len(odd)))]
        verify(Certificate(altered(full.document, path, value, seal=True), full.record))


def test_the_verifier_never_loads_the_solvers(full: Certificate, tmp_path: Path) -> None:
    full.save(tmp_path / "c.json")
    program = (
        "import sys; from rrf_design.checker.verifier import verify;"
        f"assert verify({str(tmp_path / 'c.json')!r}).valid;"
        "bad = [m for m in sys.modules if m.split('.')[0] in ('solvers', 'ortools', 'pulp')]; assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_zero_margin_is_certified_as_exactly_zero() -> None:
    """Also where the null vector has no exact form in doubles; and no other margin may be called
    so.
    """
    matrix = np.array([[1.0, 3.0, 7.0], [3.0, 9.0, 1.0]])
    made = certify(from_matrix(matrix, [1, 1, 1], k=1), budgets=[])
    assert (made.gamma_lower, made.gamma_upper) == (0.0, 0.0)
    assert verify(made).valid
    positive = certify(from_matrix(np.array([[1.0, 0.0], [1.0, 2.0**-40]]), [1, 1], k=1), budgets=[])
    claim = {**positive.document["margin"], "lower": 0.0, "upper": 0.0, "rung": "none", "proof": {"kind": "none"}}
    forged = Certificate(altered(positive.document, ("margin",), claim, seal=True), positive.record)
    assert "does not reach 0.0" in verify(forged).reason
