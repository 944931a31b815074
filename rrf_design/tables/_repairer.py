"""`repairer`: the repair of rows as a function from an Arrow batch to an Arrow batch.

Whatever maps a function over batches runs it as it is: Dask, Spark, Ray, DuckDB, Polars. All it
carries is the recipe and how to repair; structures are found as rows come, and what a row becomes
depends on the row alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any

from rrf_design.arguments import seconds_of
from rrf_design.errors import InputError, MissingDependency
from rrf_design.noise import Noise
from rrf_design.questions.answers import NodeNames, RawItem
from rrf_design.questions.filling import Filler
from rrf_design.questions.recipe import Recipe, as_recipe
from rrf_design.repairing.contract import WorkSettings
from rrf_design.structure import structure_key
from rrf_design.tables._engine import EngineSettings, TableEngine
from rrf_design.tables.rows import COLUMNS, Key, Row, delivered_names, joined_row, unusable_row
from rrf_design.texts import cell_text, whole

if TYPE_CHECKING:
    import pyarrow

ANSWERS = "answers"
"""The column of a batch that holds what was answered about its row."""


class Repairer:
    """Repairs the rows of a batch; made by `rrf_design.repairer`.

    A call takes a `pyarrow.RecordBatch` or `Table` with the columns of the row and `answers`, a
    list of structs with `node` and, where they are known, `model`, `repeat`, `text`, `value` (a
    list of numbers), `status` and `cost`. It returns the same kind with the columns of `schema`:
    the id of the row and what is delivered of it, without `rank`, which compares rows. Rows that
    can't be used are `incomplete` and say why. Answers are texts, as a CSV table has them.
    """

    def __init__(self, recipe: Recipe, settings: EngineSettings) -> None:
        if recipe.data.id is None:
            raise InputError(f"{recipe.name}: repairer needs a column that names the row; give it as id in [data]")
        self.recipe, self.settings, self._lock = recipe, settings, Lock()

    def __reduce__(self) -> tuple[type[Repairer], tuple[Recipe, EngineSettings]]:
        return Repairer, (self.recipe, self.settings)

    def __repr__(self) -> str:
        return f"repairer({self.recipe.name!r})"

    @property
    def schema(self) -> pyarrow.Schema:
        """What a call returns."""
        arrow = _arrow()
        kinds = {name: _kind(key) for key, name in self.columns.items()}
        return arrow.schema([(name, getattr(arrow, kind)()) for name, kind in {"id": "string", **kinds}.items()])

    @property
    def columns(self) -> dict[Key, str]:
        """What each delivered column is called, beside `id`."""
        named = delivered_names(["id"], self.recipe.fields)
        return {key: name for key, name in named.items() if key != "rank"}

    def __call__(self, batch: Any) -> Any:
        """What is delivered of each row of the batch, in its order."""
        return self.delivered(batch)[0]

    def delivered(self, batch: Any) -> tuple[Any, list[Row]]:
        """What a call returns, and the rows that it was made from."""
        arrow, schema = _arrow(), self.schema
        if ANSWERS not in batch.schema.names:
            raise InputError(f"repairer: the batch has no column {ANSWERS!r}; it has {', '.join(batch.schema.names)}")
        with self._lock:  # an engine may call it in several threads
            rows = list(self._rows(batch.to_pylist()))
        cells = [row.cells(None) for row in rows]
        columns = [[row.id for row in rows], *([_cell(one[key], key) for one in cells] for key in self.columns)]
        arrays = [arrow.array(column, kind) for column, kind in zip(columns, schema.types, strict=True)]
        kind = arrow.Table if isinstance(batch, arrow.Table) else arrow.RecordBatch
        return kind.from_arrays(arrays, schema=schema), rows

    @cached_property
    def _filler(self) -> Filler:
        return Filler(self.recipe)

    @cached_property
    def _names(self) -> NodeNames:
        return NodeNames(self.recipe)

    @cached_property
    def _engine(self) -> TableEngine:
        return TableEngine(self.recipe, {}, self.settings)

    @cached_property
    def _structures(self) -> dict[tuple[Any, ...], str]:
        """The structures seen so far, by what of a row decides them."""
        return {}

    def _rows(self, batch: list[dict[str, Any]]) -> Iterator[Row]:
        found: list[Row | RawItem] = []
        for cells in batch:
            answers, golds = cells.pop(ANSWERS), self.recipe.data.gold_columns
            name = str(cells.get(self.recipe.data.id or ""))
            try:
                seen = {column: cell for column, cell in cells.items() if column not in golds}
                found.append(RawItem(name, seen, self._structure(seen), self._answers(answers)))
            except InputError as error:
                row = unusable_row(name, str(error))
                found.append(joined_row([(field, row) for field in self.recipe.fields or ("",)]))
        rows = iter(self._engine.rows([item for item in found if isinstance(item, RawItem)]))
        for item in found:
            yield item if isinstance(item, Row) else next(rows)

    def _structure(self, cells: Mapping[str, Any]) -> str:
        faults = self._filler.faults(cells)
        if faults:
            raise InputError(faults[0])
        pattern = self._filler.pattern(cells)
        if pattern not in self._structures:
            example = self._filler.problem(cells, name="example")
            key = structure_key(example)
            self._engine.learn(key, example)
            self._structures[pattern] = key
        return self._structures[pattern]

    def _answers(self, given: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for one in given or ():
            nodes, answer = self._names.answered(str(one["node"]), one)
            for node in nodes:
                if node in found:
                    raise InputError(f"a second answer of node {node!r}; say which repeat it is")
                found[node] = answer
        return found


def _kind(key: Key) -> str:
    """The type of a column, whatever field it is of."""
    return COLUMNS[key if isinstance(key, str) else key[1]].kind


def _cell(cell: Any, key: Key) -> Any:
    """A cell of the batch; numbers and texts of answers stand as a CSV table has them."""
    return cell if cell is None or _kind(key) != "string" else whole(cell_text(cell))


def _arrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise MissingDependency("repairer needs pyarrow: pip install 'rrf-design[parquet]'") from None
    return pyarrow


def repairer(
    recipe: Any,
    *,
    select: Any = None,
    method: str = "auto",
    k: int | None = None,
    noise: Noise | None = None,
    options: Mapping[str, Any] | None = None,
    time_limit: float | None = None,
    seed: int = 0,
) -> Repairer:
    """`repair` of a table's rows as a function from an Arrow batch to an Arrow batch.

    It can be pickled, keeps nothing that a result depends on, and gives a row the same cells in
    batches of any size and order: engines that map functions over batches run it as it is.

    Parameters
    ----------
    recipe
        A path, the content of a recipe's file, or a `Recipe`; it names the id of a row in [data].
    select, method, k, noise, options, time_limit, seed
        As in `repair`; `time_limit` is of one row.

    Returns
    -------
    A function of a `pyarrow.RecordBatch` or `Table` (the columns of the row, and `answers`) that
    returns the delivered columns without `rank`; `schema` says what they are.

    >>> import pyarrow as pa
    >>> import rrf_design as rrf
    >>> ask = [{"id": "a", "prompt": "{{ text }}", "parse": "decimal"}]
    >>> ask += [{**ask[0], "id": name, "like": "a"} for name in ("b", "c")]
    >>> recipe = {"data": {"id": "no"}, "answer": {"of": "a", "tolerance": 0.5}, "ask": ask}
    >>> repair = rrf.repairer(recipe)
    >>> said = [{"node": node, "text": text} for node, text in (("a", "7"), ("b", "9"), ("c", "7"))]
    >>> found = repair(pa.RecordBatch.from_pylist([{"no": "1", "text": "3 + 4", "answers": said}]))
    >>> found.to_pylist()[0]["answer"], found.to_pylist()[0]["verdict"]
    ('7', 'consistent')
    """
    chosen = None if select is None else select if isinstance(select, str) else tuple(select)
    work = WorkSettings(None, seconds_of(time_limit), seed, None, options or {})
    return Repairer(as_recipe(recipe), EngineSettings(chosen, method, k, noise, work))
