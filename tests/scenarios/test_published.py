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
