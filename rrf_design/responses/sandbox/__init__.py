"""Runs generated programs: validated, in a process of their own, under the strongest isolation the
machine has.

``with Sandbox() as box: box.run(Program.build(source, [[1, 2]], expected=[3])).status``
"""

from __future__ import annotations

from rrf_design.responses.sandbox.records import Execution, Isolation, Level, Program, ProgramLimits, ProgramStatus
from rrf_design.responses.sandbox.runner import Sandbox

__all__ = [
    "Execution",
    "Isolation",
    "Level",
    "Program",
    "ProgramLimits",
    "ProgramStatus",
    "Sandbox",
]
