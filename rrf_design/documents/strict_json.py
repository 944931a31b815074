"""JSON as everybody can read it: no NaN, no infinity, no key twice, no depth without end; written whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rrf_design.errors import InputError

LARGEST = 1 << 30
"""Bytes; a larger file is refused before it fills the memory."""


def loads(text: str, *, parse_float: Callable[[str], Any] | None = None) -> Any:
    """The value in a text; ValueError says what is not JSON. `parse_float` reads numbers with a point, float by default."""
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant, parse_float=parse_float)
    except RecursionError:
        raise ValueError("nested too deep") from None


def read(path: str | os.PathLike[str], *, what: str = "document") -> Any:
    """The value in a file; InputError in one line where it can't be read."""
    path = Path(path)
    try:
        if path.stat().st_size > LARGEST:
            raise InputError(f"{path}: larger than {LARGEST >> 20} MiB; not a {what}")
        return loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: not a readable {what} ({error})") from None


def dumps(document: Any) -> str:
    """Full precision, two spaces, a newline at the end; ValueError for NaN and infinities."""
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def write(path: str | os.PathLike[str], document: Any) -> None:
    """Write a document whole or not at all."""
    from rrf_design.files import write_text

    write_text(path, dumps(document))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        double = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {double!r} stands twice in one object")
    return result


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
