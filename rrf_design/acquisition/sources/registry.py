"""Sources by name, each imported when it is used."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from rrf_design.acquisition.sources.base import Place, Source, Toolbox
from rrf_design.errors import InputError
from rrf_design.files import suggestion

if TYPE_CHECKING:
    from rrf_design.blocks import Anchor
    from rrf_design.problem import Problem

SOURCES: Mapping[str, str] = {
    "value": "revealed:KnownValue",
    "label": "labelled:Label",
    "expression": "computed:Expression",
    "tests": "tested:Tests",
    "verifier": "verifier:Verifier",
    "person": "person:Person",
    "command": "command:Command",
}
"""Kind in the problem file to module and class in this folder."""


def source_class(kind: str) -> type[Source]:
    module, _, name = SOURCES[kind].partition(":")
    found: type[Source] = getattr(import_module(f"rrf_design.acquisition.sources.{module}"), name)
    return found


def build(anchor: Anchor, problem: Problem, tools: Toolbox) -> Source:
    """The source an anchor names; InputError names the anchor and what to change, before anything is bought."""
    try:
        kind, options = _spec(anchor.source)
        source = source_class(kind).read(Place(anchor, problem, tools), options)
        if options:
            raise InputError(f"source: unknown key {next(iter(options))!r}")
    except InputError as error:
        where = f"anchor {anchor.id!r}: "
        raise InputError(f"{where}{str(error).removeprefix(where)}") from None
    return source


def _spec(source: str | Mapping[str, Any] | None) -> tuple[str, dict[str, Any]]:
    """The kind of a source and its options, the kind's own key included."""
    if source is None or source == "value":
        return "value", {}
    if isinstance(source, str):
        kind, _, rest = source.partition(":")
        kind, rest = kind.strip(), rest.strip()
        if kind == "expression" and rest:
            return kind, {kind: rest}
        if kind == "person":
            return kind, {kind: rest or True}
        raise InputError(
            f'source {source!r} is unknown{suggestion(kind, SOURCES)}; use "value", "expression: ...", "person" or a table'
        )
    kinds = [key for key in SOURCES if key in source]
    if len(kinds) != 1:
        raise InputError(f"source: a table needs exactly one of {', '.join(list(SOURCES)[1:])}")
    return kinds[0], dict(source)
