"""No hostile program deceives the judge; an honest one is right."""

from __future__ import annotations

from pathlib import Path

from rrf_design.responses.sandbox import ProgramLimits, Sandbox
from scenarios.hostile_programs import program_case


def test_no_program_is_called_right(tmp_path: Path) -> None:
    with Sandbox(workers=1, limits=ProgramLimits(call=0.1, cpu=1, wall=4.0)) as box:
        seen = [program_case(box, tmp_path, seed) for seed in range(0, 81, 3)]
    assert not [row for row in seen if row["deceived"] or row["raised"]]
