"""A repair as a JSON document: format, version, the problem it belongs to, and everything that was found."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
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


def _plain(value: Any) -> Any:
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
