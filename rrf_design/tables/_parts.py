"""`repair` of a Parquet table into a folder of Parquet parts: workers read rows and write parts of
their own, and no row passes through whoever called.

The table is cut into pieces of the same rows whatever runs them, and a piece becomes one part, so
the parts have the same bits on one core, on a cluster, and when half of them were there already.
There are four steps; each gives files that a later run takes up:

1. ids: every piece sorts the ids of its rows by their hash (`part_of`);
2. joins: what hashes alike is together now: ids that stand twice and answers of nobody are found,
   and answers of a folder are sorted by the piece that their row is in;
3. repairs: a piece is repaired by `repairer`, with what the order of the review list needs;
4. parts: once all rows are there they are ranked, and each part is written with its ranks.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rrf_design._columns import pyarrow_for
from rrf_design.documents import write, writing
from rrf_design.errors import InputError
from rrf_design.questions.answers import KEYS, SHOWN, NodeNames, answer_parts, part_of
from rrf_design.questions.datasets import row_id
from rrf_design.questions.filling import Filler, check_columns
from rrf_design.questions.tables import RowFaults, need_column, open_table
from rrf_design.tables._engine import file_digest
from rrf_design.tables._repairer import ANSWERS, Repairer
from rrf_design.tables.rows import delivered_names, review_key
from rrf_design.verdict import Verdict, worst
from rrf_design.workers import in_chunks

if TYPE_CHECKING:
    from solvers.result import Progress

PIECE = 20_000
"""Rows of a part, at most: no part has rows of two row groups."""
TOGETHER = 500
"""Rows that are repaired at once."""
HASHED = 200_000
"""Ids that are compared at once where answers stand in the rows."""
WORK, RESULT = "_work", "_repair.json"
"""In the folder: what is removed at the end, and what says how the parts came to be."""
ORDER = tuple(f"_order_{place}" for place in range(5))
"""Columns that rows are ranked by: those of `review_key`."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """Rows of one row group: which, and the number of the first in the whole table, from 0."""

    number: int
    path: Path
    group: int
    start: int
    rows: int
    first: int


@dataclass(frozen=True)
class _Job:
    """All that the steps need."""

    repairer: Repairer
    folder: Path
    pieces: tuple[_Piece, ...]
    columns: tuple[str, ...]
    """Of the table."""
    answers: tuple[Path, ...] = ()
    """By hash; none where they stand in the rows."""
    hashes: int = field(default=1)
    """Into how many parts ids are sorted."""

    @cached_property
    def names(self) -> NodeNames:
        return NodeNames(self.repairer.recipe)

    @property
    def starts(self) -> Any:
        return np.array([piece.first for piece in self.pieces])

    def ids(self, piece: int) -> Path:
        return self.folder / WORK / f"ids-{piece:05d}.arrow"

    def joined(self, hashed: int) -> Path:
        return self.folder / WORK / f"answers-{hashed:05d}.arrow"

    def repaired(self, piece: int) -> Path:
        return self.folder / WORK / f"repaired-{piece:05d}.parquet"

    def part(self, piece: int) -> Path:
        return self.folder / f"part-{piece:05d}.parquet"

    @property
    def ranks(self) -> Path:
        return self.folder / WORK / "ranks.npy"


@dataclass(frozen=True, slots=True)
class DeliveredParts:
    """What `repair` of a table into a folder came to."""

    folder: Path
    recipe: str
    table: str
    parts: int
    verdicts: Mapping[str, int]
    """How many rows have each verdict."""
    seconds: float

    @property
    def passing_share(self) -> float:
        """The part of the rows that are checked or consistent."""
        return sum(self.verdicts[one.value] for one in Verdict if one.passes) / max(1, sum(self.verdicts.values()))

    def to_json(self) -> dict[str, Any]:
        verdict = worst(Verdict(name) for name, count in self.verdicts.items() if count)
        return {
            "recipe": self.recipe,
            "table": self.table,
            "folder": str(self.folder),
            "parts": self.parts,
            "rows": sum(self.verdicts.values()),
            "verdict": str(verdict or Verdict.INCOMPLETE),
            "verdicts": dict(self.verdicts),
            "passing_share": self.passing_share,
            "seconds": self.seconds,
        }


def repair_parts(
    repairer: Repairer,
    table: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    responses: str | os.PathLike[str] | None = None,
    resume: bool = False,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> DeliveredParts:
    """Repair a Parquet table into a folder of Parquet parts.

    Parameters
    ----------
    repairer
        Made by `rrf_design.repairer`.
    table
        A Parquet file, or a folder of them, read in the order of their names.
    folder
        Where parts are written: the input's rows, order and columns, and what is delivered. All
        machines must see it, the table and the answers under the same names.
    responses
        A folder of answers that `rrf-design import -o FOLDER/` wrote, or a Parquet file; by default
        they stand in the column `answers`.
    resume
        Go on with what an earlier call left in `folder`.
    n_jobs
        Processes; on a Dask cluster that `joblib.parallel_config` names, its workers. Parts have
        the same bits whatever does them.
    progress
        Called with the finished share.

    Returns
    -------
    DeliveredParts
        Where they lie, and how many rows have each verdict.
    """
    started, target = time.perf_counter(), Path(folder).absolute()
    job = _planned(repairer, Path(table).absolute(), target, responses)
    about = {
        "recipe": repairer.recipe.digest,
        "settings": repr(repairer.settings),
        "table": [file_digest(path) for path in dict.fromkeys(piece.path for piece in job.pieces)],
        "responses": [file_digest(path) for path in job.answers],
        "piece": PIECE,
    }
    found = _begun(target, about, resume=resume)
    if found is None:
        tell = _Told(progress, 2 * len(job.pieces) + job.hashes)
        faults, total = RowFaults(str(table)), sum(piece.rows for piece in job.pieces)
        run = partial(_each, job, n_jobs=n_jobs)
        for told in tell(run(_ids, range(len(job.pieces)))):
            for row, words in told:
                faults.add(row, words)
        faults.refuse(total)
        strays: list[str] = []
        for told, unknown in tell(run(_joins, range(job.hashes))):
            for row, words in told:
                faults.add(row, words)
            strays += unknown
        faults.refuse(total)
        _refuse_strays(strays, str(responses), str(table))
        counts = Counter[str]()
        for counted in tell(run(_repairs, range(len(job.pieces)))):
            counts.update(counted)
        _rank(job)
        for _ in run(_parts, range(len(job.pieces))):
            pass
        found = {verdict.value: counts[verdict.value] for verdict in Verdict}
        write(target / RESULT, {"about": about, "verdicts": found})
        shutil.rmtree(target / WORK)
    seconds = time.perf_counter() - started
    return DeliveredParts(Path(folder), repairer.recipe.name, str(table), len(job.pieces), found, seconds)


class _Told:
    """Tells how many pieces of work are done."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress, self._total, self._done = progress, total, 0

    def __call__(self, results: Iterator[Any]) -> Iterator[Any]:
        for result in results:
            self._done += 1
            if self._progress is not None:
                words = f"{self._done} of {self._total} pieces of work are done"
                self._progress(self._done / self._total, None, words)
            yield result


def _planned(repairer: Repairer, table: Path, folder: Path, responses: Any) -> _Job:
    """What is to be done; what no row can have is said here."""
    recipe, filler = repairer.recipe, Filler(repairer.recipe)
    files = sorted(table.glob("*.parquet")) if table.is_dir() else [table]
    if not files:
        raise InputError(f"{table}: holds no .parquet file")
    columns: tuple[str, ...] | None = None
    pieces: list[_Piece] = []
    first = 0
    for path in files:
        if path.suffix.lower() != ".parquet":
            raise InputError(f"{path}: a folder of parts is made from Parquet; give a .parquet table, or -o TABLE")
        opened = open_table(path)
        if columns is not None and opened.columns != columns:
            raise InputError(f"{path}: it has other columns than {files[0]}")
        columns = opened.columns
        for column, role in ((recipe.data.id, "id"), *((gold, "gold") for gold in recipe.data.gold_columns)):
            need_column(opened, str(column), role)
        check_columns(filler, columns or (), str(path))
        meta = pyarrow_for(path).parquet.read_metadata(path)
        for group in range(meta.num_row_groups):
            rows = meta.row_group(group).num_rows
            for start in range(0, rows, PIECE):
                some = min(PIECE, rows - start)
                pieces.append(_Piece(len(pieces), path, group, start, some, first))
                first += some
    if not pieces or columns is None:
        raise InputError(f"{table}: holds no rows")
    filler.check_vetoes()
    answers = () if responses is None else tuple(path.absolute() for path in answer_parts(responses))
    if answers:
        if ANSWERS in columns:
            raise InputError(f"{table}: has a column {ANSWERS!r} already; give that, or other answers, not both")
        _check_answers(answers)
    elif ANSWERS not in columns:
        raise InputError(
            f"{table}: no column {ANSWERS!r}; give answers as a folder (rrf-design import LOG... -o FOLDER/) or put"
            " them into the rows"
        )
    return _Job(repairer, folder, tuple(pieces), columns, answers, len(answers) or max(1, first // HASHED))


def _check_answers(files: Sequence[Path]) -> None:
    for path in files:
        columns = open_table(path).columns or ()
        for key in ("id", "node"):
            if key not in columns:
                raise InputError(f"{path}: no column {key!r}; answers have the columns {', '.join(KEYS)}")
        for column in columns:
            if column not in KEYS:
                raise InputError(f"{path}: unknown column {column!r}; answers have the columns {', '.join(KEYS)}")


def _begun(folder: Path, about: Mapping[str, Any], *, resume: bool) -> dict[str, int] | None:
    """Make the folder, or take up what lies in it: the verdicts, where it is complete."""
    try:
        if resume:
            known = json.loads((folder / RESULT).read_text("utf-8")) if (folder / RESULT).is_file() else None
            if known is None or known.get("about") != about:
                raise InputError(
                    f"{folder}: holds no parts of this recipe, table, set of answers and settings; resume with what"
                    " they were begun with"
                )
            (folder / WORK).mkdir(exist_ok=True)
            done: dict[str, int] | None = known.get("verdicts")
            return done
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InputError(f"{folder}: is there already; go on with --resume {folder.name}/, or name another folder")
        (folder / WORK).mkdir(parents=True)
    except OSError as error:
        raise InputError(f"{folder}: can't be used ({error.strerror})") from None
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{folder / RESULT}: can't be read; remove {folder.name} and begin anew") from None
    write(folder / RESULT, {"about": about})
    return None


def _each(job: _Job, step: Callable[[_Job, int], Any], numbers: Sequence[int], *, n_jobs: int | None) -> Iterator[Any]:
    return in_chunks(_step, (job, step), numbers, n_jobs=n_jobs)


def _step(job: _Job, step: Callable[[_Job, int], Any]) -> Callable[[int], Any]:
    """A step as workers take it: what they can't read or write is a fault with words."""

    def taken(number: int) -> Any:
        try:
            return step(job, number)
        except OSError as error:
            name = error.filename or job.folder
            raise InputError(
                f"{name}: a worker can't use it ({error.strerror or error}); table, answers and folder must lie where"
                " all machines see them"
            ) from None

    return taken


def _read(piece: _Piece, columns: list[str] | None = None, *, size: int = PIECE) -> Iterator[Any]:
    """The rows of a piece as batches of a table."""
    pyarrow = pyarrow_for(piece.path)
    with pyarrow.parquet.ParquetFile(piece.path) as file:
        place = 0
        for batch in file.iter_batches(size, row_groups=[piece.group], columns=columns):
            start, stop = max(piece.start - place, 0), min(piece.start + piece.rows - place, batch.num_rows)
            if start < stop:
                yield batch.slice(start, stop - start)
            place += batch.num_rows
            if place >= piece.start + piece.rows:
                return


def _write_batches(path: Path, schema: Any, batches: Iterator[Any]) -> None:
    """An Arrow file, whole or not at all."""
    import pyarrow

    with writing(path) as stream, pyarrow.ipc.new_file(stream, schema) as file:
        for batch in batches:
            file.write(batch)


def _batches(paths: Sequence[Path], number: int) -> Any:
    """The batches of one number of several files, as one table."""
    import pyarrow

    found = []
    for path in paths:
        with pyarrow.OSFile(str(path)) as stream, pyarrow.ipc.open_file(stream) as file:
            found.append(file.get_batch(number))
    return pyarrow.Table.from_batches(found).combine_chunks()


def _sorted_by(table: Any, keys: Any, count: int) -> Iterator[Any]:
    """The rows of each key as a batch, each in their order."""
    from pyarrow import RecordBatch

    order = np.argsort(keys, kind="stable")
    bounds = np.searchsorted(keys[order], np.arange(count + 1))
    taken = table.take(order).combine_chunks().to_batches()
    (rows,) = taken or [RecordBatch.from_pylist([], schema=table.schema)]  # a part may hold no answer
    for start, stop in pairwise(bounds):
        yield rows.slice(start, stop - start)


def _ids(job: _Job, number: int) -> list[tuple[int, str]]:
    """Sort the ids of a piece by hash; faults by row."""
    import pyarrow

    if job.ids(number).exists():
        return []
    piece, column = job.pieces[number], job.repairer.recipe.data.id
    names, faults = [], []
    for batch in _read(piece, [str(column)]):
        for cell in batch.column(0).to_pylist():
            try:
                names.append(row_id(str(column), cell))
            except InputError as error:
                faults.append((piece.first + len(names) + 1, str(error)))
                names.append("")
    if faults:
        return faults
    keys = np.array([part_of(name, job.hashes) for name in names])
    table = pyarrow.table({"id": names, "row": np.arange(piece.first, piece.first + piece.rows)})
    _write_batches(job.ids(number), table.schema, _sorted_by(table, keys, job.hashes))
    return []


def _joins(job: _Job, number: int) -> tuple[list[tuple[int, str]], list[str]]:
    """Find ids that stand twice and answers of nobody; sort the answers by piece."""
    import pyarrow
    import pyarrow.compute

    if job.answers and job.joined(number).exists():
        return [], []
    ids = _batches([job.ids(piece) for piece in range(len(job.pieces))], number)
    if pyarrow.compute.count_distinct(ids["id"]).as_py() < len(ids):
        return _repeated(ids), []
    if not job.answers:
        return [], []
    answers = pyarrow.parquet.read_table(job.answers[number])
    names = pyarrow.compute.cast(answers["id"], pyarrow.string())
    _check_nodes(job, answers)
    at = pyarrow.compute.index_in(names, value_set=ids["id"].combine_chunks())
    if at.null_count:
        strays = names.filter(pyarrow.compute.is_null(at)).unique().to_pylist()
        _refuse_misplaced(job, number, strays)
        return [], strays
    rows = ids["row"].to_numpy()[at.to_numpy()]
    pieces = np.searchsorted(job.starts, rows, side="right") - 1
    table = answers.drop_columns(["id"]).append_column("row", pyarrow.array(rows))
    _write_batches(job.joined(number), table.schema, _sorted_by(table, pieces, len(job.pieces)))
    return [], []


def _repeated(ids: Any) -> list[tuple[int, str]]:
    first: dict[str, int] = {}
    found = []
    for name, row in sorted(zip(ids["id"].to_pylist(), ids["row"].to_pylist(), strict=True), key=lambda one: one[1]):
        if first.setdefault(name, row) != row:
            found.append((row + 1, f"the id {name!r} stands in row {first[name] + 1} already; ids must be unique"))
    return found


def _check_nodes(job: _Job, answers: Any) -> None:
    """InputError for answers of nodes that the recipe does not have."""
    keys = [key for key in ("node", "model", "repeat") if key in answers.column_names]
    for one in answers.select(keys).group_by(keys).aggregate([]).to_pylist():
        try:
            job.names.nodes(str(one["node"]), one.get("model") or None, one.get("repeat") or 1)
        except InputError as error:
            raise InputError(f"the answers: {error}{job.names.other_names()}") from None


def _refuse_misplaced(job: _Job, number: int, names: Sequence[str]) -> None:
    for name in names:
        if part_of(name, job.hashes) != number:
            raise InputError(
                f"{job.answers[number]}: item {name!r} belongs into part {part_of(name, job.hashes)}; parts are those"
                " that rrf-design import -o FOLDER/ writes"
            )


def _refuse_strays(names: Sequence[str], answers: str, table: str) -> None:
    if names:
        shown = sorted(names)[:SHOWN]
        more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
        raise InputError(f"{answers}: {table} has no item {', '.join(map(repr, shown))}{more}")


def _repairs(job: _Job, number: int) -> dict[str, int]:
    """Repair a piece; how many of its rows have each verdict."""
    import pyarrow
    import pyarrow.compute
    import pyarrow.parquet

    path, place = job.repaired(number), job.repairer.schema.names.index(_verdict_name(job))
    if not path.exists():
        made = [_repaired(job, batch) for batch in _answered(job, number)]
        table = pyarrow.Table.from_batches(made)
        with writing(path) as stream:
            pyarrow.parquet.write_table(table, stream)
        verdicts = table.column(place)
    else:
        verdicts = pyarrow.parquet.read_table(path, columns=[_verdict_name(job)]).column(0)
    return {one["values"]: one["counts"] for one in pyarrow.compute.value_counts(verdicts).to_pylist()}


def _verdict_name(job: _Job) -> str:
    return job.repairer.columns["verdict"]


def _repaired(job: _Job, batch: Any) -> Any:
    import pyarrow

    delivered, rows = job.repairer.delivered(batch)
    keys = list(map(review_key, rows))
    for place, name in enumerate(ORDER):
        column = [None if key is None else float(key[place]) for key in keys]
        delivered = delivered.append_column(name, pyarrow.array(column, pyarrow.float64()))
    return delivered


def _answered(job: _Job, number: int) -> Iterator[Any]:
    """The rows of a piece with their answers, a batch at a time."""
    import pyarrow

    piece = job.pieces[number]
    if not job.answers:
        yield from _read(piece, size=TOGETHER)
        return
    answers = _batches([job.joined(hashed) for hashed in range(job.hashes)], number)
    rows = answers["row"].to_numpy() - piece.first
    order = np.argsort(rows, kind="stable")
    said = answers.drop_columns(["row"]).take(order).combine_chunks().to_struct_array()
    said = said.combine_chunks() if isinstance(said, pyarrow.ChunkedArray) else said
    offsets = np.searchsorted(rows[order], np.arange(piece.rows + 1)).astype(np.int32)
    lists, place = pyarrow.ListArray.from_arrays(offsets, said), 0
    for batch in _read(piece, size=TOGETHER):
        yield batch.append_column(ANSWERS, lists.slice(place, batch.num_rows))
        place += batch.num_rows


def _rank(job: _Job) -> None:
    """The rank of every row, where all machines can read it."""
    import pyarrow.parquet

    if job.ranks.exists():
        return
    keys, rows = [], []
    for piece in job.pieces:
        table = pyarrow.parquet.read_table(job.repaired(piece.number), columns=list(ORDER))
        found = np.stack([table.column(name).to_numpy() for name in ORDER])  # a null is NaN
        waiting = np.flatnonzero(~np.isnan(found[0]))
        keys.append(found[:, waiting])
        rows.append(piece.first + waiting)
    ranks = np.zeros(job.pieces[-1].first + job.pieces[-1].rows, np.int64)
    order = np.lexsort(np.concatenate(keys, axis=1)[::-1])  # stable: of equal ones the first of the table
    ranks[np.concatenate(rows)[order]] = np.arange(1, len(order) + 1)
    with writing(job.ranks) as stream:
        np.save(stream, ranks)


def _parts(job: _Job, number: int) -> None:
    """Write a part: the rows of the table with what is delivered of them."""
    import pyarrow
    import pyarrow.parquet

    piece = job.pieces[number]
    if job.part(number).exists():
        return
    given = pyarrow.Table.from_batches(list(_read(piece)))
    repaired = pyarrow.parquet.read_table(job.repaired(number))
    ranks = np.load(job.ranks, mmap_mode="r")[piece.first : piece.first + piece.rows]
    own = {key: repaired.column(name) for key, name in job.repairer.columns.items()}
    own["rank"] = pyarrow.array(np.asarray(ranks), mask=np.asarray(ranks) == 0)
    for key, name in delivered_names(job.columns, job.repairer.recipe.fields).items():
        given = given.append_column(name, own[key])
    with writing(job.part(number)) as stream:
        pyarrow.parquet.write_table(given, stream)
