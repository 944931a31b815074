"""Documents: formats, strict JSON, JUnit."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from rrf_design.documents import (
    FORMATS,
    _verdict_case,
    checked,
    csv_rows,
    dumps,
    kind_of,
    loads,
    read,
    repair_cases,
    run_cases,
    sealed,
    write,
    write_junit,
)
from rrf_design.errors import InputError

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
    assert dumps(document).endswith("}\n")


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
        loads(text)
    path = tmp_path / "x.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read(path)


def test_a_hundred_levels_and_any_number_of_them_side_by_side_are_read() -> None:
    assert loads("[" * 100 + "]" * 100)
    assert len(loads("[" + ",".join(["[[]]"] * 1000) + "]")) == 1000


def test_a_cell_may_be_as_long_as_an_answer() -> None:
    header, rows = csv_rows(f'a,b\n"{"x" * 200_000}",2\n3,4,5\n')
    assert header == ["a", "b"]
    assert [(line, len(row["a"])) for line, row in rows] == [(2, 200_000), (3, 1)]
    assert rows[1][1]["too many cells"] == ["5"]
    with pytest.raises(InputError, match="line 2: not CSV"):
        csv_rows("a,b\n1\r2,3\n")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read(tmp_path / "nowhere.json")


def test_infinities_are_not_written(tmp_path: Path) -> None:
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
