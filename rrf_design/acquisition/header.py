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
from rrf_design.acquisition.secrets import secret_name
from rrf_design.errors import Refused

if TYPE_CHECKING:
    from rrf_design.acquisition.loop import Settings
    from rrf_design.models import Model
    from rrf_design.problem import Problem

_PACKAGES = ("numpy", "scipy", "numba", "sqlalchemy", "xllamacpp", "openai", "transformers", "torch")


def header(
    problems: Mapping[str, Problem],
    model: Model,
    settings: Settings,
    seed: int,
    *,
    spec: str | Model,
    options: Mapping[str, Any],
) -> dict[str, Any]:
    names = [problem.name for problem in problems.values()]
    return {
        "format": "rrf-run",
        "version": 1,
        "name": names[0] if len(names) == 1 else f"{len(names)} items",
        "program": __version__,
        "revision": revision(),
        "python": platform.python_version(),
        "packages": versions(),
        "seed": seed,
        "settings": settings.document(),
        "digests": {item: files.digest(problem) for item, problem in problems.items()},
        "model": model.name,
        "spec": spec if isinstance(spec, str) else None,
        "options": {
            name: value
            for name, value in options.items()
            if isinstance(value, str | int | float) and not secret_name(name)
        },
        "identity": dict(model.identity),
    }


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


def same_model(run: str, before: Mapping[str, Any], model: Model) -> None:
    """A run goes on with the backend it began with: answers of different backends are not interchangeable."""
    if before["identity"] != dict(model.identity):
        raise Refused(
            f"run {run}: it was begun with {before['model']} and this is {model.name} (or another version of it);"
            " answers of different backends can't be mixed; start a new run"
        )
