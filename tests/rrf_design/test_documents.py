"""Documents written whole, work shared out, texts shown as they are, errors."""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import os
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import joblib
import pytest

import rrf_design as rrf
from rrf_design import errors, verify, workers
from rrf_design.cli import main
from rrf_design.documents import (
    FORMATS,
    _dumps,
    _loads,
    _verdict_case,
    checked,
    csv_rows,
    kind_of,
    read,
    repair_cases,
    run_cases,
    sealed,
    write,
    write_junit,
)
from rrf_design.errors import InputError, RetryLater
from rrf_design.tables import _engine as engine
from rrf_design.tables import _structures as structures
from rrf_design.texts import column, digits, from_column, json_text, rounded_down, rounded_up, showable, whole
from rrf_design.workers import _is_serial, _supplied, _Supply, shared_out
from solvers.tasks import LostWorkError, through_client

PACKAGE = Path(__file__).parents[3] / "rrf_design"


def test_a_document_carries_its_format_and_is_known_by_it() -> None:
    made = sealed("rrf-plan", {"cost": 1.0})
    assert made == {"format": "rrf-plan", "version": FORMATS["rrf-plan"].version, "cost": 1.0}
    assert checked(made, "rrf-plan") == made
    assert kind_of(made) == "rrf-plan"
    assert kind_of([1]) is None


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "not a plan: the format should be 'rrf-plan'"),
        ({"format": "rrf-run", "version": 1}, "not a plan"),
        ({"format": "rrf-plan", "version": 99}, "plan version 99 is not known here"),
        ({"format": 3}, "not a plan"),
    ],
)
def test_what_is_something_else_is_refused(data: object, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        checked(data, "rrf-plan", what="plan")


def test_nobody_writes_a_format_of_his_own() -> None:
    """Outside of this room (and of the checker, which could be shipped alone) no module spells a
    document's format.
    """
    alone = {"checker", "documents"}
    for path in PACKAGE.rglob("*.py"):
        place = path.relative_to(PACKAGE).as_posix()
        if not any(place.startswith(room) for room in alone):
            assert not re.search(r'"format": "rrf-', path.read_text(encoding="utf-8")), place


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    document = {"a": [1, 2.5, None, "é"], "b": {"c": True}}
    write(tmp_path / "x.json", document)
    assert read(tmp_path / "x.json") == document
    assert _dumps(document).endswith("}\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1, "a": 2}', "'a' stands twice"),
        ('{"a": NaN}', "NaN is not JSON"),
        ("[" * 100_000, "nested too deep"),
        ("[" * 400 + '"\\u0041"' + "]" * 400, "nested too deep"),
        ('{"a":' * 101 + "1" + "}" * 101, "nested too deep"),
        ("{", "Expecting"),
    ],
)
def test_what_is_not_json_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _loads(text)
    path = tmp_path / "x.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read(path)


def test_a_hundred_levels_and_any_number_of_them_side_by_side_are_read() -> None:
    assert _loads("[" * 100 + "]" * 100)
    assert len(_loads("[" + ",".join(["[[]]"] * 1000) + "]")) == 1000


def test_a_cell_may_be_as_long_as_an_answer() -> None:
    header, rows = csv_rows(f'a,b\n"{"x" * 200_000}",2\n3,4,5\n')
    assert header == ["a", "b"]
    assert [(line, len(row["a"])) for line, row in rows] == [(2, 200_000), (3, 1)]
    assert rows[1][1]["too many cells"] == ["5"]
    with pytest.raises(InputError, match="line 2: not CSV"):
        csv_rows("a,b\n1\r2,3\n")


def test_missing_files_are_named_and_infinities_not_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read(tmp_path / "nowhere.json")
    with pytest.raises(ValueError, match="not JSON compliant"):
        write(tmp_path / "x.json", {"a": float("inf")})
    assert not (tmp_path / "x.json").exists()


def test_counts_and_awkward_text(tmp_path: Path) -> None:
    write_junit(tmp_path / "x.xml", "suite", [("ok", 0.5, None), ("<bad> & \x00", 0.25, 'not "this"\x1b')])
    root = ElementTree.parse(tmp_path / "x.xml").getroot()
    suite = root.find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures"), suite.get("time")) == ("2", "1", "0.750")
    assert [case.get("name") for case in suite] == ["ok", "<bad> & ?"]


def test_only_what_is_certified_passes() -> None:
    assert _verdict_case("a", "consistent", "all agree") == ("a", 0.0, None)
    for verdict in ("ambiguous", "incomplete", "contradicted"):
        assert _verdict_case("a", verdict, "why") == ("a", 0.0, f"{verdict}: why")
    assert _verdict_case("a", "incomplete", "") == ("a", 0.0, "incomplete")


def test_every_field_of_a_run_is_a_case() -> None:
    items = [
        {"item": "x", "name": "p", "verdict": "consistent", "stopped_because": "done", "repair": {"reason": "fine"}},
        {"item": "y", "name": "p", "verdict": "incomplete", "stopped_because": "paused", "repair": None, "detail": ""},
    ]
    purchases = [{"item": "x", "at": 10.0}, {"item": "x", "at": 12.5}]
    cases = run_cases({"items": items, "purchases": purchases})
    assert cases == [("x", 2.5, None), ("y", 0.0, "incomplete: paused")]


def test_repairs_are_cases() -> None:
    one = {"verdict": "contradicted", "reason": "nothing fits", "diagnostics": {"seconds": 0.5}}
    assert repair_cases(one, "p") == [("p", 0.5, "contradicted: nothing fits")]
    batch = {"items": [{"field": "a", **one}, {"field": "b", "verdict": "consistent", "reason": "fine"}]}
    assert repair_cases(batch, "p") == [("a", 0.5, "contradicted: nothing fits"), ("b", 0.0, None)]


def square(number: int) -> int:
    return number * number


def test_order_is_kept() -> None:
    assert list(shared_out((joblib.delayed(square)(n) for n in range(20)), n_jobs=2)) == [n * n for n in range(20)]
    assert _is_serial(None)
    assert _is_serial(1)
    assert not _is_serial(2)


@pytest.fixture(scope="module")
def cluster(started: Callable[[int], Any]) -> Iterator[Any]:
    with started(1) as client:
        yield client


RECIPE = {
    "data": {"id": "no"},
    "answer": {"of": "a", "tolerance": 0.1},
    "ask": [{"id": "a", "prompt": "?"}, *({"id": name, "prompt": "?", "like": "a"} for name in ("b", "c"))],
}


ITEMS = 40
ANSWERS = [
    {"id": str(number), "node": node, "value": float(number + (number % 3 == 0 and node == "b"))}
    for number in range(ITEMS)
    for node in ("a", "b", "c")
]


def delivered(killing: Any = None) -> list[dict[str, Any]]:
    """What a repair of the table delivers; `killing` is called when the first rows are there."""
    items = rrf.dataset(RECIPE, [{"no": str(number)} for number in range(ITEMS)])

    def progress(*_: Any) -> None:
        if killing is not None:
            killing()

    return [row.to_json() for row in rrf.repair(items, ANSWERS, progress=progress).rows()]


@pytest.fixture
def enough(cluster: Any) -> Any:
    """Waits until so many worker processes are there."""

    def scaled(processes: int) -> None:
        cluster.cluster.scale(processes)
        cluster.wait_for_workers(processes, timeout=120)

    return scaled


TABLE = {
    "data": {"id": "no"},
    "answer": {"of": "a", "tolerance": 0.1, "epsilon": 0.01},
    "ask": [
        {"id": "a", "prompt": "?"},
        *(
            {"id": name, "prompt": "?", "like": "a", "buy": "if needed", "cost": cost}
            for name, cost in (("b", 1.0), ("c", 1.5))
        ),
    ],
    "check": [
        {"id": "book", "of": "a", "by": {"value": "{{ book }}"}, "when": "{{ book }}", "cost": 0.5},
        {"id": "clerk", "of": "a", "by": {"person": "?"}, "cost": 5.0},
    ],
}
ROWS = [{"no": str(number), "book": "1" if number % 3 else ""} for number in range(12)]


def bought(folder: Path, *cluster: str) -> Any:
    """What `plan` says about a table of two structures: at least cost, and under one budget."""
    return [_said("plan", *_files(folder), *cluster), _said("plan", *_files(folder), "--budget", "9", *cluster)]


def certified(folder: Path, *cluster: str) -> Any:
    """The certificates of a table of two structures, but for how long they took."""
    _said("certify", *_files(folder), "--all", "-o", str(folder / "proofs"), *cluster)
    paths = sorted((folder / "proofs").iterdir())
    assert all(verify(path).valid for path in paths)
    found = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    return [{key: part for key, part in document.items() if key not in ("provenance", "digest")} for document in found]


def _files(folder: Path) -> list[str]:
    (folder / "rrf.json").write_text(json.dumps(TABLE), encoding="utf-8")
    (folder / "table.json").write_text(json.dumps(ROWS), encoding="utf-8")
    return [str(folder / "rrf.json"), "--data", str(folder / "table.json")]


def _said(*arguments: str) -> tuple[int, Any]:
    """What a verb prints as JSON, and its exit code: whether the goal was reached."""
    code, out, err = _ran(*arguments)
    assert code in (0, 1), err
    return code, json.loads(out)


def _ran(*arguments: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as ended:
        main([*arguments, "--json", "--quiet"])
    return int(ended.value.code or 0), out.getvalue(), err.getvalue()


@pytest.mark.parametrize("processes", [1, 2, 8])
def test_the_same_bits_whatever_the_workers(
    cluster: Any, enough: Any, processes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`repair`, `plan` and `certify` of a table, in this process and in so many others."""
    monkeypatch.setattr(engine, "CHUNK", 4)
    here = delivered(), bought(tmp_path), certified(tmp_path)
    enough(processes)
    address = ("--cluster", cluster.scheduler.address)
    with joblib.parallel_config(backend="dask", n_jobs=-1):
        there = delivered()
    assert (there, bought(tmp_path, *address), certified(tmp_path, *address)) == here


class Sent:
    """Counts how often it is sent."""

    times = 0

    def __getstate__(self) -> dict[str, Any]:
        Sent.times += 1
        return {"number": 3}


def product(supply: _Supply, number: int) -> int:
    return int(supply.get().number * number)


def test_what_all_pieces_need_is_sent_once(cluster: Any) -> None:
    cluster.cluster.scale(2)
    cluster.wait_for_workers(2, timeout=120)
    Sent.times = 0
    with joblib.parallel_config(backend="dask", n_jobs=-1), _supplied(Sent()) as supply:
        tasks = (joblib.delayed(product)(supply, number) for number in range(20))
        assert list(shared_out(tasks, n_jobs=-1)) == [3 * number for number in range(20)]
    assert 1 <= Sent.times <= 5  # not with each of the 20 pieces; once, unless a worker went away just then
    assert not any(cluster.run(_left, supply.name).values())


def _left(name: str) -> bool:
    return name in workers._SUPPLIES


def test_without_a_cluster_it_travels_with_the_work() -> None:
    with _supplied([7]) as supply:
        assert (supply.get(), supply.value) == ([7], [7])


def test_a_killed_worker_costs_time_only(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows are the same; a worker that starts in place of the killed one is sent what it
    needs.
    """
    monkeypatch.setattr(engine, "CHUNK", 4)
    here = delivered()
    cluster.cluster.scale(2)
    cluster.wait_for_workers(2, timeout=120)
    alive, killed = list(cluster.run(os.getpid).values()), list[int]()

    def kill_one() -> None:
        if not killed:
            killed.append(alive[0])
            os.kill(alive[0], signal.SIGKILL)

    with joblib.parallel_config(backend="dask", n_jobs=-1):
        assert delivered(kill_one) == here
    assert killed
    cluster.wait_for_workers(2, timeout=120)
    assert killed[0] not in cluster.run(os.getpid).values()


@pytest.mark.parametrize("verb", [bought, certified])
def test_a_worker_killed_under_plan_and_certify_costs_time_only(
    cluster: Any, enough: Any, tmp_path: Path, verb: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = verb(tmp_path)
    enough(2)
    killed = list[int]()
    submit = distributed_client().submit

    def and_kill(self: Any, *args: Any, **kwargs: Any) -> Any:
        """The first piece of work is handed over, and one who may have it dies."""
        future = submit(self, *args, **kwargs)
        if not killed:
            killed.append(next(iter(cluster.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)
        return future

    monkeypatch.setattr(distributed_client(), "submit", and_kill)
    assert verb(tmp_path, "--cluster", cluster.scheduler.address) == here
    assert killed


def distributed_client() -> Any:
    return pytest.importorskip("distributed").Client


def test_work_that_kills_its_workers_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: Callable[[int], Any]
) -> None:
    """Not a wait: the scheduler gives up a piece of work that has killed two workers, and we hear
    of it.
    """
    monkeypatch.setattr(structures, "curves_of", dies_of)
    with started(2) as client:
        code, out, err = _ran("plan", *_files(tmp_path), "--budget", "9", "--cluster", client.scheduler.address)
    assert code not in (0, 1)
    assert (out, err.count("\n")) == ("", 1)
    assert "killed every worker" in err


def test_certify_ends_where_a_structure_kills_its_workers(
    monkeypatch: pytest.MonkeyPatch, started: Callable[[int], Any]
) -> None:
    monkeypatch.setattr("rrf_design.certificates.certify", dies_of)
    with (
        started(2),
        joblib.parallel_config(backend="dask", n_jobs=-1),
        pytest.raises(RetryLater, match="killed every worker"),
    ):
        structures.certify_dataset(rrf.dataset(TABLE, ROWS))


def dies_of(*_: Any, **__: Any) -> None:
    os._exit(1)


def test_a_cluster_without_workers_is_an_error(started: Callable[[int], Any]) -> None:
    with started(0) as client, pytest.raises(LostWorkError, match=r"no worker for 0\.1 s"):
        list(through_client(client, [joblib.delayed(square)(3)], patience=0.1))


BROKEN = "half \ud83d, NUL \x00, bell \x07, whole \N{SNOWMAN}"


def test_json_keeps_every_character_and_can_be_written() -> None:
    text = json_text({"text": BROKEN, BROKEN: 1}, indent=1)
    assert json.loads(text.encode()) == {"text": BROKEN, BROKEN: 1}
    assert "\N{SNOWMAN}" in text


def test_what_is_sent_and_shown_is_readable() -> None:
    assert whole(BROKEN).encode()
    assert whole("as it is \x00") == "as it is \x00"
    assert showable(BROKEN) == "half \ufffd, NUL \ufffd, bell \ufffd, whole \N{SNOWMAN}"
    assert showable("two\nlines\tand a tab") == "two\nlines\tand a tab"


@pytest.mark.parametrize("text", ["", "plain", BROKEN, 'json:"x"', "json:"])
def test_columns_have_a_way_back(text: str) -> None:
    assert from_column(column(text)) == text
    assert "\x00" not in column(text)
    column(text).encode()  # every database can hold it


def test_what_a_spreadsheet_would_run_stays_text() -> None:
    from rrf_design.texts import sheet_text

    for text in ("=1+1", "+cmd|'/c calc'!A1", "-2+3", "@SUM(A1)", "  =1", "\t=1"):
        assert sheet_text(text).startswith("'")
    for text in ("", "-5", "+5", "-1,234.50", "-.5", "-1.5e-07", "plain", "5 = 5", "'plain'"):
        assert sheet_text(text) == text


@pytest.mark.parametrize(
    "text", ["=1", "'=1", "''=1", "'", "'-5", "-5", "\tx", "\r=x", " =1", "' =1", "'\t'", "-", "x'="]
)
def test_what_a_spreadsheet_must_not_run_has_a_way_back(text: str) -> None:
    from rrf_design.texts import from_sheet, sheet_text

    assert from_sheet(sheet_text(text)) == text
    assert sheet_text(text)[:1] not in ("=", "+", "@", "\t", "\r")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (11879.56, "11879.56"),
        (0.1 + 0.2, "0.3"),
        (42.0, "42"),
        (-0.005, "-0.005"),
        (123456789.125, "123456789.125"),
        (9876543210.99, "9876543210.99"),
    ],
)
def test_amounts_keep_their_digits_and_no_others(value: float, shown: str) -> None:
    assert digits(value) == shown


@pytest.mark.parametrize("value", [0.7653668646536427, 1 / 3, -2.5e-7, 123456.789, 0.1, 5e-324, 0.0])
@pytest.mark.parametrize("many", [1, 4, 7])
def test_bounds_are_cut_to_the_side_on_which_they_hold(value: float, many: int) -> None:
    below, above = rounded_down(value, many), rounded_up(value, many)
    assert below <= value <= above
    for shown in (below, above):
        assert float(f"{shown:.{many}g}") == shown
    assert above - below <= abs(value) * 10.0 ** (1 - many) * 1.01


@pytest.mark.parametrize(
    "error", [e for _, e in inspect.getmembers(errors, inspect.isclass) if e.__module__ == errors.__name__]
)
def test_every_error_has_the_one_root_and_its_exit_code(error: type[errors.RRFError]) -> None:
    assert issubclass(error, errors.RRFError)
    assert error.exit_code == (75 if issubclass(error, errors.RetryLater) else 2)
    assert error.__doc__


def test_a_wrong_input_is_a_value_error_too() -> None:
    assert issubclass(errors.InputError, ValueError)


def test_a_budget_error_carries_its_numbers() -> None:
    error = errors.BudgetError("too dear", needed=3.0, available=2.0)
    assert (str(error), error.needed, error.available) == ("too dear", 3.0, 2.0)
