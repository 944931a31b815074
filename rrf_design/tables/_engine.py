"""The engine that repairs a table: items are read a chunk at a time, decoded together with what
their structures share, and written as rows into a checkpoint.

Everything that depends on a structure alone (margins, factorisations, null spaces, tables of
supports) is made once and kept for the chunks that follow. Chunks are the same whatever `n_jobs` is
and wherever an earlier run stopped, so the result is the same to the last bit. One item that can't
be used is one row that says so, and never ends the work on the others.

Memory does not grow with the table: the checkpoint keeps rows in a file that can be read again, one
JSON line for each item, in the order of the table, after a line that says what they belong to. A
run that was cut short goes on after the last whole chunk.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
import weakref
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from rrf_design.arguments import seconds_of
from rrf_design.checks import decides, rows_of, worth_of
from rrf_design.derive import field_problems, with_classes
from rrf_design.errors import InputError
from rrf_design.files import canonical_digest
from rrf_design.noise import Noise, stated_within
from rrf_design.problem import Problem
from rrf_design.questions.answers import RawItem, RecordedAnswers
from rrf_design.questions.datasets import Dataset
from rrf_design.questions.filling import Filler, RowParts
from rrf_design.questions.recipe import Recipe
from rrf_design.questions.reviews import Reviews, read_reviews
from rrf_design.repairing import (
    KEPT,
    Agreed,
    AgreementPatterns,
    Field,
    Numbers,
    RepairEngine,
    ResponseField,
    SharedDesign,
    Sorted,
)
from rrf_design.repairing.contract import Prepared, Repair, WorkSettings
from rrf_design.responses.open_text import Classes
from rrf_design.responses.parsed import Parser, labelled
from rrf_design.responses.parsers import reviewed_value
from rrf_design.tables.delivered import Delivery
from rrf_design.tables.items import ItemTemplate, Reading, classes_of, field_of, read_answers, without_vetoed
from rrf_design.tables.rows import Row, joined_row, repaired_row, reviewed_row, shown_value, unusable_row
from rrf_design.texts import escaped, json_text
from rrf_design.workers import in_chunks

if TYPE_CHECKING:
    from solvers.result import Progress

IN_MEMORY = 2**24
"""Bytes of rows that need no file, where none is named."""


class Checkpoint:
    """The rows of a data set. It is closed with the last one who holds it; a named file stays."""

    def __init__(self, path: str | os.PathLike[str] | None, *, about: Mapping[str, Any], chunk: int) -> None:
        self.path, self.count, self._chunk = path, 0, chunk
        head = (json_text({"rows of": about}, sort_keys=True) + "\n").encode()
        self._start = len(head)
        if path is None:
            self._file: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115
            weakref.finalize(self, self._file.close)
            self._file.write(head)
            return
        try:
            known = Path(path).exists() and Path(path).stat().st_size > 0
            self._file = Path(path).open("r+b" if known else "w+b")  # noqa: SIM115
        except OSError as error:
            raise InputError(f"{path}: can't be used to resume from ({error.strerror})") from None
        weakref.finalize(self, self._file.close)
        if not known:
            self._file.write(head)
        else:
            self._take_up(head)

    def _take_up(self, head: bytes) -> None:
        """Keep the whole chunks of an earlier run, if it was of the same data."""
        if self._file.readline() != head:
            raise InputError(
                f"{self.path}: it belongs to another recipe, table, set of answers or setting; resume with what it was"
                " begun with, or name another file"
            )
        place, kept, seen = self._start, self._start, 0
        for line in self._file:
            if not line.endswith(b"\n"):
                break
            place, seen = place + len(line), seen + 1
            if seen % self._chunk == 0:
                kept, self.count = place, seen
        self._file.seek(kept)
        self._file.truncate()

    def add(self, rows: Iterable[Row]) -> None:
        """Rows of one chunk."""
        lines = [json.dumps(row.to_json(), ensure_ascii=False) + "\n" for row in rows]
        self._file.seek(0, os.SEEK_END)
        self._file.write(escaped("".join(lines)).encode())
        self._file.flush()
        self.count += len(lines)

    def __iter__(self) -> Iterator[Row]:
        """All rows, in order. Several may go through it at once."""
        place = self._start
        while True:
            self._file.seek(place)
            lines = self._file.readlines(2**20)
            if not lines:
                return
            place += sum(map(len, lines))
            for line in lines:
                yield Row.from_json(json.loads(line))


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """How items are repaired: as `rrf_design.repairing` is told."""

    select: tuple[str, ...] | str | None = None
    method: str = "auto"
    k: int | None = None
    noise: Noise | None = None
    work: WorkSettings = field(default_factory=WorkSettings)


@dataclass(slots=True)
class _Item:
    """A field of an item on its way through a batch: what was read of it, its task, or its row."""

    raw: RawItem
    template: ItemTemplate
    parts: RowParts | None = None
    readings: dict[str, Reading] = field(default_factory=dict)
    classes: Classes | None = None
    selected: tuple[str, ...] = ()
    broken: Mapping[str, str] = field(default_factory=dict)
    """By node: what its answer can't be right about."""
    several: bool = False
    """It is one of several fields."""
    design: SharedDesign | None = None
    values: Mapping[str, Numbers] = field(default_factory=dict)
    """What its checks and relations state."""
    answered: ResponseField | None = None
    task: Prepared | None = None
    """Where it was repaired by itself: items with equal answers and checks share one."""
    found: Repair | Agreed | None = None
    """What its repair says."""
    row: Row | None = None

    @property
    def node(self) -> str:
        return self.template.node

    @property
    def said(self) -> Any:
        """What was answered about the delivered value, as it was answered."""
        reading = self.readings.get(self.node)
        return None if reading is None else reading.said if self.several else reading.raw

    @property
    def parser(self) -> Parser | None:
        return None if self.parts is None else self.parts.parsers.get(self.node)


class TableEngine:
    """Repairs items of one recipe. `examples` has one problem for each structure. Not
    thread-safe.
    """

    def __init__(self, recipe: Recipe, examples: Mapping[str, Problem], settings: EngineSettings) -> None:
        self.settings = settings
        self._filler = Filler(recipe)
        self._engine = RepairEngine(method=settings.method, table=True)
        self._patterns: dict[tuple[SharedDesign, tuple[tuple[str, str], ...]], AgreementPatterns] = {}
        self._short = True
        """Equal agreement patterns are judged once; tests compare with what is said without it."""
        self._whole: dict[str, ItemTemplate] = {}
        """By structure: what all fields of an item share, so what it costs."""
        self._templates: dict[tuple[str, frozenset[str]], tuple[ItemTemplate, ...]] = {}
        """By structure, and what is held of its links: one template for each delivered field."""
        self._links: dict[str, frozenset[str]] = {}
        """By structure: what is on sale, where some of it would join fields."""
        self._chosen: dict[str, frozenset[str]] = {}
        for key, example in examples.items():
            self.learn(key, example)

    def learn(self, structure: str, example: Problem) -> None:
        """A structure that items may have; what no item of it can have is said at once."""
        whole, select = ItemTemplate(example, self._filler.open_nodes), self.settings.select
        chosen = () if select is None else whole.problem.resolve(select)
        _ = whole.problem.structure
        with_classes(whole.problem, self._filler.open_nodes, 1)
        self._whole[structure], self._chosen[structure] = whole, frozenset(chosen) - whole.on_sale
        priced = frozenset(entry.id for entry in (*example.nodes, *example.blocks) if entry.cost is not None)
        self._links[structure] = frozenset() if field_problems(example) == field_problems(example, priced) else priced

    def _templates_of(self, item: _Item) -> tuple[ItemTemplate, ...]:
        """One for each delivered field: what was asked or said of an item may join some."""
        structure, problem, held = item.raw.structure, item.template.problem, frozenset[str]()
        if links := self._links[structure]:
            asked = (problem.asked_as(name) for name in item.raw.answers if name in problem.node_by_id)
            held = self._chosen[structure].union(item.raw.reviews, asked) & links
        if (structure, held) not in self._templates:
            fields, free = field_problems(problem, held), self._filler.open_nodes
            found = (ItemTemplate(one, free.intersection(one.node_by_id)) for one in fields)
            self._templates[structure, held] = (item.template,) if fields == (problem,) else tuple(found)
        return self._templates[structure, held]

    def rows(self, items: Sequence[RawItem]) -> list[Row]:
        """One row for each item, in order: all are read, then decoded together, then said, field by
        field.

        What is equal within the batch is repaired once. A row has the same bits wherever, beside
        what and after what it is worked on.
        """
        batch = [_Item(raw, self._whole[raw.structure]) for raw in items]
        self._read(batch)
        fields = [self._of_fields(item) for item in batch]
        whole = list(chain.from_iterable(fields))
        for item in whole:
            if item.row is None:
                self._try(self._prepare, item)
        self._repair([item for item in whole if item.row is None])
        return [self._joined(item, several) for item, several in zip(batch, fields, strict=True)]

    def _repair(self, batch: Sequence[_Item]) -> None:
        """What a repair says of each item, where it can, by the pattern of its answers."""
        groups: dict[tuple[SharedDesign, tuple[tuple[str, str], ...]], list[_Item]] = {}
        for item in batch:
            assert item.design is not None
            assert item.answered is not None
            groups.setdefault((item.design, tuple(item.answered.invalid.items())), []).append(item)
        sorted_: list[tuple[AgreementPatterns, Sorted, list[_Item]]] = []
        slow: list[_Item] = []
        learnt: dict[int, tuple[AgreementPatterns, tuple[Any, ...]]] = {}
        for key, members in groups.items():
            patterns = self._patterns_of(key, members) if self._short else None
            if patterns is None or not patterns.fits:
                slow += members
                continue
            found = patterns.sort([Field(one.values, one.answered.values) for one in members if one.answered])
            sorted_.append((patterns, found, members))
            new = set[tuple[Any, ...]]()
            for item, pattern in zip(members, found.keys, strict=True):
                if pattern is None or not (patterns.knows(pattern) or pattern in new):
                    slow.append(item)
                    if pattern is not None:
                        new.add(pattern)
                        learnt[id(item)] = patterns, pattern
        done: dict[Hashable, tuple[Prepared, Repair]] = {}
        self._slowly(slow, done)
        for item in slow:
            if id(item) in learnt and item.task is not None and isinstance(item.found, Repair):
                patterns, pattern = learnt[id(item)]
                patterns.learn(pattern, item.task, item.found)
        for patterns, found, members in sorted_:
            for i, item in enumerate(members):
                if item.found is None and item.answered is not None:
                    item.found = patterns.said(found, i, item.answered.values)
        self._slowly([item for item in batch if item.found is None and item.row is None], done)

    def _patterns_of(
        self, key: tuple[SharedDesign, tuple[tuple[str, str], ...]], members: Sequence[_Item]
    ) -> AgreementPatterns | None:
        """The patterns of a design; None where no item of it can be repaired."""
        if key not in self._patterns:
            for item in members:
                try:
                    first = self._prepared(item)
                except InputError:
                    continue  # which is said of it where it is repaired
                if len(self._patterns) >= KEPT:
                    self._patterns.clear()
                decoding, method = self._engine.decoding(first), self.settings.method
                self._patterns[key] = AgreementPatterns(key[0], first, decoding, node=item.node, method=method)
                break
        return self._patterns.get(key)

    def _prepared(self, item: _Item) -> Prepared:
        assert item.design is not None
        return item.design.prepared(item.answered, values=item.values, k=self.settings.k, work=self.settings.work)

    def _slowly(self, items: Sequence[_Item], done: dict[Hashable, tuple[Prepared, Repair]]) -> None:
        """Repair items as `rrf_design.repairing` does, those with equal answers and checks once."""
        tasks: dict[Hashable, Prepared] = {}
        places: list[Hashable] = []
        for item in items:
            assert item.answered is not None
            answered = item.answered
            stated = frozenset(item.values.items())
            same: Hashable = (item.design, stated, *answered.values.items(), None, *answered.invalid.items())
            places.append(same)
            try:
                if same not in tasks and same not in done:
                    tasks[same] = self._prepared(item)
            except InputError as error:
                item.row = unusable_row(item.raw.id, str(error))
        if tasks:
            done |= zip(tasks, zip(tasks.values(), self._engine.repair(list(tasks.values())), strict=True), strict=True)
        for item, same in zip(items, places, strict=True):
            if item.row is None:
                item.task, item.found = done[same]

    def _joined(self, item: _Item, fields: Sequence[_Item]) -> Row:
        """The row of an item from its fields; what they share is paid for once."""
        row = joined_row([(one.node, self._said(one)) for one in fields])
        if len(fields) == 1 or item.row is not None:
            return row
        return replace(row, cost=self._cost(item, tuple(dict.fromkeys(n for one in fields for n in one.selected))))

    def _read(self, batch: Sequence[_Item]) -> None:
        """The rows of a batch, then its answers."""
        for item, parts in zip(batch, self._filler.rows([item.raw.cells for item in batch]), strict=True):
            if isinstance(parts, InputError):
                item.row = unusable_row(item.raw.id, str(parts))
            else:
                item.parts = parts
        asked = [
            (item, name, answer, item.parts.parsers.get(name), node.dim)
            for item in batch
            if item.parts is not None
            for name, answer in item.raw.answers.items()
            if (node := item.template.problem.node_by_id.get(name)) is not None
        ]
        readings = read_answers([(answer, parser, dim) for _, _, answer, parser, dim in asked])
        for (item, name, *_), reading in zip(asked, readings, strict=True):
            if not isinstance(reading, InputError):
                item.readings[name] = reading
            elif item.row is None:
                item.row = unusable_row(item.raw.id, f"node {name!r}: {reading}")
        for item in batch:
            rules = {} if item.parts is None else item.parts.vetoes
            item.readings, item.broken = without_vetoed(rules, item.readings)
            unknown = item.raw.answers.keys() - item.template.problem.node_by_id.keys()
            if item.row is None and unknown:
                name = next(name for name in item.raw.answers if name in unknown)
                item.row = unusable_row(item.raw.id, f"there is an answer of {name!r}, which this item does not ask")

    def _of_fields(self, item: _Item) -> list[_Item]:
        """One for each delivered field, with the answers and reviews that speak of it."""
        templates = self._templates_of(item)
        if templates == (item.template,):
            return [item]
        known = self._whole[item.raw.structure].anchors
        for name in item.raw.reviews:
            if name not in known:
                item.template.anchor(name)
        found = []
        for template in templates:
            answers = {name: one for name, one in item.raw.answers.items() if name in template.problem.node_by_id}
            reviews = {name: said for name, said in item.raw.reviews.items() if name in template.anchors}
            readings = {name: one for name, one in item.readings.items() if name in answers}
            raw = replace(item.raw, answers=answers, reviews=reviews)
            broken = {name: words for name, words in item.broken.items() if name in answers}
            found.append(replace(item, raw=raw, template=template, readings=readings, broken=broken, several=True))
        return found

    def _try(self, work: Callable[..., None], item: _Item, *arguments: Any) -> None:
        try:
            work(item, *arguments)
        except InputError as error:
            item.row = unusable_row(item.raw.id, str(error))

    def _prepare(self, item: _Item) -> None:
        """What is to be repaired of an item, or its row where there is nothing to repair."""
        readings, example = item.readings, item.template.problem
        item.row = self._decided(item) if item.raw.reviews else None
        if item.row is not None:
            return
        if not any(reading.parsed is not None for reading in readings.values()):
            unread = tuple(dict.fromkeys((*readings, *(n.id for n in example.nodes if n.cost is None))))
            row = unusable_row(item.raw.id, _nothing_read(readings), unread=unread, raw=item.said)
            item.row = replace(row, cost=self._cost(item, ()))
            return
        labels, values = self._known(item)
        item.classes = classes_of(readings.values(), labels.values())
        design = self._design(item, {*values, *labels}, max(1, len(item.classes.labels)))
        for name, label in labels.items():
            vector = item.classes.vector(labelled(label, strict=True))
            assert vector is not None
            values[name] = vector
        item.design, item.values, item.selected = design, values, design.selected
        item.answered = field_of(readings, design.operator.node_ids, item.classes)

    def _said(self, item: _Item) -> Row:
        row = item.row
        if row is None:
            assert item.classes is not None
            assert item.found is not None
            row = repaired_row(
                item.raw.id,
                item.found,
                node=item.node,
                parser=item.parser,
                classes=item.classes,
                raw=item.said,
                cost=self._cost(item, item.selected),
                structure=item.raw.structure,
            )
        if item.broken:
            words = "; ".join(dict.fromkeys(item.broken.values()))
            row = row.with_value(reason=f"{row.reason} An answer can't be right and counts as unread: {words}.")
        if item.found is not None and row.verdict.passes:
            return row
        return replace(row, structure=item.raw.structure, **self._help(item, row))

    def _known(self, item: _Item) -> tuple[dict[str, str], dict[str, Numbers]]:
        """The classes and the numbers that checks and relations of this item state, people's
        included.
        """
        parts, template = item.parts, item.template
        assert parts is not None
        if parts.fault is not None:
            raise parts.fault
        labels, values = dict(parts.labels), dict(parts.values)
        for name, said in item.raw.reviews.items():
            value = self._reviewed(template, name, said, parts.parsers)
            if isinstance(value, str):
                labels[name] = value
            else:
                values[name] = value
        used = [
            name
            for name in template.computed
            if template.anchors[name].owned or name in self._chosen[item.raw.structure]
        ]
        if used:
            values |= template.computed_values(self._filler.problem(item.raw.cells, name=item.raw.id), used)
        return labels, values

    def _reviewed(self, template: ItemTemplate, name: str, said: str, parsers: Mapping[str, Parser]) -> str | Numbers:
        """What a person said, as a class or as numbers."""
        anchor = template.anchor(name)
        parser = parsers.get(anchor.nodes[0]) if len(anchor.nodes) == 1 else None
        return reviewed_value(name, said, parser, rows=rows_of(template.problem, anchor))

    def _decided(self, item: _Item) -> Row | None:
        """The row of an item about whose delivered value a trusted person has spoken."""
        template, node, parser = item.template, item.node, item.parser
        for name, said in item.raw.reviews.items():
            anchor = template.anchor(name)
            within = stated_within(template.problem, anchor, held=item.raw.reviews, noise=self.settings.noise)
            near = template.problem.delta is None or within <= template.problem.delta
            if near and decides(template.problem, anchor, node, held=item.raw.reviews):
                value = self._reviewed(template, name, said, {} if parser is None else {node: parser})
                numbers = value if isinstance(value, tuple | str) else (value,)
                shown = value if isinstance(value, str) else shown_value(_tuple(value), parser, Classes(()))
                reading = item.readings.get(node)
                row = reviewed_row(item.raw.id, anchor, numbers, said=shown, reading=reading, within=within)
                item.selected = tuple(item.raw.reviews)
                return replace(row, cost=self._cost(item, item.selected))
        return None

    def _design(self, item: _Item, known: set[str], classes: int) -> SharedDesign:
        """Held are the questions on sale that were answered, what people said, and what is chosen
        and known.
        """
        template, raw = item.template, item.raw
        held = template.on_sale.intersection(raw.answers).union(raw.reviews)
        held |= {name for name in self._chosen[raw.structure] if name in known or name not in template.anchors}
        absent = frozenset(name for name in template.owned_anchors if name not in known)
        return template.design(self._engine, held, absent=absent, classes=classes, noise=self.settings.noise)

    def _cost(self, item: _Item, held: tuple[str, ...]) -> float:
        """What the answers and checks of an item cost; an answer that is only known to be missing
        was not asked for.
        """
        readings, whole = item.readings, self._whole[item.raw.structure]
        paid = {name: one.cost for name, one in readings.items() if one.status != "missing" or one.cost is not None}
        names = (*paid, *(name for name in held if name not in readings))
        return whole.spent(names, paid)

    def _help(self, item: _Item, row: Row) -> dict[str, Any]:
        """The cheapest person who would decide an item that is open."""
        if row.verdict.passes:
            return {}
        for anchor in item.template.deciding_people:
            if anchor.id not in item.raw.reviews:
                return {"check": anchor.id, "worth": worth_of(anchor)}
        return {}


def _tuple(value: Numbers) -> tuple[float, ...]:
    return value if isinstance(value, tuple) else (value,)


def _nothing_read(readings: Mapping[str, Reading]) -> str:
    if not readings:
        return "there is no answer; ask, or have a person look at it."
    why = ", ".join(f"{name}: {reading.status}" for name, reading in list(readings.items())[:6])
    return f"no answer could be read ({why}); ask again, or have a person look at it."


CHUNK = 500
"""Items that are decoded, and travel to another process, together."""


def repair_dataset(
    dataset: Dataset,
    responses: Any,
    *,
    select: Any = None,
    method: str = "auto",
    k: int | None = None,
    noise: Noise | None = None,
    reviews: Any = None,
    resume: str | os.PathLike[str] | None = None,
    options: Mapping[str, Any] | None = None,
    n_jobs: int | None = None,
    time_limit: float | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Delivery:
    """`repair` for every item of a data set, from rows `id node [repeat model] value|text|status
    [cost]`.

    `reviews` is a filled-in review list, and `resume` names a file that keeps rows as they come; a
    second call with it goes on where the first stopped. An item that can't be used is one row with
    the verdict incomplete.
    """
    started = time.perf_counter()
    chosen = None if select is None else select if isinstance(select, str) else tuple(select)
    work = WorkSettings(None, seconds_of(time_limit), seed, None, options or {})
    settings = EngineSettings(chosen, method, k, noise, work)
    examples = {key: one.example for key, one in dataset.structures.items()}
    TableEngine(dataset.recipe, examples, settings)  # what no item of a structure can have is said before all else
    said = Reviews({}) if reviews is None else read_reviews(reviews, dataset)
    checkpoint = Checkpoint(resume, about=_about(dataset, responses, said, settings, resume), chunk=CHUNK)
    count = _Count(len(dataset), progress)
    with RecordedAnswers(dataset, responses) as answers:
        items = dataset.items_in_order()
        for row, item in zip(checkpoint, items, strict=False):
            if row.id != item.id:
                raise InputError(f"{resume}: it holds a row of item {row.id!r} where {item.id!r} should be")
            count.add([row])
        items = islice(dataset.items_in_order(), checkpoint.count, None)
        chunks = answers.chunks(items, CHUNK, said.by_item)
        for rows in in_chunks(_engine, (dataset.recipe, examples, settings), chunks, n_jobs=n_jobs):
            checkpoint.add(rows)
            count.add(rows)
    again = responses if isinstance(responses, str | os.PathLike | list | tuple) else None
    return Delivery(dataset, checkpoint, verdicts=count.verdicts, seconds=time.perf_counter() - started, answers=again)


def _engine(*settings: Any) -> Callable[[Sequence[RawItem]], list[Row]]:
    return TableEngine(*settings).rows


class _Count:
    """How many items are finished, and with what verdicts."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self._total, self._progress, self.verdicts = total, progress, Counter[str]()

    def add(self, rows: Sequence[Row]) -> None:
        self.verdicts.update(row.verdict.value for row in rows)
        if self._progress is not None and len(rows) > 1:
            done = sum(self.verdicts.values())
            kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.verdicts.items()))
            self._progress(done / max(1, self._total), None, f"{done} of {self._total} items are finished: {kinds}")


def _about(dataset: Dataset, responses: Any, said: Reviews, settings: EngineSettings, resume: Any) -> dict[str, Any]:
    """What rows belong to: compared when they are taken up again."""
    if resume is None:
        return {}
    for source, what in ((dataset.table.name, "table"), (responses, "answers")):
        if not isinstance(source, str | os.PathLike) or not Path(source).is_file():
            raise InputError(f"resume: the {what} must be a file, so that a later run can tell that it is the same")
    return {
        "recipe": dataset.recipe.digest,
        "table": file_digest(dataset.table.name),
        "responses": file_digest(responses),
        "reviews": canonical_digest(sorted((item, sorted(checks.items())) for item, checks in said.by_item.items())),
        "items": len(dataset),
        "settings": repr(settings),
    }


def file_digest(path: Any) -> str:
    """SHA-256 of a file's bytes."""
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
