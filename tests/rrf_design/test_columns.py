"""Nodes, relations and anchors as columns beside a problem file: the same problem as inline, with
the same digest, and a fault in one line that names file, row or column.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import rrf_design as rrf
from rrf_design import _columns
from rrf_design.cli import main

SECTIONS = ("nodes", "relations", "anchors")
Document = dict[str, Any]

PLAIN: Document = {
    "problem": {"k": 1, "epsilon": 0.01, "delta": 0.5, "budget": 3.0},
    "nodes": [{"id": "a", "dim": 1}, {"id": "b"}, {"id": "c", "unit": "u", "cost": 2}, {"id": "é", "prompt": "{ x"}],
    "relations": [
        {"id": "ab", "tail": "a", "head": "b", "transport": {"scale": 2.0}, "offset": 1, "weight": 3},
        {"id": "bé", "tail": "b", "head": "é", "sigma": 0.5, "cost": 1.5},
        {"id": "ac", "tail": "a", "head": "c", "transport": {}, "family": "f", "uncertainty": 0.0},
        {"id": "aé", "tail": "a", "head": "é", "transport": {"scale": -0.0}},
    ],
    "anchors": [{"id": "x", "node": "a", "value": 1.0}, {"id": "y", "node": "b", "value": -2.5, "cost": 0}, {"id": "z", "node": "é", "value": 0}],
}  # fmt: skip
NESTED: Document = {
    "problem": {"k": 1},
    "nodes": [
        {"id": "p", "dim": 2, "metric": [[2.0, 0.0], [0.0, 1.0]]},
        {"id": "q", "dim": 2, "range": [0.0, 1.0], "variables": {"n": 3}},
        {"id": "s", "sigma": 0.1, "again": 0.2, "parser": "decimal"},
        {"id": "t", "parser": {"name": "json", "field": "items"}},
    ],
    "relations": [
        {"id": "pq", "tail": "p", "head": "q", "transport": {"permute": [1, 0]}, "offset": [1.0, 2.0]},
        {"id": "ps", "tail": "p", "head": "s", "transport": {"select": [1]}},
        {"id": "st", "rows": {"s": [[1.0]], "t": [[-0.5]]}},
        {"id": "sum", "sum": ["s", "p"], "head": "t", "trusted": False},
    ],
    "anchors": [
        {"id": "x", "nodes": ["s", "t"], "rows": [[1.0, 1.0]], "value": [3.0], "requires": ["y"], "cost": 1.0},
        {"id": "y", "node": "p", "value": [1.0, 2.0], "covariance": [[1.0, 0.5], [0.5, 2.0]], "cost": 1.0},
    ],
}


def written(folder: Path, document: Document, form: str, *, structs: bool = False) -> Path:
    """The file that names a table for each section; nested cells as structs and lists where arrow
    has a type for the column, else as JSON text.
    """
    for section in SECTIONS:
        rows = document[section]
        path = folder / f"{section}.{form}"
        if form == "jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
            continue
        keys = list(dict.fromkeys(key for row in rows for key in row))
        table = pa.table({key: column([row.get(key) for row in rows], structs=structs) for key in keys})
        if form == "parquet":
            pyarrow.parquet.write_table(table, path)
        elif form == "arrow":
            with pa.OSFile(str(path), "wb") as stream, pa.ipc.new_stream(stream, table.schema) as writer:
                writer.write_table(table)
        else:
            pyarrow.feather.write_feather(table, path)
    tables = "".join(f'{section} = {{ table = "{section}.{form}" }}\n' for section in SECTIONS)
    settings = "".join(f"{key} = {value!r}\n" for key, value in document["problem"].items())
    (folder / "problem.toml").write_text(f"{tables}[problem]\n{settings}", encoding="utf-8")
    return folder / "problem.toml"


def column(cells: list[Any], *, structs: bool) -> pa.Array:
    if structs:
        try:
            return pa.array(cells)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            pass  # text beside tables, numbers beside lists: no type of arrow's
    texts = any(isinstance(cell, str | dict | list) for cell in cells)
    return pa.array([json.dumps(c) if isinstance(c, dict | list) or (texts and type(c) is float) else c for c in cells])


@pytest.mark.parametrize("structs", [True, False])
@pytest.mark.parametrize("form", ["parquet", "arrow", "feather", "jsonl"])
@pytest.mark.parametrize("document", [PLAIN, NESTED])
def test_columns_are_the_same_problem(tmp_path: Path, document: Document, form: str, structs: bool) -> None:
    inline = rrf.loads(json.dumps(document), "json")
    given = rrf.load(written(tmp_path, document, form, structs=structs))
    assert given == inline
    assert given.digest == inline.digest
    assert rrf.dumps(given) == rrf.dumps(inline)
    assert given.margin(select="all").value == inline.margin(select="all").value


def test_the_bulk_check_gives_what_the_rows_give(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seeded tables of plain columns with null cells: same entries, same keys that were given."""
    draw = random.Random(7)
    for _ in range(20):
        ids = [f"n{i}" for i in range(draw.randint(1, 6))]
        some = lambda value: value if draw.random() < 0.6 else None  # noqa: E731
        rows: Document = {
            "problem": {"k": 1},
            "nodes": [{"id": i, "dim": some(1), "unit": some("u"), "cost": some(draw.randint(0, 3))} for i in ids],
            "relations": [
                {"id": f"r{j}", "tail": draw.choice(ids), "head": draw.choice(ids), "offset": some(draw.random()),
                 "weight": some(2.0), "transport": some({"scale": draw.choice([2.0, -0.0, 0.0])})}
                for j in range(draw.randint(1, 8))
            ],
            "anchors": [{"id": "x", "node": ids[0], "value": some(1)}, {"id": "y", "node": ids[0], "value": 1.5}],
        }  # fmt: skip
        path = written(tmp_path, rows, "parquet", structs=True)
        fast = rrf.load(path)
        with monkeypatch.context() as patch:
            patch.setattr(_columns, "_in_bulk", lambda *_: None)
            slow = rrf.load(path)
        assert fast == slow
        assert repr([fast.nodes, fast.blocks]) == repr([slow.nodes, slow.blocks])  # 1 is not 1.0, nor 0.0 -0.0
        for quick, plain in zip((*fast.nodes, *fast.blocks), (*slow.nodes, *slow.blocks), strict=True):
            assert quick.model_fields_set == plain.model_fields_set


def test_the_bulk_check_is_what_reads_plain_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_columns, "_row_by_row", lambda *_: pytest.fail("read row by row"))
    plain = {**PLAIN, "nodes": [{key: row[key] for key in row if key != "transport"} for row in PLAIN["nodes"]]}
    assert rrf.load(written(tmp_path, plain, "parquet", structs=True)).k == 1


def test_verbs_work_on_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, PLAIN, "parquet", structs=True)
    (tmp_path / "field.json").write_text(json.dumps({"a": 1.0, "b": 3.0, "é": 0.0}), encoding="utf-8")
    certificate = str(tmp_path / "c.json")
    for verb in (
        ["margin", str(path)],
        ["plan", str(path), "--budget", "3"],
        ["certify", str(path), "--all", "-o", certificate],
        ["verify", certificate],
        ["repair", str(path), "-r", str(tmp_path / "field.json")],
        ["explain", str(path)],
        ["report", str(path), "-o", str(tmp_path / "page.html")],
    ):
        with pytest.raises(SystemExit) as ended:
            main(verb)
        said = capsys.readouterr()
        assert ended.value.code in (0, 1), (verb, said.err)
        assert "Traceback" not in said.err
    document = json.loads(Path(certificate).read_text(encoding="utf-8"))
    assert rrf.loads(json.dumps(PLAIN), "json").digest in json.dumps(document)


FAULTS: dict[str, tuple[str, Document, str]] = {
    "unknown column": ("nodes", {"cots": [1.0, 2.0]}, "nodes.parquet: unknown column 'cots'; did you mean 'cost'?"),
    "no such number": ("nodes", {"cost": [1.0, -2.0]}, "nodes.parquet: row 2: node 'b': cost must be greater"),
    "not finite": ("anchors", {"value": [1.0, float("nan")]}, "row 2: anchor 'y': value must be a finite number"),
    "not whole": ("nodes", {"dim": [1.0, 2.0]}, "row 1: node 'a': dim must be a whole number, not 1.0"),
    "too large": ("nodes", {"dim": [1, 10**9]}, "row 2: node 'b': dim must be"),
    "a flag": ("relations", {"weight": [True, False]}, "row 1: relation 'r': weight must be a number"),
    "a day": ("relations", {"weight": pa.array([1, 2], pa.date32())}, "row 1: relation 'r': weight must be a number"),
    "empty text": ("nodes", {"unit": ["u", ""]}, "row 2: node 'b': unit must be non-empty text"),
    "no id": ("nodes", {"id": ["a", None]}, "row 2: node number 2: id is missing"),
    "no head": ("relations", {"head": ["b", None]}, "row 2: relation 's': head is missing"),
    "bad JSON": ("relations", {"transport": ["identity", "{x"]}, "row 2: transport: not valid JSON"),
    "two keys": ("nodes", {"sigma": [1.0, 1.0], "metric": [2.0, None]}, "row 1: node 'a': give only one of sigma and"),
    "inner key": ("relations", {"transport": [{"scal": 1.0}, None]}, "row 1: relation 'r': unknown key 'scal'"),
    "unknown node": ("relations", {"head": ["b", "bb"]}, "relation 's': unknown node 'bb'; did you mean 'b'?"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], fault: str) -> None:
    section, change, words = FAULTS[fault]
    tables: dict[str, Document] = {
        "nodes": {"id": ["a", "b"]},
        "relations": {"id": ["r", "s"], "tail": ["a", "a"], "head": ["b", "b"]},
        "anchors": {"id": ["x", "y"], "node": ["a", "b"]},
    }
    if section != "nodes":
        tables = {"nodes": tables["nodes"], section: {**tables[section], **change}}
    else:
        tables = {"nodes": {**tables["nodes"], **change}}
    said = refused(tmp_path, capsys, tables)
    assert words in said


def refused(folder: Path, capsys: pytest.CaptureFixture[str], tables: dict[str, Document]) -> str:
    document: Document = {}
    for section, columns in tables.items():
        pyarrow.parquet.write_table(pa.table(columns), folder / f"{section}.parquet")
        document[section] = {"table": f"{section}.parquet"}
    return told(folder, capsys, document)


def told(folder: Path, capsys: pytest.CaptureFixture[str], document: Document) -> str:
    path = folder / "problem.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        main(["margin", str(path)])
    said = capsys.readouterr()
    assert ended.value.code == 2
    assert said.err.count("\n") == 1
    assert "Traceback" not in said.err
    return said.err


@pytest.mark.parametrize(
    ("named", "content", "words"),
    [
        ({"table": "n.parquet"}, None, "n.parquet: no such file"),
        ({"table": "n.parquet"}, b"PAR1 nonsense", "n.parquet: not Parquet that can be read"),
        ({"table": "n.arrow"}, b"", "n.arrow: not Arrow that can be read"),
        ({"table": "n.csv"}, b"id\na\n", "tables of nodes end in .parquet, .arrow, .feather, .jsonl, not '.csv'"),
        ({"table": "n.jsonl"}, b'{"id": "a"}\n[1]\n', "n.jsonl: line 2: must be a JSON object"),
        ({"table": "n.jsonl"}, b'{"id": "a"}\n{"id": "b", "cost": NaN}\n', "line 2: NaN is not a number"),
        ({"table": "n.jsonl"}, b'{"id": "a"}\n{"id": "b", "cots": 1}\n', "unknown column 'cots'; did you mean 'cost'?"),
        ({"table": "n.jsonl"}, b'{"id": "a"}\n\n{"id": "b", "cost": "1"}\n', "row 2: node 'b': cost must be a number"),
        ({"table": "n.jsonl"}, b"", "nodes: the field is empty"),
        ({"tabel": "n.jsonl"}, None, "write [[nodes]], or in a file nodes = { table ="),
        ({"table": "n.jsonl", "kind": 1}, None, "nodes: unknown key 'kind'; known: table"),
        ({"table": 3}, None, "nodes: table must be the name of a file, not 3"),
        ({}, None, "nodes: must be a list of tables; write [[nodes]]"),
    ],
)
def test_files_that_are_no_tables_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], named: Document, content: bytes | None, words: str
) -> None:
    if content is not None:
        (tmp_path / named["table"]).write_bytes(content)
    assert words in told(tmp_path, capsys, {"nodes": named})


def test_chunks_dictionaries_and_empty_tables(tmp_path: Path) -> None:
    many = pa.table({"id": pa.array(["a", "b", "c"]).dictionary_encode(), "cost": pa.array([1, None, 2], pa.int8())})
    with pa.OSFile(str(tmp_path / "nodes.arrow"), "wb") as stream, pa.ipc.new_file(stream, many.schema) as writer:
        writer.write_table(many, max_chunksize=1)
    none = pa.table({"id": pa.array([], pa.string()), "tail": pa.array([], pa.string()), "head": pa.array([], pa.string()),
                     "transport": pa.array([], pa.struct([("scale", pa.float64())]))})  # fmt: skip
    pyarrow.parquet.write_table(none, tmp_path / "relations.parquet")
    path = tmp_path / "problem.json"
    path.write_text('{"nodes": {"table": "nodes.arrow"}, "relations": {"table": "relations.parquet"}}')
    assert rrf.load(path) == rrf.Problem(nodes=[{"id": "a", "cost": 1}, {"id": "b"}, {"id": "c", "cost": 2}])


def test_a_log_beside_columns(tmp_path: Path) -> None:
    """Noise from a log lands in blocks of a table as it does inline, whoever names the log."""
    draw = np.random.default_rng(0)
    (tmp_path / "log.csv").write_text(
        "id,node,repeat,value\n" + "".join(f"{i},x,{r},{draw.normal():.3f}\n" for i in range(4) for r in (1, 2, 3))
    )
    inline = {"nodes": [{"id": "a"}], "anchors": [{"id": "x", "node": "a", "value": 1.0, "estimated_from": "log.csv"}]}
    (tmp_path / "inline.json").write_text(json.dumps(inline))
    pyarrow.parquet.write_table(pa.Table.from_pylist(inline["anchors"]), tmp_path / "anchors.parquet")
    (tmp_path / "tables.json").write_text(json.dumps({**inline, "anchors": {"table": "anchors.parquet"}}))
    found = rrf.load(tmp_path / "tables.json")
    assert found.anchors[0].estimated_from == 9
    assert found == rrf.load(tmp_path / "inline.json")
