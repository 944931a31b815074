"""Logs of Inspect AI: archives and single objects, epochs, attachments, limits and costs. Members
of a zip archive that may be hostile: bounded, checked, and never written to disk.
"""

from __future__ import annotations

import io
import json
import struct
import zipfile
from pathlib import Path
from typing import Any

import pytest
from backports import zstd
from tool_logs import HEADER, MODEL, eval_file, rows, sample

from rrf_design.errors import InputError
from rrf_design.responses.imports import _inspect_logs as archive
from rrf_design.responses.imports._records import ImportedRow


@pytest.mark.parametrize("method", [93, 8, 0])
def test_inspect_archives(tmp_path: Path, method: int) -> None:
    members = {
        "header.json": HEADER,
        "summaries.json": [],
        "samples/1_epoch_1.json": sample(1),
        "samples/1_epoch_2.json": sample(1, 2),
        "samples/../../evil_epoch_1/sample.json": sample(2),
        "reductions.json": [],
    }
    path = tmp_path / "log.eval"
    if method == 8:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
            for name, content in members.items():
                made.writestr(name, json.dumps(content))
    else:
        eval_file(path, members, method=method)
    expected = [
        ImportedRow("1", "invoices", 1, MODEL, "1.50", None, 0.25),
        ImportedRow("1", "invoices", 2, MODEL, "1.50", None, 0.25),
        ImportedRow("2", "invoices", 1, MODEL, "2.50", None, 0.25),
    ]
    assert rows(path) == expected
    named = rows(path, item="metadata.invoice", node="metadata.wording", answer="output.choices.0.message.content")
    assert named[0] == ImportedRow("001", "total", 1, MODEL, "old 1", None, 0.25)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["log.eval"]  # nothing is unpacked to disk


def test_inspect_json_and_its_failures(tmp_path: Path) -> None:
    samples = [
        sample(
            1,
            output={
                "choices": [{"message": {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}}]
            },
        ),
        sample(2, output={"completion": "attachment://x1"}, attachments={"x1": "long text"}),
        sample(3, error={"message": "boom"}),
        sample(4, limit={"type": "time", "limit": 5}),
        sample(5, limit={"type": "token", "limit": 5}),
        sample(6, output={"completion": "attachment://gone"}),
        sample(7, output=None, model_usage=[3]),
    ]
    path = tmp_path / "log.json"
    path.write_text(json.dumps({**HEADER, "samples": samples}))
    found = rows(path)
    assert [(row.text, row.status) for row in found] == [
        ("ab", None), ("long text", None), (None, "error"), (None, "timeout"), (None, "error"), (None, "missing"), (None, "missing"),
    ]  # fmt: skip
    assert found[-1].cost is None


@pytest.mark.parametrize(
    "bad",
    [sample(1, id=None), sample(1, id=[1]), sample(1, id="x" * 2000), sample(1, epoch=0), sample(1, epoch=True), [1]],
)
def test_wrong_types_in_a_sample(tmp_path: Path, bad: Any) -> None:
    path = tmp_path / "log.json"
    path.write_text(json.dumps({**HEADER, "samples": [sample(9), bad]}))
    with pytest.raises(InputError, match="sample 2: "):
        rows(path)


def test_costs_add_up_over_models_and_nonsense_is_no_cost(tmp_path: Path) -> None:
    usages = [
        {"a": {"total_cost": 0.25}, "b": {"total_cost": 0.5}},
        {"a": {"total_cost": -1.0}, "b": {"total_cost": 0.5}},
        {"a": {"total_cost": 10**400}},
        {"a": {"total_cost": 1e308}, "b": {"total_cost": 1e308}},
        {"a": {}},
    ]
    path = tmp_path / "log.json"
    path.write_text(json.dumps({**HEADER, "samples": [sample(i, model_usage=usage) for i, usage in enumerate(usages)]}))
    assert [row.cost for row in rows(path)] == [0.75, 0.5, None, None, None]


def test_a_log_without_samples(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no samples in it; is it a log of Inspect AI"):
        rows(eval_file(tmp_path / "log.eval", {"header.json": HEADER}))
    path = tmp_path / "log.json"
    path.write_text(json.dumps({**HEADER, "samples": {}}))
    with pytest.raises(InputError, match="no list of samples in it"):
        rows(path)


def test_a_run_under_way_has_its_task_in_the_journal(tmp_path: Path) -> None:
    members = {"_journal/start.json": HEADER, "samples/1_epoch_1.json": sample(1)}
    assert rows(eval_file(tmp_path / "log.eval", members)) == [
        ImportedRow("1", "invoices", 1, MODEL, "1.50", None, 0.25)
    ]
    with pytest.raises(InputError, match=r"no node at 'eval.task': nothing stands there"):
        rows(eval_file(tmp_path / "bare.eval", {"samples/1_epoch_1.json": sample(1)}))


def test_a_bomb_is_refused_before_it_goes_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "LARGEST_MEMBER", 10_000)
    members = {"header.json": HEADER, "samples/1_epoch_1.json": b"0" * 20_000}
    with pytest.raises(InputError, match="unpacks to more than"):
        rows(eval_file(tmp_path / "large.eval", members))
    with pytest.raises(InputError, match="damaged"):  # says that it is small
        rows(eval_file(tmp_path / "liar.eval", members, lie=100))
    monkeypatch.setattr(archive, "LARGEST_SUM", 300)
    with pytest.raises(InputError, match="unpacks to more than"):
        rows(eval_file(tmp_path / "many.eval", {f"samples/{i}_epoch_1.json": sample(i) for i in range(9)}))


def test_damaged_archives(tmp_path: Path) -> None:
    path = eval_file(tmp_path / "log.eval", {"header.json": HEADER, "samples/1_epoch_1.json": sample(1)})
    whole = path.read_bytes()
    path.write_bytes(whole.replace(zstd.compress(json.dumps(sample(1)).encode())[8:20], b"\0" * 12))
    with pytest.raises(InputError, match="damaged"):
        rows(path)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="not a zip archive"):
        rows(path)
    buffer = io.BytesIO(whole)
    assert zipfile.ZipFile(buffer).infolist()[0].compress_type == 93  # the test writes what Inspect writes


@pytest.mark.parametrize("method", [0, 8, 93])
@pytest.mark.parametrize("content", [b"", b"a", b"0" * 70_000, bytes(range(256)) * 20])
def test_every_compression_gives_back_what_was_packed(tmp_path: Path, method: int, content: bytes) -> None:
    path = tmp_path / "x.zip"
    if method == 8:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
            made.writestr("one", content)
    else:
        eval_file(path, {"one": content}, method=method)
    with archive._Archive(path) as found:
        assert list(found) == ["one"]
        assert "one" in found
        assert "two" not in found
        assert found.read("one") == content


def test_a_member_of_several_frames(tmp_path: Path) -> None:
    assert archive._unzstd(zstd.compress(b"ab") + zstd.compress(b"cd"), 4) == b"abcd"
    assert (
        len(archive._unzstd(zstd.compress(b"0" * 1000) * 2, 5)) == 6
    )  # one byte more than it said, so that it is seen


@pytest.mark.parametrize(
    ("offset", "value", "message"),
    [
        (8, struct.pack("<H", 12), "compression method 12"),
        (6, struct.pack("<H", 1), "encrypted"),
        (14, b"\0\0\0\0", "not what its entry says"),
    ],
)
def test_entries_that_can_not_be_read(tmp_path: Path, offset: int, value: bytes, message: str) -> None:
    """A field of the directory's entry, which stands two bytes further on than in the local
    header.
    """
    path = eval_file(tmp_path / "x.zip", {"one": b"content"}, method=0)
    whole = bytearray(path.read_bytes())
    place = whole.index(b"PK\x01\x02") + 2 + offset
    whole[place : place + len(value)] = value
    path.write_bytes(whole)
    with archive._Archive(path) as found, pytest.raises(InputError, match=message):
        found.read("one")


def test_a_directory_that_points_nowhere(tmp_path: Path) -> None:
    path = eval_file(tmp_path / "x.zip", {"one": b"content"}, method=0)
    path.write_bytes(path.read_bytes().replace(b"PK\x03\x04", b"PK\x03\x05"))
    with archive._Archive(path) as found, pytest.raises(InputError, match="no local header"):
        found.read("one")


def test_too_many_members(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_MEMBERS", 2)
    with pytest.raises(InputError, match="more than 2 members"):
        archive._Archive(eval_file(tmp_path / "x.zip", {str(i): b"" for i in range(3)}, method=0))
