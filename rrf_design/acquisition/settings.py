"""How a run decides and what it may use, and its header, where all of that stands: format,
revision, versions, seed, budget, problem and model, so that a run can be understood later.
"""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rrf_design import __version__, files
from rrf_design.acquisition._purchases import Doubt
from rrf_design.acquisition.redaction import secret_name
from rrf_design.acquisition.stopping import StoppingRule, default, record
from rrf_design.documents import checked, read, sealed
from rrf_design.errors import InputError, Refused
from rrf_design.market import exact

if TYPE_CHECKING:
    from rrf_design.models import Model, PriceTable, Roster
    from rrf_design.problem import Problem


class Mode(StrEnum):
    AGNOSTIC = "agnostic"
    """Schedules are made before any answer is seen, and again only where something could not be
    read.
    """
    ADAPTIVE = "adaptive"
    """Observed residuals may steer; more efficient, and it introduces selection, so it is
    recorded.
    """
    EXPECTED = "expected"
    """What is expected to break most shared errors for its price comes first, by what `measure`
    counted on other items: an estimate, which decides purchases and nothing else.
    """
    TRIAGE = "triage"
    """What belongs to every field first; then what is missing, unread or disputed, over all of
    them, people last.
    """


@dataclass(frozen=True, slots=True)
class Terms:
    """What fetching something means: the most it can cost in money, who does it, where, and how
    many calls it begins with.
    """

    ceiling: float = 0.0
    deferred: bool = False
    """A person does it; nobody waits."""
    local: bool = False
    """Nothing leaves the machine, so nothing can be charged twice."""
    calls: int = 0
    batched: bool = False
    """Handed in together with others; nobody waits."""
    model: str = ""
    """The run's name for the model that is asked, where one is."""
    attempts: int = 0
    """How many attempts the ceiling is for, all that the model makes; 0 where nobody counts
    them.
    """

    def after(self, tried: int) -> Terms:
        """What is left of the attempts after so many that ended in doubt."""
        if not tried or not self.attempts:
            return self
        left = max(1, self.attempts - tried)
        return replace(self, attempts=left, ceiling=float(exact(self.ceiling) * left / self.attempts))


@dataclass(frozen=True, slots=True)
class Settings:
    """How a run decides.

    Everything here is part of its header and fixed for its life, except `budget`, `money` and
    `stop`, where they are given on resume.
    """

    budget: float | None = None
    """In the unit of the problem's costs, over all items."""
    money: float | None = None
    """What the calls may really cost, by the price table."""
    mode: Mode = Mode.AGNOSTIC
    batch: int = 1
    """Purchases of one item that are decided on together."""
    stop: StoppingRule | None = None
    method: str = "auto"
    """How an agnostic schedule is made: a method of `plan`, or "witness" for the paper's rule."""
    doubt: Doubt | None = None
    """For purchases that left the machine and whose outcome a crash swallowed: AGAIN (default) or
    SKIP.
    """
    time_limit: float | None = None
    """Seconds for each planning."""
    shared: Mapping[tuple[str, str], float] | None = None
    """Mode EXPECTED: how often two nodes say the same wrong value; a node with itself: is wrong."""
    batch_api: bool = False
    """Questions go through the provider's batch interface, and the session ends while they are
    pending.
    """

    def __post_init__(self) -> None:
        if self.batch < 1:
            raise InputError(f"batch must be at least 1, not {self.batch}")
        for name in ("budget", "money"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise InputError(f"{name} must be zero or more, not {value!r}")

    @property
    def rule(self) -> StoppingRule:
        return default() if self.stop is None else self.stop

    def document(self) -> dict[str, Any]:
        return {
            "budget": self.budget,
            "money": self.money,
            "mode": self.mode.value,
            "batch": self.batch,
            "stop": self.rule.describe(),
            "rule": record(self.rule),
            "method": self.method,
            "doubt": (self.doubt or Doubt.AGAIN).value,
            **({"batch_api": True} if self.batch_api else {}),
            **({} if self.shared is None else {"shared": [[*pair, rate] for pair, rate in self.shared.items()]}),
        }


def shared_errors_of(measured: Any) -> dict[tuple[str, str], float]:
    """What a measurement (its document, or a path to it) says of errors that go together."""
    if isinstance(measured, str | os.PathLike):
        measured = read(measured, what="measurement")
    data = checked(
        measured if isinstance(measured, Mapping) else measured.to_json(), "rrf-measurement", what="measured"
    )
    if "shared_errors" not in data:
        raise InputError("measured: it says nothing of shared errors; measure recorded answers (--responses) anew")
    found: dict[tuple[str, str], float] = {}
    try:
        for pair in data["shared_errors"]["pairs"]:
            first, second = sorted(map(str, pair["nodes"]))
            if pair["items"]:
                found[first, second] = pair["same_wrong"] / pair["items"]
        for node, marks in data["wrong_answers"]["by_node"].items():
            asked = len(marks) - marks.count("-")
            if asked:
                found[node, node] = marks.count("1") / asked
        shares = all(0.0 <= rate <= 1.0 for rate in found.values())
    except (LookupError, TypeError, ValueError, AttributeError):
        shares = False
    if not shares:
        raise InputError("measured: its shared errors are no counts of items; measure recorded answers anew")
    return found


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
        "revision": _revision(),
        "python": platform.python_version(),
        "packages": _versions(),
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
def _versions() -> dict[str, str]:
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


@cache
def _revision() -> str:
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
    """A run goes on with the backends it began with: answers of different backends are not
    interchangeable.
    """
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
