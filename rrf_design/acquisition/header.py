"""What a run's header says: format, revision, versions, seed, budget, problem and model, so that it can be understood later."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rrf_design import __version__, files
from rrf_design.acquisition.redaction import secret_name
from rrf_design.documents import sealed
from rrf_design.errors import Refused

if TYPE_CHECKING:
    from rrf_design.acquisition.settings import Settings
    from rrf_design.models import Model, PriceTable, Roster
    from rrf_design.problem import Problem

_PACKAGES = (
    "numpy",
    "scipy",
    "numba",
    "sqlalchemy",
    "xllamacpp",
    "openai",
    "any-llm-sdk",
    "genai-prices",
    "transformers",
    "torch",
)


def header_of(
    problems: Mapping[str, Problem],
    roster: Roster,
    settings: Settings,
    seed: int,
    *,
    entries: Mapping[str, Mapping[str, Any]],
    prices: PriceTable | None = None,
    title: str | None = None,
) -> dict[str, Any]:
    names = [problem.name for problem in problems.values()]
    content = {
        "name": title or (names[0] if len(names) == 1 else f"{len(names)} items"),
        "program": __version__,
        "revision": revision(),
        "python": platform.python_version(),
        "packages": versions(),
        "seed": seed,
        "settings": settings.document(),
        "digests": {item: files.digest(problem) for item, problem in problems.items()},
        "model": roster[roster.first].name,
        "identity": dict(roster[roster.first].identity),
        "models": {name: _entry(entries[name], model) for name, model in roster.items()},
        "prices": None if prices is None else prices.document(),
    }
    return sealed("rrf-run", content)


def _entry(entry: Mapping[str, Any], model: Model) -> dict[str, Any]:
    """What was asked for, without secrets, and what answered."""
    kept = {name: value for name, value in entry.items() if _plain(value) and not secret_name(name)}
    return {"use": None, **kept, "name": model.name, "identity": dict(model.identity)}


def _plain(value: Any) -> bool:
    """It can stand in a file, so that a resumed run finds it there; an adapter object can't."""
    if isinstance(value, Mapping):
        return all(isinstance(name, str) and not secret_name(name) and _plain(inner) for name, inner in value.items())
    return all(map(_plain, value)) if isinstance(value, list | tuple) else isinstance(value, str | int | float)


@cache
def versions() -> dict[str, str]:
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


@cache
def revision() -> str:
    """The commit of a checkout; empty for an installed package."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return ""
    try:
        done = subprocess.run(
            ["git", "-C", str(root), "rev-parse", "HEAD"], capture_output=True, text=True, timeout=5, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def same_models(run: str, before: Mapping[str, Any], roster: Roster) -> None:
    """A run goes on with the backends it began with: answers of different backends are not interchangeable."""
    old = before.get("models")
    kept = {name: entry["identity"] for name, entry in old.items()} if old else {roster.first: before["identity"]}
    now = {name: model.identity for name, model in roster.items() if name in kept}
    if {name: answering(identity) for name, identity in kept.items()} != {
        name: answering(identity) for name, identity in now.items()
    }:
        shown = ", ".join(model.name for _, model in roster.items())
        raise Refused(
            f"run {run}: it was begun with {before['model']} and this is {shown} (or another version of it);"
            " answers of different backends can't be mixed; start a new run"
        )


def answering(identity: Mapping[str, Any]) -> dict[str, Any]:
    """What of an identity can change an answer; older runs kept the number of slots in it."""
    return {name: value for name, value in identity.items() if name != "slots"}
