from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rrf_design as rrf
from rrf_design.errors import InputError
from rrf_design.questions.datasets import Dataset, dataset
from rrf_design.structure import structure_key

RECIPE: dict[str, Any] = {
    "data": {"id": "no"},
    "answer": {"of": "a"},
    "ask": [{"id": "a", "prompt": "{{ x }}"}, {"id": "b", "prompt": "Again: {{ x }}", "like": "a"}],
    "check": [{"id": "c", "of": "a", "by": {"value": "{{ v }}"}, "cost": 1.0, "when": "{{ v }}"}],
}
ROWS = [{"no": f"{i:03}", "x": f"q{i}", "v": str(i) if i % 2 else ""} for i in range(10)]


def test_a_mapping_from_id_to_problem(invoices: Path) -> None:
    found = rrf.dataset(invoices / "rrf.toml")
    assert list(found) == ["007", "008", "009"]
    assert len(found) == 3
    assert (
        found["008"].node_by_id["total"].prompt
        == 'Pay {{ no }} {now}\n[[ask]] Return JSON only: {"total": gross amount}'
    )
    assert found["007"].name == "007"
    assert "007" in found
    assert "7" not in found
    with pytest.raises(KeyError):
        found["7"]
    with pytest.raises(InputError, match="no item '07'; did you mean '007'"):
        found.item("07")
    assert dict(found) == {item.id: item.problem for item in found.items_in_order()}


def test_structures_are_few(invoices: Path) -> None:
    found = dataset(invoices / "rrf.toml")
    assert sorted(entry.count for entry in found.structures.values()) == [
        1,
        1,
        1,
    ]  # two have a ledger, at different prices
    plain = dataset(RECIPE, ROWS)
    assert sorted(entry.count for entry in plain.structures.values()) == [5, 5]
    for item in plain.items_in_order():
        assert item.structure == structure_key(item.problem) == structure_key(plain.structures[item.structure].example)


def test_the_truth_is_seen_by_nobody(invoices: Path) -> None:
    found = dataset(invoices / "rrf.toml")
    assert found.item("007").gold == "119"
    path = invoices / "rrf.toml"
    path.write_text(path.read_text().replace("How many cents? {{ text }}", "How many cents? {{ booked }}"))
    with pytest.raises(InputError, match=r"ask 'cents' prompt, line \d+ of rrf.toml: 'booked' is the gold column"):
        dataset(path)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "holds no rows"),
        (
            [{"no": "1", "x": "q", "v": ""}, {"no": "1", "x": "q", "v": ""}],
            "1 of 2 rows .*row 2: the id '1' stands in row 1 already",
        ),
        ([{"no": 1, "x": "q", "v": ""}, {"no": "1", "x": "q", "v": ""}], "row 2: the id '1' stands in row 1"),
        (
            [{"no": " ", "x": "q", "v": ""}, {"no": None, "x": "q", "v": ""}],
            "2 of 2 rows .*row 1: the id in column 'no' is empty; row 2",
        ),
        ([{"no": 1.5, "x": "q", "v": ""}], "ids are text or whole numbers"),
        ([{"no": True, "x": "q", "v": ""}], "ids are text or whole numbers"),
        (
            [{"no": "1", "x": "", "v": "a"}, {"no": "2", "x": "q", "v": "1"}, {"no": "3", "x": "q", "v": "1,5"}, 3],
            (
                "3 of 4 rows can't be used: row 1: .*'v' is 'a'.*; row 1: column 'x' is empty.*; row 3: .*'1,5'.*; row"
                " 4: must map"
            ),
        ),
        ([{"no": "1", "x": "q", "v": ""}, {"no": "2", "v": ""}], "1 of 2 rows .*row 2: .*no variable 'x'"),
        ([{"no": "1", "y": "q", "v": ""}], "no column 'x'"),
    ],
)
def test_bad_rows_are_named_together(rows: list[Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        dataset(RECIPE, rows)
    assert "\n" not in str(caught.value)


def test_columns_are_checked_once(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("no,y,v\n1,q,\n")
    with pytest.raises(InputError, match=r"t.csv: no column 'x' \(ask 'a' prompt"):
        dataset(RECIPE, path)
    path.write_text("number,x,v\n1,q,\n")
    with pytest.raises(InputError, match="no column 'no' for the id"):
        dataset(RECIPE, path)
    slip = {**RECIPE, "ask": [{"id": "a", "prompt": "{x}"}]}
    with pytest.raises(InputError, match=r"\{x\} is not filled in; write \{\{ x \}\}.*\(ask 'a' prompt"):
        dataset(slip, ROWS)


def test_row_numbers_are_the_default_ids() -> None:
    recipe = {key: value for key, value in RECIPE.items() if key != "data"}
    assert list(dataset(recipe, ROWS[:3])) == ["1", "2", "3"]


def test_any_kind_of_table(tmp_path: Path) -> None:
    text = tmp_path / "t.csv"
    text.write_text("no,x,v\n" + "".join(f"{row['no']},{row['x']},{row['v']}\n" for row in ROWS))
    lines = tmp_path / "t.jsonl"
    polars.DataFrame(ROWS).write_ndjson(lines)
    frame = polars.DataFrame(ROWS)
    expected = dict(dataset(RECIPE, ROWS))
    for table in (text, lines, frame, iter(ROWS)):
        found = dataset(RECIPE, table)
        assert dict(found) == expected
        assert found["003"] == expected["003"]
        assert found.columns == ("no", "x", "v")


def test_limit_sample_and_only() -> None:
    whole = dataset(RECIPE, ROWS)
    assert list(whole.limit(3)) == ["000", "001", "002"]
    assert len(whole.limit(99)) == 10
    drawn = whole.sample(4, seed=5)
    assert list(drawn) == sorted(drawn)
    assert list(drawn) == list(whole.sample(4, seed=5))
    assert len(set(drawn)) == len(drawn) == 4
    assert {tuple(whole.sample(4, seed=seed)) for seed in range(9)} != {tuple(drawn)}
    assert list(drawn.limit(2)) == list(drawn)[:2]
    assert sum(entry.count for entry in drawn.structures.values()) == 4
    part = whole.only(["007", "003"])
    assert list(part) == ["003", "007"]
    assert "001" not in part
    for wrong in (lambda: whole.limit(0), lambda: whole.sample(0), lambda: whole.only("x")):
        with pytest.raises(InputError):
            wrong()


def test_a_plain_problem_with_a_table_is_a_recipe() -> None:
    problem = rrf.Problem(nodes=[{"id": "n", "prompt": "{{ x }}?"}])
    found = dataset(problem, [{"x": "a"}, {"x": "b"}])
    assert isinstance(found, Dataset)
    assert found["2"].nodes[0].prompt == "b?"


def test_without_a_table_there_is_nothing_to_ask() -> None:
    with pytest.raises(InputError, match="names no table"):
        dataset(RECIPE)


def test_items_are_streamed_and_equal_what_is_looked_up(invoices: Path) -> None:
    found = dataset(invoices / "rrf.toml")
    assert list(found.items()) == [(name, found[name]) for name in found]


def test_a_data_set_goes_to_another_process(invoices: Path) -> None:
    found = dataset(invoices / "rrf.toml")
    assert found["007"] is not None  # with its index made
    again = pickle.loads(pickle.dumps(found.limit(2)))
    assert dict(again.items()) == dict(found.limit(2).items())


def test_a_fault_names_row_column_and_line(invoices: Path) -> None:
    table = invoices / "invoices.csv"
    table.write_text(table.read_text().replace("25,2,4.20", "25,two,4.20"))
    line = (invoices / "rrf.toml").read_text().splitlines().index('cost = "{{ minutes }}"') + 1
    with pytest.raises(InputError) as caught:
        dataset(invoices / "rrf.toml")
    assert str(caught.value).startswith(
        f"{table}: 1 of 3 rows can't be used: row 2: column 'minutes' is 'two', not a number"
    )
    assert str(caught.value).endswith(f"(check 'clerk' cost, line {line} of rrf.toml)")


def test_rows_need_not_have_every_key() -> None:
    recipe = {"answer": {"of": "a"}, "ask": [{"id": "a", "prompt": "{{ x | default('nothing') }}?"}]}
    found = dataset(recipe, [{"y": 1}, {"x": "q"}])
    assert [item.prompts["a"] for item in found.items_in_order()] == ["nothing?", "q?"]


@settings(max_examples=100, deadline=None)
@given(cell=st.text(st.characters(codec="utf-8"), min_size=1), other=st.text(st.characters(codec="utf-8")))
def test_whatever_stands_in_a_cell_arrives_as_it_is(cell: str, other: str) -> None:
    """Templates, braces, JSON, control characters: a cell is data, in the prompt, on the way
    through a file, and as an id.
    """
    recipe = {"data": {"id": "no"}, "answer": {"of": "a"}, "ask": [{"id": "a", "prompt": "{{ x }} {{ y }}?"}]}
    name = f"id {cell}"
    problem = dataset(recipe, [{"no": name, "x": cell, "y": other}])[name]
    assert problem.nodes[0].prompt == f"{cell} {other}?"
    assert rrf.loads(rrf.dumps(problem)) == problem


def test_a_digest_changes_with_what_is_asked_and_with_nothing_else() -> None:
    def digests(recipe: Any, rows: list[dict[str, Any]]) -> list[str]:
        return [item.digest for item in dataset(recipe, rows).items_in_order()]

    before = digests(RECIPE, ROWS)
    assert len(set(before)) == len(ROWS)
    assert digests(RECIPE, [{**row, "unused": "x"} for row in ROWS] + [{"no": "new", "x": "q", "v": ""}])[:-1] == before
    changed = digests(RECIPE, [{**row, "x": "other"} if row["no"] == "003" else row for row in ROWS])
    assert [place for place, pair in enumerate(zip(before, changed, strict=True)) if pair[0] != pair[1]] == [3]
    reworded = {**RECIPE, "ask": [{"id": "a", "prompt": "{{ x }}!"}, RECIPE["ask"][1]]}
    assert not set(before) & set(digests(reworded, ROWS))
    assert dataset(RECIPE, ROWS).recipe.digest != dataset(reworded, ROWS).recipe.digest


def test_parsers_of_an_item(invoices: Path) -> None:
    found = dataset(invoices / "rrf.toml")
    first, second = found.item("007"), found.item("008")
    assert first.parsers["parts"].parse('{"net": 1, "tax": 2}').value == (1.0, 2.0)
    assert set(first.parsers) == {node.id for node in first.problem.nodes}
    assert first.parsers["total"] is second.parsers["total"]
