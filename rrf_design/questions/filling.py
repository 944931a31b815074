"""From the long form and a row to a problem, and no more work than the row needs.

`problem` fills in everything, the slow and obvious way. `pattern` is what of a row decides the
structure of its item; items of one pattern share everything that is dear (docs/algorithms.md, fact
21), and for those who hold the structure already, `prompts`, `values` and `offsets` are the parts
of `problem` that still differ.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from copy import copy, deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from rrf_design.errors import InputError
from rrf_design.files import SECTIONS, canonical_digest, canonical_json, from_document, suggestion
from rrf_design.problem import Problem
from rrf_design.questions._slots import (
    Cells,
    Path,
    Slot,
    SlotKind,
    as_plain,
    deciding,
    entries,
    find_slots,
    is_blank,
    read_condition,
    read_exactly,
    read_list,
    read_number,
    read_text,
    some_text,
)
from rrf_design.questions.recipe import ANSWER_KEYS, Recipe
from rrf_design.questions.templates import strict_number
from rrf_design.responses import parsers
from rrf_design.responses.parsed import Parser, parse_stated
from rrf_design.transforms import check_rules, placed, with_tests

Numbers = float | tuple[float, ...]
_WORD = re.compile(r"[^\W\d]\w*")
_LATER = (SlotKind.EXPRESSION, SlotKind.VERIFIER, SlotKind.WHEN, SlotKind.VALUE)


def _suspects(document: Mapping[str, Any]) -> bool:
    listed = [*document.get("relations", ()), *document.get("anchors", ())]
    return any(entry.get("trusted") is False for entry in listed)


@dataclass(frozen=True, slots=True)
class RowParts:
    """What one row makes of the recipe: what reads the answers, and what checks and relations
    state.
    """

    parsers: Mapping[str, Parser]
    labels: Mapping[str, str]
    values: Mapping[str, Numbers]
    """Of checks, and the offsets of relations."""
    vetoes: Mapping[str, tuple[Mapping[str, Any], ...]] = field(default_factory=dict)
    fault: InputError | None = None
    """Why there are no labels and values."""


class Filler:
    """A recipe made ready to be filled in, row after row.

    What it gives depends on the row alone, and no row is changed.
    """

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.slots = find_slots(recipe)
        self._entries = {section: entries(recipe, section) for section in ("problem", *SECTIONS)}
        self._at: dict[str, dict[tuple[int, Path], Slot]] = {section: {} for section in self._entries}
        for slot in self.slots:
            self._at[slot.section][slot.place, slot.path] = slot
        self._deciding = tuple(slot for slot in self.slots if not slot.own)
        self._conditions = {
            s: [slot for slot in self._deciding if slot.kind is SlotKind.WHEN and slot.section == s] for s in self._at
        }
        texts = (("prompt",), ("system",), ("name",))
        self._may_be_empty = tuple(
            slot
            for slot in self.slots
            if slot.path in texts and not (slot.template.plain or slot.template.says_something)
        )
        self._templated = {slot.place for slot in self.slots if slot.section == "nodes" and slot.path[0] == "parser"}
        self._same_parsers: dict[int, Parser] = {}
        self._shared_parsers: dict[str, Parser] = {}
        self._texts = tuple(slot for slot in self.slots if slot.kind is SlotKind.TEXT)
        self._risky = tuple(slot for slot in self._texts if not slot.template.plain_names)
        self._text_columns = frozenset(name for slot in self._texts for name in slot.columns)
        self._prompts = tuple(slot for slot in self.slots if slot.section == "nodes" and slot.path == ("prompt",))
        self._shown = tuple(
            slot for slot in self.slots if slot.section == "nodes" and slot.path in (("prompt",), ("system",))
        )
        self._valued = tuple(
            (place, entry) for place, entry in enumerate(self._entries["anchors"]) if entry.get("value") is not None
        )
        self._vetoed = [(place, entry["id"]) for place, entry in enumerate(self._entries["nodes"]) if entry.get("veto")]
        self.open_nodes = frozenset(
            entry["id"] for entry in self._entries["nodes"] if _reads_classes(entry.get("parser"))
        )
        self._shifted = tuple(
            (place, entry) for place, entry in enumerate(self._entries["relations"]) if "offset" in entry
        )
        own = (("anchors", "value"), ("relations", "offset"), ("nodes", "parser"), ("nodes", "veto"))
        self._alike = not self._vetoed and not any(
            slot.kind is SlotKind.WHEN or (slot.section, slot.path[0]) in own for slot in self.slots
        )
        """No cell decides what reads the answers, or what checks and relations state."""
        self._same_parts: RowParts | InputError | None = None
        later = (SlotKind.EXPRESSION, SlotKind.VERIFIER, SlotKind.LIST)
        self._only_texts_differ = self._alike and not any(slot.kind in later for slot in self.slots)
        self._digested: dict[tuple[Any, ...], list[str] | None] = {}

    @cached_property
    def columns(self) -> frozenset[str]:
        """The columns that the recipe's texts name."""
        return frozenset().union(*(slot.columns for slot in self.slots))

    def pattern(self, row: Cells) -> tuple[Any, ...]:
        """What of this row decides the structure: conditions, prices and other numbers, how many
        choices.
        """
        return tuple(self._read(slot, row, deciding) for slot in self._deciding)

    def faults(self, row: Cells) -> list[str]:
        """Everything that can't be filled in for this row, each with column and line; empty for a
        good row.
        """
        found: list[str] = []

        def attempt(work: Callable[..., Any], *arguments: Any) -> None:
            try:
                work(*arguments)
            except InputError as error:
                found.append(str(error))

        for slot in self._deciding:
            attempt(self._read, slot, row, deciding)
        if found:
            return found
        if not self._alike or not isinstance(self._same_parts, RowParts) or self._same_parts.fault is not None:
            attempt(self.values, row)
            attempt(self.labels, row)
            attempt(self.offsets, row)
        complete = self._text_columns <= row.keys()
        for slot in self._risky if complete else self._texts:
            attempt(self._read, slot, self._scope(slot, row), read_text)
        for slot in self._may_be_empty:
            attempt(self._read, slot, self._scope(slot, row), some_text)
        for place in self._templated:
            attempt(self._parser_of, place, row)
        return list(dict.fromkeys(found))

    def silent(self, row: Cells) -> frozenset[str]:
        """Nodes whose questions are about nothing in this row: every column that they name is
        empty.

        Only where the texts are words and plain placeholders: whoever writes conditions has thought
        of empty cells.
        """
        about: dict[int, list[Slot]] = {}
        for slot in self._shown:
            about.setdefault(slot.place, []).append(slot)
        found = set()
        for place, slots in about.items():
            columns = frozenset().union(*(slot.columns for slot in slots))
            plain = all(slot.template.plain_names and not slot.inner & slot.template.names for slot in slots)
            if columns and plain and all(is_blank(row.get(name)) for name in columns):
                found.add(str(self._entries["nodes"][place]["id"]))
        return frozenset(found)

    def prompts(self, row: Cells) -> dict[str, str]:
        """The prompt of every node of this row's item."""
        there = self._there("nodes", row)
        filled: dict[int, str] = {}
        same: dict[Any, str] = {}  # repeats and models of one ask have one text
        for slot in self._prompts:
            if slot.place in there:
                key = slot.template if not slot.inner else slot
                filled[slot.place] = same[key] if key in same else self._read(slot, self._scope(slot, row), read_text)
                same[key] = filled[slot.place]
        asked = (
            (place, entry) for place, entry in enumerate(self._entries["nodes"]) if place in there and "prompt" in entry
        )
        return {entry["id"]: filled.get(place, entry["prompt"]) for place, entry in asked}

    def rows(self, rows: Iterable[Cells]) -> list[RowParts | InputError]:
        """What many rows make of the recipe; a row that nothing can be read of is its fault."""
        found: list[RowParts | InputError] = []
        for row in rows:
            if self._same_parts is not None:
                found.append(self._same_parts)
                continue
            try:
                found.append(self._parts(row))
                if self._alike:
                    self._same_parts = found[-1]
            except InputError as error:
                found.append(error)
        return found

    def _parts(self, row: Cells) -> RowParts:
        parsers = self.parsers(row)
        try:
            return RowParts(parsers, self.labels(row), {**self.values(row), **self.offsets(row)}, self.vetoes(row))
        except InputError as error:
            return RowParts(parsers, {}, {}, fault=error)

    def parsers(self, row: Cells) -> dict[str, Parser]:
        """What reads the answers of each node that names a parser; one object for all rows where no
        cell decides it.
        """
        there = self._there("nodes", row)
        named = ((place, node) for place, node in enumerate(self._entries["nodes"]) if place in there)
        return {node["id"]: self._parser_of(place, row) for place, node in named if node.get("parser") is not None}

    def vetoes(self, row: Cells) -> dict[str, tuple[Mapping[str, Any], ...]]:
        """What the answers of each node can't be right about, where anything is said of them."""
        there = self._there("nodes", row) if self._vetoed else set()
        return {name: self._veto(place, row) for place, name in self._vetoed if place in there}

    def _veto(self, place: int, row: Cells) -> tuple[Mapping[str, Any], ...]:
        node = self._entries["nodes"][place]
        rules = self._filled("nodes", place, node["veto"], ("veto",), row)
        if any("returns" in rule for rule in rules):
            spec = self._parser_of(place, row).spec if node.get("parser") is not None else None
            rules = [with_tests(rule, spec) for rule in rules]
        return tuple(placed(rule, self.recipe.folder) for rule in rules)

    def check_vetoes(self) -> None:
        """InputError for a table of keys that is not there."""
        for place, name in self._vetoed:
            try:
                check_rules(self._entries["nodes"][place]["veto"], folder=self.recipe.folder)
            except InputError as error:
                raise InputError(f"{error} ({self.recipe.where(name, 'veto')})") from None

    def values(self, row: Cells) -> dict[str, Numbers]:
        """The values of the checks that the row knows, by anchor; those of open answers are
        `labels`.
        """
        known = self._known(row)
        return {entry["id"]: self._value(place, entry, row) for place, entry in known if not self._is_open(entry)}

    def labels(self, row: Cells) -> dict[str, str]:
        """The classes that the row's checks of open answers name, by anchor."""
        if not self.open_nodes:
            return {}
        known = [(place, entry) for place, entry in self._known(row) if self._is_open(entry)]
        return {entry["id"]: self._label(place, entry, row) for place, entry in known}

    def offsets(self, row: Cells) -> dict[str, Numbers]:
        """The offsets of the relations that declare one, by relation."""
        there = self._there("relations", row)
        found: dict[str, Numbers] = {}
        for place, entry in self._shifted:
            if place in there:
                filled = self._filled("relations", place, entry["offset"], ("offset",), row)
                found[entry["id"]] = tuple(filled) if isinstance(filled, list) else filled
        return found

    def document(self, row: Cells) -> dict[str, Any]:
        """The whole problem file of this row's item."""
        document: dict[str, Any] = {"problem": self._filled("problem", 0, self._entries["problem"][0], (), row)}
        for section in SECTIONS:
            there = self._there(section, row)
            listed = [(place, entry) for place, entry in enumerate(self._entries[section]) if place in there]
            if listed:
                document[section] = [self._entry(section, place, entry, row) for place, entry in listed]
        values, labels = self.values(row), self.labels(row)
        for anchor in document.get("anchors", ()):
            if anchor.get("node") in self.open_nodes:
                anchor.pop("value", None)  # a class means something beside the answers of its item only
                if anchor["id"] in labels:
                    anchor["source"] = {"label": labels[anchor["id"]]}
            elif anchor["id"] in values:
                value = values[anchor["id"]]
                anchor["value"] = list(value) if isinstance(value, tuple) else value
        if _suspects(self._entries) and not _suspects(document):
            document["problem"].pop("wrong_checks", None)  # the checks that may be wrong are not there for this row
        return document

    def digest(self, row: Cells) -> str:
        """SHA-256 of `document`; of rows that differ in texts, by the JSON of one with gaps."""
        if not self._only_texts_differ:
            return canonical_digest(self.document(row))
        pattern = self.pattern(row)
        if pattern not in self._digested:
            whole, parts = canonical_digest(self.document(row)), self._with_gaps(row)
            self._digested[pattern] = parts if self._digest(parts, row) == whole else None
            return whole
        known = self._digested[pattern]
        return canonical_digest(self.document(row)) if known is None else self._digest(known, row)

    def _with_gaps(self, row: Cells) -> list[str]:
        """The canonical JSON of a row: words, the place of a text among `_texts`, words, ..."""
        filler, told = copy(self), {id(slot): f"\ue000{at}\ue001" for at, slot in enumerate(self._texts)}
        filler._read = lambda slot, row, read: (  # type: ignore[method-assign]
            told[id(slot)] if id(slot) in told and read is read_text else self._read(slot, row, read)
        )
        return re.split(r"\\ue000(\d+)\\ue001", canonical_json(filler.document(row)))

    def _digest(self, parts: list[str], row: Cells) -> str:
        same: dict[Any, str] = {}
        found = parts[:]
        for at in range(1, len(parts), 2):
            slot = self._texts[int(parts[at])]
            key = slot.template if not slot.inner else slot
            if key not in same:
                same[key] = json.dumps(self._read(slot, self._scope(slot, row), read_text))[1:-1]
            found[at] = same[key]
        return hashlib.sha256("".join(found).encode()).hexdigest()

    def problem(self, row: Cells, *, name: str) -> Problem:
        """The problem of this row's item, checked; InputError leads back to the recipe.

        `name` where the recipe gives none.
        """
        document = self.document(row)
        document["problem"].setdefault("name", name)
        try:
            return from_document(document)
        except InputError as error:
            raise InputError(self.back(str(error))) from None

    def back(self, message: str) -> str:
        """A message about a node, a block or the problem in the words of the recipe, with the entry
        and line that it came from.
        """
        named = re.match(r"(?:node|relation|anchor|rule|tier|noise) '([^']+)'", message)
        if named is not None:
            return f"{message} ({self.recipe.where(named[1])})"
        whole = re.match(r"\[problem\]: (\w+)", message)
        origin = self.recipe.origins.get("")
        if whole is None or origin is None or origin.section != "answer":
            return f"{message} ({self.recipe.where('')})"
        return (
            f"[answer]: {ANSWER_KEYS.get(whole[1], whole[1])}{message[whole.end() :]}"
            f" ({self.recipe.where('', whole[1])})"
        )

    def parser(self, place: int, spec: Any) -> Parser:
        """The parser that a node names."""
        try:
            key = repr(spec)
            if key not in self._shared_parsers:  # with it, what was read of equal texts
                self._shared_parsers[key] = parsers.get(spec)
            return self._shared_parsers[key]
        except InputError as error:
            raise InputError(self.back(f"node {self._entries['nodes'][place]['id']!r}: {error}")) from None

    def _there(self, section: str, row: Cells) -> set[int]:
        """Places of the entries that this row has: their conditions hold, and so do those of the
        nodes they speak of.
        """
        listed = self._entries[section]
        found = set(range(len(listed))) - self._absent(section, row)
        if section in ("relations", "anchors") and self._conditions["nodes"]:
            gone = {self._entries["nodes"][place]["id"] for place in self._absent("nodes", row)}
            found = {place for place in found if not gone.intersection(_ends(listed[place]))}
        return found

    def _absent(self, section: str, row: Cells) -> set[int]:
        return {slot.place for slot in self._conditions[section] if not self._read(slot, row, read_condition)}

    def _scope(self, slot: Slot, row: Cells) -> Cells:
        """The row, and the node's own variables where it has some."""
        if slot.section != "nodes" or slot.path[0] == "variables":
            return row
        own = self._entries["nodes"][slot.place].get("variables")
        return {**row, **self._variables([slot.place], row)} if own else row

    def _variables(self, places: list[int], row: Cells) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for place in places:
            own = self._entries["nodes"][place].get("variables") or {}
            found |= self._filled("nodes", place, own, ("variables",), row)
        return found

    def _entry(self, section: str, place: int, entry: Mapping[str, Any], row: Cells) -> dict[str, Any]:
        # A filled-in node has no variables: its texts are filled in already, and nothing in them is
        # a template.
        kept = {key: value for key, value in entry.items() if key not in ("when", "variables")}
        found: dict[str, Any] = self._filled(section, place, kept, (), row)
        if section == "nodes" and "dim" not in found and isinstance(found.get("parser"), str | dict):
            dim = self.parser(place, found["parser"]).dim
            found |= {"dim": dim} if dim > 1 else {}
        if section == "nodes" and "veto" in found:
            found["veto"] = list(self._veto(place, row))
        if section == "anchors" and isinstance(found.get("source"), str | dict):
            found["source"] = self._source(place, entry, found["source"], row)
        return found

    def _filled(self, section: str, place: int, value: Any, path: Path, row: Cells) -> Any:
        if isinstance(value, dict):
            return {key: self._filled(section, place, item, (*path, key), row) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._filled(section, place, item, (*path, at), row) for at, item in enumerate(value)]
        slot = self._at[section].get((place, path))
        if slot is None or slot.kind in _LATER:
            return value
        read: Callable[[Slot, Cells], Any] = {SlotKind.TEXT: read_text, SlotKind.LIST: read_list}.get(
            slot.kind, read_number
        )
        return self._read(slot, self._scope(slot, row), read)

    def _known(self, row: Cells) -> list[tuple[int, Mapping[str, Any]]]:
        """The checks that name a value and that this row has."""
        there = self._there("anchors", row)
        return [(place, entry) for place, entry in self._valued if place in there]

    def _is_open(self, anchor: Mapping[str, Any]) -> bool:
        """Whether an anchor speaks of a node whose answers are classes, to be compared within the
        item.
        """
        return anchor.get("node") in self.open_nodes

    def _label(self, place: int, entry: Mapping[str, Any], row: Cells) -> str:
        slot = self._at["anchors"].get((place, ("value",)))
        parser, _ = self._node_parser(entry, row)
        assert parser is not None
        text = (
            str(entry["value"]) if slot is None else self._read(slot, row, lambda slot, row: slot.template.value(row))
        )
        found = parse_stated(parser, str(text))
        if found.label is None:
            raise InputError(
                f"check {entry['id']!r}: {str(text)!r:.60} is no answer to the parser {parser.name!r}: {found.detail}"
            )
        return found.label

    def _source(self, place: int, entry: Mapping[str, Any], source: Any, row: Cells) -> Any:
        """A source with the variables that it needs beside it."""
        looked_at = _ends(entry)
        places = [at for at, node in enumerate(self._entries["nodes"]) if node["id"] in looked_at]
        scope = {**row, **self._variables(places, row)}
        for slot in self._at["anchors"].values():
            if slot.place == place and slot.kind is SlotKind.EXPRESSION:
                text = self._read(slot, scope, read_text)
                table = {} if isinstance(source, str) else dict(source)
                text = text.partition(":")[2].strip() if isinstance(source, str) else text
                words = {word for word in _WORD.findall(text) if word in scope}
                used = {word: self._read(slot, {word: scope[word]}, _variable) for word in sorted(words)}
                used |= table.pop("variables", {})
                return {**table, "expression": text} | ({"variables": used} if used else {})
            if slot.place == place and slot.kind is SlotKind.VERIFIER:
                used = {name: as_plain(scope[name]) for name in sorted(slot.template.names) if name in scope}
                used |= source.get("variables", {})
                return {**source} | ({"variables": used} if used else {})
        return source

    def _value(self, place: int, entry: Mapping[str, Any], row: Cells) -> Numbers:
        """A check's value: numbers read strictly, or an answer in the words of the node's own
        parser (a choice, yes).
        """
        given, at = entry["value"], self._at["anchors"]
        if isinstance(given, list):
            listed = ((at.get((place, ("value", index))), one) for index, one in enumerate(given))
            return tuple(float(one) if slot is None else self._read(slot, row, read_number) for slot, one in listed)
        slot = at.get((place, ("value",)))
        if slot is None:
            return float(given)
        found: Numbers = self._read(slot, row, lambda slot, row: self._worded(entry, slot.template.value(row), row))
        return found

    def _worded(self, anchor: Mapping[str, Any], cell: Any, row: Cells) -> Numbers:
        if isinstance(cell, list | tuple):
            return tuple(strict_number(one) for one in cell)
        parser, dim = self._node_parser(anchor, row)
        empty = cell is None or not str(cell).strip()
        if dim == 1:
            try:
                return strict_number(cell)
            except ValueError:
                if parser is None or empty:
                    raise
        if parser is None or empty:
            raise ValueError("is empty" if empty else f"is one value where the node has {dim}")
        parsed = parse_stated(parser, str(cell))
        if parsed.value is None or not parsed.strict_ok:
            number = "neither a number nor" if dim == 1 else "not"
            raise ValueError(f"is {str(cell)!r:.60}, {number} an answer to the parser {parser.name!r}")
        return parsed.value if dim > 1 else parsed.value[0]

    def _node_parser(self, anchor: Mapping[str, Any], row: Cells) -> tuple[Parser | None, int]:
        """The parser of the node that an anchor looks at, if it names one, and the node's
        dimension.
        """
        for place, node in enumerate(self._entries["nodes"]):
            if node["id"] == anchor.get("node"):
                if node.get("parser") is None:
                    return None, int(node.get("dim", 1))
                parser = self._parser_of(place, row)
                return parser, parser.dim
        return None, 1

    def _parser_of(self, place: int, row: Cells) -> Parser:
        if place not in self._same_parsers:
            spec = self._filled("nodes", place, self._entries["nodes"][place]["parser"], ("parser",), row)
            made = self.parser(place, spec)
            if place in self._templated:
                return made
            self._same_parsers[place] = made
        return self._same_parsers[place]

    def _read(self, slot: Slot, row: Cells, read: Callable[[Slot, Cells], Any]) -> Any:
        """Read a slot; a fault names the column and the line of the recipe."""
        try:
            return read(slot, row)
        except InputError as error:
            message = str(error)
            raise InputError(message if slot.where in message else f"{message} ({slot.where})") from None
        except ValueError as error:
            names = ", ".join(map(repr, sorted(slot.template.names)))
            raise InputError(f"{f'column {names} ' if names else ''}{error} ({slot.where})") from None


def _variable(slot: Slot, row: Cells) -> int | float:
    ((name, cell),) = row.items()
    return read_exactly(name, cell)


def _reads_classes(spec: Any) -> bool:
    """Whether answers are classes: each is compared with the other answers of its item, and with
    nothing else.
    """
    from rrf_design.questions._shortform import static_dim

    try:
        return static_dim(spec) == 0
    except InputError:  # its options come from the row, or it is faulty, which is said where it is used
        return False


def _ends(entry: Mapping[str, Any]) -> list[Any]:
    several = [*(entry.get("nodes") or ()), *(entry.get("sum") or ()), *(entry.get("difference") or ())]
    if isinstance(entry.get("rows"), dict):
        several += entry["rows"]
    return [entry.get("tail"), entry.get("head"), entry.get("node"), *several]


def check_recipe(filler: Filler) -> None:
    """Refuse a recipe that no row could make a problem of; placeholders are taken for 1, or for a
    list of two.
    """
    document: dict[str, Any] = deepcopy(dict(filler.recipe.long))
    for slot in filler.slots:
        place: Any = document["problem"] if slot.section == "problem" else document[slot.section][slot.place]
        for key in slot.path[:-1]:
            place = place[key]
        if slot.kind is SlotKind.VALUE:
            del place[slot.path[-1]]  # a number, or as many as the parser reads
        elif slot.kind is SlotKind.NUMBER:
            place[slot.path[-1]] = 1.0
        elif slot.kind is SlotKind.LIST:
            place[slot.path[-1]] = [[1], [2]] if slot.path[-1] == "tests" else ["1", "2"]
    for node in document.get("nodes", ()):
        try:
            check_rules(node.get("veto", ()))
        except InputError as error:
            raise InputError(f"{error} ({filler.recipe.where(node.get('id', ''), 'veto')})") from None
    for section in ("nodes", "relations", "anchors"):
        for at, entry in enumerate(document.get(section, ())):
            if not isinstance(entry.get("id"), str) or not entry["id"]:
                raise InputError(f"{section.removesuffix('s')} number {at + 1}: id is missing")
            entry.pop("when", None)
            if section == "nodes" and "dim" not in entry and isinstance(entry.get("parser"), str | dict):
                entry["dim"] = max(1, filler.parser(at, entry["parser"]).dim)  # of classes there is one at least
    try:
        from_document(document)
    except InputError as error:
        raise InputError(filler.back(str(error))) from None


def check_columns(filler: Filler, columns: Collection[str], table: str) -> None:
    """Every placeholder names a column, the gold column is not among them, and no `{column}` is
    there for `{{ column }}`.
    """
    golds = filler.recipe.data.gold_columns
    for slot in filler.slots:
        for gold in slot.columns.intersection(golds):
            raise InputError(f"{slot.where}: {gold!r} is the gold column, which no question and no check may see")
        for name in sorted(slot.columns - set(columns)):
            raise InputError(f"{table}: no column {name!r}{suggestion(name, columns)} ({slot.where})")
        try:
            slot.template.refuse_single_braces(columns)
        except InputError as error:
            raise InputError(f"{error} ({slot.where})") from None
