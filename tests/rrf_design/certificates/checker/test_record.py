"""Operators in and out of documents and files, and what is refused on the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rrf_design.checker.record import ARRAYS, load_record, record_from_lists
from rrf_design.errors import Refused

from ..conftest import make_record


def lists() -> dict[str, Any]:
    return make_record(np.array([[1.0, -1.0, 0.0], [0.0, 0.5, 2.0]]), radii=[0.0, 0.1]).to_document()


def test_a_record_survives_the_document() -> None:
    record = make_record(np.random.default_rng(0).standard_normal((4, 6)), [2, 3, 1], blocks=[3, 1])
    assert record_from_lists(record.to_document()).digest == record.digest


@pytest.mark.parametrize("name", ARRAYS)
def test_every_array_is_in_the_digest(name: str) -> None:
    fields = lists()
    before = record_from_lists(fields).digest
    item = fields[name][-1] if fields[name] else None
    if isinstance(item, str):
        fields[name][-1] = "anchor" if name == "block_kinds" else item + "x"
    elif name == "node_sizes":
        fields[name] = [1, 1, 1, 1]
        fields["node_ids"].append("n9")
    elif name == "block_sizes":
        fields[name] = [2, 0]
    elif name in ("touch_starts", "touch_nodes"):
        fields["touch_starts"] = [0, *[1] * (len(fields["touch_starts"]) - 1)]
        fields["touch_nodes"] = [0]
    elif name == "indptr":
        fields[name] = [0, 2, 4, 4]
        fields["block_sizes"] = [1, 2]
    elif name == "indices":
        fields[name] = [0, 1, 0, 2]
    else:
        fields[name][-1] = float(np.nextafter(item, 9))
    assert record_from_lists(fields).digest != before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"node_ids": ["a", "a", "b"]}, "node ids are not unique"),
        ({"block_ids": ["a", "a"]}, "block ids are not unique"),
        ({"node_sizes": [1, 1, 0]}, "a node has no coordinate"),
        ({"node_sizes": [1, 2]}, "number of node sizes"),
        ({"block_sizes": [1, 2]}, "block sizes do not add up"),
        ({"block_kinds": ["relation", "guess"]}, "neither relation nor anchor"),
        ({"radii": [0.0, -0.1]}, "a radius is negative"),
        ({"radii": [0.0]}, "block arrays differ"),
        ({"indptr": [0, 3, 2]}, "row pointers"),
        ({"indices": [0, 1, 1, 7]}, "a column is out of range"),
        ({"indices": [0, 0, 1, 2]}, "given twice"),
        ({"data": [1.0, -1.0, 0.5]}, "differ in number"),
        ({"data": [1.0, -1.0, 0.5, "x"]}, "must hold numbers"),
        ({"data": [1.0, -1.0, 0.5, True]}, "must hold numbers"),
        ({"data": [1.0, -1.0, 0.5, float("nan")]}, "must hold numbers"),
        ({"data": [1.0, -1.0, 0.5, -float("inf")]}, "must hold numbers"),
        ({"data": [1.0, -1.0, 0.5, 1.5e308]}, "must hold numbers"),
        ({"data": [1.0, -1.0, 0.5, 10**400]}, "must hold numbers"),
        ({"indices": [0, 1, 1, 1.5]}, "whole numbers"),
        ({"indices": [0, 1, 1, True]}, "whole numbers"),
        ({"indices": [0, 1, 1, 2**70]}, "whole numbers"),
        ({"indices": [0, 1, 1, -(2**70)]}, "whole numbers"),
        ({"node_ids": [1, 2, 3]}, "strings"),
        ({"data": None}, "must be a list"),
    ],
)
def test_what_is_no_operator_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(Refused, match=message):
        record_from_lists({**lists(), **change})


def test_bad_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="not found"):
        load_record(tmp_path / "none.npz")
    (tmp_path / "text.npz").write_text("hello")
    with pytest.raises(Refused, match="not readable"):
        load_record(tmp_path / "text.npz")
    np.savez(tmp_path / "other.npz", format=np.array("rrf-certificate-operator/2"), data=np.zeros(1))
    with pytest.raises(Refused, match="not in the format"):
        load_record(tmp_path / "other.npz")
