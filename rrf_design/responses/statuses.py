"""One vocabulary for an answer that has no value, wherever answers are read from."""

from __future__ import annotations

INVALID = (
    "parse failure",
    "timeout",
    "refusal",
    "missing",
    "error",
    "ambiguous",
    "out of range",
    "compile failure",
    "rejected",
    "memory",
    "crash",
    "non-integer",
)
"""Why a node has no value: the parsers' words, and what can happen before a parser sees anything."""
VALID = ("parsed", "valid", "ok")
"""What a record may say of an answer that is there."""
