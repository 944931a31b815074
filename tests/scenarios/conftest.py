"""A folder of made-up answers, in the files that recorded ones come in."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

SETS = {"gsm8k": 60, "crux": 60, "mmlu-pro": 10, "llmbar": 2}
"""Sets with the number of values that a wrong answer may take."""


@pytest.fixture(scope="session")
def made_up_answers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("answers")
    nodes = [{"node": f"m{j}", "price": (1, 1, 1, 2, 2, 2, 8, 8)[j]} for j in range(8)]
    panels = {name: {"kind": "choice", "nodes": nodes} for name in (*SETS, "gsm8k-small")}
    (folder / "panels.json").write_text(json.dumps(panels), encoding="utf-8")
    for number, (name, values) in enumerate(SETS.items()):
        rng = np.random.default_rng(number)
        gold = rng.integers(0, values, size=160)
        right = rng.random((160, 8)) < np.linspace(0.75, 0.95, 8)
        said = np.where(right, gold[:, None], rng.integers(0, values, size=(160, 8)))
        silent = rng.random((160, 8)) < 0.02
        rows = [
            {
                "item": str(i),
                "node": f"m{j}",
                "text": "",
                "value": None if silent[i, j] else int(said[i, j]),
                "status": "unreadable" if silent[i, j] else "ok",
            }
            for i in range(160)
            for j in range(8)
        ]
        if name == "llmbar":
            rows += _judges(gold, rng)
        _write(folder / f"{name}.answers.jsonl.gz", rows)
        _write(folder / f"{name}.table.jsonl.gz", [{"id": str(i), "gold": int(gold[i])} for i in range(160)])
    return folder


def _judges(gold: Any, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Three judges with three prompts in both orders, nodes called JUDGE/PROMPT/ORDER."""
    asks = [f"{judge}/{prompt}/{order}" for judge in "ABC" for prompt in "pqr" for order in ("ab", "ba")]
    return [
        {"item": str(i), "node": ask, "text": "", "value": int(value ^ (rng.random() < 0.2)), "status": "ok"}
        for i, value in enumerate(gold.tolist())
        for ask in asks
    ]


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
