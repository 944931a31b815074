"""The formats: name, version, and what a document of that kind says.

A version is raised when a key changes its meaning or goes; a key that is added leaves it as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rrf_design.errors import InputError


@dataclass(frozen=True, slots=True)
class Format:
    name: str
    version: int
    about: str


FORMATS = {
    entry.name: entry
    for entry in (
        Format("rrf-plan", 2, "what to buy, how good it is, and how far from the best possible"),
        Format("rrf-dataset-plan", 1, "what every item of a table buys, under one budget or for one goal"),
        Format("rrf-estimate", 1, "calls, tokens and money of a run over a table"),
        Format("rrf-frontier", 1, "the largest margin that each amount of money buys"),
        Format("rrf-certificate", 4, "what is proven about a design (docs/certificate-specification.md)"),
        Format("rrf-explanation", 1, "why a margin is no larger, and what would help"),
        Format("rrf-repair", 2, "which answers were wrong, what they become, and the verdict"),
        Format("rrf-repair-batch", 2, "repairs of many fields"),
        Format("rrf-delivery", 1, "what may be handed over of every item of a table"),
        Format("rrf-run", 2, "what a run bought, and what came of it"),
        Format("rrf-runs", 1, "the runs of a store"),
        Format("rrf-answer", 1, "one recorded answer of a model, as it was asked and given"),
        Format("rrf-parser-sensitivity", 1, "the same answers read by several parsers"),
        Format("rrf-item-table", 1, "every item of a data set as its page shows it, and what lies behind it"),
        Format("rrf-demo", 1, "what the demonstration came to"),
        Format("rrf-scenario", 1, "what a scenario found"),
        Format("rrf-policy", 1, "how to run a data set, and every test that proves it (docs/promises.md)"),
        Format("rrf-policy-run", 1, "what a policy delivered, with the sentence that may be said about it"),
        Format("rrf-measurement", 1, "what labels say about answers, relations, repeats and judges"),
        Format("rrf-audit", 1, "delivered items drawn and checked: a bound on the wrong ones (docs/promises.md)"),
    )
}


def sealed(name: str, content: Mapping[str, Any]) -> dict[str, Any]:
    """The content as a document of this format."""
    entry = FORMATS[name]
    return {"format": entry.name, "version": entry.version, **content}


def kind_of(data: Any) -> str | None:
    """The name of a document's format; None for what is no document."""
    name = data.get("format") if isinstance(data, Mapping) else None
    return name.partition("/")[0] if isinstance(name, str) else None


def checked(data: Any, name: str, *, what: str = "document") -> Mapping[str, Any]:
    """The data, if it is a document of this format and version; InputError says what it is instead."""
    if kind_of(data) != name:
        raise InputError(f"not {'an' if what[:1] in 'aeiou' else 'a'} {what}: the format should be {name!r}")
    version = FORMATS[name].version
    if data.get("version") != version or isinstance(data.get("version"), bool):
        raise InputError(f"{what} version {data.get('version')!r} is not known here; this release reads {version}")
    return data  # type: ignore[no-any-return]
