"""Verification as a whole: it accepts what holds, and every input ends in one line."""

from __future__ import annotations

import copy
import io
import json
import pickle
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import rrf_design as rrf
from rrf_design.builders import from_matrix
from rrf_design.certificates._issue import Certificate, _save_record, certify
from rrf_design.certificates._uncertainty import Uncertainty
from rrf_design.checker.document import content_digest
from rrf_design.checker.exact import ProofOutcome
from rrf_design.checker.noise import Tail, Tolerances
from rrf_design.checker.proofs import prove_dominance, prove_dual, prove_floor, prove_listed
from rrf_design.checker.record import MOST_COLUMNS, load_record, record_from_lists
from rrf_design.checker.verifier import LONGEST_REASON, verify
from rrf_design.errors import InputError, Refused

from ..conftest import make_record, triangle

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
    monkeypatch.setattr("rrf_design.certificates._issue.INLINE_ENTRIES", 3)
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


@pytest.mark.parametrize("size", [1e7, 3e7, 1e8, 3e8, 1e16])
@pytest.mark.parametrize("width", [1, 2])
def test_sums_that_cancel_hide_nothing(size: float, width: int) -> None:
    """Four columns of rank three: a computed product of zero between two halves says nothing about
    B.
    """
    matrix = np.kron(np.array([[size] * 4, [0.0, 1.0, 0.0, 1.0], [size, size, -size, -size]]), np.eye(width))
    beside = np.zeros((matrix.shape[0] + 40, matrix.shape[1] + 40))
    beside[: matrix.shape[0], : matrix.shape[1]], beside[matrix.shape[0] :, matrix.shape[1] :] = matrix, np.eye(40)
    for operator, sizes in ((matrix, [width] * 4), (beside, [width] * 4 + [1] * 40)):
        record = make_record(operator, sizes)
        for plain in (False, True):
            assert prove_floor(record, 4, floor=0.5, plain=plain).outcome is ProofOutcome.REFUTED
        weights = np.ones(len(sizes))
        assert prove_dominance(record, 4, floor=0.5, weights=weights).outcome is not ProofOutcome.PROVED


@pytest.mark.parametrize("spread", [1e31, 1e60, 1e150, 1e290])
def test_numbers_beyond_the_range_of_products_are_settled_exactly(spread: float) -> None:
    """σ_min is known: the columns are orthogonal but for one pair."""
    matrix = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, spread]])
    record = make_record(matrix)
    assert not record.calm
    truth = (np.sqrt(5) - 1) / 2
    assert prove_floor(record, 2, floor=truth * (1 - 1e-12)).outcome is ProofOutcome.PROVED
    assert prove_floor(record, 2, floor=truth * (1 + 1e-12)).outcome is ProofOutcome.REFUTED
    assert prove_dominance(record, 2, floor=1e-3, weights=np.ones(3)).outcome is ProofOutcome.UNDECIDED
    assert prove_dual(record, 2, floor=1e-3, triangle=np.zeros(6)).outcome is ProofOutcome.UNDECIDED
    tiny = make_record(matrix[:2, :2] * 1e-200)
    assert prove_floor(tiny, 2, floor=truth * 1e-200 * (1 - 1e-12)).outcome is ProofOutcome.PROVED
    assert prove_floor(tiny, 2, floor=truth * 1e-200 * (1 + 1e-12)).outcome is ProofOutcome.REFUTED


def small() -> rrf.certificates.Certificate:
    return rrf.certify(from_matrix(np.vstack([np.eye(3), np.ones((1, 3))]), [1, 1, 1], k=1))


def arrays() -> dict[str, Any]:
    return {key: value for key, value in make_record(np.eye(3)).to_document().items() if isinstance(value, list)}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("node_sizes", [10**9, 1, 1]),
        ("node_sizes", [2**52] * 3),
        ("node_sizes", [MOST_COLUMNS, 1, 1]),
        ("node_sizes", [-1, 2, 2]),
        ("block_sizes", [2**52, -(2**52), 3]),
        ("indptr", []),
        ("indptr", [0, 3, 2, 3]),
        ("indices", [0, 1, 10**12]),
        ("touch_starts", []),
        ("data", [1.0, 1.0, 10**400]),
        ("radii", [-1.0, 0.0, 0.0]),
    ],
)
def test_sizes_are_not_believed(name: str, value: Any) -> None:
    tracemalloc.start()
    with pytest.raises(Refused, match="operator"):
        record_from_lists({**arrays(), name: value})
    assert tracemalloc.get_traced_memory()[1] < 50_000_000
    tracemalloc.stop()


def test_large_supports_and_dense_rows_are_refused_before_they_are_made() -> None:
    wide = make_record(np.ones((1, 6000)), [3000, 3000])
    with pytest.raises(Refused, match="too large to enumerate"):
        prove_floor(wide, 2, floor=0.5)
    assert prove_listed(wide, [(0, 1)], floor=0.5).outcome is ProofOutcome.UNDECIDED
    assert prove_dominance(wide, 2, floor=0.5, weights=np.ones(2)).outcome is ProofOutcome.UNDECIDED
    thin = make_record(sparse.eye_array(120, 400_000).tocsr(), [2000] * 200)
    with pytest.raises(Refused, match="blocks of nodes that touch are too large"):
        prove_floor(thin, 2, floor=0.5)
    long = make_record(np.ones((1, 12_000)))
    with pytest.raises(Refused, match="too dense"):
        prove_floor(long, 2, floor=0.5)
    with pytest.raises(Refused, match="too dense"):
        prove_dominance(long, 2, floor=0.5, weights=np.ones(12_000))
    assert prove_floor(make_record(np.eye(3)), 2**60, floor=0.5).outcome is ProofOutcome.PROVED


def bomb() -> bytes:
    """A small archive that says it holds far more than it may."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("format", *arrays()):
            archive.writestr(f"{name}.npy", b"\0" * (1 << 20))
    return buffer.getvalue()


def altered_file(tmp_path: Path, name: str, content: bytes) -> Path:
    """A true operator file in which one array is replaced."""
    _save_record(make_record(np.eye(3)), tmp_path / "true.npz")
    with zipfile.ZipFile(tmp_path / "true.npz") as old, zipfile.ZipFile(tmp_path / "b.npz", "w") as new:
        for member in old.namelist():
            new.writestr(member, content if member == f"{name}.npy" else old.read(member))
    return tmp_path / "b.npz"


def npy(array: Any, **options: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


def test_an_operator_file_is_read_with_suspicion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = npy(np.ones(3))
    header = good[: good.index(b"\n") + 1]
    lying = header.replace(b"(3,)", b"(3000000000000,)").ljust(len(header))
    for content in (
        pickle.dumps([1, 2, 3]),
        npy(np.array([{"a": 1}, 2, 3], dtype=object), allow_pickle=True),
        npy(np.ones((3, 3))),
        npy(np.ones(3, dtype=complex)),
        npy(np.array(["x"])),
        npy(np.ones(3))[:-1],
        npy(np.ones(3)) + b"\0",
        lying + good[len(header) :],
        b"",
    ):
        with pytest.raises(Refused, match="operator"):
            load_record(altered_file(tmp_path, "data", content))
    monkeypatch.setattr("rrf_design.checker.record.MOST_BYTES", 1 << 23)
    for content in (b"", b"PK\x03\x04", b"no archive", bomb()):
        (tmp_path / "c.npz").write_bytes(content)
        with pytest.raises(Refused, match="operator file"):
            load_record(tmp_path / "c.npz")
    assert load_record(altered_file(tmp_path, "none", b"")).digest == make_record(np.eye(3)).digest


def test_bytes_without_sense(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "c.json"
    for content, reason in (
        (b"", "not a JSON document"),
        (b"\xff\xfe", "not UTF-8"),
        (b"[" * 300_000, "nested too deeply"),
        (b'{"a":' * 300_000, "nested too deeply"),
        (b"9" * 6000, "larger than 2**53"),
        (b'{"a": 1e999}', "larger than 1e+300"),
        (b'{"a": -Infinity}', "not a number"),
        (b'{"a": 1, "a": 1}', "stands twice"),
        (b"null", "must be an object"),
        (b'{"format": "rrf-certificate", "version": [3]}', "version"),
        (b'{"format": ["rrf-certificate"]}', "format"),
    ):
        path.write_bytes(content)
        found = verify(path)
        assert not found.valid
        assert reason in found.reason
    monkeypatch.setattr("rrf_design.checker.verifier.MOST_BYTES", 10)
    path.write_bytes(b" " * 11)
    assert "can't be read: the file is larger" in verify(path).reason


def test_what_is_no_path_is_an_input_error(tmp_path: Path) -> None:
    for path in (tmp_path / "none.json", tmp_path, "a\0b", "\ud800", 3):
        with pytest.raises(InputError):
            verify(path)  # type: ignore[arg-type]


def test_reasons_can_be_printed_everywhere(tmp_path: Path) -> None:
    document = json.loads(json.dumps(small().document))
    document["margin"]["rung"] = "\ud800" * 5000
    from rrf_design.checker.document import content_digest

    document["digest"] = content_digest(document)
    (tmp_path / "c.json").write_text(json.dumps(document))
    reason = verify(tmp_path / "c.json").reason
    assert len(reason.encode()) <= 4 * LONGEST_REASON
    assert "\ud800" not in reason


def test_a_fault_in_a_check_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> str:
        raise ZeroDivisionError

    made = small()
    monkeypatch.setattr("rrf_design.checker._steps.check_noise", fails)
    found = verify(made)
    assert (found.valid, found.gamma_lower) == (False, None)
    assert found.reason == "can't be read: a check failed with ZeroDivisionError"


def test_a_search_ends_at_the_time_limit() -> None:
    found = verify(small(), time_limit=0.0)
    assert found.valid or "time limit" in found.reason


def test_numbers_that_no_double_holds_are_not_certified() -> None:
    problem = from_matrix(np.diag([1e-3, 1e-3]), [1, 1], k=1)
    with pytest.raises(InputError, match="rescale the problem"):
        rrf.certify(problem, epsilon=1e300)
    with pytest.raises(InputError, match="150 orders of magnitude"):
        rrf.certify(from_matrix(np.diag([1e-100, 1e100]), [1, 1], k=1))
