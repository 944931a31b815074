"""verify is total: hostile sizes, files and numbers end with a reason, quickly, and never with an
exception.
"""

from __future__ import annotations

import io
import json
import pickle
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import rrf_design as rrf
from rrf_design.builders import from_matrix
from rrf_design.certificates.issue import _save_record
from rrf_design.checker.exact import ProofOutcome
from rrf_design.checker.proofs import prove_dominance, prove_dual, prove_floor, prove_listed
from rrf_design.checker.record import MOST_COLUMNS, load_record, record_from_lists
from rrf_design.checker.verifier import LONGEST_REASON, verify
from rrf_design.errors import InputError, Refused

from ..conftest import make_record


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
