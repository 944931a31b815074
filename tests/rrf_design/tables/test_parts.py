"""`repair -o FOLDER/`: parts that workers read and write are what one process delivers."""

from __future__ import annotations

import hashlib
import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import joblib
import pytest

import rrf_design as rrf
from rrf_design.cli.app import app
from rrf_design.questions import RecordedAnswers
from rrf_design.questions.answers import AnswerParts, answer_parts, part_of
from rrf_design.tables import _parts, repair_parts
from rrf_design.texts import cell_text

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402


@pytest.fixture(scope="module")
def given(folder: Path, items: rrf.Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """rrf.toml, rows.parquet, table.parquet with answers in the rows, and a folder of answers."""
    where = tmp_path_factory.mktemp("given")
    (where / "rrf.toml").write_text((folder / "rrf.toml").read_text())
    rows, plain = [], []
    with RecordedAnswers(items, folder / "answers.jsonl") as recorded, AnswerParts(where / "answers", 5) as long:
        for item in items.items_in_order():
            said = recorded.of(item.id)
            told = [
                {"node": node, "text": one.text, "status": one.status, "value": one.value} for node, one in said.items()
            ]
            rows.append({**item.cells, "answers": told})
            plain.append(item.cells)
            for node, one in said.items():
                text = cell_text(next(iter(one.value))) if one.value is not None else one.text
                long.add({"id": item.id, "node": node, "text": text, "status": one.status})
    pq.write_table(pa.Table.from_pylist(rows), where / "table.parquet", row_group_size=17)
    pq.write_table(pa.Table.from_pylist(plain), where / "rows.parquet", row_group_size=23)
    return where


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_parts, "PIECE", 8)
    monkeypatch.setattr(_parts, "HASHED", 20)


def parts(folder: Path) -> list[bytes]:
    assert sorted(path.name for path in folder.iterdir() if not path.name.startswith("part-")) == ["_repair.json"]
    return [path.read_bytes() for path in sorted(folder.glob("part-*.parquet"))]


def test_the_parts_together_are_what_is_delivered_of_the_table(given: Path, folder: Path, items: rrf.Dataset) -> None:
    repair = rrf.repairer(given / "rrf.toml")
    found = repair_parts(repair, given / "table.parquet", given / "out")
    delivery = rrf.repair(items, folder / "answers.jsonl")
    rows = pa.concat_tables(pq.read_table(given / "out" / f"part-{n:05d}.parquet") for n in range(found.parts))
    assert found.parts == 11
    assert dict(found.verdicts) == delivery.verdicts
    assert found.passing_share == delivery.passing_share
    assert rows.column_names[5:] == [*repair.columns.values(), "rank"]
    for one, (item, row, rank) in zip(rows.to_pylist(), delivery.ranked(), strict=True):
        cells = row.cells(rank)
        assert (one["no"], one["rank"]) == (item.id, rank)
        for name in ("verdict", "raw", "answer"):
            assert one[name] == (None if cells[name] is None else cell_text(cells[name])), (row.id, name)


def test_answers_of_a_folder_come_to_their_rows(given: Path) -> None:
    """Whatever the parts are cut into, on one process or several: the same cells, in order."""
    repair = rrf.repairer(given / "rrf.toml")
    inside = repair_parts(repair, given / "table.parquet", given / "inside")
    beside = repair_parts(repair, given / "rows.parquet", given / "beside", responses=given / "answers")
    two = repair_parts(repair, given / "rows.parquet", given / "two", responses=given / "answers", n_jobs=2)
    assert inside.verdicts == beside.verdicts == two.verdicts
    assert parts(given / "beside") == parts(given / "two")
    names = ["no", "answer", "verdict", "reason", "cost", "rank"]
    assert pq.read_table(given / "inside", columns=names).equals(pq.read_table(given / "beside", columns=names))


def test_parts_of_answers_may_be_empty(given: Path, tmp_path: Path) -> None:
    repair = rrf.repairer(given / "rrf.toml")
    with AnswerParts(tmp_path / "many", 200) as long:
        for path in answer_parts(given / "answers"):
            for row in pq.read_table(path).to_pylist():
                long.add({key: cell for key, cell in row.items() if cell is not None})
    assert any(pq.read_metadata(path).num_rows == 0 for path in answer_parts(tmp_path / "many"))
    for answers in (given / "answers", tmp_path / "many"):
        repair_parts(repair, given / "rows.parquet", tmp_path / answers.name / "out", responses=answers)
    assert parts(tmp_path / "answers" / "out") == parts(tmp_path / "many" / "out")


def test_what_was_written_is_not_written_again(given: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped in every step, and gone on: the same bytes; another recipe's parts are refused."""
    repair, table = rrf.repairer(given / "rrf.toml"), given / "table.parquet"
    repair_parts(repair, table, given / "whole")
    for number, step in enumerate(("_ids", "_joins", "_repairs", "_rank", "_parts")):
        target = given / f"stopped-{number}"
        with monkeypatch.context() as patched:
            patched.setattr(_parts, step, stopped_after(2, getattr(_parts, step)))
            with pytest.raises(KeyboardInterrupt):
                repair_parts(repair, table, target)
        with pytest.raises(rrf.InputError, match="is there already"):
            repair_parts(repair, table, target)
        repair_parts(repair, table, target, resume=True)
        assert parts(target) == parts(given / "whole")
    again = repair_parts(repair, table, given / "whole", resume=True)
    assert sum(again.verdicts.values()) == 60
    with pytest.raises(rrf.InputError, match="no parts of this recipe"):
        repair_parts(rrf.repairer(given / "rrf.toml", k=0), table, given / "whole", resume=True)


def stopped_after(count: int, work: Any) -> Any:
    def counted(*given: Any) -> Any:
        nonlocal count
        count -= 1
        if count < 0 or work.__name__ == "_rank":
            raise KeyboardInterrupt
        return work(*given)

    return counted


def test_what_is_wrong_with_rows_and_answers_is_said(given: Path, tmp_path: Path) -> None:
    repair = rrf.repairer(given / "rrf.toml")
    table = pq.read_table(given / "table.parquet")

    def told(rows: Any, **options: Any) -> str:
        pq.write_table(rows, tmp_path / "bad.parquet", row_group_size=9)
        with pytest.raises(rrf.InputError) as said:
            repair_parts(repair, tmp_path / "bad.parquet", tmp_path / f"out{len(list(tmp_path.iterdir()))}", **options)
        assert "\n" not in str(said.value)
        return str(said.value)

    ids = table["no"].to_pylist()
    ids[50], ids[3] = ids[4], " "
    twice = table.set_column(0, "no", pa.array(ids))
    assert "row 4: the id in column 'no' is empty" in told(twice)
    ids[3] = "003"
    assert "row 51: the id '004' stands in row 5 already" in told(table.set_column(0, "no", pa.array(ids)))
    assert "no column 'answers'" in told(table.drop_columns(["answers"]))
    assert "has no item '005', '006'" in told(
        table.drop_columns(["answers"]).slice(7).append_column("x", pa.array([0] * 53)), responses=given / "answers"
    ).replace("'000', '001', '002', '003', '004', ", "")
    with AnswerParts(tmp_path / "other", 2) as long:
        long.add({"id": "000", "node": "totl", "text": "1"})
    assert "no node 'totl'; did you mean 'total'" in told(table.drop_columns(["answers"]), responses=tmp_path / "other")
    (tmp_path / "other" / "part-00001-of-00002.parquet").unlink()
    assert "not all the parts" in told(table.drop_columns(["answers"]), responses=tmp_path / "other")


def test_answers_lie_by_the_hash_of_their_item(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What `import -o FOLDER/` writes, and how other programs find an item in it."""
    body = {"model": "m", "choices": [{"message": {"content": "7 \ud800"}}]}
    reply = {"response": {"status_code": 200, "body": body}, "error": None}
    log, out = tmp_path / "log.jsonl", tmp_path / "long"
    log.write_text("".join(json.dumps({"custom_id": f"{n}::total", **reply}) + "\n" for n in range(40)))
    app(["import", str(log), "-o", f"{out}/", "--parts", "3", "--json"], standalone_mode=False)
    assert json.loads(capsys.readouterr().out)["rows"] == 40
    assert part_of("007", 2**32) == int(hashlib.sha256(b"007").hexdigest()[:8], 16)
    found = [pq.read_table(path) for path in answer_parts(out)]
    for number, table in enumerate(found):
        assert {part_of(name, 3) for name in table["id"].to_pylist()} == {number}
    assert sum(map(len, found)) == 40
    with pytest.raises(rrf.InputError, match="is there already"):
        app(["import", str(log), "-o", f"{out}/"], standalone_mode=False)
    log.write_text("{}")
    with pytest.raises(rrf.InputError):
        app(["import", str(log), "-o", f"{out}-2/"], standalone_mode=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.jsonl", "long"]


@pytest.fixture
def cluster(started: Callable[[int], Any]) -> Iterator[Any]:
    with started(2) as client:
        yield client


def test_workers_write_the_same_bits_and_a_killed_one_costs_time_only(
    given: Path, cluster: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    repair = rrf.repairer(given / "rrf.toml")
    here = repair_parts(repair, given / "rows.parquet", given / "here", responses=given / "answers")
    victim = next(iter(cluster.run(os.getpid).values()))

    def kill(share: float | None, bounds: Any, words: str) -> None:
        if words.startswith("17 of"):
            os.kill(victim, signal.SIGKILL)

    with joblib.parallel_config(backend="dask", n_jobs=-1):
        there = repair_parts(
            repair, given / "rows.parquet", given / "there", responses=given / "answers", n_jobs=-1, progress=kill
        )
    assert (there.verdicts, parts(given / "there")) == (here.verdicts, parts(given / "here"))
    call = ["repair", given / "rrf.toml", "--data", given / "rows.parquet", "--responses", given / "answers", "--json"]
    call += ["--cluster", cluster.scheduler.address, "-o", given / "verb"]
    app([*map(str, call)], standalone_mode=False)
    told = json.loads(capsys.readouterr().out)
    assert (told["verdicts"], parts(given / "verb")) == (here.verdicts, parts(given / "here"))
