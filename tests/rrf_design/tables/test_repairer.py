"""`rrf.repairer`: a table in Arrow batches becomes what `rrf.repair` delivers of it."""

from __future__ import annotations

import pickle
import random
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.questions import RecordedAnswers
from rrf_design.texts import cell_text

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.parquet")


@pytest.fixture(scope="module")
def rows(folder: Path, items: rrf.Dataset) -> list[dict[str, Any]]:
    """The rows of the table with their answers."""
    found = []
    with RecordedAnswers(items, folder / "answers.jsonl") as recorded:
        for item in items.items_in_order():
            said = [{"node": node, **asdict(one)} for node, one in recorded.of(item.id).items()]
            found.append({**item.cells, "answers": said})
    return found


def test_it_says_of_every_row_what_a_repair_of_the_table_says(
    folder: Path, items: rrf.Dataset, rows: list[dict[str, Any]]
) -> None:
    repair = rrf.repairer(items.recipe)
    found = repair(pa.Table.from_pylist(rows)).to_pylist()
    assert len(found) == len(items)
    verdicts = set()
    for one, row in zip(found, rrf.repair(items, folder / "answers.jsonl").rows(), strict=True):
        cells = row.cells(None)
        assert one["id"] == row.id
        for name in ("verdict", "assumes", "raw", "answer"):
            assert one[name] == (None if cells[name] is None else cell_text(cells[name])), (row.id, name)
        assert (one["changed"], one["cost"]) == (cells["changed"], cells["cost"])
        assert one["bound"] == (None if cells["bound"] is None else pytest.approx(cells["bound"], rel=1e-9))
        verdicts.add(one["verdict"])
    assert len(verdicts) > 2


def test_results_depend_on_the_row_alone(items: rrf.Dataset, rows: list[dict[str, Any]]) -> None:
    """Every size of batch, any order, before and after pickling: the same bytes."""
    repair = rrf.repairer(items.recipe)
    whole = pa.Table.from_batches([repair(pa.RecordBatch.from_pylist(rows))])
    order = list(range(len(rows)))
    for size in (1, 2, 7, 59, 60):
        random.Random(size).shuffle(order)
        shuffled = pa.Table.from_pylist([rows[place] for place in order], schema=pa.Table.from_pylist(rows).schema)
        again = pickle.loads(pickle.dumps(repair))
        parts = [again(part) for part in shuffled.to_batches(max_chunksize=size)]
        assert all(part.schema == repair.schema for part in parts)
        assert pa.Table.from_batches(parts).equals(whole.take(order))


def test_a_row_that_cannot_be_used_says_why_and_the_others_stand(
    items: rrf.Dataset, rows: list[dict[str, Any]]
) -> None:
    repair = rrf.repairer(items.recipe)
    bad = [dict(row) for row in rows[:4]]
    bad[0]["answers"] = [{"node": "nobody", "text": "1"}]
    bad[1]["answers"] = [{**one, "value": None} for one in bad[1]["answers"][:1]] * 2
    bad[2]["answers"] = []
    found = repair(pa.RecordBatch.from_pylist(bad)).to_pylist()
    assert [one["verdict"] for one in found[:3]] == ["incomplete"] * 3
    assert "nobody" in found[0]["reason"]
    assert "a second answer" in found[1]["reason"]
    assert "there is no answer" in found[2]["reason"]
    assert found[3] == repair(pa.RecordBatch.from_pylist(rows[3:4])).to_pylist()[0]


def test_what_it_needs_is_said_in_one_line(items: rrf.Dataset, rows: list[dict[str, Any]]) -> None:
    with pytest.raises(rrf.InputError, match="has no column 'answers'"):
        rrf.repairer(items.recipe)(pa.RecordBatch.from_pylist([{"no": "1"}]))
    with pytest.raises(rrf.InputError, match="a column that names the row"):
        rrf.repairer({"answer": {"of": "a"}, "ask": [{"id": "a", "prompt": "?", "parse": "decimal"}]})


def test_dask_maps_it_over_parts_as_it_is(items: rrf.Dataset, rows: list[dict[str, Any]]) -> None:
    distributed = pytest.importorskip("distributed")
    repair, table = rrf.repairer(items.recipe), pa.Table.from_pylist(rows)
    with (
        distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        parts = client.gather(client.map(repair, table.to_batches(max_chunksize=17)))
    assert pa.Table.from_batches(parts).equals(repair(table))


def _table(rows: list[dict[str, Any]], repair: Any) -> tuple[Any, list[Any]]:
    """The rows as an Arrow table, and what is to come of them."""
    table = pa.Table.from_pylist(rows)
    return table, repair(table).to_pylist()


def test_duckdb_gives_it_batches(items: rrf.Dataset, rows: list[dict[str, Any]]) -> None:
    duckdb = pytest.importorskip("duckdb")
    repair = rrf.repairer(items.recipe)
    table, wanted = _table(rows, repair)
    with duckdb.connect() as connection:
        parts = connection.cursor().from_arrow(table).to_arrow_reader(7)
        repaired = pa.RecordBatchReader.from_batches(repair.schema, map(repair, parts))
        counted = connection.from_arrow(repaired).aggregate("count(*), count(answer)").fetchall()
        parts = connection.cursor().from_arrow(table).to_arrow_reader(7)
        found = pa.Table.from_batches(map(repair, parts)).to_pylist()
    assert found == wanted
    assert counted == [(len(rows), sum(row["answer"] is not None for row in wanted))]


def test_polars_gives_it_frames(items: rrf.Dataset, rows: list[dict[str, Any]]) -> None:
    polars = pytest.importorskip("polars")
    repair = rrf.repairer(items.recipe)
    table, wanted = _table(rows, repair)
    frame = polars.from_arrow(table)
    assert polars.from_arrow(repair(frame.to_arrow())).to_dicts() == wanted


def test_spark_maps_it(items: rrf.Dataset, rows: list[dict[str, Any]], tmp_path: Path) -> None:
    """`make test-engines`: no dependency of ours."""
    sql = pytest.importorskip("pyspark.sql")
    from pyspark.sql.pandas.types import from_arrow_schema

    repair = rrf.repairer(items.recipe)
    table, wanted = _table(rows, repair)
    pa.parquet.write_table(table, tmp_path / "rows.parquet")
    settings = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1"}
    session = sql.SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    try:
        frame = session.read.parquet(str(tmp_path / "rows.parquet"))
        mapped = frame.mapInArrow(lambda parts: map(repair, parts), from_arrow_schema(repair.schema))
        found = mapped.toArrow().to_pylist()
    finally:
        session.stop()
    assert sorted(found, key=lambda row: row["id"]) == sorted(wanted, key=lambda row: row["id"])


def test_ray_maps_it(items: rrf.Dataset, rows: list[dict[str, Any]]) -> None:
    """`make test-engines`: no dependency of ours."""
    data = pytest.importorskip("ray.data")
    repair = rrf.repairer(items.recipe)
    table, wanted = _table(rows, repair)
    mapped = data.from_arrow(table).map_batches(repair, batch_format="pyarrow")
    found = [row for part in mapped.iter_batches(batch_format="pyarrow") for row in part.to_pylist()]
    assert sorted(found, key=lambda row: row["id"]) == sorted(wanted, key=lambda row: row["id"])
