"""Written forms of numbers and how they are read: the table that the tokenizer has to keep, row by row.

``reads`` is the exact number, or why there is none: ``ambiguous`` where a reader would have to guess, ``no number`` where
there is nothing to read. The table was written by hand; nothing in it was copied from what the program says.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from rrf_design.responses import parsers
from rrf_design.responses.parsed import ParseStatus

AMBIGUOUS, NO_NUMBER = "ambiguous", "no number"


@dataclass(frozen=True, slots=True)
class Form:
    """One written form; ``decimal`` is the mark that the user declared, None without."""

    kind: str
    text: str
    reads: str
    decimal: str | None = None

    def reading(self) -> str:
        """What the program makes of it, in the words of ``reads``."""
        parsed = parsers.get("decimal" if self.decimal is None else {"name": "decimal", "decimal": self.decimal}).parse(
            self.text
        )
        if parsed.ok:
            return parsed.canonical
        return {ParseStatus.AMBIGUOUS: AMBIGUOUS, ParseStatus.PARSE_FAILURE: NO_NUMBER}.get(
            parsed.status, parsed.status.value
        )

    def document(self) -> dict[str, Any]:
        return {"kind": self.kind, "text": self.text, "decimal": self.decimal, "reads": self.reads}


@cache
def written_forms() -> tuple[Form, ...]:
    """The table, in its own order."""
    lines = files("rrf_design.responses").joinpath("written_forms.jsonl").read_text(encoding="utf-8").splitlines()
    return tuple(Form(**json.loads(line)) for line in lines if line)
