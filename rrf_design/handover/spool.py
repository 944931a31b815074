"""Rows as they come, in a file that can be read again: a run that was cut short goes on where it stopped.

One JSON line for each item, in the order of the table, after a line that says what they belong to. Rows are kept in
whole chunks, and what a crash left of a chunk is dropped, so that a resumed run computes what an uninterrupted one does.
"""

from __future__ import annotations

import json
import os
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from rrf_design.errors import InputError
from rrf_design.handover.rows import DeliveredRow
from rrf_design.texts import json_text

IN_MEMORY = 2**24
"""Bytes of rows that need no file, where none is named."""


class Spool:
    """The rows of a data set. It is closed with the last one who holds it; a named file stays."""

    def __init__(self, path: str | os.PathLike[str] | None, *, about: Mapping[str, Any], chunk: int) -> None:
        self.path, self.count, self._chunk = path, 0, chunk
        head = (json_text({"rows of": about}, sort_keys=True) + "\n").encode()
        self._start = len(head)
        if path is None:
            self._file: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115
            weakref.finalize(self, self._file.close)
            self._file.write(head)
            return
        try:
            known = Path(path).exists() and Path(path).stat().st_size > 0
            self._file = Path(path).open("r+b" if known else "w+b")  # noqa: SIM115
        except OSError as error:
            raise InputError(f"{path}: can't be used to resume from ({error.strerror})") from None
        weakref.finalize(self, self._file.close)
        if not known:
            self._file.write(head)
        else:
            self._take_up(head)

    def _take_up(self, head: bytes) -> None:
        """Keep the whole chunks of an earlier run, if it was of the same data."""
        if self._file.readline() != head:
            raise InputError(
                f"{self.path}: it belongs to another recipe, table, set of answers or setting; resume with what it was begun"
                " with, or name another file"
            )
        place, kept, seen = self._start, self._start, 0
        for line in self._file:
            if not line.endswith(b"\n"):
                break
            place, seen = place + len(line), seen + 1
            if seen % self._chunk == 0:
                kept, self.count = place, seen
        self._file.seek(kept)
        self._file.truncate()

    def add(self, rows: Iterable[DeliveredRow]) -> None:
        """Rows of one chunk."""
        lines = [json_text(row.to_json()) + "\n" for row in rows]
        self._file.seek(0, os.SEEK_END)
        self._file.write("".join(lines).encode())
        self._file.flush()
        self.count += len(lines)

    def __iter__(self) -> Iterator[DeliveredRow]:
        """All rows, in order. Several may go through it at once."""
        place = self._start
        while True:
            self._file.seek(place)
            lines = self._file.readlines(2**20)
            if not lines:
                return
            place += sum(map(len, lines))
            for line in lines:
                yield DeliveredRow.from_json(json.loads(line))
