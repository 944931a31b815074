"""A small data set whose items differ in everything that may differ: values, offsets, missing
answers, texts nobody can read.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import rrf_design as rrf

RECIPE = """[data]
table = "table.jsonl"
id = "no"
gold = "truth"

[answer]
of = "total"
tolerance = 0.005

[[ask]]
id = "total"
prompt = "Total of {{ no }}?"

[[ask]]
id = "reworded"
like = "total"
prompt = "To pay for {{ no }}?"

[[ask]]
id = "fee"
like = "total"
change = { shift = "{{ fee }}" }
prompt = "With the fee of {{ fee }}?"

[[ask]]
id = "cents"
like = "total"
change = { scale = 100 }
prompt = "In cents?"
cost = 0.5
buy = "if needed"

[[check]]
id = "ledger"
of = "total"
by = { value = "{{ ledger }}" }
when = "{{ ledger }}"

[[check]]
id = "clerk"
of = "total"
by = { person = "Gross total of {{ no }}" }
cost = 5
"""


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """rrf.toml, table.jsonl and answers.jsonl of 60 items."""
    where = tmp_path_factory.mktemp("tables")
    (where / "rrf.toml").write_text(RECIPE)
    chance = random.Random(5)
    rows, answers = [], []
    for number in range(60):
        truth, fee = chance.randrange(100, 90000) / 100, chance.randrange(0, 5)
        name = f"{number:03d}"
        rows.append({"no": name, "fee": fee, "ledger": str(truth) if number % 7 == 0 else "", "truth": truth})
        values = {"total": truth, "reworded": truth, "fee": truth + fee}
        if number % 3 == 0:
            values["cents"] = round(100 * truth)
        for node, value in values.items():
            answers.append({"id": name, "node": node, **_said(chance, value)})
    (where / "table.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (where / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in answers))
    return where


def _said(chance: random.Random, value: float) -> dict[str, Any]:
    kind = chance.random()
    if kind < 0.08:
        return {"text": "I can't say."}
    if kind < 0.12:
        return {"status": "timeout"}
    wrong = value + chance.randrange(1, 9) if kind < 0.3 else value
    return {"value": wrong} if kind < 0.6 else {"text": f"That is {wrong:.2f}", "cost": 0.25}


@pytest.fixture(scope="session")
def items(folder: Path) -> rrf.Dataset:
    return rrf.dataset(folder / "rrf.toml")
