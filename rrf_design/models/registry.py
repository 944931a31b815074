"""From a name to an adapter; each adapter lives in its own file and is imported only when it is asked for."""

from __future__ import annotations

import difflib
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

from rrf_design.errors import InputError
from rrf_design.models.base import Model

# kind -> (file, class, what stands behind the colon; None: nothing does)
_ADAPTERS: dict[str, tuple[str, str, str | None]] = {
    "embedded": ("embedded", "EmbeddedModel", None),
    "gguf": ("embedded", "EmbeddedModel", "FILE.gguf"),
    "openai": ("openai", "OpenAIModel", "NAME"),
    "transformers": ("transformers", "TransformersModel", "NAME-OR-PATH"),
    "scripted": ("scripted", "ScriptedModel", "FILE"),
    "replay": ("replay", "ReplayModel", "FILE"),
}
_HOSTED = re.compile(r"(?:gpt|chatgpt|o\d)\b", re.IGNORECASE)
"""How a well-known service calls its models: whoever writes only that means `openai:NAME`."""


def names() -> tuple[str, ...]:
    """How models are named, for help texts."""
    return tuple(kind if form is None else f"{kind}:{form}" for kind, (_, _, form) in _ADAPTERS.items())


def get(spec: str | Model, **options: Any) -> Model:
    """The model called ``spec``, ready to be asked. An adapter object is returned as it is."""
    if isinstance(spec, Model):
        if options:
            raise InputError(f"model {spec.name}: options {sorted(options)} came with a ready adapter object")
        return spec
    kind, _, rest = spec.partition(":")
    if kind not in _ADAPTERS and spec.endswith(".gguf"):
        kind, rest = "gguf", spec
    if kind not in _ADAPTERS:
        near = difflib.get_close_matches(kind, _ADAPTERS, n=1)
        if not near and _HOSTED.match(spec):
            near = [f"openai:{spec}"]
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise InputError(f"unknown model {spec!r}{hint} Known: {', '.join(names())}, or a path to a .gguf file")
    module, cls, form = _ADAPTERS[kind]
    if (form is None) != (rest == ""):
        wanted = kind if form is None else f"{kind}:{form}"
        raise InputError(f"model {spec!r}: write it as {wanted}")
    if kind == "gguf" and not Path(rest).is_file():
        raise InputError(f"model {spec!r}: there is no such file")
    adapter = getattr(importlib.import_module(f"rrf_design.models.{module}"), cls)
    _check_options(adapter, spec, options)
    model: Model = adapter(*([rest] if form is not None else []), **options)
    return model


def _check_options(adapter: type[Model], spec: str, options: dict[str, Any]) -> None:
    known = [p.name for p in inspect.signature(adapter).parameters.values() if p.kind is p.KEYWORD_ONLY]
    for option in options:
        if option not in known:
            near = difflib.get_close_matches(option, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; it has {', '.join(known)}"
            raise InputError(f"model {spec!r}: unknown option {option!r}{hint}")
