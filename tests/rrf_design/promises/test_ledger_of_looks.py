"""A second look at the same labels, into another file: counted, told, and refused where a policy
keeps quiet about it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.checker.looks import _ledger_path, check_looks
from rrf_design.checker.promises import prove_policy
from rrf_design.errors import Refused


def look(world: Any, **settings: Any) -> dict[str, Any]:
    found = rrf.pilot(world.dataset, world.answers, **{"labels": 80, "risk": 0.1, **settings}).to_json()
    document: dict[str, Any] = json.loads(json.dumps(found))
    return document


def test_a_second_look_into_another_file_is_counted_and_the_first_no_longer_stands_alone(make_world: Any) -> None:
    world = make_world(items=200, wrong=0.0)
    first = look(world)
    assert first["looks"] == {"field": "total", "count": 1}
    assert "of which the ledger here knows 1" in check_looks(first)
    second = look(world, risk=0.08)
    assert second["looks"]["count"] == 2
    assert second["policy"] != "check everything"
    assert "looked at 2 times" in second["sentence"]
    assert "looked at 2 times" in prove_policy(second).sentence
    with pytest.raises(Refused, match="tells of 1 look"):
        check_looks(first)
    for document, valid in ((first, False), (second, True)):
        path = world.folder / "policy.json"
        path.write_text(json.dumps(document))
        assert rrf.verify(path).valid == valid
    check_looks(second)
    assert look(world)["looks"]["count"] == 2  # the first once more, which now tells of both


@pytest.mark.parametrize("change", [{"seed": 3}, {"order": "holm"}, {"random_checks": True}, {"labels": 90}])
def test_every_other_setting_is_another_look(make_world: Any, change: dict[str, Any]) -> None:
    world = make_world(items=200, wrong=0.0)
    look(world)
    assert look(world, **change)["looks"]["count"] == 2


def test_the_same_pilot_again_and_one_that_grows_are_one_look(make_world: Any) -> None:
    world = make_world(items=300, wrong=0.02)
    assert look(world) == look(world)
    grown = make_world(items=320, wrong=0.02)
    first = look(grown, sequential=True, labels=90)
    assert first["looks"]["count"] == 1
    assert look(grown, sequential=True, labels=150, before=first)["looks"]["count"] == 1
    assert look(grown, sequential=True, labels=150)["looks"]["count"] == 2  # begun anew: another order of tests


def test_truths_that_were_changed_after_a_look_are_another(make_world: Any) -> None:
    world = make_world(items=200, wrong=0.1)
    assert look(world)["looks"]["count"] == 1
    path = world.folder / "table.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    said = {row["id"]: row["text"] for row in map(json.loads, world.answers.read_text().splitlines())}
    path.write_text("".join(json.dumps(row | {"booked": int(said[row["no"]])}) + "\n" for row in rows))
    assert look(world)["looks"]["count"] == 2


def test_without_a_ledger_looks_are_as_stated(make_world: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    document = look(make_world(items=200, wrong=0.0))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "elsewhere"))
    assert check_looks(document).startswith("looks as stated (1)")
    assert check_looks({key: value for key, value in document.items() if key != "looks"}).startswith("looks as stated")
    (tmp_path / "elsewhere").write_text("a file where the folder should be")
    heard: list[str] = []
    world = make_world(items=210, wrong=0.0)
    found = rrf.pilot(world.dataset, world.answers, labels=80, risk=0.1, progress=heard.append)
    assert found.to_json()["looks"]["count"] == 1
    assert any("nothing counts the looks" in words for words in heard)


def test_a_ledger_that_was_cut_off_is_read_as_far_as_it_can_be(make_world: Any) -> None:
    world = make_world(items=200, wrong=0.0)
    look(world)
    with _ledger_path().open("a") as stream:
        stream.write('\n{"population": "cut o')
    _ledger_path().write_bytes(_ledger_path().read_bytes() + b"\xff\n[]\n7\n")
    assert look(world, seed=1)["looks"]["count"] == 2


@pytest.mark.parametrize("count", [0, -1, 1.5, True, "2", None])
def test_a_forged_number_of_looks_is_refused(make_world: Any, count: Any) -> None:
    document = look(make_world(items=200, wrong=0.0))
    with pytest.raises(Refused):
        prove_policy({**document, "looks": {"field": "total", "count": count}})
    with pytest.raises(Refused):
        prove_policy({**document, "looks": {"field": "total", "count": 2}})  # the sentence keeps it quiet
