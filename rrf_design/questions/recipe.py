"""Recipes: a problem file whose texts speak of the row of a table, in a long form and in a short
one.

The long form is a problem file with `[data]`; the short form says what is asked, what must agree,
and who checks, and `shortform` compiles it to the long one, with the way back from every node and
block to the entry and line it came from.

The TOML parser keeps no lines: `lines_by_entry` finds the heads `[answer]` and `[[ask]]` and the
keys below them, past texts of several lines; it is for messages only, and where it finds nothing (a
recipe in JSON) the message goes without.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, ValidationError, field_validator, model_validator

from rrf_design.blocks import Transport
from rrf_design.errors import InputError
from rrf_design.field import Entry, Models, NonNegative, Table, Text
from rrf_design.files import (
    SECTIONS,
    canonical_digest,
    known_keys,
    one_line,
    parse_text,
    read_source,
    to_document,
    toml_entry,
)
from rrf_design.problem import Problem
from rrf_design.transforms import KINDS, check_rules

Number = Annotated[float, Field(strict=True, allow_inf_nan=False)] | Text
"""A number, or a text that is one placeholder and becomes it."""
Count = Annotated[int, Field(strict=True, ge=1)]
Share = Annotated[float, Field(strict=True, gt=0, lt=1)]
LONG = ("problem", *SECTIONS)
SHORT = ("answer", "ask", "equation", "veto", "check")


class DataSection(Entry):
    """Where the rows come from."""

    table: Text | None = None
    id: Text | None = None
    """The column that names the item; the row number by default."""
    gold: Text | Table | None = None
    """The column of the truth, for pilots and audits; no text and no check can speak of it."""
    separator: Text | None = None
    """Of a CSV file; a comma by default, a tab in a .tsv file."""
    encoding: Text = "utf-8"

    @property
    def gold_column(self) -> str | None:
        named = self.gold.get("column") if isinstance(self.gold, dict) else self.gold
        return named if isinstance(named, str) else None

    @property
    def gold_fields(self) -> Mapping[str, str]:
        """The column of the truth by node, where several fields are delivered."""
        named = self.gold.get("fields") if isinstance(self.gold, dict) else None
        return named if isinstance(named, dict) else {}

    @property
    def gold_columns(self) -> tuple[str, ...]:
        """Every column that holds a truth, which no question and no check may see."""
        only = () if self.gold_column is None else (self.gold_column,)
        return tuple(dict.fromkeys((*only, *self.gold_fields.values())))


ANSWER_KEYS = {"delta": "tolerance", "deliver": "of"}
"""Keys of [problem] that [answer] calls otherwise."""


class AnswerSection(Entry):
    """What is delivered, and what it is worth; several entries are several fields."""

    of: Text
    """The ask whose value is delivered, or the field ASK.PATH of an ask that gives several."""
    parse: Text | Table | None = None
    """What reads a field of an ask that gives several."""
    gold: Text | None = None
    """The column of this field's truth."""
    name: Text | None = None
    tolerance: Number | None = None
    """In its own unit: a value this close to the truth is right."""
    k: Count = 1
    fails_together: Literal["ask", "wording", "model"] = "ask"
    choices: tuple[Text, ...] | Text | None = None
    """The answer is one of these; one placeholder stands for a cell that is a list."""
    rewordings: Text | None = None
    """A file of other wordings, of which those that somebody has reviewed are asked too."""
    epsilon: Number | None = None
    wrong_checks: Annotated[int, Field(strict=True, ge=0)] | None = None


class Change(Transport):
    """How the answer must change along `like`: a relation's transport, plus `shift`; `scale` and
    `shift` may be placeholders.

    In `permute`, entry i is the other one's entry permute[i]: options shown in another order.
    """

    scale: Number | None = None  # type: ignore[assignment]  # a placeholder becomes a number row by row
    shift: Number | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Change:
        if self.kind == "identity" and self.shift is None:
            raise ValueError("give scale, shift or both, or permute")
        if self.kind != "scale" and self.kind != "identity" and self.shift is not None:
            raise ValueError(f"give {self.kind}, or scale and shift")
        return self

    def relation(self) -> dict[str, Any]:
        """`transport` and `offset` of the long form."""
        given = {name: value for name, value in self.__dict__.items() if value is not None}
        shift = given.pop("shift", None)
        return ({"transport": given} if given else {}) | ({} if shift is None else {"offset": shift})


class AskEntry(Entry):
    """One way of asking; one node per model and repeat."""

    id: Text
    prompt: Text | None = None
    transform: Text | Table | None = None
    """Instead of a prompt: that of the ask it is like, changed in a way of the catalogue; `reword`
    is its older name.
    """
    system: Text | None = None
    parse: Text | Table | None = None
    like: Text | None = None
    change: Change | None = None
    sums_to: Text | None = None
    model: Text | tuple[Text, ...] | None = None
    repeat: Count = 1
    cost: Number | None = None
    buy: Literal["always", "if needed"] = "always"
    after: Literal["repair"] | None = None
    """Asked once the other answers are there, and shown what they come to."""
    max_tokens: Count | None = None
    range: tuple[Number, Number] | None = None
    sigma: Number | None = None
    uncertainty: Number | None = None
    weight: Number | None = None
    when: Text | None = None
    """Only for rows where this is not empty."""

    @model_validator(mode="before")
    @classmethod
    def _older_name(cls, given: Any) -> Any:
        if not isinstance(given, dict) or "reword" not in given:
            return given
        if "transform" in given:
            raise ValueError("reword is the older name of transform; give one of them")
        return {**{key: value for key, value in given.items() if key != "reword"}, "transform": given["reword"]}

    @model_validator(mode="after")
    def _consistent(self) -> AskEntry:
        if any(mark in self.id for mark in "@#{}"):
            raise ValueError(
                f"id = {self.id!r}: @ and # are for models and repeats, braces for columns; use other marks"
            )
        if self.like is not None and self.sums_to is not None:
            raise ValueError("give like or sums_to, not both")
        if (self.prompt is None) == (self.transform is None):
            raise ValueError("give a prompt, or transform to change another ask's")
        if self.transform is not None and self.like is None:
            raise ValueError("transform changes another question; say which with like")
        if self.transform is not None and self.change is not None and not self.swaps:
            raise ValueError("transform says how the answer changes; leave change out")
        if self.change is not None and self.like is None:
            raise ValueError("change says how the answer differs from another one; say which with like")
        if self.buy == "if needed" and self.cost is None:
            raise ValueError('buy = "if needed" needs a cost to be weighed against')
        if self.after is not None and (self.buy != "if needed" or self.repeat > 1):
            raise ValueError('after = "repair" goes with buy = "if needed" and a cost, and is asked once')
        return self

    @property
    def swaps(self) -> bool:
        """Two columns are exchanged, and `change` says what that does."""
        return isinstance(self.transform, dict) and "swap" in self.transform


class EquationEntry(Entry):
    """The sum of some fields is another one.

    Between answers it is a row of B, within one answer it can only tell that the answer is wrong.
    """

    id: Text | None = None
    sum: tuple[Text, ...] = Field(min_length=1)
    equals: Text
    coefficients: tuple[Annotated[float, Field(strict=True, allow_inf_nan=False)], ...] | None = None
    """One for each of `sum`; 1 by default."""

    @model_validator(mode="after")
    def _matches(self) -> EquationEntry:
        if self.coefficients is not None and len(self.coefficients) != len(self.sum):
            raise ValueError(f"{len(self.coefficients)} coefficients for a sum of {len(self.sum)}")
        if len({*self.sum, self.equals}) <= len(self.sum):
            raise ValueError("it names a field twice")
        return self

    @property
    def name(self) -> str:
        return self.id or f"{' + '.join(self.sum)} = {self.equals}"


class VetoEntry(Entry):
    """What an answer can't be right about, seen without asking: what breaks it counts as unread.

    It holds for every other ask that must give the same value, too.
    """

    of: Text
    in_text: Text | None = None
    """The value stands in this text, in any written form."""
    within: tuple[float | Text, float | Text] | None = None
    """Two numbers or two days."""
    digits: Text | None = None
    """Kind of a number that has check digits."""
    lookup: Text | None = None
    """FILE:COLUMN of a table in which the value stands."""
    regex: Text | None = None
    """The form of the whole value, case aside."""
    returns: Text | None = None
    """What holds of every test of a program: out >= a, with out what it returns, and a, b, ... its
    arguments.
    """

    @model_validator(mode="after")
    def _can_be_followed(self) -> VetoEntry:
        try:
            check_rules([self.rule])
        except InputError as error:
            raise ValueError(str(error).removeprefix("veto: ")) from None
        return self

    @property
    def rule(self) -> dict[str, Any]:
        """As the long form has it."""
        given = {key: getattr(self, key) for key in KINDS if getattr(self, key) is not None}
        return {key: list(value) if isinstance(value, tuple) else value for key, value in given.items()}


class CheckEntry(Entry):
    """Evidence from outside: a person, a value, an expression, tests, a verifier, a command."""

    id: Text
    of: Text
    by: Table
    cost: Number | None = None
    may_be_wrong: bool = False
    rate: Share | None = None
    """Probability that it is wrong altogether: what `measure` proposes for a judge that says yes or
    no.
    """
    sigma: Number | None = None
    uncertainty: Number | None = None
    weight: Number | None = None
    when: Text | None = None


class _PromiseSection(Entry):
    """What a pilot, a run under a policy and an audit are to keep."""

    of: Literal["rows", "values"] | None = None
    """What is counted: rows with any wrong value (the default), or values."""
    risk: Share
    confidence: Share = 0.95
    pilot: Count | None = None
    audit: Count | None = None
    budget: NonNegative | None = None


class RecipeFile(Entry):
    """The sections of a recipe.

    The long ones are checked as a problem, once their placeholders are numbers.
    """

    data: DataSection = DataSection()
    models: Models = Field(default_factory=dict)
    answer: tuple[AnswerSection, ...] = ()
    ask: tuple[AskEntry, ...] = ()
    equation: tuple[EquationEntry, ...] = ()
    veto: tuple[VetoEntry, ...] = ()
    check: tuple[CheckEntry, ...] = ()
    promise: _PromiseSection | None = None
    ladder: Table | None = None
    problem: dict[str, Any] | None = None
    nodes: list[dict[str, Any]] = Field(default_factory=list)
    relations: list[dict[str, Any]] = Field(default_factory=list)
    nonlinear: list[dict[str, Any]] = Field(default_factory=list)
    anchors: list[dict[str, Any]] = Field(default_factory=list)
    rules: list[dict[str, Any]] = Field(default_factory=list)
    tiers: list[dict[str, Any]] = Field(default_factory=list)
    noise: list[dict[str, Any]] = Field(default_factory=list)

    @field_validator("answer", mode="before")
    @classmethod
    def _listed(cls, given: Any) -> Any:
        return [given] if isinstance(given, dict) else given


@dataclass(frozen=True, slots=True)
class Origin:
    """The entry of the recipe that a node or block came from: the way back."""

    section: str
    place: int
    id: str


@dataclass(frozen=True, slots=True)
class Recipe:
    """A checked recipe.

    `long` is its long form (plain tables, texts still templates), `origins` the way back by id.
    """

    name: str
    data: DataSection
    models: Mapping[str, Mapping[str, Any]]
    promise: _PromiseSection | None
    ladder: Mapping[str, Any] | None
    long: Mapping[str, Any]
    origins: Mapping[str, Origin]
    nodes: Mapping[tuple[str, str | None, int], str]
    """Node id by ask (or field ASK.PATH), model (None: the first) and repeat (from 1)."""
    calls: Mapping[tuple[str, str | None, int], tuple[str, ...]] = field(default_factory=dict)
    """Of asks that give several fields: their nodes, the one that is asked first."""
    folder: Path = field(default_factory=Path)
    lines: Places = field(default_factory=dict)
    swapped: frozenset[str] = frozenset()
    """Asks that are another one with two columns exchanged."""

    def where(self, entry: str, key: str = "") -> str:
        """What to call the place of a node's or block's key: check 'clerk' by, line 31 of
        rrf.toml.
        """
        origin = self.origins.get(entry)
        if origin is None:
            return f"{key} in {self.name}" if key else self.name
        if origin.section == "answer":
            key = ANSWER_KEYS.get(key, key)
        title = f"[{origin.section}]" if origin.section in ("answer", "problem") else f"{origin.section} {origin.id!r}"
        line = self.lines.get((origin.section, origin.place, key)) or self.lines.get((origin.section, origin.place, ""))
        spot = f"line {line} of {self.name}" if line else self.name
        return f"{title} {key}, {spot}" if key else f"{title}, {spot}"

    @property
    def fields(self) -> tuple[str, ...]:
        """The delivered nodes, where they are several: fields of one document."""
        named = self.long["problem"].get("deliver", ())
        return tuple(named) if len(named) > 1 else ()

    @property
    def digest(self) -> str:
        """SHA-256 of the long form: policies and runs name the recipe they belong to by it."""
        return canonical_digest(self.document())

    def document(self) -> dict[str, Any]:
        """The recipe in its long form, as `recipe_from_document` reads it."""
        found: dict[str, Any] = {}
        data = self.data.model_dump(exclude_defaults=True)
        found["data"] = data
        if self.models:
            found["models"] = {name: dict(entry) for name, entry in self.models.items()}
        found |= self.long
        if self.promise is not None:
            found["promise"] = self.promise.model_dump(exclude_none=True)
        if self.ladder is not None:
            found["ladder"] = dict(self.ladder)
        return found


def as_recipe(source: Any) -> Recipe:
    """The recipe of a path, of the content of its file, or of a problem; a recipe as it is."""
    if isinstance(source, Problem):
        source = to_document(source)
    if isinstance(source, Mapping):
        return recipe_from_document(dict(source))
    return source if isinstance(source, Recipe) else load_recipe(source)


def load_recipe(path: str | os.PathLike[str]) -> Recipe:
    """Read a recipe (.toml or .json), in either form; a problem file is a recipe too, once there is
    a table for it.

    Parameters
    ----------
    path : the file.

    Returns
    -------
    Recipe
        Checked and in its long form, with the way back from every node and block to its line.

    >>> import pathlib, tempfile
    >>> from rrf_design.questions import load_recipe
    >>> text = '[answer]\\nof = "sum"\\n[[ask]]\\nid = "sum"\\nprompt = "{{ a }} + {{ b }}?"'
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "rrf.toml")
    ...     _ = path.write_text(text)
    ...     recipe = load_recipe(path)
    >>> recipe.where("sum")
    "ask 'sum', line 3 of rrf.toml"
    """
    path = Path(path)
    text = read_source(path)
    try:
        document = parse_text(text, path.suffix.lower())
        return recipe_from_document(document, name=path.name, folder=path.parent, lines=_lines_by_entry(text))
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def recipe_from_document(
    document: Any, *, name: str = "the recipe", folder: Path | None = None, lines: Places | None = None
) -> Recipe:
    """The recipe from the parsed content of a file; InputError is one line that names the entry and
    the remedy.
    """
    from rrf_design.questions._shortform import compile_short, own_long
    from rrf_design.questions.filling import Filler, check_recipe

    if not isinstance(document, dict):
        raise InputError(
            "the top level must be a table with [data], and [answer] with [[ask]] or [problem] with [[nodes]]"
        )
    for key in document:
        if key not in RecipeFile.model_fields:
            raise InputError(f"unknown section {key!r}{known_keys(key, RecipeFile.model_fields)}")
    short, long = [key for key in SHORT if key in document], [key for key in LONG if key in document]
    if short and long:
        raise InputError(f"[{short[0]}] is of the short form and [{long[0]}] of the long one; use one of them")
    try:
        parts = RecipeFile.model_validate(document)
    except ValidationError as error:
        lists: dict[str, type[BaseModel]] = {
            **{"ask": AskEntry, "equation": EquationEntry},
            **{"veto": VetoEntry, "check": CheckEntry},
        }
        tables: dict[str, type[BaseModel]] = {"data": DataSection, "promise": _PromiseSection}
        (lists if isinstance(document.get("answer"), list) else tables)["answer"] = AnswerSection
        raise InputError(one_line(error, document, lists=lists, tables=tables, top=RecipeFile)) from None
    models = parts.models
    swapped = frozenset(ask.id for ask in parts.ask if ask.swaps)
    parts = _written_out(parts, folder or Path())
    made = compile_short(parts, list(models)) if short else own_long(parts, list(models))
    golds = made.golds
    data = parts.data if not golds else parts.data.model_copy(update={"gold": {"fields": golds}})
    recipe = Recipe(
        name, data, models, parts.promise, parts.ladder, made.document, made.origins, made.nodes, made.calls,
        folder or Path(), lines or {}, swapped,
    )  # fmt: skip
    check_recipe(Filler(recipe))
    return recipe


def _written_out(parts: RecipeFile, folder: Path) -> RecipeFile:
    """The recipe with every transformation written out, and with the wordings of its file that were
    reviewed.
    """
    from rrf_design.questions.rewording import read_rewordings, written_out

    asks = {ask.id: ask for ask in parts.ask}
    listed = [written_out(ask, parts) for ask in parts.ask]
    for named in dict.fromkeys(one.rewordings for one in parts.answer if one.rewordings is not None):
        listed += read_rewordings(folder / named, asks)
    return parts.model_copy(update={"ask": tuple(listed)})


def dumps_recipe(recipe: Recipe) -> str:
    """The long form as TOML.

    Parameters
    ----------
    recipe : the recipe, in whatever form it was written.

    Returns
    -------
    str
        What `load_recipe` reads as the same recipe.

    >>> from rrf_design.questions import dumps_recipe
    >>> from rrf_design.questions.recipe import recipe_from_document
    >>> short = {"answer": {"of": "sum"}, "ask": [{"id": "sum", "prompt": "{{ a }} + 1?"}]}
    >>> "[[nodes]]" in dumps_recipe(recipe_from_document(short))
    True
    """
    document = recipe.document()
    parts = []
    for key, content in document.items():
        if isinstance(content, list):
            parts += [f"[[{key}]]\n{toml_entry(entry)}" for entry in content]
        else:
            parts.append(f"[{key}]\n{toml_entry(content)}")
    return "\n".join(parts)


_HEAD = re.compile(r"\s*\[(\[?)\s*([\w-]+)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r'\s*"?([\w-]+)"?\s*=')

Places = dict[tuple[str, int, str], int]
"""Line by section, place of the entry in its section, and key ("" for the head)."""


def _lines_by_entry(text: str) -> Places:
    """Where each entry and each of its keys begins; lines count from 1."""
    found: Places = {}
    seen: Counter[str] = Counter()
    section, place, closing = "", 0, ""
    for number, line in enumerate(text.splitlines(), start=1):
        if closing:
            closing = "" if line.count(closing) % 2 else closing
            continue
        head, key = _HEAD.match(line), _KEY.match(line)
        if head is not None:
            section = head[2]
            place = seen[section] if head[1] else 0
            seen[section] += 1
            found.setdefault((section, place, ""), number)
        elif key is not None:
            found.setdefault((section, place, key[1]), number)
        for quotes in ('"""', "'''"):
            if line.count(quotes) % 2:
                closing = quotes
                break
    return found
