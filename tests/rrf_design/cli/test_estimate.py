"""estimate: what a run will take, in words and in JSON; no call is made."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rrf_design.cli.estimate import _shown

Run = Callable[..., Any]
RECIPE = """[data]
table = "table.csv"
id = "no"

[answer]
of = "total"
tolerance = 0.5

[models]
mini = { use = "openai:mini", max_tokens = 20 }

[[ask]]
id = "total"
prompt = "Total of {{ no }}?"

[[ask]]
id = "again"
like = "total"
prompt = "And again?"
cost = 0.5
buy = "if needed"
"""
PRICES = '["openai:mini"]\ninput = 1.0\noutput = 2.0\n'


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("rrf.toml").write_text(RECIPE)
    Path("table.csv").write_text("no\n" + "".join(f"{n}\n" for n in range(7)))
    return tmp_path


def test_calls_tokens_and_money(run: Run, recipe: Path) -> None:
    found = run("estimate", "rrf.toml", "--json")
    assert found.code == 0
    assert (found.json["items"], found.json["structures"]) == (7, 1)
    for key in ("calls", "tokens", "money"):
        assert set(found.json[key]) >= {"expected", "most"}
    assert found.json["calls"]["expected"] >= 7
    assert found.json["calls"]["most"] >= 14


def test_part_of_the_table(run: Run, recipe: Path) -> None:
    assert run("estimate", "rrf.toml", "--limit", "2", "--json").json["items"] == 2
    assert run("estimate", "rrf.toml", "--item", "3", "--json").json["items"] == 1
    some = [run("estimate", "rrf.toml", "--sample", "4", "--seed", "1", "--json").json for _ in range(2)]
    assert some[0] == some[1]
    assert some[0]["items"] == 4


def test_in_words(run: Run, recipe: Path) -> None:
    loud = run("estimate", "rrf.toml")
    assert loud.out.startswith("7 items of 1 structure\n")
    assert "at most" in loud.out
    assert "unknown" in loud.out  # nobody has said what openai:mini costs
    quiet = run("estimate", "rrf.toml", "--quiet")
    assert len(quiet.out + quiet.err) <= len(loud.out + loud.err)


def test_another_model_is_another_price(run: Run, recipe: Path) -> None:
    free = run("estimate", "rrf.toml", "--model", "mini=embedded", "--json")
    assert free.json["money"]["most"] == 0.0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("gone.toml",), "gone.toml"),
        (("rrf.toml", "--item", "99"), "99"),
        (("rrf.toml", "--prices", "gone.toml"), "gone.toml"),
        (("rrf.toml", "--model", "embedded", "--model", "openai:x"), "several models need names"),
    ],
)
def test_wrong_calls_are_one_line(run: Run, recipe: Path, arguments: tuple[str, ...], words: str) -> None:
    found = run("estimate", *arguments)
    assert found.code == 2
    assert words in found.err
    assert found.err.count("\n") == 1


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "unknown"), (0.0, "0"), (12.0, "12"), (0.123456789, "0.123457"), (1234.5, "1,234.5"), (2345678.0, "2,345,678")],
)  # fmt: skip
def test_amounts_are_written_for_people(value: float | None, shown: str) -> None:
    assert _shown(value) == shown


def test_the_json_is_strict(run: Run, recipe: Path) -> None:
    json.loads(run("estimate", "rrf.toml", "--json").out, parse_constant=lambda name: pytest.fail(name))


def test_questions_that_are_asked_again_are_counted() -> None:
    """A node with repeats is asked so often; one whose further asks are on sale up to its most."""
    import rrf_design as rrf

    nodes = [
        {"id": "a", "prompt": "{{ x }}?", "price": 0.5},
        {"id": "b", "prompt": "{{ x }}, is it?", "sigma": 1.0, "repeats": 2, "again": 0.25, "most_repeats": 4},
        {"id": "c", "prompt": "{{ x }} it is?", "cost": 0.75, "sigma": 1.0, "repeats": 3},
    ]
    relations = [{"id": "r", "tail": "a", "head": "b"}, {"id": "s", "tail": "b", "head": "c"}]
    data = rrf.dataset({"nodes": nodes, "relations": relations}, [{"x": 1}, {"x": 2}])
    found = rrf.estimate(data, "embedded", attempts=1)
    assert (found.calls.expected, found.calls.most) == (6.0, 16.0)
    assert (found.cost.expected, found.cost.most) == (1.0, 2 * (0.5 + 0.75 + 2 * 0.25))
