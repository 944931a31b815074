"""A repair as a JSON document: format, version, the problem it belongs to, and everything that was found."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from math import isfinite
from typing import Any

import numpy as np

from rrf_design.documents import sealed
from rrf_design.repairing.contract import Repair


def to_document(result: Repair) -> dict[str, Any]:
    """Plain lists, tables, strings and numbers; infinities are null."""
    document = sealed("rrf-repair", {"problem": result.problem_digest})
    content: dict[str, Any] = _plain(result)
    content.pop("problem_digest")
    return {**document, **content, "guaranteed": result.guaranteed}


_AS_THEY_ARE = frozenset({str, int, bool, type(None)})


def _plain(value: Any) -> Any:
    if type(value) in _AS_THEY_ARE:  # most are: asked first, because a run over many items does this for every entry
        return value
    if type(value) is float:
        return value if isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    if is_dataclass(value):
        return {entry.name: _plain(getattr(value, entry.name)) for entry in fields(value)}
    return str(value) if isinstance(value, str) else value
