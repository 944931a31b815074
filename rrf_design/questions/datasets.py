"""A data set: a recipe and a table, as a mapping from id to `Problem` that is never in memory as a
whole.

Opening it goes through the table once: ids, and whatever a row must have for its item to be filled
in, all bad rows named together. What it keeps is one problem per structure and a few bytes per id.
Going through `items` again costs a row each: its pattern is looked up, and prompts, values and the
problem are made when they are asked for.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import ItemsView, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from rrf_design._shown import Shown
from rrf_design.errors import InputError
from rrf_design.files import suggestion
from rrf_design.problem import Problem
from rrf_design.questions.filling import Filler, Numbers, check_columns
from rrf_design.questions.recipe import Recipe, as_recipe
from rrf_design.questions.tables import Cells, DataTable, RowFaults, need_column, open_table
from rrf_design.responses.parsed import Parser
from rrf_design.structure import structure_key


@dataclass(frozen=True, slots=True)
class ItemClass:
    """What the items of one structure share: a key, one of their problems as an example, and how
    many they are.
    """

    key: str
    example: Problem
    count: int


class DataItem:
    """One row as an item.

    Its problem and the parts of it are made when they are asked for, and not kept.
    """

    __slots__ = ("_dataset", "cells", "id", "number", "structure")

    def __init__(self, dataset: Dataset, number: int, name: str, cells: Cells, structure: str) -> None:
        self._dataset, self.number, self.id, self.cells, self.structure = dataset, number, name, cells, structure

    @property
    def seen(self) -> Cells:
        """The cells that questions and checks may see: all but the truth."""
        return self._dataset._seen(self.cells)

    @property
    def shown(self) -> dict[str, Any]:
        """The cells that the texts of the recipe are made from: all that anybody is asked about."""
        return {name: self.cells.get(name) for name in sorted(self._dataset._filler.columns)}

    @property
    def problem(self) -> Problem:
        """Everything filled in and checked."""
        return self._dataset._problem(self.number, self.id, self.cells)

    @property
    def prompts(self) -> dict[str, str]:
        """By node."""
        return self._dataset._filler.prompts(self._dataset._seen(self.cells))

    @property
    def silent(self) -> frozenset[str]:
        """Nodes that have nothing to ask about: every column that their texts name is empty in this
        row.
        """
        return self._dataset._filler.silent(self._dataset._seen(self.cells))

    @property
    def values(self) -> dict[str, Numbers]:
        """Of the checks that the row knows, by anchor."""
        return self._dataset._filler.values(self._dataset._seen(self.cells))

    @property
    def labels(self) -> dict[str, str]:
        """The classes that checks of open answers name, by anchor."""
        return self._dataset._filler.labels(self._dataset._seen(self.cells))

    @property
    def offsets(self) -> dict[str, Numbers]:
        """Of the relations that declare one, by relation."""
        return self._dataset._filler.offsets(self._dataset._seen(self.cells))

    @property
    def parsers(self) -> dict[str, Parser]:
        """What reads the answers of each node that names a parser."""
        return self._dataset._filler.parsers(self._dataset._seen(self.cells))

    @property
    def vetoes(self) -> dict[str, tuple[Mapping[str, Any], ...]]:
        """What the answers of each node can't be right about."""
        return self._dataset._filler.vetoes(self._dataset._seen(self.cells))

    @property
    def digest(self) -> str:
        """SHA-256 of everything that is asked and checked about it: another row, prompt or check is
        another digest.
        """
        return self._dataset._filler.digest(self._dataset._seen(self.cells))

    @property
    def golds(self) -> dict[str, Any]:
        """The truth by node, where several fields are delivered."""
        return {node: self.cells.get(column) for node, column in self._dataset.recipe.data.gold_fields.items()}

    @property
    def gold(self) -> Any:
        """The truth, for pilots and audits; None where the recipe names no column for it."""
        column = self._dataset.recipe.data.gold_column
        return None if column is None else self.cells.get(column)

    def __repr__(self) -> str:
        return f"DataItem({self.id!r}, row {self.number})"


@dataclass(frozen=True, slots=True)
class _Survey:
    """What the first pass found."""

    total: int
    columns: tuple[str, ...]
    classes: Mapping[str, ItemClass]
    by_pattern: Mapping[tuple[Any, ...], str] = field(repr=False)


class Dataset(Mapping[str, Problem], Shown):
    """See the module. `limit`, `sample` and `only` give smaller data sets over the same table."""

    def __init__(self, recipe: Recipe, table: DataTable) -> None:
        self.recipe, self.table = recipe, table
        self._filler = Filler(recipe)
        self._kept: frozenset[int] | None = None
        self._survey = self._look()

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns of the table, in order."""
        return self._survey.columns

    @property
    def fields(self) -> tuple[str, ...]:
        """The delivered nodes, where they are several: fields of one document."""
        return self.recipe.fields

    def refuse_several(self, what: str) -> None:
        """InputError where several fields are delivered and something speaks of one value a row."""
        if self.fields:
            raise InputError(
                f"{self.recipe.name}: {what} speaks of one value a row, and this recipe delivers {len(self.fields)}"
                f" ({', '.join(self.fields)}); give it a recipe whose [answer] is one of them. repair and acquire take"
                " all of them together"
            )

    @cached_property
    def structures(self) -> Mapping[str, ItemClass]:
        """The classes of items that share everything but texts, offsets and values, by key."""
        if self._kept is None:
            return self._survey.classes
        counts: dict[str, int] = {}
        for item in self.items_in_order():
            counts[item.structure] = counts.get(item.structure, 0) + 1
        known = self._survey.classes
        return {key: ItemClass(key, known[key].example, count) for key, count in counts.items()}

    def items_in_order(self) -> Iterator[DataItem]:
        """Every item, in the order of the table, one at a time."""
        faults = RowFaults(self.table.name)
        last = max(self._kept, default=0) if self._kept is not None else None
        for number, cells, _ in self.table.rows(faults):
            if last is not None and number > last:
                return
            if self._kept is None or number in self._kept:
                yield self._item(number, cells)
        faults.refuse(self._survey.total)

    @property
    def whole(self) -> Dataset:
        """The data set that this one is a part of, or itself."""
        return self if self._kept is None else self._part(None)

    def item(self, name: str) -> DataItem:
        """The item of this id; InputError with the nearest one."""
        if name not in self._index:
            raise InputError(f"{self.table.name}: no item {name!r}{suggestion(name, self._index)}")
        number, place = self._index[name]
        return self._item(number, self.table.at(number, place))

    def __getitem__(self, name: str) -> Problem:
        if name not in self._index:
            raise KeyError(name)
        return self.item(name).problem

    def __iter__(self) -> Iterator[str]:
        return (item.id for item in self.items_in_order())

    def __len__(self) -> int:
        return self._survey.total if self._kept is None else len(self._kept)

    def __contains__(self, name: object) -> bool:
        return name in self._index

    def items(self) -> ItemsView[str, Problem]:
        """Ids with their problems, in the order of the table, made one at a time."""
        return _StreamedItems(self)

    def limit(self, count: int) -> Dataset:
        """The first `count` items."""
        if count < 1:
            raise InputError(f"limit: {count} items; give 1 or more")
        return self._part(frozenset(self._numbers()[:count]))

    def sample(self, count: int, *, seed: int = 0) -> Dataset:
        """So many items at random, in the order of the table; the same for the same seed."""
        if count < 1:
            raise InputError(f"sample: {count} items; give 1 or more")
        numbers = self._numbers()
        return self._part(frozenset(random.Random(seed).sample(numbers, min(count, len(numbers)))))

    def only(self, names: Any) -> Dataset:
        """The items of these ids."""
        wanted = [names] if isinstance(names, str) else list(names)
        return self._part(frozenset(self.item(name).number for name in wanted))

    def __getstate__(self) -> dict[str, Any]:
        """Without the index, which is made again where it is needed."""
        return {name: value for name, value in self.__dict__.items() if name != "_index"}

    def _line(self) -> str:
        counts = f"{len(self)} items, {len(self._survey.classes)} structures"
        return f"{self.recipe.name!r}, {self.table.name!r}: {counts}"

    def _numbers(self) -> range | list[int]:
        return range(1, self._survey.total + 1) if self._kept is None else sorted(self._kept)

    def _part(self, kept: frozenset[int] | None) -> Dataset:
        part = object.__new__(Dataset)
        part.recipe, part.table, part._filler, part._survey = self.recipe, self.table, self._filler, self._survey
        part._kept = kept
        return part

    @cached_property
    def _index(self) -> dict[str, tuple[int, int]]:
        """Row number and place by id: made when an item is first asked for by name."""
        rows = self.table.rows(RowFaults(self.table.name))
        return {
            self._id(number, cells): (number, place)
            for number, cells, place in rows
            if self._kept is None or number in self._kept
        }

    def _item(self, number: int, cells: Cells) -> DataItem:
        structure = self._survey.by_pattern[self._filler.pattern(cells)]
        return DataItem(self, number, self._id(number, cells), cells, structure)

    def _problem(self, number: int, name: str, cells: Cells) -> Problem:
        try:
            return self._filler.problem(self._seen(cells), name=name)
        except InputError as error:
            raise InputError(f"{self.table.name}: row {number}: {error}") from None

    def _seen(self, cells: Cells) -> Cells:
        """What questions and checks may see of a row: all but the truth."""
        golds = self.recipe.data.gold_columns
        return {name: cell for name, cell in cells.items() if name not in golds} if golds else cells

    def _id(self, number: int, cells: Cells) -> str:
        column = self.recipe.data.id
        if column is None:
            return str(number)
        return row_id(column, cells.get(column))

    def _look(self) -> _Survey:
        """The first pass: every fault of every row, and the structures."""
        table, data = self.table, self.recipe.data
        self._filler.check_vetoes()
        for column, role in ((data.id, "id"), *((gold, "gold") for gold in data.gold_columns)):
            if column is not None:
                need_column(table, column, role)
        if table.columns is not None:
            check_columns(self._filler, table.columns, table.name)
        faults, survey, ids = RowFaults(table.name), _Counting(self._filler), _Ids()
        columns: dict[str, None] = dict.fromkeys(table.columns or ())
        total = 0
        for number, cells, _ in table.rows(faults):
            total += 1
            if table.columns is None:
                columns.update(dict.fromkeys(cells))
            try:
                if data.id is not None:
                    ids.note(self._id(number, cells))
                for fault in survey.note(number, self._seen(cells)):
                    faults.add(number, fault)
            except InputError as error:
                faults.add(number, str(error))
        if table.columns is None and columns:
            check_columns(self._filler, columns, table.name)
        total += faults.unread
        if repeated := ids.repeated():
            self._name_repeated(faults, repeated)
        faults.refuse(total)
        if total == 0:
            raise InputError(f"{table.name}: holds no rows")
        return survey.survey(total, tuple(columns))

    def _name_repeated(self, faults: RowFaults, hashes: set[int]) -> None:
        """A second pass over what may be repeated: equal hashes are a suspicion, equal ids a
        fault.
        """
        first: dict[str, int] = {}
        for number, cells, _ in self.table.rows(RowFaults("")):
            try:
                name = self._id(number, cells)
            except InputError:
                continue
            if hash(name) in hashes and first.setdefault(name, number) != number:
                faults.add(number, f"the id {name!r} stands in row {first[name]} already; ids must be unique")


class _StreamedItems(ItemsView[str, Problem]):
    def __init__(self, dataset: Dataset) -> None:
        super().__init__(dataset)
        self._dataset = dataset

    def __iter__(self) -> Iterator[tuple[str, Problem]]:
        return ((item.id, item.problem) for item in self._dataset.items_in_order())


class _Ids:
    """Hashes of ids, eight bytes each, where the ids may be long."""

    def __init__(self) -> None:
        self._marks = array("q")

    def note(self, name: str) -> None:
        self._marks.append(hash(name))

    def repeated(self) -> set[int]:
        """The hashes that stand there twice."""
        import numpy as np

        marks = np.frombuffer(self._marks, np.int64)
        marks.sort()
        return set(marks[1:][marks[1:] == marks[:-1]].tolist())


class _Counting:
    """Counts rows by pattern, and makes one problem of the first row of each."""

    def __init__(self, filler: Filler) -> None:
        self.filler = filler
        self.keys: dict[tuple[Any, ...], str] = {}
        self.examples: dict[str, Problem] = {}
        self.counts: dict[str, int] = {}

    def note(self, number: int, cells: Cells) -> list[str]:
        """The faults of this row."""
        found = self.filler.faults(cells)
        if found:
            return found
        pattern = self.filler.pattern(cells)
        if pattern not in self.keys:
            example = self.filler.problem(cells, name="example")
            key = structure_key(example)
            self.keys[pattern] = key
            self.examples.setdefault(key, example)
        key = self.keys[pattern]
        self.counts[key] = self.counts.get(key, 0) + 1
        return []

    def survey(self, total: int, columns: tuple[str, ...]) -> _Survey:
        classes = {key: ItemClass(key, self.examples[key], count) for key, count in self.counts.items()}
        return _Survey(total, columns, classes, self.keys)


def dataset(recipe: Any, table: Any = None) -> Dataset:
    """A recipe over a table: one problem for each row.

    Parameters
    ----------
    recipe
        A path, the content of a recipe's file, or a `Recipe`.
    table
        A path, a data frame, or any iterable of mappings; by default the table that the recipe
        names in [data], beside the recipe.

    Returns
    -------
    A mapping from item id to `Problem`; items that differ in texts and values only share their
    structure.

    >>> import rrf_design as rrf
    >>> recipe = {
    ...     "answer": {"of": "total", "tolerance": 0.005},
    ...     "ask": [
    ...         {"id": "total", "prompt": "{{ text }} Total?", "parse": "decimal"},
    ...         {"id": "again", "like": "total", "prompt": "Sum {{ text }}?", "parse": "decimal"},
    ...     ],
    ... }
    >>> items = rrf.dataset(recipe, [{"text": "1 + 2"}, {"text": "2 + 2"}])
    >>> len(items), len(items.structures)
    (2, 1)
    """
    recipe = as_recipe(recipe)
    if table is None:
        if recipe.data.table is None:
            raise InputError(f"{recipe.name}: it names no table; give one with --data, or as table in [data]")
        table = Path(recipe.folder) / recipe.data.table
    found = open_table(table, separator=recipe.data.separator, encoding=recipe.data.encoding)
    return Dataset(recipe, found)


def row_id(column: str, cell: Any) -> str:
    """The id that a cell is; InputError for one that can't be."""
    if isinstance(cell, bool) or not isinstance(cell, str | int) or not str(cell).strip():
        raise InputError(_bad_id(column, cell))
    return str(cell)


def _bad_id(column: str, cell: Any) -> str:
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return f"the id in column {column!r} is empty"
    return f"the id in column {column!r} is {cell!r:.40}; ids are text or whole numbers"
