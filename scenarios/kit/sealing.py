"""Digests by the recipe of the specification: whoever reads it can seal what he likes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from rrf_design.checker.record import ARRAYS, FILE_FORMAT

Document = dict[str, Any]
NAMES = ("node_ids", "block_ids", "block_kinds")


def at(document: Any, place: Sequence[Any]) -> Any:
    """What stands at a place, key by key."""
    for key in place:
        document = document[key]
    return document


def seal(document: Document) -> bytes:
    """The document's bytes with a content digest that fits; without one where it has no canonical
    form.
    """
    rest = {key: value for key, value in document.items() if key != "digest"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return json.dumps({**rest, "digest": hashlib.sha256(text.encode()).hexdigest()}).encode()


def seal_operator(operator: Document) -> None:
    """Renew the counts and the digest of an inline operator, by the recipe of the specification."""
    total = hashlib.sha256(FILE_FORMAT.encode())
    try:
        for name in ARRAYS:
            if name in NAMES:
                content = json.dumps(operator[name], ensure_ascii=True, separators=(",", ":")).encode()
            else:
                kind = "<f8" if name in ("radii", "data") else "<i8"
                content = np.array(operator[name], dtype=kind).tobytes()
            total.update(f"\n{name} {len(content)}\n".encode() + content)
        rows, nodes = len(operator["indptr"]) - 1, len(operator["node_ids"])
        columns, blocks = sum(operator["node_sizes"]), len(operator["block_ids"])
    except (TypeError, ValueError, OverflowError):
        return
    operator.update(digest=total.hexdigest(), rows=rows, nodes=nodes, columns=columns, blocks=blocks)
