"""Models by name: ``get("embedded")``, a GGUF file, ``openai:NAME``, ``transformers:NAME-OR-PATH``,
``scripted:FILE``, ``replay:FILE``, or any object that implements :class:`Model`. Adapters are
imported when they are asked for.
"""

from __future__ import annotations

from rrf_design.models._faults import opens_as_refusal as opens_as_refusal
from rrf_design.models.base import (
    PARSEABLE,
    Attempt,
    Model,
    NotBegun,
    Outcome,
    Reply,
    Request,
    Retry,
    Usage,
    key,
)
from rrf_design.models.prices import Price, PriceTable
from rrf_design.models.registry import get, names
from rrf_design.models.replay import read_records, record, write_records
from rrf_design.models.roster import Roster

__all__ = [
    "PARSEABLE",
    "Attempt",
    "Model",
    "NotBegun",
    "Outcome",
    "Price",
    "PriceTable",
    "Reply",
    "Request",
    "Retry",
    "Roster",
    "Usage",
    "get",
    "key",
    "names",
    "read_records",
    "record",
    "write_records",
]
