"""The scenario on a small folder of its own; the recorded answers of real models are not part of
the project.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import scenarios
from rrf_design.errors import InputError
from scenarios.kit.runner import run_scenario

ANSWERS: dict[str, list[tuple[str, str, str | None, Any]]] = {
    "gsm8k": [
        ("0", "one", '{"answer": "$1,234"}', 1234),
        ("0", "two", '{"answer": "3 or 4"}', 3),
        ("0", "three", None, None),
    ],
    "gsm8k-2021": [("0", "one", "1,234", 1234)],
    "crux": [("0", "one", "[1,2]", "[1, 2]"), ("0", "two", "hello", "'hello'")],
    "llmbar": [("0", "judge/ab", "Output (a)", "1"), ("0", "judge/ba", "Output (a)", "2")],
    "mmlu-pro": [("0", "one", "The answer is (B).", "B"), ("0", "two", "The answer is (C).", "B")],
}
GOLD = {"gsm8k": 1234, "crux": "[1, 2]", "llmbar": "1", "mmlu-pro": "B"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "answers"
    place.mkdir()
    for name, rows in ANSWERS.items():
        keys = ("item", "node", "text", "value")
        write(place / f"{name}.answers.jsonl.gz", [dict(zip(keys, row, strict=True)) for row in rows])
    for name, gold in GOLD.items():
        write(place / f"{name}.table.jsonl.gz", [{"id": "0", "gold": gold}])
    return place


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    with gzip.open(path, "wt", encoding="utf-8") as stream:
        stream.writelines(json.dumps(row) + "\n" for row in rows)


def test_it_counts_what_is_read_and_misread(folder: Path, tmp_path: Path) -> None:
    published = run_scenario(scenarios.get("answer-readings"), tmp_path, quick=True, changes={"answers": str(folder)})
    lines = gzip.decompress((published.directory / "sets.csv.gz").read_bytes()).decode().splitlines()
    header, *rows = [line.split(",") for line in lines if not line.startswith('"')]
    sets = {row[0]: dict(zip(header[2:], map(int, row[2:]), strict=True)) for row in rows}
    gsm, crux, bar, mmlu = (sets[name] for name in ("gsm8k", "crux", "llmbar", "mmlu-pro"))
    assert (gsm["texts"], gsm["read"], gsm["refused"], gsm["ambiguous"], gsm["right"]) == (2, 1, 1, 1, 1)
    assert (crux["read"], crux["differ"], crux["right"]) == (2, 0, 1)
    assert (bar["read"], bar["differ"], bar["right"]) == (2, 0, 1)
    assert (mmlu["read"], mmlu["differ"], mmlu["misread"]) == (2, 1, 1)
    assert published.violated == ("share",)
    assert "hello" not in "".join(path.read_text(encoding="utf-8") for path in published.directory.glob("*.[jh]*"))


def test_without_a_folder_only_the_forms_are_judged(tmp_path: Path) -> None:
    published = run_scenario(scenarios.get("answer-readings"), tmp_path, quick=True)
    statuses = {entry["key"]: entry["status"] for entry in published.document["expectations"]}
    assert statuses == {"forms": "met", "share": "not judged", "misread": "not judged"}


def test_a_folder_that_is_not_there_gets_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gsm8k\.table\.jsonl\.gz"):
        run_scenario(scenarios.get("answer-readings"), tmp_path, quick=True, changes={"answers": str(tmp_path)})
