"""How a run decides and what it may use: everything that stands in its header."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from rrf_design.acquisition.purchases import Doubt
from rrf_design.acquisition.stopping import StoppingRule, default, record
from rrf_design.errors import InputError
from rrf_design.market import exact


class Mode(StrEnum):
    AGNOSTIC = "agnostic"
    """Schedules are made before any answer is seen, and again only where something could not be read."""
    ADAPTIVE = "adaptive"
    """Observed residuals may steer; more efficient, and it introduces selection, so it is recorded."""
    TRIAGE = "triage"
    """What belongs to every field first; then what is missing, unread or disputed, over all of them, people last."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What fetching something means: the most it can cost in money, who does it, where, and how many calls it begins with."""

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
    """How many attempts the ceiling is for, all that the model makes; 0 where nobody counts them."""

    def after(self, tried: int) -> Terms:
        """What is left of the attempts after so many that ended in doubt."""
        if not tried or not self.attempts:
            return self
        left = max(1, self.attempts - tried)
        return replace(self, attempts=left, ceiling=float(exact(self.ceiling) * left / self.attempts))


@dataclass(frozen=True, slots=True)
class Settings:
    """How a run decides. Everything here is part of its header and fixed for its life, except `budget`, `money` and `stop`, where they are given on resume."""

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
    """For purchases that left the machine and whose outcome a crash swallowed: AGAIN (default) or SKIP."""
    time_limit: float | None = None
    """Seconds for each planning."""
    batch_api: bool = False
    """Questions go through the provider's batch interface, and the session ends while they are pending."""

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
        }
