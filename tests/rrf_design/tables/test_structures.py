"""One result for each structure: the same as that of any of its items, the weakest first,
certificates that verify.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import rrf_design as rrf
from rrf_design.errors import InputError
from rrf_design.tables import by_structure, save_certificates


def test_the_first_item_speaks_for_those_like_it(items: rrf.Dataset) -> None:
    found = by_structure(items, lambda problem: problem.margin(), lambda margin: margin.value)
    assert sum(speaker.count for speaker in found.speakers) == len(items)
    by_item = {item.id: item.structure for item in items.items_in_order()}
    for speaker in found.speakers:
        like = [name for name, structure in by_item.items() if structure == by_item[speaker.item]]
        assert len(like) == speaker.count
        assert {round(items[name].margin().value, 9) for name in like[:4]} == {round(speaker.result.value, 9)}
    assert found.worst.result.value == min(speaker.result.value for speaker in found.speakers)
    document = found.to_json()
    assert document["gamma"] == found.worst.result.value
    assert [part["items"] for part in document["structures"]] == [speaker.count for speaker in found.speakers]


def test_certificates_of_a_data_set(items: rrf.Dataset, tmp_path: Path) -> None:
    found = rrf.certify(items, budgets=[])
    assert len(found.speakers) == len(items.structures) == 2
    with pytest.raises(InputError, match="name a folder"):
        save_certificates(found, tmp_path / "all.json")
    _, paths = save_certificates(found, tmp_path / "all")
    assert all(rrf.verify(path).valid for path in paths)
    one, paths = save_certificates(rrf.certify(items.only(["001"]), budgets=[]), tmp_path / "one.json")
    assert paths == [tmp_path / "one.json"]
    assert one.worst.result.path == paths[0]
