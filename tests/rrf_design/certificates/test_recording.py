"""From an assembled operator to its record, and from the record to its file and back."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rrf_design.certificates.checker.record import load_record
from rrf_design.certificates.recording import record_of, save_record

from .conftest import make_record, triangle


def test_a_record_survives_its_file(tmp_path: Path) -> None:
    record = make_record(np.random.default_rng(0).standard_normal((4, 6)), [2, 3, 1], blocks=[3, 1])
    save_record(record, tmp_path / "b.npz")
    assert load_record(tmp_path / "b.npz").digest == record.digest
    assert [path.name for path in tmp_path.iterdir()] == ["b.npz"]


def test_record_of_an_assembled_operator() -> None:
    record = record_of(triangle().operator("all"))
    assert record.block_ids == ("ab", "bc", "ca", "fix")
    assert record.block_kinds[-1] == "anchor"
    assert record.radii.tolist() == [0.01, 0.0, 0.0, 0.0]
    assert record.dense_part((0,)).tolist() == [[-1.0], [1.0]]
