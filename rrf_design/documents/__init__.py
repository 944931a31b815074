"""What the program writes down: one list of formats, one strict JSON, one JUnit.

A result becomes a document by `sealed`, and nothing that lacks a name in `FORMATS` is written. Readers ask `checked` first: a
document of another kind or version is refused in one line. Pages (`rrf_design.reporting`) are functions of such documents.
"""

from __future__ import annotations

from rrf_design.documents.formats import FORMATS, Format, checked, kind_of, sealed
from rrf_design.documents.strict_json import dumps, loads, read, write

__all__ = ["FORMATS", "Format", "checked", "dumps", "kind_of", "loads", "read", "sealed", "write"]
