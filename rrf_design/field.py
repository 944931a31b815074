"""The field: nodes, one per transformed query, each with a fiber its parsed answer lives in.

A node is the atomic unit of corruption (paper, "Finite-dimensional fibers and direct sums"): a
wrong answer is one wrong node, however many coordinates or tokens it changes. Everything in this
module is plain checked data.
"""

from __future__ import annotations

from functools import lru_cache
from math import isfinite
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

Real = Annotated[float, Field(strict=True, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0)]
Positive = Annotated[float, Field(strict=True, allow_inf_nan=False, gt=0)]
Text = Annotated[str, Field(strict=True, min_length=1)]
Matrix = tuple[tuple[Real, ...], ...]

MOST_COORDINATES = 100_000
"""Of one fiber. A mistyped dimension is told, instead of filling the memory."""
DEEPEST = 32
"""Tables within tables."""


def _plain(value: Any, depth: int = 0) -> Any:
    """What TOML and JSON can both write, and no more: text, whole and finite numbers, true and
    false, lists, tables.
    """
    if depth > DEEPEST:
        raise ValueError(f"nested more than {DEEPEST} deep")
    if isinstance(value, dict):
        return {_plain_text(key): _plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, depth + 1) for item in value]
    if isinstance(value, str):
        return _plain_text(value)
    if isinstance(value, bool) or (isinstance(value, int) and abs(value) < 2**63):
        return value
    if isinstance(value, float) and isfinite(value):
        return value
    kind = "nothing (leave the key out)" if value is None else f"{value!r:.40}"
    raise ValueError(f"only text, finite numbers, true, false, lists and tables can stand here, not {kind}")


def _plain_text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"keys must be text, not {value!r:.40}")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise ValueError("half a character (a lone surrogate) is not valid Unicode text")
    return value


Table = Annotated[dict[str, Any], AfterValidator(_plain)]


def _model_entries(given: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for name, entry in given.items():
        table = {"use": entry} if isinstance(entry, str) else entry
        if not isinstance(table, dict) or not isinstance(table.get("use"), str) or not table["use"]:
            raise ValueError(f'{name}: it needs use = "ADAPTER:NAME"')
        found[name] = table
    return found


Models = Annotated[Table, AfterValidator(_model_entries)]
"""`[models]`: name to `use` and options; a text alone is what to use."""


class Entry(BaseModel):
    """Base of everything that can stand in a problem file: frozen, and no unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Node(Entry):
    """One transformed query and the space ℝ^dim its parsed answer lives in."""

    id: Text
    dim: Annotated[int, Field(strict=True, ge=1, le=MOST_COORDINATES)] = 1
    unit: Text | None = None
    """Nodes of one unit fail together, and k counts units; without a name, a unit of its own."""
    cost: NonNegative | None = None
    """Present: the query is not asked yet, and asking it costs this. Absent: asked already."""
    price: NonNegative | None = None
    """What asking it costs a live run although it is asked in any case: booked, and nothing to
    plan.
    """
    sigma: Positive | None = None
    """How much its answer scatters when it is asked again: the standard deviation of every
    coordinate, wrong or right.
    """
    estimated_from: Annotated[int, Field(strict=True, ge=2)] | None = None
    """How many repeats sigma was estimated from: it is then raised by what so few may have missed.

    In a file also the name of a log.
    """
    repeats: Annotated[int, Field(strict=True, ge=1)] = 1
    """How often it is asked; its answer is the mean, and scatters less. A wrong answer stays
    wrong.
    """
    take: Literal["median"] | None = None
    """Of repeats the median, coordinate by coordinate, instead of the mean: for answers with heavy
    tails, about whose scatter nothing is then said.
    """
    again: NonNegative | None = None
    """Present: what asking it once more costs; a plan may buy that instead of a larger margin."""
    most_repeats: Annotated[int, Field(strict=True, ge=1, le=100)] = 9
    read_from: Text | None = None
    """Its value stands in the answer of that node: one question, one text, one price for both."""
    tolerance: Positive | None = None
    """Where several fields are delivered: a value this close to the truth is right, in its own
    unit.
    """
    k: Annotated[int, Field(strict=True, ge=1)] | None = None
    """Where several fields are delivered: how many units may be wrong about this one, if fewer than
    the problem's k.
    """
    veto: tuple[Table, ...] = ()
    """What an answer that breaks it can't be right about, and so counts as unread:
    `rrf_design.transforms.vetoed`.
    """
    metric: Positive | Matrix | None = None
    """Positive definite W_i: lengths in this fiber are sqrt(hᵀ W_i h).

    A number means that multiple of the identity.
    """
    range: tuple[Real, Real] | None = None
    """Plausible answers, least and largest, of every coordinate: what a relation's uncertainty can
    amount to.
    """
    model: Text | None = None
    """Which of the run's models is asked; the first one by default."""
    prompt: Text | None = None
    """What a live run asks; the fields below belong to it."""
    after: Literal["repair"] | None = None
    """Asked once the other answers are there, and shown what they come to: one more answer, never a
    truth.
    """
    system: Text | None = None
    parser: Text | Table | None = None
    max_tokens: Annotated[int, Field(strict=True, ge=1)] | None = None
    variables: Table | None = None

    @model_validator(mode="after")
    def _range_in_order(self) -> Self:
        if self.take is not None and (self.repeats < 2 or self.sigma is not None or self.again is not None):
            raise ValueError('take = "median" is of repeats that the file declares, without sigma and again')
        if self.sigma is None and self.take is None and (self.repeats > 1 or self.again is not None):
            raise ValueError("asking again lowers how much an answer scatters; declare that as sigma, or leave it out")
        if self.estimated_from is not None and self.sigma is None:
            raise ValueError("estimated_from speaks of sigma; give it")
        if self.sigma is not None and self.metric is not None:
            raise ValueError("give only one of sigma and metric")
        if self.repeats > self.most_repeats:
            raise ValueError(f"repeats = {self.repeats} is more than most_repeats = {self.most_repeats}")
        if self.after is not None and (self.cost is None or self.repeats > 1 or self.again is not None):
            raise ValueError(
                'after = "repair" is of a question on sale that is asked once: give a cost, and no repeats'
            )
        own = ("cost", "price", "again", "prompt", "after", "system", "max_tokens", "model")
        given = [key for key in own if getattr(self, key) is not None]
        if self.read_from is not None and (given or self.repeats > 1):
            raise ValueError(
                f"it is read from the answer of {self.read_from!r}; {given[0] if given else 'repeats'} belongs there"
            )
        if self.range is not None and self.range[0] > self.range[1]:
            raise ValueError(f"range = {list(self.range)}: the least plausible answer comes first")
        return self


_AS_THEY_ARE = frozenset({str, int, bool, type(None)})


def simplified(value: Any) -> Any:
    """Plain lists, tables, texts and numbers, without what is not there and with one zero: equal
    problems have one digest.
    """
    if type(value) in _AS_THEY_ARE:  # most are: asked first, because a run over many items does this for every entry
        return value
    if isinstance(value, dict):
        return {key: simplified(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [simplified(item) for item in value]
    return value + 0.0 if isinstance(value, float) else value  # -0.0 is 0.0


def dumped(entry: BaseModel, *, exclude: set[str] | None = None) -> dict[str, Any]:
    """What was given and is not as usual, by pydantic."""
    plain: dict[str, Any] = simplified(
        entry.model_dump(mode="python", exclude_defaults=True, by_alias=True, exclude=exclude)
    )
    return plain


@lru_cache(maxsize=4096)
def _given(model: type[BaseModel], names: frozenset[str]) -> tuple[tuple[str, Any], ...]:
    """The fields of these names in order, with their usual values."""
    fields = model.model_fields.items()
    return tuple((name, field.get_default(call_default_factory=True)) for name, field in fields if name in names)


def written(entry: Entry) -> dict[str, Any]:
    """`dumped` of an entry of a problem file. Most hold texts and numbers, and a field may have
    very many: those are read off without pydantic, which takes three times as long.
    """
    values, found = entry.__dict__, {}
    for name, usual in _given(type(entry), frozenset(entry.model_fields_set)):
        value = values[name]
        if value is None or value == usual:
            continue
        if type(value) is float:
            found[name] = value + 0.0
        elif type(value) in _AS_THEY_ARE:
            found[name] = value
        else:
            return dumped(entry)
    return found
