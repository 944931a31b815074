"""Every scenario runs at its quick size, and what is published has the same shape as what it produces."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

import scenarios
from scenarios.runner import Published, run_scenario

REPORTS = Path(__file__).parents[2] / "reports"
ANSWERS = REPORTS / "real-model" / "answers.jsonl.gz"
# Scenarios that replay recorded answers take the published ones, so that no model is needed.
CHANGES: dict[str, dict[str, Any]] = {
    "real-model": {"answers": str(ANSWERS)},
    "acquisition-policies": {"answers": str(ANSWERS)},
}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Published]:
    return {}


@pytest.fixture
def quick(
    request: pytest.FixtureRequest, ran: dict[str, Published], tmp_path_factory: pytest.TempPathFactory
) -> Published:
    name = request.param
    if name not in ran:
        out = tmp_path_factory.mktemp(name)
        ran[name] = run_scenario(scenarios.get(name), out, quick=True, changes=CHANGES.get(name))
    return ran[name]


each = pytest.mark.parametrize("quick", scenarios.names(), indirect=True)


@each
def test_quick_size_violates_nothing(quick: Published) -> None:
    assert quick.violated == ()


@each
def test_published_report_has_the_same_shape(quick: Published) -> None:
    name = quick.document["name"]
    published = json.loads((REPORTS / name / "result.json").read_text(encoding="utf-8"))
    assert published["size"] == "full"
    for section, keys in (("expectations", ("key", "text", "paper")), ("figures", ("name",))):
        mine, theirs = (
            [{k: e[k] for k in keys} for e in document[section]] for document in (quick.document, published)
        )
        assert mine == theirs
    assert set(quick.document["parameters"]) == set(published["parameters"])
    for table in published["tables"]:
        with (REPORTS / name / f"{table['name']}.csv").open(encoding="utf-8", newline="") as stream:
            rows = list(csv.reader(stream))
        assert rows[0] == table["columns"]
        assert len(rows) - 1 == table["rows"]
    shapes = [{t["name"]: t["columns"] for t in document["tables"]} for document in (quick.document, published)]
    assert shapes[0] == shapes[1]
    page = (REPORTS / name / "index.html").read_text(encoding="utf-8")
    assert all(entry["seen"] == "" or _escaped(entry["seen"]) in page for entry in published["expectations"])


# Tables whose rows don't depend on the size of the run, and the columns that name a row: the quick rows must stand in the published table.
ROWS: dict[str, dict[str, tuple[str, ...]]] = {
    "consistency-truth": {"fields": ("master", "seed", "field")},
    "duplicate-saturation": {"instances": ("master", "seed", "kind", "amount")},
    "spectral-difficulty": {"instances": ("master", "instance")},
    "robustness-sweeps": {
        "noise": ("master", "instance", "epsilon"),
        "operator": ("master", "instance", "delta"),
        "tolerances": ("master", "instance"),
    },
    "negative-controls": {
        "consistency": ("seed",),
        "uncovered": ("seed",),
        "duplicates": ("seed",),
        "shuffled": ("seed",),
    },
    "worked-examples": {"cases": ("example", "what")},
    "published-replay": {"designs": ("design", "dim"), "strata": ("stratum",), "cells": ("stratum", "design")},
    "real-model": {"candidates": ("item", "role", "number"), "replay-rows": ("item", "error_number", "design")},
    "acquisition-policies": {"plays": ("item", "k", "policy")},
    "relation-error": {"fields": ("eta", "seed")},
}


@pytest.mark.parametrize("quick", ROWS, indirect=True)
def test_published_rows_come_out_again(quick: Published) -> None:
    name = quick.document["name"]
    for table, keys in ROWS[name].items():
        mine, published = (_read(folder / f"{table}.csv", keys) for folder in (quick.directory, REPORTS / name))
        assert mine
        for key, row in mine.items():
            assert key in published
            for column, cell in row.items():
                assert _same(cell, published[key][column]), (table, key, column)


def _read(path: Path, keys: tuple[str, ...]) -> dict[tuple[str, ...], dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return {tuple(row[key] for key in keys): row for row in csv.DictReader(stream)}


def _same(a: str, b: str) -> bool:
    try:
        return float(a) == pytest.approx(float(b), rel=1e-6, abs=1e-9)
    except ValueError:
        return a == b


def test_index_lists_every_published_scenario() -> None:
    index = (REPORTS / "README.md").read_text(encoding="utf-8")
    assert all(f"({name}/README.md)" in index for name in scenarios.names())


def test_every_scenario_is_registered_once_and_asks_a_question() -> None:
    for name in scenarios.names():
        scenario = scenarios.get(name)
        assert scenario.name == name
        assert scenario.question.endswith("?")
        assert scenario.expected


def _escaped(text: str) -> str:
    import html

    return html.escape(text, quote=True)
