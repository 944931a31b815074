"""Repair the field: which responses were wrong, and what they should have been.

`repair` handles one field, `repair_many` thousands; `repair_nonlinear` is local and says so; `select_program` chooses
whole programs by their execution signatures; `calibrate` tunes the convex penalty on held-out fields.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from rrf_design.repair.batch import RepairBatch, repair_many
from rrf_design.repair.calibration import Calibration, calibrate
from rrf_design.repair.contract import Alternative, Certainty, Decoder, Diagnostics, Outcome, Repair, Task
from rrf_design.repair.document import to_document
from rrf_design.repair.nonlinear import LocalRepair, finite_alternatives, log_coordinates, repair_nonlinear
from rrf_design.repair.programs import ProgramChoice, select_program
from rrf_design.repair.responses_file import ResponseField, read_responses
from rrf_design.repair.run import METHODS, repair
from rrf_design.repair.taxonomy import Failure, count_failures

__all__ = [
    "METHODS",
    "Alternative",
    "Calibration",
    "Certainty",
    "Decoder",
    "Diagnostics",
    "Failure",
    "LocalRepair",
    "Outcome",
    "ProgramChoice",
    "Repair",
    "RepairBatch",
    "ResponseField",
    "Task",
    "calibrate",
    "count_failures",
    "finite_alternatives",
    "log_coordinates",
    "read_responses",
    "repair",
    "repair_many",
    "repair_nonlinear",
    "select_program",
    "to_document",
]


class _CallableModule(ModuleType):
    """`rrf_design.repair` names both this package and its main function; importing the one must not hide the other."""

    def __call__(self, *arguments: Any, **options: Any) -> Repair:
        return repair(*arguments, **options)


sys.modules[__name__].__class__ = _CallableModule
