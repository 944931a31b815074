"""The parts that are finished, one JSON line each, written the moment they are: what `--resume` skips.

The first line says which scenario, parameters and program version the parts belong to; a journal of anything else is
started anew. A line that was cut off by a crash is dropped, and its part runs again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scenarios.base import Done, Part

FORMAT = "rrf-scenario-parts"
VERSION = 1


def canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def plain(value: Any) -> Any:
    """Lists, mappings, strings and finite numbers only; NaN and infinities become null, which is what JSON has."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):  # NumPy scalars and arrays
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int | bool):
        return value
    raise TypeError(f"a part returned {type(value).__name__}, which JSON can't hold")


class PartJournal:
    """Finished parts in the order they ended; owns its file while a run lasts."""

    def __init__(self, path: Path, *, scenario: str, parameters: Mapping[str, Any], resume: bool) -> None:
        self.path = path
        self._header = {"format": FORMAT, "version": VERSION, "scenario": scenario, "parameters": plain(parameters)}
        self.done: dict[str, Done] = self._read() if resume else {}
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [canonical(self._header), *(_line(done) for done in self.done.values())]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def add(self, part: Part, value: Any, seconds: float) -> Done:
        done = Done(dict(part), plain(value), seconds)
        self.done[canonical(done.part)] = done
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(_line(done) + "\n")
        return done

    def _read(self) -> dict[str, Done]:
        if not self.path.is_file():
            return {}
        lines = self.path.read_text(encoding="utf-8").splitlines()
        if not lines or _parsed(lines[0]) != self._header:
            return {}
        entries = [entry for entry in map(_parsed, lines[1:]) if entry is not None]
        return {canonical(e["part"]): Done(e["part"], e["value"], e["seconds"]) for e in entries}


def _line(done: Done) -> str:
    # Not sorted: the order of a row's keys is the order of the table's columns.
    entry = {"part": done.part, "value": done.value, "seconds": done.seconds}
    return json.dumps(entry, separators=(",", ":"), allow_nan=False)


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None
