"""The contract of an anchor's source: built and checked before the run starts, fetched when its
anchor is bought; and sources by name, each imported when it is used.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from importlib import import_module
from typing import TYPE_CHECKING, Any

from rrf_design.checks import rows_of
from rrf_design.errors import InputError
from rrf_design.files import suggestion

if TYPE_CHECKING:
    from rrf_design.blocks import Anchor
    from rrf_design.models import Model, Reply, Request
    from rrf_design.models.base import Again
    from rrf_design.problem import Problem


@dataclass(frozen=True, slots=True)
class Fetched:
    """What a source gave: a value of the anchor's rows, or the name of a failure."""

    outcome: str
    value: tuple[float, ...] | None = None
    money: float = 0.0
    calls: int = 0
    evidence: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return self.value is not None


@dataclass(frozen=True, slots=True)
class Asked:
    """What a source may look at: the answers of the field so far, as text and as numbers, by node.

    `again` is asked before a call is repeated, so that repetitions are counted against the limits
    too; `tried` counts those of sessions that ended without an outcome.
    """

    texts: Mapping[str, str]
    values: Mapping[str, tuple[float, ...]]
    again: Again | None = None
    tried: int = 0


@dataclass(frozen=True, slots=True)
class Toolbox:
    """What sources need from the outside.

    `model` finds an adapter by name, `options` is what every request to it says, `price` is money
    per reply.
    """

    model: Callable[[str], Model] | None = None
    options: Callable[[str], Mapping[str, Any]] = lambda name: {}
    price: Callable[[Model, Any], float] | None = None
    allow_commands: bool = False
    isolation: str = "seccomp"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a source stands: its anchor, the problem around it, and what it may use."""

    anchor: Anchor
    problem: Problem
    tools: Toolbox

    @property
    def rows(self) -> int:
        return rows_of(self.problem, self.anchor)


class Source(ABC):
    """One way to get an anchor's value.

    It is made from the file's words (`options`), takes out of them what it understands, and says
    what is wrong with them while it still costs nothing; what is left is an error. `fetch` may be
    called from any thread.
    """

    kind = ""
    """Its name in the problem file; also recorded with every purchase."""
    local = True
    """Nothing leaves the machine, so that after a crash it can be done again without paying
    twice.
    """
    deferred = False
    """A person answers; the run goes on meanwhile."""
    instant = False
    """Nothing has to be fetched: the value is looked up or computed on the spot."""

    def __init__(self, place: Place, options: dict[str, Any]) -> None:
        self.anchor, self.rows = place.anchor, place.rows

    @abstractmethod
    def fetch(self, asked: Asked) -> Fetched: ...

    def fitting(self, numbers: Sequence[Fraction | float | int], outcome: str, **more: Any) -> Fetched:
        """The numbers as the anchor's value, if there are as many as it has rows and all are
        finite.
        """
        if len(numbers) != self.rows:
            return Fetched(f"{len(numbers)} numbers where {self.rows} are needed", **more)
        try:
            values = tuple(float(number) for number in numbers)
        except OverflowError:  # an integer or a fraction beyond the doubles
            return Fetched("a number that no double can hold", **more)
        if not all(math.isfinite(value) for value in values):
            return Fetched("a number that is not finite", **more)
        return Fetched(outcome, values, **more)


@dataclass(frozen=True, slots=True)
class Attempted:
    """What attempts used up that brought nothing."""

    calls: int = 0
    money: float = 0.0
    doubtful: int = 0
    """Of the calls: those that the other side may never have seen."""
    status: int = 0
    """With which the server refused the key, where it did."""

    def document(self) -> dict[str, Any]:
        return {entry.name: getattr(self, entry.name) for entry in fields(self) if getattr(self, entry.name)}


NOTHING = Attempted()


class Unreachable(Exception):
    """The other side gave no answer: nothing was got, and the question can be asked again.

    `used` is what the attempts used up; `passing` means that the server answers others, so that the
    run need not pause.
    """

    def __init__(self, reason: str, *, used: Attempted = NOTHING, passing: bool = False) -> None:
        super().__init__(reason)
        self.used, self.passing = used, passing


def schema_of(parser: Any, model: Model) -> dict[str, Any]:
    """What a request says about the form of its answer: the schema of a parser that wants JSON,
    where the model can be told.
    """
    schema = parser.schema if model.supports_schema else None
    return {} if schema is None else {"schema": json.dumps(schema, sort_keys=True)}


def ask(model: Model, request: Request, again: Again | None, tried: int = 0) -> Reply:
    """A model's reply; `again`, where it is given, must allow each repeated call.

    An adapter with an `ask` of its own hears only of what there is to say.
    """
    said: dict[str, Any] = {} if again is None else {"again": again}
    said |= {"tried": tried} if tried else {}
    return model.ask(request, **said)


def refuse_unanswered(reply: Reply, money: float, *, passing: bool | None = None) -> None:
    """`Unreachable` for a reply of nobody.

    Where nothing is known about the server's other calls (`passing` is None), attempts that were
    charged are settled as what they cost.
    """
    from rrf_design.models import Outcome

    if reply.outcome in (Outcome.UNREACHABLE, Outcome.RATE_LIMITED) and (passing is not None or money == 0.0):
        reason = f"{reply.outcome.value.replace('_', ' ')}: {reply.detail}"
        used = Attempted(reply.usage.calls, money, reply.usage.doubtful)
        raise Unreachable(reason, used=used, passing=bool(passing))


SOURCES: Mapping[str, str] = {
    "value": "stated:KnownValue",
    "label": "stated:Label",
    "expression": "stated:Expression",
    "tests": "tested:Tests",
    "verifier": "verifier:Verifier",
    "person": "stated:Person",
    "command": "command:Command",
}
"""Kind in the problem file to module and class in this folder."""


def _source_class(kind: str) -> type[Source]:
    module, _, name = SOURCES[kind].partition(":")
    found: type[Source] = getattr(import_module(f"rrf_design.acquisition.sources.{module}"), name)
    return found


def build(anchor: Anchor, problem: Problem, tools: Toolbox) -> Source:
    """The source an anchor names; InputError names the anchor and what to change, before anything
    is bought.
    """
    try:
        kind, options = _spec(anchor.source)
        source = _source_class(kind)(Place(anchor, problem, tools), options)
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
            f'source {source!r} is unknown{suggestion(kind, SOURCES)}; use "value", "expression: ...", "person" or a'
            " table"
        )
    kinds = [key for key in SOURCES if key in source]
    if len(kinds) != 1:
        raise InputError(f"source: a table needs exactly one of {', '.join(list(SOURCES)[1:])}")
    return kinds[0], dict(source)
