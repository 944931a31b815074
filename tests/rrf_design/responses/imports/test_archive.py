"""Members of a zip archive that may be hostile: bounded, checked, and never written to disk."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from pathlib import Path

import pytest
from backports import zstd
from tool_logs import HEADER, eval_file, rows, sample

from rrf_design.errors import InputError
from rrf_design.responses.imports import archive


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
    with archive.Archive(path) as found:
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
    """A field of the directory's entry, which stands two bytes further on than in the local header."""
    path = eval_file(tmp_path / "x.zip", {"one": b"content"}, method=0)
    whole = bytearray(path.read_bytes())
    place = whole.index(b"PK\x01\x02") + 2 + offset
    whole[place : place + len(value)] = value
    path.write_bytes(whole)
    with archive.Archive(path) as found, pytest.raises(InputError, match=message):
        found.read("one")


def test_a_directory_that_points_nowhere(tmp_path: Path) -> None:
    path = eval_file(tmp_path / "x.zip", {"one": b"content"}, method=0)
    path.write_bytes(path.read_bytes().replace(b"PK\x03\x04", b"PK\x03\x05"))
    with archive.Archive(path) as found, pytest.raises(InputError, match="no local header"):
        found.read("one")


def test_too_many_members(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_MEMBERS", 2)
    with pytest.raises(InputError, match="more than 2 members"):
        archive.Archive(eval_file(tmp_path / "x.zip", {str(i): b"" for i in range(3)}, method=0))
