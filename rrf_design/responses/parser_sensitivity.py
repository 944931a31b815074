"""How much depends on the parser: the same raw texts through several parsers, and where they part.

The margin is a statement about parsed values; if two sensible parsers disagree on many texts, the noise radius has to
cover their difference or the parser has to be decided before any answer is seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from rrf_design.documents import sealed
from rrf_design.errors import InputError
from rrf_design.responses import parsers
from rrf_design.responses.parsed import Parsed, Parser


def _reading(parsed: Parsed) -> tuple[float, ...] | str | None:
    """What was read, a vector or a class; None where nothing was."""
    return parsed.value if parsed.label is None else parsed.label


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """``parsed[t][p]`` is text t read by parser p; ``disagreements`` are the texts with more than one reading."""

    parsers: tuple[str, ...]
    texts: tuple[str, ...]
    parsed: tuple[tuple[Parsed, ...], ...]
    disagreements: tuple[int, ...]

    @property
    def validity(self) -> dict[str, float]:
        """Share of texts each parser could read."""
        count = max(1, len(self.texts))
        return {name: sum(row[i].ok for row in self.parsed) / count for i, name in enumerate(self.parsers)}

    @property
    def violations(self) -> dict[str, int]:
        """Texts that each parser could read only by leaving the strict format."""
        return {
            name: sum(row[i].ok and not row[i].strict_ok for row in self.parsed) for i, name in enumerate(self.parsers)
        }

    @property
    def pairs(self) -> dict[tuple[str, str], int]:
        """How many texts two parsers read differently (one failing alone counts)."""
        return {
            (self.parsers[i], self.parsers[j]): sum(_reading(row[i]) != _reading(row[j]) for row in self.parsed)
            for i, j in combinations(range(len(self.parsers)), 2)
        }

    def document(self) -> dict[str, Any]:
        content = {
            "parsers": list(self.parsers),
            "texts": len(self.texts),
            "validity": self.validity,
            "violations": self.violations,
            "pairs": [{"parsers": list(pair), "differ": count} for pair, count in self.pairs.items()],
            "disagreements": [
                {
                    "index": index,
                    "text": self.texts[index],
                    "readings": {
                        name: parsed.document() for name, parsed in zip(self.parsers, self.parsed[index], strict=True)
                    },
                }
                for index in self.disagreements
            ],
        }
        return sealed("rrf-parser-sensitivity", content)


def sensitivity(texts: Sequence[str], specs: Sequence[str | Mapping[str, Any] | Parser]) -> Sensitivity:
    """Read every text with every parser."""
    if len(specs) < 2:
        raise InputError("parser sensitivity compares at least two parsers")
    readers = [parsers.get(spec) for spec in specs]
    names = [reader.name for reader in readers]
    labels = [f"{n}#{i}" if names.count(n) > 1 else n for i, n in enumerate(names, start=1)]
    columns = [reader.parse_many(texts) for reader in readers]
    rows = tuple(zip(*columns, strict=True))
    differ = tuple(i for i, row in enumerate(rows) if len({_reading(parsed) for parsed in row}) > 1)
    return Sensitivity(tuple(labels), tuple(texts), rows, differ)
