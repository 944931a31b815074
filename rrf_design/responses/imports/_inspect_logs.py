"""Inspect AI: `.eval` (a zip of `header.json` and `samples/ID_epoch_N.json`, zstd or deflate) and
`.json` (one object).

Item: the sample's `id`; node: the task; repeat: the epoch. Long texts are kept once, as
attachments.

The standard library does not know zstd (method 93) yet, and the archive may be hostile: members are
looked up by name and never written to disk, what they unpack to is bounded by the size they
declare, and that by a limit; so is the sum over all members.
"""

from __future__ import annotations

import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from rrf_design.errors import InputError
from rrf_design.responses.imports._records import (
    ImportedRow,
    RecordPaths,
    at,
    each,
    money,
    name_at,
    objects,
    parse,
    text_of,
    whole,
)

_SAMPLE = re.compile(r"samples/.+_epoch_\d+(?:/sample)?\.json")


def read(path: Path, where: RecordPaths) -> Iterator[ImportedRow]:
    """The answers of one log."""
    if path.suffix.lower() == ".json":
        log = whole(path)
        samples = at(log, "samples")
        if not isinstance(log, dict) or not isinstance(samples, list):
            raise InputError("no list of samples in it; is it a log of Inspect AI?")
        yield from each(objects(samples, "sample"), lambda sample: [_row(sample, log, where)])
        return
    with _Archive(path) as archive:
        header = next((name for name in ("header.json", "_journal/start.json") if name in archive), None)
        head = parse(archive.read(header), header) if header else {}
        members = [name for name in archive if _SAMPLE.fullmatch(name)]
        if not members:
            raise InputError("no samples in it; is it a log of Inspect AI?")
        for name in members:
            place = f"member {name!r:.80}"
            sample = parse(archive.read(name), place)
            if not isinstance(sample, dict):
                raise InputError(f"{place}: must be an object")
            yield from each(iter([(place, sample)]), lambda sample: [_row(sample, head, where)])


def _row(sample: dict[str, Any], log: Any, where: RecordPaths) -> ImportedRow:
    item = name_at(sample, where.item or "id", "item")
    node = name_at(sample if where.node else log, where.node or "eval.task", "node")
    epoch = sample.get("epoch", 1)
    if isinstance(epoch, bool) or not isinstance(epoch, int) or epoch < 1:
        raise InputError(f"epoch is {epoch!r:.40}, not a whole number from 1 on")
    model, status = at(log, "eval.model"), _status(sample)
    text = None if status else _attached(_answer(sample, where), sample)
    status = status or ("missing" if text is None else None)
    return ImportedRow(item, node, epoch, model if isinstance(model, str) else None, text, status, _cost(sample))


def _answer(sample: dict[str, Any], where: RecordPaths) -> str | None:
    if where.answer is not None:
        return text_of(at(sample, where.answer))
    completion = at(sample, "output.completion")
    if isinstance(completion, str) and completion:
        return completion
    return text_of(at(sample, "output.choices.0.message.content"))


def _attached(text: str | None, sample: dict[str, Any]) -> str | None:
    if text is None or not text.startswith("attachment://"):
        return text
    kept = at(sample, "attachments")
    found = kept.get(text.removeprefix("attachment://")) if isinstance(kept, dict) else None
    return found if isinstance(found, str) else None


def _status(sample: dict[str, Any]) -> str | None:
    if sample.get("error") is not None:
        return "error"
    limit = sample.get("limit")
    if limit is None:
        return None
    kind = limit.get("type") if isinstance(limit, dict) else limit
    return "timeout" if kind in ("time", "working") else "error"


def _cost(sample: dict[str, Any]) -> float | None:
    usage = sample.get("model_usage")
    costs = [money(at(entry, "total_cost")) for entry in usage.values()] if isinstance(usage, dict) else []
    known = [cost for cost in costs if cost is not None]
    return money(sum(known)) if known else None


LARGEST_MEMBER = 512 * 2**20
LARGEST_SUM = 64 * 2**30
MOST_MEMBERS = 2_000_000
_STORED, _DEFLATED, _ZSTD = 0, 8, 93


class _Archive:
    """A zip file opened for reading; close it, or use it in a `with` block."""

    def __init__(self, path: Path) -> None:
        self._unpacked = 0
        try:
            self._zip = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
            raise InputError(f"not a zip archive that can be read ({str(error)[:80]})") from None
        entries = self._zip.infolist()
        if len(entries) > MOST_MEMBERS:
            self._zip.close()
            raise InputError(f"more than {MOST_MEMBERS:,} members")
        self._members = {entry.filename: entry for entry in entries}

    def __enter__(self) -> _Archive:
        return self

    def __exit__(self, *exc: object) -> None:
        self._zip.close()

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def read(self, name: str) -> bytes:
        """A member, unpacked; InputError when it is larger than it may be, or than it says."""
        entry = self._members[name]
        if entry.flag_bits & 1:
            raise InputError(f"{name!r:.80}: encrypted")
        self._unpacked += entry.file_size
        if entry.file_size > LARGEST_MEMBER or self._unpacked > LARGEST_SUM:
            raise InputError(f"{name!r:.80}: unpacks to more than {LARGEST_MEMBER // 2**20} MB")
        stream: Any = self._zip.fp
        try:
            packed = _raw(stream, entry)
            content = _unpack(packed, entry.compress_type, entry.file_size)
        except (OSError, struct.error, zlib.error, ValueError, EOFError) as error:
            raise InputError(f"{name!r:.80}: damaged ({str(error)[:80]})") from None
        if len(content) != entry.file_size or zlib.crc32(content) != entry.CRC:
            raise InputError(f"{name!r:.80}: damaged (it is not what its entry says)")
        return content


def _raw(stream: BinaryIO, entry: zipfile.ZipInfo) -> bytes:
    """The packed bytes: past the local header, whose own lengths count."""
    stream.seek(entry.header_offset)
    header = stream.read(30)
    if header[:4] != b"PK\x03\x04":
        raise ValueError("no local header where the directory says")
    name, extra = struct.unpack("<HH", header[26:30])
    stream.seek(name + extra, 1)
    packed = stream.read(entry.compress_size)
    if len(packed) != entry.compress_size:
        raise ValueError("cut off")
    return packed


def _unpack(packed: bytes, method: int, size: int) -> bytes:
    """Never more than one byte beyond the declared size."""
    if method == _STORED:
        return packed
    if method == _DEFLATED:
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, size + 1)
    if method != _ZSTD:
        raise ValueError(f"compression method {method}")
    return _unzstd(packed, size)


def _unzstd(packed: bytes, size: int) -> bytes:
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        from backports import zstd
    parts, left = [], size + 1
    while packed and left > 0:  # a member may be several frames
        frame: Any = zstd.ZstdDecompressor()
        try:
            part = frame.decompress(packed, max_length=left)
            while not frame.eof and left > len(part) and not frame.needs_input:
                part += frame.decompress(b"", max_length=left - len(part))
        except zstd.ZstdError as error:
            raise ValueError(str(error)) from None
        parts.append(part)
        left -= len(part)
        packed = frame.unused_data if frame.eof else b""
    return b"".join(parts)
