"""What a data set came to: a row for every item, in the order of the table, to be handed over in
any form.

Rows are gone through, never gathered, so that a million of them need no more memory than one; only
the order of what people should look at first is kept, a few bytes for each open item.
Of several outputs of one result the ending of each decides what it is.
"""

from __future__ import annotations

import csv
import io
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rrf_design._shown import ShownRows, bars_on, frame_of
from rrf_design.documents import FORMATS, Case, sealed, write_junit, write_text, writing
from rrf_design.errors import InputError
from rrf_design.files import suggestion
from rrf_design.questions.answers import RecordedAnswer, RecordedAnswers
from rrf_design.questions.datasets import DataItem, Dataset
from rrf_design.questions.reviews import write_review_file
from rrf_design.tables.rows import WORDS, Row, delivered_names, review_ranks
from rrf_design.texts import cell_json, cell_text, cell_texts, sheet_text
from rrf_design.verdict import Verdict, table_sentence, worst

if TYPE_CHECKING:
    from rrf_design.checker.delivery import ProvenDelivery

TOGETHER = 1000
"""Rows that are read and written at once."""
REVIEWED = ("rank", "id", "check", "question", "raw", "verdict", "reason", "cost", "value")
"""Columns of the list of what people should look at first."""
FORMS = (".csv", ".tsv", ".jsonl", ".parquet")
Rows = Iterable[tuple[Mapping[str, Any], Mapping[Any, Any]]]
"""Each input row with its result, whose keys are those of `delivered_names`."""


class Delivery(Mapping[str, Row], ShownRows):
    """Rows of a data set by id.

    `rows` can be gone through again and again, and has one row for each item, in order.
    """

    def __init__(
        self,
        dataset: Dataset,
        rows: Iterable[Row],
        *,
        verdicts: Mapping[str, int] | None = None,
        seconds: float = 0.0,
        answers: Any = None,
        proven: ProvenDelivery | None = None,
    ) -> None:
        self.dataset, self._rows, self.seconds = dataset, rows, seconds
        self.answers = answers
        """What it was made from, where that can be read again: recorded answers, for the page."""
        self.proven = proven
        """What a test of this table proved, where there was one: then its sentence is said."""
        counted = Counter(row.verdict.value for row in rows) if verdicts is None else verdicts
        self.verdicts: dict[str, int] = {verdict.value: counted.get(verdict.value, 0) for verdict in Verdict}
        """How many items have each verdict."""

    @property
    def verdict(self) -> Verdict:
        """That of the worst item."""
        found = worst(Verdict(name) for name, count in self.verdicts.items() if count)
        return Verdict.INCOMPLETE if found is None else found

    @property
    def passing_share(self) -> float:
        """The part of the items that are checked or consistent."""
        return sum(self.verdicts[one.value] for one in Verdict if one.passes) / max(1, len(self))

    @cached_property
    def ranks(self) -> Mapping[int, int]:
        """By position: 1 for the item that people should look at first.

        Items that nobody has to look at have none.
        """
        return review_ranks(self.rows())

    def rows(self) -> Iterator[Row]:
        """Every row, in the order of the table."""
        return iter(self._rows)

    def ranked(self) -> Iterator[tuple[DataItem, Row, int | None]]:
        """Every item with its row and its rank."""
        ranks, items, rows, position = self.ranks, self.dataset.items_in_order(), self.rows(), 0
        while chunk := list(islice(items, TOGETHER)):
            for item, row in zip(chunk, list(islice(rows, len(chunk))), strict=True):
                yield item, row, ranks.get(position)
                position += 1

    def cells(self) -> Iterator[tuple[Mapping[str, Any], Mapping[Any, Any]]]:
        """Each input row with its delivered cells, as `deliver` takes them."""
        for item, row, rank in self.ranked():
            yield item.cells, row.cells(rank)

    def __getitem__(self, name: str) -> Row:
        for row in self.rows():
            if row.id == name:
                return row
        raise KeyError(name)

    def row(self, name: str) -> Row:
        """The row of this id; InputError with the nearest one."""
        if name not in self:
            raise InputError(f"{self.dataset.table.name}: no item {name!r}{suggestion(name, list(self))}")
        return self[name]

    def __iter__(self) -> Iterator[str]:
        return (row.id for row in self.rows())

    def __len__(self) -> int:
        return sum(self.verdicts.values())

    def head(self) -> dict[str, Any]:
        """What there is to say about all of it."""
        return {
            "recipe": self.dataset.recipe.name,
            "table": self.dataset.table.name,
            "verdict": self.verdict.value,
            "verdicts": self.verdicts,
            "passing_share": self.passing_share,
            "structures": len(self.dataset.structures),
            "seconds": self.seconds,
        }

    def documents(self) -> Iterator[dict[str, Any]]:
        """What there is to say about each item."""
        for _, row, rank in self.ranked():
            yield {**row.to_json(), "rank": rank}

    def to_json(self) -> dict[str, Any]:
        return sealed("rrf-delivery", {**self.head(), "items": list(self.documents())})

    def to_frame(self) -> Any:
        """The delivered table as a pandas data frame (polars where only that is installed)."""
        names = delivered_names(self.dataset.columns, self.dataset.fields)
        merged = [{**cells, **{name: row[key] for key, name in names.items()}} for cells, row in self.cells()]
        columns = [*self.dataset.columns, *names.values()]
        return frame_of([{name: row.get(name) for name in columns} for row in merged], columns)

    def sentence(self) -> str:
        """What one may say about all of it: what was proven, where it was tested."""
        return table_sentence(self.verdicts) if self.proven is None else self.proven.sentence

    def _line(self) -> str:
        counts = ", ".join(f"{count} {name}" for name, count in self.verdicts.items() if count)
        return f"{self.dataset.table.name!r}, {len(self)} rows: {counts or 'none'}"

    def _told(self) -> str:
        return self.sentence()

    def _records(self) -> Iterator[dict[str, Any]]:
        columns = ("id", "answer", "verdict", "bound", "reason")
        return ({name: getattr(row, name) for name in columns} for row in self.rows())

    def plot(self, axes: Any = None) -> Any:
        """How many rows have each verdict, on matplotlib axes."""
        return bars_on(axes, self.verdicts, across="rows")


ENDINGS = (".json", *FORMS, ".html", ".xml")
STORIES = 20_000
"""Tables of at most so many items have behind each what was asked and answered; longer ones, behind
those that are neither checked nor consistent, or were changed.
"""


def check_outputs(paths: Sequence[str | os.PathLike[str]]) -> None:
    """Refuse endings that mean nothing, before any work is done."""
    for path in paths:
        if Path(path).suffix.lower() not in ENDINGS:
            raise InputError(f"{path}: an output ends in {', '.join(ENDINGS)}")


def spare_inputs(
    paths: Sequence[str | os.PathLike[str]], dataset: Dataset, *others: str | os.PathLike[str] | None
) -> None:
    """Refuse to write over what is read: the recipe, its table, and whatever else the call
    names.
    """
    recipe = dataset.recipe
    table = () if recipe.data.table is None else (recipe.folder / recipe.data.table,)
    inputs = {os.path.realpath(path) for path in (recipe.folder / recipe.name, *table, *others) if path is not None}
    for path in paths:
        if os.path.realpath(path) in inputs and Path(path).is_file():
            raise InputError(f"{path}: is read by this call, and would be written over; name another output")


def write_output(path: str | os.PathLike[str], delivery: Delivery) -> None:
    """`.json` is the whole result, a table's ending the delivered table, `.html` a page, `.xml`
    JUnit.
    """
    check_outputs([path])
    ending = Path(path).suffix.lower()
    if ending in FORMS:
        deliver(path, delivery.cells(), delivery.dataset.columns, delivery.dataset.fields)
    elif ending == ".json":
        _write_document(path, delivery)
    elif ending == ".xml":
        write_junit(Path(path), delivery.dataset.recipe.name, _cases(delivery))
    else:
        _write_page(path, delivery)


def _write_document(path: str | os.PathLike[str], delivery: Delivery) -> None:
    """The whole result, item by item: it is never in memory at once."""
    form = FORMATS["rrf-delivery"]
    head = cell_json({"format": form.name, "version": form.version, **delivery.head()})
    with writing(path) as stream:
        stream.write((head[:-1] + ', "items": [').encode("utf-8", "replace"))
        for number, document in enumerate(delivery.documents()):
            stream.write((("," if number else "") + "\n" + cell_json(document)).encode("utf-8", "replace"))
        stream.write(b"\n]}\n")


def _cases(delivery: Delivery) -> list[Case]:
    """One case for each item; what is neither checked nor consistent failed, for its reason."""
    return [
        (row.id, 0.0, None if row.verdict.passes else f"{row.verdict.value}: {row.reason}") for row in delivery.rows()
    ]


def _write_page(path: str | os.PathLike[str], delivery: Delivery) -> None:
    from rrf_design.reporting.delivery import delivered_items, delivery_page

    write_text(path, delivery_page(delivered_items(delivery.to_json(), _stories(delivery), proven=delivery.proven)))


def _stories(delivery: Delivery) -> list[list[dict[str, Any]] | None]:
    """What was asked and answered about each item; of a large table, about those that somebody
    should look at.
    """
    if delivery.answers is None:
        return []
    found: list[list[dict[str, Any]] | None] = []
    with RecordedAnswers(delivery.dataset, delivery.answers) as recorded:
        for item, row, rank in delivery.ranked():
            told = rank is not None or row.changed or len(delivery) <= STORIES
            found.append(_story(item.prompts, recorded.of(item.id)) if told else None)
    return found


def _story(prompts: Mapping[str, str], answers: Mapping[str, RecordedAnswer]) -> list[dict[str, Any]]:
    rows = []
    for node in dict.fromkeys([*prompts, *answers]):
        said = answers.get(node, RecordedAnswer(status="missing"))
        numbers = None if said.value is None else ", ".join(map(str, said.value))
        rows.append([node, prompts.get(node), numbers if said.text is None else said.text, said.status])
    return [{"heading": "Asked and answered", "columns": ["node", "prompt", "answer", ""], "rows": rows}]


def deliver(path: str | os.PathLike[str], rows: Rows, columns: Sequence[str], fields: Sequence[str] = ()) -> int:
    """Write the delivered table; the ending chooses the form.

    `columns` are all of the input's, `fields` those that are delivered, where they are several; the
    number of rows is returned.
    """
    form = Path(path).suffix.lower()
    if form not in FORMS:
        raise InputError(f"{path}: delivered tables end in {', '.join(FORMS)}, not {form or 'nothing'!r}")
    names = delivered_names(columns, fields)
    merged = ({**row, **{name: result.get(key) for key, name in names.items()}} for row, result in rows)
    every = (*columns, *names.values())
    if form == ".parquet":
        return _write_parquet(path, merged, every)
    with writing(path) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
        try:
            if form == ".jsonl":
                count = _write_lines(text, merged)
            else:
                words = [
                    every.index(name) for key, name in names.items() if (key if key in WORDS else key[-1]) in WORDS
                ]
                count = _write_csv(text, merged, every, form, words=words)
        finally:
            text.detach()
    return count


class _LineFeeds:
    """Takes the lines of a writer that ends them with both characters, so that it quotes a cell
    with either, and ends them with one.
    """

    def __init__(self, text: io.TextIOWrapper) -> None:
        self._text = text

    def write(self, line: str) -> int:
        return self._text.write(line.removesuffix("\r\n") + "\n")


def _write_csv(
    text: io.TextIOWrapper, rows: Iterator[dict[str, Any]], columns: Sequence[str], form: str, *, words: Sequence[int]
) -> int:
    """`words`: the places of columns that hold no formulas."""
    writer = csv.writer(_LineFeeds(text), delimiter="\t" if form == ".tsv" else ",", lineterminator="\r\n")
    writer.writerow(columns)
    count = 0
    while chunk := list(islice(rows, TOGETHER)):
        cells = [[row.get(name) for name in columns] for row in chunk]
        for row in cells:
            for place in words:
                said = row[place]
                row[place] = sheet_text(said) if isinstance(said, str) else said
        writer.writerows(cell_texts(cells))
        count += len(chunk)
    return count


def _write_lines(text: io.TextIOWrapper, rows: Iterator[dict[str, Any]]) -> int:
    count = 0
    for row in rows:
        text.write(cell_json(row) + "\n")
        count += 1
    return count


def _write_parquet(path: str | os.PathLike[str], rows: Iterator[dict[str, Any]], columns: Sequence[str]) -> int:
    from rrf_design._columns import pyarrow_for

    pyarrow = pyarrow_for(path)
    cells: dict[str, list[Any]] = {name: [] for name in columns}
    for row in rows:
        for name, column in cells.items():
            column.append(row.get(name))

    def array(column: list[Any]) -> Any:
        try:
            return pyarrow.array(column)
        except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError, OverflowError):
            return pyarrow.array(
                [None if cell is None else cell_text(cell) for cell in column]
            )  # cells of several kinds

    table = pyarrow.table([array(column) for column in cells.values()], names=list(cells))
    with writing(path) as stream:
        pyarrow.parquet.write_table(table, stream)
    return int(table.num_rows)


def write_reviews(path: str | os.PathLike[str], delivery: Delivery) -> int:
    """Write the questions for people, the most urgent first; the number of them is returned.

    What people wrote into the file stays, behind what is open.
    """
    return write_review_file(path, sorted(_questions(delivery), key=lambda row: row["rank"]), REVIEWED)


def _questions(delivery: Delivery) -> Iterator[dict[str, Any]]:
    for item, row, rank in delivery.ranked():
        if rank is None:
            continue
        several = len(row.values) > 1
        for value in row.values:
            check = value.check if several and value.open else None if several else row.check
            if check is None:
                continue
            anchor = item.problem.block_by_id[check]
            yield {
                "rank": rank,
                "id": row.id,
                "check": check,
                "question": _question(anchor, item),
                "raw": value.raw,
                "verdict": value.verdict.value,
                "reason": value.reason,
                "cost": anchor.cost,
                "value": "",
            }


def _question(anchor: Any, item: DataItem) -> str:
    source = anchor.source
    text = source.get("person") if isinstance(source, Mapping) else str(source).partition(":")[2].strip()
    return str(text) if text and text is not True else str(item.prompts.get(anchor.nodes[0], anchor.nodes[0]))
