"""Every scenario runs at its quick size, and what is published has the same shape as what it
produces.
"""

from __future__ import annotations

import csv
import gzip
import html
import json
from pathlib import Path
from typing import Any

import pytest

import scenarios
from scenarios.kit.runner import Published, run_scenario, write_pages

REPORTS = Path(__file__).parents[2] / "reports"
ANSWERS = REPORTS / "real-model" / "answers.jsonl.gz"
LOGS = ",".join(str(REPORTS / name / "answers.jsonl.gz") for name in ("real-model", "real-model-coder"))
# Scenarios that replay recorded answers take the published ones, so that no model is needed.
CHANGES: dict[str, dict[str, Any]] = {
    "real-model": {"answers": str(ANSWERS)},
    "real-model-coder": {"answers": str(REPORTS / "real-model-coder" / "answers.jsonl.gz")},
    "acquisition-policies": {"answers": str(ANSWERS)},
    "cross-model": {"answers": LOGS},
    "error-directions": {"logs": LOGS},
    "shared-errors": {
        "log": str(REPORTS / "shared-errors" / "asked.jsonl.gz"),
        "coder": str(REPORTS / "real-model-coder" / "answers.jsonl.gz"),
    },
}


FOREIGN = ("data-set-promises", "one-pass", "premise-on-real-answers", "error-directions", "shared-errors")
"""Scenarios that read a folder of answers that are not the project's own."""

WIDENED: tuple[str, ...] = ("benchmark-acquisition", "benchmark-margin", "certificate-ladder", "rigour")
"""Got larger, harder or further instances since their pages were made (by the version that the
pages name): long runs.
"""

# Tables whose rows don't depend on the size of the run, and the columns that name a row: the quick
# rows must stand in the published table.
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
    "real-model-coder": {"candidates": ("item", "role", "number"), "replay-rows": ("item", "error_number", "design")},
    "acquisition-policies": {"plays": ("item", "k", "policy")},
    "relation-error": {"fields": ("eta", "seed")},
    "paper-audit": {
        "fields": ("size", "seed"),
        "correlations": ("stratum",),
        "witnesses": ("design",),
        "family-sums": ("stratum", "method"),
    },
}


@pytest.mark.parametrize("name", scenarios.names())
def test_what_is_published_can_be_made_again(name: str, tmp_path: Path, made_up_answers: Path) -> None:
    """One quick run per scenario: it violates nothing, says what each table and picture shows,
    judges the same when nothing is computed anew, has the published shape, and repeats the
    published rows.
    """
    # Answers that are not the project's own are not here; made-up ones in the same files stand in
    # for them.
    changes = {**CHANGES.get(name, {}), **({"answers": str(made_up_answers)} if name in FOREIGN else {})}
    scenario, options = scenarios.get(name), {"quick": True, "changes": changes}
    quick = run_scenario(scenario, tmp_path, **options)
    assert quick.violated == ()
    shown = [*quick.document["tables"], *quick.document["figures"]]
    assert [entry["name"] for entry in shown if not entry["caption"]] == []
    assert quick.document["answer"]
    again = run_scenario(scenario, tmp_path, **options, resume=True)
    timed = ("finished", "report_seconds")
    assert {k: v for k, v in again.document.items() if k not in timed} == {
        k: v for k, v in quick.document.items() if k not in timed
    }
    published = json.loads((REPORTS / name / "result.json").read_text(encoding="utf-8"))
    assert set(scenario.captions) <= {entry["name"] for entry in (*published["tables"], *published["figures"])}
    if name in WIDENED:
        return
    _check_shape(quick, published)
    for table, keys in ROWS.get(name, {}).items():
        _check_rows(quick, table, keys)


def _check_shape(quick: Published, published: dict[str, Any]) -> None:
    name = published["name"]
    assert published["size"] == "full"
    # A page that says nothing of revised conditions is older than the field; the index takes them
    # from the code until it is made again.
    told = [e["revised"] for e in published["expectations"] if "revised" in e]
    assert told in ([], [e["revised"] for e in quick.document["expectations"]])
    for section, keys in (("expectations", ("key", "text", "paper")), ("figures", ("name",))):
        mine, theirs = (
            [{k: e[k] for k in keys} for e in document[section]] for document in (quick.document, published)
        )
        assert mine == theirs
    assert set(quick.document["parameters"]) == set(published["parameters"])
    shapes = [{t["name"]: t["columns"] for t in document["tables"]} for document in (quick.document, published)]
    assert list(shapes[0]) == list(shapes[1])
    # A quick run may leave out columns (a budget that takes long), but can't have others.
    assert all(set(columns) <= set(shapes[1][table]) for table, columns in shapes[0].items())
    for table in published["tables"]:
        with gzip.open(REPORTS / name / f"{table['name']}.csv.gz", "rt", encoding="utf-8", newline="") as stream:
            rows = list(csv.reader(stream))
        assert rows[0] == table["columns"]
        assert len(rows) - 1 == table["rows"]


def _check_rows(quick: Published, table: str, keys: tuple[str, ...]) -> None:
    folders = quick.directory, REPORTS / quick.document["name"]
    mine, published = (_read(folder / f"{table}.csv.gz", keys) for folder in folders)
    assert mine
    for key, row in mine.items():
        assert key in published
        for column, cell in row.items():
            assert _same(cell, published[key][column]), (table, key, column)


def _read(path: Path, keys: tuple[str, ...]) -> dict[tuple[str, ...], dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as stream:
        return {tuple(row[key] for key in keys): row for row in csv.DictReader(stream)}


def _same(a: str, b: str) -> bool:
    try:
        return float(a) == pytest.approx(float(b), rel=1e-6, abs=1e-9)
    except ValueError:
        return a == b


def test_pages_are_built_from_what_is_committed(tmp_path: Path) -> None:
    assert write_pages(REPORTS, tmp_path) == len(scenarios.names())
    index = (tmp_path / "index.html").read_text(encoding="utf-8")
    for name in scenarios.names():
        assert f'href="{name}/index.html"' in index
        page = (tmp_path / name / "index.html").read_text(encoding="utf-8")
        published = json.loads((REPORTS / name / "result.json").read_text(encoding="utf-8"))
        assert all(html.escape(entry["seen"], quote=True) in page for entry in published["expectations"])
        assert " is missing." not in page  # a table that the document names


def test_reports_keep_documents_and_compressed_data() -> None:
    """Pages are built by a command, and pictures are drawn by a run."""
    kept = {".md", ".json", ".gz", ".jsonl"}  # .jsonl: journals of a run that goes on, which git ignores
    assert {path.suffix for path in REPORTS.rglob("*") if path.is_file()} <= kept


def test_index_lists_every_published_scenario() -> None:
    index = (REPORTS / "README.md").read_text(encoding="utf-8")
    assert all(f"({name}/README.md)" in index for name in scenarios.names())


def test_every_scenario_is_registered_once_and_asks_a_question() -> None:
    for name in scenarios.names():
        scenario = scenarios.get(name)
        assert scenario.name == name
        assert scenario.question.endswith("?")
        assert scenario.expected
