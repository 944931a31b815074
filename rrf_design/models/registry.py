"""From a name to an adapter; each adapter lives in its own file and is imported only when it is
asked for.

Ours come first, then those of other packages (entry points of the group ``rrf_design.models``: a
class or function that takes what stands behind the colon, if anything does, and its options), then
the providers of the optional extra.

Keys may stand in a `.env` file: lines `NAME=value` in the working folder, for names that the
environment does not have already. It is read when the first model that may need a key is made. A
value is never shown, printed or logged:
not even in the message about a line that can't be read.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import os
import re
from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib.metadata import EntryPoint, entry_points
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
    "vllm": ("vllm", "VLLMModel", "NAME-OR-PATH"),
    "scripted": ("scripted", "ScriptedModel", "FILE"),
    "replay": ("replay", "ReplayModel", "FILE"),
}
_MAKERS = (
    (re.compile(r"(?:gpt|chatgpt|o\d)\b", re.IGNORECASE), "openai"),
    (re.compile(r"claude\b", re.IGNORECASE), "anthropic"),
    (re.compile(r"gemini\b", re.IGNORECASE), "gemini"),
    (re.compile(r"deepseek\b", re.IGNORECASE), "deepseek"),
)
"""How well-known services call their models: whoever writes only that means `PROVIDER:NAME`."""


def names() -> tuple[str, ...]:
    """How models are named, for help texts."""
    own = (kind if form is None else f"{kind}:{form}" for kind, (_, _, form) in _ADAPTERS.items())
    return (*own, *_offered(), "PROVIDER:NAME")


def get(spec: str | Model, **options: Any) -> Model:
    """The model called ``spec``, ready to be asked. An adapter object is returned as it is."""
    if isinstance(spec, Model):
        if options:
            raise InputError(f"model {spec.name}: options {sorted(options)} came with a ready adapter object")
        return spec
    kind, colon, rest = spec.partition(":")
    if kind not in _ADAPTERS and spec.endswith(".gguf"):
        kind, rest = "gguf", spec
    if kind in _ADAPTERS:
        form = _ADAPTERS[kind][2]
        if (form is None) != (rest == ""):
            raise InputError(f"model {spec!r}: write it as {kind if form is None else f'{kind}:{form}'}")
        if kind == "gguf" and not Path(rest).is_file():
            raise InputError(f"model {spec!r}: there is no such file")
        if kind == "openai":
            _load_keys()
        return _made(adapter(spec), spec, [rest] if form is not None else [], options)
    _load_keys()
    if kind in _offered():
        return _made(_load(kind), spec, [rest] if colon else [], options)
    if not (colon and rest) or not _is_provider(kind):
        raise InputError(f"unknown model {spec!r}{_meant(spec)} Known: {', '.join(names())}, or a path to a .gguf file")
    from rrf_design.models.provider import ProviderModel

    return _made(partial(ProviderModel, provider=kind), spec, [rest], options)


def adapter(spec: str) -> type[Model] | None:
    """The class that would answer as ``spec``, where it is one of ours; nothing is started."""
    kind = "gguf" if spec.endswith(".gguf") and spec.partition(":")[0] not in _ADAPTERS else spec.partition(":")[0]
    if kind not in _ADAPTERS:
        return None
    module, cls, _ = _ADAPTERS[kind]
    found: type[Model] = getattr(importlib.import_module(f"rrf_design.models.{module}"), cls)
    return found


def _made(build: Any, spec: str, behind: list[str], options: dict[str, Any]) -> Model:
    known = [p.name for p in inspect.signature(build).parameters.values() if p.kind is p.KEYWORD_ONLY]
    known = [name for name in known if name not in getattr(build, "keywords", {})]
    for option in options:
        if option not in known:
            near = difflib.get_close_matches(option, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; it has {', '.join(known)}"
            raise InputError(f"model {spec!r}: unknown option {option!r}{hint}")
    model = build(*behind, **options)
    if not isinstance(model, Model):
        raise InputError(f"model {spec!r}: its package gives a {type(model).__name__}, not a Model")
    return model


@cache
def _offered() -> Mapping[str, EntryPoint]:
    """Adapters of other packages; none of them can take the name of one of ours."""
    return {entry.name: entry for entry in entry_points(group="rrf_design.models") if entry.name not in _ADAPTERS}


def _load(kind: str) -> Callable[..., Model]:
    try:
        found: Callable[..., Model] = _offered()[kind].load()
    except Exception as error:  # another package's code: whatever it raises, the caller needs one line
        raise InputError(f"model {kind!r}: its package can't be loaded ({error})") from None
    return found


def _is_provider(kind: str) -> bool:
    """A provider of the extra, or, where that is not installed, a word that could be one: its
    adapter then says what to install.
    """
    from rrf_design.models.provider import providers

    known = providers()
    return kind in known if known else bool(re.fullmatch(r"[a-z]+", kind)) and not _near(kind)


def _near(kind: str) -> list[str]:
    return difflib.get_close_matches(kind, [*_ADAPTERS, *_offered()], n=1)


def _meant(spec: str) -> str:
    """The name that was probably meant, as a question."""
    kind, colon, rest = spec.partition(":")
    near = [f"{name}:{rest}" if colon else name for name in _near(kind)]
    if not near:
        near = [f"{provider}:{spec}" for pattern, provider in _MAKERS if pattern.match(spec)]
    if not near and colon:
        from rrf_design.models.provider import providers

        near = [f"{name}:{rest}" for name in difflib.get_close_matches(kind, providers(), n=1)]
    return f"; did you mean {near[0]!r}?" if near else "."


FILE = ".env"
_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)")
_QUOTED = re.compile(r"""'([^']*)'\s*(?:#.*)?|"((?:[^"\\]|\\.)*)"\s*(?:#.*)?""")
_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "$": "$"}


def _read_env(path: str | os.PathLike[str]) -> dict[str, str]:
    """The settings in a file; a line that is none is an error that names its number and nothing of
    its content.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError):
        raise InputError(f"{path}: can't be read") from None
    found: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        said = _LINE.fullmatch(text)
        if said is None:
            raise InputError(f"{path}, line {number}: this is not NAME=value")
        found[said[1]] = _value(said[2], f"{path}, line {number}")
    return found


def _load_keys() -> None:
    """Put what `.env` of the working folder says into the environment; what is there already
    stays.
    """
    if Path(FILE).is_file():
        for name, value in _read_env(FILE).items():
            os.environ.setdefault(name, value)


def _value(text: str, where: str) -> str:
    if text[:1] in ("'", '"'):
        quoted = _QUOTED.fullmatch(text)
        if quoted is None:
            raise InputError(f"{where}: a quotation mark is not closed on its line")
        if quoted[1] is not None:
            return quoted[1]
        return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[0]), quoted[2])
    return re.sub(r"\s+#.*", "", text).strip()
