"""Repair the field: which responses were wrong, and what they should have been.

`repair` handles one field, `repair_many` thousands; `repair_nonlinear` is local and says so;
`select_program` chooses whole programs by their execution signatures; `calibrate` tunes the convex
penalty on held-out fields.
"""

from __future__ import annotations

from rrf_design.repairing._convex import PenaltyCalibration, calibrate
from rrf_design.repairing._engine import KEPT as KEPT
from rrf_design.repairing._engine import METHODS
from rrf_design.repairing._engine import Agreed as Agreed
from rrf_design.repairing._engine import AgreementPatterns as AgreementPatterns
from rrf_design.repairing._engine import Field as Field
from rrf_design.repairing._engine import Numbers as Numbers
from rrf_design.repairing._engine import RepairEngine as RepairEngine
from rrf_design.repairing._engine import SharedDesign as SharedDesign
from rrf_design.repairing._engine import Sorted as Sorted
from rrf_design.repairing._failures import Failure, count_failures
from rrf_design.repairing._fields import ResponseField, read_responses
from rrf_design.repairing._nonlinear import LocalRepair, finite_alternatives, log_coordinates, repair_nonlinear
from rrf_design.repairing._repairs import ProgramChoice, RepairBatch, repair, repair_many, select_program
from rrf_design.repairing._repairs import robust_scale as robust_scale
from rrf_design.repairing.contract import (
    Alternative,
    Certainty,
    Decoder,
    DecoderOutcome,
    Diagnostics,
    Repair,
    Task,
    to_document,
)

__all__ = [
    "METHODS",
    "Alternative",
    "Certainty",
    "Decoder",
    "DecoderOutcome",
    "Diagnostics",
    "Failure",
    "LocalRepair",
    "PenaltyCalibration",
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
