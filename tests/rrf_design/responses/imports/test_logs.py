"""Logs that the tools themselves wrote, about three invoices in two wordings: each of them says
what the tiny model said.

Inspect AI 0.3.285 asked its own mock model (two epochs); promptfoo 0.121.20 (two repeats) and
lm-eval (two filters) a loopback server that adds up the amounts of a prompt, and 1 too much where
it is asked what there is to pay for the lamp.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import rrf_design as rrf
from rrf_design.responses.imports import read_logs, recognise, row_line
from rrf_design.responses.imports.records import RecordPaths
from rrf_design.verdict import Verdict

LOGS = Path(__file__).parent / "logs"
INSPECT = RecordPaths(item="metadata.invoice", node="metadata.wording")
PROMPTFOO = RecordPaths(item="vars.no")
LM_EVAL = RecordPaths(item="doc.no")
TOTALS = {"007": "11.90", "008": "47.60", "009": "67.41"}
SAID = {
    (no, node): f"The total is {'48.60' if (no, node) == ('008', 'reworded') else total}."
    for no, total in TOTALS.items()
    for node in ("total", "reworded")
}


@pytest.mark.parametrize(
    ("names", "tool", "where", "repeats"),
    [
        (["inspect.eval"], "inspect", INSPECT, 2),
        (["inspect.json"], "inspect", INSPECT, 1),
        (["promptfoo.json"], "promptfoo", PROMPTFOO, 2),
        (["promptfoo.jsonl"], "promptfoo", PROMPTFOO, 2),
        ([path.name for path in sorted(LOGS.glob("samples_*.jsonl"))], "lm-eval", LM_EVAL, 1),
    ],
)
def test_what_the_tools_wrote(names: list[str], tool: str, where: RecordPaths, repeats: int) -> None:
    paths = [LOGS / name for name in names]
    assert {recognise(path) for path in paths} == {tool}
    rows = list(read_logs(paths, where=where))
    wanted = {key: text for key, text in SAID.items() if names != ["inspect.json"] or key[0] == "007"}
    assert {(row.id, row.node, row.repeat) for row in rows} == {(*key, n + 1) for key in wanted for n in range(repeats)}
    assert {(row.id, row.node): row.text for row in rows} == wanted
    assert all(row.status is None for row in rows)


def test_import_then_repair(tmp_path: Path) -> None:
    """Two repeats of two wordings: the wrong one is outvoted by what its total says, without one
    call.
    """
    (tmp_path / "answers.jsonl").write_text(
        "".join(row_line(row) + "\n" for row in read_logs([LOGS / "promptfoo.json"], where=PROMPTFOO))
    )
    asks = [
        {"id": "total", "prompt": "Total of {{ no }}?", "repeat": 2},
        {"id": "reworded", "like": "total", "prompt": "To pay for {{ no }}?", "repeat": 2},
    ]
    answer = {"of": "total", "tolerance": 0.005, "k": 1}
    recipe = {"data": {"id": "no"}, "answer": answer, "ask": asks}
    found = rrf.repair(rrf.dataset(recipe, [{"no": no} for no in TOTALS]), tmp_path / "answers.jsonl")
    assert (found["007"].answer, found["007"].verdict) == (11.9, Verdict.CERTIFIED)
    assert found["008"].verdict is not Verdict.CERTIFIED  # two against two
    assert found["008"].answer is None
